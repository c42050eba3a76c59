
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Turns: uninterrupted stretches in which the worker runs code for one
 * request.  Most turns begin in the event loop (ngx_http_profile_dispatch.c).
 * Events of other objects enter a request through the function pointers below.
 * The module replaces these pointers at the end of each turn, and restores
 * them before the next turn:
 *
 *     r->write_event_handler    completions of threads and of AIO, cosockets;
 *                               of the main request and of its subrequests
 *     resolver_ctx->handler     a name was resolved for an upstream
 *     r->request_body->post_handler
 *                               the body of a stream is complete
 *     fc->read, fc->write       the connection of an HTTP/2 or HTTP/3 stream;
 *                               events of the connection below call these
 *                               handlers, for QUIC when it is closed
 *
 * All these pointers are in memory that exists as long as the request.
 *
 * Some events lead to a request by no pointer that the module knows: a
 * semaphore of a script, the completion of a thread, a module's own queue.  The
 * run of such an event begins for no request, and its turn is found when the
 * code does something for the request (ngx_http_profile_turn_found()):
 *
 *     a coroutine of ngx_lua is resumed
 *     an event or a timer is added that has the log of the request
 *     a phase or a filter is called for the request, if there is a sampler
 *     the request is logged
 *
 * Several requests may be found in a run, one after the other.
 *
 * A turn begins some time after the request could have run.  This time is
 * known exactly if the turn was begun by a timer, or if the worker has slept:
 * then its poll returned because of the event.  Otherwise the event came while
 * the worker ran other code between two polls, and the middle of that time is
 * taken.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "loop/ngx_http_profile_brief.h"
#include "loop/ngx_http_profile_charge.h"

#include <netinet/tcp.h>


/* after more than this time the module asks the kernel when data came */
#define NGX_HTTP_PROFILE_ASK_NS     8000000


/* a call of lua_resume() */

typedef struct {
    prof_lua_state_t  *co;
    int                nargs;
    int                rc;
} ngx_http_profile_resuming_t;


static uint64_t ngx_http_profile_ready(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t now);
static ngx_uint_t ngx_http_profile_only_looks(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake);
static void ngx_http_profile_client_wakes(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake);
static uint64_t ngx_http_profile_arrived(ngx_http_profile_wake_t *wake,
    uint64_t now);
static void ngx_http_profile_found_capture(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready);
static void ngx_http_profile_found_ended(ngx_http_profile_run_t *run);
static void ngx_http_profile_first_turn(void *data);
static void ngx_http_profile_turn_again(ngx_http_profile_track_t *tr,
    ngx_http_profile_run_t *outer, uintptr_t what, prof_turn_pt fn,
    void *data);
static void ngx_http_profile_uncaptured_turn(uintptr_t what,
    prof_turn_pt fn, void *data);
static void ngx_http_profile_stalled(ngx_http_profile_run_t *run,
    uint64_t ns);
static void ngx_http_profile_wrap(ngx_http_profile_track_t *tr);
static void ngx_http_profile_wrap_resolver(ngx_http_profile_subrequest_t *sr);

static void ngx_http_profile_write_event_handler(ngx_http_request_t *r);
static void ngx_http_profile_write_turn(void *data);
static void ngx_http_profile_resolver_handler(ngx_resolver_ctx_t *rctx);
static void ngx_http_profile_resolver_turn(void *data);
static void ngx_http_profile_post_handler(ngx_http_request_t *r);
static void ngx_http_profile_post_turn(void *data);
static void ngx_http_profile_log_untracked(ngx_http_request_t *r);
static void ngx_http_profile_stream_handler(ngx_event_t *ev);
static void ngx_http_profile_stream_turn(void *data);
static void ngx_http_profile_no_turn(void *data);
static ngx_int_t ngx_http_profile_resume_found(
    ngx_http_profile_resuming_t *resuming);
static void ngx_http_profile_resume_turn(void *data);


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

    if (ngx_http_profile_loop.found) {
        ngx_http_profile_found_ended(ngx_http_profile_loop.found);
    }

    ngx_http_profile_unwrap(tr);

    run.top = (uintptr_t) __builtin_frame_address(0);

    ngx_http_profile_enter(&run, tr, what);

    ready = 0;

    if (wake) {
        wake->begin = run.start;
        ready = ngx_http_profile_ready(tr, wake, run.start);

        if (wake->connection == tr->request->connection) {
            ngx_http_profile_client_wakes(tr, wake);

        } else if (wake->connection) {
            wake->since = ngx_http_profile_awaited(tr, wake);
        }

        ngx_http_profile_account_gap(tr, wake, ready, run.start);

        if (ngx_http_profile_logs_turns()) {
            ngx_http_profile_log_woken(wake, ready);
        }

        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, tr->request->connection->log, 0,
                       "profile: turn of %p, event %p, ready for %L ns",
                       tr->request, wake->event, run.start - ready);

    } else {

        if (ngx_http_profile_logs_turns() && tr->number == 0) {
            ngx_http_profile_log_first(tr);
        }

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
 * Called when code of a request runs within a turn of the same request,
 * possibly within another request's turn.  The turn ends, and pointers are
 * replaced, when the outer run ends.
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


PROF_GLUE void
ngx_http_profile_turn_found(ngx_http_profile_track_t *tr, ngx_http_request_t *r,
    void *script)
{
    uint64_t                  ready;
    ngx_http_profile_run_t   *run;
    ngx_http_profile_loop_t  *loop;
    ngx_http_profile_wake_t   wake;

    run = ngx_http_profile_current;
    loop = &ngx_http_profile_loop;

    if (run == NULL || (run->track && (run->track == tr || run != loop->found)))
    {
        return;
    }

    /*
     * A connection that does not belong to the request serves others as well:
     * the one below the streams of HTTP/2, or that of a resolver.  So do the
     * events of QUIC.
     */

    if (run->connection
#if (NGX_HTTP_V3)
        || (r->connection->quic && script == NULL)
#endif
        )
    {
        return;
    }

    if (run == loop->found) {
        ngx_http_profile_found_ended(run);

    } else if (loop->seen == run->start) {
        (void) ngx_http_profile_charge(run);
    }

    loop->seen = run->start;

    if (tr == NULL || !tr->begun) {
        return;
    }

    ngx_http_profile_unwrap(tr);

    run->track = tr;
    run->tail = 0;
    loop->found = run;

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;
    wake.script = script;
    wake.begin = loop->since;
    wake.found = 1;
    wake.scripted = (script || ngx_http_profile_resumes_in(run->handler));

    /*
     * A handler of this iteration has posted the event, and the request has
     * waited for that.  With other methods than epoll, the poll posts events.
     */

    if (loop->posted == &ngx_posted_events && ngx_http_profile_polls) {
        ready = wake.begin;

    } else {
        wake.timer = (loop->posted == &ngx_http_profile_nothing);
        ready = ngx_http_profile_ready(tr, &wake, wake.begin);
        wake.timer = 0;
    }

    if (ngx_http_profile_observers.running) {
        ngx_http_profile_observers.running(tr->request);
    }

    ngx_http_profile_account_gap(tr, &wake, ready, wake.begin);
    ngx_http_profile_log_found(tr, wake.begin, ready);

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, tr->request->connection->log, 0,
                   "profile: turn of %p found, coroutine %p, after %L ns, "
                   "ready for %L ns",
                   tr->request, script, prof_now() - wake.begin,
                   wake.begin - ready);

    if (tr->capture) {
        ngx_http_profile_found_capture(tr, &wake, ready);

    } else if (tr->notes) {
        ngx_http_profile_observers.notes_turn_begins(tr, &wake, ready);
    }
}


/*
 * The samples that the watch took in the run so far belong to the turn.  From
 * now on the sampler of captures samples the turn.
 */

static void
ngx_http_profile_found_capture(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready)
{
    uint64_t                 now;
    uintptr_t                what;
    ngx_http_profile_run_t  *run;

    run = ngx_http_profile_current;

    what = ngx_http_profile_observers.turn_begins(tr, wake, ready,
                                                  run->handler);

    now = ngx_http_profile_charge(run);

    if (ngx_http_profile_spot.fresh) {
        prof_watch_pass(ngx_http_profile_watch, (uintptr_t) tr->capture);
        prof_watch_turn(ngx_http_profile_watch, tr->capture,
                        (uintptr_t) tr->capture, what, now, tr->turn_cpu);
        now = ngx_http_profile_loop.since;
    }

    (void) prof_turn_take(ngx_http_profile_sampler(), tr->capture, what,
                          prof_capture_counted(tr->capture) < now
                          ? tr->turn_cpu : 0);
}


/*
 * Code of another request runs next in the run, or no code of a request.  The
 * observer "turn_ended" is not called, because it may finalize the request,
 * and other code is running; the request is checked before the next poll.
 */

PROF_GLUE static void
ngx_http_profile_found_ended(ngx_http_profile_run_t *run)
{
    uint64_t                   now;
    ngx_http_profile_track_t  *tr;

    ngx_http_profile_loop.found = NULL;

    tr = run->track;

    if (tr == NULL) {
        return;
    }

    now = ngx_http_profile_charge(run);

    if (ngx_http_profile_spot.fresh) {
        ngx_http_profile_watch_pass(run);
    }

    if (tr->capture) {
        prof_turn_end(ngx_http_profile_sampler(), tr->capture);
    }

    if (tr->notes) {
        ngx_http_profile_observers.notes_turn_ended(tr, now);
    }

    ngx_http_profile_account_turn(tr, now);
    ngx_http_profile_settle(tr);
    ngx_http_profile_wrap(tr);

    run->track = NULL;

    ngx_http_profile_log_found(NULL, now, now);

    if (ngx_http_profile_observers.running) {
        ngx_http_profile_observers.running(NULL);
    }
}


PROF_HOT void
ngx_http_profile_leave(ngx_http_profile_run_t *run)
{
    uint64_t                   now;
    ngx_http_profile_track_t  *tr;

    if (run->track) {
        (void) ngx_http_profile_lasting(run->track);
    }

    now = ngx_http_profile_charge(run);

    if (now - run->start >= NGX_HTTP_PROFILE_BUSY_NS) {
        ngx_http_profile_note_run(run, now);
    }

    ngx_http_profile_log_run(run, now);

    ngx_http_profile_current = run->prev;
    ngx_http_profile_spot.top = run->prev ? run->prev->top : 0;
    ngx_http_profile_loop.found = NULL;

    tr = run->track;

    if (run->prev == NULL) {
        ngx_http_profile_count_handler(run, now);
    }

    if (ngx_http_profile_observers.running) {
        ngx_http_profile_observers.running(run->prev && run->prev->track
                                           ? run->prev->track->request : NULL);
    }

    if (ngx_http_profile_observers.slow_ns
        && now - run->start >= ngx_http_profile_observers.slow_ns
        && !run->reported)
    {
        ngx_http_profile_report_slow(run, tr, now - run->start);
    }

    ngx_http_profile_stalled(run, now - run->start);

    if (ngx_http_profile_spot.fresh) {
        ngx_http_profile_watch_pass(run);
    }

    if (tr && !run->again) {

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, tr->request->connection->log, 0,
                       "profile: turn of %p ended after %uL ns",
                       tr->request, now - run->start);

        if (tr->notes) {
            ngx_http_profile_observers.notes_turn_ended(tr, now);
        }

        ngx_http_profile_account_turn(tr, now);
        ngx_http_profile_settle(tr);
        ngx_http_profile_wrap(tr);

        if (tr->ctx) {
            ngx_http_profile_observers.turn_ended(tr);
        }
    }

    if (ngx_http_profile_disarms && ngx_http_profile_current == NULL) {
        ngx_http_profile_disarm_idle();
    }
}


/*
 * Called when an inner run has ended.  The request of the outer run was ready
 * to run, so the inner run was a stall for this request.  A run for the same
 * request is not a stall, also if runs for other requests are between both:
 * its time is subtracted from "other", the outermost of these runs.
 */

PROF_HOT static void
ngx_http_profile_stalled(ngx_http_profile_run_t *run, uint64_t ns)
{
    ngx_http_profile_run_t  *other, *prev;

    prev = run->prev;

    if (prev == NULL) {
        return;
    }

    if (prev->track && !prev->track->closed) {
        prev->track->times.stall += ns - run->inner;
    }

    if (run->again && run->track) {

        other = prev;

        while (other->prev && other->prev->track != run->track) {
            other = other->prev;
        }

        other->inner += ns;
    }
}


/* runs a turn without a capture, possibly within a captured turn */

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

    /* in the iteration that arms the worker, the times are unknown */

    if (loop->poll_end == 0 || ngx_http_profile_only_looks(tr, wake)) {
        return now;
    }

    /*
     * The poll may have waited although a timer was due, since it compares
     * with nginx's time, which is the time of the previous poll.
     */

    ready = wake->timer ? (uint64_t) loop->due * 1000000 : loop->poll_start;

    if (loop->last_end == 0
        || (ngx_http_profile_slept() && ready >= loop->poll_start))
    {
        return loop->poll_end;
    }

    if (!wake->timer) {
        ready = ngx_http_profile_arrived(wake, now);

    } else if (ngx_http_profile_slept()) {
        ngx_http_profile_note_poll();
    }

    return ngx_min(ngx_max(ready, loop->last_end), loop->poll_start);
}


/*
 * Returns whether nginx only checks whether the client is still connected, as
 * it does while an upstream works.  The request does not wait for such events.
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


/*
 * What a request does with its client and with its upstream takes turns: the
 * client does not wait beside the upstream, and from now on the request waits
 * for both.
 */

static void
ngx_http_profile_client_wakes(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_http_upstream_t            *u;
    ngx_http_profile_subrequest_t  *sr;

    for (sr = tr->subrequests; sr; sr = sr->next) {

        /* the request whose response is sent now */

        if (sr->request != wake->connection->data) {
            continue;
        }

        u = sr->request->upstream;

        if (u && u->peer.connection && !ngx_http_profile_only_looks(tr, wake)) {
            ngx_http_profile_await(tr, u->peer.connection, wake->begin);
        }
    }
}


/*
 * r->request_body->rest is -1 if nothing was read.  It is 0 if nginx still has
 * to read only the buffer of a stream.
 */

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
 * Returns when an event came that came while the worker was busy between two
 * polls.  If this time was long, the module asks the kernel when data arrived.
 * The kernel's clock has about 250 ticks in a second, so the answer does not
 * help for shorter times.
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


/* runs the phases here, so the turn begins and ends in this call */

PROF_GLUE void
ngx_http_profile_run_request(ngx_http_profile_track_t *tr)
{
    tr->request->phase_handler++;

    ngx_http_profile_turn(tr, NULL, (uintptr_t) ngx_http_core_run_phases,
                          ngx_http_profile_first_turn, tr->request);
}


PROF_HOT ngx_int_t
ngx_http_profile_account_begin(ngx_http_profile_track_t *tr)
{
    if (ngx_http_profile_adopt(tr, tr->request) == NGX_OK) {

        if (ngx_http_profile_logs_turns()) {
            ngx_http_profile_log_first(tr);
        }

        ngx_http_profile_account_start(tr, ngx_http_profile_current->start);

        if (ngx_http_profile_observers.notes_begin) {
            ngx_http_profile_observers.notes_begin(tr,
                                              ngx_http_profile_current->start);
        }

        return NGX_DECLINED;
    }

    ngx_http_profile_run_request(tr);

    return NGX_DONE;
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


PROF_HOT static void
ngx_http_profile_wrap(ngx_http_profile_track_t *tr)
{
    ngx_connection_t               *c;
    ngx_http_request_t             *r;
    ngx_http_profile_subrequest_t  *sr;

    tr->wrapped = 1;

    for (sr = tr->subrequests; sr; sr = sr->next) {
        r = sr->request;

        if (r->aio && (!sr->aio || sr->awaited == 0)) {
            sr->awaited = tr->since;
        }

        sr->aio = r->aio;

        if (r->write_event_handler != ngx_http_request_empty_handler) {
            sr->write_event_handler = r->write_event_handler;
            r->write_event_handler = ngx_http_profile_write_event_handler;
        }

        ngx_http_profile_wrap_resolver(sr);
    }

    if (ngx_http_profile_below(tr->request)) {
        c = tr->request->connection;

        tr->read_handler = c->read->handler;
        tr->write_handler = c->write->handler;

        c->read->handler = ngx_http_profile_stream_handler;
        c->write->handler = ngx_http_profile_stream_handler;

        r = tr->request;

        if (r->request_body && r->request_body->post_handler) {
            tr->main.post_handler = r->request_body->post_handler;
            r->request_body->post_handler = ngx_http_profile_post_handler;
        }
    }
}


PROF_HOT static void
ngx_http_profile_wrap_resolver(ngx_http_profile_subrequest_t *sr)
{
    ngx_http_upstream_t  *u;

    u = sr->request->upstream;

    if (u == NULL || u->resolved == NULL || u->resolved->ctx == NULL) {
        return;
    }

    /* nginx clears its pointer when it frees the context of the resolver */

    sr->resolver_ctx = u->resolved->ctx;
    sr->resolver_handler = sr->resolver_ctx->handler;
    sr->resolver_ctx->handler = ngx_http_profile_resolver_handler;
}


PROF_HOT void
ngx_http_profile_unwrap(ngx_http_profile_track_t *tr)
{
    ngx_connection_t               *c;
    ngx_http_request_t             *r;
    ngx_http_upstream_t            *u;
    ngx_http_profile_subrequest_t  *sr;

    if (!tr->wrapped) {
        return;
    }

    tr->wrapped = 0;

    for (sr = tr->subrequests; sr; sr = sr->next) {
        r = sr->request;

        if (r->write_event_handler == ngx_http_profile_write_event_handler) {
            r->write_event_handler = sr->write_event_handler;
        }

        u = r->upstream;

        if (u && u->resolved && u->resolved->ctx
            && u->resolved->ctx == sr->resolver_ctx
            && u->resolved->ctx->handler == ngx_http_profile_resolver_handler)
        {
            u->resolved->ctx->handler = sr->resolver_handler;
        }

        sr->resolver_ctx = NULL;
    }

    r = tr->request;
    c = r->connection;

    if (r->request_body
        && r->request_body->post_handler == ngx_http_profile_post_handler)
    {
        r->request_body->post_handler = tr->main.post_handler;
    }

    if (c->read->handler == ngx_http_profile_stream_handler) {
        c->read->handler = tr->read_handler;
    }

    if (c->write->handler == ngx_http_profile_stream_handler) {
        c->write->handler = tr->write_handler;
    }
}


PROF_HOT uintptr_t
ngx_http_profile_event_code(ngx_http_profile_track_t *tr, ngx_event_t *ev)
{
    ngx_event_handler_pt  handler;

    handler = ev->handler;

    if (handler == ngx_http_profile_stream_handler) {
        handler = ev->write ? tr->write_handler : tr->read_handler;
    }

    return (uintptr_t) handler;
}


PROF_GLUE static void
ngx_http_profile_write_event_handler(ngx_http_request_t *r)
{
    ngx_http_profile_wake_t         wake;
    ngx_http_profile_track_t       *tr;
    ngx_http_profile_subrequest_t  *sr;

    tr = ngx_http_profile_find_track(r);
    sr = tr ? ngx_http_profile_add_subrequest(tr, r) : NULL;

    if (sr == NULL || sr->write_event_handler == NULL) {
        ngx_http_profile_log_untracked(r);
        return;
    }

    /* other code has restored a pointer that it had read between two turns */

    if (!tr->wrapped
        && r->write_event_handler == ngx_http_profile_write_event_handler)
    {
        r->write_event_handler = sr->write_event_handler;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;

    if (sr->aio) {
        wake.since = sr->awaited;
        sr->awaited = 0;
    }

    ngx_http_profile_turn(tr, &wake, (uintptr_t) sr->write_event_handler,
                          ngx_http_profile_write_turn, r);
}


/*
 * Subrequests that were posted in this turn belong to the turn.  The caller
 * would run them only after the turn, so they run here.
 */

PROF_GLUE static void
ngx_http_profile_write_turn(void *data)
{
    ngx_http_request_t *r = data;

    ngx_connection_t  *c;

    c = r->connection;

    r->write_event_handler(r);

    ngx_http_run_posted_requests(c);
}


PROF_GLUE static void
ngx_http_profile_resolver_handler(ngx_resolver_ctx_t *rctx)
{
    ngx_http_request_t             *r;
    ngx_http_profile_wake_t         wake;
    ngx_http_profile_track_t       *tr;
    ngx_http_profile_subrequest_t  *sr;

    /* only handlers of upstreams are replaced; their data is the request */

    r = rctx->data;

    tr = ngx_http_profile_find_track(r);
    sr = tr ? ngx_http_profile_add_subrequest(tr, r) : NULL;

    if (sr == NULL || sr->resolver_handler == NULL) {
        ngx_http_profile_log_untracked(r);
        return;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;
    wake.resolver = rctx;
    wake.since = ngx_http_profile_query_awaited(rctx->event);

    ngx_http_profile_turn(tr, &wake, (uintptr_t) sr->resolver_handler,
                          ngx_http_profile_resolver_turn, rctx);
}


PROF_GLUE static void
ngx_http_profile_resolver_turn(void *data)
{
    ngx_resolver_ctx_t *rctx = data;

    rctx->handler(rctx);
}


PROF_GLUE static void
ngx_http_profile_post_handler(ngx_http_request_t *r)
{
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL || tr->main.post_handler == NULL) {
        ngx_http_profile_log_untracked(r);
        return;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;
    wake.body = 1;

    ngx_http_profile_turn(tr, &wake, (uintptr_t) tr->main.post_handler,
                          ngx_http_profile_post_turn, r);
}


PROF_GLUE static void
ngx_http_profile_post_turn(void *data)
{
    ngx_http_request_t *r = data;

    ngx_connection_t  *c;

    c = r->connection;

    r->request_body->post_handler(r);

    ngx_http_run_posted_requests(c);
}


/*
 * Logs that the module's function was called for an untracked request: other
 * code has kept the pointer for longer.  nginx's own pointer is unknown now.
 */

static void
ngx_http_profile_log_untracked(ngx_http_request_t *r)
{
    ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, 0,
                         "profile: handler called for a request that is not "
                         "tracked");
}


/* replaces nginx's handler of both events of a stream's connection */

PROF_GLUE static void
ngx_http_profile_stream_handler(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    c = ev->data;
    tr = ngx_http_profile_find_track(c->data);

    if (tr == NULL) {
        ngx_http_profile_log_untracked(c->data);
        return;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.event = ev;
    wake.connection = c;

    ngx_http_profile_turn(tr, &wake, ngx_http_profile_event_code(tr, ev),
                          ngx_http_profile_stream_turn, ev);
}


PROF_GLUE static void
ngx_http_profile_stream_turn(void *data)
{
    ngx_event_t *ev = data;

    ev->handler(ev);
}


/*
 * Called when code in an event of a resolver opens a connection for the
 * request.
 */

void
ngx_http_profile_query_ended(ngx_http_profile_track_t *tr)
{
    ngx_str_t                name;
    ngx_http_profile_wake_t  wake;

    if (!ngx_http_profile_resolves(tr, 1, &name)) {
        return;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = tr->request;

    ngx_http_profile_turn(tr, &wake,
                          (uintptr_t) ngx_http_profile_query_ended,
                          ngx_http_profile_no_turn, NULL);
}


static void
ngx_http_profile_no_turn(void *data)
{
    /* void */
}


PROF_GLUE int
ngx_http_profile_resume(prof_lua_state_t *co, int nargs)
{
    ngx_http_profile_run_t      *run;
    ngx_http_profile_resuming_t  resuming;

    run = ngx_http_profile_current;

    if (run && (run->track == NULL || run == ngx_http_profile_loop.found)
        && pthread_equal(pthread_self(), ngx_http_profile_resumes.thread))
    {
        resuming.co = co;
        resuming.nargs = nargs;

        if (ngx_http_profile_resume_found(&resuming) == NGX_OK) {
            return resuming.rc;
        }
    }

    return ngx_http_profile_resumes.resume(co, nargs);
}


/*
 * Returns NGX_OK if the coroutine was resumed.  lua_getexdata() of OpenResty's
 * LuaJIT returns the request of a coroutine.  In the event of a connection
 * that serves others as well, only the coroutine is a turn.  The data of a
 * coroutine may also be a request of the stream module's Lua, which has no
 * signature.
 */

PROF_GLUE static ngx_int_t
ngx_http_profile_resume_found(ngx_http_profile_resuming_t *resuming)
{
    ngx_http_request_t        *r;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    r = prof_lua_exdata(resuming->co);

    if (r == NULL || r->signature != NGX_HTTP_MODULE) {
        return NGX_DECLINED;
    }

    tr = ngx_http_profile_find_track(r);

    if (ngx_http_profile_current->connection == NULL) {
        ngx_http_profile_turn_found(tr, r, resuming->co);
        return NGX_DECLINED;
    }

    if (tr == NULL || !tr->begun) {
        return NGX_DECLINED;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;
    wake.script = resuming->co;
    wake.scripted = 1;

    ngx_http_profile_turn(tr, &wake,
                          (uintptr_t) ngx_http_profile_resumes.resume,
                          ngx_http_profile_resume_turn, resuming);

    return NGX_OK;
}


PROF_GLUE static void
ngx_http_profile_resume_turn(void *data)
{
    ngx_http_profile_resuming_t *resuming = data;

    resuming->rc = ngx_http_profile_resumes.resume(resuming->co,
                                                   resuming->nargs);
}
