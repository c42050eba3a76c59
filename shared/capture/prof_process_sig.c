
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What runs in a sampled thread when one of its timers expires.  It writes to
 * nothing but the thread's own struct and ring, at a bounded cost.
 */


#include "capture/prof_process.h"
#include "unwind/prof_arch.h"


static void prof_thread_sample(prof_thread_t *t, const ucontext_t *uc);
static uintptr_t prof_thread_top(prof_thread_t *t, uintptr_t sp);
static void prof_thread_fine(prof_thread_t *t, uint64_t period);


static const prof_trace_t  prof_thread_no_trace;


/* the CPU timer */

void
prof_thread_ticked(void *data, const ucontext_t *uc)
{
    prof_thread_t *t = data;

    if (t->coarse) {
        prof_thread_sample(t, uc);

    } else if (!t->running) {
        prof_thread_fine(t, t->period);
        prof_thread_sample(t, uc);
    }
}


/* the monotonic timer */

void
prof_thread_expired(void *data, const ucontext_t *uc)
{
    prof_thread_t *t = data;

    if (!t->paced && prof_arch_waited(uc)) {
        prof_thread_fine(t, 0);

    } else {
        prof_thread_sample(t, uc);
    }
}


/* each capture counts the expirations that it lost: see prof_process_due() */

static void
prof_thread_sample(prof_thread_t *t, const ucontext_t *uc)
{
    uint64_t        start, clock, cpu, now;
    prof_regs_t     regs;
    prof_record_t  *rec;

    start = prof_clock(CLOCK_MONOTONIC);
    cpu = prof_clock(CLOCK_THREAD_CPUTIME_ID) - t->idle_cpu;
    clock = t->paced ? start - t->idle : cpu;

    if (!prof_expiry_due(clock, t->due, t->period)) {
        return;
    }

    (void) prof_expiry_next(&t->due, clock, t->period);

    rec = prof_ring_reserve(&t->ring);

    if (rec == NULL) {
        t->stats.lost_ring++;
        return;
    }

    prof_arch_regs(&regs, uc);

    rec->wall = start - t->idle;
    rec->cpu = cpu;
    rec->dropped = t->stats.lost_ring;
    rec->scope = t->scope;
    rec->trace = t->traced ? t->trace : prof_thread_no_trace;
    rec->nframes = prof_walk(__atomic_load_n(&t->unwind, __ATOMIC_SEQ_CST),
                             t->cache, uc,
                             prof_thread_top(t, regs.sp), rec->pcs,
                             PROF_MAX_DEPTH, &t->stats, &rec->end);

    /* whether it ran is for the captures of CPU time */

    rec->unused = t->paced && prof_arch_waited(uc);

    prof_ring_commit(&t->ring, rec);

    now = prof_clock(CLOCK_MONOTONIC);

    t->stats.own_handler_ns += (now - start < PROF_HANDLER_MAX_NS)
                               ? now - start : PROF_HANDLER_MAX_NS;
}


/*
 * The end of the stack that the thread is on.  It may have more than one; that
 * of the main thread grows down.
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

    (void) prof_thread_pace(t, period, period);
}


uint64_t
prof_thread_pace(prof_thread_t *t, uint64_t first, uint64_t period)
{
    int       i, n;
    uint64_t  next, rest, left;

    n = t->coarse ? 1 : PROF_FINE_TIMERS;
    rest = 0;

    for (i = 0; i < n; i++) {

        next = period ? first + i * period : 0;
        left = prof_thread_timer(t->fine_timers[i], next, n * period);

        if (left && (rest == 0 || left < rest)) {
            rest = left;
        }
    }

    return rest;
}


uint64_t
prof_thread_timer(timer_t timer, uint64_t first, uint64_t period)
{
    struct itimerspec  it, old;

    it.it_value.tv_sec = first / 1000000000;
    it.it_value.tv_nsec = first % 1000000000;
    it.it_interval.tv_sec = period / 1000000000;
    it.it_interval.tv_nsec = period % 1000000000;

    if (timer_settime(timer, 0, &it, &old) == -1) {
        return 0;
    }

    return (uint64_t) old.it_value.tv_sec * 1000000000 + old.it_value.tv_nsec;
}
