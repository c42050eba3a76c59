
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Both profiles are merged into one tree.  A label names the profile of an
 * entry.
 */


#include "views/prof_diff.h"
#include "profile/prof_measure.h"
#include "profile/prof_merge.h"

#include <string.h>


#define PROF_DIFF_LABEL  "profile of a difference"


static uint32_t prof_diff_measure(const prof_profile_t *before,
    const prof_profile_t *after);
static int prof_diff_has(const prof_profile_t *p, uint32_t measure);
static int prof_diff_merge(prof_diff_t *d);
static int prof_diff_weigh(prof_diff_t *d);
static uint32_t prof_diff_side(const prof_profile_t *p, uint32_t labels);


static const char  *prof_diff_sides[] = { "before", "after" };


int
prof_diff_init(prof_diff_t *d, const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags)
{
    memset(d, 0, sizeof(prof_diff_t));

    d->profile[PROF_DIFF_BEFORE] = before;
    d->profile[PROF_DIFF_AFTER] = after;
    d->flags = flags;
    d->measure = prof_diff_measure(before, after);

    if (prof_diff_merge(d) != PROF_OK) {
        return PROF_ERROR;
    }

    return prof_diff_weigh(d);
}


void
prof_diff_free(prof_diff_t *d)
{
    prof_view_destroy(d->view);
    prof_profile_destroy(d->merged);
}


static uint32_t
prof_diff_measure(const prof_profile_t *before, const prof_profile_t *after)
{
    uint32_t  i, n, list[PROF_MEASURE_MAX];

    if (prof_diff_has(before, prof_measure_first(after))) {
        return prof_measure_first(after);
    }

    n = prof_measure_list(after, list);

    for (i = 0; i < n; i++) {
        if (prof_diff_has(before, list[i])) {
            return list[i];
        }
    }

    return PROF_MEASURE_WALL;
}


static int
prof_diff_has(const prof_profile_t *p, uint32_t measure)
{
    uint32_t  i, n, list[PROF_MEASURE_MAX];

    n = prof_measure_list(p, list);

    for (i = 0; i < n; i++) {
        if (list[i] == measure) {
            return 1;
        }
    }

    return 0;
}


static int
prof_diff_merge(prof_diff_t *d)
{
    uint32_t             i;
    prof_merge_t        *m;
    prof_merge_label_t   label;

    m = prof_merge_create(d->profile[PROF_DIFF_AFTER]->title,
                          PROF_MERGE_NAMES);
    if (m == NULL) {
        return PROF_ERROR;
    }

    label.name = PROF_DIFF_LABEL;
    label.unit = NULL;

    for (i = 0; i < 2; i++) {
        label.value = prof_diff_sides[i];

        if (prof_merge_add(m, d->profile[i], &label, 1) != PROF_OK) {
            prof_merge_destroy(m);
            return PROF_ERROR;
        }
    }

    d->merged = prof_merge_finish(m);

    return PROF_OK;
}


static int
prof_diff_weigh(prof_diff_t *d)
{
    uint32_t               i, value;
    prof_view_t           *v;
    const prof_entry_t    *e;
    const prof_series_t   *s;
    const prof_profile_t  *p;

    p = d->merged;

    v = prof_view_create(p, NULL, NULL, 0);
    if (v == NULL) {
        return PROF_ERROR;
    }

    d->view = v;

    if (prof_view_columns(v, 2) != PROF_OK) {
        return PROF_ERROR;
    }

    v->measure[PROF_DIFF_BEFORE] = d->measure;
    v->measure[PROF_DIFF_AFTER] = d->measure;

    s = &p->series[prof_measures[d->measure].series];
    value = prof_measures[d->measure].value;

    for (i = 0; i < s->n; i++) {
        e = prof_series_entry(s, i);
        prof_view_self(v, v->map[e->node], prof_diff_side(p, e->labels))
            += e->values[value];
    }

    prof_view_sum(v);

    return prof_view_order(v, PROF_VIEW_SHARE);
}


static uint32_t
prof_diff_side(const prof_profile_t *p, uint32_t labels)
{
    const prof_label_t  *label;

    label = prof_profile_label_find(p, labels, PROF_DIFF_LABEL);

    return label && label->value[0] == 'a' ? PROF_DIFF_AFTER
                                           : PROF_DIFF_BEFORE;
}


uint64_t
prof_diff_scale(const prof_diff_t *d, uint64_t weight)
{
    double           scaled;
    const uint64_t  *whole;

    whole = d->view->whole;

    if (!(d->flags & PROF_DIFF_NORMALIZED) || whole[PROF_DIFF_BEFORE] == 0) {
        return weight;
    }

    scaled = (double) weight / whole[PROF_DIFF_BEFORE]
             * whole[PROF_DIFF_AFTER];

    /* sums from an archive are not trusted, and may be too large */

    return scaled < 1e18 ? (uint64_t) scaled : (uint64_t) 1e18;
}
