
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Merges the call trees and the entries of profiles.
 */


#include "profile/prof_merge_code.h"

#include <string.h>


/* flag in node[]: the stack was cut at this node of the result */

#define PROF_MERGE_CUT  0x80000000


static uint32_t prof_merge_node(prof_merge_t *m, uint32_t parent,
    uint32_t frame);
static int prof_merge_add_node(prof_merge_t *m, uint32_t parent,
    uint32_t frame);
static uint32_t prof_merge_full(prof_merge_t *m);
static int prof_merge_entry(prof_merge_t *m, uint32_t series,
    const prof_entry_t *e, uint32_t base);


int
prof_merge_labels(prof_merge_t *m, const prof_profile_t *p, uint32_t base)
{
    uint32_t             i, rest;
    const prof_label_t  *label;

    for (i = 0; i < p->nlabels; i++) {
        label = &p->labels[i];

        rest = label->rest == PROF_NONE ? base : m->label[label->rest];

        m->label[i] = prof_profile_labels(m->profile, rest, label->name,
                                          label->value, label->unit);

        if (m->label[i] == PROF_NONE) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


int
prof_merge_nodes(prof_merge_t *m, const prof_profile_t *p)
{
    uint32_t            i, parent;
    const prof_node_t  *node;

    for (i = 0; i < p->nnodes; i++) {
        node = &p->nodes[i];

        parent = node->parent == PROF_NONE ? PROF_NONE
                                           : m->node[node->parent];

        m->node[i] = prof_merge_node(m, parent, m->frame[node->frame]);

        if (m->node[i] == PROF_NONE) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


static uint32_t
prof_merge_node(prof_merge_t *m, uint32_t parent, uint32_t frame)
{
    uint32_t  i, n;
    uint64_t  key;

    if (parent != PROF_NONE && (parent & PROF_MERGE_CUT)) {
        return parent;
    }

    n = m->profile->nnodes;
    key = (uint64_t) parent << 32 | frame;

    if (n < PROF_MERGE_NODES) {
        i = prof_map_add(&m->nodes, key, 0, n);

        if (i == n && prof_merge_add_node(m, parent, frame) != PROF_OK) {
            return PROF_NONE;
        }

        return i;
    }

    i = prof_map_find(&m->nodes, key, 0);

    if (i != UINT32_MAX) {
        return i;
    }

    if (parent == PROF_NONE) {
        parent = prof_merge_full(m);
    }

    return parent == PROF_NONE ? PROF_NONE : parent | PROF_MERGE_CUT;
}


static int
prof_merge_add_node(prof_merge_t *m, uint32_t parent, uint32_t frame)
{
    void            *array;
    prof_profile_t  *to;

    to = m->profile;

    array = prof_merge_grow(to->nodes, to->nnodes, sizeof(prof_node_t));
    if (array == NULL) {
        return PROF_ERROR;
    }

    to->nodes = array;
    to->nodes[to->nnodes].parent = parent;
    to->nodes[to->nnodes].frame = frame;
    to->nnodes++;

    return PROF_OK;
}


/* space for this root is always reserved */

static uint32_t
prof_merge_full(prof_merge_t *m)
{
    uint32_t      frame;
    prof_frame_t  note;

    static char  text[] = "[call tree full]";

    if (m->full != PROF_NONE) {
        return m->full;
    }

    memset(&note, 0, sizeof(prof_frame_t));

    note.type = PROF_TYPE_NOTE;
    note.object = PROF_NONE;
    note.name = text;

    frame = prof_merge_frame(m, NULL, &note);

    if (frame == PROF_NONE
        || prof_merge_add_node(m, PROF_NONE, frame) != PROF_OK)
    {
        return PROF_NONE;
    }

    m->full = m->profile->nnodes - 1;

    return m->full;
}


int
prof_merge_entries(prof_merge_t *m, const prof_profile_t *p, uint32_t base)
{
    uint32_t  i, s;

    for (s = 0; s < PROF_SERIES_MAX; s++) {

        for (i = 0; i < p->series[s].n; i++) {

            if (prof_merge_entry(m, s, prof_series_entry(&p->series[s], i),
                                 base)
                != PROF_OK)
            {
                return PROF_ERROR;
            }
        }
    }

    return PROF_OK;
}


static int
prof_merge_entry(prof_merge_t *m, uint32_t series, const prof_entry_t *e,
    uint32_t base)
{
    uint32_t         i, k, labels, node;
    prof_entry_t    *to;
    prof_series_t   *s;
    prof_profile_t  *out;

    out = m->profile;
    s = &out->series[series];

    node = m->node[e->node];

    if (node & PROF_MERGE_CUT) {
        node &= ~PROF_MERGE_CUT;
        out->stats.lost_tree += e->count;
    }

    labels = e->labels == PROF_NONE ? base : m->label[e->labels];

    i = s->n;

    if (!prof_series_desc[series].ordered
        || !(m->flags & PROF_MERGE_TIMELINES))
    {
        i = prof_map_add(&m->entries[series], (uint64_t) node << 32 | labels,
                         e->type, i);
        if (i == UINT32_MAX) {
            return PROF_ERROR;
        }
    }

    if (i == s->n) {
        to = prof_series_add(s);
        if (to == NULL) {
            return PROF_ERROR;
        }

    } else {
        to = prof_series_entry(s, i);
    }

    to->node = node;
    to->type = e->type;
    to->labels = labels;
    to->count = e->count < UINT32_MAX - to->count ? to->count + e->count
                                                  : UINT32_MAX;

    for (k = 0; k < s->nvalues; k++) {
        to->values[k] += e->values[k];
    }

    return PROF_OK;
}
