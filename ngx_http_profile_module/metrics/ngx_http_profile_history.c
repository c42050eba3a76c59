
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The last hour: sums of all pages, by place and by time.
 *
 * Requests do not write the history.  One worker, the leader, reads the pages
 * every ten seconds, and adds the increase of each counter to the sums of the
 * current tick and of the current minute.  Another worker becomes the leader if
 * the leader has ended, or has not read the pages for three ticks.  A request
 * for the overview also reads the pages, so the overview shows the present.
 * The workers' threads do this work, one thread at a time.
 *
 * A place has one sum for each tick of ten seconds in the last minute, and one
 * for each minute of the last hour.  The clock is monotonic, because the
 * system's time may jump.  The memory is shared, zero at first, and survives
 * reloads.  If a process is killed while it writes, the increases that it has
 * just read are lost.
 */


#include "core/ngx_http_profile_alive.h"
#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_job.h"
#include "metrics/ngx_http_profile_metrics_private.h"


#define NGX_HTTP_PROFILE_TICK_MS   (NGX_HTTP_PROFILE_TICK / 1000000)

/* ticks without a sample, until another worker becomes the leader */
#define NGX_HTTP_PROFILE_LATE      3


typedef struct {
    ngx_http_profile_job_t         job;
    ngx_http_profile_directory_t  *dir;
} ngx_http_profile_history_job_t;


static void ngx_http_profile_history_timer(ngx_event_t *ev);
static ngx_uint_t ngx_http_profile_history_leads(
    ngx_http_profile_history_t *history);
static void ngx_http_profile_history_work(void *data);
static void ngx_http_profile_history_done(void *data);
static ngx_int_t ngx_http_profile_history_lock(
    ngx_http_profile_history_t *history);
static void ngx_http_profile_history_advance(ngx_http_profile_past_t *past,
    uint64_t from, uint64_t to);
static void ngx_http_profile_history_add(ngx_http_profile_directory_t *dir,
    ngx_uint_t place, uint64_t tick);
static void ngx_http_profile_history_workers(
    ngx_http_profile_directory_t *dir, uint64_t tick);
static void ngx_http_profile_history_increase(ngx_http_profile_past_t *past,
    uint64_t *sums, uint64_t tick);
static void ngx_http_profile_history_sum(ngx_http_profile_cell_t *cell,
    uint64_t *sums);


/* NULL: this process takes no part in sampling */

static ngx_http_profile_directory_t    *ngx_http_profile_history_dir;

static ngx_event_t                      ngx_http_profile_history_event;
static ngx_connection_t                 ngx_http_profile_history_connection;


ngx_http_profile_history_t *
ngx_http_profile_history_begin(void *memory)
{
    ngx_http_profile_history_t  *history;

    history = memory;

    if (history) {
        history->since = prof_now();
    }

    return history;
}


size_t
ngx_http_profile_history_size(ngx_uint_t max)
{
    return sizeof(ngx_http_profile_history_t)
           + (max + 1) * sizeof(ngx_http_profile_past_t);
}


void
ngx_http_profile_history_in(ngx_http_profile_directory_t *dir)
{
    ngx_event_t  *ev;

    ev = &ngx_http_profile_history_event;

    if (ev->timer_set) {
        ngx_del_timer(ev);
    }

    if (ngx_http_profile_history_dir) {
        (void) ngx_atomic_cmp_set(
                             &ngx_http_profile_history_dir->history->leader,
                             ngx_http_profile_alive_self(), 0);

        ngx_http_profile_directory_free(ngx_http_profile_history_dir);
    }

    ngx_http_profile_history_dir = (dir && dir->history) ? dir : NULL;

    if (ngx_http_profile_history_dir == NULL) {
        return;
    }

    /* without a master, a reload replaces the directory before it comes here */

    dir->users++;

    ngx_http_profile_history_connection.fd = (ngx_socket_t) -1;

    ev->handler = ngx_http_profile_history_timer;
    ev->data = &ngx_http_profile_history_connection;
    ev->log = ngx_cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, NGX_HTTP_PROFILE_TICK_MS);
}


static void
ngx_http_profile_history_timer(ngx_event_t *ev)
{
    ngx_http_profile_directory_t    *dir;
    ngx_http_profile_history_job_t  *sample;

    ngx_http_profile_own_work();

    dir = ngx_http_profile_history_dir;

    if (ngx_exiting) {
        ngx_http_profile_history_in(NULL);
        return;
    }

    ngx_add_timer(ev, NGX_HTTP_PROFILE_TICK_MS);

    if (!ngx_http_profile_history_leads(dir->history)) {
        return;
    }

    sample = ngx_calloc(sizeof(ngx_http_profile_history_job_t), ev->log);
    if (sample == NULL) {
        return;
    }

    sample->dir = dir;
    sample->job.work = ngx_http_profile_history_work;
    sample->job.done = ngx_http_profile_history_done;
    sample->job.data = sample;
    sample->job.rank = NGX_HTTP_PROFILE_JOB_RECORDED;
    sample->job.size = sizeof(ngx_http_profile_history_job_t);

    /* the next sample includes the increases that this one misses */

    if (ngx_http_profile_job_start(&sample->job) != NGX_OK) {
        ngx_free(sample);
        return;
    }

    dir->users++;
}


/* returns whether this process is, or has become, the leader */

static ngx_uint_t
ngx_http_profile_history_leads(ngx_http_profile_history_t *history)
{
    uint64_t           tick;
    ngx_atomic_uint_t  self, leader;

    self = ngx_http_profile_alive_self();
    leader = history->leader;

    if (leader == self) {
        return 1;
    }

    tick = prof_now() / NGX_HTTP_PROFILE_TICK;

    if (leader && ngx_http_profile_alive(leader)
        && tick <= ngx_http_profile_counter(&history->tick)
                   + NGX_HTTP_PROFILE_LATE)
    {
        return 0;
    }

    return ngx_atomic_cmp_set(&history->leader, leader, self);
}


/* in the thread */

static void
ngx_http_profile_history_work(void *data)
{
    ngx_http_profile_history_job_t *sample = data;

    ngx_http_profile_history_sample(sample->dir, prof_now());
}


static void
ngx_http_profile_history_done(void *data)
{
    ngx_http_profile_history_job_t *sample = data;

    ngx_http_profile_directory_free(sample->dir);
    ngx_free(sample);
}


void
ngx_http_profile_history_sample(ngx_http_profile_directory_t *dir,
    uint64_t now)
{
    uint64_t                     tick;
    ngx_uint_t                   i;
    ngx_http_profile_history_t  *history;

    history = dir->history;

    if (ngx_http_profile_history_lock(history) != NGX_OK) {
        return;
    }

    tick = ngx_max(now / NGX_HTTP_PROFILE_TICK, history->tick);

    for (i = 0; i < dir->nplaces; i++) {

        if (ngx_http_profile_history_used(dir, i)) {
            ngx_http_profile_history_advance(&history->pasts[i],
                                             history->tick, tick);
            ngx_http_profile_history_add(dir, i, tick);
        }
    }

    ngx_http_profile_history_advance(&history->workers, history->tick, tick);
    ngx_http_profile_history_workers(dir, tick);

    __atomic_store_n(&history->tick, tick, __ATOMIC_RELAXED);
    __atomic_store_n(&history->lock, 0, __ATOMIC_RELEASE);
}


/* NGX_BUSY: another process samples now */

static ngx_int_t
ngx_http_profile_history_lock(ngx_http_profile_history_t *history)
{
    ngx_atomic_uint_t  owner;

    owner = history->lock;

    if (owner && ngx_http_profile_alive(owner)) {
        return NGX_BUSY;
    }

    return ngx_atomic_cmp_set(&history->lock, owner,
                              ngx_http_profile_alive_self())
           ? NGX_OK : NGX_BUSY;
}


ngx_int_t
ngx_http_profile_history_clear(ngx_http_profile_directory_t *dir,
    ngx_uint_t place)
{
    if (dir->history == NULL) {
        return NGX_OK;
    }

    if (ngx_http_profile_history_lock(dir->history) != NGX_OK) {
        return NGX_BUSY;
    }

    ngx_memzero(&dir->history->pasts[place], sizeof(ngx_http_profile_past_t));

    dir->history->lock = 0;

    return NGX_OK;
}


ngx_uint_t
ngx_http_profile_history_used(ngx_http_profile_directory_t *dir,
    ngx_uint_t place)
{
    ngx_uint_t  n;

    for (n = 0; n < dir->npages; n++) {
        if (ngx_http_profile_is_used(dir->pages[n], place)) {
            return 1;
        }
    }

    return 0;
}


/* clears the sums of the ticks and minutes after "from", up to "to" */

static void
ngx_http_profile_history_advance(ngx_http_profile_past_t *past, uint64_t from,
    uint64_t to)
{
    uint64_t  t, minute;

    t = to - ngx_min(to - from, NGX_HTTP_PROFILE_TICKS);

    while (t < to) {
        t++;
        ngx_memzero(&past->recent[t % NGX_HTTP_PROFILE_TICKS],
                    sizeof(ngx_http_profile_sums_t));
    }

    minute = to / NGX_HTTP_PROFILE_TICKS;

    t = minute - ngx_min(minute - from / NGX_HTTP_PROFILE_TICKS,
                         NGX_HTTP_PROFILE_MINUTES);

    while (t < minute) {
        t++;
        ngx_memzero(&past->minutes[t % NGX_HTTP_PROFILE_MINUTES],
                    sizeof(ngx_http_profile_sums_t));
    }
}


static void
ngx_http_profile_history_add(ngx_http_profile_directory_t *dir,
    ngx_uint_t place, uint64_t tick)
{
    uint64_t                      sums[NGX_HTTP_PROFILE_SUMS];
    ngx_uint_t                    n;
    ngx_http_profile_counters_t  *page;

    ngx_memzero(sums, sizeof(sums));

    for (n = 0; n < dir->npages; n++) {
        page = dir->pages[n];

        if (ngx_http_profile_is_used(page, place)) {
            ngx_http_profile_history_sum(
                      &ngx_http_profile_page_cells(dir, page)[place], sums);
        }
    }

    ngx_http_profile_history_increase(&dir->history->pasts[place], sums, tick);
}


static void
ngx_http_profile_history_workers(ngx_http_profile_directory_t *dir,
    uint64_t tick)
{
    uint64_t                         sums[NGX_HTTP_PROFILE_SUMS];
    ngx_uint_t                       i;
    ngx_http_profile_worker_times_t  times;

    ngx_memzero(sums, sizeof(sums));

    for (i = 0;
         ngx_http_profile_worker_times(dir, i, &times) == NGX_OK;
         i++)
    {
        sums[NGX_HTTP_PROFILE_SUM_CPU] += times.cpu;
    }

    ngx_http_profile_history_increase(&dir->history->workers, sums, tick);
}


static void
ngx_http_profile_history_increase(ngx_http_profile_past_t *past,
    uint64_t *sums, uint64_t tick)
{
    float       more;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_PROFILE_SUMS; i++) {

        if (sums[i] <= past->last[i]) {
            continue;
        }

        more = (float) (sums[i] - past->last[i]);
        past->last[i] = sums[i];

        past->recent[tick % NGX_HTTP_PROFILE_TICKS][i] += more;
        past->minutes[tick / NGX_HTTP_PROFILE_TICKS
                      % NGX_HTTP_PROFILE_MINUTES][i] += more;
    }
}


static void
ngx_http_profile_history_sum(ngx_http_profile_cell_t *cell, uint64_t *sums)
{
    uint64_t    outside;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_PROFILE_BUCKETS; i++) {
        sums[NGX_HTTP_PROFILE_SUM_REQUESTS] +=
                               ngx_http_profile_counter(&cell->wall.buckets[i]);
    }

    sums[NGX_HTTP_PROFILE_SUM_WALL] += ngx_http_profile_counter(
                                                             &cell->wall.sum);

    outside = ngx_http_profile_counter(&cell->outside);

    sums[NGX_HTTP_PROFILE_SUM_OUTSIDE] += outside;
    sums[NGX_HTTP_PROFILE_SUM_CPU] += ngx_http_profile_counter(&cell->cpu.sum)
                                      - outside;
    sums[NGX_HTTP_PROFILE_SUM_NO_PROCESSOR] += ngx_http_profile_counter(
                                                         &cell->no_processor);
    sums[NGX_HTTP_PROFILE_SUM_BLOCKED] += ngx_http_profile_counter(
                                                              &cell->blocked);
    sums[NGX_HTTP_PROFILE_SUM_STALL] += ngx_http_profile_counter(
                                                            &cell->stall.sum);

    for (i = 0; i < NGX_HTTP_PROFILE_CAUSES; i++) {
        sums[NGX_HTTP_PROFILE_SUM_WAITS + i] += ngx_http_profile_counter(
                                                         &cell->waits[i].sum);
    }
}
