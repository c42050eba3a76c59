
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * No box is heavier than the box below it, so the boxes above a threshold form
 * a tree.
 */


#include "formats/prof_text.h"
#include "base/prof_hash.h"
#include "formats/prof_svg_plot.h"
#include "profile/prof_measure.h"
#include "views/prof_source.h"

#include <stdlib.h>
#include <string.h>


/* a box that is narrower than 1 / 64 of the picture shows no text */

#define PROF_SVG_LABELED   64

/* a box that is narrower than 1 / 512 of the picture has no border */

#define PROF_SVG_LINED     512

/* if more than 1 / 1000 is hidden, a search reports that it is incomplete */

#define PROF_SVG_PARTIAL   1000

/* the size of a box without the texts of its function, in bytes */

#define PROF_SVG_BOX       180


static int prof_svg_plot_costs(prof_svg_plot_t *plot);
static int prof_svg_plot_wide(prof_svg_plot_t *plot, uint64_t min);
static size_t prof_svg_plot_size(prof_svg_plot_t *plot, uint64_t min);
static void prof_svg_plot_all(const prof_svg_plot_t *plot, const char *place,
    prof_buf_t *b);
static void prof_svg_plot_box(const prof_svg_plot_t *plot, uint32_t n,
    uint64_t x, prof_buf_t *b);
static void prof_svg_plot_origin(const prof_svg_plot_t *plot,
    const prof_view_function_t *func, prof_buf_t *b);
static uint32_t prof_svg_plot_inferred(const prof_svg_plot_t *plot,
    uint32_t n);
static void prof_svg_plot_class(const prof_svg_plot_t *plot, uint32_t n,
    prof_buf_t *b);
static const char *prof_svg_plot_shade(const char *name);


int
prof_svg_plot_init(prof_svg_plot_t *plot, const prof_profile_t *p,
    const prof_view_t *v, uint32_t column, size_t size)
{
    uint64_t  high, low, mid, whole;

    memset(plot, 0, sizeof(prof_svg_plot_t));
    plot->profile = p;
    plot->view = v;
    plot->column = column;
    plot->measure = v->measure[column];
    plot->mode = prof_measures[plot->measure].name;

    whole = v->whole[plot->column];
    low = whole / PROF_VIEW_SHARE + 1;
    high = whole + 1;

    if (prof_svg_plot_costs(plot) != PROF_OK
        || prof_svg_plot_wide(plot, low) != PROF_OK)
    {
        return PROF_ERROR;
    }

    while (low < high) {
        mid = low + (high - low) / 2;

        if (prof_svg_plot_size(plot, mid) > size) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    plot->min = high;
    (void) prof_svg_plot_size(plot, high);

    return PROF_OK;
}


void
prof_svg_plot_free(prof_svg_plot_t *plot)
{
    free(plot->cost);
    free(plot->kind);
    free(plot->wide);
}


static int
prof_svg_plot_costs(prof_svg_plot_t *plot)
{
    uint32_t            i;
    prof_buf_t          b;
    const prof_view_t  *v;

    v = plot->view;

    plot->cost = malloc(((size_t) v->nfunctions + 1) * sizeof(uint32_t));
    plot->kind = prof_kind_functions(plot->profile, v);

    if (plot->cost == NULL || plot->kind == NULL) {
        return PROF_ERROR;
    }

    prof_buf_init(&b);

    for (i = 0; i < v->nfunctions; i++) {
        b.len = 0;
        prof_markup_text(&b, v->functions[i].name,
                         strlen(v->functions[i].name), PROF_SVG_NAME_MAX);
        prof_svg_plot_origin(plot, &v->functions[i], &b);

        plot->cost[i] = (uint32_t) b.len;
    }

    prof_buf_free(&b);

    return PROF_OK;
}


/* finds the nodes that some threshold shows: most nodes are too narrow */

static int
prof_svg_plot_wide(prof_svg_plot_t *plot, uint64_t min)
{
    uint32_t   i, n;
    uint64_t   total;
    uint32_t  *wide;

    n = plot->view->nnodes;

    wide = malloc(((size_t) n + 1) * sizeof(uint32_t));
    if (wide == NULL) {
        return PROF_ERROR;
    }

    plot->wide = wide;

    for (i = 0; i < n; i++) {
        total = prof_view_total(plot->view, i, plot->column);

        plot->nnodes += total != 0;

        if (total >= min) {
            wide[plot->nwide++] = i;
        }
    }

    return PROF_OK;
}


/* counts the boxes for a threshold; returns their size in bytes */

static size_t
prof_svg_plot_size(prof_svg_plot_t *plot, uint64_t min)
{
    size_t                   size;
    uint32_t                 f, i, n;
    uint64_t                 labeled, total, whole;
    const prof_view_t       *v;
    const prof_view_node_t  *node;

    v = plot->view;
    whole = v->whole[plot->column];

    size = 0;
    labeled = whole / PROF_SVG_LABELED;

    plot->rows = 1;
    plot->nshown = 0;
    plot->ndeep = 0;
    plot->ninferred = 0;
    plot->hidden = whole;
    memset(plot->kinds, 0, sizeof(plot->kinds));

    for (i = 0; i < plot->nwide; i++) {
        n = plot->wide[i];
        node = &v->nodes[n];
        total = prof_view_total(v, n, plot->column);

        if (total < min) {
            continue;
        }

        if (node->depth >= PROF_SVG_DEPTH) {
            plot->ndeep++;
            continue;
        }

        /*
         * The shown boxes form a tree.  The weight that does not end in a
         * shown box is hidden.
         */

        plot->hidden -= prof_view_self(v, n, plot->column);

        f = node->function;

        plot->nshown++;
        plot->kinds[plot->kind[f]]++;
        plot->ninferred += prof_svg_plot_inferred(plot, n);

        if (node->depth + 2 > plot->rows) {
            plot->rows = node->depth + 2;
        }

        size += PROF_SVG_BOX + plot->cost[f] * (total >= labeled ? 2 : 1);
    }

    plot->nhidden = plot->nnodes - plot->nshown - plot->ndeep;

    return size;
}


int
prof_svg_plot_write(const prof_svg_plot_t *plot, const char *place,
    prof_buf_t *b)
{
    uint32_t                 child, i, last, n, next, *queue;
    uint64_t                 left, total, *x;
    const prof_view_t       *v;
    const prof_view_node_t  *node;

    v = plot->view;

    queue = malloc(((size_t) v->nnodes + 1) * sizeof(uint32_t));
    x = malloc(((size_t) v->nnodes + 1) * sizeof(uint64_t));

    if (queue == NULL || x == NULL) {
        free(queue);
        free(x);
        return PROF_ERROR;
    }

    prof_svg_plot_all(plot, place, b);

    /* row by row: the next row has the children of a row in the same order */

    i = 0;
    last = 0;
    left = 0;

    for (child = v->root; child != PROF_NONE; child = v->nodes[child].next) {
        x[child] = left;
        total = prof_view_total(v, child, plot->column);
        left += total;

        if (total >= plot->min) {
            queue[last++] = child;
        }
    }

    for (n = 1; i < last && n <= PROF_SVG_DEPTH; n++) {

        prof_buf_printf(b, "<svg y=\"%u\" height=\"%u\">\n",
                        n * PROF_SVG_ROW, PROF_SVG_ROW - 1);

        for (next = last; i < next; i++) {
            node = &v->nodes[queue[i]];
            left = x[queue[i]];

            prof_svg_plot_box(plot, queue[i], left, b);

            for (child = node->child;
                 child != PROF_NONE;
                 child = v->nodes[child].next)
            {
                x[child] = left;
                total = prof_view_total(v, child, plot->column);
                left += total;

                if (total >= plot->min) {
                    queue[last++] = child;
                }
            }
        }

        prof_buf_puts(b, "</svg>\n");
    }

    prof_buf_puts(b, "</svg></svg>\n");

    free(queue);
    free(x);

    return PROF_OK;
}


static void
prof_svg_plot_all(const prof_svg_plot_t *plot, const char *place,
    prof_buf_t *b)
{
    uint64_t               whole;
    const prof_measure_t  *measure;

    whole = plot->view->whole[plot->column];
    measure = &prof_measures[plot->measure];

    prof_buf_printf(b, "<svg class=\"prof-plot\" %s height=\"%u\" "
                    "data-mode=\"%s\" data-unit=\"%s\" data-total=\"",
                    place, plot->rows * PROF_SVG_ROW, plot->mode,
                    prof_measure_unit(measure->unit));
    prof_buf_number(b, whole);
    prof_buf_puts(b, plot->hidden > whole / PROF_SVG_PARTIAL
                     ? "\" data-partial=\"" : "");
    prof_buf_puts(b, "\"><rect class=\"prof-area\" width=\"100%\" "
                     "height=\"100%\"/><svg class=\"prof-zoom\">\n"
                     "<svg y=\"0\" height=\"");
    prof_buf_number(b, PROF_SVG_ROW - 1);
    prof_buf_puts(b, "\">\n<svg x=\"0%\" width=\"100%\" class=\"all\">"
                     "<title>");
    prof_buf_puts(b, measure->whole);
    prof_buf_puts(b, "\n");
    prof_measure_value(b, measure->unit, whole);
    prof_buf_puts(b, ", 100%</title><rect width=\"100%\" height=\"100%\"/>"
                     "<text x=\"4\" y=\"12.5\">");
    prof_buf_puts(b, measure->whole);
    prof_buf_puts(b, "</text></svg>\n</svg>\n");
}


static void
prof_svg_plot_box(const prof_svg_plot_t *plot, uint32_t n, uint64_t x,
    prof_buf_t *b)
{
    size_t                       len;
    uint32_t                     unit;
    uint64_t                     part, self, total;
    const prof_view_node_t      *node;
    const prof_view_function_t  *func;

    node = &plot->view->nodes[n];
    func = &plot->view->functions[node->function];
    unit = prof_measures[plot->measure].unit;
    total = plot->view->whole[plot->column];
    part = prof_view_total(plot->view, n, plot->column);
    self = prof_view_self(plot->view, n, plot->column);
    len = strlen(func->name);

    prof_buf_puts(b, "<svg x=\"");
    prof_markup_percent(b, x, total, 4);
    prof_buf_puts(b, "%\" width=\"");
    prof_markup_percent(b, part, total, 4);
    prof_buf_puts(b, "%\" data-n=\"");
    prof_buf_number(b, part);

    if (self) {
        prof_buf_puts(b, " ");
        prof_buf_number(b, self);
    }

    prof_buf_puts(b, "\" class=\"");
    prof_svg_plot_class(plot, n, b);
    prof_buf_puts(b, part < total / PROF_SVG_LINED ? " x" : "");

    prof_buf_puts(b, "\"><title>");
    prof_markup_text(b, func->name, len, PROF_SVG_NAME_MAX);
    prof_buf_puts(b, "\n");
    prof_measure_value(b, unit, part);
    prof_buf_puts(b, ", ");
    prof_markup_percent(b, part, total, 2);
    prof_buf_puts(b, "%");

    if (self) {
        prof_buf_puts(b, ", self ");
        prof_measure_value(b, unit, self);
    }

    if (plot->style) {
        plot->style->tell(plot, n, b);
    }

    prof_svg_plot_origin(plot, func, b);
    prof_buf_puts(b, "</title><rect width=\"100%\" height=\"100%\"/>");

    if (part >= total / PROF_SVG_LABELED) {
        prof_buf_puts(b, "<text x=\"4\" y=\"12.5\">");
        prof_markup_text(b, func->name, len, PROF_SVG_NAME_MAX);
        prof_buf_puts(b, "</text>");
    }

    prof_buf_puts(b, "</svg>\n");
}


static uint32_t
prof_svg_plot_inferred(const prof_svg_plot_t *plot, uint32_t n)
{
    uint32_t            f;
    const prof_view_t  *v;

    v = plot->view;
    f = v->nodes[n].function;

    return plot->style == NULL
           && prof_source_is_inferred(prof_source_function(plot->profile,
                                                           &v->functions[f]));
}


/*
 * Writes the class of a box: its kind, its shade, and the frames that the
 * script can omit besides stages: frames of scripts ("f"), of the kernel
 * ("y"), and frames with inferred names.
 */

static void
prof_svg_plot_class(const prof_svg_plot_t *plot, uint32_t n, prof_buf_t *b)
{
    uint32_t                     function;
    const prof_frame_t          *f;
    const prof_view_function_t  *func;

    if (plot->style) {
        prof_buf_puts(b, plot->style->class(plot, n));
        return;
    }

    function = plot->view->nodes[n].function;
    func = &plot->view->functions[function];
    f = &plot->profile->frames[func->frame];

    prof_buf_puts(b, prof_kinds[plot->kind[function]].name);
    prof_buf_puts(b, prof_svg_plot_shade(func->name));
    prof_buf_puts(b, f->type == PROF_TYPE_SCRIPT ? " f"
                     : f->type == PROF_TYPE_KERNEL ? " y" : "");
    prof_buf_puts(b, prof_svg_plot_inferred(plot, n) ? " " PROF_SVG_INFERRED
                                                     : "");
}


/* writes the sources of the function and of its name, on a line */

static void
prof_svg_plot_origin(const prof_svg_plot_t *plot,
    const prof_view_function_t *func, prof_buf_t *b)
{
    uint32_t     object, source;
    const char  *name;

    object = plot->profile->frames[func->frame].object;

    if (object != PROF_NONE) {
        name = prof_path_file(plot->profile->objects[object].path);

        prof_buf_puts(b, "\n");
        prof_markup_text(b, name, strlen(name), PROF_SVG_NAME_MAX);
    }

    if (func->file) {
        prof_buf_puts(b, object == PROF_NONE ? "\n" : ", ");
        prof_markup_text(b, func->file, strlen(func->file),
                         PROF_SVG_NAME_MAX);

        if (func->line) {
            prof_buf_puts(b, ":");
            prof_buf_number(b, func->line);
        }
    }

    if (func->inlined) {
        prof_buf_puts(b, object == PROF_NONE && func->file == NULL
                         ? "\ninlined" : ", inlined");
    }

    source = prof_source_function(plot->profile, func);

    if (source == PROF_SOURCE_NONE) {
        return;
    }

    prof_buf_puts(b, object == PROF_NONE && func->file == NULL
                     && !func->inlined ? "\n" : " (");
    prof_buf_puts(b, prof_sources[source].text);
    prof_buf_puts(b, object == PROF_NONE && func->file == NULL
                     && !func->inlined ? "" : ")");
}


/* returns a shade, so that neighbors differ; a name always has the same one */

static const char *
prof_svg_plot_shade(const char *name)
{
    switch (prof_hash_text(0, name) % 3) {

    case 0:
        return "";

    case 1:
        return " a";

    default:
        return " b";
    }
}


void
prof_svg_plot_defs(prof_buf_t *b)
{
    prof_buf_puts(b, "<defs><pattern id=\"prof-hatch\" width=\"6\" "
                     "height=\"6\" patternUnits=\"userSpaceOnUse\" "
                     "patternTransform=\"rotate(45)\">"
                     "<rect width=\"6\" height=\"6\"/>"
                     "<path d=\"M0 0V6\"/></pattern></defs>\n");
}


void
prof_svg_plot_hidden(const prof_svg_plot_t *plot, prof_buf_t *b)
{
    prof_buf_printf(b, "%u of %u boxes are shown, ", plot->nshown,
                    plot->nshown + plot->ndeep + plot->nhidden);

    if (plot->ndeep) {
        prof_buf_printf(b, "those below the first %u frames are not%s",
                        PROF_SVG_DEPTH, plot->nhidden ? ", " : "");
    }

    if (plot->nhidden) {
        prof_buf_puts(b, "none of the others is wider than ");
        prof_markup_percent(b, plot->min, plot->view->whole[plot->column], 3);
        prof_buf_puts(b, "%");
    }

    prof_buf_puts(b, "; they have ");
    prof_markup_percent(b, plot->hidden, plot->view->whole[plot->column], 2);
    prof_buf_puts(b, "% of the ");
    prof_buf_puts(b, prof_measures[plot->measure].series == PROF_SERIES_TIME
                     ? "time" : "whole");
}
