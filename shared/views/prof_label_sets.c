
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "views/prof_label_sets.h"

#include <stdlib.h>
#include <string.h>


static void prof_label_sets_weigh(prof_label_set_t *sets,
    const prof_profile_t *p);
static int prof_label_sets_cmp(const void *one, const void *two, void *data);


int
prof_label_sets_init(prof_label_sets_t *s, const prof_profile_t *p)
{
    size_t     n;
    uint32_t   first, i, m;
    uint64_t   sum;

    memset(s, 0, sizeof(prof_label_sets_t));

    /* one set per label, and the empty set */

    n = (size_t) p->nlabels + 1;

    s->sets = calloc(n, sizeof(prof_label_set_t));
    if (s->sets == NULL) {
        return PROF_ERROR;
    }

    prof_label_sets_weigh(s->sets, p);

    for (i = 0; i < n; i++) {
        sum = 0;

        for (m = 0; m < PROF_MEASURE_MAX; m++) {
            sum |= s->sets[i].weight[m];
        }

        if (sum) {
            s->sets[s->n] = s->sets[i];
            s->sets[s->n++].labels = i ? i - 1 : PROF_NONE;
        }
    }

    first = prof_measure_first(p);

    qsort_r(s->sets, s->n, sizeof(prof_label_set_t), prof_label_sets_cmp,
            &first);

    return PROF_OK;
}


void
prof_label_sets_free(prof_label_sets_t *s)
{
    free(s->sets);
    s->sets = NULL;
}


static void
prof_label_sets_weigh(prof_label_set_t *sets, const prof_profile_t *p)
{
    uint32_t              i, m, value;
    const prof_entry_t   *e;
    const prof_series_t  *s;

    for (m = 0; m < PROF_MEASURE_MAX; m++) {
        s = &p->series[prof_measures[m].series];
        value = prof_measures[m].value;

        for (i = 0; i < s->n; i++) {
            e = prof_series_entry(s, i);

            /* PROF_NONE + 1 is 0 */

            sets[e->labels + 1].weight[m] += e->values[value];
        }
    }
}


static int
prof_label_sets_cmp(const void *one, const void *two, void *data)
{
    uint32_t                 m;
    const prof_label_set_t  *s1, *s2;

    m = *(const uint32_t *) data;
    s1 = one;
    s2 = two;

    if (s1->weight[m] != s2->weight[m]) {
        return s1->weight[m] < s2->weight[m] ? 1 : -1;
    }

    return s1->labels < s2->labels ? -1 : s1->labels > s2->labels;
}


void
prof_label_sets_text(const prof_profile_t *p, uint32_t labels, prof_buf_t *b)
{
    uint32_t             n;
    const prof_label_t  *label, *set[PROF_MAX_LABELS];

    n = 0;

    while (labels != PROF_NONE && n < PROF_MAX_LABELS) {
        set[n++] = &p->labels[labels];
        labels = p->labels[labels].rest;
    }

    /* in the order in which the labels were added */

    while (n) {
        label = set[--n];

        prof_buf_puts(b, label->name);
        prof_buf_puts(b, " ");
        prof_buf_puts(b, label->value);

        if (label->unit) {
            prof_buf_puts(b, " ");
            prof_buf_puts(b, label->unit);
        }

        prof_buf_puts(b, n ? ", " : "");
    }
}
