
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Sends the module's own responses: replies, and answers of calls.
 */


#include "request/ngx_http_profile_request_private.h"


/*
 * The number of bytes of a body that are sent at a time.  nginx sends up to
 * two megabytes at a time, which the system copies in about a millisecond;
 * this is too long for other requests of the worker.
 */
#define NGX_HTTP_PROFILE_PIECE  262144


static ngx_int_t ngx_http_profile_hold_writer(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_send_piece(ngx_http_request_t *r,
    ngx_str_t *rest);
static void ngx_http_profile_rest(void *data);


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
 * Sends a body to the filters below, in pieces.  Other events run between two
 * pieces.  Returns NGX_OK, NGX_ERROR, or NGX_AGAIN: ngx_http_profile_writer()
 * sends the rest.
 */

ngx_int_t
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

    rc = ngx_http_profile_next_body_filter(r, &out);

    if (rest->len == 0 || rc == NGX_ERROR) {
        return rc;
    }

    /* the kernel reports no event if it has taken all bytes */

    if (rc == NGX_OK) {
        ngx_post_event(c->write, &ngx_posted_next_events);
    }

    return NGX_AGAIN;
}


ngx_int_t
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
        return ngx_http_profile_next_body_filter(r, NULL);
    }

    /* the filters below may still hold a part of the last piece */

    if (r->connection->buffered & ~NGX_HTTP_PROFILE_BUFFERED) {

        rc = ngx_http_profile_next_body_filter(r, NULL);

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
