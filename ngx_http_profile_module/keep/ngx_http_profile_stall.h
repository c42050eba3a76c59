
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stalls: turns for which a worker was kept from everything else for longer
 * than profile_stall_threshold.  The longest of all workers are in shared
 * memory, and survive a reload.
 *
 * Context: the event loop of a worker.
 */


#ifndef _NGX_HTTP_PROFILE_STALL_H_INCLUDED_
#define _NGX_HTTP_PROFILE_STALL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "loop/ngx_http_profile_account.h"


#define NGX_HTTP_PROFILE_STALLS  32


/* texts are null-terminated, and what clients sent may be in them */

typedef struct {
    uint64_t     wall;          /* ns */
    time_t       when;
    ngx_pid_t    worker;
    u_char       request[256];  /* "GET /a host", or empty: of no request */
    u_char       handler[128];  /* function that the event loop called */
    u_char       stack[512];    /* "inner < outer < ...", or empty */
} ngx_http_profile_stall_t;


PROF_HIDDEN_BEGIN

/* 0: nothing is a stall; ns */
extern uint64_t  ngx_http_profile_stall_ns;

char *ngx_http_profile_stall_threshold(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* what the frame runs has taken so long; tr is NULL if it is gone */
void ngx_http_profile_stall(ngx_http_profile_frame_t *frame,
    ngx_http_profile_track_t *tr, uint64_t wall);

/* copies the longest ones of all workers, the longest first; their number */
ngx_uint_t ngx_http_profile_stalls(ngx_shm_zone_t *zone,
    ngx_http_profile_stall_t *stalls);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_STALL_H_INCLUDED_ */
