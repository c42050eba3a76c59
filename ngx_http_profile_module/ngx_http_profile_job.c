
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Jobs.  The worker looks at a flag from a timer: at most a few milliseconds
 * late, without a descriptor or a connection.
 */


#include "ngx_http_profile_job.h"

#include <signal.h>


#define NGX_HTTP_PROFILE_POLL_FIRST  1
#define NGX_HTTP_PROFILE_POLL_LAST   20


static ngx_int_t ngx_http_profile_job_thread(ngx_http_profile_job_t *job);
static void *ngx_http_profile_job_cycle(void *data);
static void ngx_http_profile_job_timer(ngx_event_t *ev);
static void ngx_http_profile_job_end(ngx_http_profile_job_t *job);


static ngx_queue_t  ngx_http_profile_jobs = {
    &ngx_http_profile_jobs, &ngx_http_profile_jobs
};


ngx_int_t
ngx_http_profile_job_start(ngx_http_profile_job_t *job)
{
    ngx_memzero(&job->timer, sizeof(ngx_event_t));
    ngx_memzero(&job->connection, sizeof(ngx_connection_t));

    job->finished = 0;
    job->wait = NGX_HTTP_PROFILE_POLL_FIRST;

    job->connection.fd = (ngx_socket_t) -1;
    job->connection.data = job;

    job->timer.handler = ngx_http_profile_job_timer;
    job->timer.data = &job->connection;
    job->timer.log = ngx_cycle->log;

    if (ngx_http_profile_job_thread(job) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_queue_insert_tail(&ngx_http_profile_jobs, &job->queue);
    ngx_add_timer(&job->timer, job->wait);

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_job_thread(ngx_http_profile_job_t *job)
{
    int       err;
    sigset_t  all, old;

    /* signals are the worker's: its handlers expect its thread */

    sigfillset(&all);

    err = pthread_sigmask(SIG_BLOCK, &all, &old);

    if (err == 0) {
        err = pthread_create(&job->thread, NULL, ngx_http_profile_job_cycle,
                             job);

        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
    }

    if (err) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "profile: pthread_create() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void *
ngx_http_profile_job_cycle(void *data)
{
    ngx_http_profile_job_t *job = data;

    /* what the profiler allocates is nobody's */

    prof_heap_mute();

    job->work(job->data);

    __atomic_store_n(&job->finished, 1, __ATOMIC_RELEASE);

    return NULL;
}


static void
ngx_http_profile_job_timer(ngx_event_t *ev)
{
    ngx_connection_t        *c;
    ngx_http_profile_job_t  *job;

    c = ev->data;
    job = c->data;

    if (!__atomic_load_n(&job->finished, __ATOMIC_ACQUIRE)) {

        job->wait = ngx_min(job->wait * 2, NGX_HTTP_PROFILE_POLL_LAST);
        ngx_add_timer(ev, job->wait);

        return;
    }

    ngx_http_profile_job_end(job);
}


static void
ngx_http_profile_job_end(ngx_http_profile_job_t *job)
{
    (void) pthread_join(job->thread, NULL);

    ngx_queue_remove(&job->queue);

    job->done(job->data);
}


void
ngx_http_profile_job_finish_all(void)
{
    ngx_queue_t             *q;
    ngx_http_profile_job_t  *job;

    while (!ngx_queue_empty(&ngx_http_profile_jobs)) {

        q = ngx_queue_head(&ngx_http_profile_jobs);
        job = ngx_queue_data(q, ngx_http_profile_job_t, queue);

        if (job->timer.timer_set) {
            ngx_del_timer(&job->timer);
        }

        ngx_http_profile_job_end(job);
    }
}
