
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Turns: uninterrupted stretches in which the worker runs code for one request.
 * Most turns begin in the event loop (ngx_http_profile_dispatch.c), the others
 * where nginx enters a request from an event of another one
 * (ngx_http_profile_wrap.c).
 *
 * A turn begins some time after the request could have run.  This time is known
 * exactly if the turn was begun by a timer, or if the worker has slept: then
 * its poll returned because of the event.  Otherwise the event came while the
 * worker ran other code between two polls, and the middle of that time is
 * taken.
 */


#include "loop/ngx_http_profile_loop_private.h"

#include <netinet/tcp.h>


/* a poll that took longer than this has slept */
#define NGX_HTTP_PROFILE_SLEEP_NS   20000

/* after a longer time than this the kernel is asked when data came */
#define NGX_HTTP_PROFILE_ASK_NS     8000000


static uint64_t ngx_http_profile_ready(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t now);
static ngx_uint_t ngx_http_profile_only_looks(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake);
static uint64_t ngx_http_profile_arrived(ngx_http_profile_wake_t *wake,
    uint64_t now);
static void ngx_http_profile_first_turn(void *data);
static void ngx_http_profile_turn_again(ngx_http_profile_track_t *tr,
    ngx_http_profile_run_t *outer, uintptr_t what, prof_turn_pt fn,
    void *data);
static void ngx_http_profile_uncaptured_turn(uintptr_t what,
    prof_turn_pt fn, void *data);


PROF_GLUE void
ngx_http_profile_turn(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn, void *data)
{
    uint64_t                 ready;
    ngx_http_profile_run_t   run;
    ngx_http_profile_run_t  *outer;

    for (outer = ngx_http_profile_current; outer; outer = outer->prev) {

        if (outer->track == tr) {
            ngx_http_profile_turn_again(tr, outer, what, fn, data);
            return;
        }
    }

    ngx_http_profile_unwrap(tr);

    run.top = (uintptr_t) __builtin_frame_address(0);

    ngx_http_profile_enter(&run, tr, what);

    ready = 0;

    if (wake) {
        ready = ngx_http_profile_ready(tr, wake, run.start);
        ngx_http_profile_account_gap(tr, ready, run.start);

        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, tr->request->connection->log, 0,
                       "profile: turn of %p, event %p, ready for %L ns",
                       tr->request, wake->event, run.start - ready);

    } else {
        ngx_http_profile_account_start(tr, run.start);

        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, tr->request->connection->log, 0,
                       "profile: first turn of %p", tr->request);
    }

    if (tr->capture) {
        what = ngx_http_profile_observers.turn_begins(tr, wake, ready, what);

        prof_turn_run(ngx_http_profile_sampler(), tr->capture, what, fn, data);

    } else {

        if (wake == NULL) {
            if (ngx_http_profile_observers.notes_begin) {
                ngx_http_profile_observers.notes_begin(tr, run.start);
            }

        } else if (tr->notes) {
            ngx_http_profile_observers.notes_turn_begins(tr, wake, ready);
        }

        ngx_http_profile_uncaptured_turn(what, fn, data);
    }

    ngx_http_profile_leave(&run);
}


/*
 * Code of a request runs within a turn of the same request, maybe by way of
 * another request's turn.  The turn ends, and pointers are replaced, when the
 * outer run ends.
 */

PROF_GLUE static void
ngx_http_profile_turn_again(ngx_http_profile_track_t *tr,
    ngx_http_profile_run_t *outer, uintptr_t what, prof_turn_pt fn,
    void *data)
{
    ngx_http_profile_run_t  run;

    if (outer == ngx_http_profile_current) {
        fn(data);
        return;
    }

    run.top = (uintptr_t) __builtin_frame_address(0);

    ngx_http_profile_enter(&run, tr, what);
    run.again = 1;

    if (tr->capture) {
        prof_turn_run(ngx_http_profile_sampler(), tr->capture, what, fn, data);

    } else {
        ngx_http_profile_uncaptured_turn(what, fn, data);
    }

    ngx_http_profile_leave(&run);
}


/* a turn that is not captured, which may be within a captured one */

PROF_GLUE static void
ngx_http_profile_uncaptured_turn(uintptr_t what, prof_turn_pt fn, void *data)
{
    prof_sampler_t  *s;

    s = ngx_http_profile_sampler();

    if (s && prof_turn_current(s)) {
        prof_turn_run(s, NULL, what, fn, data);
        return;
    }

    fn(data);
}


PROF_HOT static uint64_t
ngx_http_profile_ready(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t now)
{
    uint64_t                  ready;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    /* in the iteration that arms the worker the times are not known */

    if (loop->poll_end == 0 || ngx_http_profile_only_looks(tr, wake)) {
        return now;
    }

    /*
     * The poll may have waited although a timer was due: by nginx's time, which
     * is that of the poll before, the timer was not due.
     */

    ready = wake->timer ? (uint64_t) loop->due * 1000000 : loop->poll_start;

    if (loop->last_end == 0
        || (loop->poll_end - loop->poll_start > NGX_HTTP_PROFILE_SLEEP_NS
            && ready >= loop->poll_start))
    {
        return loop->poll_end;
    }

    if (!wake->timer) {
        ready = ngx_http_profile_arrived(wake, now);
    }

    return ngx_min(ngx_max(ready, loop->last_end), loop->poll_start);
}


/*
 * While an upstream works, nginx only checks whether the client is still
 * connected.  The request does not wait for these events.
 */

static ngx_uint_t
ngx_http_profile_only_looks(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tr->request;
    c = r->connection;

    if (wake->timer || wake->event == NULL || r->upstream == NULL
        || r->upstream->peer.connection == NULL || r->upstream->upgrade)
    {
        return 0;
    }

    if (wake->event == c->write) {
        return !r->header_sent;
    }

    return wake->event == c->read
           && !ngx_http_profile_reads_body(r, wake->event);
}


/* rest is -1 if nothing was read, 0 if all was read but a stream's buffer */

ngx_uint_t
ngx_http_profile_reads_body(ngx_http_request_t *r, ngx_event_t *ev)
{
    if (r->request_body == NULL
        || (r->headers_in.content_length_n <= 0 && !r->headers_in.chunked))
    {
        return 0;
    }

    return r->request_body->rest > 0
#if (NGX_HTTP_V2 && nginx_version >= 1021002)
           || (r->stream && ev == r->connection->read
               && !r->request_body->last_saved)
#endif
           ;
}


/*
 * The event came while the worker was busy between two polls.  After a long
 * time the kernel is asked when data arrived.  Its clock ticks about 250 times
 * in a second, so the answer does not help for shorter times.
 */

static uint64_t
ngx_http_profile_arrived(ngx_http_profile_wake_t *wake, uint64_t now)
{
    uint64_t                  from, to, at;
    socklen_t                 len;
    struct tcp_info           ti;
    struct timespec           tick;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    from = loop->last_end;
    to = loop->poll_start;

    len = sizeof(struct tcp_info);

    if (to - from > NGX_HTTP_PROFILE_ASK_NS
        && wake->connection && wake->event == wake->connection->read
        && clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0
        && getsockopt(wake->connection->fd, IPPROTO_TCP, TCP_INFO, &ti, &len)
           == 0)
    {
        at = now - (uint64_t) ti.tcpi_last_data_recv * 1000000;

        from = ngx_max(from, at - tick.tv_nsec);
        to = ngx_min(to, at + tick.tv_nsec);
    }

    return from / 2 + to / 2;
}


/* the phases run from here, so the turn begins and ends in this call */

PROF_GLUE void
ngx_http_profile_run_request(ngx_http_profile_track_t *tr)
{
    tr->request->phase_handler++;

    ngx_http_profile_turn(tr, NULL, (uintptr_t) ngx_http_core_run_phases,
                          ngx_http_profile_first_turn, tr->request);
}


PROF_GLUE static void
ngx_http_profile_first_turn(void *data)
{
    ngx_http_request_t *r = data;

    ngx_connection_t  *c;

    c = r->connection;

    ngx_http_core_run_phases(r);
    ngx_http_run_posted_requests(c);
}


PROF_HOT ngx_int_t
ngx_http_profile_adopt(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_run_t  *run;

    run = ngx_http_profile_current;

    if (run == NULL || run->track || run->tail
        || run->connection != tr->request->connection)
    {
        return NGX_DECLINED;
    }

    run->track = tr;

    return NGX_OK;
}


PROF_HOT void
ngx_http_profile_turn_forget(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_run_t  *run;

    for (run = ngx_http_profile_current; run; run = run->prev) {
        if (run->track == tr) {
            run->track = NULL;
            run->tail = 1;
        }
    }
}


ngx_http_profile_part_t *
ngx_http_profile_add_part(ngx_http_profile_track_t *tr, ngx_http_request_t *r)
{
    ngx_http_profile_part_t  *part;

    for (part = tr->parts; part; part = part->next) {
        if (part->request == r) {
            return part;
        }
    }

    part = ngx_pcalloc(tr->request->pool, sizeof(ngx_http_profile_part_t));
    if (part == NULL) {
        return NULL;
    }

    part->request = r;
    part->next = tr->parts;
    tr->parts = part;

    return part;
}
