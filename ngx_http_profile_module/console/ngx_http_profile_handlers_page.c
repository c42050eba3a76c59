
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The event handlers of the overview, as a table and as JSON.
 *
 * Context: a thread.
 */


#include "console/ngx_http_profile_routes.h"

#include <string.h>


/* the maximum number of handlers in the table: those with the most time */
#define NGX_HTTP_PROFILE_HANDLER_ROWS  15


static void ngx_http_profile_handlers_sorted(
    ngx_http_profile_directory_t *dir, ngx_http_profile_handler_sums_t *sums);
static int ngx_libc_cdecl ngx_http_profile_handlers_order(const void *one,
    const void *two);
static void ngx_http_profile_handlers_row(prof_buf_t *b,
    ngx_http_profile_handler_sum_t *sum, uint64_t all);


void
ngx_http_profile_handlers_table(ngx_http_profile_directory_t *dir,
    prof_buf_t *b)
{
    uint64_t                         all;
    ngx_uint_t                       i, n;
    ngx_http_profile_handler_sums_t  sums;

    ngx_http_profile_handlers_sorted(dir, &sums);

    if (sums.n == 0) {
        return;
    }

    prof_buf_puts(b,
        "<h2>Event handlers</h2>\n"
        "<p class=\"soft\">The functions that the event loop has called since "
        "the counters began, those with most time first.</p>\n"
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
        "aria-label=\"Event handlers\">\n<table class=\"handlers\">\n"
        "<thead>\n<tr><th scope=\"col\">Handler</th>"
        "<th scope=\"col\" class=\"num\">Calls</th>"
        "<th scope=\"col\" class=\"num\">Share</th>"
        "<th scope=\"col\" class=\"num\">Time</th>"
        "<th scope=\"col\" class=\"num\">Each</th>"
        "<th scope=\"col\" class=\"num\">Latency</th></tr>\n</thead>\n"
        "<tbody>\n");

    for (all = 0, i = 0; i < sums.n; i++) {
        all += sums.list[i].sums.time;
    }

    n = ngx_min(sums.n, NGX_HTTP_PROFILE_HANDLER_ROWS);

    for (i = 0; i < n; i++) {
        ngx_http_profile_handlers_row(b, &sums.list[i], all);
    }

    prof_buf_puts(b, "</tbody>\n</table>\n");

    if (n < sums.n) {
        prof_buf_printf(b, "<p class=\"soft\">%lu other handlers took less "
                           "time.</p>\n", (unsigned long) (sums.n - n));
    }

    prof_buf_puts(b, "</div>\n");
}


json_t *
ngx_http_profile_handlers_json(ngx_http_profile_directory_t *dir)
{
    json_t                          *list;
    ngx_uint_t                       i;
    ngx_http_profile_handler_sum_t  *sum;
    ngx_http_profile_handler_sums_t  sums;

    ngx_http_profile_handlers_sorted(dir, &sums);

    list = json_array();

    for (i = 0; i < sums.n; i++) {
        sum = &sums.list[i];

        (void) json_array_append_new(list,
                   json_pack("{s:s, s:I, s:I, s:I}",
                             "handler", sum->name,
                             "calls", (json_int_t) sum->sums.calls,
                             "time", (json_int_t) sum->sums.time,
                             "latency", (json_int_t) sum->sums.latency));
    }

    return list;
}


/* lists the handlers, those with the most time first */

static void
ngx_http_profile_handlers_sorted(ngx_http_profile_directory_t *dir,
    ngx_http_profile_handler_sums_t *sums)
{
    ngx_http_profile_handler_sums(dir, sums);

    qsort(sums->list, sums->n, sizeof(ngx_http_profile_handler_sum_t),
          ngx_http_profile_handlers_order);
}


static int ngx_libc_cdecl
ngx_http_profile_handlers_order(const void *one, const void *two)
{
    const ngx_http_profile_handler_sum_t  *a = one;
    const ngx_http_profile_handler_sum_t  *b = two;

    return a->sums.time < b->sums.time ? 1
           : a->sums.time > b->sums.time ? -1 : 0;
}


static void
ngx_http_profile_handlers_row(prof_buf_t *b,
    ngx_http_profile_handler_sum_t *sum, uint64_t all)
{
    size_t  len;

    len = strlen(sum->name);

    prof_buf_puts(b, "<tr><th scope=\"row\"><span class=\"place\">");
    prof_markup_text(b, sum->name, len, len);
    prof_buf_printf(b, "</span></th><td class=\"num\">%llu</td>"
                       "<td class=\"num\">%.1f %%</td><td class=\"num\">",
                    (unsigned long long) sum->sums.calls,
                    all ? 100.0 * sum->sums.time / all : 0);
    ngx_http_profile_table_time(b, sum->sums.time);
    prof_buf_puts(b, "</td><td class=\"num\">");
    ngx_http_profile_table_time(b,
                                (double) sum->sums.time / sum->sums.calls);
    prof_buf_puts(b, "</td><td class=\"num\">");
    ngx_http_profile_table_time(b,
                                (double) sum->sums.latency / sum->sums.calls);
    prof_buf_puts(b, "</td></tr>\n");
}
