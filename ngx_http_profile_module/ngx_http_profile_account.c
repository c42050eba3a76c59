
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Where the time of each request goes, without sampling.
 *
 * The wall clock is read at the ends of turns, and what lies between two
 * readings is charged to what has run.  The clock of the thread's CPU time is
 * a system call, so it is read once in a while, and turns are charged by their
 * wall time and by how much CPU time a nanosecond of turns has cost of late.
 * Thus polls, logging and freeing are spread over the requests that they are
 * for, and the sum over all requests is the worker's CPU time.  A long turn is
 * charged by the clock itself.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_light.h"
#include "ngx_http_profile_stall.h"


/* after so much time in turns the CPU clock is read */
#define NGX_HTTP_PROFILE_WINDOW_NS  2000000

/* a turn as long as this is charged by the CPU clock */
#define NGX_HTTP_PROFILE_LONG_NS    1000000

/* CPU time of a turn's nanosecond; more is not the turns' */
#define NGX_HTTP_PROFILE_MAX_SCALE  4.0

/* CPU time that may be charged, or given back, later */
#define NGX_HTTP_PROFILE_MAX_DEBT   20000000.0


typedef struct {
    uint64_t               clock;      /* CPU time of the thread, last read */
    uint64_t               wall;       /* of turns, since then */
    uint64_t               charged;    /* CPU time, since then */
    double                 scale;      /* CPU time a nanosecond of turns */
    double                 debt;       /* not charged in earlier windows */
} ngx_http_profile_cpu_t;


static void ngx_http_profile_track_cleanup(void *data);
static uint64_t ngx_http_profile_charge_cpu(uint64_t wall);
static void ngx_http_profile_next_window(uint64_t used);


static ngx_http_profile_cpu_t  ngx_http_profile_cpu;

ngx_http_profile_track_t       ngx_http_profile_marked;


ngx_http_profile_track_t *
ngx_http_profile_track(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);
    if (tr) {
        return tr;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_profile_track_t));

    if (cln == NULL || ngx_http_profile_arm() != NGX_OK) {
        return NULL;
    }

    cln->handler = ngx_http_profile_track_cleanup;

    tr = cln->data;
    ngx_memzero(tr, sizeof(ngx_http_profile_track_t));

    tr->request = r;
    tr->part.request = r;
    tr->parts = &tr->part;

    ngx_queue_init(&tr->connections);
    ngx_queue_init(&tr->events);

    ngx_http_set_ctx(r, tr, ngx_http_profile_module);

    ngx_http_profile_own_connection(tr, r->connection, 1);

    return tr;
}


void
ngx_http_profile_untrack(ngx_http_profile_track_t *tr)
{
    if (tr->request == NULL) {
        return;
    }

    if (tr->light) {
        ngx_http_profile_light_drop(tr);
    }

    ngx_http_profile_unwrap(tr);
    ngx_http_profile_disown_all(tr);
    ngx_http_profile_turn_forget(tr);

    tr->request = NULL;

    ngx_http_profile_disarm();
}


static void
ngx_http_profile_track_cleanup(void *data)
{
    ngx_http_profile_untrack(data);
}


/* a redirect clears the contexts of modules, but not the pool's cleanups */

ngx_http_profile_track_t *
ngx_http_profile_find_track(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_profile_track_t  *tr;

    r = r->main;

    tr = ngx_http_get_module_ctx(r, ngx_http_profile_module);

    if (tr) {
        return tr->request ? tr : NULL;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_profile_track_cleanup) {
            tr = cln->data;
            ngx_http_set_ctx(r, tr, ngx_http_profile_module);

            return tr->request ? tr : NULL;
        }
    }

    return NULL;
}


void
ngx_http_profile_account_init(void)
{
    ngx_http_profile_cpu.clock = prof_cpu_now();
    ngx_http_profile_cpu.wall = 0;
    ngx_http_profile_cpu.charged = 0;
    ngx_http_profile_cpu.scale = 1;
    ngx_http_profile_cpu.debt = 0;
}


/* in the POST_READ phase, of a request that nobody captures */

ngx_int_t
ngx_http_profile_account_begin(ngx_http_profile_track_t *tr)
{
    if (ngx_http_profile_adopt(tr) == NGX_OK) {
        ngx_http_profile_account_start(tr, ngx_http_profile_frame->start);
        ngx_http_profile_light_begin(tr, ngx_http_profile_frame->start);

        return NGX_DECLINED;
    }

    ngx_http_profile_run_request(tr);

    return NGX_DONE;
}


/* the first turn begins */

void
ngx_http_profile_account_start(ngx_http_profile_track_t *tr, uint64_t begin)
{
    uint64_t             from, *aside;
    ngx_time_t          *tp;
    ngx_msec_int_t       ms;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tr->request;
    c = r->connection;

    /* nginx's time is that of the end of a poll, for both */

    tp = ngx_timeofday();
    ms = (ngx_msec_int_t)
             ((tp->sec - r->start_sec) * 1000 + (tp->msec - r->start_msec));

    from = ngx_http_profile_loop.poll_end;

    if (from == 0 || from > begin) {
        from = begin;
    }

    tr->start = from - (uint64_t) ngx_max(ms, 0) * 1000000;
    tr->times.wait = from - tr->start;
    tr->times.stall = begin - from;
    tr->mark = begin;

#if (NGX_HTTP_V2)
    if (r->stream) {
        c = r->stream->connection->connection;
    }
#endif

    aside = ngx_http_profile_aside(c);

    if (aside) {
        tr->times.cpu = *aside;
        *aside = 0;
    }
}


void
ngx_http_profile_account_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t begin)
{
    uint64_t  ready;

    if (tr->closed) {
        return;
    }

    ready = ngx_http_profile_ready(wake, begin);
    ready = ngx_max(ready, tr->mark);
    ready = ngx_min(ready, begin);

    tr->times.wait += ready - tr->mark;
    tr->times.stall += begin - ready;
    tr->mark = begin;
}


uint64_t
ngx_http_profile_charge(ngx_http_profile_frame_t *frame)
{
    uint64_t                   now, wall, cpu, *aside;
    ngx_http_profile_track_t  *tr;

    now = prof_now();
    wall = now - ngx_http_profile_loop.since;
    ngx_http_profile_loop.since = now;

    tr = frame->track;

    /* what a request does when it has been logged is spread over all */

    if ((tr ? tr->closed : frame->tail) && wall < NGX_HTTP_PROFILE_LONG_NS) {
        return now;
    }

    cpu = ngx_http_profile_charge_cpu(wall);

    if (tr) {
        if (!tr->closed) {
            tr->turn += wall;
            tr->turn_cpu += cpu;
            tr->times.cpu += cpu;
        }

    } else if (frame->connection && !frame->tail) {
        aside = ngx_http_profile_aside(frame->connection);

        if (aside) {
            *aside += cpu;
        }
    }

    return now;
}


static uint64_t
ngx_http_profile_charge_cpu(uint64_t wall)
{
    uint64_t                 cpu, used;
    ngx_http_profile_cpu_t  *acc;

    acc = &ngx_http_profile_cpu;

    acc->wall += wall;

    if (wall >= NGX_HTTP_PROFILE_LONG_NS) {

        used = prof_cpu_now() - acc->clock;

        cpu = (used > acc->charged) ? used - acc->charged : 0;
        cpu = ngx_min(cpu, wall);

        acc->charged += cpu;
        ngx_http_profile_next_window(used);

        return cpu;
    }

    cpu = (uint64_t) (wall * acc->scale);
    acc->charged += cpu;

    if (acc->wall >= NGX_HTTP_PROFILE_WINDOW_NS) {
        ngx_http_profile_next_window(prof_cpu_now() - acc->clock);
    }

    return cpu;
}


static void
ngx_http_profile_next_window(uint64_t used)
{
    double                   scale;
    ngx_http_profile_cpu_t  *acc;

    acc = &ngx_http_profile_cpu;

    acc->debt += (double) used - (double) acc->charged;
    acc->debt = ngx_min(acc->debt, NGX_HTTP_PROFILE_MAX_DEBT);
    acc->debt = ngx_max(acc->debt, -NGX_HTTP_PROFILE_MAX_DEBT);

    /* half of the debt: windows are not all of one length */

    scale = ((double) used + acc->debt / 2) / acc->wall;
    scale = ngx_min(scale, NGX_HTTP_PROFILE_MAX_SCALE);

    acc->scale = ngx_max(scale, 0);
    acc->clock += used;
    acc->wall = 0;
    acc->charged = 0;
}


void
ngx_http_profile_account_turn(ngx_http_profile_track_t *tr, uint64_t now)
{
    if (tr->closed) {
        return;
    }

    tr->times.turns++;
    tr->times.running += tr->turn;
    tr->times.longest = ngx_max(tr->times.longest, tr->turn);
    tr->turn = 0;
    tr->turn_cpu = 0;
    tr->mark = now;
}


void
ngx_http_profile_account_times(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times)
{
    uint64_t  now;

    if (tr->closed) {
        *times = tr->times;
        return;
    }

    if (ngx_http_profile_frame && ngx_http_profile_frame->track == tr) {
        now = ngx_http_profile_charge(ngx_http_profile_frame);

        *times = tr->times;

        times->turns++;
        times->running += tr->turn;
        times->longest = ngx_max(times->longest, tr->turn);

    } else {
        now = prof_now();

        *times = tr->times;

        times->wait += now - tr->mark;
    }

    times->wall = now - tr->start;
}


ngx_int_t
ngx_http_profile_account_log(ngx_http_request_t *r)
{
    ngx_http_profile_times_t   times;
    ngx_http_profile_frame_t  *frame;
    ngx_http_profile_track_t  *tr;

    if (r != r->main) {
        return NGX_OK;
    }

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL || !tr->accounted || tr->closed) {
        return NGX_OK;
    }

    ngx_http_profile_account_times(tr, &times);

    frame = ngx_http_profile_frame;

    if (frame && frame->track != tr) {
        frame = NULL;
    }

    if (frame && ngx_http_profile_stall_ns
        && ngx_http_profile_loop.since - frame->start
           >= ngx_http_profile_stall_ns)
    {
        ngx_http_profile_stall(frame, tr,
                               ngx_http_profile_loop.since - frame->start);
    }

    if (tr->light) {

        if (frame) {
            ngx_http_profile_light_turn(tr, ngx_http_profile_loop.since,
                                        tr->turn_cpu);
        }

        ngx_http_profile_light_log(tr);
    }

    tr->times = times;
    tr->closed = 1;

    return NGX_OK;
}
