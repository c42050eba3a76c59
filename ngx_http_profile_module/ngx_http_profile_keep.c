
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Recording: the response goes out as it is, and its profile to the store.
 * Its header names the profile, which is there when the request has ended, or
 * when profile_timeout has ended the capture.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_gap.h"
#include "ngx_http_profile_endpoint.h"
#include "ngx_http_profile_line.h"
#include "ngx_http_profile_store.h"


static ngx_str_t  ngx_http_profile_crowded =
    ngx_string("too many captures are running in this worker");


/* the response begins; the context may be dropped */

ngx_int_t
ngx_http_profile_keep_header(ngx_http_profile_ctx_t *ctx)
{
    ngx_uint_t           omitted;
    ngx_http_request_t  *r;

    static ngx_http_profile_line_t  line;

    r = ctx->request;

    ctx->decided = 1;
    ctx->status = r->headers_out.status;

    if (ctx->crowded) {
        if (ngx_http_profile_line(&line, &omitted) == NGX_OK) {
            ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                          "profile: not recorded, %V, %ui more not logged",
                          &ngx_http_profile_crowded, omitted);
        }

        (void) ngx_http_profile_add_header(r, "X-Profile-Dropped",
                                           &ngx_http_profile_crowded);
        return NGX_DECLINED;
    }

    if (ngx_http_profile_add_id(r, ctx->id) != NGX_OK
        || ngx_http_profile_add_link(r, ctx->id) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->record = 1;

    /* the capture has ended before */

    if (ctx->capture == NULL) {
        ngx_http_profile_keep(ctx);
        ngx_http_profile_drop(ctx);
    }

    return NGX_OK;
}


/* gives the profile to a job, which stores it, whatever becomes of us */

void
ngx_http_profile_keep(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_add_facts(ctx);

    if (ctx->profile == NULL || ngx_http_profile_render(ctx, 0) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "profile: no memory or no thread to record %*s",
                      (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id);
    }
}


/*
 * The request ends: most of it is still there, but nothing may be allocated
 * for it.  One that never came to a response is recorded as well if it was
 * admitted.
 */

void
ngx_http_profile_keep_cleanup(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->request && ctx->endpoints) {
        ngx_http_profile_endpoint_take(ctx);
        return;
    }

    if (ctx->request == NULL || ctx->verdict != NGX_HTTP_PROFILE_ADMITTED
        || !(ctx->record || ctx->trigger.record)
        || ctx->endpoint || ctx->crowded || ctx->reply.status)
    {
        return;
    }

    if (ctx->status == 0) {
        ctx->status = ctx->request->headers_out.status;
    }

    ngx_http_profile_last_gap(ctx);
    ngx_http_profile_end(ctx);
    ngx_http_profile_keep(ctx);
}
