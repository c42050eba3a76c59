
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A capture and its turns.  All of a capture's memory but this struct and the
 * names is one block, mapped at the start: call tree in one half, timeline in
 * the other.
 *
 * Context: the sampler's thread; not in a signal.
 */


#ifndef _PROF_CAPTURE_H_INCLUDED_
#define _PROF_CAPTURE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "capture/prof_sampler.h"
#include "capture/prof_entries.h"
#include "capture/prof_tree.h"
#include "prof.h"


#define PROF_NAMES_MAX  256


struct prof_capture_s {
    prof_tree_t      tree;
    prof_entries_t   timeline;
    prof_stats_t     stats;
    void            *memory;
    size_t           memory_size;

    uint32_t         mode;
    uint32_t         frequency;     /* asked */
    uint64_t         period;        /* in force, ns */
    uint64_t         rest;          /* ns until the next sample is due */
    uint64_t         taken;

    uint64_t         start_realtime;
    uint64_t         mark;          /* end of the last turn or named gap */
    uint64_t         wall;
    uint64_t         running;
    uint64_t         cpu;

    char            *names[PROF_NAMES_MAX];
    uint32_t         nnames;
};


/* a turn; lives on the stack of prof_turn_run() */

struct prof_turn_s {
    prof_turn_t     *prev;
    prof_capture_t  *capture;       /* NULL: ended */
    uintptr_t        what;
    uintptr_t        top;
    uint64_t         wall;          /* clocks at the start */
    uint64_t         cpu;
};


PROF_HIDDEN_BEGIN

/* adds to the timeline, and samples less often when its memory is short */
void prof_capture_add(prof_capture_t *c, uint32_t node, uint32_t kind,
    uint64_t wall, uint64_t cpu);

PROF_HIDDEN_END


#endif /* _PROF_CAPTURE_H_INCLUDED_ */
