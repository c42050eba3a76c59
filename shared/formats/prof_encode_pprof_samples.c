
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Samples are sums: of the entries of one stack, state and set of labels, or
 * of the allocations of one stack and set.  They are sorted to find them.
 *
 * Labels become series in databases: of the facts only those with few values
 * are labels.
 */


#include "formats/prof_encode_pprof.h"

#include <stdlib.h>
#include <string.h>


#define PROF_PPROF_STATES  2


/* what the samples of a profile have in common */

typedef struct {
    prof_pprof_t  *e;
    Prof__Label    state[PROF_PPROF_STATES];

    /* a sample: its own labels, and those of the profile */

    Prof__Label    own[PROF_MAX_LABELS];
    Prof__Label   *label[1 + PROF_MAX_LABELS + PROF_PPROF_LABELS];
} prof_pprof_ctx_t;


static void prof_pprof_facts(prof_pprof_ctx_t *ctx);
static void prof_pprof_entries(prof_pprof_ctx_t *ctx);
static int prof_pprof_entry_cmp(const void *one, const void *two, void *data);
static void prof_pprof_allocs(prof_pprof_ctx_t *ctx);
static int prof_pprof_alloc_cmp(const void *one, const void *two, void *data);
static void prof_pprof_sample(prof_pprof_ctx_t *ctx, uint32_t node,
    uint32_t labels, Prof__Label *state, const uint64_t *sums, uint32_t n);
static size_t prof_pprof_labels(prof_pprof_ctx_t *ctx, uint32_t labels,
    Prof__Label *state);
static int prof_pprof_has_label(prof_pprof_ctx_t *ctx, int64_t key,
    uint32_t n);
static size_t prof_pprof_stack(prof_pprof_t *e, uint32_t node);


void
prof_encode_pprof_samples(prof_pprof_t *e)
{
    prof_pprof_ctx_t  ctx;

    ctx.e = e;

    prof_pprof_facts(&ctx);

    if (e->profile->mode == PROF_MODE_OBJECT) {
        prof_pprof_allocs(&ctx);

    } else {
        prof_pprof_entries(&ctx);
    }
}


static void
prof_pprof_facts(prof_pprof_ctx_t *ctx)
{
    uint32_t            i;
    Prof__Label        *label;
    prof_pprof_t       *e;
    const prof_fact_t  *fact;

    e = ctx->e;

    for (i = 0; i < e->profile->nfacts; i++) {
        fact = &e->profile->facts[i];

        if (!fact->label || fact->value[0] == '\0'
            || e->nlabels == PROF_PPROF_LABELS)
        {
            continue;
        }

        label = &e->labels[e->nlabels++];

        prof__label__init(label);
        label->key = prof_strings_add(&e->strings, fact->name);
        label->str = prof_strings_add(&e->strings, fact->value);
    }
}


static void
prof_pprof_entries(prof_pprof_ctx_t *ctx)
{
    uint32_t               i, n, *order;
    uint64_t               sum[3];
    prof_pprof_t          *e;
    const prof_entry_t    *entry;
    const prof_profile_t  *p;

    e = ctx->e;
    p = e->profile;
    order = e->order;

    prof__label__init(&ctx->state[0]);
    ctx->state[0].key = prof_strings_add(&e->strings, "state");
    ctx->state[0].str = prof_strings_add(&e->strings, "running");

    ctx->state[1] = ctx->state[0];
    ctx->state[1].str = prof_strings_add(&e->strings, "waiting");

    for (i = 0; i < p->nentries; i++) {
        order[i] = i;
    }

    qsort_r(order, p->nentries, sizeof(uint32_t), prof_pprof_entry_cmp, e);

    memset(sum, 0, sizeof(sum));

    n = p->mode == PROF_MODE_CPU ? 2 : 3;

    for (i = 0; i < p->nentries; i++) {
        entry = &p->entries[order[i]];

        sum[0] += entry->count;
        sum[1] += entry->cpu;
        sum[2] += entry->wall;

        if (i + 1 < p->nentries
            && prof_pprof_entry_cmp(&order[i], &order[i + 1], e) == 0)
        {
            continue;
        }

        prof_pprof_sample(ctx, entry->node, entry->labels,
                          &ctx->state[entry->kind == PROF_ENTRY_GAP], sum, n);

        memset(sum, 0, sizeof(sum));
    }
}


static int
prof_pprof_entry_cmp(const void *one, const void *two, void *data)
{
    prof_pprof_t *e = data;

    int                  gap1, gap2;
    const prof_entry_t  *e1, *e2;

    e1 = &e->profile->entries[*(const uint32_t *) one];
    e2 = &e->profile->entries[*(const uint32_t *) two];

    if (e1->node != e2->node) {
        return e1->node < e2->node ? -1 : 1;
    }

    if (e1->labels != e2->labels) {
        return e1->labels < e2->labels ? -1 : 1;
    }

    gap1 = e1->kind == PROF_ENTRY_GAP;
    gap2 = e2->kind == PROF_ENTRY_GAP;

    return gap1 - gap2;
}


static void
prof_pprof_allocs(prof_pprof_ctx_t *ctx)
{
    uint32_t               i, *order;
    uint64_t               sum[4];
    prof_pprof_t          *e;
    const prof_alloc_t    *a;
    const prof_profile_t  *p;

    e = ctx->e;
    p = e->profile;
    order = e->order;

    for (i = 0; i < p->nallocs; i++) {
        order[i] = i;
    }

    qsort_r(order, p->nallocs, sizeof(uint32_t), prof_pprof_alloc_cmp, e);

    memset(sum, 0, sizeof(sum));

    for (i = 0; i < p->nallocs; i++) {
        a = &p->allocs[order[i]];

        sum[0] += a->alloc_objects;
        sum[1] += a->alloc_space;
        sum[2] += a->inuse_objects;
        sum[3] += a->inuse_space;

        if (i + 1 < p->nallocs
            && prof_pprof_alloc_cmp(&order[i], &order[i + 1], e) == 0)
        {
            continue;
        }

        prof_pprof_sample(ctx, a->node, a->labels, NULL, sum, 4);

        memset(sum, 0, sizeof(sum));
    }
}


static int
prof_pprof_alloc_cmp(const void *one, const void *two, void *data)
{
    prof_pprof_t *e = data;

    const prof_alloc_t  *a1, *a2;

    a1 = &e->profile->allocs[*(const uint32_t *) one];
    a2 = &e->profile->allocs[*(const uint32_t *) two];

    if (a1->node != a2->node) {
        return a1->node < a2->node ? -1 : 1;
    }

    return a1->labels < a2->labels ? -1 : a1->labels > a2->labels;
}


static void
prof_pprof_sample(prof_pprof_ctx_t *ctx, uint32_t node, uint32_t labels,
    Prof__Label *state, const uint64_t *sums, uint32_t n)
{
    int64_t        values[PROF_PPROF_VALUES];
    uint32_t       i;
    uint64_t       any;
    Prof__Sample   s, *sample;
    Prof__Profile  part;

    sample = &s;
    any = 0;

    for (i = 0; i < n; i++) {
        values[i] = prof_encode_pprof_int(sums[i]);
        any |= sums[i];
    }

    if (any == 0) {
        return;
    }

    prof__sample__init(&s);

    s.n_location_id = prof_pprof_stack(ctx->e, node);
    s.location_id = ctx->e->stack;
    s.n_value = n;
    s.value = values;
    s.n_label = prof_pprof_labels(ctx, labels, state);
    s.label = ctx->label;

    prof__profile__init(&part);
    part.n_sample = 1;
    part.sample = &sample;

    prof_encode_pprof_write(ctx->e, &part);
}


/* one that is the sample's own replaces that of the profile */

static size_t
prof_pprof_labels(prof_pprof_ctx_t *ctx, uint32_t labels, Prof__Label *state)
{
    uint32_t             i, n, own;
    Prof__Label         *label;
    prof_pprof_t        *e;
    const prof_label_t  *l;

    e = ctx->e;
    n = 0;

    if (state) {
        ctx->label[n++] = state;
    }

    for (own = 0;
         labels != PROF_NONE && own < PROF_MAX_LABELS;
         labels = e->profile->labels[labels].rest)
    {
        l = &e->profile->labels[labels];
        label = &ctx->own[own++];

        prof__label__init(label);
        label->key = prof_strings_add(&e->strings, l->name);

        if (l->unit) {
            label->num = prof_encode_pprof_int(strtoull(l->value, NULL, 10));
            label->num_unit = prof_strings_add(&e->strings, l->unit);

        } else {
            label->str = prof_strings_add(&e->strings, l->value);
        }

        ctx->label[n++] = label;
    }

    own = n;

    for (i = 0; i < e->nlabels; i++) {
        if (!prof_pprof_has_label(ctx, e->labels[i].key, own)) {
            ctx->label[n++] = &e->labels[i];
        }
    }

    return n;
}


static int
prof_pprof_has_label(prof_pprof_ctx_t *ctx, int64_t key, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (ctx->label[i]->key == key) {
            return 1;
        }
    }

    return 0;
}


static size_t
prof_pprof_stack(prof_pprof_t *e, uint32_t node)
{
    size_t              n;
    uint32_t            i;
    uint64_t           *stack;
    const prof_node_t  *nodes;

    nodes = e->profile->nodes;
    n = 0;

    for (i = node; i != PROF_NONE; i = nodes[i].parent) {
        n++;
    }

    if (n > e->depth) {
        stack = realloc(e->stack, 2 * n * sizeof(uint64_t));
        if (stack == NULL) {
            e->strings.failed = 1;
            return 0;
        }

        e->stack = stack;
        e->depth = 2 * n;
    }

    n = 0;

    for (i = node; i != PROF_NONE; i = nodes[i].parent) {
        e->stack[n++] = (uint64_t) nodes[i].frame + 1;
    }

    return n;
}
