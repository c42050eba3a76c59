
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The headers in which a browser names the page that caused a request.  A page
 * of another site can make an operator's browser send requests, which have the
 * operator's address and cookies.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_SITE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_SITE_H_INCLUDED_


#include "core/ngx_http_profile_http.h"


PROF_HIDDEN_BEGIN

extern ngx_str_t  ngx_http_profile_site_name;      /* Sec-Fetch-Site */
extern ngx_str_t  ngx_http_profile_origin_name;    /* Origin */

/*
 * Returns 1 if the request has exactly one header with this name, and the
 * header has this value.
 */
ngx_uint_t ngx_http_profile_site_says(ngx_http_request_t *r, const char *name,
    const char *value);

/*
 * Returns 1 if the origin has the host and port of the request's Host header.
 * The scheme is not compared, because a proxy may have removed TLS.
 */
ngx_uint_t ngx_http_profile_site_same(ngx_http_request_t *r,
    ngx_str_t *origin);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_SITE_H_INCLUDED_ */
