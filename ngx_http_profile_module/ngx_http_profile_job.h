
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Jobs: work that takes long or reads files, done by a thread of its own that
 * is started for it and ends with it.  nginx's thread pools would do, but a
 * pool must be configured, starts its threads in every worker, and may not be
 * compiled in.
 *
 * A job is a part of the caller's struct, in memory that is not a pool's: the
 * request may be gone before the work is done.
 */


#ifndef _NGX_HTTP_PROFILE_JOB_H_INCLUDED_
#define _NGX_HTTP_PROFILE_JOB_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "prof.h"

#include <pthread.h>


typedef struct ngx_http_profile_job_s  ngx_http_profile_job_t;

typedef void (*ngx_http_profile_job_pt)(void *data);


struct ngx_http_profile_job_s {
    ngx_http_profile_job_pt   work;         /* in the thread; must not touch
                                               what the event loop does */
    ngx_http_profile_job_pt   done;         /* in the event loop, afterwards,
                                               once; it may free the job */
    void                     *data;         /* for both */

    /* set by ngx_http_profile_job_start() */

    ngx_queue_t               queue;
    ngx_event_t               timer;
    ngx_connection_t          connection;   /* for nginx's debug messages */
    ngx_msec_t                wait;
    pthread_t                 thread;
    int                       finished;
};


PROF_HIDDEN_BEGIN

/*
 * Starts the job, of which the caller has set work, done and data.  NGX_ERROR
 * (logged): there is no thread for it, nothing was called and the job is the
 * caller's.  The worker does not exit before the work is done.
 * Context: the event loop.
 */
ngx_int_t ngx_http_profile_job_start(ngx_http_profile_job_t *job);

/*
 * The worker exits: waits for all threads, since what they use goes with it,
 * and calls "done" of each job.
 */
void ngx_http_profile_job_finish_all(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_JOB_H_INCLUDED_ */
