
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Samples of a watch that come out of its past: records are made here, of a
 * clock of their own.
 */


#include "capture/prof_capture.h"
#include "capture/prof_watch.h"
#include "tap.h"

#include <string.h>


#define STEP    1000
#define FRAMES  24
#define KEPT    (PROF_RING_SIZE / 2 / (sizeof(prof_record_t) + FRAMES * 8))


static void gaps(prof_watch_t *w, prof_capture_t *c);
static void turns(prof_watch_t *w, prof_capture_t *c);
static void record(prof_watch_t *w);
static uint64_t gap(prof_watch_t *w, prof_capture_t *c, uint64_t from,
    uint64_t until);


static uint64_t  count;


int
main(void)
{
    const char           *err;
    prof_watch_t         *w;
    prof_capture_t       *c;
    prof_capture_conf_t   conf;

    memset(&conf, 0, sizeof(prof_capture_conf_t));

    conf.frequency = 99;
    conf.mode = PROF_MODE_WALL;
    conf.memory = 4 * 1024 * 1024;

    c = prof_capture_create(&conf);
    w = prof_watch_create(1, &err);

    if (ok(c != NULL && w != NULL, "there is a watch")) {
        gaps(w, c);
        turns(w, c);

        prof_watch_destroy(w);
        prof_capture_destroy(c);
    }

    return done_testing();
}


static void
gaps(prof_watch_t *w, prof_capture_t *c)
{
    uint64_t   i, now, right, sums, old;

    is_int(gap(w, c, 5, 10), 0, "nothing before the first sample");

    right = 0;
    sums = 0;
    old = 0;

    for (i = 0; i < 20000; i++) {
        record(w);

        /* some are new when it is asked */

        if (i % 3) {
            prof_watch_pass(w);
        }

        now = count * STEP + STEP / 2;

        right += gap(w, c, now - STEP, now) == 1;
        sums += c->wall == STEP;

        if (i % 1000 == 999) {
            right += gap(w, c, now - 300 * STEP, now) == 300;
            right += gap(w, c, now - 300 * STEP, now - 100 * STEP) == 200;
            sums += c->wall == 200 * STEP;

            old = gap(w, c, STEP / 2, now);
            sums += c->wall == now - STEP / 2;
        }
    }

    is_int(right, 20040, "what was sampled in a gap is found, and no more");
    is_int(sums, 20040, "gaps are as long as they were");
    ok(old > KEPT - KEPT / 50 && old <= KEPT + 2,
       "of one that is older than the ring what there is: %d of %d",
       (int) old, (int) KEPT);
}


static void
turns(prof_watch_t *w, prof_capture_t *c)
{
    uint64_t  now;

    prof_watch_pass(w);

    now = count * STEP + STEP / 2;

    record(w);
    record(w);

    prof_capture_reuse(c);
    prof_capture_begin(c, now);

    ok(prof_watch_new(w), "there are new samples");

    prof_watch_turn(w, c, (uintptr_t) turns, now + 2 * STEP, STEP);

    ok(!prof_watch_new(w), "a turn has taken them");
    is_int(c->stats.samples, 2, "and both are in it");
    is_int(c->running, 2 * STEP, "it is as long as it was");
    is_int(c->cpu, STEP, "and has its CPU time");
    is_int(gap(w, c, now, now + 2 * STEP), 2,
           "for somebody else they are what the worker did meanwhile");
}


static void
record(prof_watch_t *w)
{
    uint32_t        i;
    prof_record_t  *rec;

    rec = prof_ring_reserve(&w->ring);

    if (rec == NULL) {
        return;
    }

    memset(rec, 0, sizeof(prof_record_t));

    rec->wall = ++count * STEP;
    rec->nframes = FRAMES;

    for (i = 0; i < FRAMES; i++) {
        rec->pcs[i] = (uintptr_t) record + (count % 16) * 16 + i;
    }

    prof_ring_commit(&w->ring, rec);
}


/* the samples in it */

static uint64_t
gap(prof_watch_t *w, prof_capture_t *c, uint64_t from, uint64_t until)
{
    uintptr_t  frame;

    prof_capture_reuse(c);
    prof_capture_begin(c, from);

    frame = prof_capture_name(c, "busy", 4);
    prof_watch_gap(w, c, &frame, 1, until);

    /* the last entry is what is left behind the last sample */

    return c->timeline.n ? c->timeline.n - 1 : 0;
}
