
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A worker's share in a capture of workers.
 *
 * While there are shares, a timer empties the sample rings.  This timer and
 * those of the shares are "cancelable": a worker that shuts down does not wait
 * for them, but reports its samples.
 */


#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_log_limit.h"
#include "core/ngx_http_profile_room.h"
#include "loop/ngx_http_profile_loop.h"
#include "core/ngx_http_profile_job.h"
#include "workers/ngx_http_profile_endpoint.h"
#include "workers/ngx_http_profile_share.h"

#include <signal.h>


#define NGX_HTTP_PROFILE_DRAIN  100      /* ms */

/* Hz, the lowest tick rate of common kernels */
#define NGX_HTTP_PROFILE_TICKS  100


typedef struct {
    ngx_queue_t                   queue;
    uint64_t                      id;
    uint64_t                      begin;
    uint64_t                      end;
    ngx_uint_t                    asker;       /* number of the asker */
    ngx_pid_t                     asker_pid;
    int                           fd;
    prof_capture_t               *capture;
    prof_heap_t                  *heap;        /* allocations; or NULL */
    ngx_http_profile_endpoint_t  *endpoint;    /* requests; or NULL */
    ngx_event_t                   timer;
    ngx_connection_t              connection;  /* for nginx's debug messages */
    ngx_http_profile_job_t        job;
    unsigned                      armed:1;
    unsigned                      located:1;
    unsigned                      traced:1;

    /* the members below belong to the thread */

    prof_profile_t               *profile;
    ngx_http_profile_sum_t       *sum;         /* of an endpoint, or NULL */
    ngx_uint_t                    report;
} ngx_http_profile_share_t;


static ngx_int_t ngx_http_profile_share_begin(ngx_http_profile_message_t *m,
    int fd, ngx_uint_t *report);
static ngx_int_t ngx_http_profile_share_start(ngx_http_profile_share_t *share,
    ngx_http_profile_message_t *m);
static ngx_int_t ngx_http_profile_share_endpoint(
    ngx_http_profile_share_t *share, ngx_http_profile_message_t *m);
static ngx_int_t ngx_http_profile_share_heap(ngx_http_profile_share_t *share,
    ngx_http_profile_message_t *m);
static void ngx_http_profile_share_timer(ngx_event_t *ev);
static void ngx_http_profile_share_finish(ngx_http_profile_share_t *share,
    ngx_uint_t report);
static void ngx_http_profile_share_leave(ngx_http_profile_share_t *share);
static void ngx_http_profile_share_drop(ngx_http_profile_share_t *share);
static void ngx_http_profile_share_write(void *data);
static void ngx_http_profile_share_done(void *data);
static void ngx_http_profile_share_report(ngx_uint_t asker, uint64_t id,
    ngx_uint_t type, ngx_uint_t report);
static void ngx_http_profile_share_disarm(ngx_http_profile_share_t *share);
static void ngx_http_profile_share_free(ngx_http_profile_share_t *share);
static void ngx_http_profile_share_exit(void);
static void ngx_http_profile_drain_begin(void);
static ngx_msec_t ngx_http_profile_drain_wait(void);
static void ngx_http_profile_drain_timer(ngx_event_t *ev);


/* the shares of this worker's running captures */

static ngx_queue_t  ngx_http_profile_shares = {
    &ngx_http_profile_shares, &ngx_http_profile_shares
};

/* the number of shares that capture all threads of the worker */

static ngx_uint_t        ngx_http_profile_nsampled;

static ngx_event_t       ngx_http_profile_drain;
static ngx_connection_t  ngx_http_profile_drain_connection;


ngx_http_profile_room_t  ngx_http_profile_workers_room = {
    NULL,                                  /* commands */
    NULL,                                  /* create */
    NULL,                                  /* create server */
    NULL,                                  /* create location */
    NULL,                                  /* init */
    NULL,                                  /* merge server */
    NULL,                                  /* merge location */
    ngx_http_profile_share_exit
};


void
ngx_http_profile_share_order(ngx_http_profile_message_t *m, int fd)
{
    ngx_uint_t  report;

    if (!ngx_http_profile_attendant_claim(m->worker, m->id)) {
        (void) close(fd);
        return;
    }

    if (ngx_http_profile_share_begin(m, fd, &report) == NGX_OK) {
        ngx_http_profile_share_report(m->worker, m->id,
                                      NGX_HTTP_PROFILE_BEGUN, 0);
        return;
    }

    ngx_http_profile_share_report(m->worker, m->id, NGX_HTTP_PROFILE_REPORT,
                                  report);
    (void) close(fd);
}


static ngx_int_t
ngx_http_profile_share_begin(ngx_http_profile_message_t *m, int fd,
    ngx_uint_t *report)
{
    uint64_t                   now;
    ngx_int_t                  rc;
    ngx_http_profile_share_t  *share;

    *report = NGX_HTTP_PROFILE_LATE;

    now = prof_now();

    if (m->end <= now) {
        return NGX_ERROR;
    }

    *report = NGX_HTTP_PROFILE_FAILED;

    share = ngx_calloc(sizeof(ngx_http_profile_share_t), ngx_cycle->log);
    if (share == NULL) {
        return NGX_ERROR;
    }

    share->id = m->id;
    share->begin = now;
    share->end = m->end;
    share->asker = m->worker;
    share->asker_pid = m->pid;
    share->fd = fd;

    if (m->filter.enabled) {
        rc = ngx_http_profile_share_endpoint(share, m);

    } else if (m->conf.mode == PROF_MODE_OBJECT) {
        rc = ngx_http_profile_share_heap(share, m);

    } else {
        rc = ngx_http_profile_share_start(share, m);
    }

    if (rc != NGX_OK) {
        *report = (rc == NGX_BUSY) ? NGX_HTTP_PROFILE_BUSY
                                   : NGX_HTTP_PROFILE_FAILED;
        ngx_free(share);
        return NGX_ERROR;
    }

    share->connection.fd = (ngx_socket_t) -1;
    share->connection.data = share;

    share->timer.handler = ngx_http_profile_share_timer;
    share->timer.data = &share->connection;
    share->timer.log = ngx_cycle->log;
    share->timer.cancelable = 1;

    ngx_add_timer(&share->timer, (m->end - now) / 1000000 + 1);

    if (ngx_queue_empty(&ngx_http_profile_shares)) {
        ngx_http_profile_drain_begin();
    }

    ngx_queue_insert_tail(&ngx_http_profile_shares, &share->queue);

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: share of capture %uL begins, asker %uD, "
                   "endpoint: %d",
                   share->id, m->worker, share->endpoint != NULL);

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_share_start(ngx_http_profile_share_t *share,
    ngx_http_profile_message_t *m)
{
    int          rc;
    const char  *err;

    if (ngx_http_profile_nsampled == NGX_HTTP_PROFILE_SHARES) {
        return NGX_BUSY;
    }

    share->capture = prof_capture_create(&m->conf);

    if (share->capture == NULL) {
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                             "profile: no memory to capture the worker");
        return NGX_ERROR;
    }

    /*
     * The module must run the event loop to pace the timer around polls, and
     * to know the request of each sample.
     */

    if ((m->conf.mode == PROF_MODE_WALL
         || m->conf.frequency > NGX_HTTP_PROFILE_TICKS
         || m->traces)
        && ngx_http_profile_arm() == NGX_OK)
    {
        share->armed = 1;
    }

    share->traced = share->armed && m->traces
                    && prof_process_traces(share->capture, m->traces)
                       == PROF_OK;

    share->located = share->armed
                     && (m->conf.mode == PROF_MODE_WALL || share->traced)
                     && ngx_http_profile_labels_begin(share->traced) == NGX_OK;

    rc = prof_process_start(share->capture, share->armed, &err);

    if (rc == PROF_OK) {
        ngx_http_profile_nsampled++;
        return NGX_OK;
    }

    ngx_http_profile_share_disarm(share);

    prof_capture_destroy(share->capture);

    if (rc == PROF_LIMIT) {
        return NGX_BUSY;
    }

    ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                         "profile: %s", err);

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_profile_share_endpoint(ngx_http_profile_share_t *share,
    ngx_http_profile_message_t *m)
{
    share->endpoint = ngx_http_profile_endpoint_create(&m->filter, &m->conf,
                                                       m->traces);

    if (share->endpoint) {
        return NGX_OK;
    }

    return ngx_errno == NGX_EBUSY ? NGX_BUSY : NGX_ERROR;
}


static ngx_int_t
ngx_http_profile_share_heap(ngx_http_profile_share_t *share,
    ngx_http_profile_message_t *m)
{
    const char        *err;
    prof_heap_conf_t   conf;

    conf.memory = m->conf.memory;
    conf.interval = m->interval;
    conf.process = 1;

    share->heap = prof_heap_create(&conf, &err);

    if (share->heap) {
        return NGX_OK;
    }

    if (ngx_errno == NGX_EBUSY) {
        return NGX_BUSY;
    }

    ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                         "profile: %s", err);

    return NGX_ERROR;
}


static void
ngx_http_profile_share_timer(ngx_event_t *ev)
{
    ngx_connection_t  *c;

    ngx_http_profile_own_work();

    c = ev->data;

    ngx_http_profile_share_finish(c->data, NGX_HTTP_PROFILE_DONE);
}


static void
ngx_http_profile_share_finish(ngx_http_profile_share_t *share,
    ngx_uint_t report)
{
    ngx_http_profile_share_leave(share);

    if (share->endpoint) {
        share->sum = ngx_http_profile_endpoint_finish(share->endpoint);
        share->endpoint = NULL;

    } else if (share->heap) {
        share->profile = prof_heap_finish(share->heap, "worker");
        share->heap = NULL;

    } else {
        if (share->located) {
            ngx_http_profile_waiting(share->capture, share->begin);
        }

        share->profile = prof_process_finish(share->capture, "worker");
        ngx_http_profile_nsampled--;

        ngx_http_profile_share_disarm(share);

        prof_capture_destroy(share->capture);
        share->capture = NULL;
    }

    share->report = report;

    share->job.work = ngx_http_profile_share_write;
    share->job.done = ngx_http_profile_share_done;
    share->job.data = share;
    share->job.rank = NGX_HTTP_PROFILE_JOB_NEEDED;
    share->job.size = share->profile ? prof_profile_size(share->profile) : 0;

    ngx_http_profile_share_report(share->asker, share->id,
                                  NGX_HTTP_PROFILE_WRITING, share->report);

    if (ngx_http_profile_job_start(&share->job) != NGX_OK) {
        share->report = NGX_HTTP_PROFILE_FAILED;
        ngx_http_profile_share_done(share);
    }
}


static void
ngx_http_profile_share_leave(ngx_http_profile_share_t *share)
{
    ngx_queue_remove(&share->queue);

    if (share->timer.timer_set) {
        ngx_del_timer(&share->timer);
    }

    /* the timers of the last capture's threads are deleted in parts */

    if (ngx_queue_empty(&ngx_http_profile_shares)) {

        if (ngx_http_profile_drain.timer_set) {
            ngx_del_timer(&ngx_http_profile_drain);
        }

        ngx_add_timer(&ngx_http_profile_drain, 1);
    }
}


/* runs in a thread */

static void
ngx_http_profile_share_write(void *data)
{
    ngx_http_profile_share_t *share = data;

    if (share->sum) {
        share->profile = ngx_http_profile_sum_finish(share->sum);
    }

    if (share->profile == NULL
        || prof_profile_complete(share->profile) != PROF_OK
        || ngx_http_profile_share_archive(share->profile, share->fd) != NGX_OK)
    {
        share->report = NGX_HTTP_PROFILE_FAILED;
    }

    prof_profile_destroy(share->profile);
    share->profile = NULL;
}


/* writes the archive of a worker to the asker's file */

ngx_int_t
ngx_http_profile_share_archive(prof_profile_t *p, int fd)
{
    size_t      len;
    ssize_t     n;
    prof_buf_t  out;

    prof_buf_init(&out);

    n = (prof_archive_write(p, &out) == PROF_OK && !prof_buf_failed(&out))
        ? 0 : -1;

    for (len = 0; n != -1 && len < out.len; len += n) {
        n = write(fd, out.data + len, out.len - len);
    }

    prof_buf_free(&out);

    return n == -1 ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_profile_share_done(void *data)
{
    ngx_http_profile_share_t *share = data;

    ngx_http_profile_free_profile(share->profile);

    if (share->sum) {
        ngx_http_profile_sum_free(share->sum);
    }

    if (share->report == NGX_HTTP_PROFILE_FAILED) {
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, 0,
                             "profile: no memory or no thread for the "
                             "profile of the worker");
    }

    ngx_http_profile_share_report(share->asker, share->id,
                                  NGX_HTTP_PROFILE_REPORT, share->report);
    ngx_http_profile_share_free(share);
}


static void
ngx_http_profile_share_report(ngx_uint_t asker, uint64_t id, ngx_uint_t type,
    ngx_uint_t report)
{
    ngx_http_profile_message_t  m;

    ngx_memzero(&m, sizeof(ngx_http_profile_message_t));

    m.type = type;
    m.report = report;
    m.id = id;

    (void) ngx_http_profile_inbox_send(asker, &m, -1);
}


void
ngx_http_profile_share_cancel(ngx_http_profile_message_t *m)
{
    ngx_queue_t               *q;
    ngx_http_profile_share_t  *share;

    for (q = ngx_queue_head(&ngx_http_profile_shares);
         q != ngx_queue_sentinel(&ngx_http_profile_shares);
         q = ngx_queue_next(q))
    {
        share = ngx_queue_data(q, ngx_http_profile_share_t, queue);

        if (share->id == m->id && share->asker == m->worker) {
            ngx_http_profile_share_drop(share);
            return;
        }
    }
}


/* ends a share without its profile */

static void
ngx_http_profile_share_drop(ngx_http_profile_share_t *share)
{
    ngx_http_profile_share_leave(share);

    if (share->endpoint) {
        ngx_http_profile_endpoint_cancel(share->endpoint);

    } else if (share->heap) {
        ngx_http_profile_free_heap(share->heap);

    } else {
        prof_process_cancel(share->capture);
        ngx_http_profile_nsampled--;
        ngx_http_profile_share_disarm(share);
        ngx_http_profile_free_capture(share->capture);
        ngx_http_profile_job_trim();
    }

    ngx_http_profile_share_free(share);
}


static void
ngx_http_profile_share_disarm(ngx_http_profile_share_t *share)
{
    if (share->located) {
        share->located = 0;
        ngx_http_profile_labels_end(share->traced);
    }

    if (share->armed) {
        share->armed = 0;
        ngx_http_profile_disarm();
    }
}


static void
ngx_http_profile_share_free(ngx_http_profile_share_t *share)
{
    (void) close(share->fd);

    ngx_free(share);
}


/* called when the worker exits: reports its shares to their askers */

static void
ngx_http_profile_share_exit(void)
{
    ngx_queue_t               *q;
    ngx_http_profile_share_t  *share;

    while (!ngx_queue_empty(&ngx_http_profile_shares)) {
        q = ngx_queue_head(&ngx_http_profile_shares);
        share = ngx_queue_data(q, ngx_http_profile_share_t, queue);

        ngx_http_profile_share_finish(share, NGX_HTTP_PROFILE_EARLY);
    }
}


static void
ngx_http_profile_drain_begin(void)
{
    ngx_http_profile_drain_connection.fd = (ngx_socket_t) -1;

    ngx_http_profile_drain.handler = ngx_http_profile_drain_timer;
    ngx_http_profile_drain.data = &ngx_http_profile_drain_connection;
    ngx_http_profile_drain.log = ngx_cycle->log;
    ngx_http_profile_drain.cancelable = 1;

    ngx_add_timer(&ngx_http_profile_drain, ngx_http_profile_drain_wait());
}


/* the threads of a capture are soon found */

static ngx_msec_t
ngx_http_profile_drain_wait(void)
{
    ngx_msec_t  wait;

    wait = prof_process_pending();

    return wait ? wait : NGX_HTTP_PROFILE_DRAIN;
}


static void
ngx_http_profile_drain_timer(ngx_event_t *ev)
{
    ngx_queue_t               *q, *next;
    ngx_http_profile_share_t  *share;

    ngx_http_profile_own_work();

    prof_process_drain();

    /* unmaps the memory of threads that have ended */

    ngx_http_profile_job_trim();

    if (ngx_queue_empty(&ngx_http_profile_shares) && !prof_process_pending()) {
        return;
    }

    ev->log = ngx_cycle->log;
    ngx_add_timer(ev, ngx_http_profile_drain_wait());

    for (q = ngx_queue_head(&ngx_http_profile_shares);
         q != ngx_queue_sentinel(&ngx_http_profile_shares);
         q = next)
    {
        next = ngx_queue_next(q);
        share = ngx_queue_data(q, ngx_http_profile_share_t, queue);

        /* a killed asker cannot cancel its capture */

        if (share->asker_pid != ngx_pid
            && kill(share->asker_pid, 0) == -1 && ngx_errno == NGX_ESRCH)
        {
            ngx_http_profile_share_drop(share);
            continue;
        }

        if (share->endpoint
            && ngx_http_profile_endpoint_full(share->endpoint))
        {
            ngx_http_profile_share_finish(share, NGX_HTTP_PROFILE_DONE);
        }
    }
}
