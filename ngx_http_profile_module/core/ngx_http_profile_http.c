
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_http.h"


static ngx_int_t ngx_http_profile_header_value(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static size_t ngx_http_profile_join_headers(ngx_http_request_t *r,
    ngx_str_t *name, u_char *p);


ngx_table_elt_t *
ngx_http_profile_find_header(ngx_http_request_t *r, ngx_str_t *name,
    ngx_uint_t *n)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h, *found;

    found = NULL;
    *n = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_profile_is_header(&h[i], name)) {
                continue;
            }

            if (found == NULL) {
                found = &h[i];
            }

            (*n)++;
        }
    }

    return found;
}


const prof_encoder_t *
ngx_http_profile_accept_format(ngx_http_request_t *r,
    const prof_encoder_t *preset)
{
    ngx_str_t  value;

    static ngx_str_t  name = ngx_string("Accept");

    if (ngx_http_profile_header_value(r, &name, &value) != NGX_OK) {
        return preset;
    }

    return prof_accept_encoder((char *) value.data, value.len, preset);
}


ngx_uint_t
ngx_http_profile_accept_gzip(ngx_http_request_t *r)
{
    ngx_str_t  value;

    static ngx_str_t  name = ngx_string("Accept-Encoding");

    if (ngx_http_profile_header_value(r, &name, &value) != NGX_OK) {
        return 0;
    }

    return prof_accept_gzip((char *) value.data, value.len);
}


/*
 * Several headers of one name mean the same as one header with their values
 * in a list.
 */

static ngx_int_t
ngx_http_profile_header_value(ngx_http_request_t *r, ngx_str_t *name,
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

    value->len = ngx_http_profile_join_headers(r, name, NULL);

    value->data = ngx_pnalloc(r->pool, value->len);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_http_profile_join_headers(r, name, value->data);

    return NGX_OK;
}


/* writes the list to p, unless p is NULL, and returns its length */

static size_t
ngx_http_profile_join_headers(ngx_http_request_t *r, ngx_str_t *name,
    u_char *p)
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


ngx_int_t
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
