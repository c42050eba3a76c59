
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The console serves its own pages and the tools of operators.  It does not
 * serve other sites that an operator's browser shows.  Such a site can make
 * the browser send requests, which carry the operator's address and cookies.
 * The console therefore checks the headers in which browsers name the sender,
 * for all methods.
 *
 * A request that changes something also needs the header X-Profile-Console.
 * Another site can only send this header with the console's permission (CORS),
 * which the console never gives.
 */


#include "console/ngx_http_profile_routes.h"
#include "core/ngx_http_profile_http.h"


static ngx_uint_t ngx_http_profile_origin_page(ngx_http_profile_call_t *call);


static ngx_str_t  ngx_http_profile_console_name =
    ngx_string("X-Profile-Console");


ngx_int_t
ngx_http_profile_origin_check(ngx_http_profile_call_t *call)
{
    ngx_int_t            rc;
    ngx_uint_t           n, change;
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = call->request;

    change = !(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
             && !(call->route->flags & NGX_HTTP_PROFILE_HARMLESS);

    rc = (!change && ngx_http_profile_origin_page(call))
         ? ngx_http_profile_call_origin(call)
         : ngx_http_profile_call_site(call, !change);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (!change) {
        return NGX_DECLINED;
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
 * A link in another site may open a page of the console in a tab.  The other
 * site learns nothing from this tab.
 */

static ngx_uint_t
ngx_http_profile_origin_page(ngx_http_profile_call_t *call)
{
    ngx_str_t           *rest;
    ngx_http_request_t  *r;

    r = call->request;
    rest = &call->rest;

    return (call->route->flags & NGX_HTTP_PROFILE_PAGE)
           && !call->json
           && ngx_strlchr(rest->data, rest->data + rest->len, '/') == NULL
           && ngx_http_profile_site_says(r, "Sec-Fetch-Mode", "navigate")
           && ngx_http_profile_site_says(r, "Sec-Fetch-Dest", "document");
}
