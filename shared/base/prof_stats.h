
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The counters of one capture.  Samples that are lost, cut or merged are
 * counted.  Each format shows the counters.  A new counter is one line in the
 * table.
 *
 * Context: plain memory.  The thread that owns the capture writes it, and the
 * signal handler that interrupts this thread.
 */


#ifndef _PROF_STATS_H_INCLUDED_
#define _PROF_STATS_H_INCLUDED_


#include "base/prof_base.h"


/* each line: the name, and the text */

#define PROF_STATS(x)                                                         \
    x(samples,          "samples taken")                                      \
    x(lost_overrun,     "timer expirations that came too late to be taken")   \
    x(lost_ring,        "samples lost because the sample ring was full")      \
    x(postponed,        "samples postponed so that waits are not interrupted") \
    x(lost_tree,        "samples cut because the call tree was full")         \
    x(thinned,          "samples merged into a neighbour to save memory")     \
    x(lost_traces,      "samples of traces that were too many")               \
    x(truncated,        "stacks cut at the depth limit")                      \
    x(elided,           "frames left out in the middle of deep stacks")       \
    x(no_unwind,        "stacks that ended at code without unwind info")      \
    x(bad_stack,        "stacks that ended at an unreadable address")         \
    x(scanned,          "frames recovered by a stack scan")                   \
    x(turns,            "turns")                                              \
    x(no_processor_ns,  "time in turns without a processor")                  \
    x(blocked_ns,       "time in turns blocked in a call")                    \
    x(turns_unsampled,  "turns too short for a sample")                       \
    x(merged_stages,    "begins and ends of stages not timed, to save time")  \
    x(merged_names,     "names of stages, waits and labels too many to show") \
    x(slowdowns,        "times the governor halved the frequency")            \
    x(allocations,      "allocations that were counted, or sampled")          \
    x(lost_live,        "allocations of which the end could not be followed") \
    x(lost_hooks,       "calls that could not be counted")                    \
    x(lost_names,       "addresses that the helper for names did not look up") \
    x(lost_scripts,     "script frames whose names did not fit")   \
    x(lost_engine,      "stacks of scripts that could not be read")          \
    x(waits_left_out,   "waits beside others that are not shown")             \
    x(spread_ns,        "time without samples, divided among samples")        \
    x(untracked_ns,     "time in which the request was not tracked")          \
    x(own_start_ns,     "time to start the capture")                          \
    x(own_handler_ns,   "time in the sample handler")                         \
    x(own_fold_ns,      "time to fold samples")


typedef struct {
#define PROF_STATS_FIELD(name, text)  uint64_t  name;
    PROF_STATS(PROF_STATS_FIELD)
#undef PROF_STATS_FIELD
} prof_stats_t;


typedef struct {
    const char  *name;      /* in formats: "lost_ring" */
    const char  *text;      /* for readers */
    size_t       offset;    /* in prof_stats_t */
} prof_stats_desc_t;


PROF_HIDDEN_BEGIN

/* the last name is NULL */
extern const prof_stats_desc_t  prof_stats_desc[];

uint64_t prof_stats_get(const prof_stats_t *st, const prof_stats_desc_t *d);

/* adds each counter of "from" */
void prof_stats_add(prof_stats_t *st, const prof_stats_t *from);

PROF_HIDDEN_END


#endif /* _PROF_STATS_H_INCLUDED_ */
