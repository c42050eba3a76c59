
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_html_page.h"
#include "formats/prof_text.h"
#include "views/prof_label_sets.h"
#include "profile/prof_measure.h"


/* maximum number of rows: the heaviest sets */

#define PROF_HTML_LABELS  50


#define PROF_HTML_LABEL_MAX  256


static void prof_html_labels_head(const prof_view_t *v, prof_buf_t *b);
static void prof_html_labels_row(const prof_profile_t *p,
    const prof_view_t *v, const prof_label_set_t *set, prof_buf_t *b);
static void prof_html_labels_value(const prof_view_t *v, uint32_t column,
    uint64_t value, prof_buf_t *b);


int
prof_html_labels(const prof_profile_t *p, const prof_view_t *v, prof_buf_t *b)
{
    uint32_t           i;
    prof_label_sets_t  sets;

    if (prof_label_sets_init(&sets, p) != PROF_OK) {
        return PROF_ERROR;
    }

    if (sets.n > 1) {
        prof_html_labels_head(v, b);

        for (i = 0; i < sets.n && i < PROF_HTML_LABELS; i++) {
            prof_html_labels_row(p, v, &sets.sets[i], b);
        }

        prof_buf_puts(b, "</tbody></table></div>\n");

        if (i < sets.n) {
            prof_buf_printf(b, "<p class=\"soft\">The %u heaviest of %u."
                            "</p>\n", i, sets.n);
        }

        prof_buf_puts(b, "</section>\n");
    }

    prof_label_sets_free(&sets);

    return PROF_OK;
}


static void
prof_html_labels_head(const prof_view_t *v, prof_buf_t *b)
{
    uint32_t     k;
    const char  *name;

    prof_buf_puts(b, "<section><h2>Labels</h2>\n<div class=\"wide\">"
                     "<table class=\"times\" id=\"labels\"><thead><tr>"
                     "<th scope=\"col\">Labels</th>");

    for (k = 0; k < v->ncolumns; k++) {
        name = prof_measures[v->measure[k]].name;

        prof_buf_printf(b, "<th scope=\"col\" class=\"by %s num\">%s</th>"
                        "<td class=\"by %s\"></td>",
                        name, prof_measures[v->measure[k]].text, name);
    }

    prof_buf_puts(b, "</tr></thead>\n<tbody>\n");
}


static void
prof_html_labels_row(const prof_profile_t *p, const prof_view_t *v,
    const prof_label_set_t *set, prof_buf_t *b)
{
    uint32_t    k;
    prof_buf_t  text;

    prof_buf_init(&text);
    prof_label_sets_text(p, set->labels, &text);

    prof_buf_puts(b, "<tr><th scope=\"row\">");
    prof_markup_text(b, text.len ? text.data : "none",
                     text.len ? text.len : sizeof("none") - 1,
                     PROF_HTML_LABEL_MAX);
    prof_buf_puts(b, "</th>");

    for (k = 0; k < v->ncolumns; k++) {
        prof_html_labels_value(v, k, set->weight[v->measure[k]], b);
    }

    prof_buf_puts(b, "</tr>\n");
    prof_buf_free(&text);
}


static void
prof_html_labels_value(const prof_view_t *v, uint32_t column, uint64_t value,
    prof_buf_t *b)
{
    const prof_measure_t  *measure;

    measure = &prof_measures[v->measure[column]];

    prof_buf_printf(b, "<td class=\"by %s num\" data-value=\"",
                    measure->name);
    prof_buf_number(b, value);
    prof_buf_puts(b, "\">");
    prof_measure_value(b, measure->unit, value);
    prof_buf_puts(b, " <small>");
    prof_markup_percent(b, value, v->whole[column], 1);
    prof_buf_printf(b, "%%</small></td><td class=\"by %s\">"
                    "<svg class=\"bar\" aria-hidden=\"true\"><rect width=\"",
                    measure->name);
    prof_markup_percent(b, value, v->whole[column], 1);
    prof_buf_puts(b, "%\" height=\"100%\"/></svg></td>");
}
