
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Profiles built by hand, for tests of code that reads profiles.  A failed
 * allocation ends the test.
 */


#ifndef _PROF_FIXTURE_H_INCLUDED_
#define _PROF_FIXTURE_H_INCLUDED_


#include "base/prof_buf.h"
#include "names/prof_symbolize.h"
#include "profile/prof_profile.h"
#include "prof_series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define FIXTURE_UNUSED  __attribute__((unused))

/* compares the output with the recorded one in t/fixtures/golden/NAME */

#define is_golden(b, name)  fixture_golden(__FILE__, name, b)


FIXTURE_UNUSED static prof_profile_t *fixture_create(const char *title);
FIXTURE_UNUSED static uint32_t fixture_object(prof_profile_t *p,
    const char *path, const char *build_id);
FIXTURE_UNUSED static uint32_t fixture_frame(prof_profile_t *p,
    uint32_t object, uint64_t pc, const char *name);
FIXTURE_UNUSED static uint32_t fixture_name(prof_profile_t *p, uint32_t type,
    const char *name);
FIXTURE_UNUSED static uint32_t fixture_node(prof_profile_t *p,
    uint32_t parent, uint32_t frame);
FIXTURE_UNUSED static prof_entry_t *fixture_add(prof_profile_t *p,
    uint32_t series, uint32_t node);
FIXTURE_UNUSED static void fixture_entry(prof_profile_t *p, uint32_t node,
    uint32_t type, uint64_t wall, uint64_t cpu);
FIXTURE_UNUSED static uint32_t fixture_stack(prof_profile_t *p,
    uint32_t object, const char *names);
FIXTURE_UNUSED static prof_profile_t *fixture_typical(void);
FIXTURE_UNUSED static prof_profile_t *fixture_full(void);
FIXTURE_UNUSED static int fixture_golden(const char *source,
    const char *name, const prof_buf_t *b);
FIXTURE_UNUSED static void *fixture_grow(void *array, uint32_t n,
    size_t size);
FIXTURE_UNUSED static char *fixture_copy(const char *s);
FIXTURE_UNUSED static void fixture_helper(void);


static prof_profile_t *
fixture_create(const char *title)
{
    prof_profile_t  *p;

    p = prof_profile_create(title);
    if (p == NULL) {
        abort();
    }

    p->frequency = 1000;
    p->frequency_end = 1000;

    return p;
}


static uint32_t
fixture_object(prof_profile_t *p, const char *path, const char *build_id)
{
    prof_profile_object_t  *o;

    p->objects = fixture_grow(p->objects, p->nobjects,
                              sizeof(prof_profile_object_t));

    o = &p->objects[p->nobjects];
    memset(o, 0, sizeof(prof_profile_object_t));

    o->path = fixture_copy(path);
    o->build_id = fixture_copy(build_id);
    o->start = 0x1000;
    o->end = 0x100000;
    o->offset = 0x1000;

    return p->nobjects++;
}


/* the symbolizer fills in a NULL name */

static uint32_t
fixture_frame(prof_profile_t *p, uint32_t object, uint64_t pc,
    const char *name)
{
    prof_frame_t  *f;

    p->frames = fixture_grow(p->frames, p->nframes, sizeof(prof_frame_t));

    f = &p->frames[p->nframes];
    memset(f, 0, sizeof(prof_frame_t));

    f->object = object;
    f->pc = pc;
    f->name = name ? fixture_copy(name) : NULL;
    f->source = name && object != PROF_NONE ? PROF_SOURCE_SYMBOLS
                                            : PROF_SOURCE_NONE;

    return p->nframes++;
}


/* a frame that is no code */

static uint32_t
fixture_name(prof_profile_t *p, uint32_t type, const char *name)
{
    uint32_t  frame;

    frame = fixture_frame(p, PROF_NONE, 0, name);
    p->frames[frame].type = type;

    return frame;
}


static uint32_t
fixture_node(prof_profile_t *p, uint32_t parent, uint32_t frame)
{
    p->nodes = fixture_grow(p->nodes, p->nnodes, sizeof(prof_node_t));

    p->nodes[p->nnodes].parent = parent;
    p->nodes[p->nnodes].frame = frame;

    return p->nnodes++;
}


/* an entry without labels, whose values are 0 */

static prof_entry_t *
fixture_add(prof_profile_t *p, uint32_t series, uint32_t node)
{
    prof_entry_t  *e;

    e = prof_series_add(&p->series[series]);
    if (e == NULL) {
        abort();
    }

    e->node = node;
    e->labels = PROF_NONE;

    return e;
}


/* updates the totals of the profile, as a capture does */

static void
fixture_entry(prof_profile_t *p, uint32_t node, uint32_t type, uint64_t wall,
    uint64_t cpu)
{
    prof_entry_t  *e;

    e = fixture_add(p, PROF_SERIES_TIME, node);
    e->type = type;
    e->count = type == PROF_ENTRY_SAMPLE;
    e->values[PROF_VALUE_WALL] = wall;
    e->values[PROF_VALUE_CPU] = cpu;

    p->wall += wall;

    if (type != PROF_ENTRY_GAP) {
        p->running += wall;
        p->cpu += cpu;
        p->stats.samples += type == PROF_ENTRY_SAMPLE;
    }
}


/*
 * Returns the node of a stack written as "root/caller/leaf".  Uses existing
 * frames and nodes again.
 */

static uint32_t
fixture_stack(prof_profile_t *p, uint32_t object, const char *names)
{
    char      name[256];
    size_t    len;
    uint32_t  frame, node, parent;

    parent = PROF_NONE;

    for ( ;; ) {
        len = strcspn(names, "/");

        (void) snprintf(name, sizeof(name), "%.*s", (int) len, names);

        for (frame = 0; frame < p->nframes; frame++) {
            if (p->frames[frame].object == object
                && strcmp(p->frames[frame].name, name) == 0)
            {
                break;
            }
        }

        if (frame == p->nframes && object == PROF_NONE) {
            frame = fixture_name(p, name[0] == '[' ? PROF_TYPE_WAITING
                                                   : PROF_TYPE_STAGE, name);

        } else if (frame == p->nframes) {
            frame = fixture_frame(p, object, 0x1000 + 0x10 * frame, name);
        }

        for (node = 0; node < p->nnodes; node++) {
            if (p->nodes[node].parent == parent
                && p->nodes[node].frame == frame)
            {
                break;
            }
        }

        if (node == p->nnodes) {
            node = fixture_node(p, parent, frame);
        }

        if (names[len] == '\0') {
            return node;
        }

        names += len + 1;
        parent = node;
    }
}


/* a typical capture: two turns, a gap between them, two objects */

static prof_profile_t *
fixture_typical(void)
{
    uint32_t         exe, libc, node, waiting;
    prof_profile_t  *p;

    p = fixture_create("GET /index.html");

    p->start_realtime = 1700000000123456789;
    p->frequency = 1000;
    p->frequency_end = 500;

    exe = fixture_object(p, "/usr/sbin/server", "0d7fd93d");
    libc = fixture_object(p, "/usr/lib/libc.so.6", "51657f81");

    node = fixture_stack(p, exe, "main/run/handler/parse");
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1000000, 990000);
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1000000, 1000000);

    node = fixture_stack(p, exe, "main/run/handler/send");
    node = fixture_node(p, node, fixture_frame(p, libc, 0x2000, "writev"));
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 900000, 500000);

    waiting = fixture_stack(p, PROF_NONE, "[waiting]");
    fixture_entry(p, waiting, PROF_ENTRY_GAP, 250000000, 0);

    node = fixture_stack(p, exe, "main/run/finish");
    fixture_entry(p, node, PROF_ENTRY_TURN, 40000, 39000);

    p->stats.turns = 2;
    p->stats.turns_unsampled = 1;
    p->stats.lost_overrun = 1;
    p->stats.truncated = 2;
    p->stats.no_processor_ns = 300000;
    p->stats.blocked_ns = 100000;
    p->stats.own_start_ns = 2000;
    p->stats.own_handler_ns = 3500;
    p->stats.own_fold_ns = 1200;

    prof_profile_fact(p, "request", "GET /index.html HTTP/1.1", 24);

    return p;
}


/* a profile with all possible parts */

static prof_profile_t *
fixture_full(void)
{
    uint32_t         set;
    prof_entry_t    *e;
    prof_profile_t  *p;

    p = fixture_typical();

    p->duration = 12345;
    p->alloc_interval = 524288;
    p->peak_objects = 3;
    p->peak_space = 5000;
    p->aggregated = 1;
    p->objects[0].base = 0x7f0000000000;

    prof_profile_scope(p, "worker");
    prof_profile_label(p, "server", "example.com", 11);

    set = prof_profile_labels(p, PROF_NONE, "worker", "17", NULL);

    time_of(p, 0)->labels = set;
    time_of(p, 0)->count = 7;

    e = fixture_add(p, PROF_SERIES_MEMORY, time_of(p, 0)->node);
    e->labels = prof_profile_labels(p, set, "size", "4096", "bytes");
    e->values[PROF_VALUE_ALLOC_OBJECTS] = 10;
    e->values[PROF_VALUE_ALLOC_SPACE] = 40960;
    e->values[PROF_VALUE_INUSE_OBJECTS] = 1;
    e->values[PROF_VALUE_INUSE_SPACE] = UINT64_MAX;

    p->inlines = calloc(2, sizeof(prof_inline_t));
    p->inlines[0].name = fixture_copy("outer");
    p->inlines[0].file = fixture_copy("a.c");
    p->inlines[0].line = 21;
    p->inlines[1].name = fixture_copy("inner");
    p->ninlines = 2;

    p->frames[0].file = fixture_copy("main.c");
    p->frames[0].line = 11;
    p->frames[0].start_line = 10;
    p->frames[0].ninlines = 2;

    return p;
}


/*
 * With TEST_GOLDEN_RECORD in the environment the file is written instead of
 * compared; see t/fixtures/golden/record.sh.
 */

static int
fixture_golden(const char *source, const char *name, const prof_buf_t *b)
{
    int          same;
    char         path[4096];
    FILE        *f;
    size_t       dir, i, line;
    prof_buf_t   want;

    dir = strrchr(source, '/') ? strrchr(source, '/') - source : 0;

    (void) snprintf(path, sizeof(path), "%.*s/../fixtures/golden/%s",
                    (int) dir, source, name);

    if (getenv("TEST_GOLDEN_RECORD")) {
        f = fopen(path, "w");
        same = f && fwrite(b->data, 1, b->len, f) == b->len;
        same = f && fclose(f) == 0 && same;
        return same;
    }

    f = fopen(path, "r");
    if (f == NULL) {
        printf("# cannot open %s\n", path);
        return 0;
    }

    prof_buf_init(&want);

    for (i = fread(path, 1, sizeof(path), f);
         i > 0;
         i = fread(path, 1, sizeof(path), f))
    {
        prof_buf_append(&want, path, i);
    }

    fclose(f);

    line = 1;

    for (i = 0; i < want.len && i < b->len; i++) {
        if (want.data[i] != b->data[i]) {
            break;
        }

        line += want.data[i] == '\n';
    }

    same = i == want.len && i == b->len;

    if (!same) {
        printf("# %s differs in line %zu\n", name, line);
    }

    prof_buf_free(&want);

    return same;
}


static void *
fixture_grow(void *array, uint32_t n, size_t size)
{
    /* the array has room for n items up to the next power of two */

    if (n & (n - 1)) {
        return array;
    }

    array = realloc(array, size * (n ? 2 * (size_t) n : 1));
    if (array == NULL) {
        abort();
    }

    return array;
}


/* the helper that was built with this program finds the names */

static void
fixture_helper(void)
{
    int       i;
    char     *slash;
    ssize_t   n;

    static char  path[4096];

    n = readlink("/proc/self/exe", path, sizeof(path) - 64);
    path[n > 0 ? n : 0] = '\0';

    for (i = 0; i < 2; i++) {
        slash = strrchr(path, '/');

        if (slash) {
            *slash = '\0';
        }
    }

    (void) strcat(path, "/ngx_http_profile_symbolizer");

    prof_profile_helper(path);
}


static char *
fixture_copy(const char *s)
{
    char  *copy;

    copy = strdup(s);
    if (copy == NULL) {
        abort();
    }

    return copy;
}


#endif /* _PROF_FIXTURE_H_INCLUDED_ */
