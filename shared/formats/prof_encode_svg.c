
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A flamegraph as one SVG document.  It shows all data without its script; the
 * script makes it interactive.
 *
 * The policy names the embedded style and script by their hashes, so nothing
 * else runs, whatever the texts of a profile are.  The policy's "sandbox" also
 * keeps the script from the site's cookies.
 */


#include "assets/prof_assets.h"
#include "formats/prof_encode.h"
#include "formats/prof_text.h"
#include "formats/prof_svg_plot.h"
#include "views/prof_kind.h"
#include "views/prof_summary.h"

#include <stdio.h>
#include <string.h>


#define PROF_SVG_DESC                                                         \
    "A flamegraph: each box is a function, its width is its share of the "    \
    "whole, and it touches the function that called it."

#define PROF_SVG_TEXT_MAX  512
#define PROF_SVG_LINE      18
#define PROF_SVG_TOOLS     64
#define PROF_SVG_COLUMNS   5


typedef struct {
    prof_buf_t  *out;
    uint32_t     y;
} prof_svg_lines_t;


static int prof_encode_svg_encode(const prof_profile_t *p, prof_buf_t *b);
static void prof_encode_svg_open(const prof_svg_plot_t *plot, uint32_t height,
    prof_buf_t *b);
static void prof_encode_svg_line(void *data, const prof_buf_t *line,
    int warning);
static void prof_encode_svg_text(prof_buf_t *b, const char *class, uint32_t y,
    const char *s, size_t len);
static uint32_t prof_encode_svg_legend(const prof_svg_plot_t *plot,
    uint32_t y, prof_buf_t *b);
static void prof_encode_svg_kind(prof_buf_t *b, uint32_t n, uint32_t *y,
    const char *class, const char *text, size_t len);
static void prof_encode_svg_hidden(const prof_svg_plot_t *plot, uint32_t y,
    prof_buf_t *b);


const prof_encoder_t  prof_encode_svg = {
    "svg",
    "SVG picture",
    "image/svg+xml",
    "svg",
    prof_encode_svg_encode,
    PROF_SVG_CSP,
    0
};


static int
prof_encode_svg_encode(const prof_profile_t *p, prof_buf_t *b)
{
    int              rc;
    uint32_t         measure;
    prof_view_t     *v;
    prof_svg_plot_t  plot;

    measure = prof_measure_first(p);

    v = prof_view_create(p, NULL, &measure, 1);
    if (v == NULL) {
        return PROF_ERROR;
    }

    rc = prof_view_order(v, PROF_VIEW_SHARE);

    if (rc == PROF_OK) {
        rc = prof_svg_plot_init(&plot, p, v, 0, PROF_SVG_SIZE);

        if (rc == PROF_OK) {
            rc = prof_encode_svg_document(&plot, b);
        }

        prof_svg_plot_free(&plot);
    }

    prof_view_destroy(v);

    return prof_buf_failed(b) ? PROF_ERROR : rc;
}


int
prof_encode_svg_document(const prof_svg_plot_t *plot, prof_buf_t *b)
{
    int               rc;
    char              place[64];
    uint32_t          y;
    prof_buf_t        body;
    prof_svg_lines_t  lines;

    prof_buf_init(&body);

    lines.out = &body;
    lines.y = 46;

    if (plot->style) {
        plot->style->notes(plot, prof_encode_svg_line, &lines);

    } else {
        prof_notes(plot->profile, prof_encode_svg_line, &lines);
    }

    y = lines.y - 4;

    prof_buf_printf(&body, "<text class=\"soft prof-hint\" x=\"1%%\" "
                    "y=\"%u\">Each box is a function, and its width is its "
                    "share of the %s.</text>\n"
                    "<foreignObject class=\"prof-host\" x=\"1%%\" y=\"%u\" "
                    "width=\"98%%\" height=\"%u\"/>\n",
                    y + PROF_SVG_TOOLS - 8,
                    prof_series_desc[prof_measures[plot->measure].series].name,
                    y, PROF_SVG_TOOLS);

    y += PROF_SVG_TOOLS + 4;

    (void) snprintf(place, sizeof(place), "x=\"1%%\" y=\"%u\" width=\"98%%\"",
                    y);

    rc = prof_svg_plot_write(plot, place, &body);

    y += plot->rows * PROF_SVG_ROW + 12;
    y = prof_encode_svg_legend(plot, y, &body);

    if (plot->nhidden || plot->ndeep) {
        prof_encode_svg_hidden(plot, y + 12, &body);
        y += PROF_SVG_LINE;
    }

    prof_encode_svg_open(plot, y + 8, b);
    prof_buf_append(b, body.data, body.len);

    prof_buf_puts(b, "<script><![CDATA[");
    prof_asset_append(b, &prof_asset_flame_js);
    prof_buf_puts(b, "]]></script>\n</svg>\n");

    if (prof_buf_failed(&body)) {
        rc = PROF_ERROR;
    }

    prof_buf_free(&body);

    return rc;
}


static void
prof_encode_svg_open(const prof_svg_plot_t *plot, uint32_t height,
    prof_buf_t *b)
{
    size_t       len;
    const char  *title;

    title = plot->profile->title;
    len = strlen(title);

    prof_buf_printf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                    "class=\"prof-doc\" width=\"100%%\" height=\"%u\" "
                    "role=\"img\" aria-labelledby=\"prof-title prof-desc\">\n"
                    "<title id=\"prof-title\">", height);
    prof_markup_text(b, title, len, PROF_SVG_TEXT_MAX);
    prof_buf_puts(b, "</title>\n<desc id=\"prof-desc\">");
    prof_markup_text(b, PROF_SVG_DESC, sizeof(PROF_SVG_DESC) - 1, SIZE_MAX);
    prof_buf_puts(b, "</desc>\n<style>");
    prof_asset_append(b, &prof_asset_theme_css);
    prof_buf_puts(b, "</style>\n<style>");
    prof_asset_append(b, &prof_asset_flame_css);
    prof_buf_puts(b, "</style>\n");
    prof_svg_plot_defs(b);
    prof_buf_puts(b, "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");

    prof_encode_svg_text(b, "title", 28, title, len);
}


static void
prof_encode_svg_line(void *data, const prof_buf_t *line, int warning)
{
    prof_svg_lines_t  *lines;

    lines = data;

    prof_encode_svg_text(lines->out, warning ? "warn" : "soft", lines->y + 4,
                         line->data, line->len);

    lines->y += PROF_SVG_LINE;
}


static void
prof_encode_svg_text(prof_buf_t *b, const char *class, uint32_t y,
    const char *s, size_t len)
{
    prof_buf_printf(b, "<text class=\"%s\" x=\"1%%\" y=\"%u\">", class, y);
    prof_markup_text(b, s, len, PROF_SVG_TEXT_MAX);
    prof_buf_puts(b, "</text>\n");
}


/* writes the kinds of the plot; returns the y below the legend */

static uint32_t
prof_encode_svg_legend(const prof_svg_plot_t *plot, uint32_t y, prof_buf_t *b)
{
    uint32_t            i, n;
    prof_buf_t          text;
    const prof_kind_t  *kind;

    prof_buf_puts(b, "<g class=\"prof-legend\">\n");

    n = 0;

    if (plot->style) {
        for (kind = plot->style->legend; kind->name; kind++) {
            prof_encode_svg_kind(b, n++, &y, kind->name, kind->text,
                                 strlen(kind->text));
        }
    }

    for (i = 0; plot->style == NULL && i < PROF_KIND_MAX; i++) {

        if (plot->kinds[i]) {
            prof_buf_init(&text);
            prof_kind_text(plot->profile, i, &text);
            prof_encode_svg_kind(b, n++, &y, prof_kinds[i].name, text.data,
                                 text.len);
            prof_buf_free(&text);
        }
    }

    if (plot->ninferred) {
        prof_encode_svg_kind(b, n++, &y, PROF_SVG_INFERRED,
                             PROF_SVG_INFERRED_TEXT,
                             sizeof(PROF_SVG_INFERRED_TEXT) - 1);
    }

    prof_buf_puts(b, "</g>\n");

    return y + PROF_SVG_LINE;
}


static void
prof_encode_svg_kind(prof_buf_t *b, uint32_t n, uint32_t *y,
    const char *class, const char *text, size_t len)
{
    if (n && n % PROF_SVG_COLUMNS == 0) {
        *y += PROF_SVG_LINE;
    }

    prof_buf_printf(b, "<svg x=\"%u%%\" y=\"%u\" width=\"19%%\" "
                    "height=\"16\" class=\"%s\"><rect x=\"0\" y=\"2\" "
                    "width=\"12\" height=\"12\"/>"
                    "<text x=\"18\" y=\"12\">",
                    1 + n % PROF_SVG_COLUMNS * (98 / PROF_SVG_COLUMNS), *y,
                    class);
    prof_markup_text(b, text, len, PROF_SVG_TEXT_MAX);
    prof_buf_puts(b, "</text></svg>\n");
}


static void
prof_encode_svg_hidden(const prof_svg_plot_t *plot, uint32_t y, prof_buf_t *b)
{
    prof_buf_t  text;

    prof_buf_init(&text);
    prof_svg_plot_hidden(plot, &text);
    prof_encode_svg_text(b, "soft", y, text.data, text.len);
    prof_buf_free(&text);
}
