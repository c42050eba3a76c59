
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The handler of the sampling signals, without the stack walk.  It does not
 * allocate, lock or log, and uses no thread-local storage except errno.  A
 * tool checks the functions that this file calls: clock_gettime(), raise(),
 * sigaction() and timer_settime() are safe in signals (POSIX.1-2017, XSH
 * 2.4.3); syscall() gets the thread's id, once in each thread.
 */


#include "capture/prof_sampler.h"
#include "unwind/prof_arch.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>


static int prof_handler_mine(prof_expiry_t *e);
static void prof_handler_refuse(void);
static void prof_handler_pass(int signo, siginfo_t *si, void *uc);
static void prof_handler_wait(prof_sampler_t *s, uint64_t now);
static void prof_handler_sample(prof_sampler_t *s, const ucontext_t *uc,
    uint64_t start, prof_sample_state_e state);
static void prof_handler_govern(prof_sampler_t *s, uint64_t now);
static void prof_handler_slow_down(prof_sampler_t *s, uint64_t now);


struct sigaction  prof_signal_fault;

prof_expiry_t     prof_expiries[PROF_EXPIRIES];
uint64_t          prof_signal_forged;


void
prof_handler(int signo, siginfo_t *si, void *uc)
{
    int             err;
    uintptr_t       word;
    prof_expiry_t  *e;

    if (si->si_code != SI_TIMER) {
        prof_handler_pass(signo, si, uc);
        return;
    }

    err = errno;

    word = (uintptr_t) si->si_value.sival_ptr;
    e = &prof_expiries[word % PROF_EXPIRIES];

    (void) __atomic_fetch_add(&e->inside, 1, __ATOMIC_SEQ_CST);

    if (word && __atomic_load_n(&e->word, __ATOMIC_SEQ_CST) == word
        && prof_handler_mine(e))
    {
        e->handler(e->data, uc);

    } else {
        prof_handler_refuse();
    }

    (void) __atomic_fetch_sub(&e->inside, 1, __ATOMIC_SEQ_CST);

    errno = err;
}


/*
 * Returns whether the entry belongs to this thread.  The thread pointer
 * identifies the thread as its id does, and costs no system call; only the
 * right thread writes it.
 */

static int
prof_handler_mine(prof_expiry_t *e)
{
    uintptr_t  thread;

    thread = __atomic_load_n(&e->thread, __ATOMIC_RELAXED);

    if (thread) {
        return thread == prof_arch_thread();
    }

    if (syscall(SYS_gettid) != e->tid) {
        return 0;
    }

    __atomic_store_n(&e->thread, prof_arch_thread(), __ATOMIC_RELAXED);

    return 1;
}


static void
prof_handler_refuse(void)
{
    (void) __atomic_fetch_add(&prof_signal_forged, 1, __ATOMIC_RELAXED);
}


/*
 * Passes a fault to the previous handler.  Without a previous handler the fault
 * occurs again when this handler returns, and ends the process.
 */

static void
prof_handler_pass(int signo, siginfo_t *si, void *uc)
{
    if (signo != SIGFPE) {
        prof_handler_refuse();
        return;
    }

    if (prof_signal_fault.sa_flags & SA_SIGINFO) {
        prof_signal_fault.sa_sigaction(signo, si, uc);
        return;
    }

    if (prof_signal_fault.sa_handler == SIG_IGN && si->si_code <= 0) {
        return;
    }

    if (prof_signal_fault.sa_handler == SIG_DFL
        || prof_signal_fault.sa_handler == SIG_IGN)
    {
        (void) sigaction(signo, &prof_signal_fault, NULL);

        if (si->si_code <= 0) {
            (void) raise(signo);
        }

        return;
    }

    prof_signal_fault.sa_handler(signo);
}


void
prof_sampler_expired(void *data, const ucontext_t *uc)
{
    prof_sampler_t *s = data;

    uint64_t  now;

    if (!s->armed) {
        return;
    }

    now = prof_clock(CLOCK_MONOTONIC);

    if (!prof_expiry_due(now, s->due, s->wait ? s->wait : s->period)) {
        return;
    }

    /* the number of overruns in the signal could be forged */

    if (s->wait == 0) {
        s->walker.stats->lost_overrun += prof_expiry_next(&s->due, now,
                                                          s->period);
    }

    if (prof_arch_waited(uc)) {
        prof_handler_sample(s, uc, now, PROF_SAMPLE_WAITED);
        prof_handler_wait(s, now);

    } else if (s->wait) {
        prof_sampler_resume(s, now);
        prof_handler_sample(s, uc, now, PROF_SAMPLE_WOKE);

    } else {
        prof_handler_sample(s, uc, now, PROF_SAMPLE_RAN);
    }
}


/*
 * Handles the timer on the CPU clock, which is set while the thread waits.
 * Its expiration means that the thread runs again.
 */

void
prof_sampler_woken(void *data, const ucontext_t *uc)
{
    prof_sampler_t *s = data;

    uint64_t  now;

    if (!s->armed || s->wait == 0
        || !prof_expiry_due(prof_clock(s->cpu_clock), s->cpu_due, s->period))
    {
        return;
    }

    now = prof_clock(CLOCK_MONOTONIC);

    prof_sampler_resume(s, now);
    prof_handler_sample(s, uc, now, PROF_SAMPLE_WOKE);
}


/*
 * Called when a sample found the thread waiting: doubles the time to the next
 * sample.  The next sample has the weight of the samples that are left out.
 */

static void
prof_handler_wait(prof_sampler_t *s, uint64_t now)
{
    s->wait = 2 * (s->wait ? s->wait : s->period);

    if (s->wait > PROF_PERIOD_MAX) {
        s->wait = PROF_PERIOD_MAX;
    }

    s->due = now + s->wait;
    s->cpu_due = prof_clock(s->cpu_clock) + s->period;

    (void) prof_timer_set(s->timer, s->wait, s->wait);
    (void) prof_timer_set(s->cpu_timer, s->period, 0);
}


void
prof_sampler_resume(prof_sampler_t *s, uint64_t now)
{
    s->wait = 0;
    s->due = now + s->period;

    (void) prof_timer_set(s->cpu_timer, 0, 0);
    (void) prof_timer_set(s->timer, s->period, s->period);
}


static void
prof_handler_sample(prof_sampler_t *s, const ucontext_t *uc, uint64_t start,
    prof_sample_state_e state)
{
    uint64_t        now, postponed;
    prof_sample_t  *sample;

    if (s->wait || state == PROF_SAMPLE_WOKE) {
        postponed = (start - s->last) / s->period;
        s->walker.stats->postponed += postponed ? postponed - 1 : 0;
    }

    s->last = start;

    sample = prof_ring_reserve(&s->ring);

    if (sample == NULL) {
        s->walker.stats->lost_ring++;
        return;
    }

    sample->wall = start;
    sample->cpu = prof_clock(s->cpu_clock);
    sample->state = state;

    prof_take(sample, &s->walker, uc, &s->stack, s->top);

    prof_ring_commit(&s->ring, sample);

    now = prof_clock(CLOCK_MONOTONIC);

    s->walker.stats->samples++;
    s->walker.stats->own_handler_ns += (now - start < PROF_HANDLER_MAX_NS)
                                ? now - start : PROF_HANDLER_MAX_NS;

    prof_handler_govern(s, now);
}


static void
prof_handler_govern(prof_sampler_t *s, uint64_t now)
{
    size_t               used;
    uint64_t             own;
    const prof_stats_t  *st;

    used = prof_ring_used(&s->ring);

    if (used > s->fill) {
        s->fill = used + (PROF_RING_SIZE - used) / 2;
        prof_handler_slow_down(s, now);
        return;
    }

    if (++s->taken % PROF_GOVERN_EVERY) {
        return;
    }

    st = s->walker.stats;
    own = st->own_handler_ns + st->samples * PROF_DELIVERY_NS;

    if (own * PROF_SHARE > s->running + now - s->start) {
        prof_handler_slow_down(s, now);
    }
}


static void
prof_handler_slow_down(prof_sampler_t *s, uint64_t now)
{
    if (s->period >= PROF_PERIOD_MAX / 2) {
        return;
    }

    s->period *= 2;
    s->due = now + s->period;
    s->walker.stats->slowdowns++;

    (void) prof_timer_set(s->timer, s->period, s->period);
}


uint64_t
prof_timer_set(timer_t timer, uint64_t first, uint64_t period)
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
