
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A table for a page: what the sets of labels have, workers and threads.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_HTML_LABELS_H_INCLUDED_
#define _PROF_HTML_LABELS_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


/* rows, the heaviest ones */

#define PROF_HTML_LABELS  50


PROF_HIDDEN_BEGIN

/*
 * Appends it if there are at least two sets.  Returns PROF_OK, or PROF_ERROR
 * when memory is short.
 */
int prof_html_labels(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_HTML_LABELS_H_INCLUDED_ */
