
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Changes are for pages of this console and for tools of operators, not for
 * other sites that an operator's browser happens to show.  Browsers let other
 * sites send some requests, with the operator's cookies; but not with a
 * header of their own choice, unless the console agrees, which it never does.
 * What browsers tell about the sender must not contradict.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_console.h"


static ngx_uint_t ngx_http_profile_check_same(ngx_http_request_t *r,
    ngx_str_t *origin);


static ngx_str_t  ngx_http_profile_console_name =
    ngx_string("X-Profile-Console");
static ngx_str_t  ngx_http_profile_site_name = ngx_string("Sec-Fetch-Site");
static ngx_str_t  ngx_http_profile_origin_name = ngx_string("Origin");


ngx_int_t
ngx_http_profile_check_origin(ngx_http_profile_call_t *call)
{
    ngx_uint_t           n;
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = call->request;

    h = ngx_http_profile_find_header(r, &ngx_http_profile_site_name, &n);

    if (h && (n > 1 || h->value.len != sizeof("same-origin") - 1
              || ngx_strncmp(h->value.data, "same-origin", h->value.len)
                 != 0))
    {
        return ngx_http_profile_answer_error(call, NGX_HTTP_FORBIDDEN,
                             "the request comes from another site, as its "
                             "header \"Sec-Fetch-Site: %V\" says",
                             &h->value);
    }

    h = ngx_http_profile_find_header(r, &ngx_http_profile_origin_name, &n);

    if (h && (n > 1 || !ngx_http_profile_check_same(r, &h->value))) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_FORBIDDEN,
                             "the request comes from another site, as its "
                             "header \"Origin: %V\" says", &h->value);
    }

    h = ngx_http_profile_find_header(r, &ngx_http_profile_console_name, &n);

    if (h == NULL) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_FORBIDDEN,
                             "requests that change something need the header "
                             "\"X-Profile-Console: 1\"");
    }

    return NGX_DECLINED;
}


/*
 * The host, as the client has sent it, with the port.  A proxy may have taken
 * TLS off: the scheme is not compared.
 */

static ngx_uint_t
ngx_http_profile_check_same(ngx_http_request_t *r, ngx_str_t *origin)
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
