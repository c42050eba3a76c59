
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What workers tell of themselves when somebody asks for the status: each has
 * a place in the memory that they share.  It is written when another one asks,
 * by a message, of which there is at most one under way to a worker; so one
 * that is busy for long does not find a queue of them.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_STATE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_STATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_loss.h"


/* captures of a worker that are told one by one, and bytes of their URIs */
#define NGX_HTTP_PROFILE_STATE_CAPTURES  16
#define NGX_HTTP_PROFILE_STATE_URI       256


typedef struct {
    u_char                           id[NGX_HTTP_PROFILE_ID_LEN];
    u_char                           uri[NGX_HTTP_PROFILE_STATE_URI];
    size_t                           uri_len;
    uint64_t                         wall;
    uint64_t                         running;
    uint64_t                         cpu;
    uint64_t                         samples;
} ngx_http_profile_state_capture_t;


typedef struct {
    ngx_atomic_t                      asked;     /* a message is under way */
    ngx_atomic_t                      sequence;  /* odd: it is being written */
    uint64_t                          when;      /* of prof_now() */
    ngx_uint_t                        captures;
    ngx_uint_t                        max_captures;
    ngx_uint_t                        connections;
    ngx_uint_t                        max_connections;
    uint64_t                          refused;   /* signals */
    ngx_uint_t                        jobs;      /* not done yet */
    size_t                            jobs_size;
    ngx_http_profile_losses_t         losses;
    ngx_uint_t                        nlive;
    ngx_http_profile_state_capture_t  live[NGX_HTTP_PROFILE_STATE_CAPTURES];
} ngx_http_profile_state_t;


PROF_HIDDEN_BEGIN

/* a new process has the place of one that may have died anywhere */
void ngx_http_profile_state_open(void);

/* this worker's */
void ngx_http_profile_state_write(void);

void ngx_http_profile_state_ask(ngx_uint_t worker);

/* a copy; NGX_AGAIN: it was not written since then */
ngx_int_t ngx_http_profile_state_read(ngx_uint_t worker, uint64_t since,
    ngx_http_profile_state_t *state);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_STATE_H_INCLUDED_ */
