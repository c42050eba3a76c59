
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The weights of a view, and the order of its nodes, which depends on them.
 */


#include "views/prof_view.h"
#include "views/prof_view_weigh.h"

#include <stdlib.h>
#include <string.h>


static int prof_view_is_large(const prof_view_t *v, uint32_t node,
    uint32_t share);
static int prof_view_cmp(const void *one, const void *two, void *data);


int
prof_view_weigh(prof_view_t *v, const prof_profile_t *p,
    const uint32_t *measures, uint32_t n)
{
    uint32_t              i, k, value;
    const prof_entry_t   *e;
    const prof_series_t  *s;

    if (prof_view_columns(v, n) != PROF_OK) {
        return PROF_ERROR;
    }

    memcpy(v->measure, measures, n * sizeof(uint32_t));

    for (k = 0; k < n; k++) {
        s = &p->series[prof_measures[measures[k]].series];
        value = prof_measures[measures[k]].value;

        for (i = 0; i < s->n; i++) {
            e = prof_series_entry(s, i);
            prof_view_self(v, v->map[e->node], k) += e->values[value];
        }
    }

    prof_view_sum(v);

    return PROF_OK;
}


int
prof_view_columns(prof_view_t *v, uint32_t n)
{
    v->ncolumns = n;
    v->self = calloc(((size_t) v->nnodes + 1) * n, sizeof(uint64_t));
    v->total = malloc(((size_t) v->nnodes + 1) * n * sizeof(uint64_t));

    return v->self && v->total ? PROF_OK : PROF_ERROR;
}


void
prof_view_sum(prof_view_t *v)
{
    uint32_t   i, k, n, parent;
    uint64_t  *total;

    n = v->ncolumns;

    memcpy(v->total, v->self, (size_t) v->nnodes * n * sizeof(uint64_t));
    memset(v->whole, 0, sizeof(v->whole));

    for (i = v->nnodes; i > 0; i--) {
        total = &prof_view_total(v, i - 1, 0);
        parent = v->nodes[i - 1].parent;

        for (k = 0; k < n; k++) {

            if (parent != PROF_NONE) {
                prof_view_total(v, parent, k) += total[k];

            } else {
                v->whole[k] += total[k];
            }
        }
    }
}


uint32_t
prof_view_column(const prof_view_t *v, uint32_t measure)
{
    uint32_t  k;

    for (k = 0; k < v->ncolumns; k++) {
        if (v->measure[k] == measure) {
            return k;
        }
    }

    return 0;
}


/* only the functions are sorted, nodes are then taken function by function */

int
prof_view_order(prof_view_t *v, uint32_t share)
{
    int                rc;
    uint32_t           f, i, *first, *head, *next, *order;
    prof_view_node_t  *node;

    rc = PROF_ERROR;

    order = malloc(((size_t) v->nfunctions + 1) * sizeof(uint32_t));
    first = malloc(((size_t) v->nfunctions + 1) * sizeof(uint32_t));
    next = malloc(((size_t) v->nnodes + 1) * sizeof(uint32_t));

    if (order == NULL || first == NULL || next == NULL) {
        goto done;
    }

    for (i = 0; i < v->nfunctions; i++) {
        order[i] = i;
        first[i] = PROF_NONE;
    }

    qsort_r(order, v->nfunctions, sizeof(uint32_t), prof_view_cmp,
            v->functions);

    for (i = 0; i < v->nnodes; i++) {

        if (share && !prof_view_is_large(v, v->nodes[i].parent, share)) {
            continue;
        }

        f = v->nodes[i].function;
        next[i] = first[f];
        first[f] = i;
    }

    for (f = v->nfunctions; f > 0; f--) {

        for (i = first[order[f - 1]]; i != PROF_NONE; i = next[i]) {
            node = &v->nodes[i];

            head = &v->root;

            if (node->parent != PROF_NONE) {
                head = &v->nodes[node->parent].child;
            }

            node->next = *head;
            *head = i;
        }
    }

    rc = PROF_OK;

done:

    free(order);
    free(first);
    free(next);

    return rc;
}


static int
prof_view_is_large(const prof_view_t *v, uint32_t node, uint32_t share)
{
    uint32_t  k;

    if (node == PROF_NONE) {
        return 1;
    }

    for (k = 0; k < v->ncolumns; k++) {
        if (prof_view_total(v, node, k) >= v->whole[k] / share) {
            return 1;
        }
    }

    return 0;
}


static int
prof_view_cmp(const void *one, const void *two, void *data)
{
    int                    rc;
    uint32_t               f1, f2;
    prof_view_function_t  *functions;

    functions = data;
    f1 = *(const uint32_t *) one;
    f2 = *(const uint32_t *) two;

    rc = strcmp(functions[f1].name, functions[f2].name);

    if (rc == 0) {
        return f1 < f2 ? -1 : f1 > f2;
    }

    return rc;
}
