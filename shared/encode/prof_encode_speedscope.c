
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The file format of speedscope: the wall-clock and the CPU timeline of the
 * same capture, and the one of its mode by module, as three profiles of one
 * file.  The frames of the last are objects: they follow those of functions.
 *
 * The only user of jansson, which writes all that has strings in it.  The
 * stacks are arrays of small integers, millions of them; a tree of JSON values
 * takes 1 KB for a stack of 22, and three times as long, so they are
 * written directly.
 *
 * The published schema permits members of our own: "profile_info" has the
 * summary.
 */


#include "encode/prof_encode.h"
#include "encode/prof_summary.h"
#include "encode/prof_text.h"
#include "encode/prof_timeline.h"
#include "encode/prof_view.h"
#include "profile/prof_demangle.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>


#define PROF_SPEEDSCOPE_SCHEMA                                                \
    "https://www.speedscope.app/file-format-schema.json"

#define PROF_SPEEDSCOPE_EXPORTER  "ngx_http_profile_module@" PROF_VERSION

/* more make the viewer slow: 100,000 take it 7 seconds and 600 MB to load */

#define PROF_SPEEDSCOPE_MAX       100000

#define PROF_SPEEDSCOPE_FLAGS     (JSON_COMPACT|JSON_ENCODE_ANY)


static int prof_encode_speedscope_encode(const prof_profile_t *p,
    prof_buf_t *b);
static void prof_encode_speedscope_frames(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static json_t *prof_encode_speedscope_frame(const prof_profile_t *p,
    const prof_view_function_t *func);
static void prof_encode_speedscope_modules(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static int prof_encode_speedscope_profile(const prof_profile_t *p,
    const prof_view_t *v, uint32_t mode, int modules, prof_buf_t *b);
static int prof_encode_speedscope_stacks(const prof_profile_t *p,
    const prof_view_t *v, const prof_timeline_t *t, int modules,
    prof_buf_t *b);
static uint32_t prof_encode_speedscope_stack(const prof_profile_t *p,
    const prof_view_t *v, uint32_t node, int modules, uint32_t *stack);
static void prof_encode_speedscope_info(const prof_profile_t *p,
    prof_buf_t *b);
static int prof_encode_speedscope_item(void *data, const prof_summary_t *item);
static json_t *prof_encode_speedscope_string(const char *s, size_t len);
static void prof_encode_speedscope_dump(json_t *json, size_t flags,
    prof_buf_t *b);
static int prof_encode_speedscope_write(const char *data, size_t len,
    void *arg);


const prof_encoder_t  prof_encode_speedscope = {
    "speedscope",
    "application/json",
    "speedscope.json",
    prof_encode_speedscope_encode,
    NULL,
    1
};


static int
prof_encode_speedscope_encode(const prof_profile_t *p, prof_buf_t *b)
{
    int           rc;
    json_t       *head;
    uint32_t      mode;
    prof_view_t  *v;

    v = prof_view_create(p, NULL);
    if (v == NULL) {
        return PROF_ERROR;
    }

    head = json_pack("{s:s, s:s, s:o, s:i}",
                     "$schema", PROF_SPEEDSCOPE_SCHEMA,
                     "exporter", PROF_SPEEDSCOPE_EXPORTER,
                     "name", prof_encode_speedscope_string(p->title,
                                                           strlen(p->title)),
                     "activeProfileIndex", (int) prof_view_mode(p));

    prof_buf_puts(b, "{");
    prof_encode_speedscope_dump(head, PROF_SPEEDSCOPE_FLAGS|JSON_EMBED, b);
    prof_encode_speedscope_info(p, b);
    prof_encode_speedscope_frames(p, v, b);

    rc = PROF_OK;

    prof_buf_puts(b, ",\n\"profiles\":[");

    for (mode = 0; mode < PROF_VIEW_MODES && rc == PROF_OK; mode++) {
        prof_buf_puts(b, mode ? ",\n" : "\n");
        rc = prof_encode_speedscope_profile(p, v, mode, 0, b);
    }

    if (rc == PROF_OK) {
        prof_buf_puts(b, ",\n");
        rc = prof_encode_speedscope_profile(p, v, prof_view_mode(p), 1, b);
    }

    prof_buf_puts(b, "\n]}\n");

    prof_view_destroy(v);

    if (prof_buf_failed(b)) {
        rc = PROF_ERROR;
    }

    return rc;
}


static void
prof_encode_speedscope_frames(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    uint32_t  i;

    prof_buf_puts(b, ",\n\"shared\":{\"frames\":[");

    for (i = 0; i < v->nfunctions; i++) {
        prof_buf_puts(b, i ? ",\n" : "\n");
        prof_encode_speedscope_dump(
                            prof_encode_speedscope_frame(p, &v->functions[i]),
                            PROF_SPEEDSCOPE_FLAGS, b);
    }

    prof_encode_speedscope_modules(p, v, b);

    prof_buf_puts(b, "\n]}");
}


static void
prof_encode_speedscope_modules(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    uint32_t     i;
    const char  *path, *name;

    for (i = 0; i < p->nobjects; i++) {
        path = p->objects[i].path;
        name = strrchr(path, '/');
        name = name ? name + 1 : path;

        prof_buf_puts(b, i || v->nfunctions ? ",\n" : "\n");
        prof_encode_speedscope_dump(
            json_pack("{s:o, s:o}",
                      "name", prof_encode_speedscope_string(name,
                                                            strlen(name)),
                      "file", prof_encode_speedscope_string(path,
                                                            strlen(path))),
            PROF_SPEEDSCOPE_FLAGS, b);
    }
}


static json_t *
prof_encode_speedscope_frame(const prof_profile_t *p,
    const prof_view_function_t *func)
{
    json_t              *json;
    const char          *file;
    prof_buf_t           name;
    const prof_frame_t  *f;

    f = &p->frames[func->frame];

    prof_buf_init(&name);

    /*
     * The viewer demangles names by their prefix, "_Release" as well, and its
     * importer never ends if its policy forbids WebAssembly.
     */

    if (strncmp(func->name, "_R", 2) == 0
        || prof_demangle_is_mangled(func->name))
    {
        prof_buf_puts(&name, " ");
    }

    prof_buf_puts(&name, func->name);

    json = json_object();

    if (prof_buf_failed(&name)
        || json_object_set_new(json, "name",
                               prof_encode_speedscope_string(name.data,
                                                             name.len)))
    {
        goto failed;
    }

    /* without a source file, the object serves; it also chooses the color */

    file = f->file;

    if (file == NULL && f->object != PROF_NONE) {
        file = p->objects[f->object].path;
    }

    if (file
        && json_object_set_new(json, "file",
                               prof_encode_speedscope_string(file,
                                                             strlen(file))))
    {
        goto failed;
    }

    if (f->file && f->line
        && json_object_set_new(json, "line", json_integer(f->line)))
    {
        goto failed;
    }

    prof_buf_free(&name);

    return json;

failed:

    prof_buf_free(&name);
    json_decref(json);

    return NULL;
}


static int
prof_encode_speedscope_profile(const prof_profile_t *p, const prof_view_t *v,
    uint32_t mode, int modules, prof_buf_t *b)
{
    int              rc;
    json_t          *head;
    prof_buf_t       name;
    prof_timeline_t  t;

    if (prof_timeline_init(&t, p, v, mode, PROF_SPEEDSCOPE_MAX) != PROF_OK) {
        return PROF_ERROR;
    }

    rc = PROF_ERROR;

    prof_buf_init(&name);

    if (modules) {
        prof_buf_puts(&name, "by module, ");
    }

    prof_summary_line(p, mode, &name);

    if (t.nmerged) {
        prof_buf_printf(&name, ", %" PRIu32 " stacks shown as %" PRIu32,
                        t.nmerged, t.nruns);
    }

    if (prof_buf_failed(&name)) {
        goto done;
    }

    head = json_pack("{s:s, s:o, s:s, s:i}",
                     "type", "sampled",
                     "name", prof_encode_speedscope_string(name.data,
                                                           name.len),
                     "unit", "nanoseconds",
                     "startValue", 0);

    prof_buf_puts(b, "{");
    prof_encode_speedscope_dump(head, PROF_SPEEDSCOPE_FLAGS|JSON_EMBED, b);
    prof_buf_puts(b, ",\"endValue\":");
    prof_buf_number(b, t.total);

    rc = prof_encode_speedscope_stacks(p, v, &t, modules, b);

    prof_buf_puts(b, "}");

done:

    prof_buf_free(&name);
    prof_timeline_free(&t);

    return rc;
}


static int
prof_encode_speedscope_stacks(const prof_profile_t *p, const prof_view_t *v,
    const prof_timeline_t *t, int modules, prof_buf_t *b)
{
    int        rc;
    uint32_t   i, k, n, last, nweights, *stack, *prev, *swap;
    uint64_t  *weights;

    stack = malloc(((size_t) v->depth + 1) * sizeof(uint32_t));
    prev = malloc(((size_t) v->depth + 1) * sizeof(uint32_t));
    weights = malloc(((size_t) t->nruns + 1) * sizeof(uint64_t));

    rc = PROF_ERROR;

    if (stack == NULL || prev == NULL || weights == NULL) {
        goto done;
    }

    prof_buf_puts(b, ",\n\"samples\":[");

    last = 0;
    nweights = 0;

    for (i = 0; i < t->nruns; i++) {

        n = prof_encode_speedscope_stack(p, v, t->runs[i].node, modules,
                                         stack);

        /* different functions of the same modules */

        if (nweights && n == last
            && memcmp(stack, prev, n * sizeof(uint32_t)) == 0)
        {
            weights[nweights - 1] += t->runs[i].weight;
            continue;
        }

        prof_buf_puts(b, nweights ? ",\n[" : "\n[");

        for (k = n; k > 0; k--) {
            prof_buf_number(b, stack[k - 1]);
            prof_buf_puts(b, k > 1 ? "," : "]");
        }

        weights[nweights++] = t->runs[i].weight;

        last = n;
        swap = prev;
        prev = stack;
        stack = swap;
    }

    prof_buf_puts(b, "],\n\"weights\":[");

    for (i = 0; i < nweights; i++) {
        prof_buf_puts(b, i ? "," : "");
        prof_buf_number(b, weights[i]);
    }

    prof_buf_puts(b, "]");

    rc = PROF_OK;

done:

    free(stack);
    free(prev);
    free(weights);

    return rc;
}


/* frames of a node, innermost first; calls within a module are one frame */

static uint32_t
prof_encode_speedscope_stack(const prof_profile_t *p, const prof_view_t *v,
    uint32_t node, int modules, uint32_t *stack)
{
    uint32_t  n, frame, object;

    for (n = 0; node != PROF_NONE; node = v->nodes[node].parent) {

        frame = v->nodes[node].function;

        if (modules) {
            object = p->frames[v->functions[frame].frame].object;

            if (object != PROF_NONE) {
                frame = v->nfunctions + object;
            }

            if (n && stack[n - 1] == frame) {
                continue;
            }
        }

        stack[n++] = frame;
    }

    return n;
}


static void
prof_encode_speedscope_info(const prof_profile_t *p, prof_buf_t *b)
{
    json_t  *info;

    info = json_object();

    if (info && prof_summary(p, prof_encode_speedscope_item, info) != PROF_OK)
    {
        json_decref(info);
        info = NULL;
    }

    prof_buf_puts(b, ",\n\"profile_info\":");
    prof_encode_speedscope_dump(info, PROF_SPEEDSCOPE_FLAGS, b);
}


static int
prof_encode_speedscope_item(void *data, const prof_summary_t *item)
{
    int      rc;
    char    *name;
    size_t   len;
    json_t  *info, *value;

    info = data;

    if (item->unit == PROF_SUMMARY_TEXT) {
        value = prof_encode_speedscope_string(item->value,
                                              strlen(item->value));

    } else {
        value = json_integer(item->number < INT64_MAX
                             ? (json_int_t) item->number : INT64_MAX);
    }

    len = strlen(item->name);

    name = prof_text_utf8(item->name, &len);
    if (name == NULL) {
        json_decref(value);
        return PROF_ERROR;
    }

    rc = json_object_set_new(info, name, value) ? PROF_ERROR : PROF_OK;

    free(name);

    return rc;
}


static json_t *
prof_encode_speedscope_string(const char *s, size_t len)
{
    char    *text;
    json_t  *json;

    text = prof_text_utf8(s, &len);
    if (text == NULL) {
        return NULL;
    }

    json = json_stringn(text, len);

    free(text);

    return json;
}


/* consumes the value, which may be NULL when memory was short */

static void
prof_encode_speedscope_dump(json_t *json, size_t flags, prof_buf_t *b)
{
    if (json == NULL
        || json_dump_callback(json, prof_encode_speedscope_write, b, flags))
    {
        b->failed = 1;
    }

    json_decref(json);
}


static int
prof_encode_speedscope_write(const char *data, size_t len, void *arg)
{
    prof_buf_append(arg, data, len);

    return 0;
}
