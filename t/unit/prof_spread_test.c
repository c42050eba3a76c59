
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: profile
 * runs: beside
 *
 * Light loads in many slices: short runs that have samples in some slices only
 * are divided as the code has run, and the sum stays exact.
 */


#include "tap.h"

#include "prof_fixture.h"
#include "profile/prof_merge.h"
#include "views/prof_summary.h"


#define SLICES  2000
#define PERIOD  52631
#define RUN     10000       /* CPU time of a slice, of which f() has 7 / 10 */


static prof_profile_t *test_slice(uint64_t *due, const char *thread);
static uint64_t test_sum(const prof_profile_t *p, const char *frame);
static prof_profile_t *test_range(const char *other);
static void test_light(void);
static void test_facts(void);


int
main(void)
{
    test_light();
    test_facts();

    return done_testing();
}


/* what a capture of workers makes of one slice; *due: until the next sample */

static prof_profile_t *
test_slice(uint64_t *due, const char *thread)
{
    uint32_t         node;
    prof_profile_t  *p;

    p = fixture_create("slice");
    p->aggregated = 1;

    if (*due < RUN) {
        node = fixture_node(p, PROF_NONE,
                            fixture_name(p, PROF_TYPE_STAGE,
                                         *due < RUN * 7 / 10 ? "f" : "g"));
        fixture_entry(p, node, PROF_ENTRY_SAMPLE, RUN, RUN);
        *due += PERIOD;

    } else {
        node = fixture_node(p, PROF_NONE,
                            fixture_name(p, PROF_TYPE_NOTE, PROF_NOT_SAMPLED));
        fixture_entry(p, node, PROF_ENTRY_TURN, RUN, RUN);
    }

    *due -= RUN;

    time_of(p, 0)->labels = prof_profile_labels(p, PROF_NONE, "thread", thread,
                                                NULL);
    return p;
}


static uint64_t
test_sum(const prof_profile_t *p, const char *frame)
{
    uint32_t     i;
    uint64_t     sum;
    const char  *name;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        name = p->frames[p->nodes[time_of(p, i)->node].frame].name;

        if (frame == NULL || strcmp(name, frame) == 0) {
            sum += cpu_of(p, i);
        }
    }

    return sum;
}


/* the slices of a thread, and one of another thread that was never sampled */

static prof_profile_t *
test_range(const char *other)
{
    uint32_t             i;
    uint64_t             due, never;
    prof_merge_t        *m;
    prof_profile_t      *p;
    prof_merge_label_t   worker;

    m = prof_merge_create("range", 0);
    worker.name = "worker";
    worker.value = "0";
    worker.unit = NULL;
    due = PERIOD / 3;

    for (i = 0; i < SLICES; i++) {
        p = test_slice(&due, "main");
        (void) prof_merge_add(m, p, &worker, 1);
        prof_profile_destroy(p);
    }

    never = PERIOD;
    worker.value = other;
    p = test_slice(&never, "main");
    (void) prof_merge_add(m, p, &worker, 1);
    prof_profile_destroy(p);

    return prof_merge_finish(m);
}


static void
test_light(void)
{
    double           part;
    prof_profile_t  *p;

    p = test_range("1");

    ok(test_sum(p, PROF_NOT_SAMPLED) > SLICES * RUN * 7 / 10,
       "most slices of a light load have no sample");

    is_int(prof_profile_spread(p), PROF_OK, "their time is divided");

    part = (double) test_sum(p, "f") / (SLICES * RUN);

    ok(part > 0.65 && part < 0.75,
       "a function that ran for 0.7 of the time has %.2f", part);
    is_int(test_sum(p, "f") + test_sum(p, "g"), SLICES * RUN,
           "the functions have all time of their worker");
    is_int(test_sum(p, PROF_NOT_SAMPLED), RUN,
           "a worker without any sample keeps the frame");
    is_int(test_sum(p, NULL), p->cpu, "the sum stays the same");
    ok(p->stats.spread_ns > SLICES * RUN * 7 / 10
       && p->stats.spread_ns < SLICES * RUN, "what was divided is counted");

    prof_profile_destroy(p);
}


/* the modes of one range have the same facts, and no page contradicts itself */

static void
test_facts(void)
{
    uint32_t               list[PROF_MEASURE_MAX];
    prof_profile_t        *p;
    prof_summary_parts_t   cpu, wall;

    p = test_range("1");

    p->wall = 10 * p->running;
    p->mode = PROF_MODE_WALL;
    (void) prof_profile_scope(p, "all");

    prof_summary_parts(p, &wall);
    is_int(prof_measure_list(p, list), 2, "a range of wall time has two views");

    p->mode = PROF_MODE_CPU;
    prof_summary_parts(p, &cpu);

    is_int(cpu.waiting, wall.waiting, "both modes have the same waiting");
    is_int(cpu.waiting + p->running, p->wall, "which is what did not run");
    is_int(prof_measure_list(p, list), 1, "a range of CPU time has one view");
    is_int(list[0], PROF_MEASURE_CPU, "which is that of CPU time");

    prof_profile_destroy(p);
}
