
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * All that runs in the sampling signal, apart from the stack walk.  No
 * allocation, no lock, no log, no thread-local storage but errno.  What this
 * file may call is checked against a list: clock_gettime(), raise(),
 * sigaction() and timer_settime() are safe in signals (POSIX.1-2017, XSH
 * 2.4.3).
 */


#include "capture/prof_sampler.h"

#include <errno.h>


static void prof_handler_pass(int signo, siginfo_t *si, void *uc);
static void prof_handler_sample(prof_sampler_t *s, const ucontext_t *uc);
static void prof_handler_govern(prof_sampler_t *s, uint64_t now);
static void prof_handler_slow_down(prof_sampler_t *s);


struct sigaction  prof_signal_fault;


void
prof_handler(int signo, siginfo_t *si, void *uc)
{
    int             err;
    prof_expiry_t  *e;

    /* anybody may send the signal, but only a timer carries our pointer */

    e = si->si_value.sival_ptr;

    if (si->si_code != SI_TIMER || e == NULL) {
        prof_handler_pass(signo, si, uc);
        return;
    }

    err = errno;

    e->handler(e, si, uc);

    errno = err;
}


/*
 * A fault goes to the handler that was there before; if there was none, it
 * comes again when this handler is left, and ends the process.
 */

static void
prof_handler_pass(int signo, siginfo_t *si, void *uc)
{
    if (signo != SIGFPE) {
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
prof_sampler_expired(prof_expiry_t *e, const siginfo_t *si,
    const ucontext_t *uc)
{
    prof_sampler_t  *s;

    s = (prof_sampler_t *) e;

    if (!s->armed) {
        return;
    }

    if (si->si_overrun > 0) {
        s->stats->lost_overrun += si->si_overrun;
    }

    prof_handler_sample(s, uc);
}


static void
prof_handler_sample(prof_sampler_t *s, const ucontext_t *uc)
{
    uint64_t        start, now;
    prof_record_t  *rec;

    start = prof_clock(CLOCK_MONOTONIC);

    rec = prof_ring_reserve(&s->ring);

    if (rec == NULL) {
        s->stats->lost_ring++;
        return;
    }

    rec->wall = start;
    rec->cpu = prof_clock(s->cpu_clock);
    rec->unused = 0;
    rec->nframes = prof_walk(s->unwind, s->cache, uc, s->top, rec->pcs,
                             PROF_MAX_DEPTH, s->stats, &rec->end);

    prof_ring_commit(&s->ring, rec);

    now = prof_clock(CLOCK_MONOTONIC);

    s->stats->samples++;
    s->stats->own_handler_ns += (now - start < PROF_HANDLER_MAX_NS)
                                ? now - start : PROF_HANDLER_MAX_NS;

    prof_handler_govern(s, now);
}


static void
prof_handler_govern(prof_sampler_t *s, uint64_t now)
{
    size_t    used;
    uint64_t  own;

    used = prof_ring_used(&s->ring);

    if (used > s->fill) {
        s->fill = used + (PROF_RING_SIZE - used) / 2;
        prof_handler_slow_down(s);
        return;
    }

    if (++s->taken % PROF_GOVERN_EVERY) {
        return;
    }

    own = s->stats->own_handler_ns + s->stats->samples * PROF_DELIVERY_NS;

    if (own * PROF_SHARE > s->running + now - s->start) {
        prof_handler_slow_down(s);
    }
}


static void
prof_handler_slow_down(prof_sampler_t *s)
{
    struct itimerspec  it;

    if (s->period >= PROF_PERIOD_MAX / 2) {
        return;
    }

    s->period *= 2;
    s->stats->slowdowns++;

    it.it_value.tv_sec = s->period / 1000000000;
    it.it_value.tv_nsec = s->period % 1000000000;
    it.it_interval = it.it_value;

    (void) timer_settime(s->timer, 0, &it, NULL);
}
