
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The header of the reply.  It contains no header of the original response.
 */


#include "request/ngx_http_profile_request_private.h"


/* the hash is that of the style */

#define NGX_HTTP_PROFILE_REPLY_STYLE                                          \
    "body{font:1em/1.5 sans-serif;max-width:50em;margin:2em auto;"            \
    "padding:0 1em}pre{white-space:pre-wrap}"

#define NGX_HTTP_PROFILE_REPLY_CSP                                            \
    "default-src 'none'; base-uri 'none'; form-action 'none'; "               \
    "frame-ancestors 'none'; "                                                \
    "style-src 'sha256-yoUn5OrheL+N8G2egBj7gIDmxfwTeikjxRSbrMZf0yo='"


static ngx_int_t ngx_http_profile_reply_page(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_reply_profile(ngx_http_profile_ctx_t *ctx);


ngx_int_t
ngx_http_profile_reply_header(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_http_profile_reply_clean(r);

    if (ctx->trigger.help || ctx->reply.status != NGX_HTTP_OK) {
        if (ngx_http_profile_reply_page(ctx) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    r->headers_out.status = ctx->reply.status;
    r->headers_out.content_type = ctx->reply.content_type;
    r->headers_out.content_type_len = ctx->reply.content_type.len;
    r->headers_out.content_length_n = ctx->reply.body.len;

    if (ngx_http_profile_add_text_header(r, "Cache-Control",
                                         "private, no-store")
        != NGX_OK
        || ngx_http_profile_add_text_header(r, "X-Content-Type-Options",
                                            "nosniff")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    switch (ctx->reply.status) {

    case NGX_HTTP_OK:
        return ctx->trigger.help ? NGX_OK
                                 : ngx_http_profile_reply_profile(ctx);

    case NGX_HTTP_TOO_MANY_REQUESTS:
        return ngx_http_profile_add_text_header(r, "Retry-After", "1");

    default:
        return NGX_OK;
    }
}


/*
 * A browser gets the text, whose lines end with LF, as a page.  Without memory
 * a browser gets the text itself.
 */

static ngx_int_t
ngx_http_profile_reply_page(ngx_http_profile_ctx_t *ctx)
{
    u_char              *p, *next;
    size_t               len;
    ngx_str_t           *body, *arg;
    prof_buf_t           b;
    ngx_http_request_t  *r;

    static const char  *types[] = { "text/plain", "text/html", NULL };

    r = ctx->request;
    body = &ctx->reply.body;
    arg = &ctx->trigger.arg;

    if (ngx_http_profile_add_text_header(r, "Vary", "Accept") != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_profile_accept_type(r, types) != 1) {
        return NGX_OK;
    }

    prof_buf_init(&b);

    prof_buf_printf(&b, "<!DOCTYPE html>\n"
                    "<html lang=\"en\">\n"
                    "<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n"
                    "<title>%s</title>\n"
                    "<style>" NGX_HTTP_PROFILE_REPLY_STYLE "</style>\n"
                    "<main>\n<h1>%s</h1>\n<pre>",
                    ctx->trigger.help ? "Profiles" : "No profile",
                    ctx->trigger.help ? "Profiles of a request" : "No profile");

    for (p = body->data; p < body->data + body->len; p = next + 1) {
        next = ngx_strlchr(p, body->data + body->len, LF);

        prof_markup_text(&b, (char *) p, next - p, next - p);
        prof_buf_puts(&b, "\n");
    }

    prof_buf_puts(&b, "</pre>\n<p><a href=\"?");
    prof_markup_text(&b, (char *) r->args.data, r->args.len, r->args.len);
    prof_buf_puts(&b, "\">This page without a profile</a>\n");

    if (arg->len && !ctx->trigger.help) {
        prof_buf_printf(&b, "<p><a href=\"?%.*s=help\">All arguments</a>\n",
                        (int) arg->len, (char *) arg->data);
    }

    prof_buf_puts(&b, "</main>\n</html>\n");

    len = b.len;
    p = prof_buf_failed(&b) ? NULL : ngx_pnalloc(r->pool, len);

    if (p) {
        ngx_memcpy(p, b.data, len);
        body->data = p;
        body->len = len;

        ngx_str_set(&ctx->reply.content_type, "text/html; charset=utf-8");
    }

    prof_buf_free(&b);

    return p == NULL ? NGX_OK
           : ngx_http_profile_add_text_header(r, "Content-Security-Policy",
                                              NGX_HTTP_PROFILE_REPLY_CSP);
}


void
ngx_http_profile_reply_clean(ngx_http_request_t *r)
{
    ngx_http_clean_header(r);

    /* an upstream with HTTP/0.9 has changed the version of the request */

    if (r->http_version < NGX_HTTP_VERSION_10 && r->http_protocol.len) {
        r->http_version = NGX_HTTP_VERSION_10;
    }

    r->err_status = 0;
    r->header_sent = 0;
    r->header_only = 0;
    r->gzip_vary = 0;
    r->expect_trailers = 0;
    r->allow_ranges = 0;

    /* the rate of the original response does not apply to the profile */

    r->limit_rate = 0;
    r->limit_rate_set = 1;
}


static ngx_int_t
ngx_http_profile_reply_profile(ngx_http_profile_ctx_t *ctx)
{
    ngx_str_t                  status;
    ngx_uint_t                 i;
    ngx_http_request_t        *r;
    ngx_http_profile_reply_t  *reply;

    r = ctx->request;
    reply = &ctx->reply;

    struct {
        const char  *key;
        ngx_str_t   *value;
    } headers[] = {
        { "X-Profiled-Status", &status },
        { "X-Profile-Dropped", &reply->dropped },
        { "Content-Security-Policy", &reply->csp },
        { "Vary", &reply->vary },
        { "Content-Encoding", &reply->encoding },
        { NULL, NULL }
    };

    status.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (status.data == NULL) {
        return NGX_ERROR;
    }

    status.len = ngx_sprintf(status.data, "%03ui", ctx->status) - status.data;

    if (ngx_http_profile_add_id(r, ctx->id) != NGX_OK
        || (reply->stored && ngx_http_profile_add_link(r, ctx->id) != NGX_OK))
    {
        return NGX_ERROR;
    }

    for (i = 0; headers[i].key; i++) {
        if (headers[i].value->len
            && ngx_http_profile_add_header(r, headers[i].key,
                                           headers[i].value)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return reply->file.len ? ngx_http_profile_add_file_header(r, &reply->file)
                           : NGX_OK;
}


ngx_int_t
ngx_http_profile_add_id(ngx_http_request_t *r, u_char *id)
{
    ngx_str_t  value;

    value.len = NGX_HTTP_PROFILE_ID_LEN;

    value.data = ngx_pnalloc(r->pool, value.len);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(value.data, id, value.len);

    return ngx_http_profile_add_header(r, "X-Profile-Id", &value);
}


/*
 * Adds a link to the console's page of the profile.  The relation
 * "describedby" is registered for links to a description of the response.
 */

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
