
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Samples that a watch took in the past.  The test makes the records, with a
 * clock of its own.
 */


#include "capture/prof_turn.h"
#include "capture/prof_watch.h"
#include "tap.h"

#include <string.h>


#define STEP    1000
#define FRAMES  24
#define KEPT    (PROF_RING_SIZE / 2 / (sizeof(prof_record_t) + FRAMES * 8))


static void begins(void);
static void gaps(prof_watch_t *w);
static void turns(prof_watch_t *w);
static void kept(prof_watch_t *w);
static void record(prof_watch_t *w);
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

        ok(spot.top == 0 && spot.fresh == 0, "it leaves nothing behind");
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

    ok(ago >= 5000000000 && ago < 6000000000, "it began when it is said to");

    prof_capture_destroy(c);
}


static void
gaps(prof_watch_t *w)
{
    uint64_t  i, now, right, sums, old, wall;

    is_int(gap(w, 5, 10, &wall), 0, "nothing before the first sample");

    right = 0;
    sums = 0;
    old = 0;

    for (i = 0; i < 20000; i++) {
        record(w);

        /* some records are new when the watch is read */

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

    is_int(right, 2040, "what was sampled in a gap is found, and no more");
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

    record(w);
    record(w);
    prof_watch_pass(w, 1);

    record(w);
    prof_watch_pass(w, 2);

    record(w);

    is_int(turn(w, 1, now, now + 4 * STEP), 2, "a turn has what was passed");

    prof_watch_pass(w, 1);

    is_int(turn(w, 1, now, now + 4 * STEP), 3, "and not that of others");
    is_int(turn(w, 1, now + STEP, now + 4 * STEP), 2, "from its start on");
    is_int(turn(w, 1, now, now + 3 * STEP), 2, "until its end");
    is_int(turn(w, 2, now + 2 * STEP, now + 3 * STEP), 1, "which have theirs");
    is_int(turn(w, 3, now, now + 4 * STEP), 0, "or none");

    c = capture(now);

    prof_watch_turn(w, c, 1, (uintptr_t) turns, now + 4 * STEP, STEP);

    is_int(c->running, 4 * STEP, "it is as long as it was");
    is_int(c->cpu, STEP, "and has its CPU time");

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

    record(w);
    record(w);
    prof_watch_pass(w, 7);

    n = 0;
    all = 0;

    while (spot.taken - taken < PROF_WATCH_KEPT) {
        prof_watch_pass(w, 0);

        all += turn(w, 7, now, now + 2 * STEP) == 2;
        n++;

        record(w);
    }

    ok(n > KEPT / 4, "many come after them: %d", (int) n);
    is_int(all, n, "they are there all the time");

    /* more than the ring holds */

    for (big = 0; big < 4 * KEPT; big++) {
        record(w);
    }

    is_int(turn(w, 7, now, now + 2 * STEP), 2, "and after a very long turn");

    prof_watch_pass(w, 7);

    is_int(turn(w, 7, now, now + 2 * STEP), 0, "and are gone when it is told");
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
