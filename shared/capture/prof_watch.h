
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A watch samples one thread all the time, at a low frequency of its CPU time.
 * After some code has run, the caller gives an owner to the samples, and may
 * read the owner's samples later.  So a turn costs only a comparison, and the
 * timer does not wake the thread.
 *
 * The watch samples only code below a frame that the caller has noted.
 *
 * Context: the thread that is watched; not in a signal, except the handler in
 * prof_watch_sig.c.
 */


#ifndef _PROF_WATCH_H_INCLUDED_
#define _PROF_WATCH_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "capture/prof_capture.h"
#include "capture/prof_signal.h"
#include "stacks/prof_ring.h"
#include "stacks/prof_take.h"
#include "unwind/prof_unwind.h"


/* more than half of the ring's samples */
#define PROF_WATCH_PASSED  8192


/* a sample that has an owner: its place in the ring, and its time */

typedef struct {
    uint64_t              pos;
    uint64_t              wall;
    uintptr_t             owner;
} prof_watch_passed_t;


struct prof_watch_s {
    prof_expiry_t        *expiry;
    uint64_t              period;       /* ns */
    uint64_t              due;          /* wall clock; no sample before it */
    prof_watch_spot_t    *spot;
    prof_walker_t         walker;
    prof_stack_t          stack;
    prof_ring_t           ring;
    prof_stats_t          stats;
    timer_t               timer;
    prof_watch_passed_t  *passed;       /* the latest samples with an owner: a
                                           cyclic array */
    uint64_t              npassed;
    void                 *memory;       /* ring, cache, passed */
    size_t                memory_size;
    uint64_t              marked;       /* place in the ring: samples before
                                           are marked */
    uint64_t              seen;         /* place in the ring: samples before
                                           have an owner */
};


PROF_HIDDEN_BEGIN

void prof_watch_expired(void *data, const ucontext_t *uc);

PROF_HIDDEN_END


#endif /* _PROF_WATCH_H_INCLUDED_ */
