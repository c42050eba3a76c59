
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Jobs: work that takes long or reads files.  A worker has one queue of jobs
 * and two threads.  One thread does what a client waits for, with the priority
 * of the worker and a limited CPU time.  The other thread does the other jobs,
 * with the lowest priority.  Each thread is started with its first job.
 * nginx's thread pools are not suitable: an operator has to configure a pool, a
 * pool starts its threads in every worker, and nginx may be compiled without
 * thread pools.
 *
 * The queue limits the number of jobs and their memory.  Jobs of a higher rank
 * are done first, and are accepted when jobs of a lower rank are not.
 *
 * A job is a part of the caller's struct, in memory that does not belong to a
 * pool, because the request may be freed before the work is done.
 *
 * Context: the event loop, unless stated otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_JOB_H_INCLUDED_
#define _NGX_HTTP_PROFILE_JOB_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "prof.h"


typedef enum {
    NGX_HTTP_PROFILE_JOB_NEEDED = 0,  /* for a capture of workers: always
                                         accepted, done before the worker
                                         exits */
    NGX_HTTP_PROFILE_JOB_ASKED,       /* a client waits */
    NGX_HTTP_PROFILE_JOB_RECORDED,    /* a client may ask for the profile */
    NGX_HTTP_PROFILE_JOB_KEPT,        /* kept by profile_keep */
    NGX_HTTP_PROFILE_JOB_RANKS
} ngx_http_profile_job_rank_e;


typedef enum {
    NGX_HTTP_PROFILE_JOB_IDLE = 0,    /* not in the queue */
    NGX_HTTP_PROFILE_JOB_WAITS,
    NGX_HTTP_PROFILE_JOB_RUNS,
    NGX_HTTP_PROFILE_JOB_ENDED,       /* "done" is called next */
    NGX_HTTP_PROFILE_JOB_FREED        /* the thread frees the job */
} ngx_http_profile_job_state_e;


typedef void (*ngx_http_profile_job_pt)(void *data);


typedef struct {
    ngx_http_profile_job_pt        work;     /* runs in the thread; must not
                                                use data of the event loop */
    ngx_http_profile_job_pt        done;     /* runs in the event loop,
                                                once, after "work"; it may
                                                free the job */
    void                          *data;     /* argument of both */
    ngx_http_profile_job_rank_e    rank;
    size_t                         size;     /* memory of the job, in bytes */

    /* set by ngx_http_profile_job_start() */

    ngx_queue_t                    queue;
    ngx_http_profile_job_state_e   state;
    unsigned                       worked:1; /* 0 in "done": the worker
                                                exits, and the work was not
                                                started */
} ngx_http_profile_job_t;


PROF_HIDDEN_BEGIN

/*
 * Checks whether a job of the rank would be accepted.  Call it before the data
 * of the job is made.  Returns NGX_OK, NGX_BUSY if the queue is full, or
 * NGX_ERROR if the thread cannot be started (logged).
 */
ngx_int_t ngx_http_profile_job_room(ngx_http_profile_job_rank_e rank);

/*
 * Queues the job.  The caller has set work, done, data, rank and size.
 * Returns NGX_OK, or NGX_BUSY and NGX_ERROR as ngx_http_profile_job_room():
 * then no function was called, and the caller owns the job.  A worker that
 * shuts down does not exit before the work is done, but waits at most five
 * seconds for jobs of no client.  A worker that exits at once, or after this
 * time, drops jobs that have not started, unless their rank is "needed".
 */
ngx_int_t ngx_http_profile_job_start(ngx_http_profile_job_t *job);

/*
 * Cancels the job.  Returns NGX_OK if the job had not started; the caller then
 * owns it.  Returns NGX_DECLINED if "done" will be called.
 */
ngx_int_t ngx_http_profile_job_cancel(ngx_http_profile_job_t *job);

/*
 * Frees the job and its data: the thread calls handler(job->data), so that
 * large blocks do not hold the event loop.  The job is not in the queue: it was
 * never started, it was cancelled, or "done" was called.  This function never
 * fails.  Without a thread it calls the handler itself.
 */
void ngx_http_profile_job_free(ngx_http_profile_job_t *job,
    ngx_http_profile_job_pt handler);

/*
 * Free a profile, and a capture or heap whose profile is not needed.  The
 * capture or heap ends at once.  The thread frees large memory.  These
 * functions never fail.
 */
void ngx_http_profile_free_profile(prof_profile_t *p);
void ngx_http_profile_free_capture(prof_capture_t *c);
void ngx_http_profile_free_heap(prof_heap_t *h);

/*
 * Lets the thread unmap the memory of samplers that have ended.  The thread
 * also does this after each job.
 */
void ngx_http_profile_job_trim(void);

/* returns the number of queued and running jobs, and their memory */
ngx_uint_t ngx_http_profile_jobs(size_t *size);

/*
 * Called when the worker exits: waits for the thread, because its data is
 * freed with the worker, and calls "done" of each job.
 */
void ngx_http_profile_job_finish_all(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_JOB_H_INCLUDED_ */
