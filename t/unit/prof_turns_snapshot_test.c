
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: turns
 * runs: beside
 */


#include "tap.h"

#include "turns/prof_turns_snapshot.h"

#include <stdlib.h>
#include <string.h>


static void test_round(void);
static void test_cut(void);
static void test_forged(void);
static void test_damaged_log(void);
static prof_turns_snapshot_t *make(size_t runs);
static void nothing(void *data, size_t victim, size_t culprit, uint64_t ns);


int
main(void)
{
    test_round();
    test_cut();
    test_forged();
    test_damaged_log();

    return done_testing();
}


/* a snapshot of one log; run i is of request i / 2 + 1 */

static prof_turns_snapshot_t *
make(size_t runs)
{
    size_t                  i;
    prof_turns_run_t       *run;
    prof_turns_copy_t       copy;
    prof_turns_lane_t      *lane;
    prof_turns_request_t   *row;
    prof_turns_snapshot_t  *s;

    s = prof_turns_snapshot_create();

    (void) prof_turns_snapshot_location(s, "other", 5, "/other", 6);
    (void) prof_turns_snapshot_location(s, "here", 4, "/", 1);

    memset(&copy, 0, sizeof(prof_turns_copy_t));

    copy.log.began = 5;
    copy.log.wall = UINT64_MAX / 3;
    copy.from = 900;
    copy.nruns = runs;
    copy.nrequests = (runs + 1) / 2;
    copy.runs = calloc(runs + 1, sizeof(prof_turns_run_t));
    copy.requests = calloc(runs + 1, sizeof(prof_turns_request_t));

    for (i = 0; i < runs; i++) {
        run = &copy.runs[i];
        run->start = 1000 + 10 * i;
        run->end = run->start + 7;
        run->handler = 0x1000 + i % 3;
        run->request = i / 2 + 1;
        run->stall = i % 5;
        run->location = i % 3;
        run->cause = 3;
        run->flags = PROF_TURNS_DIED;

        row = &copy.requests[i / 2];
        row->number = i / 2 + 1;
        row->status = 200;
        row->location = 1;
        row->client.family = 2;
        row->client.port = 0x5000;
        row->id[3] = (uint8_t) i;
        row->len = 6;
        memcpy(row->text, "GET /a", 6);
    }

    /* the log has one location, which is the second one of the snapshot */

    lane = prof_turns_snapshot_add(s, &copy, 1, 1);
    lane->worker = 7;
    lane->pid = 1234;

    s->handlers[0] = strdup("first");
    s->handlers[1] = strdup("second");

    return s;
}


static void
test_round(void)
{
    prof_buf_t              b, again;
    prof_turns_lane_t      *lane;
    prof_turns_snapshot_t  *s, *t;

    s = make(20);
    s->reason = PROF_TURNS_STALLED;
    s->request = 3;

    is_int(s->nhandlers, 3, "each handler is there once");
    is_int(s->lanes[0].copy.runs[1].location, 2, "a location has its index");
    is_int(s->lanes[0].copy.runs[2].location, 0,
           "a number that the log does not have is no location");

    prof_buf_init(&b);
    prof_buf_init(&again);

    prof_turns_snapshot_write(s, &b);
    t = prof_turns_snapshot_read(b.data, b.len);

    ok(t != NULL, "the bytes are read");

    if (t == NULL) {
        return;
    }

    prof_turns_snapshot_write(t, &again);

    ok(b.len == again.len && memcmp(b.data, again.data, b.len) == 0,
       "the same bytes are written again");

    lane = &t->lanes[0];

    is_int(lane->pid, 1234, "the process is read");
    is_int(lane->copy.nruns, 20, "all runs are read");
    is_int(memcmp(lane->copy.runs, s->lanes[0].copy.runs,
                  20 * sizeof(prof_turns_run_t)), 0, "runs are the same");
    is_int(memcmp(lane->copy.requests, s->lanes[0].copy.requests,
                  10 * sizeof(prof_turns_request_t)), 0,
           "requests are the same");
    is_str(t->locations[1].server, "here", "locations are the same");
    is_str(t->handlers[1], "second", "handlers are the same");

    prof_buf_free(&b);
    prof_buf_free(&again);
    prof_turns_snapshot_destroy(s);
    prof_turns_snapshot_destroy(t);
}


static void
test_cut(void)
{
    prof_buf_t              b;
    prof_turns_copy_t      *copy;
    prof_turns_snapshot_t  *s;

    s = make(20000);
    prof_turns_snapshot_cut(s, 100 * 1024);

    copy = &s->lanes[0].copy;

    is_int(s->cut, 1, "a large snapshot is cut");
    is_int(copy->runs[copy->nruns - 1].start, 1000 + 10 * 19999,
           "the newest runs stay");
    is_int(copy->from, copy->runs[0].start, "the log begins there");
    is_int(copy->requests[0].number, copy->runs[0].request,
           "requests without runs are left out");
    is_int(copy->requests[copy->nrequests - 1].number, 10000,
           "other requests stay");

    prof_buf_init(&b);
    prof_turns_snapshot_write(s, &b);

    ok(b.len > 50 * 1024 && b.len < 110 * 1024, "it has the size");

    prof_buf_free(&b);
    prof_turns_snapshot_destroy(s);

    s = make(20);
    prof_turns_snapshot_cut(s, 100 * 1024);
    is_int(s->cut, 0, "a small one is not cut");
    prof_turns_snapshot_destroy(s);
}


/* all that can be read is used as the console does, under sanitizers, too */

static void
test_forged(void)
{
    size_t                  i, len;
    uint32_t                k, n, seed;
    prof_buf_t              b;
    unsigned char          *data;
    prof_turns_snapshot_t  *s;

    s = make(40);
    prof_buf_init(&b);
    prof_turns_snapshot_write(s, &b);
    prof_turns_snapshot_destroy(s);

    for (len = 0, n = 0; len < b.len; len++) {
        data = malloc(len + 1);
        memcpy(data, b.data, len);
        s = prof_turns_snapshot_read(data, len);
        n += (s != NULL);
        prof_turns_snapshot_destroy(s);
        free(data);
    }

    is_int(n, 0, "the beginning of a snapshot is not a snapshot");

    seed = 1;

    for (k = 0, n = 0; k < 20000; k++) {
        data = malloc(b.len);
        memcpy(data, b.data, b.len);

        for (i = 0; i < 1 + k % 3; i++) {
            seed = seed * 1103515245 + 12345;
            data[(seed >> 8) % b.len] ^= 1 << (seed >> 28) % 8;
        }

        s = prof_turns_snapshot_read(data, b.len);

        for (i = 0; s && i < s->nlanes; i++) {
            n++;
            (void) prof_turns_blame(&s->lanes[i].copy, nothing, NULL);
        }

        prof_turns_snapshot_destroy(s);
        free(data);
    }

    ok(n > 1000, "forged snapshots are read");

    prof_buf_free(&b);
}


/* what a failing process has written */

static void
test_damaged_log(void)
{
    size_t                  i;
    prof_buf_t              b;
    prof_turns_copy_t       copy;
    prof_turns_snapshot_t  *s;

    memset(&copy, 0, sizeof(prof_turns_copy_t));

    copy.nruns = 3;
    copy.runs = malloc(3 * sizeof(prof_turns_run_t));
    copy.requests = malloc(1);

    memset(copy.runs, 0xa5, 3 * sizeof(prof_turns_run_t));

    for (i = 1; i < 3; i++) {
        copy.runs[i].start = 100 * i;
        copy.runs[i].end = 100 * i + 50;
        copy.runs[i].kind = PROF_TURNS_RUN;
    }

    s = prof_turns_snapshot_create();
    (void) prof_turns_snapshot_add(s, &copy, 0, 0);

    is_int(s->lanes[0].copy.nruns, 2, "a damaged run is left out");

    prof_buf_init(&b);
    prof_turns_snapshot_write(s, &b);
    prof_turns_snapshot_destroy(s);

    s = prof_turns_snapshot_read(b.data, b.len);
    ok(s != NULL, "what is left can be read");

    prof_turns_snapshot_destroy(s);
    prof_buf_free(&b);
}


static void
nothing(void *data, size_t victim, size_t culprit, uint64_t ns)
{
    (void) data;
    (void) victim;
    (void) culprit;
    (void) ns;
}
