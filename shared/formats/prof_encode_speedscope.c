
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The file format of speedscope.  The file contains several profiles of one
 * capture: one for each measure, in the order of time; the first measure by
 * module; and one for each set of labels, if there are several sets.  In the
 * profile by module, frames are objects, whose numbers follow those of
 * functions.
 *
 * The published schema permits additional members: "profile_info" has the
 * summary.
 *
 * The text is written directly.  A tree of JSON values needs 1 KB for a stack
 * of 22 frames, and three times as long.
 */


#include "formats/prof_encode.h"
#include "formats/prof_strings.h"
#include "formats/prof_text.h"
#include "names/prof_mangled.h"
#include "views/prof_label_sets.h"
#include "views/prof_source.h"
#include "views/prof_summary.h"
#include "views/prof_timeline.h"
#include "views/prof_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


/* with 100,000 samples the viewer loads for 7 seconds and uses 600 MB */

#define PROF_SPEEDSCOPE_MAX   100000

/* maximum number of profiles of labels; the heaviest sets are shown */

#define PROF_SPEEDSCOPE_SETS  32


#define PROF_SPEEDSCOPE_SCHEMA                                                \
    "https://www.speedscope.app/file-format-schema.json"

#define PROF_SPEEDSCOPE_EXPORTER  "ngx_http_profile_module@" PROF_VERSION


typedef struct {
    prof_buf_t      *out;
    prof_strings_t   names;     /* names of the members so far */
} prof_speedscope_info_t;


typedef struct {
    uint32_t    measure;
    uint32_t    labels;         /* a set, or PROF_TIMELINE_ALL */
    unsigned    modules:1;
} prof_speedscope_what_t;


static int prof_encode_speedscope_encode(const prof_profile_t *p,
    prof_buf_t *b);
static int prof_encode_speedscope_info(const prof_profile_t *p,
    prof_buf_t *b);
static int prof_encode_speedscope_item(void *data, const prof_summary_t *item);
static void prof_encode_speedscope_frames(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static void prof_encode_speedscope_function(const prof_profile_t *p,
    const prof_view_function_t *func, prof_buf_t *b);
static void prof_encode_speedscope_string(prof_buf_t *b, const char *member,
    const char *s);
static int prof_encode_speedscope_profiles(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static int prof_encode_speedscope_labels(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static int prof_encode_speedscope_profile(const prof_profile_t *p,
    const prof_view_t *v, const prof_speedscope_what_t *what, prof_buf_t *b);
static void prof_encode_speedscope_name(const prof_profile_t *p,
    const prof_timeline_t *t, const prof_speedscope_what_t *what,
    prof_buf_t *name);
static int prof_encode_speedscope_stacks(const prof_profile_t *p,
    const prof_view_t *v, const prof_timeline_t *t, int modules,
    prof_buf_t *b);
static uint32_t prof_encode_speedscope_stack(const prof_profile_t *p,
    const prof_view_t *v, uint32_t node, int modules, uint32_t *stack);


const prof_encoder_t  prof_encode_speedscope = {
    "speedscope",
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
    uint32_t      active, list[PROF_MEASURE_MAX];
    prof_view_t  *v;

    v = prof_view_create(p, NULL, NULL, 0);
    if (v == NULL) {
        return PROF_ERROR;
    }

    active = prof_measure_list(p, list) - 1;

    while (active && list[active] != prof_measure_first(p)) {
        active--;
    }

    prof_buf_puts(b, "{\"$schema\":\"" PROF_SPEEDSCOPE_SCHEMA "\","
                     "\"exporter\":\"" PROF_SPEEDSCOPE_EXPORTER "\",");
    prof_encode_speedscope_string(b, "name", p->title);
    prof_buf_printf(b, ",\"activeProfileIndex\":%" PRIu32, active);

    rc = prof_encode_speedscope_info(p, b);

    prof_encode_speedscope_frames(p, v, b);

    prof_buf_puts(b, ",\n\"profiles\":[\n");

    if (rc == PROF_OK) {
        rc = prof_encode_speedscope_profiles(p, v, b);
    }

    prof_buf_puts(b, "\n]}\n");

    prof_view_destroy(v);

    if (prof_buf_failed(b)) {
        rc = PROF_ERROR;
    }

    return rc;
}


static int
prof_encode_speedscope_info(const prof_profile_t *p, prof_buf_t *b)
{
    int                     rc;
    prof_speedscope_info_t  info;

    info.out = b;
    prof_strings_init(&info.names);

    prof_buf_puts(b, ",\n\"profile_info\":{");
    rc = prof_summary(p, prof_encode_speedscope_item, &info);
    prof_buf_puts(b, "}");

    if (info.names.failed) {
        rc = PROF_ERROR;
    }

    prof_strings_free(&info.names);

    return rc;
}


static int
prof_encode_speedscope_item(void *data, const prof_summary_t *item)
{
    prof_speedscope_info_t *info = data;

    size_t       n;
    prof_buf_t  *b;

    b = info->out;
    n = info->names.n;

    /* facts may have any name, and readers merge members with the same name */

    (void) prof_strings_add(&info->names, item->name);

    if (info->names.n == n) {
        return PROF_OK;
    }

    prof_buf_puts(b, n > 1 ? "," : "");

    if (item->unit == PROF_SUMMARY_TEXT) {
        prof_encode_speedscope_string(b, item->name, item->value);

    } else {
        prof_text_json(b, item->name, strlen(item->name));
        prof_buf_puts(b, ":");
        prof_buf_number(b, item->number < INT64_MAX ? item->number
                                                    : INT64_MAX);
    }

    return PROF_OK;
}


/* writes the functions of the view, and the objects after them */

static void
prof_encode_speedscope_frames(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    uint32_t     i;
    const char  *path;

    prof_buf_puts(b, ",\n\"shared\":{\"frames\":[");

    for (i = 0; i < v->nfunctions; i++) {
        prof_buf_puts(b, i ? ",\n" : "\n");
        prof_encode_speedscope_function(p, &v->functions[i], b);
    }

    for (i = 0; i < p->nobjects; i++) {
        path = p->objects[i].path;

        prof_buf_puts(b, i || v->nfunctions ? ",\n{" : "\n{");
        prof_encode_speedscope_string(b, "name", prof_path_file(path));
        prof_buf_puts(b, ",");
        prof_encode_speedscope_string(b, "file", path);
        prof_buf_puts(b, "}");
    }

    prof_buf_puts(b, "\n]}");
}


static void
prof_encode_speedscope_function(const prof_profile_t *p,
    const prof_view_function_t *func, prof_buf_t *b)
{
    uint32_t     object, source;
    prof_buf_t   name;
    const char  *file;

    prof_buf_init(&name);

    /*
     * The viewer demangles names by their prefix, also "_Release", and its
     * importer never ends if its policy forbids WebAssembly.
     */

    if (strncmp(func->name, "_R", 2) == 0 || prof_mangled(func->name)) {
        prof_buf_puts(&name, " ");
    }

    prof_buf_puts(&name, func->name);

    prof_buf_puts(b, "{\"name\":");
    prof_text_json(b, name.data, name.len);

    /* the object replaces a missing file; the color depends on it */

    file = func->file;
    object = p->frames[func->frame].object;

    if (file == NULL && object != PROF_NONE) {
        file = p->objects[object].path;
    }

    if (file) {
        prof_buf_puts(b, ",");
        prof_encode_speedscope_string(b, "file", file);
    }

    if (func->file && func->line) {
        prof_buf_printf(b, ",\"line\":%" PRIu32, func->line);
    }

    source = prof_source_function(p, func);

    if (source != PROF_SOURCE_NONE) {
        prof_buf_printf(b, ",\"source\":\"%s\"", prof_sources[source].name);
    }

    prof_buf_puts(b, "}");

    b->failed |= name.failed;
    prof_buf_free(&name);
}


static void
prof_encode_speedscope_string(prof_buf_t *b, const char *member, const char *s)
{
    prof_text_json(b, member, strlen(member));
    prof_buf_puts(b, ":");
    prof_text_json(b, s, strlen(s));
}


static int
prof_encode_speedscope_profiles(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    uint32_t                i, n, list[PROF_MEASURE_MAX];
    prof_speedscope_what_t  what;

    n = prof_measure_list(p, list);

    what.labels = PROF_TIMELINE_ALL;
    what.modules = 0;

    for (i = 0; i < n; i++) {
        what.measure = list[i];

        if (prof_encode_speedscope_profile(p, v, &what, b) != PROF_OK) {
            return PROF_ERROR;
        }

        prof_buf_puts(b, ",\n");
    }

    what.measure = prof_measure_first(p);
    what.modules = 1;

    if (prof_encode_speedscope_profile(p, v, &what, b) != PROF_OK) {
        return PROF_ERROR;
    }

    return prof_encode_speedscope_labels(p, v, b);
}


static int
prof_encode_speedscope_labels(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    int                     rc;
    uint32_t                i;
    prof_label_sets_t       sets;
    prof_speedscope_what_t  what;

    rc = prof_label_sets_init(&sets, p);

    what.measure = prof_measure_first(p);
    what.modules = 0;

    for (i = 0;
         rc == PROF_OK && sets.n > 1 && i < sets.n && i < PROF_SPEEDSCOPE_SETS;
         i++)
    {
        prof_buf_puts(b, ",\n");

        what.labels = sets.sets[i].labels;
        rc = prof_encode_speedscope_profile(p, v, &what, b);
    }

    prof_label_sets_free(&sets);

    return rc;
}


static int
prof_encode_speedscope_profile(const prof_profile_t *p, const prof_view_t *v,
    const prof_speedscope_what_t *what, prof_buf_t *b)
{
    int              rc;
    prof_buf_t       name;
    prof_timeline_t  t;

    static const char  *units[] = { "nanoseconds", "bytes", "none" };

    if (prof_timeline_init(&t, p, v, what->measure, what->labels,
                           PROF_SPEEDSCOPE_MAX)
        != PROF_OK)
    {
        return PROF_ERROR;
    }

    rc = PROF_ERROR;

    prof_buf_init(&name);
    prof_encode_speedscope_name(p, &t, what, &name);

    if (prof_buf_failed(&name)) {
        goto done;
    }

    prof_buf_puts(b, "{\"type\":\"sampled\",\"name\":");
    prof_text_json(b, name.data, name.len);
    prof_buf_printf(b, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":",
                    units[prof_measures[what->measure].unit]);
    prof_buf_number(b, t.total);

    rc = prof_encode_speedscope_stacks(p, v, &t, what->modules, b);

    prof_buf_puts(b, "}");

done:

    prof_buf_free(&name);
    prof_timeline_free(&t);

    return rc;
}


static void
prof_encode_speedscope_name(const prof_profile_t *p, const prof_timeline_t *t,
    const prof_speedscope_what_t *what, prof_buf_t *name)
{
    const prof_measure_t  *measure;

    if (what->labels == PROF_TIMELINE_ALL) {
        prof_buf_puts(name, what->modules ? "by module, " : "");
        prof_summary_line(p, what->measure, name);

    } else {
        measure = &prof_measures[what->measure];

        prof_label_sets_text(p, what->labels, name);
        prof_buf_puts(name, name->len ? ": " : "no label: ");
        prof_buf_printf(name, "%s, ", measure->name);
        prof_measure_value(name, measure->unit, t->total);
    }

    if (t->nmerged) {
        prof_buf_printf(name, ", %" PRIu32 " stacks shown as %" PRIu32,
                        t->nmerged, t->nruns);
    }
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

        /* stacks that differ only in functions have the same modules */

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


/*
 * Lists the frames of a node, innermost first.  Consecutive calls within a
 * module become one frame.
 */

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

                /*
                 * The cause of a wait stands for the code below it.  No stack
                 * is empty, whatever is at its root.
                 */

                if (v->functions[frame].waits
                    && v->nodes[node].parent != PROF_NONE)
                {
                    continue;
                }

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
