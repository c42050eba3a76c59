
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The file format of speedscope: a profile for each measure of the same
 * capture, in the order of time; the first of them by module; and for each set
 * of labels, if there are several.  The frames of the one by module are
 * objects: they follow those of functions.
 *
 * The stacks are arrays of small integers, millions of them; a tree of JSON
 * values takes 1 KB for a stack of 22, and three times as long, so they are
 * written directly.
 */


#include "formats/prof_encode.h"
#include "formats/prof_speedscope_json.h"
#include "views/prof_label_sets.h"
#include "views/prof_summary.h"
#include "views/prof_timeline.h"
#include "views/prof_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


/* more make the viewer slow: 100,000 take it 7 seconds and 600 MB to load */

#define PROF_SPEEDSCOPE_MAX   100000

/* profiles of labels: the heaviest sets */

#define PROF_SPEEDSCOPE_SETS  32


typedef struct {
    uint32_t    measure;
    uint32_t    labels;         /* a set, or PROF_TIMELINE_ALL */
    unsigned    modules:1;
} prof_speedscope_what_t;


static int prof_encode_speedscope_encode(const prof_profile_t *p,
    prof_buf_t *b);
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

    prof_buf_puts(b, "{");
    prof_speedscope_head(b, p, active);
    prof_speedscope_info(b, p);
    prof_speedscope_frames(b, p, v);

    prof_buf_puts(b, ",\n\"profiles\":[\n");
    rc = prof_encode_speedscope_profiles(p, v, b);
    prof_buf_puts(b, "\n]}\n");

    prof_view_destroy(v);

    if (prof_buf_failed(b)) {
        rc = PROF_ERROR;
    }

    return rc;
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
    prof_speedscope_string(b, name.data, name.len);
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
