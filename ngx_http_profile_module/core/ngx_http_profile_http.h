
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * HTTP headers, and the ids of profiles.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_HTTP_H_INCLUDED_
#define _NGX_HTTP_PROFILE_HTTP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"


/* hexadecimal digits of an id */
#define NGX_HTTP_PROFILE_ID_LEN  32


/* whether the string s is the n bytes at p; an empty string equals nothing */

#define ngx_http_profile_str_eq(s, p, n)                                      \
    ((n) && (s)->len == (size_t) (n) && ngx_memcmp((s)->data, p, n) == 0)

#define ngx_http_profile_is_header(h, name)                                   \
    ((h)->key.len == (name)->len                                              \
     && ngx_strncasecmp((h)->key.data, (name)->data, (name)->len) == 0)


PROF_HIDDEN_BEGIN

/*
 * Returns the first header of the request with this name, or NULL, and sets
 * *n to the number of headers with this name.
 */
ngx_table_elt_t *ngx_http_profile_find_header(ngx_http_request_t *r,
    ngx_str_t *name, ngx_uint_t *n);

/*
 * Returns the format that the request's Accept headers prefer, or preset if
 * there is no such header or no memory to read several of them.
 */
const prof_encoder_t *ngx_http_profile_accept_format(ngx_http_request_t *r,
    const prof_encoder_t *preset);

/* returns 1 if the request's Accept-Encoding headers accept gzip */
ngx_uint_t ngx_http_profile_accept_gzip(ngx_http_request_t *r);

/*
 * Adds a header to the response.  The key is not copied, the value is copied
 * to the request's pool.  NGX_OK, or NGX_ERROR if there is no memory.
 */
ngx_int_t ngx_http_profile_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_HTTP_H_INCLUDED_ */
