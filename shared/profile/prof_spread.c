
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Short work in a profile of many slices.  A thread that runs for less than the
 * period in a slice has a sample in some slices only.  Its time in the others
 * is "[not sampled]" there.  Each nanosecond of the thread had the same chance
 * of a sample, so the samples of the thread in all slices tell what it ran:
 * the time is divided among their stacks, in proportion to their number.
 *
 * Context: any thread; not in a signal.
 */


#include "profile/prof_merge.h"

#include <stdlib.h>
#include <string.h>


/* threads of workers; the time of others remains as it is */
#define PROF_SPREAD_MAX  256

typedef struct {
    uint32_t   entry;           /* of the time without a sample */
    uint32_t   labels;
    uint64_t   values[2];       /* what it has to divide */
    uint64_t   samples;
    uint64_t   before;          /* samples that have their part */
} prof_spread_t;


static uint32_t prof_spread_find(const prof_profile_t *p, prof_spread_t *list);
static int prof_spread_same(const prof_profile_t *p, uint32_t a, uint32_t b,
    const char *name);
static void prof_spread_divide(prof_spread_t *from, prof_entry_t *e);


int
prof_profile_spread(prof_profile_t *p)
{
    uint32_t        i, k, n, *thread;
    prof_entry_t   *e;
    prof_series_t  *s;
    prof_spread_t  *list;

    s = &p->series[PROF_SERIES_TIME];

    list = calloc(PROF_SPREAD_MAX, sizeof(prof_spread_t));
    thread = malloc(((size_t) p->nlabels + 1) * sizeof(uint32_t));

    if (list == NULL || thread == NULL) {
        free(list);
        free(thread);
        return PROF_ERROR;
    }

    n = prof_spread_find(p, list);

    for (i = 0; i < p->nlabels; i++) {
        thread[i] = PROF_NONE;

        for (k = 0; k < n; k++) {
            if (prof_spread_same(p, i, list[k].labels, "thread")
                && prof_spread_same(p, i, list[k].labels, "worker"))
            {
                thread[i] = k;
                break;
            }
        }
    }

    for (i = 0; n && i < s->n; i++) {
        e = prof_series_entry(s, i);

        if (e->labels != PROF_NONE && thread[e->labels] != PROF_NONE) {
            list[thread[e->labels]].samples += e->count;
        }
    }

    for (i = 0; n && i < s->n; i++) {
        e = prof_series_entry(s, i);

        if (e->count && e->labels != PROF_NONE
            && thread[e->labels] != PROF_NONE)
        {
            prof_spread_divide(&list[thread[e->labels]], e);
        }
    }

    for (k = 0; k < n; k++) {

        if (list[k].samples) {
            e = prof_series_entry(s, list[k].entry);
            p->stats.spread_ns += e->values[PROF_VALUE_CPU];
            memset(e->values, 0, sizeof(list[k].values));
        }
    }

    free(list);
    free(thread);

    return PROF_OK;
}


static uint32_t
prof_spread_find(const prof_profile_t *p, prof_spread_t *list)
{
    uint32_t              i, n;
    const char           *name;
    const prof_node_t    *node;
    const prof_entry_t   *e;
    const prof_series_t  *s;

    n = 0;
    s = &p->series[PROF_SERIES_TIME];

    for (i = 0; i < s->n && n < PROF_SPREAD_MAX; i++) {
        e = prof_series_entry(s, i);
        node = &p->nodes[e->node];
        name = p->frames[node->frame].name;

        if (e->labels != PROF_NONE && node->parent == PROF_NONE && name
            && strcmp(name, PROF_NOT_SAMPLED) == 0)
        {
            list[n].entry = i;
            list[n].labels = e->labels;
            memcpy(list[n].values, e->values, sizeof(list[n].values));
            n++;
        }
    }

    return n;
}


static int
prof_spread_same(const prof_profile_t *p, uint32_t a, uint32_t b,
    const char *name)
{
    const prof_label_t  *one, *two;

    one = prof_profile_label_find(p, a, name);
    two = prof_profile_label_find(p, b, name);

    return one == two || (one && two && strcmp(one->value, two->value) == 0);
}


/* the parts of all samples together are the whole, without rounding */

static void
prof_spread_divide(prof_spread_t *from, prof_entry_t *e)
{
    double    samples;
    uint32_t  i;
    uint64_t  until, after;

    samples = from->samples;
    after = from->before + e->count;

    for (i = 0; i < 2; i++) {
        until = (after == from->samples)
                ? from->values[i] : from->values[i] * (after / samples);

        e->values[i] += until
                        - (uint64_t) (from->values[i]
                                      * (from->before / samples));
    }

    from->before = after;
}
