
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A page with two differential flamegraphs, one with the widths of "after" and
 * one with those of "before", and a table of the largest changes.
 */


#include "formats/prof_diff_style.h"
#include "formats/prof_encode.h"
#include "formats/prof_html_page.h"
#include "formats/prof_text.h"
#include "views/prof_kind.h"
#include "profile/prof_measure.h"
#include "views/prof_totals.h"

#include <stdlib.h>
#include <string.h>


/* bytes of both flamegraphs */

#define PROF_DIFF_SIZE      1600000

#define PROF_DIFF_ROWS      100
#define PROF_DIFF_NAME_MAX  256


static int prof_diff_html_encode(const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags, prof_buf_t *b);
static int prof_diff_html_plots(const prof_diff_t *d, prof_buf_t *b);
static void prof_diff_html_switch(const prof_diff_t *d, prof_buf_t *b);
static int prof_diff_html_plot(const prof_svg_plot_t *plot, prof_buf_t *b);
static void prof_diff_html_legend(prof_buf_t *b);
static int prof_diff_html_functions(const prof_diff_t *d, prof_buf_t *b);
static int prof_diff_html_cmp(const void *one, const void *two, void *data);
static uint64_t prof_diff_html_distance(const prof_diff_t *d,
    const uint64_t *weights);
static void prof_diff_html_row(const prof_diff_t *d,
    const prof_total_t *total, prof_buf_t *b);
static void prof_diff_html_name(const prof_diff_t *d, uint32_t function,
    prof_buf_t *b);
static void prof_diff_html_values(const prof_diff_t *d,
    const uint64_t *weights, prof_buf_t *b);


const prof_diff_encoder_t  prof_diff_html = {
    "html",
    "text/html; charset=utf-8",
    "html",
    prof_diff_html_encode,
    PROF_HTML_CSP
};


static int
prof_diff_html_encode(const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags, prof_buf_t *b)
{
    int          rc;
    prof_diff_t  d;

    rc = prof_diff_init(&d, before, after, flags);

    if (rc == PROF_OK) {
        prof_html_page_open(b, after->title, " - difference");
        prof_buf_puts(b, "</header>\n<main>\n");

        rc = prof_diff_html_plots(&d, b);

        if (rc == PROF_OK) {
            rc = prof_diff_html_functions(&d, b);
        }

        prof_html_page_close(b);
    }

    prof_diff_free(&d);

    return prof_buf_failed(b) ? PROF_ERROR : rc;
}


static int
prof_diff_html_plots(const prof_diff_t *d, prof_buf_t *b)
{
    int              rc;
    uint32_t         i;
    prof_svg_plot_t  plot;

    rc = PROF_OK;

    for (i = 0; i < 2 && rc == PROF_OK; i++) {
        rc = prof_diff_plot(&plot, d, i ? PROF_DIFF_BEFORE : PROF_DIFF_AFTER,
                            PROF_DIFF_SIZE / 2);

        if (rc == PROF_OK && i == 0) {
            prof_buf_puts(b, "<ul class=\"notes\">\n");
            prof_diff_style.notes(&plot, prof_html_note, b);
            prof_buf_puts(b, "</ul>\n");

            prof_diff_html_switch(d, b);
        }

        if (rc == PROF_OK) {
            rc = prof_diff_html_plot(&plot, b);
        }

        prof_svg_plot_free(&plot);
    }

    prof_diff_html_legend(b);
    prof_buf_puts(b, "</section>\n");

    return rc;
}


static void
prof_diff_html_switch(const prof_diff_t *d, prof_buf_t *b)
{
    prof_buf_puts(b, "<section class=\"graph\">\n<fieldset class=\"modes\">"
                     "<legend>Width of the boxes</legend>\n"
                     "<label title=\"As wide as they are after\">"
                     "<input type=\"radio\" name=\"mode\" id=\"prof-after\" "
                     "value=\"after\" checked><span>After <small>");
    prof_measure_value(b, prof_measures[d->measure].unit,
                       d->view->whole[PROF_DIFF_AFTER]);
    prof_buf_puts(b, "</small></span></label>\n"
                     "<label title=\"As wide as they were before: what is "
                     "gone is here\">"
                     "<input type=\"radio\" name=\"mode\" id=\"prof-before\" "
                     "value=\"before\"><span>Before <small>");
    prof_measure_value(b, prof_measures[d->measure].unit,
                       d->view->whole[PROF_DIFF_BEFORE]);
    prof_buf_puts(b, "</small></span></label>\n</fieldset>\n"
                     "<div class=\"prof-host\"></div>\n");
}


static int
prof_diff_html_plot(const prof_svg_plot_t *plot, prof_buf_t *b)
{
    int         rc;
    prof_buf_t  text;

    prof_buf_printf(b, "<div class=\"by %s\">\n", plot->mode);

    if (plot->nshown == 0) {
        prof_buf_printf(b, "<p class=\"empty\">%s: none</p>\n</div>\n",
                        prof_measures[plot->measure].title);
        return PROF_OK;
    }

    rc = prof_svg_plot_write(plot, "width=\"100%\"", b);

    if (plot->nhidden || plot->ndeep) {
        prof_buf_init(&text);
        prof_svg_plot_hidden(plot, &text);

        prof_buf_puts(b, "<p class=\"soft\">");
        prof_markup_text(b, text.data, text.len, PROF_HTML_TEXT_MAX);
        prof_buf_puts(b, "</p>\n");

        prof_buf_free(&text);
    }

    prof_buf_puts(b, "</div>\n");

    return rc;
}


static void
prof_diff_html_legend(prof_buf_t *b)
{
    const prof_kind_t  *kind;

    prof_buf_puts(b, "<div><ul class=\"prof-legend\">\n");

    for (kind = prof_diff_style.legend; kind->name; kind++) {
        prof_buf_printf(b, "<li><svg class=\"chip %s\" aria-hidden=\"true\">"
                        "<rect width=\"100%%\" height=\"100%%\"/></svg>"
                        "%s</li>\n", kind->name, kind->text);
    }

    prof_buf_puts(b, "</ul></div>\n");
}


static int
prof_diff_html_functions(const prof_diff_t *d, prof_buf_t *b)
{
    uint32_t       i, n, *group;
    prof_total_t  *totals;

    n = d->view->nfunctions;

    group = malloc(((size_t) n + 1) * sizeof(uint32_t));
    if (group == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < n; i++) {
        group[i] = i;
    }

    totals = prof_totals_create(d->view, group, n);

    free(group);

    if (totals == NULL) {
        return PROF_ERROR;
    }

    qsort_r(totals, n, sizeof(prof_total_t), prof_diff_html_cmp, (void *) d);

    prof_buf_puts(b, "<section><h2>Functions that changed most</h2>\n"
                     "<div class=\"wide\"><table class=\"times\" "
                     "id=\"functions\"><thead><tr>"
                     "<th scope=\"col\">Function</th>"
                     "<th scope=\"col\" class=\"num\">Self before</th>"
                     "<th scope=\"col\" class=\"num\">Self after</th>"
                     "<th scope=\"col\" class=\"num\">Change</th>"
                     "<th scope=\"col\" class=\"num\">Total before</th>"
                     "<th scope=\"col\" class=\"num\">Total after</th>"
                     "<th scope=\"col\" class=\"num\">Change</th>"
                     "</tr></thead>\n<tbody>\n");

    for (i = 0; i < n && i < PROF_DIFF_ROWS; i++) {
        prof_diff_html_row(d, &totals[i], b);
    }

    prof_buf_puts(b, "</tbody></table></div>\n");

    if (i < n) {
        prof_buf_printf(b, "<p class=\"soft\">%u of %u functions.</p>\n", i,
                        n);
    }

    prof_buf_puts(b, "</section>\n");

    free(totals);

    return PROF_OK;
}


/* sorts by the change of the function's own weight, then of its total */

static int
prof_diff_html_cmp(const void *one, const void *two, void *data)
{
    uint64_t             c1, c2;
    const prof_diff_t   *d;
    const prof_total_t  *t1, *t2;

    d = data;
    t1 = one;
    t2 = two;

    c1 = prof_diff_html_distance(d, t1->self);
    c2 = prof_diff_html_distance(d, t2->self);

    if (c1 == c2) {
        c1 = prof_diff_html_distance(d, t1->total);
        c2 = prof_diff_html_distance(d, t2->total);
    }

    if (c1 != c2) {
        return c1 < c2 ? 1 : -1;
    }

    return t1->group < t2->group ? -1 : t1->group > t2->group;
}


static uint64_t
prof_diff_html_distance(const prof_diff_t *d, const uint64_t *weights)
{
    uint64_t  after, before;

    before = prof_diff_scale(d, weights[PROF_DIFF_BEFORE]);
    after = weights[PROF_DIFF_AFTER];

    return after > before ? after - before : before - after;
}


static void
prof_diff_html_row(const prof_diff_t *d, const prof_total_t *total,
    prof_buf_t *b)
{
    prof_buf_printf(b, "<tr><th scope=\"row\"><svg class=\"chip %s\" "
                    "aria-hidden=\"true\"><rect width=\"100%%\" "
                    "height=\"100%%\"/></svg>",
                    prof_diff_class(d, total->total[PROF_DIFF_BEFORE],
                                    total->total[PROF_DIFF_AFTER]));
    prof_diff_html_name(d, total->group, b);
    prof_buf_puts(b, "</th>");

    prof_diff_html_values(d, total->self, b);
    prof_diff_html_values(d, total->total, b);

    prof_buf_puts(b, "</tr>\n");
}


static void
prof_diff_html_name(const prof_diff_t *d, uint32_t function, prof_buf_t *b)
{
    uint32_t                     object;
    const char                  *name;
    const prof_frame_t          *f;
    const prof_view_function_t  *func;

    func = &d->view->functions[function];
    f = &d->merged->frames[func->frame];
    name = func->name;
    object = f->object;

    prof_buf_puts(b, "<code>");
    prof_markup_text(b, name, strlen(name), PROF_DIFF_NAME_MAX);
    prof_buf_puts(b, "</code>");

    if (object != PROF_NONE) {
        name = prof_path_file(d->merged->objects[object].path);

        prof_buf_puts(b, " <small>");
        prof_markup_text(b, name, strlen(name), PROF_DIFF_NAME_MAX);
        prof_buf_puts(b, "</small>");
    }

    if (func->waits
        && (f->type == PROF_TYPE_SCRIPT || prof_frame_is_code(f)))
    {
        prof_buf_puts(b, " <small>waiting</small>");
    }
}


static void
prof_diff_html_values(const prof_diff_t *d, const uint64_t *weights,
    prof_buf_t *b)
{
    int       less;
    uint32_t  i;
    uint64_t  distance;

    for (i = 0; i < 2; i++) {
        prof_buf_puts(b, "<td class=\"num\" data-value=\"");
        prof_buf_number(b, weights[i]);
        prof_buf_puts(b, "\">");

        if (weights[i]) {
            prof_measure_value(b, prof_measures[d->measure].unit, weights[i]);
            prof_buf_puts(b, " <small>");
            prof_markup_percent(b, weights[i], d->view->whole[i], 1);
            prof_buf_puts(b, "%</small>");
        }

        prof_buf_puts(b, "</td>");
    }

    /* the page sorts rows by this number */

    less = prof_diff_scale(d, weights[PROF_DIFF_BEFORE])
           > weights[PROF_DIFF_AFTER];

    prof_buf_puts(b, less ? "<td class=\"num\" data-value=\"-"
                          : "<td class=\"num\" data-value=\"");
    distance = prof_diff_html_distance(d, weights);

    prof_buf_number(b, distance);
    prof_buf_puts(b, "\">");

    if (distance) {
        prof_diff_change(d, weights[PROF_DIFF_BEFORE],
                         weights[PROF_DIFF_AFTER], b);
    }

    prof_buf_puts(b, "</td>");
}
