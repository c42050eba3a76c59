
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Recording: the original response is sent, and the profile is stored.  The
 * response's header contains the profile's id.  The profile is made when the
 * request ends, or when profile_timeout ends the capture.
 */


#include "request/ngx_http_profile_request_private.h"
#include "stages/ngx_http_profile_stages.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_loss.h"
#include "store/ngx_http_profile_store.h"


static ngx_str_t  ngx_http_profile_crowded =
    ngx_string("too many captures are running in this worker");

static ngx_str_t  ngx_http_profile_too_many_jobs =
    ngx_string("too many profiles wait to be made in this worker\n");

static ngx_str_t  ngx_http_profile_no_thread =
    ngx_string("the profile could not be made, see the error log\n");


/* adds the headers of a recorded response; the context may be dropped */

ngx_int_t
ngx_http_profile_record_header(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    ctx->decided = 1;
    ctx->status = r->headers_out.status;

    rc = ngx_http_profile_private(r);

    if (ctx->crowded) {
        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: too many captures, response is not recorded");

        ngx_http_profile_lose(NGX_HTTP_PROFILE_LOSS_SLOTS,
                              r->connection->log);
        ctx->track->lost = NGX_HTTP_PROFILE_LOSS_SLOTS;

        if (rc == NGX_OK) {
            (void) ngx_http_profile_add_header(r, "X-Profile-Dropped",
                                               &ngx_http_profile_crowded);
        }

        return NGX_DECLINED;
    }

    if (rc == NGX_ERROR
        || (rc == NGX_OK
            && (ngx_http_profile_add_id(r, ctx->id) != NGX_OK
                || ngx_http_profile_add_link(r, ctx->id) != NGX_OK))
        || (ctx->trigger.order.len
            && ngx_http_profile_request_observers.order_used(r) != NGX_OK))
    {
        return NGX_ERROR;
    }

    ctx->record = 1;

    /* profile_timeout has ended the capture already */

    if (ctx->track->capture == NULL) {
        (void) ngx_http_profile_record(ctx);
        ngx_http_profile_drop(ctx);
    }

    return NGX_OK;
}


/* sets an error as the reply if no job can be started; allocates nothing */

void
ngx_http_profile_record_room(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_ASKED);

    if (rc == NGX_OK) {
        return;
    }

    ctx->track->lost = ngx_http_profile_loss_of(rc);
    ngx_http_profile_lose(ctx->track->lost, ctx->request->connection->log);

    if (rc == NGX_BUSY) {
        ngx_http_profile_set_error(ctx, NGX_HTTP_TOO_MANY_REQUESTS,
                                   &ngx_http_profile_too_many_jobs);
        return;
    }

    ngx_http_profile_set_error(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                               &ngx_http_profile_no_thread);
}


/* starts a job that stores the profile; the request may end before the job */

ngx_int_t
ngx_http_profile_record(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t  rc;

    ngx_http_profile_add_facts(ctx);

    rc = ctx->profile ? ngx_http_profile_render(ctx, 0) : NGX_ERROR;

    if (rc != NGX_OK) {
        ctx->track->lost = ngx_http_profile_loss_of(rc);
        ngx_http_profile_lose(ctx->track->lost, ngx_cycle->log);
    }

    return rc;
}


/* ends the capture, and makes its profile if a job can be started */

void
ngx_http_profile_record_capture(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_RECORDED);

    if (rc != NGX_OK) {
        ctx->track->lost = ngx_http_profile_loss_of(rc);
        ngx_http_profile_lose(ctx->track->lost, ngx_cycle->log);
        return;
    }

    ngx_http_profile_last_gap(ctx->track);
    ngx_http_profile_end(ctx);

    (void) ngx_http_profile_record(ctx);
}


/*
 * Called when the request ends.  Most of its data is valid, but its pool must
 * not be used for allocations.  An admitted request without a response is
 * recorded as well.
 */

void
ngx_http_profile_record_cleanup(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->request == NULL || ctx->verdict != NGX_HTTP_PROFILE_ADMITTED
        || !(ctx->record || ctx->trigger.record)
        || ctx->crowded || ctx->reply.status)
    {
        return;
    }

    if (ctx->status == 0) {
        ctx->status = ctx->request->headers_out.status;
    }

    ngx_http_profile_record_capture(ctx);
}
