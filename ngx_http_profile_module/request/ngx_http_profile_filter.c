
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Replaces the response.  The filters are below all filters that produce the
 * body (for example gzip and range) and above the filters that frame it for the
 * protocol.  The original response ends here: its status is noted, and its body
 * is discarded.  When the reply is ready, it passes the filters below instead.
 */


#include "request/ngx_http_profile_request_private.h"
#include "stages/ngx_http_profile_stages.h"
#include "store/ngx_http_profile_store.h"


/*
 * The number of bytes of a body that are sent at a time.  nginx sends up to
 * two megabytes at a time, which the system copies in about a millisecond;
 * this is too long for other requests of the worker.
 */
#define NGX_HTTP_PROFILE_PIECE      262144

/* ms between checks whether the request's thread operations have ended */
#define NGX_HTTP_PROFILE_CUT_AGAIN  10


static ngx_int_t ngx_http_profile_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_profile_filter_header(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_filter_body(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_profile_filter_record(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_replace(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_send_reply(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_writer(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_send(ngx_http_request_t *r,
    ngx_str_t *body);
static ngx_int_t ngx_http_profile_send_piece(ngx_http_request_t *r,
    ngx_str_t *rest);
static ngx_int_t ngx_http_profile_send_rest(ngx_http_request_t *r);
static void ngx_http_profile_rest(void *data);
static ngx_int_t ngx_http_profile_hold_writer(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_send_error(ngx_http_profile_ctx_t *ctx);
static ngx_uint_t ngx_http_profile_complete(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_check_complete(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_timeout(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_cut(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_cut_cleanups(ngx_http_request_t *r);


PROF_HOT_DATA static ngx_http_output_header_filter_pt
                                      ngx_http_next_header_filter;
PROF_HOT_DATA static ngx_http_output_body_filter_pt
                                      ngx_http_next_body_filter;


static ngx_str_t  ngx_http_profile_no_memory =
    ngx_string("the profile could not be made, see the error log\n");


void
ngx_http_profile_reply_init(void)
{
    ngx_http_profile_request_observers.error = ngx_http_profile_send_error;
    ngx_http_profile_request_observers.check =
                                            ngx_http_profile_check_complete;
    ngx_http_profile_request_observers.timeout = ngx_http_profile_timeout;
    ngx_http_profile_request_observers.freed =
                                            ngx_http_profile_record_cleanup;
    ngx_http_profile_request_observers.abandoned =
                                            ngx_http_profile_render_abandon;
}


ngx_int_t
ngx_http_profile_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_profile_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_profile_body_filter;

    return NGX_OK;
}


/* while no request is captured, the filters cost only this check */

PROF_HOT static ngx_int_t
ngx_http_profile_header_filter(ngx_http_request_t *r)
{
    if (ngx_http_profile_nlive == 0) {
        return ngx_http_next_header_filter(r);
    }

    return ngx_http_profile_filter_header(r);
}


static ngx_int_t
ngx_http_profile_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    if (ngx_http_profile_nlive == 0) {
        return ngx_http_next_body_filter(r, in);
    }

    return ngx_http_profile_filter_body(r, in);
}


__attribute__((noinline)) static ngx_int_t
ngx_http_profile_filter_header(ngx_http_request_t *r)
{
    ngx_uint_t               store;
    ngx_http_profile_ctx_t  *ctx;

    ctx = (r == r->main) ? ngx_http_profile_find(r) : NULL;

    if (ctx == NULL || !ctx->tracked || ctx->decided) {
        return ngx_http_next_header_filter(r);
    }

    /* a request that did not reach the content phase is decided here */

    if (ngx_http_profile_admit(ctx) != NGX_OK) {
        ngx_http_profile_drop(ctx);
        return ngx_http_next_header_filter(r);
    }

    if (ctx->trigger.record && ctx->reply.status == 0) {
        return ngx_http_profile_filter_record(ctx);
    }

    /* nginx does not wait for a reply that replaces such a response */

    if (r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS
        || r->filter_finalize)
    {
        store = ngx_http_profile_store(r) && ctx->reply.status == 0
                && !ctx->others;

        ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                      "profile: a %s cannot be replaced%s",
                      r->filter_finalize ? "response of a filter"
                                         : "switch of protocols",
                      store ? ", recording it" : "");

        if (store) {
            return ngx_http_profile_filter_record(ctx);
        }

        ngx_http_profile_drop(ctx);
        return ngx_http_next_header_filter(r);
    }

    return ngx_http_profile_replace(ctx);
}


/* sends the original response, with the profile's id in its header */

static ngx_int_t
ngx_http_profile_filter_record(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: record %*s, response is sent",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id);

    if (ngx_http_profile_record_header(ctx) != NGX_OK) {
        ngx_http_profile_drop(ctx);
    }

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_http_profile_replace(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: replace response, status %ui",
                   r->headers_out.status);

    ctx->status = r->headers_out.status;
    ctx->decided = 1;
    ctx->sink = 1;

    if (ctx->timedout) {
        ngx_add_timer(&ctx->timer, 1);
    }

    if (ctx->status == 0) {

        /* nginx logs 9 for a response of HTTP/0.9, which has no status */

        ctx->status = 9;
    }

    /* ngx_http_header_filter() would set these */

    r->header_sent = 1;

    if (r->method == NGX_HTTP_HEAD
        || r->headers_out.status == NGX_HTTP_NO_CONTENT
        || r->headers_out.status == NGX_HTTP_NOT_MODIFIED)
    {
        r->header_only = 1;
    }

    if (r->header_only) {
        r->connection->buffered |= NGX_HTTP_PROFILE_BUFFERED;
    }

    return NGX_OK;
}


__attribute__((noinline)) static ngx_int_t
ngx_http_profile_filter_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_profile_ctx_t  *ctx;

    ctx = ngx_http_profile_find(r);

    if (ctx == NULL || !ctx->sink) {
        return ngx_http_next_body_filter(r, in);
    }

    /*
     * The bit is set only at the end of the response: code that flushes, as
     * Lua's ngx.flush(true), waits until nothing is buffered.  If an upstream
     * fails midway, nginx sends only a flush and finalizes the request.
     */

    for ( /* void */ ; in; in = in->next) {
        in->buf->pos = in->buf->last;
        in->buf->file_pos = in->buf->file_last;

        if (in->buf->last_buf || (in->buf->flush && r->upstream)) {
            r->connection->buffered |= NGX_HTTP_PROFILE_BUFFERED;
        }
    }

    return NGX_OK;
}


/*
 * Replaces ngx_http_writer() when the original response is complete, and for
 * long responses of the console.  A filter above may still hold a part of a
 * response that failed midway; this part is not sent.
 */

static void
ngx_http_profile_writer(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_profile_ctx_t    *ctx;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;

        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ctx = ngx_http_profile_find(r);

    /* a capture that does not replace the response goes on beside it */

    if (ctx && !ctx->sink) {
        ctx = NULL;
    }

    if (ctx && ctx->others && ctx->reply.status == 0) {
        c->buffered &= ~NGX_HTTP_PROFILE_BUFFERED;
        ngx_http_profile_reply_clean(r);

        rc = ngx_http_profile_request_observers.others(ctx);

        ngx_http_finalize_request(r, rc);
        return;
    }

    if (ctx && !ctx->reply.ready) {

        /* the job is not ready, so no timeout for the client is set */

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    rc = ctx ? ngx_http_profile_send_reply(ctx)
             : ngx_http_profile_send_rest(r);

    if (rc == NGX_ERROR) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    if (c->buffered) {

        if (!wev->delayed) {
            ngx_add_timer(wev, clcf->send_timeout);
        }

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_profile_send_reply(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_str_t            body;
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: send reply, status %ui, %uz bytes",
                   ctx->reply.status, ctx->reply.body.len);

    r->connection->buffered &= ~NGX_HTTP_PROFILE_BUFFERED;

    if (ngx_http_profile_reply_header(ctx) != NGX_OK) {
        ngx_http_profile_drop(ctx);
        return NGX_ERROR;
    }

    body = ctx->reply.body;

    /* without a context the filters pass the reply on */

    ngx_http_profile_drop(ctx);

    rc = ngx_http_next_header_filter(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_profile_send(r, &body);
}


/*
 * Sends a body to the filters below, in pieces.  Other events run between two
 * pieces.  Returns NGX_OK, NGX_ERROR, or NGX_AGAIN: ngx_http_profile_writer()
 * sends the rest.
 */

static ngx_int_t
ngx_http_profile_send(ngx_http_request_t *r, ngx_str_t *body)
{
    ngx_str_t           *rest;
    ngx_pool_cleanup_t  *cln;

    if (body->len <= NGX_HTTP_PROFILE_PIECE) {
        return ngx_http_profile_send_piece(r, body);
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_str_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_profile_rest;

    rest = cln->data;
    *rest = *body;

    return ngx_http_profile_send_piece(r, rest);
}


static ngx_int_t
ngx_http_profile_send_piece(ngx_http_request_t *r, ngx_str_t *rest)
{
    size_t             len;
    ngx_int_t          rc;
    ngx_buf_t         *b;
    ngx_chain_t        out;
    ngx_connection_t  *c;

    c = r->connection;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    len = ngx_min(rest->len, NGX_HTTP_PROFILE_PIECE);

    b->pos = rest->data;
    b->last = b->pos + len;
    b->memory = len != 0;

    rest->data += len;
    rest->len -= len;

    if (rest->len) {
        b->flush = 1;
        c->buffered |= NGX_HTTP_PROFILE_BUFFERED;

    } else {
        b->last_buf = 1;
        b->last_in_chain = 1;
        c->buffered &= ~NGX_HTTP_PROFILE_BUFFERED;
    }

    out.buf = b;
    out.next = NULL;

    rc = ngx_http_next_body_filter(r, &out);

    if (rest->len == 0 || rc == NGX_ERROR) {
        return rc;
    }

    /* the kernel reports no event if it has taken all bytes */

    if (rc == NGX_OK) {
        ngx_post_event(c->write, &ngx_posted_next_events);
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_profile_send_rest(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_str_t           *rest;
    ngx_pool_cleanup_t  *cln;

    rest = NULL;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_profile_rest) {
            rest = cln->data;
            break;
        }
    }

    if (rest == NULL || rest->len == 0) {
        return ngx_http_next_body_filter(r, NULL);
    }

    /* the filters below may still hold a part of the last piece */

    if (r->connection->buffered & ~NGX_HTTP_PROFILE_BUFFERED) {

        rc = ngx_http_next_body_filter(r, NULL);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return ngx_http_profile_send_piece(r, rest);
}


/*
 * Does nothing: the address of this handler marks the pool's cleanup whose
 * data is the rest of the body.
 */

static void
ngx_http_profile_rest(void *data)
{
}


/*
 * Sends an error and skips the content phase.  Returns the result of a checker
 * of nginx's phase engine.
 */

static ngx_int_t
ngx_http_profile_send_error(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    rc = ngx_http_discard_request_body(r);

    if (rc == NGX_OK) {
        rc = ngx_http_profile_send_reply(ctx);
    }

    ngx_http_finalize_request(r, rc);

    return NGX_OK;
}


/*
 * Sends a response of the console.  The filters above change responses of the
 * site, so this response does not pass them.  The response of a subrequest
 * passes all filters, because some of them put it into the main response.
 */

ngx_int_t
ngx_http_profile_output(ngx_http_request_t *r, ngx_str_t *body)
{
    ngx_int_t                rc;
    ngx_buf_t               *b;
    ngx_chain_t              out;
    ngx_http_profile_ctx_t  *ctx;

    if (r != r->main) {
        rc = ngx_http_send_header(r);

    } else {
        r->err_status = 0;
        r->allow_ranges = 0;

        rc = ngx_http_profile_header_filter(r);
    }

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    ctx = (r == r->main) ? ngx_http_profile_find(r) : NULL;

    if (r == r->main && (ctx == NULL || !ctx->sink)) {
        rc = ngx_http_profile_send(r, body);

        return (rc == NGX_AGAIN) ? ngx_http_profile_hold_writer(r) : rc;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = body->data;
    b->last = b->pos + body->len;
    b->memory = body->len != 0;
    b->last_buf = (r == r->main);
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ctx ? ngx_http_profile_filter_body(r, &out)
               : ngx_http_output_filter(r, &out);
}


/*
 * Sets the module's writer, which sends the rest of the response and then
 * finalizes the request.  nginx's own writer does not know the rest.
 */

static ngx_int_t
ngx_http_profile_hold_writer(ngx_http_request_t *r)
{
    ngx_event_t               *wev;
    ngx_http_core_loc_conf_t  *clcf;

    /* if only the filters below hold data, nginx's own writer sends it */

    if (!(r->connection->buffered & NGX_HTTP_PROFILE_BUFFERED)) {
        return NGX_AGAIN;
    }

    wev = r->connection->write;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    r->http_state = NGX_HTTP_WRITING_REQUEST_STATE;
    r->read_event_handler = r->discard_body
                            ? ngx_http_discarded_request_body_handler
                            : ngx_http_test_reading;
    r->write_event_handler = ngx_http_profile_writer;

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        return NGX_ERROR;
    }

    r->main->count++;

    return NGX_DONE;
}


/*
 * Returns whether nginx has completed the response that is discarded: the
 * request is finalized, and no filter holds a part of the response.
 */

static ngx_uint_t
ngx_http_profile_complete(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    return ctx->sink
           && r->http_state == NGX_HTTP_WRITING_REQUEST_STATE
           && !r->buffered
           && r->postponed == NULL
           && !(r->connection->buffered & NGX_HTTP_GZIP_BUFFERED);
}


/* ends the capture and starts rendering, if the request is complete */

static void
ngx_http_profile_check_complete(ngx_http_profile_ctx_t *ctx)
{
    ngx_event_t         *wev;
    ngx_http_request_t  *r;

    if (!ctx->tracked || !ngx_http_profile_complete(ctx)) {
        return;
    }

    if (ctx->reply.status == 0 && !ctx->others) {
        ngx_http_profile_record_room(ctx);
    }

    ngx_http_profile_end(ctx);
    ngx_http_profile_end_tracking(ctx);
    ngx_http_profile_account_own(ctx->track, ctx->timedout);

    r = ctx->request;
    wev = r->connection->write;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: original response complete");

    r->write_event_handler = ngx_http_profile_writer;

    if (wev->timer_set && !wev->delayed) {
        ngx_del_timer(wev);
    }

    if (ctx->reply.status == 0 && !ctx->others) {

        ngx_http_profile_add_facts(ctx);

        if (ctx->profile && ngx_http_profile_render(ctx, 1) == NGX_OK) {
            return;
        }

        ngx_http_profile_set_error(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                   &ngx_http_profile_no_memory);
    }

    ctx->reply.ready = 1;
    ngx_post_event(wev, &ngx_posted_events);
}


/* ends the capture; the response of a recorded request continues */

static void
ngx_http_profile_timeout(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->record) {
        ngx_http_profile_record_capture(ctx);
        ngx_http_profile_drop(ctx);
        return;
    }

    ngx_http_profile_last_gap(ctx->track);
    ngx_http_profile_end(ctx);

    if (ctx->sink && ctx->tracked) {
        ngx_http_profile_cut(ctx);
    }
}


/*
 * Ends a response that no client receives.  A response that is replaced by its
 * profile may be endless.  After the capture, the rest of the response is of
 * no use.  The code that makes it is stopped as if the client had
 * disconnected, but the request stays, for the profile.
 */

static void
ngx_http_profile_cut(ngx_http_profile_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    /* thread operations of the request use its buffers */

    if (r->blocked) {
        ngx_add_timer(&ctx->timer, NGX_HTTP_PROFILE_CUT_AGAIN);
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "profile: cut response");

    ngx_http_profile_unwrap(ctx->track);
    ngx_http_profile_cut_cleanups(r);

    r->count = r->discard_body ? 2 : 1;
    r->posted_requests = NULL;
    r->postponed = NULL;
    r->buffered = 0;

    c->data = r;
    c->buffered &= NGX_LOWLEVEL_BUFFERED;
    c->buffered |= NGX_HTTP_PROFILE_BUFFERED;
    c->write->delayed = 0;

    if (r->reading_body) {
        r->keepalive = 0;
        r->lingering_close = 1;
    }

    /* ngx_http_finalize_request() sets these when data is left to send */

    r->http_state = NGX_HTTP_WRITING_REQUEST_STATE;
    r->read_event_handler = r->discard_body
                            ? ngx_http_discarded_request_body_handler
                            : ngx_http_test_reading;

    ngx_http_profile_check_complete(ctx);
}


/*
 * Calls the cleanup handlers, as ngx_http_terminate_request() does.  Handlers
 * may finalize requests, so one more reference keeps the main request.
 */

static void
ngx_http_profile_cut_cleanups(ngx_http_request_t *r)
{
    ngx_http_cleanup_t  *cln;

    r->count++;

    cln = r->cleanup;
    r->cleanup = NULL;

    for ( /* void */ ; cln; cln = cln->next) {
        if (cln->handler) {
            cln->handler(cln->data);
        }
    }
}
