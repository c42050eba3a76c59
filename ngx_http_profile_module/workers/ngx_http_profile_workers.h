
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures of workers and of endpoints, for other rooms.
 *
 * Workers reach each other by messages.  Each worker has a place in the memory
 * that all workers share, where it writes its state when another worker asks.
 * At most one message that asks for the state is under way to a worker, so a
 * worker that is busy for long does not find many of them.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_WORKERS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_WORKERS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_loss.h"
#include "call/ngx_http_profile_call.h"


/* captures of a worker that its state lists, and bytes of their URIs */
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
    ngx_atomic_t                      asked;     /* 1: message under way */
    ngx_atomic_t                      sequence;  /* odd: during a write */
    uint64_t                          when;      /* time of prof_now() */
    ngx_uint_t                        captures;
    ngx_uint_t                        max_captures;
    ngx_uint_t                        connections;
    ngx_uint_t                        max_connections;
    uint64_t                          refused;   /* refused signals */
    ngx_uint_t                        jobs;      /* jobs that are not done */
    size_t                            jobs_size;
    ngx_http_profile_losses_t         losses;
    ngx_uint_t                        nlive;
    ngx_http_profile_state_capture_t  live[NGX_HTTP_PROFILE_STATE_CAPTURES];
} ngx_http_profile_state_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_wanted.c: the room's table of routes for the console */

extern const ngx_http_profile_route_t  ngx_http_profile_workers_routes[];


/* ngx_http_profile_inbox.c */

/*
 * Makes the inboxes, in the master, before workers are started.  Failures are
 * logged.  Without memory ngx_http_profile_inbox_workers() returns 0.  Without
 * descriptors each worker reaches only itself.
 */
void ngx_http_profile_inbox_init(ngx_cycle_t *cycle);

/* called if the configuration needs no inboxes, and at exit */
void ngx_http_profile_inbox_close(void);

/* called in each worker when it starts */
void ngx_http_profile_inbox_open(ngx_cycle_t *cycle);

/* returns the number of workers, or 0 without inboxes */
ngx_uint_t ngx_http_profile_inbox_workers(void);

/* returns the process id of a worker, or 0 if it does not run */
ngx_pid_t ngx_http_profile_inbox_pid(ngx_uint_t worker);


/* ngx_http_profile_attendant.c: a thread for orders to a stuck worker */

/* starts the thread, if the worker can have orders for it; logs a failure */
void ngx_http_profile_attendant_start(ngx_log_t *log);

/* ends the thread and its captures, before the inboxes are closed */
void ngx_http_profile_attendant_stop(void);


/* ngx_http_profile_asker.c: lets this process take part in captures */
void ngx_http_profile_asker_init(void);


/* ngx_http_profile_state.c */

/* writes the state of this worker */
void ngx_http_profile_state_write(void);

/* asks a worker to write its state */
void ngx_http_profile_state_ask(ngx_uint_t worker);

/*
 * Copies the state of a worker.  Returns NGX_AGAIN if the worker did not write
 * it after "since", a time of prof_now().
 */
ngx_int_t ngx_http_profile_state_read(ngx_uint_t worker, uint64_t since,
    ngx_http_profile_state_t *state);


/* ngx_http_profile_labels.c */

/* number of captures in this worker that need the location of each turn */
extern ngx_uint_t  ngx_http_profile_nlocated;


/* ngx_http_profile_endpoint.c */

/* number of captures of endpoints in this worker */
extern ngx_uint_t  ngx_http_profile_nendpoints;

/*
 * Called in the post-read phase.  Returns NGX_DECLINED if no endpoint captures
 * the request, and NGX_DONE if a capture has run the request.
 */
ngx_int_t ngx_http_profile_endpoint_begin(ngx_http_request_t *r);

/*
 * ngx_http_profile_endpoint_trigger.c: called when a process starts; registers
 * an observer of requests whose trigger asks for a capture of their location
 */
void ngx_http_profile_endpoint_init(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_WORKERS_H_INCLUDED_ */
