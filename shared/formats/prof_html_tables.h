
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Tables of self and total weights for a page: by function, by module or
 * library, and by kind of code.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_HTML_TABLES_H_INCLUDED_
#define _PROF_HTML_TABLES_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


/* rows of functions: the heaviest by self and by total, by each measure */

#define PROF_HTML_ROWS  100


PROF_HIDDEN_BEGIN

/* appends them; returns PROF_OK, or PROF_ERROR when memory is short */
int prof_html_tables(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_HTML_TABLES_H_INCLUDED_ */
