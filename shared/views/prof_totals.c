
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "views/prof_totals.h"

#include <stdlib.h>


typedef struct {
    const prof_view_t  *view;
    const uint32_t     *group;
    uint32_t           *open;       /* nodes of each group on the path */
    uint32_t           *path;       /* node by depth */
    uint32_t            depth;      /* nodes on the path */
} prof_totals_ctx_t;


static void prof_totals_enter(prof_totals_ctx_t *ctx, uint32_t node);
static void prof_totals_leave(prof_totals_ctx_t *ctx, uint32_t depth);
static int prof_totals_cmp(const void *one, const void *two, void *data);


/*
 * Nodes are visited in their own order.  A capture adds a stack from its root
 * on, so the path to a node resembles the path before it, and memory is read
 * from start to end.
 */

prof_total_t *
prof_totals_create(const prof_view_t *v, const uint32_t *group, uint32_t n)
{
    uint32_t            g, i, k;
    prof_total_t       *totals;
    prof_totals_ctx_t   ctx;

    ctx.view = v;
    ctx.group = group;
    ctx.depth = 0;
    ctx.open = calloc((size_t) n + 1, sizeof(uint32_t));
    ctx.path = calloc((size_t) v->depth + 1, sizeof(uint32_t));

    totals = calloc((size_t) n + 1, sizeof(prof_total_t));

    if (ctx.open == NULL || ctx.path == NULL || totals == NULL) {
        free(totals);
        totals = NULL;
        goto done;
    }

    for (i = 0; i < n; i++) {
        totals[i].group = i;
    }

    for (i = 0; i < v->nnodes; i++) {
        prof_totals_enter(&ctx, i);

        g = group[v->nodes[i].function];

        for (k = 0; k < v->ncolumns; k++) {
            totals[g].self[k] += prof_view_self(v, i, k);

            if (ctx.open[g] == 1) {
                totals[g].total[k] += prof_view_total(v, i, k);
            }
        }
    }

done:

    free(ctx.open);
    free(ctx.path);

    return totals;
}


/* replaces the path by the path of the node */

static void
prof_totals_enter(prof_totals_ctx_t *ctx, uint32_t node)
{
    uint32_t                 above, depth, i;
    const prof_view_node_t  *nodes;

    nodes = ctx->view->nodes;
    depth = nodes[node].depth;

    /* keep the common part of both paths */

    above = depth;

    for (i = nodes[node].parent; i != PROF_NONE; i = nodes[i].parent) {

        if (above <= ctx->depth && ctx->path[above - 1] == i) {
            break;
        }

        above--;
    }

    prof_totals_leave(ctx, above);

    ctx->depth = depth + 1;

    for (i = node; /* void */ ; i = nodes[i].parent) {
        ctx->path[depth] = i;
        ctx->open[ctx->group[nodes[i].function]]++;

        if (depth-- == above) {
            break;
        }
    }
}


static void
prof_totals_leave(prof_totals_ctx_t *ctx, uint32_t depth)
{
    uint32_t  node;

    while (ctx->depth > depth) {
        node = ctx->path[--ctx->depth];
        ctx->open[ctx->group[ctx->view->nodes[node].function]]--;
    }
}


void
prof_totals_sort(prof_total_t *totals, uint32_t n, uint32_t column)
{
    qsort_r(totals, n, sizeof(prof_total_t), prof_totals_cmp, &column);
}


static int
prof_totals_cmp(const void *one, const void *two, void *data)
{
    uint32_t             column;
    const prof_total_t  *t1, *t2;

    column = *(uint32_t *) data;
    t1 = one;
    t2 = two;

    if (t1->self[column] != t2->self[column]) {
        return t1->self[column] < t2->self[column] ? 1 : -1;
    }

    if (t1->total[column] != t2->total[column]) {
        return t1->total[column] < t2->total[column] ? 1 : -1;
    }

    return t1->group < t2->group ? -1 : t1->group > t2->group;
}
