
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A page without external parts: the flamegraphs of all measures, tables, the
 * facts and counters of the capture, and links to the other formats.
 *
 * Switching between measures needs only the style.  The script makes the
 * pictures interactive, sorts tables and sets the targets of links, which
 * depend on the URL of the page.
 */


#include "formats/prof_encode.h"
#include "formats/prof_html_page.h"
#include "formats/prof_text.h"
#include "formats/prof_svg_plot.h"
#include "views/prof_kind.h"
#include "views/prof_summary.h"

#include <string.h>


/* bytes of all flamegraphs */

#define PROF_HTML_SIZE      1600000


static int prof_encode_html_encode(const prof_profile_t *p, prof_buf_t *b);
static void prof_encode_html_measures(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static int prof_encode_html_plots(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static int prof_encode_html_plot(const prof_svg_plot_t *plot, prof_buf_t *b);
static void prof_encode_html_legend(const prof_svg_plot_t *plot,
    prof_buf_t *b);
static int prof_encode_html_fact(void *data, const prof_summary_t *item);
static int prof_encode_html_counter(void *data, const prof_summary_t *item);
static void prof_encode_html_formats(prof_buf_t *b);


const prof_encoder_t  prof_encode_html = {
    "html",
    "HTML page",
    "text/html; charset=utf-8",
    "html",
    prof_encode_html_encode,
    PROF_HTML_CSP,
    0
};


static int
prof_encode_html_encode(const prof_profile_t *p, prof_buf_t *b)
{
    int           rc;
    uint32_t      n, list[PROF_MEASURE_MAX];
    prof_view_t  *v;

    n = prof_measure_list(p, list);

    v = prof_view_create(p, NULL, list, n);

    if (v == NULL || prof_view_order(v, PROF_VIEW_SHARE) != PROF_OK) {
        prof_view_destroy(v);
        return PROF_ERROR;
    }

    prof_html_page_open(b, p->title, " - profile");
    prof_encode_html_formats(b);
    prof_buf_puts(b, "</header>\n<main>\n");

    prof_buf_puts(b, "<ul class=\"notes\">\n");
    prof_notes(p, prof_html_note, b);
    prof_buf_puts(b, "</ul>\n");

    rc = prof_encode_html_plots(p, v, b);

    if (rc == PROF_OK) {
        rc = prof_html_tables(p, v, b);
    }

    if (rc == PROF_OK) {
        rc = prof_html_labels(p, v, b);
    }

    prof_view_destroy(v);

    if (rc != PROF_OK) {
        return rc;
    }

    prof_buf_puts(b, "<div class=\"pair\">\n<section><h2>Facts</h2>\n"
                     "<div class=\"wide\"><table id=\"facts\"><tbody>\n");
    (void) prof_summary(p, prof_encode_html_fact, b);
    prof_buf_puts(b, "</tbody></table></div></section>\n"
                     "<section><h2>Counters</h2>\n"
                     "<div class=\"wide\"><table id=\"counters\"><tbody>\n");
    (void) prof_summary(p, prof_encode_html_counter, b);
    prof_buf_puts(b, "</tbody></table></div></section>\n</div>\n");
    prof_html_page_close(b);

    return prof_buf_failed(b) ? PROF_ERROR : PROF_OK;
}


static void
prof_encode_html_formats(prof_buf_t *b)
{
    size_t       i;
    const char  *name;

    /* the links have no targets before the script has run */

    prof_buf_puts(b, "<nav class=\"formats\" aria-label=\"Formats\" hidden>"
                     "<span>Profile again as</span>\n");

    for (i = 0; prof_encoders[i]; i++) {
        name = prof_encoders[i]->name;

        if (prof_encoders[i] != &prof_encode_html) {
            prof_buf_printf(b, "<a data-format=\"%s\" title=\"Runs the "
                            "request again, and profiles it as %s\">%s</a>\n",
                            name, name, name);
        }
    }

    prof_buf_puts(b, "</nav>\n");
}


static int
prof_encode_html_plots(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    int              rc;
    uint32_t         k;
    prof_svg_plot_t  plot;

    prof_encode_html_measures(p, v, b);

    prof_buf_puts(b, "<div class=\"prof-host\"></div>\n"
                     "<svg class=\"defs\" aria-hidden=\"true\">");
    prof_svg_plot_defs(b);
    prof_buf_puts(b, "</svg>\n");

    rc = PROF_OK;

    for (k = 0; k < v->ncolumns && rc == PROF_OK; k++) {
        rc = prof_svg_plot_init(&plot, p, v, k, PROF_HTML_SIZE / v->ncolumns);

        if (rc == PROF_OK) {
            rc = prof_encode_html_plot(&plot, b);
        }

        prof_svg_plot_free(&plot);
    }

    prof_buf_puts(b, "</section>\n");

    return rc;
}


static void
prof_encode_html_measures(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    uint32_t               k, m;
    const prof_measure_t  *measure;

    prof_buf_puts(b, "<section class=\"graph\">\n<fieldset class=\"modes\">"
                     "<legend>Mode</legend>\n");

    for (k = 0; k < v->ncolumns; k++) {
        m = v->measure[k];
        measure = &prof_measures[m];

        prof_buf_printf(b, "<label title=\"%s\"><input type=\"radio\" "
                        "name=\"mode\" id=\"prof-%s\" value=\"%s\" "
                        "data-mode=\"%s\"%s><span>%s <small>",
                        measure->title, measure->name, measure->name,
                        prof_modes[measure->mode].name,
                        m == prof_measure_first(p) ? " checked" : "",
                        measure->text);
        prof_measure_value(b, measure->unit, prof_measure_total(p, m));
        prof_buf_puts(b, "</small></span></label>\n");
    }

    prof_buf_puts(b, "</fieldset>\n");
}


static int
prof_encode_html_plot(const prof_svg_plot_t *plot, prof_buf_t *b)
{
    int         rc;
    prof_buf_t  text;

    prof_buf_printf(b, "<div class=\"by %s\">\n",
                    prof_measures[plot->measure].name);

    prof_buf_init(&text);
    rc = PROF_OK;

    if (plot->nshown == 0) {
        if (prof_measures[plot->measure].none) {
            prof_buf_puts(&text, prof_measures[plot->measure].title);
            prof_buf_puts(&text, ": none");

            if (prof_summary_not_counted(plot->profile)) {
                prof_buf_puts(&text, ".  Not counted: ");
                prof_buf_puts(&text, prof_summary_not_counted(plot->profile));
            }

        } else {
            prof_notes_empty(plot->profile, &text);
        }

        prof_buf_puts(b, "<p class=\"empty\">");
        prof_markup_text(b, text.data, text.len, PROF_HTML_TEXT_MAX);
        prof_buf_puts(b, "</p>\n");

    } else {
        rc = prof_svg_plot_write(plot, "width=\"100%\"", b);
        prof_encode_html_legend(plot, b);
    }

    if (plot->nshown && (plot->nhidden || plot->ndeep)) {
        prof_svg_plot_hidden(plot, &text);

        prof_buf_puts(b, "<p class=\"soft\">");
        prof_markup_text(b, text.data, text.len, PROF_HTML_TEXT_MAX);
        prof_buf_puts(b, "</p>\n");
    }

    prof_buf_free(&text);
    prof_buf_puts(b, "</div>\n");

    return rc;
}


static void
prof_encode_html_legend(const prof_svg_plot_t *plot, prof_buf_t *b)
{
    uint32_t    i;
    prof_buf_t  text;

    prof_buf_puts(b, "<ul class=\"prof-legend\">\n");

    for (i = 0; i < PROF_KIND_MAX; i++) {

        if (plot->kinds[i] == 0) {
            continue;
        }

        prof_buf_init(&text);
        prof_kind_text(plot->profile, i, &text);

        prof_buf_printf(b, "<li><svg class=\"chip %s\" aria-hidden=\"true\">"
                        "<rect width=\"100%%\" height=\"100%%\"/></svg>",
                        prof_kinds[i].name);
        prof_markup_text(b, text.data, text.len, PROF_HTML_TEXT_MAX);
        prof_buf_puts(b, "</li>\n");

        prof_buf_free(&text);
    }

    if (plot->ninferred) {
        prof_buf_puts(b, "<li><svg class=\"chip " PROF_SVG_INFERRED "\" "
                         "aria-hidden=\"true\"><rect width=\"100%\" "
                         "height=\"100%\"/></svg><i>" PROF_SVG_INFERRED_TEXT
                         "</i></li>\n");
    }

    prof_buf_puts(b, "</ul>\n");
}


static int
prof_encode_html_fact(void *data, const prof_summary_t *item)
{
    prof_buf_t *b = data;

    if (item->unit == PROF_SUMMARY_TEXT) {
        prof_buf_puts(b, "<tr><th scope=\"row\">");
        prof_html_text(b, item->name);
        prof_buf_puts(b, "</th><td>");
        prof_html_text(b, item->value);
        prof_buf_puts(b, "</td></tr>\n");
    }

    return PROF_OK;
}


static int
prof_encode_html_counter(void *data, const prof_summary_t *item)
{
    prof_buf_t *b = data;

    if (item->unit == PROF_SUMMARY_TEXT) {
        return PROF_OK;
    }

    prof_buf_puts(b, "<tr><th scope=\"row\">");
    prof_html_text(b, item->text);
    prof_buf_puts(b, " <code>");
    prof_html_text(b, item->name);
    prof_buf_puts(b, "</code></th><td class=\"num\">");

    switch (item->unit) {

    case PROF_SUMMARY_NS:
        prof_summary_duration(b, item->number);
        break;

    case PROF_SUMMARY_BYTES:
        prof_summary_size(b, item->number);
        break;

    default:
        prof_buf_number(b, item->number);
        prof_buf_puts(b, item->unit == PROF_SUMMARY_HZ ? " Hz" : "");
        break;
    }

    prof_buf_puts(b, "</td></tr>\n");

    return PROF_OK;
}
