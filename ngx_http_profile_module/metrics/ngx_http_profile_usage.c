
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Where the time of requests went in the last minute and in the last hour: the
 * locations with most of it, from the history.
 *
 * Context: any thread.  Another process may write the history meanwhile, so a
 * sum may lack its latest increase.
 */


#include "metrics/ngx_http_profile_metrics_private.h"

#include <string.h>


/* a place while the places are sorted */

typedef struct {
    ngx_uint_t                 place;
    double                     share;   /* in the minute, plus in the hour */
} ngx_http_profile_rank_t;


/* the history, and the time up to which it is read */

typedef struct {
    ngx_http_profile_directory_t  *dir;
    uint64_t                       tick;  /* the present */
    uint64_t                       last;  /* of the last sample */
} ngx_http_profile_reader_t;


static ngx_uint_t ngx_http_profile_overview_all(ngx_http_profile_reader_t *rd,
    ngx_http_profile_usage_t *all, ngx_http_profile_rank_t *ranks,
    ngx_uint_t sum, ngx_uint_t own);
static void ngx_http_profile_overview_sort(ngx_http_profile_reader_t *rd,
    ngx_http_profile_usage_t *all, ngx_http_profile_rank_t *ranks,
    ngx_uint_t n, ngx_uint_t sum);
static int ngx_libc_cdecl ngx_http_profile_overview_order(const void *one,
    const void *two);
static void ngx_http_profile_overview_place(ngx_http_profile_reader_t *rd,
    ngx_uint_t place, ngx_http_profile_usage_t *usage);
static void ngx_http_profile_overview_past(ngx_http_profile_reader_t *rd,
    ngx_http_profile_past_t *past, ngx_http_profile_usage_t *usage);
static void ngx_http_profile_overview_add(float *to, const float *from);
static void ngx_http_profile_overview_exemplars(
    ngx_http_profile_reader_t *rd, ngx_uint_t place,
    ngx_http_profile_store_t *store, ngx_http_profile_usage_t *usage);


ngx_http_profile_overview_t *
ngx_http_profile_overview(ngx_http_profile_directory_t *dir,
    ngx_http_profile_store_t *store, ngx_uint_t max, ngx_uint_t sum,
    ngx_uint_t own)
{
    uint64_t                      now, age, minute;
    ngx_uint_t                    i, n, place;
    ngx_http_profile_rank_t      *ranks;
    ngx_http_profile_reader_t     rd;
    ngx_http_profile_overview_t  *ov;

    now = prof_now();
    age = now - dir->history->since;

    ngx_http_profile_history_sample(dir, now);

    ov = calloc(1, sizeof(ngx_http_profile_overview_t)
                   + max * sizeof(ngx_http_profile_usage_t));
    ranks = calloc(dir->nplaces, sizeof(ngx_http_profile_rank_t));

    if (ov == NULL || ranks == NULL) {
        free(ov);
        free(ranks);
        return NULL;
    }

    rd.dir = dir;
    rd.last = ngx_http_profile_counter(&dir->history->tick);
    rd.tick = ngx_max(now / NGX_HTTP_PROFILE_TICK, rd.last);

    /* the length of the sums: the time since the oldest tick or minute began */

    minute = NGX_HTTP_PROFILE_TICKS * NGX_HTTP_PROFILE_TICK;

    ov->seconds[NGX_HTTP_PROFILE_MINUTE] =
        ngx_min(age, minute - NGX_HTTP_PROFILE_TICK
                     + now % NGX_HTTP_PROFILE_TICK) / 1e9;
    ov->seconds[NGX_HTTP_PROFILE_HOUR] =
        ngx_min(age, (NGX_HTTP_PROFILE_MINUTES - 1) * minute + now % minute)
        / 1e9;

    ngx_http_profile_overview_past(&rd, &dir->history->workers, &ov->workers);

    n = ngx_http_profile_overview_all(&rd, &ov->all, ranks, sum, own);

    ngx_http_profile_overview_sort(&rd, &ov->all, ranks, n, sum);

    ov->sum = sum;
    ov->own = own;
    ov->n = ngx_min(n, max);
    ov->more = n - ov->n;

    for (i = 0; i < ov->n; i++) {
        place = ranks[i].place;

        ngx_http_profile_overview_place(&rd, place, &ov->places[i]);
        ngx_http_profile_overview_exemplars(&rd, place, store,
                                            &ov->places[i]);
    }

    free(ranks);

    return ov;
}


/*
 * Adds up all places.  Writes the places that had requests in the hour to
 * ranks, and returns their number.  If the sum is that of a cause, places whose
 * requests did not wait for the cause are left out.  Pages of the module are
 * left out unless "own" is set.
 */

static ngx_uint_t
ngx_http_profile_overview_all(ngx_http_profile_reader_t *rd,
    ngx_http_profile_usage_t *all, ngx_http_profile_rank_t *ranks,
    ngx_uint_t sum, ngx_uint_t own)
{
    ngx_uint_t                 i, k, n;
    ngx_http_profile_usage_t   usage;

    n = 0;

    for (i = 0; i < rd->dir->nplaces; i++) {

        /* a place has no name if memory was short at a reload */

        if (rd->dir->places[i].server.data == NULL
            || (rd->dir->places[i].own && !own)
            || !ngx_http_profile_history_used(rd->dir, i))
        {
            continue;
        }

        ngx_http_profile_overview_place(rd, i, &usage);

        if (usage.sums[NGX_HTTP_PROFILE_HOUR][NGX_HTTP_PROFILE_SUM_REQUESTS]
            == 0)
        {
            continue;
        }

        for (k = 0; k < NGX_HTTP_PROFILE_PERIODS; k++) {
            ngx_http_profile_overview_add(all->sums[k], usage.sums[k]);
        }

        for (k = 0; k < NGX_HTTP_PROFILE_MINUTES; k++) {
            ngx_http_profile_overview_add(all->minutes[k], usage.minutes[k]);
        }

        if (sum == NGX_HTTP_PROFILE_SUM_WALL
            || usage.sums[NGX_HTTP_PROFILE_HOUR][sum] > 0)
        {
            ranks[n++].place = i;
        }
    }

    return n;
}


/* sorts by both periods, so that places that are slow now come first as well */

static void
ngx_http_profile_overview_sort(ngx_http_profile_reader_t *rd,
    ngx_http_profile_usage_t *all, ngx_http_profile_rank_t *ranks,
    ngx_uint_t n, ngx_uint_t sum)
{
    float                     whole;
    ngx_uint_t                i, k;
    ngx_http_profile_usage_t  usage;

    for (i = 0; i < n; i++) {
        ngx_http_profile_overview_place(rd, ranks[i].place, &usage);

        for (k = 0; k < NGX_HTTP_PROFILE_PERIODS; k++) {
            whole = all->sums[k][sum];

            if (whole > 0) {
                ranks[i].share += usage.sums[k][sum] / whole;
            }
        }
    }

    qsort(ranks, n, sizeof(ngx_http_profile_rank_t),
          ngx_http_profile_overview_order);
}


static int ngx_libc_cdecl
ngx_http_profile_overview_order(const void *one, const void *two)
{
    const ngx_http_profile_rank_t *a = one;
    const ngx_http_profile_rank_t *b = two;

    if (a->share != b->share) {
        return a->share < b->share ? 1 : -1;
    }

    return a->place < b->place ? -1 : 1;
}


static void
ngx_http_profile_overview_place(ngx_http_profile_reader_t *rd,
    ngx_uint_t place, ngx_http_profile_usage_t *usage)
{
    ngx_memzero(usage, sizeof(ngx_http_profile_usage_t));

    usage->server = rd->dir->places[place].server;
    usage->location = rd->dir->places[place].location;

    ngx_http_profile_overview_past(rd, &rd->dir->history->pasts[place], usage);
}


/*
 * The history has no sums yet for ticks and minutes after the last sample:
 * their places in the arrays still have older sums, which are skipped.
 */

static void
ngx_http_profile_overview_past(ngx_http_profile_reader_t *rd,
    ngx_http_profile_past_t *past, ngx_http_profile_usage_t *usage)
{
    uint64_t    t, now, last;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_PROFILE_TICKS; i++) {
        t = rd->tick - i;

        if (t <= rd->last) {
            ngx_http_profile_overview_add(
                                     usage->sums[NGX_HTTP_PROFILE_MINUTE],
                                     past->recent[t % NGX_HTTP_PROFILE_TICKS]);
        }
    }

    now = rd->tick / NGX_HTTP_PROFILE_TICKS;
    last = rd->last / NGX_HTTP_PROFILE_TICKS;

    for (i = 0; i < NGX_HTTP_PROFILE_MINUTES; i++) {
        t = now - i;

        if (t > last) {
            continue;
        }

        ngx_memcpy(usage->minutes[NGX_HTTP_PROFILE_MINUTES - 1 - i],
                   past->minutes[t % NGX_HTTP_PROFILE_MINUTES],
                   sizeof(ngx_http_profile_sums_t));

        ngx_http_profile_overview_add(usage->sums[NGX_HTTP_PROFILE_HOUR],
                          usage->minutes[NGX_HTTP_PROFILE_MINUTES - 1 - i]);
    }
}


static void
ngx_http_profile_overview_add(float *to, const float *from)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_PROFILE_SUMS; i++) {
        to[i] += from[i];
    }
}


static void
ngx_http_profile_overview_exemplars(ngx_http_profile_reader_t *rd,
    ngx_uint_t place, ngx_http_profile_store_t *store,
    ngx_http_profile_usage_t *usage)
{
    ngx_uint_t                   i;
    ngx_http_profile_exemplar_t  ex;

    for (i = 0; i < NGX_HTTP_PROFILE_BUCKETS; i++) {

        if (ngx_http_profile_exemplar_get(rd->dir, place, i, store, &ex)
            == NGX_OK)
        {
            ngx_memcpy(usage->exemplars[i], ex.id, NGX_HTTP_PROFILE_ID_LEN);
        }
    }
}


uint64_t
ngx_http_profile_bucket_upper(ngx_uint_t bucket)
{
    return ngx_http_profile_wall_bounds.upper[bucket];
}


ngx_str_t
ngx_http_profile_cause_text(ngx_uint_t cause)
{
    ngx_str_t  text;

    text.data = (u_char *) ngx_http_profile_causes[cause];
    text.len = strlen(ngx_http_profile_causes[cause]);

    text.len -= (text.data[text.len - 1] == ' ');

    return text;
}
