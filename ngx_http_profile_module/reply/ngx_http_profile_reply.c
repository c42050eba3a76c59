
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The header of the reply: nothing of the original response's, and what tells
 * caches and browsers how to treat a profile.
 */


#include "core/ngx_http_profile_param.h"
#include "request/ngx_http_profile_request.h"
#include "reply/ngx_http_profile_reply.h"


static ngx_int_t ngx_http_profile_reply_optional(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_file_name(ngx_http_profile_ctx_t *ctx,
    ngx_str_t *value);


static ngx_str_t  ngx_http_profile_no_store =
    ngx_string("private, no-store");
static ngx_str_t  ngx_http_profile_nosniff = ngx_string("nosniff");
static ngx_str_t  ngx_http_profile_retry_after = ngx_string("1");


ngx_int_t
ngx_http_profile_reply_header(ngx_http_profile_ctx_t *ctx)
{
    ngx_str_t            value;
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_http_clean_header(r);

    /* an upstream that speaks HTTP/0.9 has made it the client's version */

    if (r->http_version < NGX_HTTP_VERSION_10 && r->http_protocol.len) {
        r->http_version = NGX_HTTP_VERSION_10;
    }

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

    if (ngx_http_profile_add_id(r, ctx->id) != NGX_OK) {
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

    if (reply->stored && ngx_http_profile_add_link(r, ctx->id) != NGX_OK) {
        return NGX_ERROR;
    }

    if (reply->dropped.len
        && ngx_http_profile_add_header(r, "X-Profile-Dropped",
                                       &reply->dropped)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

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


ngx_int_t
ngx_http_profile_add_id(ngx_http_request_t *r, u_char *id)
{
    ngx_str_t  value;

    value.data = id;
    value.len = NGX_HTTP_PROFILE_ID_LEN;

    return ngx_http_profile_add_header(r, "X-Profile-Id", &value);
}


/* where the profile is: the relation is one that is registered for this */

ngx_int_t
ngx_http_profile_add_link(ngx_http_request_t *r, u_char *id)
{
    u_char     *p;
    ngx_str_t  *url, value;

    url = ngx_http_profile_console_url(r);

    if (url == NULL) {
        return NGX_OK;
    }

    value.len = sizeof("<p/>; rel=\"describedby\"; title=\"profile\"") - 1
                + url->len + NGX_HTTP_PROFILE_ID_LEN;

    p = ngx_pnalloc(r->pool, value.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;

    ngx_sprintf(p, "<%Vp/%*s>; rel=\"describedby\"; title=\"profile\"",
                url, (size_t) NGX_HTTP_PROFILE_ID_LEN, id);

    return ngx_http_profile_add_header(r, "Link", &value);
}


/* host, path, mode and time, made of characters that no client quotes */

static ngx_int_t
ngx_http_profile_file_name(ngx_http_profile_ctx_t *ctx, ngx_str_t *value)
{
    u_char              *p, *last;
    ngx_tm_t             tm;
    ngx_str_t           *mode;
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

    mode = ngx_http_profile_mode_name(ctx->trigger.mode_given
                                      ? ctx->trigger.mode : ctx->conf->mode);

    ngx_gmtime(r->start_sec, &tm);

    p = ngx_slprintf(p, buf + sizeof(buf), "%V-%4d%02d%02dT%02d%02d%02dZ.%V\"",
                     mode, tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
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


/* what may follow a quote, or another part */

u_char *
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
