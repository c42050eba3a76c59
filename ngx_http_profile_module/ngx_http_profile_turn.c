
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


#include "ngx_http_profile.h"


typedef struct ngx_http_profile_frame_s  ngx_http_profile_frame_t;

struct ngx_http_profile_frame_s {
    ngx_http_profile_frame_t  *prev;
    ngx_http_profile_ctx_t    *ctx;          /* NULL: gone meanwhile */
};


static void ngx_http_profile_wrap(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_wrap_resolver(ngx_http_profile_part_t *part);
static ngx_uint_t ngx_http_profile_fake(ngx_connection_t *c);

static void ngx_http_profile_write_event_handler(ngx_http_request_t *r);
static void ngx_http_profile_write_turn(void *data);
static void ngx_http_profile_resolver_handler(ngx_resolver_ctx_t *rctx);
static void ngx_http_profile_resolver_turn(void *data);
static void ngx_http_profile_fake_handler(ngx_event_t *ev);
static void ngx_http_profile_fake_turn(void *data);


static ngx_http_profile_frame_t  *ngx_http_profile_frame;


/*
 * Runs fn(data) as a turn of the request; wake is NULL for the first one, which
 * nothing was waited for before.  The request, and the context with
 * it, may be gone when it returns.
 */

PROF_GLUE void
ngx_http_profile_turn(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn, void *data)
{
    ngx_http_profile_frame_t  frame;

    if (ngx_http_profile_frame && ngx_http_profile_frame->ctx == ctx) {
        fn(data);
        return;
    }

    ngx_http_profile_unwrap(ctx);

    frame.prev = ngx_http_profile_frame;
    frame.ctx = ctx;
    ngx_http_profile_frame = &frame;

    if (ctx->capture) {

        if (wake) {
            ngx_http_profile_gap(ctx, wake);

            if (ctx->spans) {
                what = ngx_http_profile_wake_name(ctx, wake);
            }
        }

        prof_turn_run(ngx_http_profile_sampler(), ctx->capture, what, fn,
                      data);

    } else {
        fn(data);
    }

    ngx_http_profile_frame = frame.prev;

    if (frame.ctx && ctx->tracked) {
        ngx_http_profile_settle(ctx);
        ngx_http_profile_wrap(ctx);
        ngx_http_profile_check_complete(ctx);
    }

    if (ngx_http_profile_frame == NULL) {
        ngx_http_profile_disarm();
    }
}


/* the context whose turn is running, or NULL */

ngx_http_profile_ctx_t *
ngx_http_profile_turn_ctx(void)
{
    return ngx_http_profile_frame ? ngx_http_profile_frame->ctx : NULL;
}


/* the context goes, or its capture ends, maybe in the middle of its turn */

void
ngx_http_profile_turn_forget(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_frame_t  *frame;

    if (ctx->capture) {
        prof_turn_end(ngx_http_profile_sampler(), ctx->capture);
    }

    for (frame = ngx_http_profile_frame; frame; frame = frame->prev) {
        if (frame->ctx == ctx) {
            frame->ctx = NULL;
        }
    }
}


ngx_http_profile_part_t *
ngx_http_profile_add_part(ngx_http_profile_ctx_t *ctx, ngx_http_request_t *r)
{
    ngx_http_profile_part_t  *part;

    for (part = ctx->parts; part; part = part->next) {
        if (part->request == r) {
            return part;
        }
    }

    part = ngx_pcalloc(ctx->request->pool, sizeof(ngx_http_profile_part_t));
    if (part == NULL) {
        return NULL;
    }

    part->request = r;
    part->next = ctx->parts;
    ctx->parts = part;

    return part;
}


static void
ngx_http_profile_wrap(ngx_http_profile_ctx_t *ctx)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_profile_part_t  *part;

    for (part = ctx->parts; part; part = part->next) {
        r = part->request;

        part->aio = r->aio;

        if (r->write_event_handler != ngx_http_request_empty_handler) {
            part->write_event_handler = r->write_event_handler;
            r->write_event_handler = ngx_http_profile_write_event_handler;
        }

        ngx_http_profile_wrap_resolver(part);
    }

    c = ctx->request->connection;

    if (ngx_http_profile_fake(c)) {
        ctx->read_handler = c->read->handler;
        ctx->write_handler = c->write->handler;

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
ngx_http_profile_unwrap(ngx_http_profile_ctx_t *ctx)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_upstream_t      *u;
    ngx_http_profile_part_t  *part;

    for (part = ctx->parts; part; part = part->next) {
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

    c = ctx->request->connection;

    if (c->read->handler == ngx_http_profile_fake_handler) {
        c->read->handler = ctx->read_handler;
    }

    if (c->write->handler == ngx_http_profile_fake_handler) {
        c->write->handler = ctx->write_handler;
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
    ngx_http_profile_ctx_t   *ctx;
    ngx_http_profile_part_t  *part;
    ngx_http_profile_wake_t   wake;

    ctx = ngx_http_profile_find(r);
    part = ngx_http_profile_add_part(ctx, r);

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;

    ngx_http_profile_turn(ctx, &wake, (uintptr_t) part->write_event_handler,
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
    ngx_http_request_t       *r;
    ngx_http_profile_ctx_t   *ctx;
    ngx_http_profile_part_t  *part;
    ngx_http_profile_wake_t   wake;

    /* only those of ngx_http_upstream_t are wrapped, their data is this */

    r = rctx->data;

    ctx = ngx_http_profile_find(r);
    part = ngx_http_profile_add_part(ctx, r);

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;
    wake.resolver = rctx;

    ngx_http_profile_turn(ctx, &wake, (uintptr_t) part->resolver_handler,
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
    ngx_connection_t         *c;
    ngx_event_handler_pt      handler;
    ngx_http_profile_ctx_t   *ctx;
    ngx_http_profile_wake_t   wake;

    c = ev->data;
    ctx = ngx_http_profile_find(c->data);
    handler = (ev == c->read) ? ctx->read_handler : ctx->write_handler;

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.event = ev;
    wake.connection = c;

    ngx_http_profile_turn(ctx, &wake, (uintptr_t) handler,
                          ngx_http_profile_fake_turn, ev);
}


PROF_GLUE static void
ngx_http_profile_fake_turn(void *data)
{
    ngx_event_t *ev = data;

    ev->handler(ev);
}
