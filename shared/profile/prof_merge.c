
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "profile/prof_merge.h"
#include "profile/prof_merge_code.h"

#include <stdlib.h>
#include <string.h>


static int prof_merge_init(prof_merge_t *m, const prof_profile_t *p);
static int prof_merge_facts(prof_merge_t *m, const prof_profile_t *p);
static int prof_merge_has_fact(const prof_profile_t *p,
    const prof_fact_t *fact);
static void prof_merge_times(prof_merge_t *m, const prof_profile_t *p);


prof_merge_t *
prof_merge_create(const char *title, uint32_t flags)
{
    uint32_t       i;
    prof_merge_t  *m;

    m = calloc(1, sizeof(prof_merge_t));
    if (m == NULL) {
        return NULL;
    }

    m->profile = prof_profile_create(title);
    if (m->profile == NULL) {
        free(m);
        return NULL;
    }

    m->flags = flags;
    m->full = PROF_NONE;

    prof_map_init(&m->frames);
    prof_map_init(&m->names);
    prof_map_init(&m->nodes);

    for (i = 0; i < PROF_SERIES_MAX; i++) {
        prof_map_init(&m->entries[i]);
    }

    return m;
}


void
prof_merge_destroy(prof_merge_t *m)
{
    if (m) {
        prof_profile_destroy(prof_merge_finish(m));
    }
}


prof_profile_t *
prof_merge_finish(prof_merge_t *m)
{
    uint32_t         i;
    prof_profile_t  *p;

    p = m->profile;

    prof_map_free(&m->frames);
    prof_map_free(&m->names);
    prof_map_free(&m->nodes);

    for (i = 0; i < PROF_SERIES_MAX; i++) {
        prof_map_free(&m->entries[i]);
    }

    free(m->object);
    free(m->frame);
    free(m->node);
    free(m->label);
    free(m);

    return p;
}


prof_profile_t *
prof_profile_merge(const prof_profile_t *const *profiles,
    const prof_merge_label_t *labels, uint32_t n, const char *title,
    uint32_t flags)
{
    uint32_t       i;
    prof_merge_t  *m;

    m = prof_merge_create(title, flags);

    for (i = 0; m && i < n; i++) {

        if (prof_merge_add(m, profiles[i], labels ? &labels[i] : NULL,
                           labels != NULL)
            != PROF_OK)
        {
            prof_merge_destroy(m);
            return NULL;
        }
    }

    return m ? prof_merge_finish(m) : NULL;
}


int
prof_merge_add(prof_merge_t *m, const prof_profile_t *p,
    const prof_merge_label_t *labels, uint32_t n)
{
    uint32_t  base, i;

    base = PROF_NONE;

    for (i = 0; labels && i < n; i++) {
        base = prof_profile_labels(m->profile, base, labels[i].name,
                                   labels[i].value, labels[i].unit);
        if (base == PROF_NONE) {
            return PROF_ERROR;
        }
    }

    if (prof_merge_init(m, p) != PROF_OK
        || prof_merge_facts(m, p) != PROF_OK
        || prof_merge_objects(m, p) != PROF_OK
        || prof_merge_frames(m, p) != PROF_OK
        || prof_merge_labels(m, p, base) != PROF_OK
        || prof_merge_nodes(m, p) != PROF_OK
        || prof_merge_entries(m, p, base) != PROF_OK)
    {
        return PROF_ERROR;
    }

    prof_merge_times(m, p);

    m->n++;

    return PROF_OK;
}


static int
prof_merge_init(prof_merge_t *m, const prof_profile_t *p)
{
    free(m->object);
    free(m->frame);
    free(m->node);
    free(m->label);

    m->object = malloc(((size_t) p->nobjects + 1) * sizeof(uint32_t));
    m->frame = malloc(((size_t) p->nframes + 1) * sizeof(uint32_t));
    m->node = malloc(((size_t) p->nnodes + 1) * sizeof(uint32_t));
    m->label = malloc(((size_t) p->nlabels + 1) * sizeof(uint32_t));

    if (m->object == NULL || m->frame == NULL || m->node == NULL
        || m->label == NULL)
    {
        return PROF_ERROR;
    }

    return PROF_OK;
}


static int
prof_merge_facts(prof_merge_t *m, const prof_profile_t *p)
{
    uint32_t         i, n;
    prof_fact_t     *fact;
    prof_profile_t  *to;

    to = m->profile;

    if (m->n == 0) {

        for (i = 0; i < p->nfacts; i++) {
            fact = &p->facts[i];

            if (prof_profile_fact(to, fact->name, fact->value,
                                  strlen(fact->value))
                != PROF_OK)
            {
                return PROF_ERROR;
            }

            to->facts[i].label = fact->label;
        }

        return PROF_OK;
    }

    n = 0;

    for (i = 0; i < to->nfacts; i++) {

        if (prof_merge_has_fact(p, &to->facts[i])) {
            to->facts[n++] = to->facts[i];

        } else {
            free(to->facts[i].name);
            free(to->facts[i].value);
        }
    }

    to->nfacts = n;

    return PROF_OK;
}


static int
prof_merge_has_fact(const prof_profile_t *p, const prof_fact_t *fact)
{
    uint32_t  i;

    for (i = 0; i < p->nfacts; i++) {
        if (strcmp(p->facts[i].name, fact->name) == 0
            && strcmp(p->facts[i].value, fact->value) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static void
prof_merge_times(prof_merge_t *m, const prof_profile_t *p)
{
    uint64_t                  end, n;
    prof_profile_t           *to;
    const prof_stats_desc_t  *d;

    to = m->profile;

    if (m->n == 0) {
        to->mode = p->mode;
        to->first = p->first;
        to->start_realtime = p->start_realtime;
        to->frequency_end = p->frequency_end;
    }

    if (p->start_realtime < to->start_realtime) {
        to->start_realtime = p->start_realtime;
    }

    if (p->frequency > to->frequency) {
        to->frequency = p->frequency;
    }

    if (p->frequency_end < to->frequency_end) {
        to->frequency_end = p->frequency_end;
    }

    if (p->alloc_interval > to->alloc_interval) {
        to->alloc_interval = p->alloc_interval;
    }

    end = p->start_realtime + (p->duration ? p->duration : p->wall);

    if (end > m->end) {
        m->end = end;
    }

    to->duration = m->end - to->start_realtime;

    to->wall += p->wall;
    to->running += p->running;
    to->cpu += p->cpu;
    to->peak_objects += p->peak_objects;
    to->peak_space += p->peak_space;

    to->aggregated = !(m->flags & PROF_MERGE_TIMELINES)
                     || to->aggregated || p->aggregated;

    for (d = prof_stats_desc; d->name; d++) {
        n = prof_stats_get(&to->stats, d) + prof_stats_get(&p->stats, d);
        memcpy((char *) &to->stats + d->offset, &n, sizeof(n));
    }
}
