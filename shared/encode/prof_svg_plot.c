
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * No box is heavier than the one it stands on, so the boxes above a threshold
 * are a tree again.
 */


#include "encode/prof_markup.h"
#include "encode/prof_summary.h"
#include "encode/prof_svg_plot.h"

#include <stdlib.h>
#include <string.h>


/* boxes that are narrower than this part of the whole are never shown */

#define PROF_SVG_SHARE     20000

/* a box that is narrower than this part has no room for a text */

#define PROF_SVG_LABELED   64

/* or no room for a line around it */

#define PROF_SVG_LINED     512

/* if more than this part is hidden, a search says that it does not see all */

#define PROF_SVG_PARTIAL   1000

#define PROF_SVG_NAME_MAX  512

/* what a box takes besides the texts of its function */

#define PROF_SVG_BOX       150


static size_t prof_svg_plot_size(prof_svg_plot_t *plot, uint64_t min);
static void prof_svg_plot_all(const prof_svg_plot_t *plot, const char *place,
    prof_buf_t *b);
static void prof_svg_plot_box(const prof_svg_plot_t *plot, uint32_t n,
    uint64_t x, prof_buf_t *b);
static void prof_svg_plot_origin(const prof_svg_plot_t *plot,
    const prof_frame_t *f, prof_buf_t *b);
static const char *prof_svg_plot_shade(const char *name);


int
prof_svg_plot_init(prof_svg_plot_t *plot, const prof_profile_t *p,
    const prof_view_t *v, uint32_t mode, size_t size)
{
    uint32_t             i;
    uint64_t             high, low, mid;
    prof_buf_t           b;
    const prof_frame_t  *f;

    memset(plot, 0, sizeof(prof_svg_plot_t));
    plot->profile = p;
    plot->view = v;
    plot->mode = mode;

    plot->cost = malloc(((size_t) v->nfunctions + 1) * sizeof(uint32_t));
    plot->kind = prof_kind_functions(p, v);

    if (plot->cost == NULL || plot->kind == NULL) {
        return PROF_ERROR;
    }

    prof_buf_init(&b);

    for (i = 0; i < v->nfunctions; i++) {
        f = &p->frames[v->functions[i].frame];

        b.len = 0;
        prof_markup_text(&b, v->functions[i].name,
                         strlen(v->functions[i].name), PROF_SVG_NAME_MAX);
        prof_svg_plot_origin(plot, f, &b);

        plot->cost[i] = (uint32_t) b.len;
    }

    prof_buf_free(&b);

    low = v->total[mode] / PROF_SVG_SHARE + 1;
    high = v->total[mode] + 1;

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
}


/* counts what is shown with that threshold; returns its size in bytes */

static size_t
prof_svg_plot_size(prof_svg_plot_t *plot, uint64_t min)
{
    size_t                   size;
    uint32_t                 f, i;
    uint64_t                 labeled, total;
    const prof_view_t       *v;
    const prof_view_node_t  *node;

    v = plot->view;

    size = 0;
    labeled = v->total[plot->mode] / PROF_SVG_LABELED;

    plot->rows = 1;
    plot->nshown = 0;
    plot->nhidden = 0;
    plot->ndeep = 0;
    plot->hidden = 0;
    memset(plot->kinds, 0, sizeof(plot->kinds));

    for (i = 0; i < v->nnodes; i++) {
        node = &v->nodes[i];
        total = node->total[plot->mode];

        if (total == 0) {
            continue;
        }

        if (total < min || node->depth >= PROF_SVG_DEPTH) {

            /* what it stands on has the weight of all that is below */

            if (node->depth <= PROF_SVG_DEPTH
                && (node->parent == PROF_NONE
                    || v->nodes[node->parent].total[plot->mode] >= min))
            {
                plot->hidden += total;
            }

            plot->nhidden += total < min;
            plot->ndeep += total >= min;
            continue;
        }

        f = node->function;

        plot->nshown++;
        plot->kinds[plot->kind[f]]++;

        if (node->depth + 2 > plot->rows) {
            plot->rows = node->depth + 2;
        }

        size += PROF_SVG_BOX + plot->cost[f] * (total >= labeled ? 2 : 1);
    }

    return size;
}


int
prof_svg_plot_write(const prof_svg_plot_t *plot, const char *place,
    prof_buf_t *b)
{
    uint32_t                 child, i, last, n, next, *queue;
    uint64_t                 left, *x;
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

    /* row by row: the children of one row are the next, in the same order */

    i = 0;
    last = 0;
    left = 0;

    for (child = v->root; child != PROF_NONE; child = v->nodes[child].next) {
        x[child] = left;
        left += v->nodes[child].total[plot->mode];

        if (v->nodes[child].total[plot->mode] >= plot->min) {
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
                left += v->nodes[child].total[plot->mode];

                if (v->nodes[child].total[plot->mode] >= plot->min) {
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
    uint64_t  total;

    total = plot->view->total[plot->mode];

    prof_buf_printf(b, "<svg class=\"prof-plot\" %s height=\"%u\" "
                    "data-mode=\"%s\" data-total=\"",
                    place, plot->rows * PROF_SVG_ROW,
                    prof_summary_mode(plot->mode));
    prof_buf_number(b, total);
    prof_buf_puts(b, plot->hidden > total / PROF_SVG_PARTIAL
                     ? "\" data-partial=\"" : "");
    prof_buf_puts(b, "\"><rect class=\"prof-area\" width=\"100%\" "
                     "height=\"100%\"/><svg class=\"prof-zoom\">\n"
                     "<svg y=\"0\" height=\"");
    prof_buf_number(b, PROF_SVG_ROW - 1);
    prof_buf_puts(b, "\">\n<svg x=\"0%\" width=\"100%\" class=\"all\">"
                     "<title>all ");
    prof_buf_puts(b, prof_summary_mode(plot->mode));
    prof_buf_puts(b, " time\n");
    prof_summary_duration(b, total);
    prof_buf_puts(b, ", 100%</title><rect width=\"100%\" height=\"100%\"/>"
                     "<text x=\"4\" y=\"12.5\">all ");
    prof_buf_puts(b, prof_summary_mode(plot->mode));
    prof_buf_puts(b, " time</text></svg>\n</svg>\n");
}


static void
prof_svg_plot_box(const prof_svg_plot_t *plot, uint32_t n, uint64_t x,
    prof_buf_t *b)
{
    size_t                       len;
    uint64_t                     part, total;
    const prof_view_node_t      *node;
    const prof_view_function_t  *func;

    node = &plot->view->nodes[n];
    func = &plot->view->functions[node->function];
    total = plot->view->total[plot->mode];
    part = node->total[plot->mode];
    len = strlen(func->name);

    prof_buf_puts(b, "<svg x=\"");
    prof_markup_percent(b, x, total, 4);
    prof_buf_puts(b, "%\" width=\"");
    prof_markup_percent(b, part, total, 4);
    prof_buf_puts(b, "%\" class=\"");
    prof_buf_puts(b, prof_kinds[plot->kind[node->function]].name);
    prof_buf_puts(b, prof_svg_plot_shade(func->name));
    prof_buf_puts(b, part < total / PROF_SVG_LINED ? " x" : "");

    prof_buf_puts(b, "\"><title>");
    prof_markup_text(b, func->name, len, PROF_SVG_NAME_MAX);
    prof_buf_puts(b, "\n");
    prof_summary_duration(b, part);
    prof_buf_puts(b, ", ");
    prof_markup_percent(b, part, total, 2);
    prof_buf_puts(b, "%");

    if (node->self[plot->mode]) {
        prof_buf_puts(b, ", self ");
        prof_summary_duration(b, node->self[plot->mode]);
    }

    prof_svg_plot_origin(plot, &plot->profile->frames[func->frame], b);
    prof_buf_puts(b, "</title><rect width=\"100%\" height=\"100%\"/>");

    if (part >= total / PROF_SVG_LABELED) {
        prof_buf_puts(b, "<text x=\"4\" y=\"12.5\">");
        prof_markup_text(b, func->name, len, PROF_SVG_NAME_MAX);
        prof_buf_puts(b, "</text>");
    }

    prof_buf_puts(b, "</svg>\n");
}


/* where the function is from, on a line of its own */

static void
prof_svg_plot_origin(const prof_svg_plot_t *plot, const prof_frame_t *f,
    prof_buf_t *b)
{
    const char  *name;

    if (f->object != PROF_NONE) {
        name = prof_kind_file(plot->profile->objects[f->object].path);

        prof_buf_puts(b, "\n");
        prof_markup_text(b, name, strlen(name), PROF_SVG_NAME_MAX);
    }

    if (f->file) {
        prof_buf_puts(b, f->object == PROF_NONE ? "\n" : ", ");
        prof_markup_text(b, f->file, strlen(f->file), PROF_SVG_NAME_MAX);

        if (f->line) {
            prof_buf_puts(b, ":");
            prof_buf_number(b, f->line);
        }
    }
}


/* neighbors of one color differ in its shade, the same in each picture */

static const char *
prof_svg_plot_shade(const char *name)
{
    uint32_t  hash;

    hash = 0;

    while (*name) {
        hash = (hash ^ (unsigned char) *name++) * 0x01000193;
    }

    switch ((hash >> 16) % 3) {

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
        prof_markup_percent(b, plot->min, plot->view->total[plot->mode], 3);
        prof_buf_puts(b, "%");
    }

    prof_buf_puts(b, "; they have ");
    prof_markup_percent(b, plot->hidden, plot->view->total[plot->mode], 2);
    prof_buf_puts(b, "% of the time");
}
