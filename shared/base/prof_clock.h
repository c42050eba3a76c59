
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads clocks.
 */


#ifndef _PROF_CLOCK_H_INCLUDED_
#define _PROF_CLOCK_H_INCLUDED_


#include "base/prof_base.h"

#include <time.h>


/* Returns nanoseconds.  Context: any, also a signal handler. */

static inline uint64_t
prof_clock(clockid_t id)
{
    struct timespec  ts;

    (void) clock_gettime(id, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


#endif /* _PROF_CLOCK_H_INCLUDED_ */
