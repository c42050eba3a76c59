
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Rendering: naming the frames and encoding takes milliseconds to seconds and
 * reads files, so it is done by a job.  The thread gets a profile that refers
 * to nothing of the process.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_job.h"


struct ngx_http_profile_render_s {
    ngx_http_profile_job_t   job;
    ngx_http_profile_ctx_t  *ctx;          /* NULL: nobody waits any more */
    unsigned                 ended:1;

    /* the thread's, until the job is done */

    prof_profile_t          *profile;
    const prof_encoder_t    *encoder;
    prof_buf_t               out;
    int                      rc;

    unsigned                 negotiated:1; /* the format, by Accept */
    unsigned                 gzip:1;       /* the client takes it */
    unsigned                 compressible:1;
    unsigned                 compressed:1;
};


static void ngx_http_profile_render_work(void *data);
static void ngx_http_profile_render_gzip(ngx_http_profile_render_t *render);
static void ngx_http_profile_render_done(void *data);
static void ngx_http_profile_render_finish(ngx_http_profile_render_t *render);
static void ngx_http_profile_render_headers(ngx_http_profile_render_t *render,
    ngx_http_profile_reply_t *reply);
static void ngx_http_profile_render_free(ngx_http_profile_render_t *render);


/* the job takes the profile over */

ngx_int_t
ngx_http_profile_render(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_render_t  *render;

    render = ngx_calloc(sizeof(ngx_http_profile_render_t), ngx_cycle->log);
    if (render == NULL) {
        return NGX_ERROR;
    }

    prof_buf_init(&render->out);

    render->encoder = ngx_http_profile_accept_format(ctx);
    render->negotiated = ctx->trigger.format == NULL;
    render->gzip = ngx_http_profile_accept_gzip(ctx);
    render->ctx = ctx;
    render->profile = ctx->profile;

    render->job.work = ngx_http_profile_render_work;
    render->job.done = ngx_http_profile_render_done;
    render->job.data = render;

    if (ngx_http_profile_job_start(&render->job) != NGX_OK) {
        ngx_free(render);
        return NGX_ERROR;
    }

    ctx->profile = NULL;
    ctx->render = render;

    return NGX_OK;
}


static void
ngx_http_profile_render_work(void *data)
{
    ngx_http_profile_render_t *render = data;

    render->rc = prof_profile_symbolize(render->profile);

    if (render->rc == PROF_OK) {
        render->rc = render->encoder->encode(render->profile, &render->out);
    }

    if (render->rc == PROF_OK) {
        ngx_http_profile_render_gzip(render);
    }

    prof_profile_destroy(render->profile);
}


/* without memory for it, it is sent as it is */

static void
ngx_http_profile_render_gzip(ngx_http_profile_render_t *render)
{
    prof_buf_t  out;

    if (prof_gzip_is(render->out.data, render->out.len)) {
        return;
    }

    render->compressible = 1;

    if (!render->gzip) {
        return;
    }

    prof_buf_init(&out);

    if (prof_gzip(render->out.data, render->out.len, &out) != PROF_OK) {
        prof_buf_free(&out);
        return;
    }

    prof_buf_free(&render->out);

    render->out = out;
    render->compressed = 1;
}


static void
ngx_http_profile_render_done(void *data)
{
    ngx_http_profile_render_t *render = data;

    render->ended = 1;

    if (render->ctx == NULL) {
        ngx_http_profile_render_free(render);
        return;
    }

    ngx_http_profile_render_finish(render);
}


static void
ngx_http_profile_render_finish(ngx_http_profile_render_t *render)
{
    ngx_http_profile_ctx_t    *ctx;
    ngx_http_profile_reply_t  *reply;

    ctx = render->ctx;
    reply = &ctx->reply;

    if (render->rc == PROF_OK && !prof_buf_failed(&render->out)) {
        reply->status = NGX_HTTP_OK;
        reply->body.data = (u_char *) render->out.data;
        reply->body.len = render->out.len;

        ngx_http_profile_render_headers(render, reply);

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
ngx_http_profile_render_headers(ngx_http_profile_render_t *render,
    ngx_http_profile_reply_t *reply)
{
    const char  *p;

    p = render->encoder->content_type;
    reply->content_type.data = (u_char *) p;
    reply->content_type.len = ngx_strlen(p);

    if (render->encoder->download) {
        p = render->encoder->extension;
        reply->extension.data = (u_char *) p;
        reply->extension.len = ngx_strlen(p);
    }

    if (render->encoder->csp) {
        p = render->encoder->csp;
        reply->csp.data = (u_char *) p;
        reply->csp.len = ngx_strlen(p);
    }

    if (render->negotiated && render->compressible) {
        ngx_str_set(&reply->vary, "Accept, Accept-Encoding");

    } else if (render->negotiated) {
        ngx_str_set(&reply->vary, "Accept");

    } else if (render->compressible) {
        ngx_str_set(&reply->vary, "Accept-Encoding");
    }

    if (render->compressed) {
        ngx_str_set(&reply->encoding, "gzip");
    }
}


/* the request is freed, and with it all buffers that refer to the output */

void
ngx_http_profile_render_abandon(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_render_t  *render;

    render = ctx->render;

    if (render == NULL) {
        return;
    }

    ctx->render = NULL;
    render->ctx = NULL;

    if (render->ended) {
        ngx_http_profile_render_free(render);
    }
}


static void
ngx_http_profile_render_free(ngx_http_profile_render_t *render)
{
    prof_buf_free(&render->out);
    ngx_free(render);
}
