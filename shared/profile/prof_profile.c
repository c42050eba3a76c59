
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Owns the memory of a profile.  All arrays and strings are malloc()ed one by
 * one, so that a capture or a test can build a profile with plain libc calls;
 * only the entries may be in a mapping, which a capture leaves to its profile.
 *
 * Context: one thread at a time; not in a signal.
 */


#include "profile/prof_profile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>


static int prof_profile_map(prof_profile_t *p);
static uint64_t prof_profile_label_hash(const char *name, const char *value,
    const char *unit);
static int prof_profile_label_is(const prof_label_t *label, const char *name,
    const char *value, const char *unit);


prof_profile_t *
prof_profile_create(const char *title)
{
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

    return p;
}


void
prof_profile_destroy(prof_profile_t *p)
{
    uint32_t  i;

    if (p == NULL) {
        return;
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

    if (p->memory) {
        (void) munmap(p->memory, p->memory_size);

    } else {
        free(p->entries);
    }

    free(p->objects);
    free(p->frames);
    free(p->inlines);
    free(p->nodes);
    free(p->facts);
    free(p->allocs);
    prof_map_free(&p->label_map);
    free(p->labels);
    free(p->scope);
    free(p->title);
    free(p);
}


size_t
prof_profile_size(const prof_profile_t *p)
{
    return sizeof(prof_profile_t)
           + p->nobjects * sizeof(prof_profile_object_t)
           + p->nframes * sizeof(prof_frame_t)
           + p->nnodes * sizeof(prof_node_t)
           + p->nentries * sizeof(prof_entry_t)
           + p->nallocs * sizeof(prof_alloc_t);
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


/* those that are new, or that somebody else has put there */

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
    uint32_t     i;
    uint64_t     hash;
    const char  *text, *texts[3];

    texts[0] = name;
    texts[1] = value;
    texts[2] = unit ? unit : "";

    hash = 0;

    for (i = 0; i < 3; i++) {

        for (text = texts[i]; *text; text++) {
            hash = (hash ^ (unsigned char) *text) * 0x100000001b3;
        }

        hash = (hash ^ 0x100) * 0x100000001b3;
    }

    return hash;
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
