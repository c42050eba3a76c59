
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The watch's part of the signal handler.
 */


#include "capture/prof_watch.h"
#include "capture/prof_sampler.h"


void
prof_watch_expired(prof_expiry_t *e, const siginfo_t *si,
    const ucontext_t *uc)
{
    uintptr_t       top;
    prof_watch_t   *w;
    prof_record_t  *rec;

    w = (prof_watch_t *) e;
    top = w->spot->top;

    if (top == 0) {
        return;
    }

    rec = prof_ring_reserve(&w->ring);

    if (rec == NULL) {
        return;
    }

    rec->wall = prof_clock(CLOCK_MONOTONIC);
    rec->cpu = 0;
    rec->unused = 0;
    rec->nframes = prof_walk(w->unwind, w->cache, uc, top, rec->pcs,
                             PROF_MAX_DEPTH, &w->stats, &rec->end);

    prof_ring_commit(&w->ring, rec);

    w->spot->taken = (uint32_t) w->ring.head;
    w->spot->fresh = 1;
}
