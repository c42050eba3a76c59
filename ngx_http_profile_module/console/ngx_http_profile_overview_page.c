
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The table of the overview as HTML: a group of rows for each location, with a
 * row for each part of its time.  The graphs are inline SVG, so the page needs
 * no script.
 *
 * Context: a thread.
 */


#include "console/ngx_http_profile_routes.h"

#include <string.h>


/* a part of less than this share of a location's time has no row */
#define NGX_HTTP_PROFILE_PART_MIN   0.01

/* stalls that take more of a location's time are marked */
#define NGX_HTTP_PROFILE_STALL_MAX  0.05

#define NGX_HTTP_PROFILE_NAME_MAX   200     /* bytes */
#define NGX_HTTP_PROFILE_PARTS      (NGX_HTTP_PROFILE_CAUSES + 5)


/* a part of the time of a location: a row of its group */

typedef struct {
    ngx_str_t                  text;
    const char                *sort;        /* column of the list of profiles */
    ngx_http_profile_sums_t   *sums;
    ngx_uint_t                 sum;         /* as in ngx_http_profile_sum() */
    unsigned                   stall:1;
} ngx_http_profile_part_t;


typedef struct {
    ngx_http_profile_overview_t  *ov;
    const char                   *root;
    prof_buf_t                   *out;
} ngx_http_profile_table_t;


static void ngx_http_profile_table_causes(ngx_http_profile_table_t *t);
static void ngx_http_profile_table_cause(ngx_http_profile_table_t *t,
    ngx_uint_t sum);
static void ngx_http_profile_table_url(ngx_http_profile_table_t *t,
    ngx_uint_t sum, ngx_uint_t own);
static void ngx_http_profile_table_own(ngx_http_profile_table_t *t);
static void ngx_http_profile_table_head(ngx_http_profile_table_t *t);
static void ngx_http_profile_table_group(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_uint_t all);
static void ngx_http_profile_table_workers(ngx_http_profile_table_t *t);
static void ngx_http_profile_table_name(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage);
static void ngx_http_profile_table_links(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage);
static ngx_uint_t ngx_http_profile_table_parts(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_http_profile_part_t *parts);
static int ngx_libc_cdecl ngx_http_profile_table_order(const void *one,
    const void *two);
static void ngx_http_profile_table_part(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_http_profile_part_t *part,
    ngx_uint_t all);
static void ngx_http_profile_table_cells(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_uint_t sum);
static void ngx_http_profile_table_graph(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_uint_t sum);
static void ngx_http_profile_table_list(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, const char *sort);
static ngx_str_t ngx_http_profile_table_uri(ngx_http_profile_usage_t *usage);
static void ngx_http_profile_table_escape(prof_buf_t *b, ngx_str_t *s);
static float ngx_http_profile_sum(float *sums, ngx_uint_t sum);


void
ngx_http_profile_overview_table(ngx_http_profile_overview_t *ov,
    const char *root, prof_buf_t *b)
{
    ngx_uint_t                i;
    ngx_http_profile_table_t  t;

    t.ov = ov;
    t.root = root;
    t.out = b;

    ngx_http_profile_table_causes(&t);

    if (ov->n == 0) {
        prof_buf_printf(b, "<div class=\"empty\"><p>No request has %s in the "
                           "last hour.</p></div>\n",
                        ov->sum == NGX_HTTP_PROFILE_SUM_WALL
                        ? "ended" : "waited for this cause");
        ngx_http_profile_table_own(&t);
        return;
    }

    prof_buf_puts(b, "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
                     "aria-label=\"Time of requests\">\n"
                     "<table class=\"overview\">\n");

    ngx_http_profile_table_head(&t);
    ngx_http_profile_table_group(&t, &ov->all, 1);

    for (i = 0; i < ov->n; i++) {
        ngx_http_profile_table_group(&t, &ov->places[i], 0);
    }

    prof_buf_puts(b, "</table>\n");

    if (ov->more) {
        prof_buf_printf(b, "<p class=\"soft\">%lu other locations took less "
                           "time.  The first rows include them.</p>\n",
                        (unsigned long) ov->more);
    }

    prof_buf_puts(b, "</div>\n");

    ngx_http_profile_table_own(&t);
}


/* links to the causes of the last hour, and marks the cause that is shown */

static void
ngx_http_profile_table_causes(ngx_http_profile_table_t *t)
{
    ngx_uint_t  i;

    prof_buf_puts(t->out, "<nav class=\"causes\" "
                          "aria-label=\"Causes of waiting\">");

    ngx_http_profile_table_cause(t, NGX_HTTP_PROFILE_SUM_WALL);

    for (i = NGX_HTTP_PROFILE_SUM_WAITS; i < NGX_HTTP_PROFILE_SUMS; i++) {

        if (i == t->ov->sum || t->ov->all.sums[NGX_HTTP_PROFILE_HOUR][i] > 0) {
            ngx_http_profile_table_cause(t, i);
        }
    }

    prof_buf_puts(t->out, "</nav>\n");
}


static void
ngx_http_profile_table_cause(ngx_http_profile_table_t *t, ngx_uint_t sum)
{
    float       *hour;
    ngx_str_t    text;
    prof_buf_t  *b;

    b = t->out;
    hour = t->ov->all.sums[NGX_HTTP_PROFILE_HOUR];

    if (sum == NGX_HTTP_PROFILE_SUM_WALL) {
        ngx_str_set(&text, "All time");

    } else {
        text = ngx_http_profile_cause_text(sum - NGX_HTTP_PROFILE_SUM_WAITS);
    }

    prof_buf_puts(b, "<a href=\"");
    ngx_http_profile_table_url(t, sum, t->ov->own);
    prof_buf_puts(b, sum == t->ov->sum ? "\" aria-current=\"true\">" : "\">");
    prof_markup_text(b, (char *) text.data, text.len, text.len);

    if (sum != NGX_HTTP_PROFILE_SUM_WALL
        && hour[NGX_HTTP_PROFILE_SUM_WALL] > 0)
    {
        prof_buf_printf(b, " <span class=\"soft\">%.1f %%</span>",
                        100 * hour[sum] / hour[NGX_HTTP_PROFILE_SUM_WALL]);
    }

    prof_buf_puts(b, "</a>\n");
}


/* appends the URL of the overview of a cause, or of all time */

static void
ngx_http_profile_table_url(ngx_http_profile_table_t *t, ngx_uint_t sum,
    ngx_uint_t own)
{
    ngx_str_t    text;
    prof_buf_t  *b;

    b = t->out;

    prof_markup_text(b, t->root, strlen(t->root), strlen(t->root));

    if (sum == NGX_HTTP_PROFILE_SUM_WALL) {
        prof_buf_puts(b, own ? "?profiler=on" : "./");
        return;
    }

    text = ngx_http_profile_cause_text(sum - NGX_HTTP_PROFILE_SUM_WAITS);

    prof_buf_puts(b, "?cause=");
    ngx_http_profile_table_escape(b, &text);
    prof_buf_puts(b, own ? "&amp;profiler=on" : "");
}


/* says whether the profiler's own pages are included, and links to the other */

static void
ngx_http_profile_table_own(ngx_http_profile_table_t *t)
{
    ngx_uint_t  own;

    own = t->ov->own;

    prof_buf_printf(t->out, "<p class=\"soft\">Requests for the console and "
                            "for metrics are %s.  <a href=\"",
                    own ? "included" : "left out");
    ngx_http_profile_table_url(t, t->ov->sum, !own);
    prof_buf_puts(t->out, own ? "\">Leave them out</a></p>\n"
                              : "\">Include them</a></p>\n");
}


static void
ngx_http_profile_table_head(ngx_http_profile_table_t *t)
{
    prof_buf_puts(t->out,
        "<thead>\n<tr><th scope=\"col\" rowspan=\"2\">Location and its "
        "time</th><th scope=\"colgroup\" colspan=\"2\" class=\"num\">Last "
        "minute</th><th scope=\"colgroup\" colspan=\"2\" class=\"num\">Last "
        "hour</th><th scope=\"col\" rowspan=\"2\">The hour</th></tr>\n"
        "<tr><th scope=\"col\" class=\"num\">Share</th>"
        "<th scope=\"col\" class=\"num\">Each</th>"
        "<th scope=\"col\" class=\"num\">Share</th>"
        "<th scope=\"col\" class=\"num\">Each</th></tr>\n</thead>\n");
}


static void
ngx_http_profile_table_group(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_uint_t all)
{
    ngx_uint_t               i, n;
    ngx_http_profile_part_t  parts[NGX_HTTP_PROFILE_PARTS];

    prof_buf_puts(t->out, "<tbody>\n<tr class=\"group\"><th scope=\"row\">");

    if (all) {
        prof_buf_puts(t->out, "All requests");

    } else {
        ngx_http_profile_table_name(t, usage);
    }

    prof_buf_printf(t->out, "<span class=\"soft\"> %.3g/s</span>",
        usage->sums[NGX_HTTP_PROFILE_MINUTE][NGX_HTTP_PROFILE_SUM_REQUESTS]
        / ngx_max(t->ov->seconds[NGX_HTTP_PROFILE_MINUTE], 1));

    if (all) {
        ngx_http_profile_table_workers(t);

    } else {
        ngx_http_profile_table_links(t, usage);
    }

    prof_buf_puts(t->out, "</th>");
    ngx_http_profile_table_cells(t, usage, NGX_HTTP_PROFILE_SUM_WALL);

    n = ngx_http_profile_table_parts(t, usage, parts);

    for (i = 0; i < n; i++) {
        ngx_http_profile_table_part(t, usage, &parts[i], all);
    }

    prof_buf_puts(t->out, "</tbody>\n");
}


/*
 * Appends the number of processors that the workers have used, and the share
 * of requests in it.  A request counts when it ends, so in a minute the
 * requests may have more CPU time than the workers.
 */

static void
ngx_http_profile_table_workers(ngx_http_profile_table_t *t)
{
    float        used, counted;
    ngx_uint_t   i;
    prof_buf_t  *b;

    static const char  *periods[NGX_HTTP_PROFILE_PERIODS] = {
        "last minute", "last hour"
    };

    b = t->out;

    prof_buf_puts(b, "<div class=\"links soft\"><span>Processors of the "
                     "workers:</span>");

    for (i = 0; i < NGX_HTTP_PROFILE_PERIODS; i++) {

        used = t->ov->workers.sums[i][NGX_HTTP_PROFILE_SUM_CPU];
        counted = t->ov->all.sums[i][NGX_HTTP_PROFILE_SUM_CPU]
                  + t->ov->all.sums[i][NGX_HTTP_PROFILE_SUM_OUTSIDE];

        if (used <= 0 || t->ov->seconds[i] <= 0) {
            continue;
        }

        prof_buf_printf(b, "<span>%s %.2f, %.0f %% for requests</span>",
                        periods[i], used / 1e9 / t->ov->seconds[i],
                        100 * counted / used);
    }

    prof_buf_puts(b, "</div>");
}


static void
ngx_http_profile_table_name(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage)
{
    ngx_str_t  *name;

    name = &usage->location;

    prof_buf_puts(t->out, "<span class=\"place\">");
    prof_markup_text(t->out, name->len ? (char *) name->data : "no location",
                     name->len ? name->len : sizeof("no location") - 1,
                     NGX_HTTP_PROFILE_NAME_MAX);
    prof_buf_puts(t->out, "</span> <span class=\"soft\">");
    prof_markup_text(t->out, (char *) usage->server.data, usage->server.len,
                     NGX_HTTP_PROFILE_NAME_MAX);
    prof_buf_puts(t->out, "</span>");
}


/* links to profiles of the location, and to a capture of its next requests */

static void
ngx_http_profile_table_links(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage)
{
    uint64_t     upper;
    ngx_str_t    location;
    ngx_uint_t   i;
    prof_buf_t  *b;

    b = t->out;
    location = ngx_http_profile_table_uri(usage);

    prof_buf_puts(b, "<div class=\"links\">");

    if (location.len) {
        ngx_http_profile_table_list(t, usage, "start");
        prof_buf_puts(b, "Profiles</a> <a class=\"next\" href=\"");
        prof_markup_text(b, t->root, strlen(t->root), strlen(t->root));
        prof_buf_puts(b, "wall?requests=100&amp;seconds=60&amp;format=html"
                         "&amp;location=");
        ngx_http_profile_table_escape(b, &location);
        prof_buf_puts(b, "\">Capture the next 100</a>");
    }

    for (i = 0; i < NGX_HTTP_PROFILE_BUCKETS; i++) {

        if (usage->exemplars[i][0] == '\0') {
            continue;
        }

        prof_buf_puts(b, " <a href=\"");
        prof_markup_text(b, t->root, strlen(t->root), strlen(t->root));
        prof_buf_printf(b, "p/%.*s\" title=\"The latest profile of this "
                           "time\">", NGX_HTTP_PROFILE_ID_LEN,
                        usage->exemplars[i]);

        upper = ngx_http_profile_bucket_upper(i);

        prof_buf_puts(b, upper == UINT64_MAX ? "&gt; " : "&le; ");
        ngx_http_profile_table_time(b,
               upper == UINT64_MAX ? ngx_http_profile_bucket_upper(i - 1)
                                   : upper);
        prof_buf_puts(b, "</a>");
    }

    prof_buf_puts(b, "</div>");
}


/* lists the parts of the time that get a row, the longest first */

static ngx_uint_t
ngx_http_profile_table_parts(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_http_profile_part_t *parts)
{
    float                      all, part, stall;
    ngx_uint_t                 i, n;
    ngx_http_profile_part_t   *p;

    all = usage->sums[NGX_HTTP_PROFILE_HOUR][NGX_HTTP_PROFILE_SUM_WALL];
    stall = usage->sums[NGX_HTTP_PROFILE_HOUR][NGX_HTTP_PROFILE_SUM_STALL];
    n = 0;

    for (i = NGX_HTTP_PROFILE_SUM_CPU; i <= NGX_HTTP_PROFILE_SUMS; i++) {

        part = ngx_http_profile_sum(usage->sums[NGX_HTTP_PROFILE_HOUR], i);

        if (t->ov->sum == NGX_HTTP_PROFILE_SUM_WALL
            ? part < all * NGX_HTTP_PROFILE_PART_MIN
            : i != t->ov->sum)
        {
            continue;
        }

        if (part <= 0) {
            continue;
        }

        p = &parts[n++];

        ngx_memzero(p, sizeof(ngx_http_profile_part_t));

        p->sum = i;
        p->sums = usage->sums;
        p->sort = "waited";

        if (i == NGX_HTTP_PROFILE_SUM_CPU) {
            ngx_str_set(&p->text, "CPU");
            p->sort = "cpu";

        } else if (i == NGX_HTTP_PROFILE_SUM_STALL) {
            ngx_str_set(&p->text, "Stall: the worker was busy");
            p->stall = stall > all * NGX_HTTP_PROFILE_STALL_MAX;

        } else if (i == NGX_HTTP_PROFILE_SUM_NO_PROCESSOR) {
            ngx_str_set(&p->text, "No processor");
            p->sort = "wall";

        } else if (i == NGX_HTTP_PROFILE_SUM_BLOCKED) {
            ngx_str_set(&p->text, "Blocked in a call");
            p->sort = "wall";

        } else if (i == NGX_HTTP_PROFILE_SUMS) {
            ngx_str_set(&p->text, "Not running, unknown why");
            p->sort = "wall";

        } else {
            p->text = ngx_http_profile_cause_text(
                                             i - NGX_HTTP_PROFILE_SUM_WAITS);
        }
    }

    qsort(parts, n, sizeof(ngx_http_profile_part_t),
          ngx_http_profile_table_order);

    return n;
}


static int ngx_libc_cdecl
ngx_http_profile_table_order(const void *one, const void *two)
{
    float                           a, b;
    const ngx_http_profile_part_t  *p = one;
    const ngx_http_profile_part_t  *q = two;

    a = ngx_http_profile_sum(p->sums[NGX_HTTP_PROFILE_HOUR], p->sum);
    b = ngx_http_profile_sum(q->sums[NGX_HTTP_PROFILE_HOUR], q->sum);

    return a < b ? 1 : a > b ? -1 : 0;
}


static void
ngx_http_profile_table_part(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_http_profile_part_t *part,
    ngx_uint_t all)
{
    ngx_str_t    uri;
    ngx_uint_t   link;
    prof_buf_t  *b;

    b = t->out;
    uri = ngx_http_profile_table_uri(usage);
    link = !all && uri.len;

    prof_buf_printf(b, "<tr%s><th scope=\"row\">",
                    part->stall ? " class=\"stall\"" : "");

    if (link) {
        ngx_http_profile_table_list(t, usage, part->sort);
    }

    prof_markup_text(b, (char *) part->text.data, part->text.len,
                     part->text.len);
    prof_buf_puts(b, link ? "</a>" : "");

    if (part->stall) {
        prof_buf_puts(b, " <span class=\"tag bad\">stalls</span>");
    }

    prof_buf_puts(b, "</th>");

    ngx_http_profile_table_cells(t, usage, part->sum);
}


/* appends the share of all time, and the mean time of a request, as cells */

static void
ngx_http_profile_table_cells(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_uint_t sum)
{
    float        n, all, part;
    ngx_uint_t   i;
    prof_buf_t  *b;

    b = t->out;

    for (i = 0; i < NGX_HTTP_PROFILE_PERIODS; i++) {

        n = usage->sums[i][NGX_HTTP_PROFILE_SUM_REQUESTS];
        all = t->ov->all.sums[i][NGX_HTTP_PROFILE_SUM_WALL];
        part = ngx_http_profile_sum(usage->sums[i], sum);

        if (n == 0 || all <= 0) {
            prof_buf_puts(b, "<td class=\"num\"></td><td class=\"num\"></td>");
            continue;
        }

        prof_buf_printf(b, "<td class=\"num\">%.1f %%</td><td class=\"num\">",
                        100 * part / all);
        ngx_http_profile_table_time(b, part / n);
        prof_buf_puts(b, "</td>");
    }

    ngx_http_profile_table_graph(t, usage, sum);

    prof_buf_puts(b, "</tr>\n");
}


/* appends a graph; all graphs of a location have the same scale */

static void
ngx_http_profile_table_graph(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, ngx_uint_t sum)
{
    float        max, part;
    ngx_uint_t   i;
    prof_buf_t  *b;

    b = t->out;
    max = 0;

    for (i = 0; i < NGX_HTTP_PROFILE_MINUTES; i++) {
        max = ngx_max(max, usage->minutes[i][NGX_HTTP_PROFILE_SUM_WALL]);
    }

    prof_buf_printf(b, "<td><svg class=\"spark\" viewBox=\"0 0 %d 20\" "
                       "preserveAspectRatio=\"none\" aria-hidden=\"true\">"
                       "<path class=\"%s\" d=\"",
                    2 * NGX_HTTP_PROFILE_MINUTES,
                    sum == NGX_HTTP_PROFILE_SUM_WALL ? "wall"
                    : sum == NGX_HTTP_PROFILE_SUM_CPU ? "cpu"
                    : sum == NGX_HTTP_PROFILE_SUM_STALL ? "stalled"
                    : sum == NGX_HTTP_PROFILE_SUM_NO_PROCESSOR ? "queued"
                    : sum == NGX_HTTP_PROFILE_SUM_BLOCKED ? "busy"
                    : sum == NGX_HTTP_PROFILE_SUMS ? "busy" : "waited");

    for (i = 0; i < NGX_HTTP_PROFILE_MINUTES; i++) {

        part = ngx_http_profile_sum(usage->minutes[i], sum);

        if (part > 0) {
            prof_buf_printf(b, "M%u 20v-%.1fh2V20z", (unsigned) i * 2,
                            ngx_max(20 * part / max, 0.5));
        }
    }

    prof_buf_puts(b, "\"/></svg></td>");
}


/* begins a link to the profiles of a location, which a column sorts */

static void
ngx_http_profile_table_list(ngx_http_profile_table_t *t,
    ngx_http_profile_usage_t *usage, const char *sort)
{
    ngx_str_t  uri;

    uri = ngx_http_profile_table_uri(usage);

    prof_buf_puts(t->out, "<a href=\"");
    prof_markup_text(t->out, t->root, strlen(t->root), strlen(t->root));
    prof_buf_puts(t->out, "profiles#filter=");
    ngx_http_profile_table_escape(t->out, &uri);
    prof_buf_printf(t->out, "&amp;sort=%s\">", sort);
}


/*
 * Returns the path that URIs of the location begin with, which is a part of
 * the location's name.  The path is empty for regular expressions and named
 * locations.
 */

static ngx_str_t
ngx_http_profile_table_uri(ngx_http_profile_usage_t *usage)
{
    ngx_str_t  uri;

    uri = usage->location;

    if (uri.len > 2 && uri.data[0] == '=' && uri.data[1] == ' ') {
        uri.data += 2;
        uri.len -= 2;
    }

    if (uri.len == 0 || uri.data[0] != '/') {
        uri.len = 0;
    }

    return uri;
}


static void
ngx_http_profile_table_escape(prof_buf_t *b, ngx_str_t *s)
{
    size_t  i;
    u_char  ch;

    for (i = 0; i < s->len; i++) {
        ch = s->data[i];

        if ((ch >= '0' && ch <= '9') || ch == '/' || ch == '-' || ch == '_'
            || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z'))
        {
            prof_buf_append(b, &ch, 1);

        } else {
            prof_buf_printf(b, "%%%02X", ch);
        }
    }
}


void
ngx_http_profile_table_time(prof_buf_t *b, double ns)
{
    if (ns >= 1e9) {
        prof_buf_printf(b, "%.3g s", ns / 1e9);

    } else if (ns >= 1e6) {
        prof_buf_printf(b, "%.3g ms", ns / 1e6);

    } else {
        prof_buf_printf(b, "%.3g us", ns / 1e3);
    }
}


/*
 * Returns a sum.  NGX_HTTP_PROFILE_SUMS stands for wall time that no other sum
 * contains: in short turns the worker did not run, and the reason was not
 * measured.
 */

static float
ngx_http_profile_sum(float *sums, ngx_uint_t sum)
{
    float       rest;
    ngx_uint_t  i;

    if (sum < NGX_HTTP_PROFILE_SUMS) {
        return sums[sum];
    }

    rest = sums[NGX_HTTP_PROFILE_SUM_WALL];

    for (i = NGX_HTTP_PROFILE_SUM_CPU; i < NGX_HTTP_PROFILE_SUMS; i++) {
        rest -= sums[i];
    }

    return ngx_max(rest, 0);
}
