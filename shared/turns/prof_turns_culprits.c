
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Culprits in a profile: below the frame of a busy worker stand the runs that
 * kept it busy, above the functions that were sampled in them.
 *
 * A sample ends the interval before it.  So its functions belong to the run at
 * the end of the interval, and other runs in the interval have no functions.
 */


#include "base/prof_hash.h"
#include "profile/prof_profile.h"
#include "turns/prof_turns_culprits.h"

#include <stdlib.h>
#include <string.h>


/* culprits with a name; the others share one */
#define PROF_CULPRITS       64

/* frames below that of the busy worker */
#define PROF_CULPRIT_DEPTH  1024


typedef struct {
    prof_profile_t       *profile;
    prof_series_t         series;        /* the new timeline */
    prof_map_t            nodes;         /* parent and frame -> a new node */
    prof_turns_name_pt    name;
    void                 *data;

    uint32_t              frames[PROF_CULPRITS + 1];
    uint32_t              nframes;

    /* the interval that is divided */

    const prof_entry_t   *entry;
    uint32_t              busy;          /* node of the frame */
    uint32_t              below[PROF_CULPRIT_DEPTH];   /* frames, the innermost
                                                          first */
    uint32_t              nbelow;
    uint64_t              left;          /* ns */
    int                   failed;
} prof_culprits_t;


static void prof_culprits_entry(prof_culprits_t *c, prof_turns_cut_t *cut,
    const prof_entry_t *e, uint64_t from);
static void prof_culprits_part(void *data, size_t victim, size_t culprit,
    uint64_t ns);
static prof_entry_t *prof_culprits_add(prof_culprits_t *c, uint32_t node);
static uint32_t prof_culprits_frame(prof_culprits_t *c, size_t culprit);
static uint32_t prof_culprits_text(prof_culprits_t *c, const char *text);
static uint32_t prof_culprits_node(prof_culprits_t *c, uint32_t parent,
    uint32_t frame);
static uint32_t prof_culprits_busy(const prof_profile_t *p, uint32_t node);


int
prof_turns_culprits(prof_profile_t *p, const prof_turns_copy_t *copy,
    prof_turns_name_pt name, void *data)
{
    uint32_t             i, known;
    uint64_t             at, all;
    prof_series_t       *s, old;
    prof_culprits_t     *c;
    prof_turns_cut_t    *cut;
    const prof_entry_t  *e;

    s = &p->series[PROF_SERIES_TIME];
    all = 0;
    known = 0;

    for (i = 0; i < s->n; i++) {
        e = prof_series_entry(s, i);
        all += e->values[PROF_VALUE_WALL];
        known |= prof_culprits_busy(p, e->node) != PROF_NONE;
    }

    if (!known || p->aggregated || p->ended < all) {
        return PROF_OK;
    }

    c = calloc(1, sizeof(prof_culprits_t));
    cut = prof_turns_cut(copy);

    if (c == NULL || cut == NULL) {
        free(c);
        prof_turns_cut_free(cut);
        return PROF_ERROR;
    }

    prof_map_init(&c->nodes);

    c->profile = p;
    c->name = name;
    c->data = data;
    c->series.nvalues = s->nvalues;
    c->series.size = s->size;

    at = p->ended - all;

    for (i = 0; i < s->n && !c->failed; i++) {
        e = prof_series_entry(s, i);
        prof_culprits_entry(c, cut, e, at);
        at += e->values[PROF_VALUE_WALL];
    }

    old = c->failed ? c->series : *s;

    if (!c->failed) {
        *s = c->series;
    }

    prof_series_free(&old);
    prof_map_free(&c->nodes);
    prof_turns_cut_free(cut);

    i = c->failed;
    free(c);

    return i ? PROF_ERROR : PROF_OK;
}


static void
prof_culprits_entry(prof_culprits_t *c, prof_turns_cut_t *cut,
    const prof_entry_t *e, uint64_t from)
{
    uint32_t       node;
    prof_entry_t  *copy;

    c->busy = (e->type == PROF_ENTRY_GAP)
              ? prof_culprits_busy(c->profile, e->node) : PROF_NONE;

    if (c->busy == PROF_NONE || e->values[PROF_VALUE_WALL] == 0) {
        copy = prof_series_add(&c->series);

        if (copy) {
            memcpy(copy, e, c->series.size);

        } else {
            c->failed = 1;
        }

        return;
    }

    c->nbelow = 0;

    for (node = e->node;
         node != c->busy && c->nbelow < PROF_CULPRIT_DEPTH;
         node = c->profile->nodes[node].parent)
    {
        c->below[c->nbelow++] = c->profile->nodes[node].frame;
    }

    c->entry = e;
    c->left = e->values[PROF_VALUE_WALL];

    prof_turns_span(cut, 0, from, from + c->left, prof_culprits_part, c);
}


static void
prof_culprits_part(void *data, size_t victim, size_t culprit, uint64_t ns)
{
    prof_culprits_t *c = data;

    uint32_t       i, node;
    prof_entry_t  *e;

    (void) victim;

    node = prof_culprits_node(c, c->busy, prof_culprits_frame(c, culprit));

    c->left -= ns;

    for (i = (c->left == 0) ? c->nbelow : 0; i; i--) {
        node = prof_culprits_node(c, node, c->below[i - 1]);
    }

    e = prof_culprits_add(c, node);

    if (e) {
        e->values[PROF_VALUE_WALL] += ns;
        e->count += (c->left == 0) ? c->entry->count : 0;
    }
}


/* returns the last entry if it has this node, or a new one */

static prof_entry_t *
prof_culprits_add(prof_culprits_t *c, uint32_t node)
{
    prof_entry_t  *e;

    if (node == PROF_NONE) {
        c->failed = 1;
        return NULL;
    }

    if (c->series.n) {
        e = prof_series_entry(&c->series, c->series.n - 1);

        if (e->node == node && e->labels == c->entry->labels) {
            return e;
        }
    }

    e = prof_series_add(&c->series);

    if (e == NULL) {
        c->failed = 1;
        return NULL;
    }

    e->node = node;
    e->type = PROF_ENTRY_GAP;
    e->labels = c->entry->labels;

    return e;
}


static uint32_t
prof_culprits_frame(prof_culprits_t *c, size_t culprit)
{
    char  text[PROF_TURNS_NAME];

    if (culprit == PROF_TURNS_LOOP) {
        return prof_culprits_text(c, "event loop");
    }

    if (culprit == PROF_TURNS_OVERWRITTEN) {
        return prof_culprits_text(c, "log overwritten");
    }

    c->name(c->data, culprit, text);

    return prof_culprits_text(c, text);
}


static uint32_t
prof_culprits_text(prof_culprits_t *c, const char *text)
{
    uint32_t         i;
    prof_frame_t    *f;
    prof_profile_t  *p;

    p = c->profile;

    for (i = 0; i < c->nframes; i++) {
        if (strcmp(p->frames[c->frames[i]].name, text) == 0) {
            return c->frames[i];
        }
    }

    if (i == PROF_CULPRITS) {
        text = "others";

    } else if (i > PROF_CULPRITS) {
        return c->frames[PROF_CULPRITS];
    }

    f = realloc(p->frames, (p->nframes + 1) * sizeof(prof_frame_t));
    if (f == NULL) {
        return PROF_NONE;
    }

    p->frames = f;
    f += p->nframes;

    memset(f, 0, sizeof(prof_frame_t));

    f->type = PROF_TYPE_STAGE;
    f->object = PROF_NONE;
    f->name = strdup(text);

    if (f->name == NULL) {
        return PROF_NONE;
    }

    c->frames[c->nframes++] = p->nframes;

    return p->nframes++;
}


/* nodes below the frame of a culprit are new ones */

static uint32_t
prof_culprits_node(prof_culprits_t *c, uint32_t parent, uint32_t frame)
{
    uint32_t         node;
    prof_node_t     *nodes;
    prof_profile_t  *p;

    p = c->profile;

    if (parent == PROF_NONE || frame == PROF_NONE) {
        return PROF_NONE;
    }

    node = prof_map_add(&c->nodes, parent, frame, p->nnodes);

    if (node != p->nnodes) {
        return node;
    }

    nodes = realloc(p->nodes, (p->nnodes + 1) * sizeof(prof_node_t));
    if (nodes == NULL) {
        return PROF_NONE;
    }

    p->nodes = nodes;
    p->nodes[node].parent = parent;
    p->nodes[node].frame = frame;
    p->nnodes++;

    return node;
}


/* returns the node of the frame of a busy worker at the node or above it */

static uint32_t
prof_culprits_busy(const prof_profile_t *p, uint32_t node)
{
    uint32_t             up;
    const prof_frame_t  *f, *outer;

    for ( /* void */ ; node != PROF_NONE; node = up) {

        up = p->nodes[node].parent;

        if (up == PROF_NONE) {
            break;
        }

        f = &p->frames[p->nodes[node].frame];
        outer = &p->frames[p->nodes[up].frame];

        if (outer->type == PROF_TYPE_WAITING && f->name
            && strncmp(f->name, PROF_TURNS_BUSY, sizeof(PROF_TURNS_BUSY) - 1)
               == 0)
        {
            return node;
        }
    }

    return PROF_NONE;
}
