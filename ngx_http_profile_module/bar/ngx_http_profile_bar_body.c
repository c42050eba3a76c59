
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Inserts the bar in a body.  The filter passes on each buffer at once, as a
 * shadow.  Between two calls the filter holds back only the last bytes, if
 * they may be the beginning of the end tag.  A page without the end tag gets
 * its bar at the end.
 */


#include "bar/ngx_http_profile_bar.h"


typedef struct {
    ngx_http_request_t          *request;
    ngx_http_profile_bar_ctx_t  *ctx;
    ngx_chain_t                 *out;
    ngx_chain_t                **last;
} ngx_http_profile_bar_out_t;


static ngx_int_t ngx_http_profile_bar_buf(ngx_http_profile_bar_out_t *out,
    ngx_buf_t *b);
static ngx_int_t ngx_http_profile_bar_data(ngx_http_profile_bar_out_t *out,
    ngx_buf_t *b, ngx_buf_t **rest);
static void ngx_http_profile_bar_special(ngx_buf_t *b);
static ngx_int_t ngx_http_profile_bar_text(ngx_http_profile_bar_out_t *out,
    u_char *p, size_t len);
static ngx_int_t ngx_http_profile_bar_held(ngx_http_profile_bar_out_t *out,
    size_t len);
static ngx_buf_t *ngx_http_profile_bar_shadow(ngx_http_profile_bar_out_t *out,
    ngx_buf_t *b);
static ngx_buf_t *ngx_http_profile_bar_add(ngx_http_profile_bar_out_t *out);
static void ngx_http_profile_bar_sent(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx);


ngx_int_t
ngx_http_profile_bar_body(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_chain_t *in,
    ngx_http_output_body_filter_pt next)
{
    ngx_int_t                    rc;
    ngx_chain_t                **cl;
    ngx_http_profile_bar_out_t   out;

    if (in == NULL || ctx->inserted) {
        rc = next(r, in);
        ngx_http_profile_bar_sent(r, ctx);

        return rc;
    }

    out.request = r;
    out.ctx = ctx;
    out.out = NULL;
    out.last = &out.out;

    for ( /* void */ ; in; in = in->next) {
        if (ngx_http_profile_bar_buf(&out, in->buf) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    rc = (out.out == NULL) ? NGX_OK : next(r, out.out);

    for (cl = &ctx->busy; *cl; cl = &(*cl)->next) { /* void */ }

    *cl = out.out;

    ngx_http_profile_bar_sent(r, ctx);

    return rc;
}


static ngx_int_t
ngx_http_profile_bar_buf(ngx_http_profile_bar_out_t *out, ngx_buf_t *b)
{
    ngx_buf_t                   *rest;
    ngx_http_profile_bar_ctx_t  *ctx;

    ctx = out->ctx;
    rest = NULL;

    if (!ctx->inserted && ngx_buf_in_memory(b) && b->pos < b->last) {

        if (ngx_http_profile_bar_data(out, b, &rest) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {

        if (ngx_buf_size(b) && ngx_http_profile_bar_held(out, ctx->nheld)
                               != NGX_OK)
        {
            return NGX_ERROR;
        }

        rest = ngx_http_profile_bar_shadow(out, b);
        if (rest == NULL) {
            return NGX_ERROR;
        }
    }

    if (!b->last_buf || ctx->inserted) {
        return NGX_OK;
    }

    /* the body has no end tag */

    if (rest) {
        rest->last_buf = 0;
        rest->last_in_chain = 0;

        if (ngx_buf_size(rest) == 0) {
            ngx_http_profile_bar_special(rest);
        }
    }

    ctx->inserted = 1;

    if (ngx_http_profile_bar_held(out, ctx->nheld) != NGX_OK
        || ngx_http_profile_bar_text(out, ctx->snippet.data, ctx->snippet.len)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    rest = ngx_http_profile_bar_add(out);
    if (rest == NULL) {
        return NGX_ERROR;
    }

    rest->last_buf = 1;
    rest->last_in_chain = 1;

    return NGX_OK;
}


/* *rest is the shadow of the buffer; NULL: all of its bytes are held back */

static ngx_int_t
ngx_http_profile_bar_data(ngx_http_profile_bar_out_t *out, ngx_buf_t *b,
    ngx_buf_t **rest)
{
    size_t                       len, begin, keep;
    ptrdiff_t                    at;
    ngx_buf_t                   *shadow;
    ngx_uint_t                   found;
    ngx_http_profile_bar_ctx_t  *ctx;

    ctx = out->ctx;

    len = b->last - b->pos;
    found = prof_html_scan(&ctx->html, b->pos, len, &at);
    begin = (at < 0) ? 0 : at;

    if (ngx_http_profile_bar_held(out, at < 0 ? ctx->nheld + at : ctx->nheld)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    keep = 0;

    if (found) {
        ctx->inserted = 1;

        if (ngx_http_profile_bar_text(out, b->pos, begin) != NGX_OK
            || ngx_http_profile_bar_text(out, ctx->snippet.data,
                                         ctx->snippet.len)
               != NGX_OK
            || ngx_http_profile_bar_held(out, ctx->nheld) != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else {
        keep = len - begin;
        ngx_memcpy(&ctx->held[ctx->nheld], b->last - keep, keep);
        ctx->nheld += keep;
        begin = 0;

        if (keep == len && !b->flush && !b->sync && !b->last_in_chain
            && !b->last_buf)
        {
            b->pos = b->last;
            b->file_pos = b->file_last;

            return NGX_OK;
        }
    }

    shadow = ngx_http_profile_bar_shadow(out, b);
    if (shadow == NULL) {
        return NGX_ERROR;
    }

    shadow->pos += begin;
    shadow->last -= keep;
    shadow->in_file = 0;

    *rest = shadow;

    if (keep == len) {
        ngx_http_profile_bar_special(shadow);
    }

    return NGX_OK;
}


/* removes the data of a buffer, and leaves its flags */

static void
ngx_http_profile_bar_special(ngx_buf_t *b)
{
    b->temporary = 0;
    b->memory = 0;
    b->mmap = 0;
    b->in_file = 0;
    b->file_pos = 0;
    b->file_last = 0;
    b->sync = 1;
}


static ngx_int_t
ngx_http_profile_bar_text(ngx_http_profile_bar_out_t *out, u_char *p,
    size_t len)
{
    ngx_buf_t  *b;

    if (len == 0) {
        return NGX_OK;
    }

    b = ngx_http_profile_bar_add(out);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = p;
    b->last = p + len;
    b->start = p;
    b->end = b->last;
    b->memory = 1;

    return NGX_OK;
}


/* passes on the first of the bytes that are held back */

static ngx_int_t
ngx_http_profile_bar_held(ngx_http_profile_bar_out_t *out, size_t len)
{
    u_char                      *p;
    ngx_http_profile_bar_ctx_t  *ctx;

    ctx = out->ctx;

    if (len == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(out->request->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, ctx->held, len);

    ctx->nheld -= len;
    ngx_memmove(ctx->held, &ctx->held[len], ctx->nheld);

    return ngx_http_profile_bar_text(out, p, len);
}


/*
 * Appends a buffer with the same data. nginx updates b when the shadow has
 * been sent.
 */

static ngx_buf_t *
ngx_http_profile_bar_shadow(ngx_http_profile_bar_out_t *out, ngx_buf_t *b)
{
    ngx_buf_t  *shadow;

    shadow = ngx_http_profile_bar_add(out);
    if (shadow == NULL) {
        return NULL;
    }

    *shadow = *b;

    shadow->tag = (ngx_buf_tag_t) &ngx_http_profile_bar_filter_module;
    shadow->shadow = b;
    shadow->last_shadow = 1;

    return shadow;
}


static ngx_buf_t *
ngx_http_profile_bar_add(ngx_http_profile_bar_out_t *out)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = ngx_chain_get_free_buf(out->request->pool, &out->ctx->free);
    if (cl == NULL) {
        return NULL;
    }

    b = cl->buf;

    ngx_memzero(b, sizeof(ngx_buf_t));
    b->tag = (ngx_buf_tag_t) &ngx_http_profile_bar_filter_module;

    *out->last = cl;
    out->last = &cl->next;

    return b;
}


static void
ngx_http_profile_bar_sent(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    while (ctx->busy) {
        cl = ctx->busy;
        b = cl->buf;

        if (ngx_buf_size(b) != 0) {
            break;
        }

        if (b->shadow) {
            b->shadow->pos = b->shadow->last;
            b->shadow->file_pos = b->shadow->file_last;
        }

        ctx->busy = cl->next;

        /* buffers of files are not reused: they are few, and may be in use */

        if (ngx_buf_in_memory(b)) {
            cl->next = ctx->free;
            ctx->free = cl;
        }
    }
}
