
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_site.h"


ngx_str_t  ngx_http_profile_site_name = ngx_string("Sec-Fetch-Site");
ngx_str_t  ngx_http_profile_origin_name = ngx_string("Origin");


ngx_uint_t
ngx_http_profile_site_says(ngx_http_request_t *r, const char *name,
    const char *value)
{
    ngx_str_t         s;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    s.data = (u_char *) name;
    s.len = ngx_strlen(name);

    h = ngx_http_profile_find_header(r, &s, &n);

    return n == 1 && h->value.len == ngx_strlen(value)
           && ngx_strncmp(h->value.data, value, h->value.len) == 0;
}


ngx_uint_t
ngx_http_profile_site_same(ngx_http_request_t *r, ngx_str_t *origin)
{
    u_char     *p;
    ngx_str_t   host;

    p = ngx_strlchr(origin->data, origin->data + origin->len, '/');

    if (p == NULL || r->headers_in.host == NULL
        || origin->data + origin->len - p < 2 || p[1] != '/')
    {
        return 0;
    }

    p += 2;

    host.data = p;
    host.len = origin->data + origin->len - p;

    return host.len == r->headers_in.host->value.len
           && ngx_strncasecmp(host.data, r->headers_in.host->value.data,
                              host.len)
              == 0;
}
