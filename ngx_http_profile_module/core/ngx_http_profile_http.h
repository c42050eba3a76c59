
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


/* returns whether the string s is the n bytes at p; 0 for empty strings */

#define ngx_http_profile_str_eq(s, p, n)                                      \
    ((n) && (s)->len == (size_t) (n) && ngx_memcmp((s)->data, p, n) == 0)

#define ngx_http_profile_is_header(h, name)                                   \
    ((h)->key.len == (name)->len                                              \
     && ngx_strncasecmp((h)->key.data, (name)->data, (name)->len) == 0)


/* the compression of a body, which is made in a thread */

typedef struct {
    unsigned                   accepted:1;     /* the client accepts gzip */
    unsigned                   compressible:1; /* the format is plain */
    unsigned                   done:1;         /* the body is compressed */
} ngx_http_profile_gzip_t;


/* content security policies: of most answers, and of pages of the console */

#define NGX_HTTP_PROFILE_CSP_NONE                                             \
    "default-src 'none'; base-uri 'none'; form-action 'none'; "               \
    "frame-ancestors 'none'"

#define NGX_HTTP_PROFILE_CSP_PAGE                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; "               \
    "connect-src 'self'; img-src 'self' data:; frame-src 'self'; "            \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "           \
    "require-trusted-types-for 'script'"


PROF_HIDDEN_BEGIN

/*
 * Returns the first header of the request with this name, or NULL, and sets
 * *n to the number of headers with this name.
 */
ngx_table_elt_t *ngx_http_profile_find_header(ngx_http_request_t *r,
    ngx_str_t *name, ngx_uint_t *n);

/*
 * Takes the header out of the list of the request's headers.  Other headers
 * keep their addresses.  The caller removes the pointers to the header that
 * nginx has elsewhere.  Returns NGX_OK, or NGX_ERROR if memory is short; the
 * header then remains.
 */
ngx_int_t ngx_http_profile_remove_header(ngx_http_request_t *r,
    ngx_table_elt_t *h);

/*
 * Returns the format that the request's Accept headers prefer, or preset if
 * the request has no such header, or if there is no memory to join several
 * headers.
 */
const prof_encoder_t *ngx_http_profile_accept_format(ngx_http_request_t *r,
    const prof_encoder_t *preset);

/*
 * Returns the index of the content type that the request's Accept headers
 * prefer.  The types end with NULL.  Returns 0 if the request has no such
 * header, or if there is no memory to join several headers.
 */
ngx_uint_t ngx_http_profile_accept_type(ngx_http_request_t *r,
    const char **types);

/* returns 1 if the request's Accept-Encoding headers accept gzip */
ngx_uint_t ngx_http_profile_accept_gzip(ngx_http_request_t *r);

/*
 * Compresses the body if gzip->accepted is set, and sets the other two fields.
 * If memory is short, the body is not changed.  Context: any thread.
 */
void ngx_http_profile_gzip(prof_buf_t *body, ngx_http_profile_gzip_t *gzip);

/* returns the value of the header Vary, or NULL; static memory */
const char *ngx_http_profile_vary(ngx_uint_t negotiated,
    ngx_uint_t compressible);

/*
 * Adds a header to the response.  Neither key nor value is copied.  Returns
 * NGX_OK, or NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_profile_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value);
ngx_int_t ngx_http_profile_add_text_header(ngx_http_request_t *r,
    const char *key, const char *value);

/*
 * The method and the path that the client sent, without arguments and not
 * decoded.  Rewrites, "try_files", "index" and internal redirects change
 * r->uri, and redirects of errors also r->method_name.
 */
void ngx_http_profile_sent(ngx_http_request_t *r, ngx_str_t *method,
    ngx_str_t *path);

/* returns whether only caches that many clients share read the header */
ngx_uint_t ngx_http_profile_is_shared(ngx_table_elt_t *h);

/*
 * Lets only the client's own cache keep the response, before headers are added
 * that describe the running request.  Changes nothing that the client's cache
 * reads.  Returns NGX_OK; NGX_DECLINED if such headers must not be added; or
 * NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_profile_private(ngx_http_request_t *r);

/* makes the response a download of this name, which needs no quoting */
ngx_int_t ngx_http_profile_add_file_header(ngx_http_request_t *r,
    ngx_str_t *name);

/*
 * Makes the name of a file, "HOST-PATH-wall-20261121T150000Z.EXTENSION", of
 * characters that need no quoting.  The host may be empty.  Returns NGX_OK, or
 * NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_profile_file_name(ngx_pool_t *pool, ngx_str_t *host,
    ngx_str_t *path, ngx_uint_t mode, time_t time, const char *extension,
    ngx_str_t *name);

/*
 * Reads the trace of the header "traceparent".  Returns NGX_OK, or
 * NGX_DECLINED if the header is missing, invalid, or not the only one.
 */
ngx_int_t ngx_http_profile_trace(ngx_http_request_t *r, prof_trace_t *trace);

/* works as ngx_http_profile_trace(), and also sets *flags of a valid header */
ngx_int_t ngx_http_profile_trace_flags(ngx_http_request_t *r,
    prof_trace_t *trace, uint8_t *flags);

/* makes an id; returns NGX_OK, or NGX_ERROR without random numbers (logged) */
ngx_int_t ngx_http_profile_make_id(u_char *id, ngx_log_t *log);

/*
 * Headers by which a browser names the site whose page has caused the request.
 * A page of another site can make an operator's browser send requests that
 * have the operator's address and cookies.
 */

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


#endif /* _NGX_HTTP_PROFILE_HTTP_H_INCLUDED_ */
