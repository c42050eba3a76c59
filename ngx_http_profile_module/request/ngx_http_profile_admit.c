
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Admission: the location of a request decides about its trigger.  A request
 * may pass several locations.  The decision of the last one holds.
 */


#include "request/ngx_http_profile_trigger.h"
#include "core/ngx_http_profile_loss.h"


static ngx_uint_t ngx_http_profile_conditional(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);
static void ngx_http_profile_refuse(ngx_http_profile_ctx_t *ctx);


/* captures of this worker that count for profile_max_captures */

ngx_uint_t  ngx_http_profile_slots;


static ngx_str_t  ngx_http_profile_too_many =
    ngx_string("too many captures are running in this worker\n");


/*
 * nginx calls this function in the server and in each location.  It takes the
 * trigger out if the configuration may permit the trigger, and puts it back
 * otherwise.  On failure the context is dropped.
 */

ngx_int_t
ngx_http_profile_locate(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t           *r;
    ngx_http_profile_loc_conf_t  *plcf;

    r = ctx->request;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_access_address(r, plcf) != NGX_OK) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: location of \"%V\" does not permit the "
                       "trigger", &r->uri);

        ngx_http_profile_unstrip(ctx);
        return NGX_OK;
    }

    if (ngx_http_profile_strip(ctx) == NGX_OK) {

        if (!ngx_http_profile_conditional(r, plcf)) {
            ngx_http_profile_unfold(ctx);
        }

        return NGX_OK;
    }

    ngx_http_profile_unstrip(ctx);
    ngx_http_profile_drop(ctx);

    return NGX_ERROR;
}


/*
 * Returns whether profile_if can still refuse the request.  Before the request
 * has a location, any location of the server may have a condition.
 */

static ngx_uint_t
ngx_http_profile_conditional(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf)
{
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_profile_srv_conf_t  *pscf;

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    if (r->loc_conf != cscf->ctx->loc_conf) {
        return plcf->condition != NULL;
    }

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    return pscf->conditional;
}


/*
 * Decides for the current location of the request; another location decides
 * again.  Returns NGX_OK if the request is admitted; ctx->reply is set if the
 * reply is an error.  Returns NGX_DECLINED if the request is refused.
 */

ngx_int_t
ngx_http_profile_admit(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t            *r;
    ngx_http_profile_loc_conf_t   *plcf;
    ngx_http_profile_main_conf_t  *pmcf;

    r = ctx->request;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ctx->verdict != NGX_HTTP_PROFILE_UNDECIDED && ctx->conf == plcf) {
        return ctx->verdict == NGX_HTTP_PROFILE_ADMITTED ? NGX_OK
                                                         : NGX_DECLINED;
    }

    ctx->conf = plcf;

    if (ngx_http_profile_access(r, &ctx->trigger, plcf) != NGX_OK) {
        ngx_http_profile_refuse(ctx);
        return NGX_DECLINED;
    }

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    ctx->verdict = NGX_HTTP_PROFILE_ADMITTED;

    if (ngx_http_profile_strip(ctx) != NGX_OK) {
        ngx_http_profile_refuse(ctx);
        return NGX_DECLINED;
    }

    if (ctx->timer.timer_set) {
        ngx_add_timer(&ctx->timer, plcf->timeout);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: trigger admitted, captures: %ui of %ui",
                   ngx_http_profile_slots, pmcf->max_captures);

    if (ctx->trigger.error.len) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: wrong trigger: %V", &ctx->trigger.error);

        ngx_http_profile_set_error(ctx, NGX_HTTP_BAD_REQUEST,
                                   &ctx->trigger.error);
        return NGX_OK;
    }

    if (ctx->slot) {
        return NGX_OK;
    }

    if (ngx_http_profile_slots >= pmcf->max_captures) {

        /* a recorded request gets its response also without a profile */

        if (ctx->trigger.record) {
            ctx->crowded = 1;
            return NGX_OK;
        }

        ctx->track->lost = NGX_HTTP_PROFILE_LOSS_SLOTS;
        ngx_http_profile_lose(ctx->track->lost, r->connection->log);

        ngx_http_profile_set_error(ctx, NGX_HTTP_TOO_MANY_REQUESTS,
                                   &ngx_http_profile_too_many);
        return NGX_OK;
    }

    ctx->slot = 1;
    ngx_http_profile_slots++;

    ngx_http_profile_unfold(ctx);

    return NGX_OK;
}


static void
ngx_http_profile_refuse(ngx_http_profile_ctx_t *ctx)
{
    ctx->verdict = NGX_HTTP_PROFILE_REFUSED;

    if (ctx->slot) {
        ctx->slot = 0;
        ngx_http_profile_slots--;
    }

    ngx_http_profile_unstrip(ctx);
}


void
ngx_http_profile_set_error(ngx_http_profile_ctx_t *ctx, ngx_uint_t status,
    ngx_str_t *text)
{
    ctx->reply.status = status;
    ctx->reply.body = *text;
    ngx_str_set(&ctx->reply.content_type, "text/plain");
}
