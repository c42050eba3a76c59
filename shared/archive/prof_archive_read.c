
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Archives are not trusted: each index is checked where it is read.
 */


#include "archive/prof_archive.h"
#include "archive/prof_archive_in.h"

#include <stdlib.h>
#include <string.h>


/* the smallest size of an item in bytes */

#define PROF_ARCHIVE_FACT     3
#define PROF_ARCHIVE_OBJECT   6
#define PROF_ARCHIVE_INLINE   4
#define PROF_ARCHIVE_FRAME    12
#define PROF_ARCHIVE_NODE     2
#define PROF_ARCHIVE_LABEL    4
#define PROF_ARCHIVE_ENTRY    4     /* without its values */

/*
 * The largest depth of a stack: sampled frames, and frames that captures add.
 * Time and output of encoders grow with the depth of each node.
 */

#define PROF_ARCHIVE_DEPTH    (2 * PROF_MAX_DEPTH)


static void prof_archive_content(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_head(prof_archive_in_t *in, prof_profile_t *p);
static uint32_t prof_archive_measure(prof_archive_in_t *in);
static void prof_archive_stats(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_facts(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_objects(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_inlines(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_frames(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_nodes(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_labels(prof_archive_in_t *in, prof_profile_t *p);
static int prof_archive_series(prof_archive_in_t *in, prof_profile_t *p);
static void prof_archive_entries(prof_archive_in_t *in, prof_profile_t *p,
    prof_series_t *s);
static void prof_archive_turns(prof_archive_in_t *in, prof_profile_t *p);
static int prof_archive_is(prof_archive_in_t *in, const char *want);


prof_profile_t *
prof_archive_read(const void *data, size_t len, const char **err)
{
    prof_profile_t     *p;
    prof_archive_in_t   in;

    p = NULL;

    if (prof_archive_in_open(&in, data, len) == PROF_OK) {

        p = prof_profile_create("");

        if (p) {
            prof_archive_content(&in, p);

        } else {
            prof_archive_in_fail(&in, PROF_ARCHIVE_MEMORY);
        }
    }

    prof_archive_in_close(&in);

    if (in.err) {
        prof_profile_destroy(p);
        p = NULL;
    }

    if (err) {
        *err = in.err;
    }

    return p;
}


static void
prof_archive_content(prof_archive_in_t *in, prof_profile_t *p)
{
    prof_archive_head(in, p);
    prof_archive_stats(in, p);
    prof_archive_facts(in, p);
    prof_archive_objects(in, p);
    prof_archive_inlines(in, p);
    prof_archive_frames(in, p);
    prof_archive_nodes(in, p);
    prof_archive_labels(in, p);

    while (prof_archive_series(in, p)) { /* void */ }

    prof_archive_turns(in, p);

    if (in->pos != in->last) {
        prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
    }
}


static void
prof_archive_head(prof_archive_in_t *in, prof_profile_t *p)
{
    free(p->title);

    p->title = prof_archive_in_some(in);
    p->scope = prof_archive_in_text(in);
    p->mode = prof_archive_in_below(in, PROF_MODE_MAX);
    p->start_realtime = prof_archive_in_number(in);
    p->frequency = prof_archive_in_below(in, (uint64_t) UINT32_MAX + 1);
    p->frequency_end = prof_archive_in_below(in, (uint64_t) UINT32_MAX + 1);
    p->duration = prof_archive_in_number(in);
    p->wall = prof_archive_in_number(in);
    p->running = prof_archive_in_number(in);
    p->cpu = prof_archive_in_number(in);
    p->alloc_interval = prof_archive_in_number(in);
    p->peak_objects = prof_archive_in_number(in);
    p->peak_space = prof_archive_in_number(in);
    p->first = prof_archive_measure(in);
    p->aggregated = prof_archive_in_below(in, 2);
}


/* without a name, the measure is PROF_NONE */

static uint32_t
prof_archive_measure(prof_archive_in_t *in)
{
    char      *name;
    uint32_t   m;

    name = prof_archive_in_text(in);
    if (name == NULL) {
        return PROF_NONE;
    }

    for (m = 0; m < PROF_MEASURE_MAX; m++) {
        if (strcmp(prof_measures[m].name, name) == 0) {
            free(name);
            return m;
        }
    }

    free(name);

    prof_archive_in_fail(in, PROF_ARCHIVE_OTHER);

    return PROF_NONE;
}


/* unknown counters are skipped */

static void
prof_archive_stats(prof_archive_in_t *in, prof_profile_t *p)
{
    char                     *name;
    uint64_t                  n;
    const prof_stats_desc_t  *d;

    for ( ;; ) {
        name = prof_archive_in_text(in);
        n = name ? prof_archive_in_number(in) : 0;

        if (name == NULL || in->err) {
            free(name);
            return;
        }

        for (d = prof_stats_desc; d->name; d++) {
            if (strcmp(d->name, name) == 0) {
                memcpy((char *) &p->stats + d->offset, &n, sizeof(n));
            }
        }

        free(name);
    }
}


static void
prof_archive_facts(prof_archive_in_t *in, prof_profile_t *p)
{
    uint32_t      i;
    prof_fact_t  *fact;

    p->facts = prof_archive_in_array(in, &p->nfacts, PROF_ARCHIVE_FACT,
                                  sizeof(prof_fact_t));

    for (i = 0; i < p->nfacts && in->err == NULL; i++) {
        fact = &p->facts[i];

        fact->name = prof_archive_in_some(in);
        fact->value = prof_archive_in_some(in);
        fact->label = prof_archive_in_below(in, 2);
    }
}


static void
prof_archive_objects(prof_archive_in_t *in, prof_profile_t *p)
{
    uint32_t                i;
    prof_profile_object_t  *o;

    p->objects = prof_archive_in_array(in, &p->nobjects, PROF_ARCHIVE_OBJECT,
                                    sizeof(prof_profile_object_t));

    for (i = 0; i < p->nobjects && in->err == NULL; i++) {
        o = &p->objects[i];

        o->path = prof_archive_in_some(in);
        o->build_id = prof_archive_in_some(in);
        o->start = prof_archive_in_number(in);
        o->end = prof_archive_in_number(in);
        o->offset = prof_archive_in_number(in);
        o->base = prof_archive_in_number(in);
    }
}


static void
prof_archive_inlines(prof_archive_in_t *in, prof_profile_t *p)
{
    uint32_t        i;
    prof_inline_t  *l;

    p->inlines = prof_archive_in_array(in, &p->ninlines, PROF_ARCHIVE_INLINE,
                                    sizeof(prof_inline_t));

    for (i = 0; i < p->ninlines && in->err == NULL; i++) {
        l = &p->inlines[i];

        l->name = prof_archive_in_some(in);
        l->file = prof_archive_in_text(in);
        l->line = prof_archive_in_below(in, (uint64_t) UINT32_MAX + 1);
        l->start_line = prof_archive_in_below(in, (uint64_t) UINT32_MAX + 1);
    }
}


static void
prof_archive_frames(prof_archive_in_t *in, prof_profile_t *p)
{
    uint32_t       i;
    prof_frame_t  *f;

    p->frames = prof_archive_in_array(in, &p->nframes, PROF_ARCHIVE_FRAME,
                                   sizeof(prof_frame_t));

    for (i = 0; i < p->nframes && in->err == NULL; i++) {
        f = &p->frames[i];

        f->type = prof_archive_in_below(in, PROF_TYPE_MAX);
        f->source = prof_archive_in_below(in, PROF_SOURCE_MAX);
        f->object = prof_archive_in_index(in, p->nobjects);
        f->pc = prof_archive_in_number(in);
        f->function = prof_archive_in_number(in);
        f->function_len = prof_archive_in_number(in);
        f->name = prof_archive_in_text(in);
        f->file = prof_archive_in_text(in);
        f->line = prof_archive_in_below(in, (uint64_t) UINT32_MAX + 1);
        f->start_line = prof_archive_in_below(in, (uint64_t) UINT32_MAX + 1);
        f->inlines = prof_archive_in_below(in, (uint64_t) p->ninlines + 1);
        f->ninlines = prof_archive_in_below(in, PROF_MAX_INLINES + 1);

        if (f->ninlines > p->ninlines - f->inlines) {
            prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
            f->ninlines = 0;
        }
    }
}


static void
prof_archive_nodes(prof_archive_in_t *in, prof_profile_t *p)
{
    uint16_t     *depth;
    uint32_t      i;
    prof_node_t  *node;

    p->nodes = prof_archive_in_array(in, &p->nnodes, PROF_ARCHIVE_NODE,
                                  sizeof(prof_node_t));

    depth = calloc((size_t) p->nnodes + 1, sizeof(uint16_t));

    if (depth == NULL) {
        prof_archive_in_fail(in, PROF_ARCHIVE_MEMORY);
    }

    for (i = 0; i < p->nnodes && in->err == NULL; i++) {
        node = &p->nodes[i];

        node->parent = prof_archive_in_back(in, i);
        node->frame = prof_archive_in_below(in, p->nframes);

        depth[i] = node->parent == PROF_NONE ? 1 : depth[node->parent] + 1;

        if (depth[i] > PROF_ARCHIVE_DEPTH) {
            prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
        }
    }

    free(depth);
}


static void
prof_archive_labels(prof_archive_in_t *in, prof_profile_t *p)
{
    uint32_t       i, k, n;
    prof_label_t  *label;

    p->labels = prof_archive_in_array(in, &p->nlabels, PROF_ARCHIVE_LABEL,
                                   sizeof(prof_label_t));

    for (i = 0; i < p->nlabels && in->err == NULL; i++) {
        label = &p->labels[i];

        label->rest = prof_archive_in_back(in, i);
        label->name = prof_archive_in_some(in);
        label->value = prof_archive_in_some(in);
        label->unit = prof_archive_in_text(in);

        n = 1;

        for (k = label->rest; k != PROF_NONE; k = p->labels[k].rest) {
            if (++n > PROF_MAX_LABELS) {
                prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
                return;
            }
        }
    }
}


/* reads a series; returns 0 after the last one, and after an error */

static int
prof_archive_series(prof_archive_in_t *in, prof_profile_t *p)
{
    char      *name;
    uint32_t   i, m;

    name = prof_archive_in_text(in);
    if (name == NULL) {
        return 0;
    }

    for (i = 0; i < PROF_SERIES_MAX; i++) {
        if (strcmp(prof_series_desc[i].name, name) == 0) {
            break;
        }
    }

    free(name);

    for (m = 0; i < PROF_SERIES_MAX && m < PROF_MEASURE_MAX; m++) {

        if (prof_measures[m].series == i
            && !prof_archive_is(in, prof_measures[m].name))
        {
            i = PROF_SERIES_MAX;
        }
    }

    if (i == PROF_SERIES_MAX || !prof_archive_is(in, NULL)) {
        prof_archive_in_fail(in, PROF_ARCHIVE_OTHER);
        return 0;
    }

    if (p->series[i].entries) {
        prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
        return 0;
    }

    prof_archive_entries(in, p, &p->series[i]);

    return in->err == NULL;
}


/* returns whether the next text is "want" */

static int
prof_archive_is(prof_archive_in_t *in, const char *want)
{
    int    rc;
    char  *text;

    text = prof_archive_in_text(in);

    rc = (text && want) ? strcmp(text, want) == 0 : text == want;

    free(text);

    return rc;
}


static void
prof_archive_entries(prof_archive_in_t *in, prof_profile_t *p,
    prof_series_t *s)
{
    uint32_t       i, k;
    uint64_t       last, node;
    prof_entry_t  *e;

    s->entries = prof_archive_in_array(in, &s->n,
                                       PROF_ARCHIVE_ENTRY + s->nvalues,
                                       s->size);

    node = 0;

    for (i = 0; i < s->n && in->err == NULL; i++) {
        e = prof_series_entry(s, i);

        node += prof_archive_in_signed(in);

        if (node >= p->nnodes) {
            prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
        }

        e->node = (uint32_t) node;
        e->type = prof_archive_in_below(in, PROF_ENTRY_GAP + 1);
        e->labels = prof_archive_in_index(in, p->nlabels);
        e->count = prof_archive_in_below(in, (uint64_t) UINT32_MAX + 1);

        last = 0;

        for (k = 0; k < s->nvalues; k++) {
            last += prof_archive_in_signed(in);
            e->values[k] = last;
        }
    }
}


static void
prof_archive_turns(prof_archive_in_t *in, prof_profile_t *p)
{
    uint32_t  len;

    if (in->pos == in->last) {
        return;
    }

    p->turns = prof_archive_in_array(in, &len, 1, 1);

    if (p->turns) {
        memcpy(p->turns, in->pos, len);
        in->pos += len;
        p->turns_len = len;
    }
}
