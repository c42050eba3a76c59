
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures in the mode "object": what a request allocates.  The core counts
 * blocks; here it is told which of them go with the request, and what nginx
 * makes of its pools' blocks is measured.
 */


#ifndef _NGX_HTTP_PROFILE_OBJECT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_OBJECT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"
#include "loop/ngx_http_profile_loop.h"


#define NGX_HTTP_PROFILE_POOL_SPANS   64
#define NGX_HTTP_PROFILE_POOL_NESTED  16
#define NGX_HTTP_PROFILE_POOL_NAME    64


/* bytes taken from pools while a span was the innermost one */

typedef struct {
    size_t                         len;
    u_char                         name[NGX_HTTP_PROFILE_POOL_NAME];
    size_t                         request;
    size_t                         connection;
} ngx_http_profile_pool_span_t;


typedef struct {
    ngx_http_profile_pool_span_t   spans[NGX_HTTP_PROFILE_POOL_SPANS];
    ngx_uint_t                     nspans;
    ngx_uint_t                     nested[NGX_HTTP_PROFILE_POOL_NESTED];
    ngx_uint_t                     depth;
    ngx_pool_t                    *request_pool;
    ngx_pool_t                    *connection_pool; /* NULL: of many requests */
    size_t                         request;      /* as it was filled last */
    size_t                         connection;
    const char                    *error;        /* nothing is counted */
    prof_capture_t                *capture;      /* that has ended */
    ngx_msec_t                     grace;
} ngx_http_profile_object_t;


typedef void (*ngx_http_profile_object_pt)(void *data);


PROF_HIDDEN_BEGIN

/* begins to count if the mode that is in force now is "object" */
void ngx_http_profile_object_begin(ngx_http_profile_ctx_t *ctx);

/*
 * The capture is about to end: what will be freed with the request is in use
 * no more.
 */
void ngx_http_profile_object_end(ngx_http_profile_ctx_t *ctx);

/*
 * Takes the capture, which has given its profile, if it will be looked at once
 * more after the time of profile_object_grace: then returns 1.
 */
ngx_uint_t ngx_http_profile_object_take(ngx_http_profile_ctx_t *ctx);

/*
 * Calls fn(data) when that time is over, and the profile is as it is to be;
 * neither depends on the request.  NGX_DECLINED: it is already.
 */
ngx_int_t ngx_http_profile_object_wait(ngx_http_profile_ctx_t *ctx,
    prof_profile_t *profile, ngx_http_profile_object_pt fn, void *data);

void ngx_http_profile_object_drop(ngx_http_profile_ctx_t *ctx);

/* the process ends: no allocation is counted any more */
void ngx_http_profile_object_exit(void);

/* what was measured of pools, as facts of the profile */
void ngx_http_profile_object_facts(ngx_http_profile_ctx_t *ctx);

/*
 * A span begins, or the innermost one ends; both for every span.  The name is
 * copied.
 */
void ngx_http_profile_object_push(ngx_http_profile_ctx_t *ctx,
    ngx_str_t *name);
void ngx_http_profile_object_pop(ngx_http_profile_ctx_t *ctx);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_OBJECT_H_INCLUDED_ */
