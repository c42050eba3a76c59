
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: capture
 *
 * Samples that a watch took in the past.  The test makes the samples, with a
 * clock of its own.
 */


#include "capture/prof_turn.h"
#include "capture/prof_watch.h"
#include "tap.h"

#include <string.h>


#define STEP    1000
#define FRAMES  24
#define KEPT    (PROF_RING_SIZE / 2 / (sizeof(prof_sample_t) + FRAMES * 8))


static void begins(void);
static void gaps(prof_watch_t *w);
static void turns(prof_watch_t *w);
static void kept(prof_watch_t *w);
static void take(prof_watch_t *w);
static prof_capture_t *capture(uint64_t start);
static uint64_t gap(prof_watch_t *w, uint64_t from, uint64_t until,
    uint64_t *wall);
static uint64_t turn(prof_watch_t *w, uintptr_t owner, uint64_t from,
    uint64_t until);


static uint64_t           count;
static prof_watch_spot_t  spot;


int
main(void)
{
    const char    *err;
    prof_watch_t  *w;

    begins();

    w = prof_watch_create(1, &spot, &err);

    if (ok(w != NULL, "there is a watch")) {
        gaps(w);
        turns(w);
        kept(w);

        spot.top = 1;
        spot.fresh = 1;

        prof_watch_destroy(w);

        ok(spot.top == 0 && spot.fresh == 0,
           "a destroyed watch clears its data for handlers");
    }

    return done_testing();
}


/* a capture that begins in the past */

static void
begins(void)
{
    int64_t          ago;
    prof_capture_t  *c;

    c = capture(prof_now() - 5000000000);
    ago = prof_clock(CLOCK_REALTIME) - c->start_realtime;

    ok(ago >= 5000000000 && ago < 6000000000,
       "a capture may begin in the past");

    prof_capture_destroy(c);
}


static void
gaps(prof_watch_t *w)
{
    uint64_t  i, now, right, sums, old, wall;

    is_int(gap(w, 5, 10, &wall), 0,
           "time before the first sample has no stack");

    right = 0;
    sums = 0;
    old = 0;

    for (i = 0; i < 20000; i++) {
        take(w);

        /* some samples are new when the watch is read */

        if (i % 3) {
            prof_watch_pass(w, i);
        }

        now = count * STEP + STEP / 2;

        if (i % 10 == 9) {
            right += gap(w, now - STEP, now, &wall) == 1;
            sums += wall == STEP;
        }

        if (i % 1000 == 999) {
            right += gap(w, now - 300 * STEP, now, &wall) == 300;
            right += gap(w, now - 300 * STEP, now - 100 * STEP, &wall) == 200;
            sums += wall == 200 * STEP;

            old = gap(w, STEP / 2, now, &wall);
            sums += wall == now - STEP / 2;
        }
    }

    is_int(right, 2040, "a gap has exactly its samples");
    is_int(sums, 2040, "gaps are as long as they were");
    ok(old > KEPT - KEPT / 50 && old <= KEPT + 2,
       "of one that is older than the ring what there is: %d of %d",
       (int) old, (int) KEPT);
}


static void
turns(prof_watch_t *w)
{
    uint64_t         now, wall;
    prof_capture_t  *c;

    prof_watch_pass(w, 0);

    now = count * STEP + STEP / 2;

    /*
     * Samples of a turn, of a turn inside it, and of the rest of the first
     * one.
     */

    take(w);
    take(w);
    prof_watch_pass(w, 1);

    take(w);
    prof_watch_pass(w, 2);

    take(w);

    is_int(turn(w, 1, now, now + 4 * STEP), 2, "a turn has what was passed");

    prof_watch_pass(w, 1);

    is_int(turn(w, 1, now, now + 4 * STEP), 3,
           "a turn does not have samples of other requests");
    is_int(turn(w, 1, now + STEP, now + 4 * STEP), 2,
           "a turn has the samples from its start on");
    is_int(turn(w, 1, now, now + 3 * STEP), 2,
           "a turn has the samples until its end");
    is_int(turn(w, 2, now + 2 * STEP, now + 3 * STEP), 1,
           "the other request has its samples");
    is_int(turn(w, 3, now, now + 4 * STEP), 0,
           "a request without samples has none in its turn");

    c = capture(now);

    prof_watch_turn(w, c, 1, (uintptr_t) turns, now + 4 * STEP, STEP);

    is_int(c->running, 4 * STEP, "the turn has its length");
    is_int(c->cpu, STEP, "the turn has its CPU time");

    prof_capture_destroy(c);

    is_int(gap(w, now, now + 4 * STEP, &wall), 4,
           "for somebody else they are what the worker did meanwhile");
}


/* a turn has all of its samples until the ring overwrites them */

static void
kept(prof_watch_t *w)
{
    uint64_t  now, n, all, big;
    uint32_t  taken;

    prof_watch_pass(w, 0);

    now = count * STEP + STEP / 2;
    taken = spot.taken;

    take(w);
    take(w);
    prof_watch_pass(w, 7);

    n = 0;
    all = 0;

    while (spot.taken - taken < PROF_WATCH_KEPT) {
        prof_watch_pass(w, 0);

        all += turn(w, 7, now, now + 2 * STEP) == 2;
        n++;

        take(w);
    }

    ok(n > KEPT / 4, "many samples follow: %d", (int) n);
    is_int(all, n, "the samples remain available");

    /* more than the ring holds */

    for (big = 0; big < 4 * KEPT; big++) {
        take(w);
    }

    is_int(turn(w, 7, now, now + 2 * STEP), 2,
           "the samples remain after a very long turn");

    prof_watch_pass(w, 7);

    is_int(turn(w, 7, now, now + 2 * STEP), 0,
           "the samples are gone when they are passed to the request");
}


static void
take(prof_watch_t *w)
{
    uint32_t        i;
    prof_sample_t  *sample;

    sample = prof_ring_reserve(&w->ring);

    if (sample == NULL) {
        return;
    }

    memset(sample, 0, sizeof(prof_sample_t));

    sample->wall = ++count * STEP;
    sample->nframes = FRAMES;

    for (i = 0; i < FRAMES; i++) {
        sample->pcs[i] = (uintptr_t) take + (count % 16) * 16 + i;
    }

    prof_ring_commit(&w->ring, sample);

    spot.taken = (uint32_t) w->ring.head;
}


static prof_capture_t *
capture(uint64_t start)
{
    prof_capture_t       *c;
    prof_capture_conf_t   conf;

    memset(&conf, 0, sizeof(prof_capture_conf_t));

    conf.frequency = 99;
    conf.mode = PROF_MODE_WALL;
    conf.memory = 4 * 1024 * 1024;

    c = prof_capture_create(&conf);

    if (c == NULL) {
        perror("capture");
        exit(1);
    }

    prof_capture_begin(c, start);

    return c;
}


/* returns the number of samples in it */

static uint64_t
gap(prof_watch_t *w, uint64_t from, uint64_t until, uint64_t *wall)
{
    uint64_t         n;
    uintptr_t        frame;
    prof_capture_t  *c;

    c = capture(from);

    frame = prof_capture_name(c, "busy", 4);
    prof_watch_gap(w, c, &frame, 1, until);

    /* the last entry is the time after the last sample */

    n = c->timeline.n ? c->timeline.n - 1 : 0;
    *wall = c->wall;

    prof_capture_destroy(c);

    return n;
}


static uint64_t
turn(prof_watch_t *w, uintptr_t owner, uint64_t from, uint64_t until)
{
    uint64_t         n;
    prof_capture_t  *c;

    c = capture(from);

    prof_watch_turn(w, c, owner, (uintptr_t) turn, until, 0);

    n = c->stats.samples;

    prof_capture_destroy(c);

    return n;
}
