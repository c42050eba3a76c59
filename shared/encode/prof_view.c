
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Two hash tables do the work while a view is built, and are gone afterwards:
 * one of functions, one of (parent, function) pairs.  Both have open
 * addressing and hold index + 1, so that 0 is an empty slot.
 */


#include "encode/prof_view.h"

#include <stdlib.h>
#include <string.h>


typedef struct {
    uint32_t              *slots;
    uint32_t               mask;
} prof_view_hash_t;


typedef struct {
    const prof_profile_t  *profile;
    prof_view_t           *view;
    uint32_t              *function;    /* frame -> function */
    prof_view_hash_t       hash;
} prof_view_ctx_t;


static int prof_view_functions(prof_view_ctx_t *ctx, prof_view_name_pt name);
static uint32_t prof_view_function(prof_view_ctx_t *ctx, uint32_t frame,
    const char *text);
static int prof_view_same(const prof_frame_t *one, const prof_frame_t *two);
static int prof_view_nodes(prof_view_ctx_t *ctx);
static uint32_t prof_view_node(prof_view_ctx_t *ctx, uint32_t parent,
    uint32_t function);
static void prof_view_weigh(prof_view_ctx_t *ctx);
static int prof_view_order(prof_view_t *v);
static int prof_view_cmp(const void *one, const void *two, void *data);
static int prof_view_hash_init(prof_view_hash_t *h, uint32_t n);
static uint64_t prof_view_hash_add(uint64_t hash, uint64_t value);
static uint64_t prof_view_hash_text(uint64_t hash, const char *s);


prof_view_t *
prof_view_create(const prof_profile_t *p, prof_view_name_pt name)
{
    int              rc;
    prof_view_t     *v;
    prof_view_ctx_t  ctx;

    v = calloc(1, sizeof(prof_view_t));
    if (v == NULL) {
        return NULL;
    }

    v->root = PROF_NONE;

    memset(&ctx, 0, sizeof(prof_view_ctx_t));
    ctx.profile = p;
    ctx.view = v;

    rc = prof_view_functions(&ctx, name);

    if (rc == PROF_OK) {
        rc = prof_view_nodes(&ctx);
    }

    free(ctx.function);
    free(ctx.hash.slots);

    if (rc == PROF_OK) {
        prof_view_weigh(&ctx);
        rc = prof_view_order(v);
    }

    if (rc != PROF_OK) {
        prof_view_destroy(v);
        return NULL;
    }

    return v;
}


void
prof_view_destroy(prof_view_t *v)
{
    uint32_t  i;

    if (v->names) {
        for (i = 0; i < v->nfunctions; i++) {
            free(v->names[i]);
        }
    }

    free(v->names);
    free(v->functions);
    free(v->nodes);
    free(v->map);
    free(v);
}


static int
prof_view_functions(prof_view_ctx_t *ctx, prof_view_name_pt name)
{
    char                  *text;
    uint32_t               i, n;
    prof_view_t           *v;
    const prof_profile_t  *p;

    p = ctx->profile;
    v = ctx->view;

    if (prof_view_hash_init(&ctx->hash, p->nframes) != PROF_OK) {
        return PROF_ERROR;
    }

    ctx->function = calloc(p->nframes + 1, sizeof(uint32_t));
    v->functions = calloc(p->nframes + 1, sizeof(prof_view_function_t));

    if (ctx->function == NULL || v->functions == NULL) {
        return PROF_ERROR;
    }

    if (name) {
        v->names = calloc(p->nframes + 1, sizeof(char *));
        if (v->names == NULL) {
            return PROF_ERROR;
        }
    }

    for (i = 0; i < p->nframes; i++) {

        if (name == NULL) {
            ctx->function[i] = prof_view_function(ctx, i, NULL);
            continue;
        }

        text = name(&p->frames[i]);
        if (text == NULL) {
            return PROF_ERROR;
        }

        n = v->nfunctions;
        ctx->function[i] = prof_view_function(ctx, i, text);

        if (v->nfunctions == n) {
            free(text);

        } else {
            v->names[n] = text;
        }
    }

    return PROF_OK;
}


static uint32_t
prof_view_function(prof_view_ctx_t *ctx, uint32_t frame, const char *text)
{
    uint32_t               i, slot;
    uint64_t               hash;
    prof_view_t           *v;
    const prof_frame_t    *f, *frames;
    prof_view_function_t  *func;

    v = ctx->view;
    frames = ctx->profile->frames;
    f = &frames[frame];

    if (text) {
        hash = prof_view_hash_text(0, text);

    } else {
        hash = prof_view_hash_text(f->function, f->name);
        hash = prof_view_hash_add(hash, f->object);
    }

    for (slot = hash & ctx->hash.mask;
         ctx->hash.slots[slot];
         slot = (slot + 1) & ctx->hash.mask)
    {
        i = ctx->hash.slots[slot] - 1;
        func = &v->functions[i];

        if (text ? strcmp(text, func->name) == 0
                 : prof_view_same(f, &frames[func->frame]))
        {
            return i;
        }
    }

    func = &v->functions[v->nfunctions++];
    func->name = text ? text : f->name;
    func->frame = frame;

    ctx->hash.slots[slot] = v->nfunctions;

    return v->nfunctions - 1;
}


static int
prof_view_same(const prof_frame_t *one, const prof_frame_t *two)
{
    if (one->object != two->object || one->function != two->function
        || one->line != two->line || strcmp(one->name, two->name) != 0)
    {
        return 0;
    }

    if (one->file == NULL || two->file == NULL) {
        return one->file == two->file;
    }

    return strcmp(one->file, two->file) == 0;
}


static int
prof_view_nodes(prof_view_ctx_t *ctx)
{
    uint32_t               i, parent;
    prof_view_t           *v;
    const prof_node_t     *node;
    const prof_profile_t  *p;

    p = ctx->profile;
    v = ctx->view;

    free(ctx->hash.slots);

    if (prof_view_hash_init(&ctx->hash, p->nnodes) != PROF_OK) {
        return PROF_ERROR;
    }

    v->map = calloc((size_t) p->nnodes + 1, sizeof(uint32_t));
    v->nodes = calloc((size_t) p->nnodes + 1, sizeof(prof_view_node_t));

    if (v->map == NULL || v->nodes == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < p->nnodes; i++) {
        node = &p->nodes[i];

        parent = PROF_NONE;

        if (node->parent != PROF_NONE) {
            parent = v->map[node->parent];
        }

        v->map[i] = prof_view_node(ctx, parent, ctx->function[node->frame]);
    }

    return PROF_OK;
}


static uint32_t
prof_view_node(prof_view_ctx_t *ctx, uint32_t parent, uint32_t function)
{
    uint32_t           i, slot;
    prof_view_t       *v;
    prof_view_node_t  *node;

    v = ctx->view;

    for (slot = prof_view_hash_add(parent, function) & ctx->hash.mask;
         ctx->hash.slots[slot];
         slot = (slot + 1) & ctx->hash.mask)
    {
        i = ctx->hash.slots[slot] - 1;

        if (v->nodes[i].parent == parent && v->nodes[i].function == function) {
            return i;
        }
    }

    i = v->nnodes++;
    ctx->hash.slots[slot] = v->nnodes;

    node = &v->nodes[i];
    node->parent = parent;
    node->function = function;
    node->child = PROF_NONE;
    node->next = PROF_NONE;

    if (parent != PROF_NONE) {
        node->depth = v->nodes[parent].depth + 1;
    }

    if (node->depth >= v->depth) {
        v->depth = node->depth + 1;
    }

    return i;
}


static void
prof_view_weigh(prof_view_ctx_t *ctx)
{
    uint32_t               i, m;
    prof_view_t           *v;
    prof_view_node_t      *node;
    const prof_entry_t    *e;
    const prof_profile_t  *p;

    p = ctx->profile;
    v = ctx->view;

    for (i = 0; i < p->nentries; i++) {
        e = &p->entries[i];
        node = &v->nodes[v->map[e->node]];

        node->self[PROF_MODE_WALL] += e->wall;
        node->self[PROF_MODE_CPU] += e->cpu;
        node->samples += e->count;
    }

    for (i = v->nnodes; i > 0; i--) {
        node = &v->nodes[i - 1];

        for (m = 0; m < PROF_VIEW_MODES; m++) {
            node->total[m] += node->self[m];
            v->total[m] += node->self[m];

            if (node->parent != PROF_NONE) {
                v->nodes[node->parent].total[m] += node->total[m];
            }
        }
    }
}


/*
 * Links the children of each node in the order of their names.  Only the
 * functions are sorted, nodes are then taken function by function.
 */

static int
prof_view_order(prof_view_t *v)
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


static int
prof_view_hash_init(prof_view_hash_t *h, uint32_t n)
{
    size_t  size;

    /* at most half full */

    for (size = 16; size < (size_t) n * 2; size *= 2) { /* void */ }

    h->slots = calloc(size, sizeof(uint32_t));
    if (h->slots == NULL) {
        return PROF_ERROR;
    }

    h->mask = (uint32_t) (size - 1);

    return PROF_OK;
}


static uint64_t
prof_view_hash_add(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;

    return hash ^ (hash >> 32);
}


static uint64_t
prof_view_hash_text(uint64_t hash, const char *s)
{
    while (*s) {
        hash = (hash ^ (unsigned char) *s++) * 0x100000001b3;
    }

    return hash ^ (hash >> 32);
}
