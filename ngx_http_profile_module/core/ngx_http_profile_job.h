
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Jobs: work that takes long or reads files.  A worker has one queue of jobs
 * and one thread for all of them, which has the lowest priority and is started
 * with the first job.  nginx's thread pools would do, but a pool must be
 * configured, starts its threads in every worker, and may not be compiled in.
 *
 * The queue is bounded, by the number of jobs and by the memory that they
 * hold.  Jobs of a higher rank are done first, and may still be queued when
 * those of a lower rank may not.
 *
 * A job is a part of the caller's struct, in memory that is not a pool's: the
 * request may be gone before the work is done.
 *
 * Context: the event loop, unless said otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_JOB_H_INCLUDED_
#define _NGX_HTTP_PROFILE_JOB_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "prof.h"


typedef enum {
    NGX_HTTP_PROFILE_JOB_NEEDED = 0,  /* of a capture of workers: always taken,
                                         and done before the worker exits */
    NGX_HTTP_PROFILE_JOB_ASKED,       /* a client waits */
    NGX_HTTP_PROFILE_JOB_RECORDED,    /* somebody will ask for it */
    NGX_HTTP_PROFILE_JOB_KEPT,        /* maybe somebody will */
    NGX_HTTP_PROFILE_JOB_RANKS
} ngx_http_profile_job_rank_e;


typedef enum {
    NGX_HTTP_PROFILE_JOB_IDLE = 0,    /* not in the queue */
    NGX_HTTP_PROFILE_JOB_WAITS,
    NGX_HTTP_PROFILE_JOB_RUNS,
    NGX_HTTP_PROFILE_JOB_ENDED        /* "done" is called next */
} ngx_http_profile_job_state_e;


typedef void (*ngx_http_profile_job_pt)(void *data);


typedef struct {
    ngx_http_profile_job_pt        work;     /* in the thread; must not touch
                                                what the event loop does */
    ngx_http_profile_job_pt        done;     /* in the event loop, afterwards,
                                                once; it may free the job */
    void                          *data;     /* for both */
    ngx_http_profile_job_rank_e    rank;
    size_t                         size;     /* of what it holds, in bytes */

    /* set by ngx_http_profile_job_start() */

    ngx_queue_t                    queue;
    ngx_http_profile_job_state_e   state;
    unsigned                       worked:1; /* 0 in "done": the worker exits,
                                                the work was not begun */
} ngx_http_profile_job_t;


PROF_HIDDEN_BEGIN

/*
 * Whether a job of the rank would be taken now, to be asked before something
 * is made for it.  NGX_BUSY: the queue is full.  NGX_ERROR: there is no thread
 * (logged).
 */
ngx_int_t ngx_http_profile_job_room(ngx_http_profile_job_rank_e rank);

/*
 * Queues the job, of which the caller has set work, done, data, rank and size.
 * NGX_BUSY, NGX_ERROR: as above, nothing was called and the job is the
 * caller's.  A worker that shuts down does not exit before the work is done;
 * one that is told to exit at once leaves out what has not begun.
 */
ngx_int_t ngx_http_profile_job_start(ngx_http_profile_job_t *job);

/*
 * Nobody needs the job any more.  NGX_OK: it had not begun, and is the
 * caller's.  NGX_DECLINED: "done" will be called.
 */
ngx_int_t ngx_http_profile_job_cancel(ngx_http_profile_job_t *job);

/* those that are queued or run, and the memory that they hold */
ngx_uint_t ngx_http_profile_jobs(size_t *size);

/*
 * The worker exits: waits for the thread, since what it uses goes with the
 * worker, and calls "done" of each job.
 */
void ngx_http_profile_job_finish_all(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_JOB_H_INCLUDED_ */
