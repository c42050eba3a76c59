
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A timeline is shortened by sampling it again.  Runs are collected in groups
 * of nearly equal weight.  The stack at one point of each group represents the
 * group.  The points are spread evenly, so the expected share of each stack is
 * unchanged; the heaviest stack of each group would favor common stacks.  A
 * run with the weight of a group is not grouped, so long waits do not enlarge
 * the groups of the runs between them.
 */


#include "views/prof_timeline.h"

#include <stdlib.h>
#include <string.h>


/* the fraction of the golden ratio: its multiples are spread evenly */

#define PROF_TIMELINE_STEP  0x9e3779b97f4a7c15


static void prof_timeline_entries(prof_timeline_t *t, const prof_profile_t *p,
    const prof_view_t *v, uint32_t measure, uint32_t labels);
static void prof_timeline_sort(prof_timeline_t *t);
static int prof_timeline_cmp(const void *one, const void *two);
static void prof_timeline_shorten(prof_timeline_t *t, uint32_t max);
static uint32_t prof_timeline_groups(prof_timeline_t *t, uint32_t n,
    uint64_t target, int make);
static void prof_timeline_group(prof_timeline_t *t, uint32_t first,
    uint32_t last, uint64_t weight);
static void prof_timeline_push(prof_timeline_t *t, uint32_t node,
    uint64_t weight);


int
prof_timeline_init(prof_timeline_t *t, const prof_profile_t *p,
    const prof_view_t *v, uint32_t measure, uint32_t labels, uint32_t max)
{
    uint32_t  series;

    memset(t, 0, sizeof(prof_timeline_t));

    series = prof_measures[measure].series;

    t->runs = malloc(((size_t) p->series[series].n + 1)
                     * sizeof(prof_timeline_run_t));
    if (t->runs == NULL) {
        return PROF_ERROR;
    }

    prof_timeline_entries(t, p, v, measure, labels);

    if (!prof_series_desc[series].ordered) {
        prof_timeline_sort(t);
    }

    if (t->nruns > max) {
        prof_timeline_shorten(t, max);
    }

    return PROF_OK;
}


static void
prof_timeline_entries(prof_timeline_t *t, const prof_profile_t *p,
    const prof_view_t *v, uint32_t measure, uint32_t labels)
{
    uint32_t              i, value;
    uint64_t              weight;
    const prof_entry_t   *e;
    const prof_series_t  *s;

    s = &p->series[prof_measures[measure].series];
    value = prof_measures[measure].value;

    for (i = 0; i < s->n; i++) {
        e = prof_series_entry(s, i);

        weight = e->values[value];

        if (weight && (labels == PROF_TIMELINE_ALL || labels == e->labels)) {
            prof_timeline_push(t, v->map[e->node], weight);
            t->total += weight;
        }
    }
}


static void
prof_timeline_sort(prof_timeline_t *t)
{
    uint32_t             i, n;
    prof_timeline_run_t  run;

    qsort(t->runs, t->nruns, sizeof(prof_timeline_run_t), prof_timeline_cmp);

    n = t->nruns;
    t->nruns = 0;

    for (i = 0; i < n; i++) {
        run = t->runs[i];
        prof_timeline_push(t, run.node, run.weight);
    }
}


static int
prof_timeline_cmp(const void *one, const void *two)
{
    const prof_timeline_run_t  *r1, *r2;

    r1 = one;
    r2 = two;

    return r1->node < r2->node ? -1 : r1->node > r2->node;
}


void
prof_timeline_free(prof_timeline_t *t)
{
    free(t->runs);
    t->runs = NULL;
}


static void
prof_timeline_shorten(prof_timeline_t *t, uint32_t max)
{
    uint32_t  n;
    uint64_t  high, low, mid;

    n = t->nruns;
    low = 1;

    /*
     * Each heavy run may leave an incomplete group before it.  So the number
     * of groups is at most twice the total by the target, and one more.
     */

    high = t->total / (max - 1) * 2 + 2;

    while (low < high) {
        mid = low + (high - low) / 2;

        if (prof_timeline_groups(t, n, mid, 0) > max) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    t->nmerged = n;
    t->nruns = 0;

    (void) prof_timeline_groups(t, n, high, 1);
}


/* returns the number of groups of this weight; with "make" it makes them */

static uint32_t
prof_timeline_groups(prof_timeline_t *t, uint32_t n, uint64_t target,
    int make)
{
    uint32_t  first, groups, i;
    uint64_t  weight;

    first = 0;
    groups = 0;
    weight = 0;

    for (i = 0; i < n; i++) {

        if (t->runs[i].weight >= target && i > first) {

            if (make) {
                prof_timeline_group(t, first, i, weight);
            }

            groups++;
            first = i;
            weight = 0;
        }

        weight += t->runs[i].weight;

        if (weight >= target || i == n - 1) {

            if (make) {
                prof_timeline_group(t, first, i + 1, weight);
            }

            groups++;
            first = i + 1;
            weight = 0;
        }
    }

    return groups;
}


/*
 * Merges the runs [first, last).  The result is written to the same array, at
 * or before the position of the runs that are read.
 */

static void
prof_timeline_group(prof_timeline_t *t, uint32_t first, uint32_t last,
    uint64_t weight)
{
    uint32_t  i;
    uint64_t  part, point;

    part = (first * PROF_TIMELINE_STEP) >> 32;
    point = (uint64_t) (((unsigned __int128) weight * part) >> 32);

    for (i = first; i < last - 1 && point >= t->runs[i].weight; i++) {
        point -= t->runs[i].weight;
    }

    prof_timeline_push(t, t->runs[i].node, weight);
}


static void
prof_timeline_push(prof_timeline_t *t, uint32_t node, uint64_t weight)
{
    prof_timeline_run_t  *run;

    if (t->nruns && t->runs[t->nruns - 1].node == node) {
        t->runs[t->nruns - 1].weight += weight;
        return;
    }

    run = &t->runs[t->nruns++];
    run->node = node;
    run->weight = weight;
}
