
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Rendering: a job names the frames and encodes the profile, because this takes
 * milliseconds to seconds and reads files.  The thread gets a profile without
 * references to other data of the process.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "request/ngx_http_profile_request_private.h"
#include "core/ngx_http_profile_fate.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_loss.h"
#include "core/ngx_http_profile_redact.h"
#include "store/ngx_http_profile_store.h"
#include "turns/ngx_http_profile_snapshot.h"


struct ngx_http_profile_render_s {
    ngx_http_profile_job_t      job;
    ngx_http_profile_ctx_t     *ctx;         /* NULL: the request is freed */
    unsigned                    ended:1;
    unsigned                    slot:1;      /* the job has a slot */

    /* the members below belong to the thread until the job is done */

    prof_profile_t             *profile;
    ngx_http_profile_snapshot_t
                               *snapshot;    /* of the turn log, or NULL */
    ngx_http_profile_store_t   *store;       /* NULL: no store */
    ngx_http_profile_stored_t  *facts;       /* of the store's entry */
    ngx_int_t                   stored;
    const prof_encoder_t       *encoder;     /* NULL: only for the store */
    prof_buf_t                  out;
    int                         rc;

    unsigned                    lost:1;       /* memory was short */
    unsigned                    page:1;       /* the console's page */
    unsigned                    negotiated:1; /* by the header Accept */
    ngx_http_profile_gzip_t     gzip;
};


static ngx_http_profile_stored_t *ngx_http_profile_facts(
    ngx_http_profile_ctx_t *ctx, prof_profile_t *p);
static void ngx_http_profile_render_turns(ngx_http_profile_render_t *render,
    ngx_http_profile_track_t *tr);
static void ngx_http_profile_render_late(void *data);
static void ngx_http_profile_render_work(void *data);
static void ngx_http_profile_render_store(ngx_http_profile_render_t *render);
static void ngx_http_profile_render_done(void *data);
static void ngx_http_profile_render_finish(ngx_http_profile_render_t *render);
static void ngx_http_profile_render_headers(ngx_http_profile_render_t *render,
    ngx_http_profile_reply_t *reply);
static void ngx_http_profile_render_free(ngx_http_profile_render_t *render);
static void ngx_http_profile_render_destroy(void *data);
static void ngx_http_profile_add_trace(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_add_fact(ngx_http_profile_ctx_t *ctx,
    const char *name, ngx_str_t *value);


/*
 * The job takes over ctx->profile.  If the job cannot be started, the profile
 * is freed; if memory for the job is short, the context keeps the profile.
 * Without a reply the job only stores the profile.
 */

ngx_int_t
ngx_http_profile_render(ngx_http_profile_ctx_t *ctx, ngx_uint_t reply)
{
    ngx_int_t                   rc;
    ngx_uint_t                  negotiated;
    ngx_http_profile_render_t  *render;

    render = ngx_calloc(sizeof(ngx_http_profile_render_t), ngx_cycle->log);
    if (render == NULL) {
        return NGX_ERROR;
    }

    prof_buf_init(&render->out);

    render->job.data = render;
    render->job.size = prof_profile_size(ctx->profile);

    render->profile = ctx->profile;
    ctx->profile = NULL;

    render->store = ngx_http_profile_store(ctx->request);

    if (render->store) {
        render->facts = ngx_http_profile_facts(ctx, render->profile);
    }

    if (reply) {
        render->encoder = ngx_http_profile_format(ctx, &negotiated);
        render->negotiated = negotiated;
        render->gzip.accepted = ngx_http_profile_accept_gzip(ctx->request);
        render->ctx = ctx;

        /* a browser gets the console's page, unless it asks for a format */

        render->page = render->negotiated && render->store
                       && render->encoder == &prof_encode_html
                       && ngx_http_profile_console_url(ctx->request);
    }

    render->job.work = ngx_http_profile_render_work;
    render->job.done = ngx_http_profile_render_done;
    render->job.rank = reply ? NGX_HTTP_PROFILE_JOB_ASKED
                     : ctx->slot ? NGX_HTTP_PROFILE_JOB_RECORDED
                     : NGX_HTTP_PROFILE_JOB_KEPT;

    if (render->store && render->facts == NULL) {
        ngx_http_profile_render_free(render);
        return NGX_ERROR;
    }

    ngx_http_profile_render_turns(render, ctx->track);

    rc = ngx_http_profile_object_wait(ctx, render->profile,
                                      ngx_http_profile_render_late,
                                      ngx_http_profile_render_done, render);

    if (rc != NGX_OK) {
        rc = ngx_http_profile_job_start(&render->job);
    }

    if (rc != NGX_OK) {
        ngx_http_profile_render_free(render);
        return rc;
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, ctx->request->connection->log, 0,
                   "profile: render %*s, format \"%s\", store: %d",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id,
                   render->encoder ? render->encoder->name : "",
                   render->store != NULL);

    /* the job sets the fate */

    if (!ctx->fated && render->store) {
        ngx_http_profile_fate_add(ctx->id);
    }

    ctx->fated = 0;

    if (render->store) {
        ngx_http_profile_log_id(ctx->track);
    }

    if (reply) {
        ctx->render = render;

    } else {
        render->slot = ctx->slot;
        ctx->slot = 0;
    }

    return NGX_OK;
}


/* the log of the time in which the request was open becomes a part */

static void
ngx_http_profile_render_turns(ngx_http_profile_render_t *render,
    ngx_http_profile_track_t *tr)
{
    ngx_http_profile_snapshot_t  *s;

    if (tr == NULL || tr->number == 0) {
        return;
    }

    s = ngx_http_profile_snapshot_begin(PROF_TURNS_PROFILED, tr->start, 1);

    if (s) {
        s->to = prof_now();
        s->request = tr->number;
        s->hidden = (render->encoder != NULL);
    }

    render->snapshot = s;
}


/* returns the facts of the request for the store; NULL if memory is short */

static ngx_http_profile_stored_t *
ngx_http_profile_facts(ngx_http_profile_ctx_t *ctx, prof_profile_t *profile)
{
    u_char                     *p, *copy;
    ngx_str_t                   method, uri;
    ngx_http_request_t         *r;
    ngx_http_profile_stored_t  *st;

    r = ctx->request;

    ngx_http_profile_sent(r, &method, &uri);

    uri = r->unparsed_uri;
    copy = ngx_http_profile_redact(r, &uri);

    st = ngx_calloc(sizeof(ngx_http_profile_stored_t) + method.len
                    + r->headers_in.server.len + uri.len,
                    ngx_cycle->log);
    if (st == NULL) {
        ngx_free(copy);
        return NULL;
    }

    p = (u_char *) (st + 1);

    ngx_str_set(&st->scope, "request");

    st->method.data = p;
    st->method.len = method.len;
    p = ngx_cpymem(p, method.data, method.len);

    st->host.data = p;
    st->host.len = r->headers_in.server.len;
    p = ngx_cpymem(p, r->headers_in.server.data, r->headers_in.server.len);

    st->uri.data = p;
    st->uri.len = uri.len;
    ngx_memcpy(p, uri.data, uri.len);
    ngx_free(copy);

    ngx_memcpy(st->id, ctx->id, NGX_HTTP_PROFILE_ID_LEN);

    st->start = (uint64_t) r->start_sec * 1000 + r->start_msec;
    st->status = ctx->status;
    st->waited = profile->wall - profile->running;
    st->worker = ngx_pid;

    return st;
}


static void
ngx_http_profile_render_late(void *data)
{
    ngx_http_profile_render_t *render = data;

    ngx_int_t  rc;

    /* the profile has its allocations now */

    render->job.size = prof_profile_size(render->profile);

    rc = ngx_http_profile_job_start(&render->job);

    if (rc != NGX_OK) {
        ngx_http_profile_lose(ngx_http_profile_loss_of(rc), ngx_cycle->log);
        ngx_http_profile_render_done(render);
    }
}


static void
ngx_http_profile_render_work(void *data)
{
    ngx_http_profile_render_t *render = data;

    render->rc = prof_profile_symbolize(render->profile);

    if (render->rc != PROF_OK) {
        render->lost = 1;

    } else {

        if (render->snapshot) {
            ngx_http_profile_snapshot_add(render->snapshot, render->profile);
        }

        if (render->store) {
            ngx_http_profile_render_store(render);
        }
    }

    render->page &= (render->stored == NGX_OK);

    if (render->rc == PROF_OK && render->encoder && !render->page) {
        render->rc = render->encoder->encode(render->profile, &render->out);

        if (render->rc == PROF_OK) {
            ngx_http_profile_gzip(&render->out, &render->gzip);
        }
    }

    prof_profile_destroy(render->profile);
    render->profile = NULL;
}


/* stores before encoding, so that readers of the reply find the profile */

static void
ngx_http_profile_render_store(ngx_http_profile_render_t *render)
{
    int         rc;
    prof_buf_t  archive;

    prof_buf_init(&archive);

    ngx_http_profile_store_measure(render->facts, render->profile);

    rc = prof_archive_write(render->profile, &archive);

    if (rc == PROF_OK) {
        render->facts->archive = (u_char *) archive.data;
        render->facts->size = archive.len;

        render->stored = ngx_http_profile_store_add(render->store,
                                                    render->facts,
                                                    ngx_cycle->log);

        /* a reader may delete the profile before the event loop comes here */

        if (render->stored == NGX_OK) {
            ngx_http_profile_fate_set(render->facts->id,
                                      NGX_HTTP_PROFILE_FATE_STORED);
        }

    } else {
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, 0,
                             "profile: %*s was not stored, it %s",
                             (size_t) NGX_HTTP_PROFILE_ID_LEN,
                             render->facts->id,
                             (rc == PROF_LIMIT) ? "is too large"
                                                : "needs more memory");
        render->stored = NGX_ERROR;
        render->lost = 1;
    }

    prof_buf_free(&archive);
}


static void
ngx_http_profile_render_done(void *data)
{
    ngx_http_profile_render_t *render = data;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: rendered: %d, stored: %i, request waits: %d",
                   render->rc, render->stored, render->ctx != NULL);

    render->ended = 1;

    if (render->facts) {
        ngx_http_profile_fate_set(render->facts->id,
                                  (render->job.worked && render->facts->size
                                   && render->stored == NGX_OK)
                                  ? NGX_HTTP_PROFILE_FATE_STORED
                                  : NGX_HTTP_PROFILE_FATE_NEVER);
    }

    if (render->lost) {
        ngx_http_profile_lose(NGX_HTTP_PROFILE_LOSS_MEMORY, ngx_cycle->log);

    } else if (render->job.worked
               && render->job.rank == NGX_HTTP_PROFILE_JOB_KEPT)
    {
        ngx_http_profile_kept();
    }

    if (!render->job.worked) {
        render->rc = PROF_ERROR;
    }

    if (render->slot) {
        ngx_http_profile_slots--;
    }

    if (render->ctx == NULL) {
        ngx_http_profile_render_free(render);
        return;
    }

    ngx_http_profile_render_finish(render);
}


static void
ngx_http_profile_render_finish(ngx_http_profile_render_t *render)
{
    ngx_http_profile_ctx_t       *ctx;
    ngx_http_profile_reply_t     *reply;
    ngx_http_profile_srv_conf_t  *pscf;

    ctx = render->ctx;
    reply = &ctx->reply;

    if (render->rc == PROF_OK && render->page) {
        pscf = ngx_http_get_module_srv_conf(ctx->request,
                                            ngx_http_profile_module);
        pscf->page(ctx->request, ctx->id, &render->out);
    }

    if (render->rc == PROF_OK && !prof_buf_failed(&render->out)) {
        reply->status = NGX_HTTP_OK;
        reply->body.data = (u_char *) render->out.data;
        reply->body.len = render->out.len;

        ngx_http_profile_render_headers(render, reply);

        reply->stored = render->store && render->stored == NGX_OK;

        if (render->stored == NGX_DECLINED) {
            ngx_str_set(&reply->dropped, NGX_HTTP_PROFILE_STORE_FULL);

        } else if (render->stored != NGX_OK) {
            ngx_str_set(&reply->dropped, NGX_HTTP_PROFILE_STORE_FAILED);
        }

    } else {
        ngx_http_profile_log(NGX_LOG_ERR, ctx->request->connection->log, 0,
                             "profile: no memory to render the profile");

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
    u_char              *src, *dst;
    ngx_str_t            method, path;
    const char          *p;
    ngx_http_request_t  *r;

    r = render->ctx->request;

    p = render->encoder->content_type;
    reply->content_type.data = (u_char *) p;
    reply->content_type.len = ngx_strlen(p);

    if (render->encoder->download) {
        ngx_http_profile_sent(r, &method, &path);

        src = path.data;
        dst = ngx_pnalloc(r->pool, path.len);

        if (dst) {
            path.data = dst;
            ngx_unescape_uri(&dst, &src, path.len, 0);
            path.len = dst - path.data;
        }

        (void) ngx_http_profile_file_name(r->pool, &r->headers_in.server,
                              &path, ngx_http_profile_mode(render->ctx),
                              r->start_sec, render->encoder->extension,
                              &reply->file);
    }

    if (render->encoder->csp) {
        p = render->page ? NGX_HTTP_PROFILE_CSP_PAGE : render->encoder->csp;
        reply->csp.data = (u_char *) p;
        reply->csp.len = ngx_strlen(p);
    }

    p = ngx_http_profile_vary(render->negotiated, render->gzip.compressible);

    if (p) {
        reply->vary.data = (u_char *) p;
        reply->vary.len = ngx_strlen(p);
    }

    if (render->gzip.done) {
        ngx_str_set(&reply->encoding, "gzip");
    }
}


/* called when the request and all buffers that use the output are freed */

void
ngx_http_profile_render_abandon(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_render_t  *render;

    render = ctx->render;

    if (render == NULL) {
        return;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: request of %*s freed, rendering ended: %d",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id, render->ended);

    ctx->render = NULL;
    render->ctx = NULL;

    if (render->ended) {
        ngx_http_profile_render_free(render);
        return;
    }

    /* the job occupies the slot until it is done */

    render->slot = ctx->slot;
    ctx->slot = 0;

    /* a profile for the store is made also without the client */

    if (render->store == NULL
        && (ngx_http_profile_object_leave(render) == NGX_OK
            || ngx_http_profile_job_cancel(&render->job) == NGX_OK))
    {
        ngx_http_profile_render_done(render);
    }
}


static void
ngx_http_profile_render_free(ngx_http_profile_render_t *render)
{
    /* a job without profile and output has little to free */

    if (render->profile || render->out.data || render->snapshot) {
        ngx_http_profile_job_free(&render->job,
                                  ngx_http_profile_render_destroy);
        return;
    }

    ngx_http_profile_render_destroy(render);
}


/* context: the thread, or the event loop */

static void
ngx_http_profile_render_destroy(void *data)
{
    ngx_http_profile_render_t *render = data;

    prof_profile_destroy(render->profile);
    ngx_http_profile_snapshot_free(render->snapshot);
    prof_buf_free(&render->out);

    if (render->facts) {
        ngx_free(render->facts);
    }

    ngx_free(render);
}


void
ngx_http_profile_add_facts(ngx_http_profile_ctx_t *ctx)
{
    u_char                    *copy;
    ngx_str_t                  line, value;
    ngx_time_t                *tp;
    ngx_http_request_t        *r;
    ngx_http_core_srv_conf_t  *cscf;
    ngx_http_core_loc_conf_t  *clcf;
    u_char                     buf[NGX_INT64_LEN * 2 + 16];

    r = ctx->request;

    if (ctx->profile == NULL) {
        return;
    }

    ctx->profile->mode = ngx_http_profile_mode(ctx);

    line = ctx->request_line;
    copy = ngx_http_profile_redact(r, &line);
    ngx_http_profile_add_fact(ctx, "request", &line);
    ngx_free(copy);

    ngx_http_profile_add_fact(ctx, "host", &r->headers_in.server);

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    (void) prof_profile_label(ctx->profile, "server",
                              (char *) cscf->server_name.data,
                              cscf->server_name.len);

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    (void) prof_profile_label(ctx->profile, "location",
                              (char *) clcf->name.data, clcf->name.len);

    ngx_http_profile_add_trace(ctx);

    value.data = buf;

    value.len = ngx_sprintf(buf, "%ui", ctx->status) - buf;
    ngx_http_profile_add_fact(ctx, "status", &value);

    tp = ngx_timeofday();
    value.len = ngx_sprintf(buf, "%T.%03M", tp->sec - r->start_sec
                            - (tp->msec < r->start_msec),
                            (tp->msec + 1000 - r->start_msec) % 1000)
                - buf;
    ngx_http_profile_add_fact(ctx, "request_time", &value);

    value.len = ngx_sprintf(buf, "%P", ngx_pid) - buf;
    ngx_http_profile_add_fact(ctx, "worker", &value);

    ngx_str_set(&value, NGINX_VER);
    ngx_http_profile_add_fact(ctx, "software", &value);

    value.data = ctx->id;
    value.len = NGX_HTTP_PROFILE_ID_LEN;
    ngx_http_profile_add_fact(ctx, "id", &value);

    if (ctx->timedout) {
        ngx_str_set(&value, "profile_timeout");
        ngx_http_profile_add_fact(ctx, "ended_by", &value);
    }

    ngx_http_profile_object_facts(ctx);
}


static void
ngx_http_profile_add_trace(ngx_http_profile_ctx_t *ctx)
{
    prof_trace_t  trace;
    char          trace_id[PROF_TRACE_ID_LEN + 1];
    char          span_id[PROF_SPAN_ID_LEN + 1];

    if (ngx_http_profile_trace(ctx->request, &trace) == NGX_OK) {
        prof_trace_text(&trace, trace_id, span_id);

        (void) prof_profile_label(ctx->profile, "trace_id", trace_id,
                                  PROF_TRACE_ID_LEN);
        (void) prof_profile_label(ctx->profile, "span_id", span_id,
                                  PROF_SPAN_ID_LEN);
    }
}


/* adds a fact; if memory is short, the profile is made without this fact */

static void
ngx_http_profile_add_fact(ngx_http_profile_ctx_t *ctx, const char *name,
    ngx_str_t *value)
{
    (void) prof_profile_fact(ctx->profile, name, (char *) value->data,
                             value->len);
}
