
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_spare.h"
#include "capture/prof_watch.h"
#include "capture/prof_turn.h"
#include "stacks/prof_marks.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>


static void prof_watch_mark(prof_watch_t *w);
static prof_sample_t *prof_watch_next(const prof_watch_t *w, uint64_t *pos);
static uint64_t prof_watch_since(const prof_watch_t *w, uint64_t counted);
static void prof_watch_add(prof_capture_t *c, uint32_t node,
    const prof_sample_t *sample, uint64_t until);
static void prof_watch_wait(prof_capture_t *c, uint32_t node, uint64_t until);


prof_watch_t *
prof_watch_create(uint32_t frequency, prof_watch_spot_t *spot,
    const char **err)
{
    char          *p;
    prof_watch_t  *w;

    *err = "cannot build the unwind tables";

    if (prof_process_refresh() == NULL) {
        return NULL;
    }

    *err = "cannot allocate memory";

    w = calloc(1, sizeof(prof_watch_t));
    if (w == NULL) {
        return NULL;
    }

    w->memory_size = PROF_RING_SIZE + sizeof(prof_walk_cache_t)
                     + PROF_WATCH_PASSED * sizeof(prof_watch_passed_t);

    p = prof_spare_map(w->memory_size);

    if (p == NULL) {
        free(w);
        return NULL;
    }

    w->memory = p;
    w->ring.data = p;
    w->walker.cache = (prof_walk_cache_t *) (p + PROF_RING_SIZE);
    w->walker.cache->snapshot = 0;
    w->walker.stats = &w->stats;
    w->passed = (prof_watch_passed_t *) (w->walker.cache + 1);
    w->walker.unwind = prof_process_unwind();
    prof_unwind_hold(w->walker.unwind);

    prof_stack_find(&w->stack);

    w->spot = spot;
    w->period = 1000000000 / frequency;

    *err = "no free real-time signal";

    if (prof_signal_hold(PROF_SIGNAL_OWN) != PROF_OK) {
        goto failed;
    }

    *err = "no entry for a timer's signal";

    w->expiry = prof_expiry_publish(syscall(SYS_gettid), prof_watch_expired,
                                    w);
    if (w->expiry == NULL) {
        goto failed_signal;
    }

    *err = "timer_create() failed";

    if (prof_signal_timer(PROF_SIGNAL_OWN, CLOCK_THREAD_CPUTIME_ID, w->expiry,
                          &w->timer)
        != PROF_OK)
    {
        prof_expiry_retire(w->expiry);
        goto failed_signal;
    }

    (void) prof_timer_set(w->timer, w->period, w->period);

    prof_process_hold();

    *err = NULL;

    return w;

failed_signal:

    prof_signal_release(PROF_SIGNAL_OWN);

failed:

    prof_unwind_release(w->walker.unwind);
    prof_spare_unmap(w->memory, w->memory_size, w->ring.head);
    free(w);

    return NULL;
}


void
prof_watch_destroy(prof_watch_t *w)
{
    w->spot->top = 0;

    (void) timer_delete(w->timer);

    prof_expiry_retire(w->expiry);
    prof_signal_release(PROF_SIGNAL_OWN);

    w->spot->fresh = 0;

    prof_process_release();
    prof_unwind_release(w->walker.unwind);

    prof_spare_leave(w->memory, w->memory_size, w->ring.head);
    free(w);
}


/* removes old samples, so that half of the ring is free for the next turn */

void
prof_watch_pass(prof_watch_t *w, uintptr_t owner)
{
    uint64_t              pos;
    prof_sample_t        *old;
    const prof_sample_t  *sample;
    prof_watch_passed_t  *passed;

    w->spot->fresh = 0;

    pos = w->seen;

    while ((sample = prof_watch_next(w, &pos)) != NULL) {

        passed = &w->passed[w->npassed++ % PROF_WATCH_PASSED];

        passed->pos = pos - sample->size;
        passed->wall = sample->wall;
        passed->owner = owner;
    }

    w->seen = pos;

    prof_watch_mark(w);

    while (prof_ring_used(&w->ring) > PROF_RING_SIZE / 2) {

        old = prof_ring_peek(&w->ring);
        if (old == NULL) {
            break;
        }

        prof_ring_pop(&w->ring, old);
    }
}


void
prof_watch_give(prof_watch_t *w, uint64_t since, uintptr_t owner,
    uintptr_t next)
{
    uint64_t              i;
    prof_watch_passed_t  *passed;

    for (i = prof_watch_since(w, since); i < w->npassed; i++) {

        passed = &w->passed[i % PROF_WATCH_PASSED];

        if (passed->owner == owner) {
            passed->owner = next;
        }
    }
}


/*
 * Marks the addresses of new samples.  A signal may add a sample during this
 * call, which this call or the next one marks.
 */

static void
prof_watch_mark(prof_watch_t *w)
{
    prof_marks_t    m;
    prof_sample_t  *sample;

    prof_marks_begin(&m, &w->walker.unwind);

    while ((sample = prof_watch_next(w, &w->marked)) != NULL) {
        prof_marks_stack(&m, sample);
    }

    prof_marks_end(&m);
}


/* returns the sample at *pos or after it, and moves *pos behind this sample */

static prof_sample_t *
prof_watch_next(const prof_watch_t *w, uint64_t *pos)
{
    size_t          rest;
    prof_sample_t  *sample;

    while (*pos != __atomic_load_n(&w->ring.head, __ATOMIC_ACQUIRE)) {

        rest = PROF_RING_SIZE - *pos % PROF_RING_SIZE;
        sample = prof_ring_at(&w->ring, *pos);

        if (rest >= sizeof(prof_sample_t)
            && sample->nframes != PROF_RING_FILLER)
        {
            *pos += sample->size;
            return sample;
        }

        *pos += rest;
    }

    return NULL;
}


int
prof_watch_stack(prof_watch_t *w, prof_capture_t *c, uint64_t wall)
{
    uint32_t              node;
    uint64_t              pos;
    const prof_sample_t  *sample;

    prof_watch_mark(w);

    pos = w->seen;
    sample = prof_watch_next(w, &pos);

    if (sample == NULL) {
        return PROF_LIMIT;
    }

    node = prof_fold(&c->tree, PROF_NONE, sample, PROF_FRAME_TURN, &c->stats);

    prof_capture_add(c, node, PROF_ENTRY_SAMPLE, wall, 0);

    c->stats.samples++;

    return PROF_OK;
}


void
prof_watch_turn(prof_watch_t *w, prof_capture_t *c, uintptr_t owner,
    uintptr_t what, uint64_t end, uint64_t cpu)
{
    uint32_t                    root, node, n;
    uint64_t                    i, last, part, used, wall;
    const prof_sample_t        *sample;
    const prof_watch_passed_t  *passed;

    last = c->counted;
    wall = (end > last) ? end - last : 0;
    cpu = (cpu < wall) ? cpu : wall;
    used = 0;
    n = 0;

    root = prof_tree_frame(&c->tree, PROF_NONE, what, &c->stats);

    for (i = prof_watch_since(w, last); i < w->npassed; i++) {

        passed = &w->passed[i % PROF_WATCH_PASSED];

        if (passed->wall >= end) {
            break;
        }

        if (passed->owner != owner && owner != PROF_WATCH_ALL) {
            continue;
        }

        sample = prof_ring_at(&w->ring, passed->pos);

        part = (double) cpu * (sample->wall - last) / wall;

        node = prof_fold(&c->tree, root, sample, PROF_FRAME_TURN, &c->stats);

        prof_capture_add(c, node, PROF_ENTRY_SAMPLE, sample->wall - last, part);

        used += part;
        last = sample->wall;
        n++;
    }

    if (n) {
        prof_entries_extend(&c->timeline, end - last, cpu - used);

    } else {
        prof_capture_add(c, root, PROF_ENTRY_TURN, wall, cpu);
        c->stats.turns_unsampled++;
    }

    c->stats.samples += n;
    c->stats.turns++;
    c->counted += wall;
    c->wall += wall;
    c->running += wall;
    c->cpu += cpu;
}


void
prof_watch_gap(prof_watch_t *w, prof_capture_t *c, const uintptr_t *frames,
    uint32_t n, uint64_t until)
{
    uint32_t                    node;
    uint64_t                    i, pos;
    const prof_sample_t        *sample;
    const prof_watch_passed_t  *passed;

    prof_watch_mark(w);

    node = prof_tree_frame(&c->tree, PROF_NONE, PROF_FRAME_WAITING, &c->stats);

    while (n) {
        node = prof_tree_frame(&c->tree, node, frames[--n], &c->stats);
    }

    for (i = prof_watch_since(w, c->counted); i < w->npassed; i++) {

        passed = &w->passed[i % PROF_WATCH_PASSED];

        if (passed->wall >= until) {
            break;
        }

        prof_watch_add(c, node, prof_ring_at(&w->ring, passed->pos), until);
    }

    pos = w->seen;

    while ((sample = prof_watch_next(w, &pos)) != NULL && pos <= w->marked) {
        prof_watch_add(c, node, sample, until);
    }

    /* the rest is too short for a sample, or the thread did not run */

    prof_watch_wait(c, node, until);
}


/* returns the first passed sample after this time that is still in the ring */

static uint64_t
prof_watch_since(const prof_watch_t *w, uint64_t counted)
{
    uint64_t                    from, to, i;
    const prof_watch_passed_t  *passed;

    to = w->npassed;
    from = (to > PROF_WATCH_PASSED) ? to - PROF_WATCH_PASSED : 0;

    while (from < to) {

        i = from + (to - from) / 2;
        passed = &w->passed[i % PROF_WATCH_PASSED];

        if (passed->wall <= counted || passed->pos < w->ring.tail) {
            from = i + 1;

        } else {
            to = i;
        }
    }

    return from;
}


static void
prof_watch_add(prof_capture_t *c, uint32_t node, const prof_sample_t *sample,
    uint64_t until)
{
    if (sample->wall > c->counted && sample->wall < until) {
        node = prof_fold(&c->tree, node, sample, PROF_FRAME_TURN, &c->stats);
        prof_watch_wait(c, node, sample->wall);
    }
}


static void
prof_watch_wait(prof_capture_t *c, uint32_t node, uint64_t until)
{
    if (until <= c->counted) {
        return;
    }

    prof_capture_add(c, node, PROF_ENTRY_GAP, until - c->counted, 0);

    c->wall += until - c->counted;
    c->counted = until;
}
