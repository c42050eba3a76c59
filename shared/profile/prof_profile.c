
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Owns the memory of a profile.  Each array and each string is malloc()ed, so
 * that captures and tests can build a profile with plain libc calls.  Only the
 * entries may be in a mapping, which a capture hands over to its profile.
 *
 * Context: one thread at a time; not in a signal.
 */


#include "base/prof_spare.h"
#include "base/prof_hash.h"
#include "profile/prof_profile.h"

#include <stdlib.h>
#include <string.h>


static int prof_profile_of_threads(const prof_profile_t *p);
static int prof_profile_map(prof_profile_t *p);
static uint64_t prof_profile_label_hash(const char *name, const char *value,
    const char *unit);
static int prof_profile_label_is(const prof_label_t *label, const char *name,
    const char *value, const char *unit);


prof_profile_t *
prof_profile_create(const char *title)
{
    uint32_t         i;
    prof_series_t   *s;
    prof_profile_t  *p;

    p = calloc(1, sizeof(prof_profile_t));
    if (p == NULL) {
        return NULL;
    }

    p->title = strdup(title);
    if (p->title == NULL) {
        free(p);
        return NULL;
    }

    p->first = PROF_NONE;

    for (i = 0; i < PROF_SERIES_MAX; i++) {
        s = &p->series[i];

        s->nvalues = prof_series_values(i);
        s->size = sizeof(prof_entry_t) + s->nvalues * sizeof(uint64_t);
    }

    return p;
}


int
prof_profile_complete(prof_profile_t *p)
{
    int            rc;
    prof_draft_t  *draft;

    draft = p->draft;

    if (draft == NULL) {
        return PROF_OK;
    }

    p->draft = NULL;

    rc = draft->complete(p, draft);

    draft->destroy(draft);

    return rc;
}


void
prof_profile_destroy(prof_profile_t *p)
{
    size_t    used;
    uint32_t  i;

    if (p == NULL) {
        return;
    }

    used = p->nnodes * sizeof(prof_node_t);

    if (p->draft) {
        used += p->draft->size;
        p->draft->destroy(p->draft);
    }

    for (i = 0; i < p->nobjects; i++) {
        free(p->objects[i].path);
        free(p->objects[i].build_id);
    }

    for (i = 0; i < p->nframes; i++) {
        free(p->frames[i].name);
        free(p->frames[i].file);
    }

    for (i = 0; i < p->ninlines; i++) {
        free(p->inlines[i].name);
        free(p->inlines[i].file);
    }

    for (i = 0; i < p->nfacts; i++) {
        free(p->facts[i].name);
        free(p->facts[i].value);
    }

    for (i = 0; i < p->nlabels; i++) {
        free(p->labels[i].name);
        free(p->labels[i].value);
        free(p->labels[i].unit);
    }

    for (i = 0; i < PROF_SERIES_MAX; i++) {

        if (p->series[i].memory) {
            prof_spare_unmap(p->series[i].memory, p->series[i].memory_size,
                             used + p->series[i].n * p->series[i].size);

        } else {
            free(p->series[i].entries);
        }
    }

    free(p->objects);
    free(p->frames);
    free(p->inlines);
    free(p->nodes);
    free(p->facts);
    prof_map_free(&p->label_map);
    free(p->labels);
    free(p->scope);
    free(p->title);
    free(p->turns);
    free(p);
}


size_t
prof_profile_size(const prof_profile_t *p)
{
    size_t    size;
    uint32_t  i;

    size = sizeof(prof_profile_t)
           + p->nobjects * sizeof(prof_profile_object_t)
           + p->nframes * sizeof(prof_frame_t)
           + p->nnodes * sizeof(prof_node_t)
           + (p->draft ? p->draft->size : 0);

    for (i = 0; i < PROF_SERIES_MAX; i++) {
        size += p->series[i].n * p->series[i].size;
    }

    return size;
}


uint32_t
prof_measure_list(const prof_profile_t *p, uint32_t *list)
{
    uint32_t  m, n, series;

    n = 0;

    for (m = 0; m < PROF_MEASURE_MAX; m++) {
        series = prof_measures[m].series;

        if (m == PROF_MEASURE_WALL && prof_profile_of_threads(p)) {
            continue;
        }

        if (p->series[series].n || prof_modes[p->mode].series == series) {
            list[n++] = m;
        }
    }

    return n;
}


/* the CPU time of threads: their stacks have no wall time */

static int
prof_profile_of_threads(const prof_profile_t *p)
{
    return p->mode == PROF_MODE_CPU && p->scope
           && (strcmp(p->scope, "worker") == 0 || strcmp(p->scope, "all") == 0);
}


uint32_t
prof_measure_first(const prof_profile_t *p)
{
    if (p->first != PROF_NONE && prof_measures[p->first].mode == p->mode) {
        return p->first;
    }

    return prof_modes[p->mode].first;
}


uint64_t
prof_measure_total(const prof_profile_t *p, uint32_t measure)
{
    uint32_t              i;
    uint64_t              sum;
    const prof_series_t  *s;

    switch (measure) {

    case PROF_MEASURE_WALL:
        return p->wall;

    case PROF_MEASURE_CPU:
        return p->cpu;
    }

    s = &p->series[prof_measures[measure].series];
    sum = 0;

    for (i = 0; i < s->n; i++) {
        sum += prof_series_entry(s, i)->values[prof_measures[measure].value];
    }

    return sum;
}


prof_entry_t *
prof_series_add(prof_series_t *s)
{
    char          *array;
    prof_entry_t  *e;

    /* memory is allocated when n is a power of two */

    if ((s->n & (s->n - 1)) == 0) {
        array = realloc(s->entries, s->size * (s->n ? 2 * (size_t) s->n : 1));
        if (array == NULL) {
            return NULL;
        }

        s->entries = array;
    }

    e = prof_series_entry(s, s->n);
    s->n++;

    memset(e, 0, s->size);

    return e;
}


void
prof_series_free(prof_series_t *s)
{
    if (s->memory) {
        prof_spare_unmap(s->memory, s->memory_size, s->memory_size);

    } else {
        free(s->entries);
    }
}


int
prof_profile_fact(prof_profile_t *p, const char *name, const char *value,
    size_t len)
{
    prof_fact_t  *fact;

    fact = realloc(p->facts, (p->nfacts + 1) * sizeof(prof_fact_t));
    if (fact == NULL) {
        return PROF_ERROR;
    }

    p->facts = fact;
    fact += p->nfacts;

    fact->name = strdup(name);
    if (fact->name == NULL) {
        return PROF_ERROR;
    }

    fact->value = strndup(value, len);
    if (fact->value == NULL) {
        free(fact->name);
        return PROF_ERROR;
    }

    fact->label = 0;

    p->nfacts++;

    return PROF_OK;
}


int
prof_profile_label(prof_profile_t *p, const char *name, const char *value,
    size_t len)
{
    if (prof_profile_fact(p, name, value, len) != PROF_OK) {
        return PROF_ERROR;
    }

    p->facts[p->nfacts - 1].label = 1;

    return PROF_OK;
}


int
prof_profile_scope(prof_profile_t *p, const char *scope)
{
    char  *copy;

    copy = strdup(scope);
    if (copy == NULL) {
        return PROF_ERROR;
    }

    free(p->scope);
    p->scope = copy;

    return PROF_OK;
}


uint32_t
prof_profile_labels(prof_profile_t *p, uint32_t set, const char *name,
    const char *value, const char *unit)
{
    uint32_t       i, n;
    prof_label_t  *label;

    n = 0;

    for (i = set; i != PROF_NONE; i = p->labels[i].rest) {
        if (++n == PROF_MAX_LABELS || strcmp(p->labels[i].name, name) == 0) {
            return set;
        }
    }

    if (prof_profile_map(p) != PROF_OK) {
        return PROF_NONE;
    }

    for (i = prof_map_find(&p->label_map,
                           prof_profile_label_hash(name, value, unit), set);
         i < p->nlabels;
         i++)
    {
        label = &p->labels[i];

        if (label->rest == set
            && prof_profile_label_is(label, name, value, unit))
        {
            return i;
        }
    }

    label = realloc(p->labels, ((size_t) p->nlabels + 1)
                               * sizeof(prof_label_t));
    if (label == NULL) {
        return PROF_NONE;
    }

    p->labels = label;
    label += p->nlabels;

    label->rest = set;
    label->name = strdup(name);
    label->value = strdup(value);
    label->unit = unit ? strdup(unit) : NULL;

    if (label->name == NULL || label->value == NULL
        || (unit && label->unit == NULL))
    {
        free(label->name);
        free(label->value);
        free(label->unit);

        return PROF_NONE;
    }

    return p->nlabels++;
}


/* adds the labels to the map that prof_profile_labels() did not add */

static int
prof_profile_map(prof_profile_t *p)
{
    uint32_t       i;
    prof_label_t  *label;

    for (i = p->nmapped; i < p->nlabels; i++) {
        label = &p->labels[i];

        if (prof_map_add(&p->label_map,
                         prof_profile_label_hash(label->name, label->value,
                                                 label->unit),
                         label->rest, i)
            == UINT32_MAX)
        {
            return PROF_ERROR;
        }

        p->nmapped = i + 1;
    }

    return PROF_OK;
}


static uint64_t
prof_profile_label_hash(const char *name, const char *value, const char *unit)
{
    uint64_t  hash;

    hash = prof_hash_text(0, name);
    hash = prof_hash_text(hash, value);

    return prof_hash_text(hash, unit ? unit : "");
}


static int
prof_profile_label_is(const prof_label_t *label, const char *name,
    const char *value, const char *unit)
{
    if (strcmp(label->name, name) != 0 || strcmp(label->value, value) != 0) {
        return 0;
    }

    if (label->unit == NULL || unit == NULL) {
        return label->unit == unit;
    }

    return strcmp(label->unit, unit) == 0;
}


const prof_label_t *
prof_profile_label_find(const prof_profile_t *p, uint32_t set,
    const char *name)
{
    for ( /* void */ ; set != PROF_NONE; set = p->labels[set].rest) {

        if (strcmp(p->labels[set].name, name) == 0) {
            return &p->labels[set];
        }
    }

    return NULL;
}


const char *
prof_path_file(const char *path)
{
    const char  *slash;

    slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}
