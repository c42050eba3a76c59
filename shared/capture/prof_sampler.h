
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The sampler of one thread: timer, ring, alternate stack.  The timer runs in
 * turns only.  The payload of the timer's signal names an entry of a table,
 * through which the signal handler finds all data.  So no thread-local storage
 * is needed.
 *
 * A signal interrupts system calls that wait.  When a sample finds the thread
 * in such a call, the time to the next sample doubles.  A timer on the
 * thread's CPU clock, which does not expire while the thread waits, restores
 * the period when the thread runs for longer than the period.
 *
 * Some members belong to the handler.  The owning thread writes them while
 * armed is 0, and the handler writes them while armed is 1.  The handler
 * interrupts the same thread, so plain accesses with a compiler barrier
 * suffice.
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
 * handler's own time, plus a constant for the parts that the handler cannot
 * measure: the timer's interrupt, and the kernel's way to the handler and back
 * (5 to 20 us on virtual machines, 1 to 3 on bare metal).  A handler that took
 * longer than PROF_HANDLER_MAX_NS was preempted.  Its time is not a cost of
 * the sample, and would reduce the frequency on a busy machine without a
 * reason.
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
    prof_walker_t         walker;       /* with the capture's stats */
    prof_stack_t          stack;
    prof_ring_t           ring;
    timer_t               timer;
    timer_t               cpu_timer;
    stack_t               old_stack;
    void                 *memory;       /* ring, cache, alternate stack */
    size_t                memory_size;
    unsigned              own_stack:1;

    prof_turn_t          *turn;         /* innermost, or NULL */

    /* the members below belong to the handler */

    volatile int          armed;
    clockid_t             cpu_clock;
    uintptr_t             top;
    uint64_t              period;       /* ns */
    uint64_t              wait;         /* ns between samples while the thread
                                           waits; 0: it runs */
    uint64_t              last;         /* wall clock of the last sample */
    uint64_t              cpu_due;      /* CPU clock of a thread that woke */
    uint64_t              start;        /* clock at the start of the turn */
    uint64_t              due;          /* wall clock of the next sample */
    uint64_t              running;      /* running time before the turn */
    size_t                fill;         /* fill at which sampling slows down */
    uint64_t              taken;        /* in the capture, for the governor */
};


PROF_HIDDEN_BEGIN

/* Context: signal handler (prof_handler_sig.c has only these functions). */
void prof_sampler_expired(void *data, const ucontext_t *uc);
void prof_sampler_woken(void *data, const ucontext_t *uc);

/* called when the thread no longer waits, in the thread or in its handler */
void prof_sampler_resume(prof_sampler_t *s, uint64_t now);

PROF_HIDDEN_END


#endif /* _PROF_SAMPLER_H_INCLUDED_ */
