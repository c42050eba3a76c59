
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Pointers that are replaced between turns.  Most turns begin in the event loop
 * (ngx_http_profile_dispatch.c).  From events of others, nginx enters a request
 * in four other ways.  The module replaces these function pointers at the end
 * of each turn, and restores them before the next:
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
 * All of them are in memory that exists as long as the request.
 */


#include "loop/ngx_http_profile_loop_private.h"


static void ngx_http_profile_wrap_resolver(ngx_http_profile_part_t *part);

static void ngx_http_profile_write_event_handler(ngx_http_request_t *r);
static void ngx_http_profile_write_turn(void *data);
static void ngx_http_profile_resolver_handler(ngx_resolver_ctx_t *rctx);
static void ngx_http_profile_resolver_turn(void *data);
static void ngx_http_profile_post_handler(ngx_http_request_t *r);
static void ngx_http_profile_post_turn(void *data);
static void ngx_http_profile_lost(ngx_http_request_t *r);
static void ngx_http_profile_stream_handler(ngx_event_t *ev);
static void ngx_http_profile_stream_turn(void *data);


PROF_HOT void
ngx_http_profile_wrap(ngx_http_profile_track_t *tr)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_profile_part_t  *part;

    tr->wrapped = 1;

    for (part = tr->parts; part; part = part->next) {
        r = part->request;

        part->aio = r->aio;

        if (r->write_event_handler != ngx_http_request_empty_handler) {
            part->write_event_handler = r->write_event_handler;
            r->write_event_handler = ngx_http_profile_write_event_handler;
        }

        ngx_http_profile_wrap_resolver(part);
    }

    if (ngx_http_profile_below(tr->request)) {
        c = tr->request->connection;

        tr->read_handler = c->read->handler;
        tr->write_handler = c->write->handler;

        c->read->handler = ngx_http_profile_stream_handler;
        c->write->handler = ngx_http_profile_stream_handler;

        r = tr->request;

        if (r->request_body && r->request_body->post_handler) {
            tr->part.post_handler = r->request_body->post_handler;
            r->request_body->post_handler = ngx_http_profile_post_handler;
        }
    }
}


PROF_HOT static void
ngx_http_profile_wrap_resolver(ngx_http_profile_part_t *part)
{
    ngx_http_upstream_t  *u;

    u = part->request->upstream;

    if (u == NULL || u->resolved == NULL || u->resolved->ctx == NULL) {
        return;
    }

    /* nginx clears its pointer when it frees the context of the resolver */

    part->resolver_ctx = u->resolved->ctx;
    part->resolver_handler = part->resolver_ctx->handler;
    part->resolver_ctx->handler = ngx_http_profile_resolver_handler;
}


PROF_HOT void
ngx_http_profile_unwrap(ngx_http_profile_track_t *tr)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_upstream_t      *u;
    ngx_http_profile_part_t  *part;

    if (!tr->wrapped) {
        return;
    }

    tr->wrapped = 0;

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

    r = tr->request;
    c = r->connection;

    if (r->request_body
        && r->request_body->post_handler == ngx_http_profile_post_handler)
    {
        r->request_body->post_handler = tr->part.post_handler;
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
    ngx_http_profile_part_t   *part;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);
    part = tr ? ngx_http_profile_add_part(tr, r) : NULL;

    if (part == NULL || part->write_event_handler == NULL) {
        ngx_http_profile_lost(r);
        return;
    }

    /* other code has restored the pointer that it found between two turns */

    if (!tr->wrapped
        && r->write_event_handler == ngx_http_profile_write_event_handler)
    {
        r->write_event_handler = part->write_event_handler;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;

    ngx_http_profile_turn(tr, &wake, (uintptr_t) part->write_event_handler,
                          ngx_http_profile_write_turn, r);
}


/*
 * Requests that were posted for other parts belong to this turn: the caller
 * would run them only after the turn.
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

    /* only the handlers of upstreams are replaced, whose data is the request */

    r = rctx->data;

    tr = ngx_http_profile_find_track(r);
    part = tr ? ngx_http_profile_add_part(tr, r) : NULL;

    if (part == NULL || part->resolver_handler == NULL) {
        ngx_http_profile_lost(r);
        return;
    }

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


PROF_GLUE static void
ngx_http_profile_post_handler(ngx_http_request_t *r)
{
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL || tr->part.post_handler == NULL) {
        ngx_http_profile_lost(r);
        return;
    }

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = r;
    wake.body = 1;

    ngx_http_profile_turn(tr, &wake, (uintptr_t) tr->part.post_handler,
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
 * The module's pointer was called for a request that is not tracked: other code
 * has kept the pointer for longer.  nginx's pointer is not known any more.
 */

static void
ngx_http_profile_lost(ngx_http_request_t *r)
{
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "profile: handler called for a request that is not tracked");
}


/* the handler of both events of a stream's connection */

PROF_GLUE static void
ngx_http_profile_stream_handler(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    c = ev->data;
    tr = ngx_http_profile_find_track(c->data);

    if (tr == NULL) {
        ngx_http_profile_lost(c->data);
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
