
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The state of workers for the status page.  Each worker has a place in shared
 * memory.  It writes its state there when another worker asks for it by a
 * message.  At most one such message is in the inbox of a worker, so messages
 * do not queue up while it is busy.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_STATE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_STATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_loss.h"


/* maximum number of captures of a worker that are listed, and of URI bytes */
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
    ngx_atomic_t                      asked;     /* a message waits */
    ngx_atomic_t                      sequence;  /* odd: being written */
    uint64_t                          when;      /* by prof_now() */
    ngx_uint_t                        captures;
    ngx_uint_t                        max_captures;
    ngx_uint_t                        connections;
    ngx_uint_t                        max_connections;
    uint64_t                          refused;   /* refused signals */
    ngx_uint_t                        jobs;      /* unfinished jobs */
    size_t                            jobs_size;
    ngx_http_profile_losses_t         losses;
    ngx_uint_t                        nlive;
    ngx_http_profile_state_capture_t  live[NGX_HTTP_PROFILE_STATE_CAPTURES];
} ngx_http_profile_state_t;


PROF_HIDDEN_BEGIN

/*
 * A new process takes the place of one that may have been killed at any point.
 */
void ngx_http_profile_state_open(void);

/* the state of this worker */
void ngx_http_profile_state_write(void);

void ngx_http_profile_state_ask(ngx_uint_t worker);

/* copies the state; NGX_AGAIN: it was not written since then */
ngx_int_t ngx_http_profile_state_read(ngx_uint_t worker, uint64_t since,
    ngx_http_profile_state_t *state);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_STATE_H_INCLUDED_ */
