
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counts requests when they are logged.
 */


#include "metrics/ngx_http_profile_metrics_private.h"


#define NGX_HTTP_PROFILE_US  1000ULL
#define NGX_HTTP_PROFILE_MS  1000000ULL
#define NGX_HTTP_PROFILE_S   1000000000ULL

/* the upper bound of the first bucket of times of requests */
#define NGX_HTTP_PROFILE_FIRST  NGX_HTTP_PROFILE_MS


/* the number of the highest bit, from 0; 0 and 1 have the same */

#define ngx_http_profile_highest(ns)                                          \
    ((unsigned) (63 - __builtin_clzll((ns) | 1)))


static void ngx_http_profile_count(ngx_http_profile_track_t *tr);
static void ngx_http_profile_count_brief(ngx_uint_t place, uint64_t wall,
    uint64_t longest, uint64_t cpu, uint64_t stall);
__attribute__((noinline)) static void ngx_http_profile_count_long(
    ngx_uint_t place, uint64_t wall, uint64_t longest, uint64_t cpu,
    uint64_t stall);
static ngx_http_profile_cell_t *ngx_http_profile_cell_of(ngx_uint_t place);
static ngx_uint_t ngx_http_profile_waited(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ns);
static void ngx_http_profile_count_waits(ngx_http_profile_cell_t *cell,
    ngx_http_profile_track_t *tr);
static void ngx_http_profile_observe(ngx_http_profile_histogram_t *h,
    ngx_http_profile_bounds_t *bounds, uint64_t ns);
static void ngx_http_profile_bounds_init(ngx_http_profile_bounds_t *bounds);


_Static_assert((int) NGX_HTTP_PROFILE_CAUSES <= NGX_HTTP_PROFILE_WAITS,
               "tracks have too few sums of waits");


PROF_HOT_DATA ngx_http_profile_bounds_t  ngx_http_profile_wall_bounds = {
    { NGX_HTTP_PROFILE_FIRST, 2500 * NGX_HTTP_PROFILE_US,
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
    ngx_http_profile_observers.counted_brief = ngx_http_profile_count_brief;
    ngx_http_profile_observers.waited = page ? ngx_http_profile_waited : NULL;
}


PROF_HOT static void
ngx_http_profile_count(ngx_http_profile_track_t *tr)
{
    ngx_uint_t                 i;
    ngx_http_profile_cell_t   *cell;
    ngx_http_profile_times_t  *times;

    cell = ngx_http_profile_cell_of(tr->place);
    times = &tr->times;

    cell->turns += times->turns;
    cell->longest = ngx_max(cell->longest, times->longest);
    cell->outside += times->outside;
    cell->no_processor += times->no_processor;
    cell->blocked += times->blocked;

    ngx_http_profile_observe(&cell->wall, &ngx_http_profile_wall_bounds,
                             times->wall);
    ngx_http_profile_observe(&cell->cpu, &ngx_http_profile_cpu_bounds,
                             times->cpu);
    ngx_http_profile_observe(&cell->stall, &ngx_http_profile_wall_bounds,
                             times->stall);

    if (times->stall) {
        for (i = NGX_HTTP_PROFILE_BUSY_TIMERS;
             i < NGX_HTTP_PROFILE_BUSY_KINDS;
             i++)
        {
            cell->busy[i] += times->busy[i];
        }
    }

    if (times->wait) {
        ngx_http_profile_count_waits(cell, tr);
    }

    if (tr->id.len) {
        ngx_http_profile_exemplar_set(tr);
    }
}


/*
 * Most requests are short, and a stall is a part of the wall time, so both are
 * in the first bucket.
 */

PROF_HOT static void
ngx_http_profile_count_brief(ngx_uint_t place, uint64_t wall,
    uint64_t longest, uint64_t cpu, uint64_t stall)
{
    ngx_http_profile_cell_t  *cell;

    cell = &ngx_http_profile_cells[place];

    if (wall > NGX_HTTP_PROFILE_FIRST || cell->turns == 0) {
        ngx_http_profile_count_long(place, wall, longest, cpu, stall);
        return;
    }

    cell->turns++;

    if (longest > cell->longest) {
        cell->longest = longest;
    }

    if (cpu > longest) {
        cell->outside += cpu - longest;
    }

    cell->wall.sum += wall;

    ngx_http_profile_observe(&cell->cpu, &ngx_http_profile_cpu_bounds, cpu);

    cell->wall.buckets[0]++;
    cell->stall.buckets[0]++;

    if (stall) {
        cell->stall.sum += stall;
    }
}


PROF_HOT static void
ngx_http_profile_count_long(ngx_uint_t place, uint64_t wall,
    uint64_t longest, uint64_t cpu, uint64_t stall)
{
    ngx_http_profile_cell_t  *cell;

    cell = ngx_http_profile_cell_of(place);

    cell->turns++;
    cell->longest = ngx_max(cell->longest, longest);
    cell->outside += (cpu > longest) ? cpu - longest : 0;

    ngx_http_profile_observe(&cell->cpu, &ngx_http_profile_cpu_bounds, cpu);
    ngx_http_profile_observe(&cell->wall, &ngx_http_profile_wall_bounds, wall);
    ngx_http_profile_observe(&cell->stall, &ngx_http_profile_wall_bounds,
                             stall);
}


/* returns the cell of a place, and marks it as used */

PROF_HOT static ngx_http_profile_cell_t *
ngx_http_profile_cell_of(ngx_uint_t place)
{
    ngx_http_profile_cell_t  *cell;

    cell = &ngx_http_profile_cells[place];

    if (cell->turns == 0) {
        ngx_http_profile_page->used[place / 64] |= (uint64_t) 1 << place % 64;
    }

    return cell;
}


PROF_HOT static ngx_uint_t
ngx_http_profile_waited(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ns)
{
    uint32_t    bit;
    ngx_uint_t  cause;

    cause = wake ? ngx_http_profile_cause_of(tr, wake)
                 : NGX_HTTP_PROFILE_CAUSE_HEADER;

    bit = (uint32_t) 1 << cause;

    if (!(tr->waited & bit)) {
        tr->waited |= bit;
        tr->waits[cause] = 0;
    }

    tr->waits[cause] += ns;

    return cause;
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

    i = bounds->first[ngx_http_profile_highest(ns)];

    while (ns > bounds->upper[i]) {
        i++;
    }

    return i;
}


/* the first bucket that may contain a time with this highest bit */

static void
ngx_http_profile_bounds_init(ngx_http_profile_bounds_t *bounds)
{
    ngx_uint_t  i, bit;

    for (i = 0, bit = 0; bit < 64; bit++) {

        while (bounds->upper[i] < (uint64_t) 1 << bit) {
            i++;
        }

        bounds->first[bit] = (u_char) i;
    }
}
