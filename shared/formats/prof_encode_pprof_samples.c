
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Samples are sums of the entries of one stack, state and set of labels.
 * Entries are sorted to find them.
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
static uint32_t prof_pprof_add(const prof_mode_t *mode,
    const prof_entry_t *entry, uint64_t *sum);
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
    prof_pprof_entries(&ctx);
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
    uint32_t              i, n, *order;
    uint64_t              sum[PROF_PPROF_VALUES];
    Prof__Label          *state;
    prof_pprof_t         *e;
    const prof_mode_t    *mode;
    const prof_entry_t   *entry;
    const prof_series_t  *s;

    e = ctx->e;
    mode = &prof_modes[e->profile->mode];
    s = &e->profile->series[mode->series];
    order = e->order;

    prof__label__init(&ctx->state[0]);
    ctx->state[1] = ctx->state[0];

    if (mode->series == PROF_SERIES_TIME) {
        ctx->state[0].key = prof_strings_add(&e->strings, "state");
        ctx->state[1].key = ctx->state[0].key;
        ctx->state[0].str = prof_strings_add(&e->strings, "running");
        ctx->state[1].str = prof_strings_add(&e->strings, "waiting");
    }

    for (i = 0; i < s->n; i++) {
        order[i] = i;
    }

    qsort_r(order, s->n, sizeof(uint32_t), prof_pprof_entry_cmp, (void *) s);

    memset(sum, 0, sizeof(sum));

    for (i = 0; i < s->n; i++) {
        entry = prof_series_entry(s, order[i]);

        n = prof_pprof_add(mode, entry, sum);

        if (i + 1 < s->n
            && prof_pprof_entry_cmp(&order[i], &order[i + 1], (void *) s) == 0)
        {
            continue;
        }

        state = &ctx->state[entry->kind == PROF_ENTRY_GAP];

        prof_pprof_sample(ctx, entry->node, entry->labels,
                          state->key ? state : NULL, sum, n);

        memset(sum, 0, sizeof(sum));
    }
}


static uint32_t
prof_pprof_add(const prof_mode_t *mode, const prof_entry_t *entry,
    uint64_t *sum)
{
    uint32_t  i, n;

    n = 0;

    if (prof_series_desc[mode->series].counted) {
        sum[n++] += entry->count;
    }

    for (i = 0; mode->measures[i] != PROF_NONE; i++) {
        sum[n++] += entry->values[prof_measures[mode->measures[i]].value];
    }

    return n;
}


static int
prof_pprof_entry_cmp(const void *one, const void *two, void *data)
{
    const prof_series_t *s = data;

    int                  gap1, gap2;
    const prof_entry_t  *e1, *e2;

    e1 = prof_series_entry(s, *(const uint32_t *) one);
    e2 = prof_series_entry(s, *(const uint32_t *) two);

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
