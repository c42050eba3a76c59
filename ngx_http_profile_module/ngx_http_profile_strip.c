
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes the trigger out of the request, and puts it back when the request
 * turns out not to be permitted.  $args, $arg_..., $request_uri and what is
 * passed to upstreams are without it from the POST_READ phase on; $request
 * (the request line as the client sent it) keeps it.
 */


#include "ngx_http_profile.h"


static ngx_int_t ngx_http_profile_strip_args(ngx_http_profile_ctx_t *ctx);
static u_char *ngx_http_profile_copy_args(ngx_http_profile_trigger_t *t,
    u_char *dst, u_char *p, u_char *last);
static ngx_int_t ngx_http_profile_strip_header(ngx_http_profile_ctx_t *ctx);


ngx_int_t
ngx_http_profile_strip(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->trigger.arg.len && ctx->args.data == NULL
        && ngx_http_profile_strip_args(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->trigger.header.len && ctx->header == NULL
        && ngx_http_profile_strip_header(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_profile_unstrip(ngx_http_profile_ctx_t *ctx)
{
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = ctx->request;

    /* not if a rewrite has made new ones meanwhile */

    if (ctx->args.data && r->args.data == ctx->stripped_args.data) {
        r->args = ctx->args;
        ngx_str_null(&ctx->args);
    }

    if (ctx->unparsed_uri.data
        && r->unparsed_uri.data == ctx->stripped_uri.data)
    {
        r->unparsed_uri = ctx->unparsed_uri;
    }

    if (ctx->header) {
        h = ngx_list_push(&r->headers_in.headers);

        if (h) {
            *h = *ctx->header;
            ctx->header = NULL;
        }
    }
}


static ngx_int_t
ngx_http_profile_strip_args(ngx_http_profile_ctx_t *ctx)
{
    u_char              *p, *q, *last, *uri;
    ngx_http_request_t  *r;

    r = ctx->request;

    p = ngx_pnalloc(r->pool, r->args.len + 1);
    uri = ngx_pnalloc(r->pool, r->unparsed_uri.len + 1);

    if (p == NULL || uri == NULL) {
        return NGX_ERROR;
    }

    ctx->args = r->args;
    ctx->stripped_args.data = p;
    ctx->stripped_args.len = ngx_http_profile_copy_args(&ctx->trigger, p,
                                              r->args.data,
                                              r->args.data + r->args.len)
                             - p;
    r->args = ctx->stripped_args;

    last = r->unparsed_uri.data + r->unparsed_uri.len;
    q = ngx_strlchr(r->unparsed_uri.data, last, '?');

    if (q == NULL) {
        return NGX_OK;
    }

    ctx->unparsed_uri = r->unparsed_uri;
    ctx->stripped_uri.data = uri;

    uri = ngx_cpymem(uri, r->unparsed_uri.data, q - r->unparsed_uri.data);
    *uri++ = '?';
    p = ngx_http_profile_copy_args(&ctx->trigger, uri, q + 1, last);

    if (p == uri) {
        p--;
    }

    ctx->stripped_uri.len = p - ctx->stripped_uri.data;
    r->unparsed_uri = ctx->stripped_uri;

    return NGX_OK;
}


/* the arguments that are not the trigger's, in their order */

static u_char *
ngx_http_profile_copy_args(ngx_http_profile_trigger_t *t, u_char *dst,
    u_char *p, u_char *last)
{
    u_char  *start, *next;

    start = dst;

    for ( /* void */ ; p < last; p = next + 1) {

        next = ngx_strlchr(p, last, '&');
        if (next == NULL) {
            next = last;
        }

        if (ngx_http_profile_is_parameter(t, p, next) == NGX_OK) {
            continue;
        }

        if (dst != start) {
            *dst++ = '&';
        }

        dst = ngx_cpymem(dst, p, next - p);
    }

    return dst;
}


/*
 * Pointers to other elements of the list exist, so none may move: the part
 * that holds the element is split around it.
 */

static ngx_int_t
ngx_http_profile_strip_header(ngx_http_profile_ctx_t *ctx)
{
    ngx_uint_t                i;
    ngx_list_t               *list;
    ngx_table_elt_t          *h;
    ngx_list_part_t          *part, *rest, *last;
    ngx_http_request_t       *r;
    ngx_http_profile_mark_t  *mark;

    r = ctx->request;
    mark = ngx_http_get_module_ctx(r, ngx_http_profile_module);
    list = &r->headers_in.headers;

    for (part = &list->part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (&h[i] == mark->header) {
                goto found;
            }
        }
    }

    return NGX_ERROR;

found:

    ctx->header = ngx_palloc(r->pool, sizeof(ngx_table_elt_t));
    rest = ngx_palloc(r->pool, 2 * sizeof(ngx_list_part_t));

    if (ctx->header == NULL || rest == NULL) {
        return NGX_ERROR;
    }

    *ctx->header = h[i];

    if (list->last == part) {

        /* the list adds to its last part, and takes it for one of nalloc */

        last = &rest[1];

        last->elts = ngx_palloc(r->pool, list->nalloc * list->size);
        if (last->elts == NULL) {
            return NGX_ERROR;
        }

        last->nelts = 0;
        last->next = NULL;

        part->next = last;
        list->last = last;
    }

    rest->elts = &h[i + 1];
    rest->nelts = part->nelts - i - 1;
    rest->next = part->next;

    part->nelts = i;
    part->next = rest;

    return NGX_OK;
}
