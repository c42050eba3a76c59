
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: views
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "views/prof_timeline.h"


#define MAX    1000
#define NODES  50


static void test_runs(void);
static void test_limit(const char *name, uint32_t n, uint32_t max,
    uint64_t heavy);
static void test_shares(void);
static uint64_t sum(const prof_timeline_t *t);


static const uint32_t  test_measures[] = {
    PROF_MEASURE_WALL, PROF_MEASURE_CPU
};


int
main(void)
{
    test_runs();

    test_limit("just enough", MAX, MAX, 0);
    test_limit("one more", MAX + 1, MAX, 0);
    test_limit("twice", 2 * MAX, MAX, 0);
    test_limit("fifty times", 50 * MAX, MAX, 0);
    test_limit("with heavy ones", 50 * MAX, MAX, 1000000);
    test_limit("with huge ones", 50 * MAX, MAX, (uint64_t) 1 << 50);
    test_limit("a few", 100, 2, 0);

    test_shares();

    return done_testing();
}


static void
test_runs(void)
{
    uint32_t         a, b;
    prof_view_t     *v;
    prof_profile_t  *p;
    prof_timeline_t  t;

    p = fixture_create("runs");

    a = fixture_stack(p, PROF_NONE, "a");
    b = fixture_stack(p, PROF_NONE, "b");

    fixture_entry(p, a, PROF_ENTRY_SAMPLE, 1, 1);
    fixture_entry(p, a, PROF_ENTRY_SAMPLE, 2, 0);
    fixture_entry(p, b, PROF_ENTRY_GAP, 100, 0);
    fixture_entry(p, a, PROF_ENTRY_SAMPLE, 0, 0);
    fixture_entry(p, a, PROF_ENTRY_TURN, 4, 3);

    v = prof_view_create(p, NULL, test_measures, 2);

    is_int(prof_timeline_init(&t, p, v, PROF_MEASURE_WALL,
                              PROF_TIMELINE_ALL, MAX),
           PROF_OK, "wall - the timeline is made");
    is_int(t.nruns, 3, "wall - equal neighbors are one");
    is_int(t.runs[0].weight, 3, "wall - the run has the sum of its neighbors");
    is_int(t.runs[1].weight, 100, "wall - a gap has its weight");
    ok(t.runs[0].node == v->map[a] && t.runs[1].node == v->map[b]
       && t.runs[2].node == v->map[a], "wall - runs are in order");
    is_int(t.total, 107, "wall: the total is the sum");
    is_int(t.nmerged, 0, "wall - no run is merged");
    prof_timeline_free(&t);

    is_int(prof_timeline_init(&t, p, v, PROF_MEASURE_CPU,
                              PROF_TIMELINE_ALL, MAX),
           PROF_OK, "cpu: the timeline is made");
    is_int(t.nruns, 1, "cpu - what has none is not there");
    is_int(t.total, 4, "cpu: the total is the sum");
    prof_timeline_free(&t);

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static void
test_limit(const char *name, uint32_t n, uint32_t max, uint64_t heavy)
{
    char             text[16];
    uint32_t         i, node[NODES + 1];
    uint64_t         huge;
    prof_view_t     *v;
    prof_profile_t  *p;
    prof_timeline_t  t;

    p = fixture_create("limit");

    for (i = 0; i <= NODES; i++) {
        (void) snprintf(text, sizeof(text), "%u", i);
        node[i] = fixture_stack(p, PROF_NONE, text);
    }

    for (i = 0; i < n; i++) {

        if (heavy && i % 997 == 0) {
            fixture_entry(p, node[NODES], PROF_ENTRY_GAP, heavy, 0);

        } else {
            fixture_entry(p, node[i * 31 % NODES], PROF_ENTRY_SAMPLE,
                          i % 13 + 1, 0);
        }
    }

    v = prof_view_create(p, NULL, test_measures, 2);

    is_int(prof_timeline_init(&t, p, v, PROF_MEASURE_WALL,
                              PROF_TIMELINE_ALL, max),
           PROF_OK,
           "%s: the timeline is made", name);

    ok(t.nruns <= max && t.nruns > max / 3,
       "%s: %u of %u runs are left", name, t.nruns,
       n);
    is_int(sum(&t), p->wall, "%s: the runs have their sum", name);
    is_int(t.nmerged, n > max ? n : 0,
           "%s - the number of merged runs is told", name);

    if (heavy) {
        huge = 0;

        for (i = 0; i < t.nruns; i++) {
            if (t.runs[i].node == v->map[node[NODES]]) {
                huge += t.runs[i].weight;
            }
        }

        is_int(huge / heavy, (n + 996) / 997, "%s - these are kept", name);
        ok(t.nruns > max / 2, "%s - other runs are kept as well", name);
    }

    prof_timeline_free(&t);
    prof_view_destroy(v);
    prof_profile_destroy(p);
}


/* a stack with 10 % of the time has 10 % of the shortened timeline */

static void
test_shares(void)
{
    uint32_t         i, rare, usual[2];
    uint64_t         share;
    prof_view_t     *v;
    prof_profile_t  *p;
    prof_timeline_t  t;

    p = fixture_create("shares");

    usual[0] = fixture_stack(p, PROF_NONE, "a");
    usual[1] = fixture_stack(p, PROF_NONE, "b");
    rare = fixture_stack(p, PROF_NONE, "rare");

    for (i = 0; i < 100000; i++) {
        fixture_entry(p, i % 10 == 3 ? rare : usual[i % 2],
                      PROF_ENTRY_SAMPLE, 1000, 1000);
    }

    v = prof_view_create(p, NULL, test_measures, 2);
    (void) prof_timeline_init(&t, p, v, PROF_MEASURE_WALL, PROF_TIMELINE_ALL,
                              MAX);

    share = 0;

    for (i = 0; i < t.nruns; i++) {
        if (t.runs[i].node == v->map[rare]) {
            share += t.runs[i].weight;
        }
    }

    ok(share > p->wall / 100 * 8 && share < p->wall / 100 * 12,
       "a stack with 10%% of the time keeps %.1f%%", 100. * share / p->wall);

    prof_timeline_free(&t);
    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static uint64_t
sum(const prof_timeline_t *t)
{
    uint32_t  i;
    uint64_t  total;

    total = 0;

    for (i = 0; i < t->nruns; i++) {
        total += t->runs[i].weight;
    }

    return total;
}
