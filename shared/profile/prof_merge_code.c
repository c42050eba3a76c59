
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Merges the objects and frames of profiles.
 */


#include "profile/prof_merge_code.h"
#include "base/prof_hash.h"

#include <stdlib.h>
#include <string.h>


static uint32_t prof_merge_object(prof_merge_t *m,
    const prof_profile_object_t *o);
static int prof_merge_same_object(const prof_profile_object_t *one,
    const prof_profile_object_t *two);
static uint32_t prof_merge_place(prof_merge_t *m, const prof_profile_t *p,
    const prof_frame_t *f);
static uint32_t prof_merge_named(prof_merge_t *m, const prof_profile_t *p,
    const prof_frame_t *f, uint32_t object);
static int prof_merge_same(const prof_profile_t *to, const prof_frame_t *copy,
    const prof_profile_t *p, const prof_frame_t *f);
static uint32_t prof_merge_add_frame(prof_merge_t *m, uint32_t object,
    const prof_frame_t *f);
static int prof_merge_describe(prof_profile_t *to, uint32_t frame,
    const prof_profile_t *p, const prof_frame_t *f);
static int prof_merge_inlines(prof_profile_t *to, uint32_t frame,
    const prof_profile_t *p, const prof_frame_t *f);
static int prof_merge_text(char **to, const char *from);


int
prof_merge_objects(prof_merge_t *m, const prof_profile_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->nobjects; i++) {

        m->object[i] = prof_merge_object(m, &p->objects[i]);

        if (m->object[i] == PROF_NONE) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


static uint32_t
prof_merge_object(prof_merge_t *m, const prof_profile_object_t *o)
{
    void                   *array;
    uint32_t                i;
    prof_profile_t         *to;
    prof_profile_object_t  *copy;

    to = m->profile;

    for (i = 0; i < to->nobjects; i++) {
        if (prof_merge_same_object(&to->objects[i], o)) {
            return i;
        }
    }

    array = prof_merge_grow(to->objects, to->nobjects,
                            sizeof(prof_profile_object_t));
    if (array == NULL) {
        return PROF_NONE;
    }

    to->objects = array;
    copy = &to->objects[to->nobjects];

    *copy = *o;
    copy->path = strdup(o->path);
    copy->build_id = strdup(o->build_id);

    to->nobjects++;

    if (copy->path == NULL || copy->build_id == NULL) {
        return PROF_NONE;
    }

    return to->nobjects - 1;
}


/* the load bias differs between processes, so it is not compared */

static int
prof_merge_same_object(const prof_profile_object_t *one,
    const prof_profile_object_t *two)
{
    if (one->build_id[0] || two->build_id[0]) {
        return strcmp(one->build_id, two->build_id) == 0;
    }

    return one->start == two->start && one->end == two->end
           && strcmp(one->path, two->path) == 0;
}


int
prof_merge_frames(prof_merge_t *m, const prof_profile_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->nframes; i++) {

        m->frame[i] = prof_merge_frame(m, p, &p->frames[i]);

        if (m->frame[i] == PROF_NONE) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


uint32_t
prof_merge_frame(prof_merge_t *m, const prof_profile_t *p,
    const prof_frame_t *f)
{
    uint32_t  i;

    i = prof_merge_place(m, p, f);

    if (i == PROF_NONE
        || prof_merge_describe(m->profile, i, p, f) != PROF_OK)
    {
        return PROF_NONE;
    }

    return i;
}


/*
 * A frame in an object is identified by its address there.  An address outside
 * of objects has a meaning in one process only, so type, name, file and line
 * identify such frames.
 */

static uint32_t
prof_merge_place(prof_merge_t *m, const prof_profile_t *p,
    const prof_frame_t *f)
{
    uint32_t  i, object;

    object = f->object == PROF_NONE ? PROF_NONE : m->object[f->object];

    if (f->name
        && (object == PROF_NONE
            || (prof_frame_is_exact(f) && (m->flags & PROF_MERGE_NAMES))))
    {
        return prof_merge_named(m, p, f, object);
    }

    i = prof_map_add(&m->frames, f->pc, object * PROF_TYPE_MAX + f->type,
                     m->profile->nframes);

    if (i == m->profile->nframes) {
        return prof_merge_add_frame(m, object, f);
    }

    return i;
}


static uint32_t
prof_merge_named(prof_merge_t *m, const prof_profile_t *p,
    const prof_frame_t *f, uint32_t object)
{
    uint32_t         i, k;
    uint64_t         hash;
    prof_frame_t     key;
    prof_profile_t  *to;

    to = m->profile;
    key = *f;

    /* the first build of the object stands for all builds */

    if (object != PROF_NONE) {

        for (k = 0;
             strcmp(to->objects[k].path, to->objects[object].path);
             k++)
        {
            /* void */
        }

        object = k;
        key.pc = 0;
        key.function = 0;
        key.function_len = 0;
    }

    hash = prof_hash_text(0, f->name);

    for (k = 0; k < f->ninlines; k++) {
        hash = prof_hash_text(hash, p->inlines[f->inlines + k].name);
    }

    /* another name with the same hash uses the next hash */

    for ( /* void */ ; /* void */ ; hash++) {
        i = prof_map_add(&m->names, hash, object, to->nframes);

        if (i == to->nframes) {
            return prof_merge_add_frame(m, object, &key);
        }

        if (i == UINT32_MAX || prof_merge_same(to, &to->frames[i], p, f)) {
            return i;
        }
    }
}


static int
prof_merge_same(const prof_profile_t *to, const prof_frame_t *copy,
    const prof_profile_t *p, const prof_frame_t *f)
{
    uint32_t  k;

    if (strcmp(copy->name, f->name) != 0 || copy->ninlines != f->ninlines) {
        return 0;
    }

    if (f->object == PROF_NONE
        && (copy->type != f->type || copy->line != f->line
            || copy->start_line != f->start_line
            || strcmp(copy->file ? copy->file : "", f->file ? f->file : "")
               != 0))
    {
        return 0;
    }

    for (k = 0; k < f->ninlines; k++) {
        if (strcmp(to->inlines[copy->inlines + k].name,
                   p->inlines[f->inlines + k].name)
            != 0)
        {
            return 0;
        }
    }

    return 1;
}


static uint32_t
prof_merge_add_frame(prof_merge_t *m, uint32_t object, const prof_frame_t *f)
{
    void            *array;
    prof_frame_t    *copy;
    prof_profile_t  *to;

    to = m->profile;

    array = prof_merge_grow(to->frames, to->nframes, sizeof(prof_frame_t));
    if (array == NULL) {
        return PROF_NONE;
    }

    to->frames = array;
    copy = &to->frames[to->nframes++];

    memset(copy, 0, sizeof(prof_frame_t));

    copy->type = f->type;
    copy->object = object;
    copy->pc = f->pc;
    copy->function = f->function;
    copy->function_len = f->function_len;

    return to->nframes - 1;
}


/* a name of a better source replaces the present name */

static int
prof_merge_describe(prof_profile_t *to, uint32_t frame,
    const prof_profile_t *p, const prof_frame_t *f)
{
    prof_frame_t  *copy;

    copy = &to->frames[frame];

    if (f->name == NULL || (copy->name && copy->source >= f->source)) {
        return PROF_OK;
    }

    copy->source = f->source;
    copy->line = f->line;
    copy->start_line = f->start_line;

    if (prof_merge_text(&copy->name, f->name) != PROF_OK
        || prof_merge_text(&copy->file, f->file) != PROF_OK)
    {
        return PROF_ERROR;
    }

    return prof_merge_inlines(to, frame, p, f);
}


static int
prof_merge_inlines(prof_profile_t *to, uint32_t frame,
    const prof_profile_t *p, const prof_frame_t *f)
{
    void                 *array;
    uint32_t              i;
    prof_inline_t        *copy;
    const prof_inline_t  *in;

    to->frames[frame].inlines = to->ninlines;
    to->frames[frame].ninlines = 0;

    for (i = 0; i < f->ninlines; i++) {
        in = &p->inlines[f->inlines + i];

        array = prof_merge_grow(to->inlines, to->ninlines,
                                sizeof(prof_inline_t));
        if (array == NULL) {
            return PROF_ERROR;
        }

        to->inlines = array;
        copy = &to->inlines[to->ninlines++];

        memset(copy, 0, sizeof(prof_inline_t));

        copy->line = in->line;
        copy->start_line = in->start_line;

        if (prof_merge_text(&copy->name, in->name) != PROF_OK
            || prof_merge_text(&copy->file, in->file) != PROF_OK)
        {
            return PROF_ERROR;
        }

        to->frames[frame].ninlines++;
    }

    return PROF_OK;
}


static int
prof_merge_text(char **to, const char *from)
{
    char  *copy;

    copy = NULL;

    if (from) {
        copy = strdup(from);
        if (copy == NULL) {
            return PROF_ERROR;
        }
    }

    free(*to);
    *to = copy;

    return PROF_OK;
}


void *
prof_merge_grow(void *array, uint32_t n, size_t size)
{
    if (n & (n - 1)) {
        return array;
    }

    return realloc(array, size * (n ? 2 * (size_t) n : 1));
}
