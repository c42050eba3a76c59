
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures in the mode "object": memory that a request allocates.  The core
 * (shared/heap) counts blocks.  This file tells the core which blocks are
 * freed with the request, and measures how nginx fills the blocks of its
 * pools.
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


/* a capture that has ended, while its memory may still be freed */

typedef struct ngx_http_profile_late_s  ngx_http_profile_late_t;


typedef struct {
    ngx_http_profile_pool_span_t   spans[NGX_HTTP_PROFILE_POOL_SPANS];
    ngx_uint_t                     nspans;
    ngx_uint_t                     nested[NGX_HTTP_PROFILE_POOL_NESTED];
    ngx_uint_t                     depth;
    ngx_pool_t                    *request_pool;
    ngx_pool_t                    *connection_pool; /* NULL: of streams */
    size_t                         request;      /* bytes in use at the last */
    size_t                         connection;   /* border, in each pool */
    const char                    *error;        /* why nothing is counted */
    ngx_http_profile_late_t       *late;         /* NULL: nothing waits */
} ngx_http_profile_object_t;


typedef void (*ngx_http_profile_object_pt)(void *data);


PROF_HIDDEN_BEGIN

/*
 * Adds the fact which memory of this process is not counted, to a profile of
 * allocations
 */
void ngx_http_profile_not_counted(prof_profile_t *p);

/* begins to count; a second call has no effect */
void ngx_http_profile_object_begin(ngx_http_profile_ctx_t *ctx);

/*
 * The functions below do nothing for a request that does not count.
 *
 * The capture ends, and its profile is made next.
 */
void ngx_http_profile_object_end(ngx_http_profile_ctx_t *ctx);

/*
 * The profile is made.  Returns 1 if the blocks are counted after the end of
 * the request: the capture then belongs to this file.
 */
ngx_uint_t ngx_http_profile_object_take(ngx_http_profile_ctx_t *ctx);

/* stops to count, and frees the memory */
void ngx_http_profile_object_drop(ngx_http_profile_ctx_t *ctx);

/*
 * Calls fn(data) when the time of profile_object_grace is over and the profile
 * is final.  The request may be freed by then.  If the process ends before,
 * calls drop(data) instead.  Returns NGX_DECLINED without a call if the profile
 * is final now.
 */
ngx_int_t ngx_http_profile_object_wait(ngx_http_profile_ctx_t *ctx,
    prof_profile_t *profile, ngx_http_profile_object_pt fn,
    ngx_http_profile_object_pt drop, void *data);

/*
 * Ends the wait of data, without a call.  The profile is not final.  Returns
 * NGX_DECLINED if data does not wait.
 */
ngx_int_t ngx_http_profile_object_leave(void *data);

/* stops to count allocations when the process ends */
void ngx_http_profile_object_exit(void);

/* adds the bytes that were taken from pools to the facts of the profile */
void ngx_http_profile_object_facts(ngx_http_profile_ctx_t *ctx);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_OBJECT_H_INCLUDED_ */
