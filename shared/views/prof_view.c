
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Two hash tables are used while a view is built: one of functions, one of
 * (parent, function) pairs.  Both have open addressing and contain index + 1,
 * so that 0 is an empty bucket.  The first child of each node is not in the
 * second table: its parent refers to it.  Most nodes have only one child, and a
 * node is close to its first child in memory, so most look-ups need no table.
 */


#include "views/prof_view.h"
#include "base/prof_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef struct {
    uint32_t              *buckets;
    uint32_t               mask;
} prof_view_hash_t;


typedef struct {
    const prof_profile_t  *profile;
    prof_view_t           *view;
    prof_view_name_pt      name;
    uint32_t              *function;    /* frame -> function */
    uint32_t              *inlined;     /* inline -> function */
    uint32_t              *use[2];      /* function -> the same one where it
                                           runs [0], where it waits [1];
                                           PROF_NONE: not used yet */
    prof_view_hash_t       hash;
} prof_view_ctx_t;


static int prof_view_functions(prof_view_ctx_t *ctx);
static int prof_view_label(const prof_frame_t *f, char **label);
static uint32_t prof_view_named(prof_view_ctx_t *ctx,
    prof_view_function_t *func, char *text);
static uint32_t prof_view_function(prof_view_ctx_t *ctx,
    const prof_view_function_t *func);
static int prof_view_same(const prof_view_ctx_t *ctx,
    const prof_view_function_t *one, const prof_view_function_t *two);
static int prof_view_nodes(prof_view_ctx_t *ctx);
static uint32_t prof_view_node(prof_view_ctx_t *ctx, uint32_t parent,
    uint32_t function);
static uint32_t prof_view_use(prof_view_ctx_t *ctx, uint32_t function,
    uint32_t waits);
static int prof_view_weigh(prof_view_t *v, const prof_profile_t *p,
    const uint32_t *measures, uint32_t n);
static int prof_view_is_large(const prof_view_t *v, uint32_t node,
    uint32_t share);
static int prof_view_cmp(const void *one, const void *two, void *data);
static int prof_view_hash_init(prof_view_hash_t *h, size_t n);


prof_view_t *
prof_view_create(const prof_profile_t *p, prof_view_name_pt name,
    const uint32_t *measures, uint32_t n)
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
    ctx.name = name;

    rc = prof_view_functions(&ctx);

    if (rc == PROF_OK) {
        rc = prof_view_nodes(&ctx);
    }

    free(ctx.function);
    free(ctx.inlined);
    free(ctx.use[0]);
    free(ctx.use[1]);
    free(ctx.hash.buckets);

    if (rc == PROF_OK && n) {
        rc = prof_view_weigh(v, p, measures, n);
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

    if (v == NULL) {
        return;
    }

    if (v->names) {
        for (i = 0; i < v->nfunctions; i++) {
            free(v->names[i]);
        }
    }

    free(v->names);
    free(v->functions);
    free(v->nodes);
    free(v->map);
    free(v->self);
    free(v->total);
    free(v);
}


static int
prof_view_functions(prof_view_ctx_t *ctx)
{
    char                  *label;
    size_t                 n;
    uint32_t               i, k;
    prof_view_t           *v;
    const prof_frame_t    *f;
    const prof_inline_t   *in;
    const prof_profile_t  *p;
    prof_view_function_t   func;

    p = ctx->profile;
    v = ctx->view;

    n = (size_t) p->nframes + p->ninlines;

    ctx->function = calloc((size_t) p->nframes + 1, sizeof(uint32_t));
    ctx->inlined = calloc((size_t) p->ninlines + 1, sizeof(uint32_t));

    /* each function may exist twice: where it runs, and where it waits */

    v->functions = calloc(2 * n + 1, sizeof(prof_view_function_t));
    v->names = calloc(2 * n + 1, sizeof(char *));

    if (ctx->function == NULL || ctx->inlined == NULL || v->functions == NULL
        || v->names == NULL
        || prof_view_hash_init(&ctx->hash, n) != PROF_OK)
    {
        return PROF_ERROR;
    }

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        if (prof_view_label(f, &label) != PROF_OK) {
            return PROF_ERROR;
        }

        func.name = label ? label : f->name;
        func.file = f->file;
        func.line = label ? f->line : f->start_line;
        func.frame = i;
        func.inlined = 0;
        func.waits = 0;

        ctx->function[i] = prof_view_named(ctx, &func, label);

        if (ctx->function[i] == PROF_NONE) {
            return PROF_ERROR;
        }

        for (k = f->inlines; k < f->inlines + f->ninlines; k++) {
            in = &p->inlines[k];

            func.name = in->name;
            func.file = in->file;
            func.line = in->start_line;
            func.inlined = 1;

            ctx->inlined[k] = prof_view_named(ctx, &func, NULL);

            if (ctx->inlined[k] == PROF_NONE) {
                return PROF_ERROR;
            }
        }
    }

    return PROF_OK;
}


/*
 * Returns the label of a place in a script, "app.lua:40 handler", malloc()ed;
 * NULL for other frames.  A source that is not a file has a name with
 * parentheses or brackets, "content_by_lua(nginx.conf:9)", in which a slash
 * separates nothing.
 */

static int
prof_view_label(const prof_frame_t *f, char **label)
{
    int          rc;
    size_t       len;
    const char  *file;

    *label = NULL;

    if (f->type != PROF_TYPE_SCRIPT || f->file == NULL) {
        return PROF_OK;
    }

    file = f->file;
    len = strlen(file);

    if (len == 0 || strchr(")]", file[len - 1]) == NULL) {
        file = prof_path_file(file);
    }

    rc = f->line ? asprintf(label, "%s:%u %s", file, f->line, f->name)
                 : asprintf(label, "%s %s", file, f->name);

    return (rc == -1) ? PROF_ERROR : PROF_OK;
}


/* owns the text, which may be the function's name; NULL: there is no text */

static uint32_t
prof_view_named(prof_view_ctx_t *ctx, prof_view_function_t *func, char *text)
{
    char         *given;
    uint32_t      i, n;
    prof_view_t  *v;

    if (ctx->name) {
        given = text;
        text = ctx->name(func->name);
        free(given);

        if (text == NULL) {
            return PROF_NONE;
        }

        func->name = text;
    }

    v = ctx->view;
    n = v->nfunctions;
    i = prof_view_function(ctx, func);

    if (v->nfunctions == n) {
        free(text);

    } else {
        v->names[n] = text;
    }

    return i;
}


static uint32_t
prof_view_function(prof_view_ctx_t *ctx, const prof_view_function_t *func)
{
    uint32_t             i, bucket;
    uint64_t             hash;
    prof_view_t         *v;
    const prof_frame_t  *f;

    v = ctx->view;
    f = &ctx->profile->frames[func->frame];

    if (ctx->name) {
        hash = prof_hash_text(0, func->name);

    } else {
        hash = prof_hash_text(func->inlined ? 0 : f->function, func->name);
        hash = prof_hash_add(hash, f->object);
    }

    for (bucket = hash & ctx->hash.mask;
         ctx->hash.buckets[bucket];
         bucket = (bucket + 1) & ctx->hash.mask)
    {
        i = ctx->hash.buckets[bucket] - 1;

        if (prof_view_same(ctx, func, &v->functions[i])) {
            return i;
        }
    }

    i = v->nfunctions++;

    v->functions[i] = *func;
    ctx->hash.buckets[bucket] = i + 1;

    return i;
}


static int
prof_view_same(const prof_view_ctx_t *ctx, const prof_view_function_t *one,
    const prof_view_function_t *two)
{
    const prof_frame_t  *f1, *f2;

    if (strcmp(one->name, two->name) != 0) {
        return 0;
    }

    if (ctx->name) {
        return 1;
    }

    f1 = &ctx->profile->frames[one->frame];
    f2 = &ctx->profile->frames[two->frame];

    if (f1->object != f2->object || one->inlined != two->inlined
        || one->line != two->line
        || (!one->inlined && f1->function != f2->function))
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
    size_t                 n;
    uint32_t               i, k, parent;
    prof_view_t           *v;
    const prof_node_t     *node;
    const prof_frame_t    *f;
    const prof_profile_t  *p;

    p = ctx->profile;
    v = ctx->view;

    free(ctx->hash.buckets);
    ctx->hash.buckets = NULL;

    n = p->nnodes;

    for (i = 0; p->ninlines && i < p->nnodes; i++) {
        n += p->frames[p->nodes[i].frame].ninlines;
    }

    if (n >= PROF_NONE || prof_view_hash_init(&ctx->hash, n) != PROF_OK) {
        return PROF_ERROR;
    }

    v->map = malloc(((size_t) p->nnodes + 1) * sizeof(uint32_t));
    v->nodes = malloc((n + 1) * sizeof(prof_view_node_t));

    n = ((size_t) v->nfunctions + 1) * sizeof(uint32_t);

    ctx->use[0] = malloc(n);
    ctx->use[1] = malloc(n);

    if (v->map == NULL || v->nodes == NULL || ctx->use[0] == NULL
        || ctx->use[1] == NULL)
    {
        return PROF_ERROR;
    }

    /* PROF_NONE has all bits set */

    memset(ctx->use[0], 0xff, n);
    memset(ctx->use[1], 0xff, n);

    for (i = 0; i < p->nnodes; i++) {
        node = &p->nodes[i];
        f = &p->frames[node->frame];

        parent = PROF_NONE;

        if (node->parent != PROF_NONE) {
            parent = v->map[node->parent];
        }

        parent = prof_view_node(ctx, parent, ctx->function[node->frame]);

        for (k = f->inlines; k < f->inlines + f->ninlines; k++) {
            parent = prof_view_node(ctx, parent, ctx->inlined[k]);
        }

        v->map[i] = parent;
    }

    return PROF_OK;
}


static uint32_t
prof_view_node(prof_view_ctx_t *ctx, uint32_t parent, uint32_t function)
{
    uint32_t           i, bucket, *first;
    prof_view_t       *v;
    prof_view_node_t  *node;

    v = ctx->view;

    function = prof_view_use(ctx, function, parent != PROF_NONE
                             && v->functions[v->nodes[parent].function].waits);

    first = (parent == PROF_NONE) ? &v->root : &v->nodes[parent].child;

    if (*first == PROF_NONE) {
        *first = v->nnodes;

    } else {

        if (v->nodes[*first].function == function) {
            return *first;
        }

        for (bucket = prof_hash_add(parent, function) & ctx->hash.mask;
             ctx->hash.buckets[bucket];
             bucket = (bucket + 1) & ctx->hash.mask)
        {
            i = ctx->hash.buckets[bucket] - 1;

            if (v->nodes[i].parent == parent
                && v->nodes[i].function == function)
            {
                return i;
            }
        }

        ctx->hash.buckets[bucket] = v->nnodes + 1;
    }

    i = v->nnodes++;

    node = &v->nodes[i];
    node->parent = parent;
    node->function = function;
    node->child = PROF_NONE;
    node->next = PROF_NONE;
    node->depth = 0;

    if (parent != PROF_NONE) {
        node->depth = v->nodes[parent].depth + 1;
    }

    if (node->depth >= v->depth) {
        v->depth = node->depth + 1;
    }

    return i;
}


/*
 * Returns the function where it runs, or below a frame that waits.  It is
 * copied if it does both; the text has one owner.
 */

static uint32_t
prof_view_use(prof_view_ctx_t *ctx, uint32_t function, uint32_t waits)
{
    uint32_t      i, *use;
    prof_view_t  *v;

    v = ctx->view;

    waits |= (ctx->profile->frames[v->functions[function].frame].type
              == PROF_TYPE_WAITING);

    use = &ctx->use[waits][function];

    if (*use == PROF_NONE) {
        i = function;

        if (ctx->use[!waits][function] != PROF_NONE) {
            i = v->nfunctions++;
            v->functions[i] = v->functions[function];
        }

        v->functions[i].waits = waits;

        *use = i;
    }

    return *use;
}


static int
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


/* sorts the functions only, and links the nodes function by function */

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

    v->root = PROF_NONE;

    for (i = 0; i < v->nnodes; i++) {
        v->nodes[i].child = PROF_NONE;

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


static int
prof_view_hash_init(prof_view_hash_t *h, size_t n)
{
    size_t  size;

    /* at most half full */

    for (size = 16; size < n * 2; size *= 2) { /* void */ }

    h->buckets = calloc(size, sizeof(uint32_t));
    if (h->buckets == NULL) {
        return PROF_ERROR;
    }

    h->mask = (uint32_t) (size - 1);

    return PROF_OK;
}
