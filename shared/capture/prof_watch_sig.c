
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The watch's part of the signal handler.
 */


#include "capture/prof_watch.h"
#include "capture/prof_sampler.h"


/* CPU time is not faster than wall time, so an earlier signal is forged */

void
prof_watch_expired(void *data, const ucontext_t *uc)
{
    prof_watch_t *w = data;

    uint64_t        now;
    uintptr_t       top;
    prof_sample_t  *sample;

    top = w->spot->top;

    if (top == 0) {
        return;
    }

    now = prof_clock(CLOCK_MONOTONIC);

    if (!prof_expiry_due(now, w->due, w->period)) {
        return;
    }

    w->due = now + w->period;

    sample = prof_ring_reserve(&w->ring);

    if (sample == NULL) {
        return;
    }

    sample->wall = now;
    sample->cpu = 0;
    sample->state = PROF_SAMPLE_RAN;

    prof_take(sample, &w->walker, uc, &w->stack, top);

    prof_ring_commit(&w->ring, sample);

    w->spot->taken = (uint32_t) w->ring.head;
    w->spot->fresh = 1;
}
