
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The traces of the samples of a capture.  A trace is added when a sample has
 * it, up to the given number of traces.
 *
 * Context: one thread at a time; not in a signal.
 */


#ifndef _PROF_TRACES_H_INCLUDED_
#define _PROF_TRACES_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_map.h"
#include "base/prof_stats.h"
#include "base/prof_trace.h"
#include "profile/prof_profile.h"


typedef struct {
    prof_map_t    map;          /* span and a part of the trace -> index */
    uint32_t      n;
    uint32_t      max;
    prof_trace_t  traces[];
} prof_traces_t;


PROF_HIDDEN_BEGIN

/* returns NULL if memory is short */
prof_traces_t *prof_traces_create(uint32_t max);
void prof_traces_destroy(prof_traces_t *ts);

/*
 * Returns the number of a trace, from 1 on.  Returns 0 for no trace, and if
 * there are too many traces, which is counted.
 */
uint32_t prof_traces_number(prof_traces_t *ts, const prof_trace_t *t,
    prof_stats_t *st);

/* adds the labels of a trace to a set; returns PROF_NONE if memory is short */
uint32_t prof_traces_labels(const prof_traces_t *ts, uint32_t number,
    prof_profile_t *p, uint32_t set);

PROF_HIDDEN_END


#endif /* _PROF_TRACES_H_INCLUDED_ */
