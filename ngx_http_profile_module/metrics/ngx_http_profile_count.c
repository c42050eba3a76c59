
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counts requests when they are logged.
 */


#include "metrics/ngx_http_profile_pages.h"


#define NGX_HTTP_PROFILE_US  1000ULL
#define NGX_HTTP_PROFILE_MS  1000000ULL
#define NGX_HTTP_PROFILE_S   1000000000ULL


static void ngx_http_profile_count(ngx_http_profile_track_t *tr);
static void ngx_http_profile_waited(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ns);
static void ngx_http_profile_add_wait(ngx_http_profile_track_t *tr,
    ngx_uint_t cause, uint64_t ns);
static void ngx_http_profile_count_waits(ngx_http_profile_cell_t *cell,
    ngx_http_profile_track_t *tr);
static void ngx_http_profile_observe(ngx_http_profile_histogram_t *h,
    ngx_http_profile_bounds_t *bounds, uint64_t ns);
static void ngx_http_profile_bounds_init(ngx_http_profile_bounds_t *bounds);


_Static_assert((int) NGX_HTTP_PROFILE_CAUSES <= NGX_HTTP_PROFILE_WAITS,
               "tracks have too few sums of waits");


PROF_HOT_DATA ngx_http_profile_bounds_t  ngx_http_profile_wall_bounds = {
    { 1 * NGX_HTTP_PROFILE_MS, 2500 * NGX_HTTP_PROFILE_US,
      5 * NGX_HTTP_PROFILE_MS, 10 * NGX_HTTP_PROFILE_MS,
      25 * NGX_HTTP_PROFILE_MS, 50 * NGX_HTTP_PROFILE_MS,
      100 * NGX_HTTP_PROFILE_MS, 250 * NGX_HTTP_PROFILE_MS,
      500 * NGX_HTTP_PROFILE_MS, 1 * NGX_HTTP_PROFILE_S,
      2500 * NGX_HTTP_PROFILE_MS, 5 * NGX_HTTP_PROFILE_S,
      10 * NGX_HTTP_PROFILE_S, 30 * NGX_HTTP_PROFILE_S,
      60 * NGX_HTTP_PROFILE_S, UINT64_MAX },
    { 0 }
};


PROF_HOT_DATA ngx_http_profile_bounds_t  ngx_http_profile_cpu_bounds = {
    { 10 * NGX_HTTP_PROFILE_US, 25 * NGX_HTTP_PROFILE_US,
      50 * NGX_HTTP_PROFILE_US, 100 * NGX_HTTP_PROFILE_US,
      250 * NGX_HTTP_PROFILE_US, 500 * NGX_HTTP_PROFILE_US,
      1 * NGX_HTTP_PROFILE_MS, 2500 * NGX_HTTP_PROFILE_US,
      5 * NGX_HTTP_PROFILE_MS, 10 * NGX_HTTP_PROFILE_MS,
      25 * NGX_HTTP_PROFILE_MS, 50 * NGX_HTTP_PROFILE_MS,
      100 * NGX_HTTP_PROFILE_MS, 250 * NGX_HTTP_PROFILE_MS,
      1 * NGX_HTTP_PROFILE_S, UINT64_MAX },
    { 0 }
};


PROF_HOT_DATA static ngx_http_profile_counters_t  *ngx_http_profile_page;
PROF_HOT_DATA static ngx_http_profile_cell_t      *ngx_http_profile_cells;


void
ngx_http_profile_count_in(ngx_http_profile_directory_t *dir,
    ngx_http_profile_counters_t *page)
{
    if (page) {
        ngx_http_profile_bounds_init(&ngx_http_profile_wall_bounds);
        ngx_http_profile_bounds_init(&ngx_http_profile_cpu_bounds);

        ngx_http_profile_cells = ngx_http_profile_page_cells(dir, page);
    }

    ngx_http_profile_exemplars_in(page ? dir->exemplars : NULL);

    ngx_http_profile_all_losses = page ? &page->losses : NULL;
    ngx_http_profile_page = page;
    ngx_http_profile_observers.counted = page ? ngx_http_profile_count : NULL;
    ngx_http_profile_observers.waited = page ? ngx_http_profile_waited : NULL;
}


PROF_HOT static void
ngx_http_profile_count(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_cell_t   *cell;
    ngx_http_profile_times_t  *times;

    cell = &ngx_http_profile_cells[tr->place];
    times = &tr->times;

    if (cell->turns == 0) {
        ngx_http_profile_page->used[tr->place / 64] |=
                                               (uint64_t) 1 << tr->place % 64;
    }

    cell->turns += times->turns;
    cell->longest = ngx_max(cell->longest, times->longest);

    ngx_http_profile_observe(&cell->wall, &ngx_http_profile_wall_bounds,
                             times->wall);
    ngx_http_profile_observe(&cell->cpu, &ngx_http_profile_cpu_bounds,
                             times->cpu);
    ngx_http_profile_observe(&cell->stall, &ngx_http_profile_wall_bounds,
                             times->stall);

    if (times->wait) {
        ngx_http_profile_count_waits(cell, tr);
    }

    if (tr->id.len) {
        ngx_http_profile_exemplar_set(tr);
    }
}


PROF_HOT static void
ngx_http_profile_waited(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ns)
{
    ngx_http_profile_add_wait(tr, wake ? ngx_http_profile_cause_of(tr, wake)
                                       : NGX_HTTP_PROFILE_CAUSE_HEADER, ns);
}


PROF_HOT static void
ngx_http_profile_add_wait(ngx_http_profile_track_t *tr, ngx_uint_t cause,
    uint64_t ns)
{
    uint32_t  bit;

    bit = (uint32_t) 1 << cause;

    if (!(tr->waited & bit)) {
        tr->waited |= bit;
        tr->waits[cause] = 0;
    }

    tr->waits[cause] += ns;
}


/*
 * If a request ends while it waits, for example because the worker exits, its
 * last wait has no cause.
 */

PROF_HOT static void
ngx_http_profile_count_waits(ngx_http_profile_cell_t *cell,
    ngx_http_profile_track_t *tr)
{
    uint32_t    waited;
    uint64_t    rest;
    ngx_uint_t  i;

    rest = tr->times.wait;

    for (waited = tr->waited; waited; waited &= waited - 1) {
        i = __builtin_ctz(waited);

        ngx_http_profile_observe(&cell->waits[i],
                                 &ngx_http_profile_wall_bounds, tr->waits[i]);
        rest -= tr->waits[i];
    }

    if (rest) {
        i = NGX_HTTP_PROFILE_CAUSE_UNKNOWN;

        ngx_http_profile_observe(&cell->waits[i],
                                 &ngx_http_profile_wall_bounds, rest);
    }
}


PROF_HOT static void
ngx_http_profile_observe(ngx_http_profile_histogram_t *h,
    ngx_http_profile_bounds_t *bounds, uint64_t ns)
{
    h->sum += ns;
    h->buckets[ngx_http_profile_bucket(bounds, ns)]++;
}


PROF_HOT ngx_uint_t
ngx_http_profile_bucket(ngx_http_profile_bounds_t *bounds, uint64_t ns)
{
    ngx_uint_t  i;

    i = bounds->first[ns ? 64 - __builtin_clzll(ns) : 0];

    while (ns > bounds->upper[i]) {
        i++;
    }

    return i;
}


/* the first bucket that may contain a time with this number of bits */

static void
ngx_http_profile_bounds_init(ngx_http_profile_bounds_t *bounds)
{
    ngx_uint_t  i, bits;

    for (i = 0, bits = 0; bits <= 64; bits++) {

        while (bits && bounds->upper[i] < (uint64_t) 1 << (bits - 1)) {
            i++;
        }

        bounds->first[bits] = (u_char) i;
    }
}
