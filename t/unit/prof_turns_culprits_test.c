
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: turns
 * runs: beside
 */


#include "tap.h"

#include "turns/prof_turns_culprits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static prof_profile_t *make(void);
static void copy_of(prof_turns_copy_t *copy, size_t runs);
static void frame(prof_profile_t *p, uint32_t type, const char *name);
static void node(prof_profile_t *p, uint32_t parent, uint32_t frame);
static void entry(prof_profile_t *p, uint32_t node, uint32_t type,
    uint64_t wall);
static void name(void *data, size_t run, char text[PROF_TURNS_NAME]);
static uint64_t below(const prof_profile_t *p, const char *stack);


/* the request runs from 0 to 100, waits until 1000, and runs until 1100 */

int
main(void)
{
    uint64_t            all;
    uint32_t            i;
    prof_profile_t     *p;
    prof_turns_copy_t   copy;

    copy_of(&copy, 2);
    p = make();

    is_int(prof_turns_culprits(p, &copy, name, NULL), PROF_OK,
           "the time is divided");

    is_int(below(p, "handler"), 200, "turns are the same");
    is_int(below(p, "[waiting];timer"), 400, "other gaps are the same");
    is_int(below(p, "[waiting];" PROF_TURNS_BUSY), 0,
           "no time is left without a culprit");
    is_int(below(p, "[waiting];" PROF_TURNS_BUSY ";run 0;inner"), 200,
           "a sample is in the run at its end");
    is_int(below(p, "[waiting];" PROF_TURNS_BUSY ";run 0"), 50,
           "a run before it has no functions");
    is_int(below(p, "[waiting];" PROF_TURNS_BUSY ";run 1;inner"), 150,
           "the next sample is in the next run");
    is_int(below(p, "[waiting];" PROF_TURNS_BUSY ";run 1"), 50,
           "the rest has no functions");
    is_int(below(p, "[waiting];" PROF_TURNS_BUSY ";event loop"), 50,
           "the time between runs is that of the event loop");

    for (i = 0, all = 0; i < p->series[PROF_SERIES_TIME].n; i++) {
        all += prof_series_entry(&p->series[PROF_SERIES_TIME], i)->values[0];
    }

    is_int(all, 1100, "the sum is the same");
    prof_profile_destroy(p);

    copy.from = 10600;
    p = make();
    (void) prof_turns_culprits(p, &copy, name, NULL);

    is_int(below(p, "[waiting];" PROF_TURNS_BUSY ";log overwritten"), 100,
           "what was overwritten is shown");
    prof_profile_destroy(p);

    p = make();
    p->ended = 0;
    (void) prof_turns_culprits(p, &copy, name, NULL);
    is_int(below(p, "[waiting];" PROF_TURNS_BUSY), 50,
           "without a clock nothing is divided");
    prof_profile_destroy(p);
    prof_turns_free(&copy);

    /* more runs than names */

    copy_of(&copy, 500);
    p = make();
    is_int(prof_turns_culprits(p, &copy, name, NULL), PROF_OK,
           "there may be many runs");
    ok(below(p, "[waiting];" PROF_TURNS_BUSY ";others") > 0,
       "only some of them have a name");
    ok(p->nframes < 80, "the number of names is bounded");

    prof_profile_destroy(p);
    prof_turns_free(&copy);

    return done_testing();
}


/*
 * The worker was busy from 500 to 1000, and was sampled at 750 and 950.  The
 * clock is 10000 at the begin.
 */

static prof_profile_t *
make(void)
{
    prof_profile_t  *p;

    p = prof_profile_create("test");

    p->mode = PROF_MODE_WALL;
    p->ended = 11100;

    frame(p, PROF_TYPE_CODE, "handler");
    frame(p, PROF_TYPE_WAITING, "[waiting]");
    frame(p, PROF_TYPE_STAGE, "timer");
    frame(p, PROF_TYPE_STAGE, PROF_TURNS_BUSY);
    frame(p, PROF_TYPE_CODE, "inner");

    node(p, PROF_NONE, 0);
    node(p, PROF_NONE, 1);
    node(p, 1, 2);
    node(p, 1, 3);
    node(p, 3, 4);

    entry(p, 0, PROF_ENTRY_TURN, 100);
    entry(p, 2, PROF_ENTRY_GAP, 400);
    entry(p, 4, PROF_ENTRY_GAP, 250);
    entry(p, 4, PROF_ENTRY_GAP, 200);
    entry(p, 3, PROF_ENTRY_GAP, 50);
    entry(p, 0, PROF_ENTRY_TURN, 100);

    return p;
}


/* two runs from 550 to 800 and to 1000; or many runs of one nanosecond */

static void
copy_of(prof_turns_copy_t *copy, size_t runs)
{
    size_t  i;

    memset(copy, 0, sizeof(prof_turns_copy_t));

    copy->runs = calloc(runs, sizeof(prof_turns_run_t));
    copy->requests = calloc(1, 1);
    copy->nruns = runs;

    for (i = 0; i < runs; i++) {
        copy->runs[i].request = i + 10;
        copy->runs[i].start = 10500 + i;
        copy->runs[i].end = 10500 + i + 1;
    }

    if (runs == 2) {
        copy->runs[0].start = 10550;
        copy->runs[0].end = 10800;
        copy->runs[1].start = 10800;
        copy->runs[1].end = 11000;
    }
}


static void
frame(prof_profile_t *p, uint32_t type, const char *text)
{
    p->frames = realloc(p->frames, (p->nframes + 1) * sizeof(prof_frame_t));
    memset(&p->frames[p->nframes], 0, sizeof(prof_frame_t));

    p->frames[p->nframes].type = type;
    p->frames[p->nframes].object = PROF_NONE;
    p->frames[p->nframes++].name = strdup(text);
}


static void
node(prof_profile_t *p, uint32_t parent, uint32_t f)
{
    p->nodes = realloc(p->nodes, (p->nnodes + 1) * sizeof(prof_node_t));
    p->nodes[p->nnodes].parent = parent;
    p->nodes[p->nnodes++].frame = f;
}


static void
entry(prof_profile_t *p, uint32_t n, uint32_t type, uint64_t wall)
{
    prof_entry_t  *e;

    e = prof_series_add(&p->series[PROF_SERIES_TIME]);

    e->node = n;
    e->type = type;
    e->labels = PROF_NONE;
    e->values[PROF_VALUE_WALL] = wall;
}


static void
name(void *data, size_t run, char text[PROF_TURNS_NAME])
{
    (void) data;

    (void) snprintf(text, PROF_TURNS_NAME, "run %zu", run);
}


/* returns the time of the entries with this stack */

static uint64_t
below(const prof_profile_t *p, const char *stack)
{
    char                 text[1024], longer[2048];
    uint32_t             i, n;
    uint64_t             sum;
    const prof_entry_t  *e;

    sum = 0;

    for (i = 0; i < p->series[PROF_SERIES_TIME].n; i++) {
        e = prof_series_entry(&p->series[PROF_SERIES_TIME], i);

        text[0] = '\0';

        for (n = e->node; n != PROF_NONE; n = p->nodes[n].parent) {
            (void) snprintf(longer, sizeof(longer), "%s%s%s",
                            p->frames[p->nodes[n].frame].name,
                            text[0] ? ";" : "", text);
            (void) snprintf(text, sizeof(text), "%.1000s", longer);
        }

        if (strcmp(text, stack) == 0) {
            sum += e->values[PROF_VALUE_WALL];
        }
    }

    return sum;
}
