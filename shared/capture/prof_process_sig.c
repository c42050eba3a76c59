
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Runs in a sampled thread when one of its timers expires.  It writes only to
 * the thread's own struct and ring, and its cost is bounded.
 */


#include "capture/prof_process.h"
#include "unwind/prof_arch.h"


static void prof_thread_paced(prof_thread_t *t, const ucontext_t *uc);
static void prof_thread_woken(prof_thread_t *t, const ucontext_t *uc);
static void prof_thread_wait(prof_thread_t *t);
static void prof_thread_resume(prof_thread_t *t);
static void prof_thread_sample(prof_thread_t *t, const ucontext_t *uc);
static void prof_thread_take(prof_thread_t *t, const ucontext_t *uc,
    uint64_t start, prof_sample_state_e state);
static uintptr_t prof_thread_top(prof_thread_t *t, uintptr_t sp);
static void prof_thread_fine(prof_thread_t *t, uint64_t period);


/* a paced sample may be early by 1 / 4 of the period */
#define PROF_PACE_EARLY  4


static const prof_trace_t  prof_thread_no_trace;


/* handles the CPU timer, which is set for a paced thread while it waits */

void
prof_thread_ticked(void *data, const ucontext_t *uc)
{
    prof_thread_t *t = data;

    if (t->idling) {
        t->expired = 1;

    } else if (t->paced) {
        prof_thread_woken(t, uc);

    } else if (t->coarse) {
        prof_thread_sample(t, uc);

    } else if (!t->running) {
        prof_thread_fine(t, t->period);
        prof_thread_sample(t, uc);
    }
}


/* handles the monotonic timer */

void
prof_thread_expired(void *data, const ucontext_t *uc)
{
    prof_thread_t *t = data;

    if (t->idling) {
        t->expired = 1;

    } else if (t->paced) {
        prof_thread_paced(t, uc);

    } else if (prof_arch_waited(uc)) {
        prof_thread_fine(t, 0);

    } else {
        prof_thread_sample(t, uc);
    }
}


static void
prof_thread_paced(prof_thread_t *t, const ucontext_t *uc)
{
    uint64_t  start, busy;

    start = prof_clock(CLOCK_MONOTONIC);
    busy = start - t->idle;

    if (t->wait) {

        if (!prof_expiry_due(busy, t->due, t->wait)) {
            return;
        }

    } else if (busy + t->period / PROF_PACE_EARLY < t->due) {
        prof_thread_pace_due(t);
        return;
    }

    if (prof_arch_waited(uc)) {
        prof_thread_take(t, uc, start, PROF_SAMPLE_WAITED);
        prof_thread_wait(t);

    } else if (t->wait) {
        prof_thread_resume(t);
        prof_thread_take(t, uc, start, PROF_SAMPLE_WOKE);

    } else {
        (void) prof_expiry_next(&t->due, busy, t->period);
        prof_thread_take(t, uc, start, PROF_SAMPLE_RAN);
    }
}


static void
prof_thread_woken(prof_thread_t *t, const ucontext_t *uc)
{
    if (t->wait
        && prof_expiry_due(prof_clock(CLOCK_THREAD_CPUTIME_ID), t->cpu_due,
                           t->period))
    {
        prof_thread_resume(t);
        prof_thread_take(t, uc, prof_clock(CLOCK_MONOTONIC), PROF_SAMPLE_WOKE);
    }
}


static void
prof_thread_wait(prof_thread_t *t)
{
    t->wait = 2 * (t->wait ? t->wait : t->period);

    if (t->wait > PROF_PERIOD_MAX) {
        t->wait = PROF_PERIOD_MAX;
    }

    t->due = prof_clock(CLOCK_MONOTONIC) - t->idle + t->wait;
    t->cpu_due = prof_clock(CLOCK_THREAD_CPUTIME_ID) + t->period;

    prof_thread_pace(t, 0, 0);
    (void) prof_timer_set(t->fine_timers[0], t->wait, t->wait);
    (void) prof_timer_set(t->tick_timer, t->period, 0);
}


static void
prof_thread_resume(prof_thread_t *t)
{
    t->wait = 0;
    t->due = prof_clock(CLOCK_MONOTONIC) - t->idle + t->period;

    (void) prof_timer_set(t->tick_timer, 0, 0);
    prof_thread_pace(t, t->period, t->period);
}


/*
 * Takes a sample if it is due.  Lost expirations are not counted here: each
 * capture counts its own, see prof_process_due().
 */

static void
prof_thread_sample(prof_thread_t *t, const ucontext_t *uc)
{
    uint64_t  cpu;

    cpu = prof_clock(CLOCK_THREAD_CPUTIME_ID) - t->idle_cpu;

    if (prof_expiry_due(cpu, t->due, t->period)) {
        (void) prof_expiry_next(&t->due, cpu, t->period);
        prof_thread_take(t, uc, prof_clock(CLOCK_MONOTONIC), PROF_SAMPLE_RAN);
    }
}


static void
prof_thread_take(prof_thread_t *t, const ucontext_t *uc, uint64_t start,
    prof_sample_state_e state)
{
    uint64_t        now;
    prof_regs_t     regs;
    prof_sample_t  *sample;
    prof_walker_t   w;

    sample = prof_ring_reserve(&t->ring);

    if (sample == NULL) {
        t->stats.lost_ring++;
        return;
    }

    prof_arch_regs(&regs, uc);

    sample->wall = start - t->idle;
    sample->cpu = prof_clock(CLOCK_THREAD_CPUTIME_ID) - t->idle_cpu;
    sample->state = state;
    sample->dropped = t->stats.lost_ring;
    sample->location = t->location;
    sample->trace = t->traced ? t->trace : prof_thread_no_trace;

    /* the main thread may renew the tables at the same time */

    w.unwind = __atomic_load_n(&t->unwind, __ATOMIC_SEQ_CST);
    w.cache = t->cache;
    w.stats = &t->stats;
    w.kernel = t->kernel;

    prof_take(sample, &w, uc, NULL, prof_thread_top(t, regs.sp));

    prof_ring_commit(&t->ring, sample);

    now = prof_clock(CLOCK_MONOTONIC);

    t->stats.own_handler_ns += (now - start < PROF_HANDLER_MAX_NS)
                               ? now - start : PROF_HANDLER_MAX_NS;
}


/*
 * Returns the end of the stack that the thread is on.  A thread may have
 * several stacks; the main thread's stack grows down.
 */

static uintptr_t
prof_thread_top(prof_thread_t *t, uintptr_t sp)
{
    uint32_t            low, high, i;
    const prof_area_t  *range;

    if (sp >= t->stack.start && sp < t->stack.end) {
        return t->stack.end;
    }

    low = 0;
    high = t->nranges;

    while (low < high) {
        i = low + (high - low) / 2;

        if (t->ranges[i].end <= sp) {
            low = i + 1;

        } else {
            high = i;
        }
    }

    range = &t->ranges[low];

    if (low == t->nranges || sp < range->start) {
        return sp;
    }

    t->stack = *range;

    return range->end;
}


static void
prof_thread_fine(prof_thread_t *t, uint64_t period)
{
    t->running = (period != 0);

    prof_thread_pace(t, period, period);
}


void
prof_thread_pace(prof_thread_t *t, uint64_t first, uint64_t period)
{
    int  i, n;

    n = t->coarse ? 1 : PROF_FINE_TIMERS;

    for (i = 0; i < n; i++) {
        (void) prof_timer_set(t->fine_timers[i],
                              period ? first + i * period : 0, n * period);
    }
}


void
prof_thread_pace_due(prof_thread_t *t)
{
    uint64_t  busy;

    busy = prof_clock(CLOCK_MONOTONIC) - t->idle;

    prof_thread_pace(t, t->due > busy ? t->due - busy : 1, t->period);
}
