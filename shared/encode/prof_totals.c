
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "encode/prof_totals.h"

#include <stdlib.h>


static uint32_t prof_totals_leave(const prof_view_t *v, const uint32_t *group,
    uint32_t *open, uint32_t node);
static int prof_totals_cmp(const void *one, const void *two, void *data);


prof_total_t *
prof_totals_create(const prof_view_t *v, const uint32_t *group, uint32_t n)
{
    uint32_t                 i, m, node, *open;
    prof_total_t            *totals;
    const prof_view_node_t  *nd;

    open = calloc((size_t) n + 1, sizeof(uint32_t));
    totals = calloc((size_t) n + 1, sizeof(prof_total_t));

    if (open == NULL || totals == NULL) {
        free(open);
        free(totals);
        return NULL;
    }

    for (i = 0; i < n; i++) {
        totals[i].group = i;
    }

    node = v->root;

    while (node != PROF_NONE) {
        nd = &v->nodes[node];
        i = group[nd->function];

        for (m = 0; m < PROF_VIEW_MODES; m++) {
            totals[i].self[m] += nd->self[m];

            if (open[i] == 0) {
                totals[i].total[m] += nd->total[m];
            }
        }

        open[i]++;

        node = nd->child != PROF_NONE
               ? nd->child : prof_totals_leave(v, group, open, node);
    }

    free(open);

    return totals;
}


/* leaves a node without children; returns the one to be entered next */

static uint32_t
prof_totals_leave(const prof_view_t *v, const uint32_t *group, uint32_t *open,
    uint32_t node)
{
    const prof_view_node_t  *nd;

    for ( ;; ) {
        nd = &v->nodes[node];

        open[group[nd->function]]--;

        if (nd->next != PROF_NONE) {
            return nd->next;
        }

        if (nd->parent == PROF_NONE) {
            return PROF_NONE;
        }

        node = nd->parent;
    }
}


void
prof_totals_sort(prof_total_t *totals, uint32_t n, uint32_t mode)
{
    qsort_r(totals, n, sizeof(prof_total_t), prof_totals_cmp, &mode);
}


static int
prof_totals_cmp(const void *one, const void *two, void *data)
{
    uint32_t             mode;
    const prof_total_t  *t1, *t2;

    mode = *(uint32_t *) data;
    t1 = one;
    t2 = two;

    if (t1->self[mode] != t2->self[mode]) {
        return t1->self[mode] < t2->self[mode] ? 1 : -1;
    }

    if (t1->total[mode] != t2->total[mode]) {
        return t1->total[mode] < t2->total[mode] ? 1 : -1;
    }

    return t1->group < t2->group ? -1 : t1->group > t2->group;
}
