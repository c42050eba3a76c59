
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Short names for the entries of a profile.
 */


#ifndef _PROF_SERIES_H_INCLUDED_
#define _PROF_SERIES_H_INCLUDED_


#include "profile/prof_profile.h"


#define ntimes(p)        ((p)->series[PROF_SERIES_TIME].n)
#define time_of(p, i)                                                         \
    prof_series_entry(&(p)->series[PROF_SERIES_TIME], i)
#define wall_of(p, i)   time_of(p, i)->values[PROF_VALUE_WALL]
#define cpu_of(p, i)    time_of(p, i)->values[PROF_VALUE_CPU]

#define nallocs(p)       ((p)->series[PROF_SERIES_MEMORY].n)
#define alloc_of(p, i)                                                        \
    prof_series_entry(&(p)->series[PROF_SERIES_MEMORY], i)


#endif /* _PROF_SERIES_H_INCLUDED_ */
