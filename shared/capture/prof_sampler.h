
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The sampler of one thread: timer, ring, alternate stack.  The timer runs in
 * turns only.  Its signal handler finds everything through the entry that the
 * payload of the timer's signal names, so no thread-local storage is involved.
 *
 * A signal interrupts system calls that wait.  When a sample finds the thread
 * in such a call, the time to the next sample doubles, and a timer on the
 * thread's CPU clock, which does not expire while the thread waits, brings the
 * period back as soon as the thread runs for longer than that.
 *
 * The fields below "the handler's" are written by the owning thread while
 * armed is 0 and by the handler while it is 1; the handler interrupts that
 * same thread, so plain accesses with a compiler barrier suffice.
 */


#ifndef _PROF_SAMPLER_H_INCLUDED_
#define _PROF_SAMPLER_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_clock.h"
#include "base/prof_stats.h"
#include "capture/prof_capture.h"
#include "capture/prof_signal.h"
#include "stacks/prof_ring.h"
#include "stacks/prof_stack.h"
#include "stacks/prof_take.h"
#include "unwind/prof_unwind.h"

#include <signal.h>
#include <time.h>


/*
 * The governor: when the samples' cost exceeds one part in PROF_SHARE of the
 * sampled time, the frequency is halved.  The cost of a sample is the
 * handler's own time, plus what the handler cannot see: the timer's interrupt
 * and the kernel's way to the handler and back (5 to 20 us on virtual
 * machines, 1 to 3 on bare metal).  A handler that took longer than
 * PROF_HANDLER_MAX_NS was preempted, which is no cost of its own: on a busy
 * machine it would slow the sampling down for nothing.
 */

#define PROF_SHARE           10
#define PROF_DELIVERY_NS     5000
#define PROF_HANDLER_MAX_NS  50000
#define PROF_GOVERN_EVERY    32

#define PROF_PERIOD_MAX      1000000000


typedef struct prof_turn_s  prof_turn_t;

struct prof_sampler_s {
    prof_expiry_t        *expiry;
    prof_expiry_t        *woken;
    prof_walker_t         walker;       /* its stats are the capture's */
    prof_stack_t          stack;
    prof_ring_t           ring;
    timer_t               timer;
    timer_t               cpu_timer;
    stack_t               old_stack;
    void                 *memory;       /* ring, cache, alternate stack */
    size_t                memory_size;
    unsigned              own_stack:1;

    prof_turn_t          *turn;         /* innermost, or NULL */

    /* the handler's */

    volatile int          armed;
    clockid_t             cpu_clock;
    uintptr_t             top;
    uint64_t              period;       /* ns */
    uint64_t              wait;         /* ns between samples while the thread
                                           waits; 0: it does not */
    uint64_t              last;         /* wall clock of the last sample */
    uint64_t              cpu_due;      /* CPU clock of a thread that woke */
    uint64_t              start;        /* of the turn */
    uint64_t              due;          /* wall clock of the next sample */
    uint64_t              running;      /* of the capture before the turn */
    size_t                fill;         /* of the ring that slows down */
    uint64_t              taken;        /* in the capture, for the governor */
};


PROF_HIDDEN_BEGIN

/*
 * Context: signal handler (prof_handler_sig.c holds nothing else).
 */
void prof_sampler_expired(void *data, const ucontext_t *uc);
void prof_sampler_woken(void *data, const ucontext_t *uc);

/* the thread no longer waits; called in the thread or in its handler */
void prof_sampler_resume(prof_sampler_t *s, uint64_t now);

PROF_HIDDEN_END


#endif /* _PROF_SAMPLER_H_INCLUDED_ */
