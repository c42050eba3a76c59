
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The text of all metrics, in Prometheus' text format 0.0.4 or as OpenMetrics
 * 1.0.0.  The formats differ in the metadata: OpenMetrics names a counter's
 * family without "_total", has units, and an end.
 *
 * Context: any thread.
 */


#include "metrics/ngx_http_profile_metrics_private.h"

#include <string.h>


typedef enum {
    NGX_HTTP_PROFILE_COUNTER = 0,
    NGX_HTTP_PROFILE_GAUGE,
    NGX_HTTP_PROFILE_HISTOGRAM
} ngx_http_profile_metric_type_e;


typedef enum {
    NGX_HTTP_PROFILE_PLAIN = 0,
    NGX_HTTP_PROFILE_BY_CAUSE,        /* an array of histograms */
    NGX_HTTP_PROFILE_BY_LOSS,         /* an array of counters */
    NGX_HTTP_PROFILE_BY_BUSY,         /* the same */
    NGX_HTTP_PROFILE_EXEMPLARS        /* its buckets have exemplars */
} ngx_http_profile_detail_e;


/* a metric; its name ends with its unit, without "_total" */

typedef struct {
    const char                      *name;
    const char                      *unit;      /* "seconds": ns in memory */
    ngx_http_profile_metric_type_e   type;
    size_t                           offset;    /* of the value in its
                                                   structure */
    ngx_http_profile_bounds_t       *bounds;    /* of a histogram */
    ngx_http_profile_detail_e        detail;
    const char                      *help;
} ngx_http_profile_metric_t;


/* the text, and the metric that is being written */

typedef struct {
    prof_buf_t                        *out;
    ngx_uint_t                         openmetrics;
    ngx_uint_t                         own;         /* with the module's own
                                                       pages */
    ngx_http_profile_directory_t      *dir;
    ngx_http_profile_store_t          *store;
    const ngx_http_profile_metric_t   *metric;
    ngx_uint_t                         place;
    prof_buf_t                         labels;    /* without braces */
} ngx_http_profile_writer_t;


static void ngx_http_profile_expose_places(ngx_http_profile_writer_t *w);
static void ngx_http_profile_expose_workers(ngx_http_profile_writer_t *w);
static void ngx_http_profile_expose_handlers(ngx_http_profile_writer_t *w);
static void ngx_http_profile_expose_losses(ngx_http_profile_writer_t *w);
static void ngx_http_profile_expose_store(ngx_http_profile_writer_t *w);
static ngx_http_profile_cell_t *ngx_http_profile_sum_places(
    ngx_http_profile_directory_t *dir);
static void ngx_http_profile_sum_cell(ngx_http_profile_cell_t *sum,
    ngx_http_profile_cell_t *cell);
static void ngx_http_profile_sum_histogram(ngx_http_profile_histogram_t *sum,
    ngx_http_profile_histogram_t *h);
static void ngx_http_profile_write_family(ngx_http_profile_writer_t *w,
    const ngx_http_profile_metric_t *m);
static void ngx_http_profile_write_label(ngx_http_profile_writer_t *w,
    const char *name, u_char *value, size_t len);
static void ngx_http_profile_write_value(ngx_http_profile_writer_t *w,
    void *base);
static void ngx_http_profile_write_causes(ngx_http_profile_writer_t *w,
    ngx_http_profile_histogram_t *waits);
static void ngx_http_profile_write_busy(ngx_http_profile_writer_t *w,
    ngx_http_profile_cell_t *cell);
static void ngx_http_profile_write_histogram(ngx_http_profile_writer_t *w,
    ngx_http_profile_histogram_t *h);
static void ngx_http_profile_write_exemplar(ngx_http_profile_writer_t *w,
    ngx_uint_t bucket);
static void ngx_http_profile_write_name(ngx_http_profile_writer_t *w,
    const char *suffix, const char *le);
static void ngx_http_profile_write_number(ngx_http_profile_writer_t *w,
    uint64_t n);
static char *ngx_http_profile_seconds(char *last, uint64_t ns);


static const char  *ngx_http_profile_metric_types[] = {
    "counter",
    "gauge",
    "histogram"
};


/* metrics of a server and a location */

static const ngx_http_profile_metric_t  ngx_http_profile_place_metrics[] = {

    { "nginx_profile_request_duration_seconds", "seconds",
      NGX_HTTP_PROFILE_HISTOGRAM, offsetof(ngx_http_profile_cell_t, wall),
      &ngx_http_profile_wall_bounds, NGX_HTTP_PROFILE_EXEMPLARS,
      "Time from the first byte of a request until it is logged." },

    { "nginx_profile_request_cpu_seconds", "seconds",
      NGX_HTTP_PROFILE_HISTOGRAM, offsetof(ngx_http_profile_cell_t, cpu),
      &ngx_http_profile_cpu_bounds, NGX_HTTP_PROFILE_PLAIN,
      "CPU time of a request, with its share of the event loop." },

    { "nginx_profile_request_wait_seconds", "seconds",
      NGX_HTTP_PROFILE_HISTOGRAM, offsetof(ngx_http_profile_cell_t, waits),
      &ngx_http_profile_wall_bounds, NGX_HTTP_PROFILE_BY_CAUSE,
      "Time that a request has waited, by what it has waited for." },

    { "nginx_profile_request_stall_seconds", "seconds",
      NGX_HTTP_PROFILE_HISTOGRAM, offsetof(ngx_http_profile_cell_t, stall),
      &ngx_http_profile_wall_bounds, NGX_HTTP_PROFILE_PLAIN,
      "Time in which a request could have run, but its worker was busy." },

    { "nginx_profile_request_busy_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_cell_t, busy),
      NULL, NGX_HTTP_PROFILE_BY_BUSY,
      "Stalls of requests, by what their worker did." },

    { "nginx_profile_request_outside_cpu_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_cell_t, outside),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "CPU time of requests that is outside of their turns." },

    { "nginx_profile_request_no_processor_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER,
      offsetof(ngx_http_profile_cell_t, no_processor),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Time in turns of requests in which the worker had no processor." },

    { "nginx_profile_request_blocked_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_cell_t, blocked),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Time in turns of requests in which a call blocked the worker." },

    { "nginx_profile_request_turns", "",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_cell_t, turns),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Turns of requests: uninterrupted stretches of work for one request." },

    { "nginx_profile_longest_turn_seconds", "seconds",
      NGX_HTTP_PROFILE_GAUGE, offsetof(ngx_http_profile_cell_t, longest),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "The longest turn since the counters began." },

    { NULL, NULL, 0, 0, NULL, 0, NULL }
};


/* metrics of a worker */

static const ngx_http_profile_metric_t  ngx_http_profile_worker_metrics[] = {

    { "nginx_profile_worker_cpu_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_worker_times_t, cpu),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "CPU time of a worker process, with all of its threads." },

    { "nginx_profile_worker_idle_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_worker_times_t, idle),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Time in which the event loop of a worker waited for events." },

    { NULL, NULL, 0, 0, NULL, 0, NULL }
};


/* metrics of an event handler */

static const ngx_http_profile_metric_t  ngx_http_profile_handler_metrics[] = {

    { "nginx_profile_handler_calls", "",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_handled_t, calls),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Calls of an event handler by the event loop." },

    { "nginx_profile_handler_time_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_handled_t, time),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Time from the calls of an event handler to their returns." },

    { "nginx_profile_handler_latency_seconds", "seconds",
      NGX_HTTP_PROFILE_COUNTER, offsetof(ngx_http_profile_handled_t, latency),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Time for which ready events waited for the calls of their handler." },

    { NULL, NULL, 0, 0, NULL, 0, NULL }
};


/* metrics of the profiler */

static const ngx_http_profile_metric_t  ngx_http_profile_loss_metrics[] = {

    { "nginx_profile_kept_profiles", "", NGX_HTTP_PROFILE_COUNTER,
      offsetof(ngx_http_profile_losses_t, kept),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Profiles that profile_keep has kept." },

    { "nginx_profile_dropped_profiles", "", NGX_HTTP_PROFILE_COUNTER,
      offsetof(ngx_http_profile_losses_t, lost),
      NULL, NGX_HTTP_PROFILE_BY_LOSS,
      "Profiles that were dropped, by the limit that was reached." },

    { "nginx_profile_unequal_requests", "", NGX_HTTP_PROFILE_COUNTER,
      offsetof(ngx_http_profile_losses_t, unequal),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Requests whose turns and waits did not add up to $request_time." },

    { NULL, NULL, 0, 0, NULL, 0, NULL }
};


/* metrics of the store of profiles */

static const ngx_http_profile_metric_t  ngx_http_profile_store_metrics[] = {

    { "nginx_profile_store_memory_bytes", "bytes", NGX_HTTP_PROFILE_GAUGE,
      offsetof(ngx_http_profile_store_stat_t, memory_used),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Memory of the store that is in use." },

    { "nginx_profile_stored_profiles", "", NGX_HTTP_PROFILE_GAUGE,
      offsetof(ngx_http_profile_store_stat_t, entries),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Profiles in the store." },

    { "nginx_profile_store_added_profiles", "", NGX_HTTP_PROFILE_COUNTER,
      offsetof(ngx_http_profile_store_stat_t, added),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Profiles that were added to the store." },

    { "nginx_profile_store_evicted_profiles", "", NGX_HTTP_PROFILE_COUNTER,
      offsetof(ngx_http_profile_store_stat_t, evicted),
      NULL, NGX_HTTP_PROFILE_PLAIN,
      "Profiles that the store has removed for newer ones." },

    { NULL, NULL, 0, 0, NULL, 0, NULL }
};


_Static_assert(sizeof(ngx_uint_t) == sizeof(uint64_t)
               && sizeof(size_t) == sizeof(uint64_t),
               "values of metrics have 64 bits");


void
ngx_http_profile_expose(ngx_http_profile_directory_t *dir,
    ngx_http_profile_store_t *store, ngx_uint_t openmetrics, ngx_uint_t own,
    prof_buf_t *b)
{
    ngx_http_profile_writer_t  w;

    w.out = b;
    w.openmetrics = openmetrics;
    w.own = own;
    w.dir = dir;
    w.store = store;
    prof_buf_init(&w.labels);

    ngx_http_profile_expose_places(&w);
    ngx_http_profile_expose_workers(&w);
    ngx_http_profile_expose_handlers(&w);
    ngx_http_profile_expose_losses(&w);
    ngx_http_profile_expose_store(&w);

    if (openmetrics) {
        prof_buf_puts(b, "# EOF\n");
    }

    if (prof_buf_failed(&w.labels)) {
        b->failed = 1;
    }

    prof_buf_free(&w.labels);
}


static void
ngx_http_profile_expose_places(ngx_http_profile_writer_t *w)
{
    ngx_uint_t                        i;
    ngx_http_profile_cell_t          *cells;
    ngx_http_profile_place_t         *place;
    ngx_http_profile_directory_t     *dir;
    const ngx_http_profile_metric_t  *m;

    dir = w->dir;
    cells = ngx_http_profile_sum_places(dir);

    if (cells == NULL) {
        w->out->failed = 1;
        return;
    }

    for (m = ngx_http_profile_place_metrics; m->name; m++) {

        ngx_http_profile_write_family(w, m);

        for (i = 0; i < dir->nplaces; i++) {

            place = &dir->places[i];

            if (cells[i].turns == 0 || place->server.data == NULL
                || (place->own && !w->own))
            {
                continue;
            }

            w->place = i;
            w->labels.len = 0;

            ngx_http_profile_write_label(w, "server", place->server.data,
                                         place->server.len);
            ngx_http_profile_write_label(w, "location", place->location.data,
                                         place->location.len);

            if (m->detail == NGX_HTTP_PROFILE_BY_CAUSE) {
                ngx_http_profile_write_causes(w, cells[i].waits);

            } else if (m->detail == NGX_HTTP_PROFILE_BY_BUSY) {
                ngx_http_profile_write_busy(w, &cells[i]);

            } else {
                ngx_http_profile_write_value(w, &cells[i]);
            }
        }
    }

    free(cells);
}


static void
ngx_http_profile_expose_workers(ngx_http_profile_writer_t *w)
{
    ngx_uint_t                        i;
    u_char                            number[NGX_INT_T_LEN];
    ngx_http_profile_worker_times_t   times;
    const ngx_http_profile_metric_t  *m;

    for (m = ngx_http_profile_worker_metrics; m->name; m++) {

        ngx_http_profile_write_family(w, m);

        for (i = 0;
             ngx_http_profile_worker_times(w->dir, i, &times) == NGX_OK;
             i++)
        {
            w->labels.len = 0;

            ngx_http_profile_write_label(w, "worker", number,
                                         ngx_sprintf(number, "%ui", i)
                                         - number);
            ngx_http_profile_write_value(w, &times);
        }
    }
}


static void
ngx_http_profile_expose_handlers(ngx_http_profile_writer_t *w)
{
    ngx_uint_t                        i;
    ngx_http_profile_handler_sum_t   *sum;
    ngx_http_profile_handler_sums_t   sums;
    const ngx_http_profile_metric_t  *m;

    ngx_http_profile_handler_sums(w->dir, &sums);

    for (m = ngx_http_profile_handler_metrics; m->name; m++) {

        ngx_http_profile_write_family(w, m);

        for (i = 0; i < sums.n; i++) {
            sum = &sums.list[i];

            w->labels.len = 0;

            ngx_http_profile_write_label(w, "handler", (u_char *) sum->name,
                                         strlen(sum->name));
            ngx_http_profile_write_value(w, &sum->sums);
        }
    }
}


static void
ngx_http_profile_expose_losses(ngx_http_profile_writer_t *w)
{
    ngx_str_t                        *name;
    ngx_uint_t                        i, n;
    ngx_http_profile_losses_t         sum, *losses;
    const ngx_http_profile_metric_t  *m;

    ngx_memzero(&sum, sizeof(ngx_http_profile_losses_t));

    for (n = 0; n < w->dir->npages; n++) {
        losses = &w->dir->pages[n]->losses;

        sum.kept += ngx_http_profile_counter(&losses->kept);
        sum.unequal += ngx_http_profile_counter(&losses->unequal);

        for (i = 0; i < NGX_HTTP_PROFILE_LOSSES; i++) {
            sum.lost[i] += ngx_http_profile_counter(&losses->lost[i]);
        }
    }

    for (m = ngx_http_profile_loss_metrics; m->name; m++) {

        ngx_http_profile_write_family(w, m);
        w->labels.len = 0;

        if (m->detail != NGX_HTTP_PROFILE_BY_LOSS) {
            ngx_http_profile_write_value(w, &sum);
            continue;
        }

        for (i = NGX_HTTP_PROFILE_LOSS_NONE + 1;
             i < NGX_HTTP_PROFILE_LOSSES;
             i++)
        {
            name = &ngx_http_profile_loss_names[i];

            w->labels.len = 0;

            ngx_http_profile_write_label(w, "cause", name->data, name->len);
            ngx_http_profile_write_name(w, "_total", NULL);
            ngx_http_profile_write_number(w, sum.lost[i]);
        }
    }
}


static void
ngx_http_profile_expose_store(ngx_http_profile_writer_t *w)
{
    ngx_http_profile_store_stat_t     st;
    const ngx_http_profile_metric_t  *m;

    if (w->store == NULL) {
        return;
    }

    ngx_http_profile_store_stat(w->store, &st);

    w->labels.len = 0;

    for (m = ngx_http_profile_store_metrics; m->name; m++) {
        ngx_http_profile_write_family(w, m);
        ngx_http_profile_write_value(w, &st);
    }
}


/* returns the sums of all pages, or NULL; does not touch unused cells */

static ngx_http_profile_cell_t *
ngx_http_profile_sum_places(ngx_http_profile_directory_t *dir)
{
    ngx_uint_t                    i, n;
    ngx_http_profile_cell_t      *cells, *sums;
    ngx_http_profile_counters_t  *page;

    sums = calloc(dir->nplaces, sizeof(ngx_http_profile_cell_t));

    for (n = 0; sums && n < dir->npages; n++) {

        page = dir->pages[n];
        cells = ngx_http_profile_page_cells(dir, page);

        for (i = 0; i < dir->nplaces; i++) {
            if (ngx_http_profile_is_used(page, i)) {
                ngx_http_profile_sum_cell(&sums[i], &cells[i]);
            }
        }
    }

    return sums;
}


static void
ngx_http_profile_sum_cell(ngx_http_profile_cell_t *sum,
    ngx_http_profile_cell_t *cell)
{
    uint64_t    longest;
    ngx_uint_t  i;

    longest = ngx_http_profile_counter(&cell->longest);

    sum->turns += ngx_http_profile_counter(&cell->turns);
    sum->longest = ngx_max(sum->longest, longest);
    sum->outside += ngx_http_profile_counter(&cell->outside);
    sum->no_processor += ngx_http_profile_counter(&cell->no_processor);
    sum->blocked += ngx_http_profile_counter(&cell->blocked);

    for (i = 0; i < NGX_HTTP_PROFILE_BUSY_KINDS; i++) {
        sum->busy[i] += ngx_http_profile_counter(&cell->busy[i]);
    }

    ngx_http_profile_sum_histogram(&sum->wall, &cell->wall);
    ngx_http_profile_sum_histogram(&sum->cpu, &cell->cpu);
    ngx_http_profile_sum_histogram(&sum->stall, &cell->stall);

    for (i = 0; i < NGX_HTTP_PROFILE_CAUSES; i++) {
        ngx_http_profile_sum_histogram(&sum->waits[i], &cell->waits[i]);
    }
}


static void
ngx_http_profile_sum_histogram(ngx_http_profile_histogram_t *sum,
    ngx_http_profile_histogram_t *h)
{
    ngx_uint_t  i;

    sum->sum += ngx_http_profile_counter(&h->sum);

    for (i = 0; i < NGX_HTTP_PROFILE_BUCKETS; i++) {
        sum->buckets[i] += ngx_http_profile_counter(&h->buckets[i]);
    }
}


/* the metadata of a metric, which precedes all of its samples */

static void
ngx_http_profile_write_family(ngx_http_profile_writer_t *w,
    const ngx_http_profile_metric_t *m)
{
    const char  *suffix;

    w->metric = m;

    suffix = (m->type == NGX_HTTP_PROFILE_COUNTER && !w->openmetrics)
             ? "_total" : "";

    prof_buf_printf(w->out, "# HELP %s%s %s\n# TYPE %s%s %s\n",
                    m->name, suffix, m->help, m->name, suffix,
                    ngx_http_profile_metric_types[m->type]);

    if (w->openmetrics && m->unit[0]) {
        prof_buf_printf(w->out, "# UNIT %s %s\n", m->name, m->unit);
    }
}


/* escapes values, which are texts of the configuration with any bytes */

static void
ngx_http_profile_write_label(ngx_http_profile_writer_t *w, const char *name,
    u_char *value, size_t len)
{
    char        *text;
    size_t       i, from;
    prof_buf_t  *b;

    b = &w->labels;

    prof_buf_puts(b, b->len ? "," : "");
    prof_buf_puts(b, name);
    prof_buf_puts(b, "=\"");

    text = prof_text_utf8((char *) value, &len);

    if (text == NULL) {
        b->failed = 1;
        return;
    }

    for (i = 0, from = 0; i < len; i++) {

        if (text[i] == '\\' || text[i] == '"' || text[i] == LF) {
            prof_buf_append(b, text + from, i - from);
            prof_buf_puts(b, text[i] == LF ? "\\n" : "\\");
            from = i + (text[i] == LF);
        }
    }

    prof_buf_append(b, text + from, len - from);
    prof_buf_puts(b, "\"");

    free(text);
}


static void
ngx_http_profile_write_value(ngx_http_profile_writer_t *w, void *base)
{
    void  *p;

    p = (u_char *) base + w->metric->offset;

    switch (w->metric->type) {

    case NGX_HTTP_PROFILE_HISTOGRAM:
        ngx_http_profile_write_histogram(w, p);
        return;

    case NGX_HTTP_PROFILE_COUNTER:
        ngx_http_profile_write_name(w, "_total", NULL);
        break;

    case NGX_HTTP_PROFILE_GAUGE:
        ngx_http_profile_write_name(w, "", NULL);
        break;
    }

    ngx_http_profile_write_number(w, *(uint64_t *) p);
}


/* the time of each cause that occurred; the text of a cause is static */

static void
ngx_http_profile_write_causes(ngx_http_profile_writer_t *w,
    ngx_http_profile_histogram_t *waits)
{
    size_t      labels;
    ngx_str_t   text;
    ngx_uint_t  i;

    labels = w->labels.len;

    for (i = 0; i < NGX_HTTP_PROFILE_CAUSES; i++) {

        if (waits[i].sum == 0) {
            continue;
        }

        text = ngx_http_profile_cause_text(i);

        w->labels.len = labels;

        ngx_http_profile_write_label(w, "cause", text.data, text.len);
        ngx_http_profile_write_histogram(w, &waits[i]);
    }
}


/* the parts of the stalls; a worker may count while they are read */

static void
ngx_http_profile_write_busy(ngx_http_profile_writer_t *w,
    ngx_http_profile_cell_t *cell)
{
    size_t      labels;
    uint64_t    rest;
    ngx_str_t  *text;
    ngx_uint_t  i;

    labels = w->labels.len;
    rest = cell->stall.sum;

    for (i = NGX_HTTP_PROFILE_BUSY_KINDS; i-- > 0; /* void */ ) {

        text = &ngx_http_profile_busy_texts[i];

        w->labels.len = labels;

        ngx_http_profile_write_label(w, "cause", text->data, text->len);
        ngx_http_profile_write_name(w, "_total", NULL);

        if (i == NGX_HTTP_PROFILE_BUSY_REQUESTS) {
            ngx_http_profile_write_number(w, rest);

        } else {
            ngx_http_profile_write_number(w, cell->busy[i]);
            rest -= ngx_min(rest, cell->busy[i]);
        }
    }
}


static void
ngx_http_profile_write_histogram(ngx_http_profile_writer_t *w,
    ngx_http_profile_histogram_t *h)
{
    char       *le;
    uint64_t    n;
    ngx_uint_t  i;
    char        text[NGX_INT64_LEN + sizeof(".000000000")];

    n = 0;

    for (i = 0; i < NGX_HTTP_PROFILE_BUCKETS; i++) {

        n += h->buckets[i];

        le = (i == NGX_HTTP_PROFILE_BUCKETS - 1)
             ? "+Inf"
             : ngx_http_profile_seconds(text + sizeof(text),
                                        w->metric->bounds->upper[i]);

        ngx_http_profile_write_name(w, "_bucket", le);
        prof_buf_number(w->out, n);

        if (w->openmetrics && h->buckets[i]
            && w->metric->detail == NGX_HTTP_PROFILE_EXEMPLARS)
        {
            ngx_http_profile_write_exemplar(w, i);
        }

        prof_buf_puts(w->out, "\n");
    }

    ngx_http_profile_write_name(w, "_count", NULL);
    prof_buf_number(w->out, n);
    prof_buf_puts(w->out, "\n");

    ngx_http_profile_write_name(w, "_sum", NULL);
    ngx_http_profile_write_number(w, h->sum);
}


static void
ngx_http_profile_write_exemplar(ngx_http_profile_writer_t *w,
    ngx_uint_t bucket)
{
    ngx_http_profile_exemplar_t  ex;
    char                         text[NGX_INT64_LEN + sizeof(".000000000")];

    if (ngx_http_profile_exemplar_get(w->dir, w->place, bucket, w->store, &ex)
        != NGX_OK)
    {
        return;
    }

    prof_buf_printf(w->out, " # {profile_id=\"%.*s\"",
                    NGX_HTTP_PROFILE_ID_LEN, ex.id);

    if (ex.trace[0]) {
        prof_buf_printf(w->out, ",trace_id=\"%.*s\"", PROF_TRACE_ID_LEN,
                        ex.trace);
    }

    prof_buf_printf(w->out, "} %s %llu.%03u",
                    ngx_http_profile_seconds(text + sizeof(text), ex.wall),
                    (unsigned long long) ex.time / 1000,
                    (unsigned) (ex.time % 1000));
}


static void
ngx_http_profile_write_name(ngx_http_profile_writer_t *w, const char *suffix,
    const char *le)
{
    prof_buf_puts(w->out, w->metric->name);
    prof_buf_puts(w->out, suffix);

    if (w->labels.len == 0) {
        prof_buf_puts(w->out, " ");
        return;
    }

    prof_buf_puts(w->out, "{");
    prof_buf_append(w->out, w->labels.data, w->labels.len);

    if (le) {
        prof_buf_puts(w->out, ",le=\"");
        prof_buf_puts(w->out, le);
        prof_buf_puts(w->out, "\"");
    }

    prof_buf_puts(w->out, "} ");
}


static void
ngx_http_profile_write_number(ngx_http_profile_writer_t *w, uint64_t n)
{
    char  text[NGX_INT64_LEN + sizeof(".000000000")];

    if (strcmp(w->metric->unit, "seconds") == 0) {
        prof_buf_puts(w->out, ngx_http_profile_seconds(text + sizeof(text),
                                                       n));

    } else {
        prof_buf_number(w->out, n);
    }

    prof_buf_puts(w->out, "\n");
}


/* writes a number with a point and at least one digit behind it before last */

static char *
ngx_http_profile_seconds(char *last, uint64_t ns)
{
    char        *p;
    ngx_uint_t   i;

    p = last;
    *--p = '\0';

    for (i = 1; i < 9 && ns % 10 == 0; i++) {
        ns /= 10;
    }

    for ( /* void */ ; i <= 9; i++) {
        *--p = '0' + ns % 10;
        ns /= 10;
    }

    *--p = '.';

    do {
        *--p = '0' + ns % 10;
        ns /= 10;
    } while (ns);

    return p;
}
