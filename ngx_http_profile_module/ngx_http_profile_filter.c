
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Replacing the response.  The filters stand below all filters that produce
 * the body (gzip and range among them) and above those that frame it for the
 * protocol.  The original response ends here: its header is noted, its body is
 * consumed.  When the reply is ready, it goes on from here in its place.
 */


#include "ngx_http_profile.h"


static ngx_int_t ngx_http_profile_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_profile_filter_header(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_filter_body(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_profile_replace(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_send_reply(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_reply_header(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_reply_optional(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_add_header(ngx_http_request_t *r,
    const char *key, ngx_str_t *value);
static ngx_int_t ngx_http_profile_file_name(ngx_http_profile_ctx_t *ctx,
    ngx_str_t *value);
static u_char *ngx_http_profile_safe_name(u_char *p, u_char *last,
    ngx_str_t *part);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


static ngx_str_t  ngx_http_profile_no_store =
    ngx_string("private, no-store");
static ngx_str_t  ngx_http_profile_nosniff = ngx_string("nosniff");
static ngx_str_t  ngx_http_profile_retry_after = ngx_string("1");


ngx_int_t
ngx_http_profile_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_profile_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_profile_body_filter;

    return NGX_OK;
}


/* all that the filters cost while nobody profiles */

static ngx_int_t
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
    ngx_http_profile_ctx_t  *ctx;

    ctx = (r == r->main) ? ngx_http_profile_find(r) : NULL;

    if (ctx == NULL || !ctx->tracked) {
        return ngx_http_next_header_filter(r);
    }

    /* requests that never came to their content are decided here */

    if (ngx_http_profile_admit(ctx) != NGX_OK) {
        ngx_http_profile_drop(ctx);
        return ngx_http_next_header_filter(r);
    }

    /* after these nginx does not wait for another response */

    if (r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS
        || r->filter_finalize)
    {
        ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                      "profile: a %s cannot be replaced",
                      r->filter_finalize ? "response of a filter"
                                         : "switch of protocols");

        ngx_http_profile_drop(ctx);
        return ngx_http_next_header_filter(r);
    }

    return ngx_http_profile_replace(ctx);
}


static ngx_int_t
ngx_http_profile_replace(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    ctx->status = r->headers_out.status;
    ctx->sink = 1;

    /* as the header filter would have done */

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
     * Not before the end: code that flushes, as Lua's ngx.flush(true), waits
     * until nothing is buffered.  After an upstream that failed midway only a
     * flush comes, and the request is finalized.
     */

    for ( /* void */ ; in; in = in->next) {
        in->buf->pos = in->buf->last;
        in->buf->file_pos = in->buf->file_last;

        if (in->buf->last_buf || (in->buf->flush && r->upstream)) {
            r->connection->buffered |= NGX_HTTP_PROFILE_BUFFERED;
        }
    }

    if (ctx->reply.ready) {
        return ngx_http_profile_send_reply(ctx);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_send_reply(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t          out;
    ngx_http_request_t  *r;

    r = ctx->request;

    r->connection->buffered &= ~NGX_HTTP_PROFILE_BUFFERED;

    if (ngx_http_profile_reply_header(ctx) != NGX_OK) {
        ngx_http_profile_drop(ctx);
        return NGX_ERROR;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        ngx_http_profile_drop(ctx);
        return NGX_ERROR;
    }

    b->pos = ctx->reply.body.data;
    b->last = b->pos + ctx->reply.body.len;
    b->memory = b->last > b->pos;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    /* the filters are out of the way from here on */

    ngx_http_profile_drop(ctx);

    rc = ngx_http_next_header_filter(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_next_body_filter(r, &out);
}


static ngx_int_t
ngx_http_profile_reply_header(ngx_http_profile_ctx_t *ctx)
{
    ngx_str_t            value;
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_http_clean_header(r);

    r->err_status = 0;
    r->header_sent = 0;
    r->header_only = 0;
    r->gzip_vary = 0;
    r->expect_trailers = 0;
    r->allow_ranges = 0;

    /* the original's rate is not the profile's */

    r->limit_rate = 0;
    r->limit_rate_set = 1;

    r->headers_out.status = ctx->reply.status;
    r->headers_out.content_type = ctx->reply.content_type;
    r->headers_out.content_type_len = ctx->reply.content_type.len;
    r->headers_out.content_length_n = ctx->reply.body.len;

    value.data = ctx->id;
    value.len = NGX_HTTP_PROFILE_ID_LEN;

    if (ngx_http_profile_add_header(r, "Cache-Control",
                                    &ngx_http_profile_no_store)
        != NGX_OK
        || ngx_http_profile_add_header(r, "X-Content-Type-Options",
                                       &ngx_http_profile_nosniff)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->reply.status != NGX_HTTP_OK) {

        if (ctx->reply.status == NGX_HTTP_TOO_MANY_REQUESTS) {
            return ngx_http_profile_add_header(r, "Retry-After",
                                               &ngx_http_profile_retry_after);
        }

        return NGX_OK;
    }

    if (ngx_http_profile_add_header(r, "X-Profile-Id", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    value.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%03ui", ctx->status) - value.data;

    if (ngx_http_profile_add_header(r, "X-Profiled-Status", &value)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_profile_reply_optional(ctx);
}


/* headers of some formats and some clients only */

static ngx_int_t
ngx_http_profile_reply_optional(ngx_http_profile_ctx_t *ctx)
{
    ngx_str_t                  value;
    ngx_http_request_t        *r;
    ngx_http_profile_reply_t  *reply;

    r = ctx->request;
    reply = &ctx->reply;

    if (reply->csp.len
        && ngx_http_profile_add_header(r, "Content-Security-Policy",
                                       &reply->csp)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (reply->vary.len
        && ngx_http_profile_add_header(r, "Vary", &reply->vary) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (reply->encoding.len
        && ngx_http_profile_add_header(r, "Content-Encoding",
                                       &reply->encoding)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (reply->extension.len == 0) {
        return NGX_OK;
    }

    if (ngx_http_profile_file_name(ctx, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_profile_add_header(r, "Content-Disposition", &value);
}


static ngx_int_t
ngx_http_profile_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);

    h->value.data = ngx_pstrdup(r->pool, value);
    h->value.len = value->len;

    return h->value.data ? NGX_OK : NGX_ERROR;
}


/* host, path, mode and time, made of characters that no client quotes */

static ngx_int_t
ngx_http_profile_file_name(ngx_http_profile_ctx_t *ctx, ngx_str_t *value)
{
    u_char              *p, *last;
    ngx_tm_t             tm;
    ngx_str_t            mode;
    ngx_http_request_t  *r;
    u_char               buf[256];

    r = ctx->request;

    last = buf + sizeof(buf) - 64;

    p = ngx_cpymem(buf, "attachment; filename=\"",
                   sizeof("attachment; filename=\"") - 1);

    p = ngx_http_profile_safe_name(p, ngx_min(p + 64, last),
                                   &r->headers_in.server);
    p = ngx_http_profile_safe_name(p, last, &r->uri);

    if (p[-1] != '"' && p[-1] != '-') {
        *p++ = '-';
    }

    ngx_str_set(&mode, "wall-");

    if ((ctx->trigger.mode_given ? ctx->trigger.mode : ctx->conf->mode)
        == PROF_MODE_CPU)
    {
        ngx_str_set(&mode, "cpu-");
    }

    ngx_gmtime(r->start_sec, &tm);

    p = ngx_slprintf(p, buf + sizeof(buf), "%V%4d%02d%02dT%02d%02d%02dZ.%V\"",
                     &mode, tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                     tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                     &ctx->reply.extension);

    value->len = p - buf;
    value->data = ngx_pnalloc(r->pool, value->len);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(value->data, buf, value->len);

    return NGX_OK;
}


static u_char *
ngx_http_profile_safe_name(u_char *p, u_char *last, ngx_str_t *part)
{
    u_char  ch;
    size_t  i;

    for (i = 0; i < part->len && p < last; i++) {
        ch = part->data[i];

        if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
            || (ch >= '0' && ch <= '9') || ch == '.')
        {
            *p++ = ch;

        } else if (p[-1] != '-' && p[-1] != '"') {
            *p++ = '-';
        }
    }

    return p;
}


/*
 * Answers with an error before the content is made, in place of the content
 * phase: what it returns is what a checker returns.
 */

ngx_int_t
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
