
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_encode_pprof.h"

#include <stdlib.h>


static void prof_encode_pprof_mappings(prof_pprof_t *e);
static void prof_encode_pprof_functions(prof_pprof_t *e);
static void prof_encode_pprof_inlines(prof_pprof_t *e, uint32_t id);
static void prof_encode_pprof_function(prof_pprof_t *e,
    const prof_pprof_frame_t *frame, uint32_t line);
static int prof_encode_pprof_cmp(const void *one, const void *two, void *data);
static int prof_encode_pprof_inline_cmp(const void *one, const void *two);
static void prof_encode_pprof_locations(prof_pprof_t *e);
static size_t prof_encode_pprof_lines(prof_pprof_t *e, uint32_t frame,
    Prof__Line *lines);


void
prof_encode_pprof_frames(prof_pprof_t *e)
{
    prof_encode_pprof_mappings(e);
    prof_encode_pprof_functions(e);
    prof_encode_pprof_locations(e);
}


static void
prof_encode_pprof_mappings(prof_pprof_t *e)
{
    uint32_t                      i, object;
    Prof__Mapping                 m, *mapping;
    Prof__Profile                 part;
    const prof_frame_t           *f;
    const prof_profile_t         *p;
    const prof_profile_object_t  *o;

    p = e->profile;
    mapping = &m;

    for (object = 0; object < p->nobjects; object++) {
        o = &p->objects[object];

        prof__mapping__init(&m);

        m.id = object + 1;
        m.memory_start = o->start + o->base;
        m.memory_limit = o->end + o->base;
        m.file_offset = o->offset;
        m.filename = prof_strings_add(&e->strings, o->path);
        m.build_id = prof_strings_add(&e->strings, o->build_id);

        /* without it readers ask the server for names, and fail */

        m.has_functions = 1;

        for (i = 0; i < p->nframes; i++) {
            f = &p->frames[i];

            if (f->object == object) {
                m.has_filenames |= f->file != NULL;
                m.has_line_numbers |= f->file && f->line;
                m.has_inline_frames |= f->ninlines != 0;
            }
        }

        prof__profile__init(&part);
        part.n_mapping = 1;
        part.mapping = &mapping;

        prof_encode_pprof_write(e, &part);
    }
}


/*
 * Functions are numbered in the order of their names: first those of frames,
 * then those that were inlined.
 */

static void
prof_encode_pprof_functions(prof_pprof_t *e)
{
    uint32_t               i, id;
    prof_pprof_frame_t    *frame;
    const prof_profile_t  *p;

    p = e->profile;

    for (i = 0; i < p->nframes; i++) {
        frame = &e->frames[i];

        frame->name = prof_strings_add(&e->strings, p->frames[i].name);

        if (p->frames[i].file) {
            frame->file = prof_strings_add(&e->strings, p->frames[i].file);
        }

        e->order[i] = i;
    }

    qsort_r(e->order, p->nframes, sizeof(uint32_t), prof_encode_pprof_cmp, e);

    id = 0;

    for (i = 0; i < p->nframes; i++) {
        frame = &e->frames[e->order[i]];

        if (i && prof_encode_pprof_cmp(&e->order[i - 1], &e->order[i], e) == 0)
        {
            frame->function = id;
            continue;
        }

        frame->function = ++id;

        prof_encode_pprof_function(e, frame,
                                   p->frames[e->order[i]].start_line);
    }

    prof_encode_pprof_inlines(e, id);
}


static void
prof_encode_pprof_inlines(prof_pprof_t *e, uint32_t id)
{
    uint32_t               i, k;
    prof_pprof_frame_t    *frame, **order;
    const prof_profile_t  *p;

    p = e->profile;

    order = malloc(((size_t) p->ninlines + 1) * sizeof(prof_pprof_frame_t *));
    if (order == NULL) {
        e->strings.failed = 1;
        return;
    }

    for (i = 0; i < p->ninlines; i++) {
        frame = &e->inlines[i];
        order[i] = frame;

        frame->name = prof_strings_add(&e->strings, p->inlines[i].name);

        if (p->inlines[i].file) {
            frame->file = prof_strings_add(&e->strings, p->inlines[i].file);
        }
    }

    qsort(order, p->ninlines, sizeof(prof_pprof_frame_t *),
          prof_encode_pprof_inline_cmp);

    for (i = 0; i < p->ninlines; i++) {
        frame = order[i];

        if (i && prof_encode_pprof_inline_cmp(&order[i - 1], &order[i]) == 0)
        {
            frame->function = id;
            continue;
        }

        frame->function = ++id;
        k = (uint32_t) (frame - e->inlines);

        prof_encode_pprof_function(e, frame, p->inlines[k].start_line);
    }

    free(order);
}


static void
prof_encode_pprof_function(prof_pprof_t *e, const prof_pprof_frame_t *frame,
    uint32_t line)
{
    Prof__Profile   part;
    Prof__Function  f, *function;

    function = &f;

    prof__function__init(&f);

    f.id = frame->function;
    f.name = frame->name;
    f.system_name = frame->name;
    f.filename = frame->file;
    f.start_line = line;

    prof__profile__init(&part);
    part.n_function = 1;
    part.function = &function;

    prof_encode_pprof_write(e, &part);
}


/* functions of one name remain apart if they begin at different places */

static int
prof_encode_pprof_cmp(const void *one, const void *two, void *data)
{
    prof_pprof_t *e = data;

    int                        rc;
    uint32_t                   i, j;
    const prof_frame_t        *f1, *f2;
    const prof_pprof_frame_t  *p1, *p2;

    i = *(const uint32_t *) one;
    j = *(const uint32_t *) two;

    f1 = &e->profile->frames[i];
    f2 = &e->profile->frames[j];
    p1 = &e->frames[i];
    p2 = &e->frames[j];

    rc = prof_encode_pprof_inline_cmp(&p1, &p2);

    if (rc) {
        return rc;
    }

    if (f1->object != f2->object) {
        return f1->object < f2->object ? -1 : 1;
    }

    return f1->function < f2->function ? -1 : f1->function > f2->function;
}


static int
prof_encode_pprof_inline_cmp(const void *one, const void *two)
{
    const prof_pprof_frame_t  *p1, *p2;

    p1 = *(const prof_pprof_frame_t *const *) one;
    p2 = *(const prof_pprof_frame_t *const *) two;

    if (p1->name != p2->name) {
        return p1->name < p2->name ? -1 : 1;
    }

    return p1->file < p2->file ? -1 : p1->file > p2->file;
}


static void
prof_encode_pprof_locations(prof_pprof_t *e)
{
    uint32_t               i;
    Prof__Line             lines[1 + PROF_MAX_INLINES];
    Prof__Line            *line[1 + PROF_MAX_INLINES];
    Prof__Profile          part;
    Prof__Location         l, *location;
    const prof_frame_t    *f;
    const prof_profile_t  *p;

    p = e->profile;
    location = &l;

    for (i = 0; i <= PROF_MAX_INLINES; i++) {
        line[i] = &lines[i];
    }

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        prof__location__init(&l);
        l.id = (uint64_t) i + 1;
        l.n_line = prof_encode_pprof_lines(e, i, lines);
        l.line = line;

        if (f->object != PROF_NONE) {
            l.mapping_id = (uint64_t) f->object + 1;
            l.address = f->pc + p->objects[f->object].base;

        } else {
            l.address = f->pc;
        }

        if (f->type == PROF_TYPE_RETURN && l.address) {
            l.address--;
        }

        prof__profile__init(&part);
        part.n_location = 1;
        part.location = &location;

        prof_encode_pprof_write(e, &part);
    }
}


/* the innermost first */

static size_t
prof_encode_pprof_lines(prof_pprof_t *e, uint32_t frame, Prof__Line *lines)
{
    size_t               n;
    uint32_t             k;
    const prof_frame_t  *f;

    f = &e->profile->frames[frame];
    n = 0;

    for (k = f->ninlines; k > 0 && n < PROF_MAX_INLINES; k--) {
        prof__line__init(&lines[n]);
        lines[n].function_id = e->inlines[f->inlines + k - 1].function;
        lines[n++].line = e->profile->inlines[f->inlines + k - 1].line;
    }

    prof__line__init(&lines[n]);
    lines[n].function_id = e->frames[frame].function;
    lines[n++].line = f->line;

    return n;
}
