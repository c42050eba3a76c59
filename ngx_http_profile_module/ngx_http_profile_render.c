
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Rendering: naming the frames and encoding takes milliseconds to seconds and
 * reads files, so it is done by a thread of its own, which is started for one
 * profile and ends with it.  nginx's thread pools would do, but a pool must be
 * configured, starts its threads in every worker, and may not be compiled in.
 *
 * The thread touches nothing but its job.  The worker looks at a flag from a
 * timer: at most a millisecond late, without a descriptor or a connection.
 */


#include "ngx_http_profile.h"

#include <pthread.h>
#include <signal.h>


#define NGX_HTTP_PROFILE_POLL_FIRST  1
#define NGX_HTTP_PROFILE_POLL_LAST   20


struct ngx_http_profile_render_s {
    ngx_queue_t              queue;
    ngx_event_t              timer;
    ngx_connection_t         connection;   /* for nginx's debug messages */
    ngx_msec_t               wait;
    pthread_t                thread;
    ngx_http_profile_ctx_t  *ctx;          /* NULL: nobody waits any more */
    unsigned                 joined:1;

    /* the thread's, until done is set */

    prof_profile_t          *profile;
    const prof_encoder_t    *encoder;
    prof_buf_t               out;
    int                      rc;
    int                      done;

    unsigned                 negotiated:1; /* the format, by Accept */
    unsigned                 gzip:1;       /* the client takes it */
    unsigned                 compressible:1;
    unsigned                 compressed:1;
};


static ngx_int_t ngx_http_profile_render_thread(
    ngx_http_profile_render_t *job);
static void *ngx_http_profile_render_cycle(void *data);
static void ngx_http_profile_render_gzip(ngx_http_profile_render_t *job);
static void ngx_http_profile_render_timer(ngx_event_t *ev);
static void ngx_http_profile_render_finish(ngx_http_profile_render_t *job);
static void ngx_http_profile_render_headers(ngx_http_profile_render_t *job,
    ngx_http_profile_reply_t *reply);
static void ngx_http_profile_render_free(ngx_http_profile_render_t *job);


static ngx_queue_t  ngx_http_profile_jobs = {
    &ngx_http_profile_jobs, &ngx_http_profile_jobs
};


/* the job takes the profile over */

ngx_int_t
ngx_http_profile_render(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_render_t  *job;

    job = ngx_calloc(sizeof(ngx_http_profile_render_t), ngx_cycle->log);
    if (job == NULL) {
        return NGX_ERROR;
    }

    prof_buf_init(&job->out);

    job->encoder = ngx_http_profile_accept_format(ctx);
    job->negotiated = ctx->trigger.format == NULL;
    job->gzip = ngx_http_profile_accept_gzip(ctx);
    job->ctx = ctx;
    job->profile = ctx->profile;

    job->connection.fd = (ngx_socket_t) -1;
    job->timer.handler = ngx_http_profile_render_timer;
    job->timer.data = &job->connection;
    job->timer.log = ngx_cycle->log;
    job->connection.data = job;
    job->wait = NGX_HTTP_PROFILE_POLL_FIRST;

    if (ngx_http_profile_render_thread(job) != NGX_OK) {
        ngx_free(job);
        return NGX_ERROR;
    }

    ctx->profile = NULL;
    ctx->render = job;

    ngx_queue_insert_tail(&ngx_http_profile_jobs, &job->queue);
    ngx_add_timer(&job->timer, job->wait);

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_render_thread(ngx_http_profile_render_t *job)
{
    int       err;
    sigset_t  all, old;

    /* signals are the worker's: its handlers expect its thread */

    sigfillset(&all);

    err = pthread_sigmask(SIG_BLOCK, &all, &old);

    if (err == 0) {
        err = pthread_create(&job->thread, NULL,
                             ngx_http_profile_render_cycle, job);

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
ngx_http_profile_render_cycle(void *data)
{
    ngx_http_profile_render_t *job = data;

    job->rc = prof_profile_symbolize(job->profile);

    if (job->rc == PROF_OK) {
        job->rc = job->encoder->encode(job->profile, &job->out);
    }

    if (job->rc == PROF_OK) {
        ngx_http_profile_render_gzip(job);
    }

    prof_profile_destroy(job->profile);

    __atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);

    return NULL;
}


/* without memory for it, it is sent as it is */

static void
ngx_http_profile_render_gzip(ngx_http_profile_render_t *job)
{
    prof_buf_t  out;

    if (prof_gzip_is(job->out.data, job->out.len)) {
        return;
    }

    job->compressible = 1;

    if (!job->gzip) {
        return;
    }

    prof_buf_init(&out);

    if (prof_gzip(job->out.data, job->out.len, &out) != PROF_OK) {
        prof_buf_free(&out);
        return;
    }

    prof_buf_free(&job->out);

    job->out = out;
    job->compressed = 1;
}


static void
ngx_http_profile_render_timer(ngx_event_t *ev)
{
    ngx_connection_t           *c;
    ngx_http_profile_render_t  *job;

    c = ev->data;
    job = c->data;

    if (!__atomic_load_n(&job->done, __ATOMIC_ACQUIRE)) {

        job->wait = ngx_min(job->wait * 2, NGX_HTTP_PROFILE_POLL_LAST);
        ngx_add_timer(ev, job->wait);

        return;
    }

    (void) pthread_join(job->thread, NULL);

    ngx_queue_remove(&job->queue);
    job->joined = 1;

    if (job->ctx == NULL) {
        ngx_http_profile_render_free(job);
        return;
    }

    ngx_http_profile_render_finish(job);
}


static void
ngx_http_profile_render_finish(ngx_http_profile_render_t *job)
{
    ngx_http_profile_ctx_t    *ctx;
    ngx_http_profile_reply_t  *reply;

    ctx = job->ctx;
    reply = &ctx->reply;

    if (job->rc == PROF_OK && !prof_buf_failed(&job->out)) {
        reply->status = NGX_HTTP_OK;
        reply->body.data = (u_char *) job->out.data;
        reply->body.len = job->out.len;

        ngx_http_profile_render_headers(job, reply);

    } else {
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "profile: no memory to render it");

        reply->status = NGX_HTTP_INTERNAL_SERVER_ERROR;
        ngx_str_set(&reply->body, "no memory to render the profile\n");
        ngx_str_set(&reply->content_type, "text/plain");
    }

    reply->ready = 1;

    ngx_post_event(ctx->request->connection->write, &ngx_posted_events);
}


static void
ngx_http_profile_render_headers(ngx_http_profile_render_t *job,
    ngx_http_profile_reply_t *reply)
{
    const char  *p;

    p = job->encoder->content_type;
    reply->content_type.data = (u_char *) p;
    reply->content_type.len = ngx_strlen(p);

    if (job->encoder->download) {
        p = job->encoder->extension;
        reply->extension.data = (u_char *) p;
        reply->extension.len = ngx_strlen(p);
    }

    if (job->encoder->csp) {
        p = job->encoder->csp;
        reply->csp.data = (u_char *) p;
        reply->csp.len = ngx_strlen(p);
    }

    if (job->negotiated && job->compressible) {
        ngx_str_set(&reply->vary, "Accept, Accept-Encoding");

    } else if (job->negotiated) {
        ngx_str_set(&reply->vary, "Accept");

    } else if (job->compressible) {
        ngx_str_set(&reply->vary, "Accept-Encoding");
    }

    if (job->compressed) {
        ngx_str_set(&reply->encoding, "gzip");
    }
}


/* the request is freed, and with it all buffers that refer to the output */

void
ngx_http_profile_render_abandon(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_render_t  *job;

    job = ctx->render;

    if (job == NULL) {
        return;
    }

    ctx->render = NULL;
    job->ctx = NULL;

    if (job->joined) {
        ngx_http_profile_render_free(job);
    }
}


static void
ngx_http_profile_render_free(ngx_http_profile_render_t *job)
{
    prof_buf_free(&job->out);
    ngx_free(job);
}


/* the worker exits: its threads use memory that goes with it */

void
ngx_http_profile_render_done(void)
{
    ngx_queue_t                *q;
    ngx_http_profile_render_t  *job;

    while (!ngx_queue_empty(&ngx_http_profile_jobs)) {

        q = ngx_queue_head(&ngx_http_profile_jobs);
        ngx_queue_remove(q);

        job = ngx_queue_data(q, ngx_http_profile_render_t, queue);

        (void) pthread_join(job->thread, NULL);
    }
}
