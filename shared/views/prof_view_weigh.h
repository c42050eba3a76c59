
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the files of prof_view.h share.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_VIEW_WEIGH_H_INCLUDED_
#define _PROF_VIEW_WEIGH_H_INCLUDED_


#include "base/prof_base.h"
#include "views/prof_view.h"


PROF_HIDDEN_BEGIN

/* makes and fills in the columns; PROF_OK or PROF_ERROR (memory) */
int prof_view_weigh(prof_view_t *v, const prof_profile_t *p,
    const uint32_t *measures, uint32_t n);

PROF_HIDDEN_END


#endif /* _PROF_VIEW_WEIGH_H_INCLUDED_ */
