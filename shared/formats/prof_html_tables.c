
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The tables of self and total weights.  A row has a cell for each weight in
 * each measure, and the page shows the cells of the chosen measure.
 */


#include "formats/prof_html_page.h"
#include "formats/prof_text.h"
#include "views/prof_kind.h"
#include "profile/prof_measure.h"
#include "views/prof_source.h"
#include "views/prof_totals.h"

#include <stdlib.h>
#include <string.h>


/* rows of functions: the heaviest by self and by total, by each measure */

#define PROF_HTML_ROWS  100


#define PROF_HTML_NAME_MAX  256


typedef struct prof_html_table_s  prof_html_table_t;

struct prof_html_table_s {
    const prof_profile_t   *profile;
    const prof_view_t      *view;
    prof_buf_t             *out;
    uint32_t               *functions;  /* kinds of functions */
    uint32_t               *group;      /* of each function */
    uint32_t               *kind;       /* of a group, if not _MAX */
    uint32_t                first;      /* the column that sorts */
    void                  (*name)(prof_html_table_t *t, uint32_t group);
};


static int prof_html_functions(prof_html_table_t *t);
static uint32_t prof_html_choose(prof_html_table_t *t, prof_total_t *totals,
    uint32_t n);
static int prof_html_objects(prof_html_table_t *t);
static int prof_html_kinds(prof_html_table_t *t);
static int prof_html_sources(prof_html_table_t *t);
static int prof_html_unnamed(prof_html_table_t *t);
static int prof_html_section(prof_html_table_t *t, const char *id,
    const char *caption, const char *column, uint32_t n);
static int prof_html_group(prof_html_table_t *t, uint32_t n, uint32_t shown);
static void prof_html_head(prof_html_table_t *t, const char *id,
    const char *caption, const char *column);
static void prof_html_row(prof_html_table_t *t, const prof_total_t *total);
static void prof_html_value(prof_html_table_t *t, uint32_t column,
    uint64_t value, uint32_t bar);
static void prof_html_function_name(prof_html_table_t *t, uint32_t group);
static void prof_html_object_name(prof_html_table_t *t, uint32_t group);
static void prof_html_kind_name(prof_html_table_t *t, uint32_t group);
static void prof_html_source_name(prof_html_table_t *t, uint32_t group);
static void prof_html_unnamed_name(prof_html_table_t *t, uint32_t group);


int
prof_html_tables(const prof_profile_t *p, const prof_view_t *v, prof_buf_t *b)
{
    int                rc;
    size_t             n;
    prof_html_table_t  t;

    t.profile = p;
    t.view = v;
    t.out = b;
    t.first = prof_view_column(v, prof_measure_first(p));

    /* for functions, or for objects and kinds of code without an object */

    n = v->nfunctions > p->nobjects ? v->nfunctions : p->nobjects;

    t.kind = calloc(n + PROF_KIND_MAX + PROF_SOURCE_MAX, sizeof(uint32_t));
    t.group = malloc(((size_t) v->nfunctions + 1) * sizeof(uint32_t));
    t.functions = prof_kind_functions(p, v);

    if (t.kind == NULL || t.group == NULL || t.functions == NULL) {
        free(t.kind);
        free(t.group);
        free(t.functions);
        return PROF_ERROR;
    }

    prof_buf_puts(b, "<div class=\"pair\">\n");

    rc = prof_html_kinds(&t);

    if (rc == PROF_OK) {
        rc = prof_html_objects(&t);
    }

    prof_buf_puts(b, "</div>\n");

    if (rc == PROF_OK) {
        rc = prof_html_functions(&t);
    }

    prof_buf_puts(b, "<div class=\"pair\">\n");

    if (rc == PROF_OK) {
        rc = prof_html_sources(&t);
    }

    if (rc == PROF_OK) {
        rc = prof_html_unnamed(&t);
    }

    prof_buf_puts(b, "</div>\n");

    free(t.kind);
    free(t.group);
    free(t.functions);

    return rc;
}


static int
prof_html_functions(prof_html_table_t *t)
{
    uint32_t       i, n, shown;
    prof_total_t  *totals;

    n = t->view->nfunctions;

    for (i = 0; i < n; i++) {
        t->group[i] = i;
        t->kind[i] = t->functions[i];
    }

    totals = prof_totals_create(t->view, t->group, n);
    if (totals == NULL) {
        return PROF_ERROR;
    }

    shown = prof_html_choose(t, totals, n);
    prof_totals_sort(totals, shown, t->first);

    t->name = prof_html_function_name;
    prof_html_head(t, "functions", "Functions", "Function");

    for (i = 0; i < shown; i++) {
        prof_html_row(t, &totals[i]);
    }

    prof_buf_puts(t->out, "</tbody></table></div>\n");

    if (shown < n) {
        prof_buf_printf(t->out, "<p class=\"soft\">The %u heaviest of %u "
                        "functions.</p>\n", shown, n);
    }

    prof_buf_puts(t->out, "</section>\n");

    free(totals);

    return PROF_OK;
}


/*
 * Moves the shown totals to the front, and returns their number.  The largest
 * totals of each column are shown.
 */

static uint32_t
prof_html_choose(prof_html_table_t *t, prof_total_t *totals, uint32_t n)
{
    uint32_t      i, j, k, last, part, shown;
    prof_total_t  best;

    if (n <= PROF_HTML_ROWS) {
        return n;
    }

    shown = 0;
    part = PROF_HTML_ROWS / (2 * t->view->ncolumns);

    for (k = 0; k < t->view->ncolumns; k++) {

        prof_totals_sort(totals + shown, n - shown, k);
        shown += part;

        last = shown + part;

        for ( /* void */ ; shown < last && shown < n; shown++) {
            j = shown;

            for (i = shown + 1; i < n; i++) {
                if (totals[i].total[k] > totals[j].total[k]) {
                    j = i;
                }
            }

            best = totals[j];
            totals[j] = totals[shown];
            totals[shown] = best;
        }
    }

    return shown;
}


static int
prof_html_objects(prof_html_table_t *t)
{
    uint32_t                     i;
    const prof_frame_t          *f;
    const prof_view_function_t  *func;

    for (i = 0; i < t->view->nfunctions; i++) {
        func = &t->view->functions[i];
        f = &t->profile->frames[func->frame];

        if (f->object == PROF_NONE || func->waits) {
            t->group[i] = t->profile->nobjects + t->functions[i];
            t->kind[t->group[i]] = t->functions[i];

        } else {
            t->group[i] = f->object;
            t->kind[f->object] = prof_kind_object(t->profile, f);
        }
    }

    t->name = prof_html_object_name;

    return prof_html_section(t, "objects", "Modules and libraries", "File",
                             t->profile->nobjects + PROF_KIND_MAX);
}


static int
prof_html_kinds(prof_html_table_t *t)
{
    uint32_t  i;

    for (i = 0; i < t->view->nfunctions; i++) {
        t->group[i] = t->functions[i];
        t->kind[t->group[i]] = t->functions[i];
    }

    t->name = prof_html_kind_name;

    return prof_html_section(t, "kinds", "Kinds of code", "Kind",
                             PROF_KIND_MAX);
}


static int
prof_html_sources(prof_html_table_t *t)
{
    uint32_t  i;

    for (i = 0; i < t->view->nfunctions; i++) {
        t->group[i] = prof_source_function(t->profile,
                                           &t->view->functions[i]);
        t->kind[t->group[i]] = PROF_KIND_MAX;
    }

    t->name = prof_html_source_name;

    return prof_html_section(t, "names", "Names", "Source of the name",
                             PROF_SOURCE_MAX);
}


/* lists objects with unnamed functions, and how they could get names */

static int
prof_html_unnamed(prof_html_table_t *t)
{
    int                          rc;
    uint32_t                     i, n, none;
    const prof_frame_t          *f;
    const prof_view_function_t  *func;

    /* the table has no row for this group: its functions have names */

    none = t->profile->nobjects;

    n = 0;

    for (i = 0; i < t->view->nfunctions; i++) {
        func = &t->view->functions[i];
        f = &t->profile->frames[func->frame];

        t->group[i] = none;

        if (f->object != PROF_NONE
            && prof_source_function(t->profile, func) == PROF_SOURCE_OFFSET)
        {
            t->group[i] = f->object;
            t->kind[f->object] = prof_kind_object(t->profile, f);
            n++;
        }
    }

    if (n == 0) {
        return PROF_OK;
    }

    t->name = prof_html_unnamed_name;
    prof_html_head(t, "unnamed", "Functions without a name", "File");

    rc = prof_html_group(t, none + 1, none);

    prof_buf_puts(t->out, "<p class=\"soft\">Their debug files are in the "
                  "package of debug symbols of the package that owns the "
                  "file (<code>dpkg -S FILE</code>, <code>rpm -qf "
                  "FILE</code>), on a debuginfod server if "
                  "<code>DEBUGINFOD_URLS</code> names one, or made by "
                  "<code>tools/make-debug PACKAGE</code>.</p></section>\n");

    return rc;
}


/* writes a table of all groups that have a weight */

static int
prof_html_section(prof_html_table_t *t, const char *id, const char *caption,
    const char *column, uint32_t n)
{
    int  rc;

    prof_html_head(t, id, caption, column);

    rc = prof_html_group(t, n, n);

    prof_buf_puts(t->out, "</section>\n");

    return rc;
}


/*
 * Writes rows for those of the first "shown" of n groups that have a weight,
 * and the end of the table.
 */

static int
prof_html_group(prof_html_table_t *t, uint32_t n, uint32_t shown)
{
    uint32_t       i, k;
    prof_total_t  *totals;

    totals = prof_totals_create(t->view, t->group, n);
    if (totals == NULL) {
        return PROF_ERROR;
    }

    prof_totals_sort(totals, n, t->first);

    for (i = 0; i < n; i++) {
        for (k = 0; k < t->view->ncolumns; k++) {

            if (totals[i].total[k] && totals[i].group < shown) {
                prof_html_row(t, &totals[i]);
                break;
            }
        }
    }

    prof_buf_puts(t->out, "</tbody></table></div>\n");

    free(totals);

    return PROF_OK;
}


static void
prof_html_head(prof_html_table_t *t, const char *id, const char *caption,
    const char *column)
{
    uint32_t     k;
    const char  *name;

    prof_buf_printf(t->out, "<section><h2>%s</h2>\n<div class=\"wide\">"
                    "<table class=\"times\" id=\"%s\"><thead><tr>"
                    "<th scope=\"col\">%s</th>", caption, id, column);

    for (k = 0; k < t->view->ncolumns; k++) {
        name = prof_measures[t->view->measure[k]].name;

        prof_buf_printf(t->out, "<th scope=\"col\" class=\"by %s num\">Self"
                        "</th><td class=\"by %s\"></td>"
                        "<th scope=\"col\" class=\"by %s num\">Total</th>",
                        name, name, name);
    }

    prof_buf_puts(t->out, "</tr></thead>\n<tbody>\n");
}


static void
prof_html_row(prof_html_table_t *t, const prof_total_t *total)
{
    uint32_t  k;

    prof_buf_puts(t->out, "<tr><th scope=\"row\">");

    if (t->kind[total->group] != PROF_KIND_MAX) {
        prof_buf_puts(t->out, "<svg class=\"chip ");
        prof_buf_puts(t->out, prof_kinds[t->kind[total->group]].name);
        prof_buf_puts(t->out, "\" aria-hidden=\"true\"><rect width=\"100%\" "
                              "height=\"100%\"/></svg>");
    }

    t->name(t, total->group);

    prof_buf_puts(t->out, "</th>");

    for (k = 0; k < t->view->ncolumns; k++) {
        prof_html_value(t, k, total->self[k], 1);
        prof_html_value(t, k, total->total[k], 0);
    }

    prof_buf_puts(t->out, "</tr>\n");
}


static void
prof_html_value(prof_html_table_t *t, uint32_t column, uint64_t value,
    uint32_t bar)
{
    uint64_t               whole;
    const prof_measure_t  *measure;

    whole = t->view->whole[column];
    measure = &prof_measures[t->view->measure[column]];

    prof_buf_puts(t->out, "<td class=\"by ");
    prof_buf_puts(t->out, measure->name);
    prof_buf_puts(t->out, " num\" data-value=\"");
    prof_buf_number(t->out, value);
    prof_buf_puts(t->out, "\">");

    if (value) {
        prof_measure_value(t->out, measure->unit, value);
        prof_buf_puts(t->out, " <small>");
        prof_markup_percent(t->out, value, whole, 1);
        prof_buf_puts(t->out, "%</small>");
    }

    prof_buf_puts(t->out, "</td>");

    if (bar) {
        prof_buf_puts(t->out, "<td class=\"by ");
        prof_buf_puts(t->out, measure->name);
        prof_buf_puts(t->out, "\"><svg class=\"bar\" aria-hidden=\"true\">"
                              "<rect width=\"");
        prof_markup_percent(t->out, value, whole, 1);
        prof_buf_puts(t->out, "%\" height=\"100%\"/></svg></td>");
    }
}


static void
prof_html_function_name(prof_html_table_t *t, uint32_t group)
{
    uint32_t                     source;
    const char                  *name;
    const prof_frame_t          *f;
    const prof_view_function_t  *func;

    func = &t->view->functions[group];
    name = func->name;
    f = &t->profile->frames[func->frame];
    source = prof_source_function(t->profile, func);

    prof_buf_puts(t->out, prof_source_is_inferred(source)
                          ? "<code class=\"inferred\">" : "<code>");
    prof_markup_text(t->out, name, strlen(name), PROF_HTML_NAME_MAX);
    prof_buf_puts(t->out, "</code>");

    /* the same function may have a row for the time in which it runs */

    if (func->waits
        && (f->type == PROF_TYPE_SCRIPT || prof_frame_is_code(f)))
    {
        prof_buf_puts(t->out, " <small>waiting</small>");
    }

    if (f->object != PROF_NONE) {
        name = prof_path_file(t->profile->objects[f->object].path);

        prof_buf_puts(t->out, " <small>");
        prof_markup_text(t->out, name, strlen(name), PROF_HTML_NAME_MAX);
        prof_buf_puts(t->out, func->inlined ? ", inlined</small>"
                                            : "</small>");
    }

    if (prof_source_is_inferred(source)) {
        prof_buf_puts(t->out, " <small>");
        prof_buf_puts(t->out, prof_sources[source].text);
        prof_buf_puts(t->out, "</small>");
    }
}


static void
prof_html_object_name(prof_html_table_t *t, uint32_t group)
{
    const char  *path;

    if (group >= t->profile->nobjects) {
        prof_html_kind_name(t, group - t->profile->nobjects);
        return;
    }

    path = t->profile->objects[group].path;

    prof_buf_puts(t->out, "<code title=\"");
    prof_markup_text(t->out, path, strlen(path), PROF_HTML_NAME_MAX);
    prof_buf_puts(t->out, "\">");

    path = prof_path_file(path);

    prof_markup_text(t->out, path, strlen(path), PROF_HTML_NAME_MAX);
    prof_buf_puts(t->out, "</code>");
}


static void
prof_html_kind_name(prof_html_table_t *t, uint32_t group)
{
    prof_buf_t  text;

    prof_buf_init(&text);
    prof_kind_text(t->profile, group, &text);
    prof_markup_text(t->out, text.data, text.len, PROF_HTML_NAME_MAX);
    prof_buf_free(&text);
}


static void
prof_html_source_name(prof_html_table_t *t, uint32_t group)
{
    prof_buf_puts(t->out, prof_sources[group].text);
}


static void
prof_html_unnamed_name(prof_html_table_t *t, uint32_t group)
{
    const char  *id;

    prof_html_object_name(t, group);

    id = t->profile->objects[group].build_id;

    prof_buf_puts(t->out, "<br><small>");

    if (id[0]) {
        prof_buf_puts(t->out, "needs <code>/usr/lib/debug/.build-id/");
        prof_markup_text(t->out, id, strnlen(id, 2), PROF_HTML_NAME_MAX);
        prof_buf_puts(t->out, "/");
        prof_markup_text(t->out, id + strnlen(id, 2),
                         strlen(id + strnlen(id, 2)), PROF_HTML_NAME_MAX);
        prof_buf_puts(t->out, ".debug</code>");

    } else {
        prof_buf_puts(t->out, "has no build-id: no debug file can be found "
                              "for it");
    }

    prof_buf_puts(t->out, "</small>");
}
