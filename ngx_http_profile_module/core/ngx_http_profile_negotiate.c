
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the client would like to get, by its headers.
 */


#include "request/ngx_http_profile.h"


static ngx_int_t ngx_http_profile_negotiate_value(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static size_t ngx_http_profile_accept_join(ngx_http_request_t *r,
    ngx_str_t *name, u_char *p);


static ngx_str_t  ngx_http_profile_negotiate_name = ngx_string("Accept");
static ngx_str_t  ngx_http_profile_accept_encoding_name =
    ngx_string("Accept-Encoding");


/* the format: what the trigger says, what the client accepts, the default */

const prof_encoder_t *
ngx_http_profile_negotiate_format(ngx_http_profile_ctx_t *ctx)
{
    ngx_str_t  value;

    if (ctx->trigger.format) {
        return ctx->trigger.format;
    }

    if (ngx_http_profile_negotiate_value(ctx->request,
                                         &ngx_http_profile_negotiate_name,
                                         &value)
        != NGX_OK)
    {
        return ctx->conf->format;
    }

    return prof_accept_encoder((char *) value.data, value.len,
                               ctx->conf->format);
}


ngx_uint_t
ngx_http_profile_negotiate_gzip(ngx_http_profile_ctx_t *ctx)
{
    ngx_str_t  value;

    if (ngx_http_profile_negotiate_value(ctx->request,
                                         &ngx_http_profile_accept_encoding_name,
                                         &value)
        != NGX_OK)
    {
        return 0;
    }

    return prof_accept_gzip((char *) value.data, value.len);
}


/* the values of all headers of that name, as the one they stand for */

static ngx_int_t
ngx_http_profile_negotiate_value(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    h = ngx_http_profile_find_header(r, name, &n);

    if (h == NULL) {
        return NGX_DECLINED;
    }

    if (n == 1) {
        *value = h->value;
        return NGX_OK;
    }

    value->len = ngx_http_profile_accept_join(r, name, NULL);

    value->data = ngx_pnalloc(r->pool, value->len);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_http_profile_accept_join(r, name, value->data);

    return NGX_OK;
}


/* returns the length; with NULL this is all it does */

static size_t
ngx_http_profile_accept_join(ngx_http_request_t *r, ngx_str_t *name, u_char *p)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_profile_is_header(&h[i], name)) {
                continue;
            }

            len += h[i].value.len + 1;

            if (p) {
                p = ngx_cpymem(p, h[i].value.data, h[i].value.len);
                *p++ = ',';
            }
        }
    }

    return len;
}
