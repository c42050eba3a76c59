
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Complete profiles of captures, for tests that do not test drafts.  The
 * functions return NULL if memory is short.
 */


#ifndef _PROF_FINISH_H_INCLUDED_
#define _PROF_FINISH_H_INCLUDED_


#include "capture/prof_capture.h"


static inline prof_profile_t *
finish_draft(prof_profile_t *p)
{
    if (p && prof_profile_complete(p) != PROF_OK) {
        prof_profile_destroy(p);
        return NULL;
    }

    return p;
}


static inline prof_profile_t *
finish_capture(prof_capture_t *c, const char *title)
{
    prof_profile_t  *p;

    p = prof_capture_finish(c, title);

    if (p) {
        prof_capture_settle(c, p);
    }

    return finish_draft(p);
}


static inline prof_profile_t *
finish_process(prof_capture_t *c, const char *title)
{
    return finish_draft(prof_process_finish(c, title));
}


static inline prof_profile_t *
finish_heap(prof_heap_t *h, const char *title)
{
    return finish_draft(prof_heap_finish(h, title));
}


#endif /* _PROF_FINISH_H_INCLUDED_ */
