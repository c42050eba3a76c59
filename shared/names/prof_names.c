
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * An entry is one block of memory: the struct, its inlines and all strings.
 */


#include "names/prof_names.h"

#include <stdlib.h>
#include <string.h>


/* the limit for objects; only endless loading of code reaches it */

#define PROF_NAMES_OBJECTS   1024

/* bytes of an entry besides its block: its places in the array and the map */

#define PROF_NAMES_OVERHEAD  64


typedef struct {
    uint32_t               object;
    size_t                 size;
    prof_name_t            name;
} prof_names_entry_t;


typedef struct {
    prof_names_entry_t   **entries;
    uint32_t               n;
    uint32_t               max;
    size_t                 size;
    prof_map_t             map;     /* maps pc and object to an index */
} prof_names_generation_t;


static prof_names_entry_t *prof_names_entry(uint32_t object,
    const prof_name_t *name);
static size_t prof_names_length(const char *s);
static char *prof_names_copy(char **p, const char *s);
static prof_names_entry_t *prof_names_take(uint32_t object, uint64_t pc);
static int prof_names_add(prof_names_entry_t *e);
static void prof_names_free(prof_names_generation_t *g);
static int prof_profile_text(char **copy, const char *text);


static prof_names_object_t      *prof_names_objects[PROF_NAMES_OBJECTS];
static uint32_t                  prof_names_nobjects;

static prof_names_generation_t   prof_names_young;
static prof_names_generation_t   prof_names_old;


prof_names_object_t *
prof_names_object(const char *identity)
{
    uint32_t              i;
    prof_names_object_t  *o;

    for (i = 0; i < prof_names_nobjects; i++) {
        if (strcmp(prof_names_objects[i]->identity, identity) == 0) {
            return prof_names_objects[i];
        }
    }

    if (prof_names_nobjects == PROF_NAMES_OBJECTS) {
        prof_names_clear();
    }

    o = calloc(1, sizeof(prof_names_object_t));
    if (o == NULL) {
        return NULL;
    }

    o->identity = strdup(identity);
    if (o->identity == NULL) {
        free(o);
        return NULL;
    }

    o->index = prof_names_nobjects;
    prof_names_objects[prof_names_nobjects++] = o;

    return o;
}


const prof_name_t *
prof_names_find(const prof_names_object_t *o, uint64_t pc, uint64_t function)
{
    uint32_t             i;
    prof_names_entry_t  *e;

    i = prof_map_find(&prof_names_young.map, pc, o->index);

    if (i != UINT32_MAX) {
        e = prof_names_young.entries[i];

    } else {
        e = prof_names_take(o->index, pc);

        if (e == NULL || prof_names_add(e) != PROF_OK) {
            free(e);
            return NULL;
        }
    }

    return e->name.function == function ? &e->name : NULL;
}


void
prof_names_put(const prof_names_object_t *o, const prof_name_t *name)
{
    prof_names_entry_t  *e;

    free(prof_names_take(o->index, name->pc));

    e = prof_names_entry(o->index, name);

    if (e && prof_names_add(e) != PROF_OK) {
        free(e);
    }
}


static prof_names_entry_t *
prof_names_entry(uint32_t object, const prof_name_t *name)
{
    char                *p;
    size_t               size;
    uint32_t             i;
    prof_name_t         *n;
    prof_names_entry_t  *e;

    size = sizeof(prof_names_entry_t)
           + name->ninlines * sizeof(prof_inline_t)
           + prof_names_length(name->name) + prof_names_length(name->file);

    for (i = 0; i < name->ninlines; i++) {
        size += prof_names_length(name->inlines[i].name)
                + prof_names_length(name->inlines[i].file);
    }

    e = malloc(size);
    if (e == NULL) {
        return NULL;
    }

    e->object = object;
    e->size = size + PROF_NAMES_OVERHEAD;
    e->name = *name;

    n = &e->name;
    n->inlines = (prof_inline_t *) (e + 1);
    p = (char *) (n->inlines + n->ninlines);

    n->name = prof_names_copy(&p, name->name);
    n->file = prof_names_copy(&p, name->file);

    for (i = 0; i < name->ninlines; i++) {
        n->inlines[i] = name->inlines[i];
        n->inlines[i].name = prof_names_copy(&p, name->inlines[i].name);
        n->inlines[i].file = prof_names_copy(&p, name->inlines[i].file);
    }

    return e;
}


static size_t
prof_names_length(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}


static char *
prof_names_copy(char **p, const char *s)
{
    char    *copy;
    size_t   len;

    if (s == NULL) {
        return NULL;
    }

    copy = *p;
    len = strlen(s) + 1;

    memcpy(copy, s, len);
    *p += len;

    return copy;
}


/* removes an entry from the older generation; the caller then owns it */

static prof_names_entry_t *
prof_names_take(uint32_t object, uint64_t pc)
{
    uint32_t             i;
    prof_names_entry_t  *e;

    i = prof_map_find(&prof_names_old.map, pc, object);

    if (i == UINT32_MAX) {
        return NULL;
    }

    e = prof_names_old.entries[i];
    prof_names_old.entries[i] = NULL;

    if (e) {
        prof_names_old.size -= e->size;
    }

    return e;
}


/* adds an entry to the younger generation, and replaces an existing entry */

static int
prof_names_add(prof_names_entry_t *e)
{
    uint32_t                   i, max;
    prof_names_entry_t       **entries;
    prof_names_generation_t   *g;

    g = &prof_names_young;

    if (g->size + e->size > PROF_NAMES_MAX / 2) {
        prof_names_free(&prof_names_old);

        prof_names_old = *g;
        memset(g, 0, sizeof(prof_names_generation_t));
    }

    if (g->n == g->max) {
        max = g->max ? 2 * g->max : 64;

        entries = realloc(g->entries, max * sizeof(prof_names_entry_t *));
        if (entries == NULL) {
            return PROF_ERROR;
        }

        g->entries = entries;
        g->max = max;
    }

    i = prof_map_add(&g->map, e->name.pc, e->object, g->n);

    if (i == UINT32_MAX) {
        return PROF_ERROR;
    }

    if (i == g->n) {
        g->n++;

    } else {
        g->size -= g->entries[i]->size;
        free(g->entries[i]);
    }

    g->entries[i] = e;
    g->size += e->size;

    return PROF_OK;
}


static void
prof_names_free(prof_names_generation_t *g)
{
    uint32_t  i;

    for (i = 0; i < g->n; i++) {
        free(g->entries[i]);
    }

    free(g->entries);
    prof_map_free(&g->map);

    memset(g, 0, sizeof(prof_names_generation_t));
}


void
prof_names_clear(void)
{
    uint32_t  i;

    for (i = 0; i < prof_names_nobjects; i++) {
        prof_unit_free(prof_names_objects[i]->units);
        free(prof_names_objects[i]->identity);
        free(prof_names_objects[i]);
    }

    prof_names_nobjects = 0;

    prof_names_free(&prof_names_young);
    prof_names_free(&prof_names_old);
}


size_t
prof_names_size(void)
{
    return prof_names_young.size + prof_names_old.size;
}


int
prof_profile_name(prof_profile_t *p, prof_frame_t *f,
    const prof_name_t *name)
{
    uint32_t        i;
    prof_inline_t  *in;

    if (prof_profile_text(&f->name, name->name) != PROF_OK
        || prof_profile_text(&f->file, name->file) != PROF_OK)
    {
        return PROF_ERROR;
    }

    if (name->source > f->source) {
        f->source = name->source;
    }

    f->line = name->line;
    f->start_line = name->start_line;

    if (name->ninlines == 0) {
        return PROF_OK;
    }

    in = realloc(p->inlines, ((size_t) p->ninlines + name->ninlines)
                             * sizeof(prof_inline_t));
    if (in == NULL) {
        return PROF_ERROR;
    }

    p->inlines = in;

    f->inlines = p->ninlines;
    f->ninlines = 0;

    for (i = 0; i < name->ninlines; i++) {
        in = &p->inlines[p->ninlines];

        memset(in, 0, sizeof(prof_inline_t));

        in->line = name->inlines[i].line;
        in->start_line = name->inlines[i].start_line;

        p->ninlines++;
        f->ninlines++;

        if (prof_profile_text(&in->name, name->inlines[i].name) != PROF_OK
            || prof_profile_text(&in->file, name->inlines[i].file)
               != PROF_OK)
        {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


/* replaces *copy by a copy of the text, unless the text is NULL */

static int
prof_profile_text(char **copy, const char *text)
{
    char  *p;

    if (text == NULL) {
        return PROF_OK;
    }

    p = strdup(text);
    if (p == NULL) {
        return PROF_ERROR;
    }

    free(*copy);
    *copy = p;

    return PROF_OK;
}
