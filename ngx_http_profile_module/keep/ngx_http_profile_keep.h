
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directives profile_keep and profile_stall_threshold.  Both use the data
 * of the event loop and of its watch about all requests.
 *
 * profile_keep takes notes of the turns of a share of all requests, and keeps
 * the profile of a request that was slow, or for which a condition is true when
 * the request is logged.  Notes are cheap: names, call tree and timeline are
 * made only if the request is kept.  The location of a request is known at its
 * end, so the server takes notes of the largest share of its locations.
 *
 * A stall is a run that blocked a worker for longer than
 * profile_stall_threshold.  The longest stalls of all workers are in shared
 * memory, and survive a reload.
 *
 * Context: the event loop of a worker, except for the directives.
 */


#ifndef _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_
#define _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "loop/ngx_http_profile_loop.h"


/* samples a second */
#define NGX_HTTP_PROFILE_KEEP_FREQUENCY  99
#define NGX_HTTP_PROFILE_KEEP_MAX        250

/* profiles in a second, for a worker */
#define NGX_HTTP_PROFILE_KEEP_RATE       10
#define NGX_HTTP_PROFILE_KEEP_RATE_MAX   1000

#define NGX_HTTP_PROFILE_STALLS          32


struct ngx_http_profile_keep_conf_s {
    ngx_http_complex_value_t  *condition;    /* NULL: only "slow" counts */
    ngx_msec_t                 slow;         /* 0: only "condition" counts */
    ngx_uint_t                 share;        /* in 10000 requests */
    ngx_uint_t                 rate;         /* profiles in a second */
    uint64_t                   next;         /* time of the next profile */
};


/* texts are null-terminated, and may contain data of a client */

typedef struct {
    uint64_t     wall;          /* ns */
    time_t       when;
    ngx_pid_t    worker;
    u_char       request[256];  /* "GET /a host", or empty */
    u_char       handler[128];  /* function that the event loop called */
    u_char       stack[512];    /* "inner < outer < ...", or empty */
} ngx_http_profile_stall_t;


PROF_HIDDEN_BEGIN

/* called when a worker begins and ends to observe its event loop */
void ngx_http_profile_keep_init(void);
void ngx_http_profile_keep_exit(void);

/*
 * Set by another room, or NULL.  Called for a logged request that the
 * condition has not chosen.  Returns 1 if the room wants the request's
 * profile.  The profile is kept if the rate permits one more, and is not
 * counted as lost otherwise.
 */
extern ngx_uint_t  (*ngx_http_profile_keep_exemplar)(
    ngx_http_profile_track_t *tr);

/* runs of at least this many ns are stalls from now on; 0: no run is */
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
