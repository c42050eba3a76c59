
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Turns.  Most turns begin in the event loop (ngx_http_profile_track.c).
 * nginx also enters a request in three other ways, from events that are not
 * the request's own, and these are caught by function pointers that stand
 * there between the turns and only then:
 *
 *     r->write_event_handler    completions of threads and of AIO, cosockets:
 *                               of each part, that is the main request and
 *                               its subrequests
 *     resolver_ctx->handler     names resolved for an upstream
 *     fc->read, fc->write       the fake connection of an HTTP/2 or HTTP/3
 *                               stream, whose handlers the real connection's
 *                               events call
 *
 * All of this is memory that lives as long as the request, and is put back
 * before the request's own code runs.
 */


#include "ngx_http_profile_account.h"
#include "ngx_http_profile.h"


static void ngx_http_profile_enter(ngx_http_profile_frame_t *frame,
    ngx_http_profile_track_t *tr, uintptr_t handler);
static void ngx_http_profile_leave(ngx_http_profile_frame_t *frame);
static void ngx_http_profile_first_turn(void *data);
static void ngx_http_profile_capture_turn(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn,
    void *data);

static void ngx_http_profile_wrap(ngx_http_profile_track_t *tr);
static void ngx_http_profile_wrap_resolver(ngx_http_profile_part_t *part);
static ngx_uint_t ngx_http_profile_fake(ngx_connection_t *c);

static void ngx_http_profile_write_event_handler(ngx_http_request_t *r);
static void ngx_http_profile_write_turn(void *data);
static void ngx_http_profile_resolver_handler(ngx_resolver_ctx_t *rctx);
static void ngx_http_profile_resolver_turn(void *data);
static void ngx_http_profile_fake_handler(ngx_event_t *ev);
static void ngx_http_profile_fake_turn(void *data);


ngx_http_profile_frame_t  *ngx_http_profile_frame;


/*
 * Runs fn(data) as a turn of the request; wake is NULL for the first one, which
 * nothing was waited for before.  The request, and all that belongs to it, may
 * be gone when it returns.
 */

PROF_GLUE void
ngx_http_profile_turn(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn, void *data)
{
    ngx_http_profile_frame_t  frame;

    if (ngx_http_profile_frame && ngx_http_profile_frame->track == tr) {
        fn(data);
        return;
    }

    ngx_http_profile_unwrap(tr);

    ngx_http_profile_enter(&frame, tr, what);

    if (wake) {
        ngx_http_profile_account_gap(tr, wake, frame.start);

    } else {
        ngx_http_profile_account_start(tr, frame.start);
    }

    if (tr->ctx && tr->ctx->capture) {
        ngx_http_profile_capture_turn(tr->ctx, wake, what, fn, data);

    } else {
        fn(data);
    }

    ngx_http_profile_leave(&frame);
}


PROF_GLUE static void
ngx_http_profile_capture_turn(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn, void *data)
{
    ngx_http_profile_track_t  *tr;

    static char  header[] = "request header and start of the capture";

    tr = ctx->track;

    if (wake == NULL) {
        ngx_http_profile_first_gap(tr, ctx->capture,
                                   ngx_http_profile_frame->start);
        prof_capture_ran(ctx->capture,
                         prof_capture_name(ctx->capture, header,
                                           sizeof(header) - 1));

    } else {
        ngx_http_profile_gap(tr, ctx->capture, wake);

        if (ctx->spans) {
            what = ngx_http_profile_wake_name(tr, ctx->capture, wake);
        }
    }

    prof_turn_run(ngx_http_profile_sampler(), ctx->capture, what, fn, data);
}


/*
 * The first turn of a request, in the POST_READ phase: the rest of the phases
 * runs from here, so the turn begins and ends in this call.  The request may be
 * gone when it returns.
 */

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


/* an event that is nobody's, unless it begins a request */

PROF_GLUE void
ngx_http_profile_run_event(ngx_event_t *ev)
{
    ngx_http_profile_frame_t  frame;

    ngx_http_profile_enter(&frame, NULL, (uintptr_t) ev->handler);

    frame.connection = ngx_http_profile_connection(ev);
    frame.accept = ev->accept;

    ev->handler(ev);

    ngx_http_profile_leave(&frame);
}


static void
ngx_http_profile_enter(ngx_http_profile_frame_t *frame,
    ngx_http_profile_track_t *tr, uintptr_t handler)
{
    frame->prev = ngx_http_profile_frame;
    frame->track = tr;
    frame->connection = NULL;
    frame->handler = handler;
    frame->accept = 0;
    frame->tail = 0;

    /* what ran before the first turn of a request was for it */

    if (frame->prev && (frame->prev->track || (tr && tr->times.turns))) {
        (void) ngx_http_profile_charge(frame->prev);
    }

    frame->start = ngx_http_profile_loop.since;

    ngx_http_profile_frame = frame;
}


static void
ngx_http_profile_leave(ngx_http_profile_frame_t *frame)
{
    uint64_t                   now;
    ngx_http_profile_track_t  *tr;

    now = ngx_http_profile_charge(frame);

    ngx_http_profile_frame = frame->prev;

    tr = frame->track;

    /* a turn within another one, which was ready to go on */

    if (frame->prev && frame->prev->track && !frame->prev->track->closed) {
        frame->prev->track->times.stall += now - frame->start;
    }

    if (tr) {
        ngx_http_profile_account_turn(tr, now);
        ngx_http_profile_settle(tr);
        ngx_http_profile_wrap(tr);

        if (tr->ctx) {
            ngx_http_profile_check_complete(tr->ctx);
        }
    }

    if (ngx_http_profile_frame == NULL) {
        ngx_http_profile_disarm_idle();
    }
}


/*
 * The event that runs turns out to begin this request: from its start on it is
 * a turn.  NGX_DECLINED: not all of it is.
 */

ngx_int_t
ngx_http_profile_adopt(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_frame_t  *frame;

    frame = ngx_http_profile_frame;

    if (frame == NULL || frame->track || frame->tail
        || frame->connection != tr->request->connection)
    {
        return NGX_DECLINED;
    }

    frame->track = tr;

    return NGX_OK;
}


/* the request goes, maybe in the middle of its turn */

void
ngx_http_profile_turn_forget(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_frame_t  *frame;

    for (frame = ngx_http_profile_frame; frame; frame = frame->prev) {
        if (frame->track == tr) {
            frame->track = NULL;
            frame->tail = 1;
        }
    }
}


/* the capture whose turn is running, or NULL */

ngx_http_profile_ctx_t *
ngx_http_profile_turn_ctx(void)
{
    ngx_http_profile_frame_t  *frame;

    frame = ngx_http_profile_frame;

    return (frame && frame->track) ? frame->track->ctx : NULL;
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


static void
ngx_http_profile_wrap(ngx_http_profile_track_t *tr)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_profile_part_t  *part;

    for (part = tr->parts; part; part = part->next) {
        r = part->request;

        part->aio = r->aio;

        if (r->write_event_handler != ngx_http_request_empty_handler) {
            part->write_event_handler = r->write_event_handler;
            r->write_event_handler = ngx_http_profile_write_event_handler;
        }

        ngx_http_profile_wrap_resolver(part);
    }

    c = tr->request->connection;

    if (ngx_http_profile_fake(c)) {
        tr->read_handler = c->read->handler;
        tr->write_handler = c->write->handler;

        c->read->handler = ngx_http_profile_fake_handler;
        c->write->handler = ngx_http_profile_fake_handler;
    }
}


static void
ngx_http_profile_wrap_resolver(ngx_http_profile_part_t *part)
{
    ngx_http_upstream_t  *u;

    u = part->request->upstream;

    if (u == NULL || u->resolved == NULL || u->resolved->ctx == NULL) {
        return;
    }

    /* nginx frees it and clears the pointer together */

    part->resolver_ctx = u->resolved->ctx;
    part->resolver_handler = part->resolver_ctx->handler;
    part->resolver_ctx->handler = ngx_http_profile_resolver_handler;
}


void
ngx_http_profile_unwrap(ngx_http_profile_track_t *tr)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_upstream_t      *u;
    ngx_http_profile_part_t  *part;

    for (part = tr->parts; part; part = part->next) {
        r = part->request;

        if (r->write_event_handler == ngx_http_profile_write_event_handler) {
            r->write_event_handler = part->write_event_handler;
        }

        u = r->upstream;

        if (u && u->resolved && u->resolved->ctx
            && u->resolved->ctx == part->resolver_ctx
            && u->resolved->ctx->handler == ngx_http_profile_resolver_handler)
        {
            u->resolved->ctx->handler = part->resolver_handler;
        }

        part->resolver_ctx = NULL;
    }

    c = tr->request->connection;

    if (c->read->handler == ngx_http_profile_fake_handler) {
        c->read->handler = tr->read_handler;
    }

    if (c->write->handler == ngx_http_profile_fake_handler) {
        c->write->handler = tr->write_handler;
    }
}


/* a stream's connection: a copy, that no poll knows */

static ngx_uint_t
ngx_http_profile_fake(ngx_connection_t *c)
{
    return c < ngx_cycle->connections
           || c >= ngx_cycle->connections + ngx_cycle->connection_n;
}


PROF_GLUE static void
ngx_http_profile_write_event_handler(ngx_http_request_t *r)
{
    ngx_http_profile_part_t   *part;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);
    part = ngx_http_profile_add_part(tr, r);

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;

    ngx_http_profile_turn(tr, &wake, (uintptr_t) part->write_event_handler,
                          ngx_http_profile_write_turn, r);
}


/*
 * What was posted for other parts belongs to this turn: who called us runs it
 * only after we returned.
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
    ngx_http_request_t        *r;
    ngx_http_profile_part_t   *part;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    /* only those of ngx_http_upstream_t are wrapped, their data is this */

    r = rctx->data;

    tr = ngx_http_profile_find_track(r);
    part = ngx_http_profile_add_part(tr, r);

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;
    wake.resolver = rctx;

    ngx_http_profile_turn(tr, &wake, (uintptr_t) part->resolver_handler,
                          ngx_http_profile_resolver_turn, rctx);
}


PROF_GLUE static void
ngx_http_profile_resolver_turn(void *data)
{
    ngx_resolver_ctx_t *rctx = data;

    rctx->handler(rctx);
}


/* both of a fake connection's events have it */

PROF_GLUE static void
ngx_http_profile_fake_handler(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_event_handler_pt       handler;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    c = ev->data;
    tr = ngx_http_profile_find_track(c->data);
    handler = (ev == c->read) ? tr->read_handler : tr->write_handler;

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.event = ev;
    wake.connection = c;

    ngx_http_profile_turn(tr, &wake, (uintptr_t) handler,
                          ngx_http_profile_fake_turn, ev);
}


PROF_GLUE static void
ngx_http_profile_fake_turn(void *data)
{
    ngx_event_t *ev = data;

    ev->handler(ev);
}
