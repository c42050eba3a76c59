
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
    prof_record_t  *rec;

    top = w->spot->top;

    if (top == 0) {
        return;
    }

    now = prof_clock(CLOCK_MONOTONIC);

    if (!prof_expiry_due(now, w->due, w->period)) {
        return;
    }

    w->due = now + w->period;

    rec = prof_ring_reserve(&w->ring);

    if (rec == NULL) {
        return;
    }

    rec->wall = now;
    rec->cpu = 0;
    rec->state = PROF_RECORD_RAN;

    prof_take(rec, &w->walker, uc, &w->stack, top);

    prof_ring_commit(&w->ring, rec);

    w->spot->taken = (uint32_t) w->ring.head;
    w->spot->fresh = 1;
}
