
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes the trigger out of the request, and puts it back if the request is not
 * permitted.  While the trigger is out, $args, $arg_..., $http_...,
 * $request_uri and requests to upstreams do not contain it.  $request (the
 * request line as the client sent it) always contains it.
 *
 * Both functions may be called any number of times.  They do not change a value
 * that other code has replaced meanwhile.
 */


#include "request/ngx_http_profile_trigger.h"


static ngx_int_t ngx_http_profile_strip_args(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_strip_uri(ngx_http_profile_ctx_t *ctx);
static u_char *ngx_http_profile_copy_args(ngx_http_profile_trigger_t *t,
    u_char *dst, u_char *p, u_char *last);
static ngx_int_t ngx_http_profile_strip_headers(ngx_http_profile_ctx_t *ctx);
static ngx_uint_t ngx_http_profile_split_headers(ngx_http_profile_ctx_t *ctx,
    ngx_list_part_t *runs);
static ngx_int_t ngx_http_profile_unstrip_headers(ngx_http_profile_ctx_t *ctx);


ngx_int_t
ngx_http_profile_strip(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->trigger.arg.len
        && (ngx_http_profile_strip_args(ctx) != NGX_OK
            || ngx_http_profile_strip_uri(ctx) != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (ctx->trigger.header.len
        && ngx_http_profile_strip_headers(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_profile_unstrip(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->stripped_args.data && r->args.data == ctx->stripped_args.data) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: arguments \"%V\" restored", &ctx->args);

        r->args = ctx->args;
    }

    if (ctx->stripped_uri.data
        && r->unparsed_uri.data == ctx->stripped_uri.data)
    {
        r->unparsed_uri = ctx->unparsed_uri;
    }

    if (ctx->stripped_headers
        && ngx_http_profile_unstrip_headers(ctx) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "profile: no memory to restore \"%V\"",
                      &ctx->trigger.header);
    }
}


static ngx_int_t
ngx_http_profile_strip_args(ngx_http_profile_ctx_t *ctx)
{
    u_char              *p, *last;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->stripped_args.data && r->args.data == ctx->stripped_args.data) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, r->args.len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_http_profile_copy_args(&ctx->trigger, p, r->args.data,
                                      r->args.data + r->args.len);

    ctx->args = r->args;

    ctx->stripped_args.data = p;
    ctx->stripped_args.len = last - p;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: arguments \"%V\" become \"%V\"",
                   &ctx->args, &ctx->stripped_args);

    r->args = ctx->stripped_args;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_strip_uri(ngx_http_profile_ctx_t *ctx)
{
    u_char              *p, *q, *uri, *last;
    ngx_http_request_t  *r;

    r = ctx->request;

    last = r->unparsed_uri.data + r->unparsed_uri.len;
    q = ngx_strlchr(r->unparsed_uri.data, last, '?');

    if (q == NULL
        || (ctx->stripped_uri.data
            && r->unparsed_uri.data == ctx->stripped_uri.data))
    {
        return NGX_OK;
    }

    uri = ngx_pnalloc(r->pool, r->unparsed_uri.len + 1);
    if (uri == NULL) {
        return NGX_ERROR;
    }

    q++;

    p = ngx_cpymem(uri, r->unparsed_uri.data, q - r->unparsed_uri.data);
    last = ngx_http_profile_copy_args(&ctx->trigger, p, q, last);

    if (last == p) {

        /* no arguments are left, so the question mark is removed */

        last--;
    }

    ctx->unparsed_uri = r->unparsed_uri;

    ctx->stripped_uri.data = uri;
    ctx->stripped_uri.len = last - uri;

    r->unparsed_uri = ctx->stripped_uri;

    return NGX_OK;
}


/* copies the arguments of the application in their order */

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

        if (ngx_http_profile_is_parameter(t, p, next)) {
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
 * Pointers to headers exist, so headers must not move.  Code that reads a list
 * expects that only its first part can be empty.  So the list gets new parts,
 * which refer to the remaining headers in the memory of the old parts.
 */

static ngx_int_t
ngx_http_profile_strip_headers(ngx_http_profile_ctx_t *ctx)
{
    ngx_list_t           empty, *list;
    ngx_uint_t           i, n, nruns;
    ngx_list_part_t     *part, *runs;
    ngx_http_request_t  *r;

    r = ctx->request;
    list = &r->headers_in.headers;

    if (ctx->stripped_headers
        || ngx_http_profile_find_header(r, &ctx->trigger.header, &n) == NULL)
    {
        return NGX_OK;
    }

    for (part = &list->part; part; part = part->next) {
        n++;
    }

    runs = ngx_pcalloc(r->pool, 2 * n * sizeof(ngx_list_part_t));
    if (runs == NULL) {
        return NGX_ERROR;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: header \"%V\" taken out", &ctx->trigger.header);

    nruns = ngx_http_profile_split_headers(ctx, runs);

    ctx->headers = *list;

    if (nruns == 0) {

        /* new headers must not overwrite the headers that were taken out */

        if (ngx_list_init(&empty, r->pool, list->nalloc, list->size)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        *list = empty;
        list->last = &list->part;

    } else {

        for (i = 1; i < nruns; i++) {
            runs[i - 1].next = &runs[i];
        }

        list->part = runs[0];
        list->last = (nruns == 1) ? &list->part : &runs[nruns - 1];

        /* the last part is full, so new headers go to a new part */

        list->nalloc = list->last->nelts;
    }

    /* the copy shows later whether other code has changed the list */

    ngx_memcpy(&runs[n], runs, n * sizeof(ngx_list_part_t));

    ctx->header_runs = runs;
    ctx->nheader_runs = n;
    ctx->stripped_list = *list;
    ctx->stripped_headers = 1;

    return NGX_OK;
}


/* makes parts without the trigger's headers; returns their number */

static ngx_uint_t
ngx_http_profile_split_headers(ngx_http_profile_ctx_t *ctx,
    ngx_list_part_t *runs)
{
    ngx_uint_t        i, start, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;

    for (part = &ctx->request->headers_in.headers.part;
         part;
         part = part->next)
    {
        h = part->elts;
        start = 0;

        for (i = 0; i <= part->nelts; i++) {

            if (i < part->nelts
                && !ngx_http_profile_is_header(&h[i], &ctx->trigger.header))
            {
                continue;
            }

            if (i > start) {
                runs[n].elts = &h[start];
                runs[n].nelts = i - start;
                n++;
            }

            start = i + 1;
        }
    }

    return n;
}


static ngx_int_t
ngx_http_profile_unstrip_headers(ngx_http_profile_ctx_t *ctx)
{
    ngx_uint_t        i;
    ngx_list_t       *list;
    ngx_list_part_t  *part, *runs;
    ngx_table_elt_t  *h, *new;

    ctx->stripped_headers = 0;

    list = &ctx->request->headers_in.headers;
    runs = ctx->header_runs;

    if (ngx_memcmp(list, &ctx->stripped_list, sizeof(ngx_list_t)) == 0
        && ngx_memcmp(runs, &runs[ctx->nheader_runs],
                      ctx->nheader_runs * sizeof(ngx_list_part_t))
           == 0)
    {
        *list = ctx->headers;
        return NGX_OK;
    }

    /* other code has changed the list, so the headers are appended */

    for (part = &ctx->headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_profile_is_header(&h[i], &ctx->trigger.header)) {
                continue;
            }

            new = ngx_list_push(list);
            if (new == NULL) {
                return NGX_ERROR;
            }

            *new = h[i];
        }
    }

    return NGX_OK;
}
