
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directives profile_keep and profile_stall_threshold: both use what the
 * event loop and its watch know about all requests.
 *
 * profile_keep takes notes of the turns of a share of all requests, and keeps
 * the profile of a request if a condition is true when the request is logged.
 * Notes are cheap: names, call tree and timeline are made of them only when the
 * request is kept.
 *
 * A stall is a run that kept a worker from everything else for longer than
 * profile_stall_threshold.  The longest stalls of all workers are in shared
 * memory, and survive a reload.
 *
 * Context: the event loop of a worker, but for the directives.
 */


#ifndef _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_
#define _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"


/* samples a second */
#define NGX_HTTP_PROFILE_KEEP_FREQUENCY  99
#define NGX_HTTP_PROFILE_KEEP_MAX        250

/* profiles a second, of a worker */
#define NGX_HTTP_PROFILE_KEEP_RATE       10
#define NGX_HTTP_PROFILE_KEEP_RATE_MAX   1000

#define NGX_HTTP_PROFILE_STALLS          32


struct ngx_http_profile_keep_conf_s {
    ngx_http_complex_value_t   condition;
    ngx_uint_t                 share;        /* of 10000 requests */
    ngx_uint_t                 rate;         /* profiles a second */
    uint64_t                   next;         /* of a worker: when one more
                                                is due at that rate */
};


/* texts are null-terminated, and may contain what a client has sent */

typedef struct {
    uint64_t     wall;          /* ns */
    time_t       when;
    ngx_pid_t    worker;
    u_char       request[256];  /* "GET /a host", or empty: of no request */
    u_char       handler[128];  /* function that the event loop called */
    u_char       stack[512];    /* "inner < outer < ...", or empty */
} ngx_http_profile_stall_t;


PROF_HIDDEN_BEGIN

/* the worker begins to observe its event loop for profile_keep, or ends */
void ngx_http_profile_keep_init(void);
void ngx_http_profile_keep_exit(void);

/* runs of at least this many ns are stalls from now on; 0: none is */
void ngx_http_profile_stall_observe(uint64_t ns);

/*
 * Copies the longest stalls of all workers, the longest first, to an array of
 * NGX_HTTP_PROFILE_STALLS, and returns their number.
 */
ngx_uint_t ngx_http_profile_stalls(ngx_shm_zone_t *zone,
    ngx_http_profile_stall_t *stalls);

/* ngx_http_profile_stall.c: the directive profile_stall_threshold */

char *ngx_http_profile_stall_threshold(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_ */
