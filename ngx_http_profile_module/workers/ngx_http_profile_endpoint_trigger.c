
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A trigger that asks for a capture of its location: of the requests in the
 * next seconds, or of a number of requests.  The client waits for this
 * profile, which is the response to its own request.
 */


#include "store/ngx_http_profile_store.h"
#include "request/ngx_http_profile_request.h"
#include "workers/ngx_http_profile_asker.h"


static ngx_int_t ngx_http_profile_endpoint_answer(
    ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_endpoint_ask(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_endpoint_wanted(
    ngx_http_profile_ctx_t *ctx, ngx_http_profile_wanted_t *wanted);


void
ngx_http_profile_endpoint_init(void)
{
    ngx_http_profile_request_observers.others =
                                           ngx_http_profile_endpoint_answer;
}


/* replaces the content of an admitted request, and drops its context */

static ngx_int_t
ngx_http_profile_endpoint_answer(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    rc = ngx_http_discard_request_body(r);

    if (rc == NGX_OK) {
        rc = ngx_http_profile_endpoint_ask(ctx);
    }

    ngx_http_finalize_request(r, rc);

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_endpoint_ask(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_uint_t                 negotiated;
    ngx_http_request_t        *r;
    ngx_http_profile_call_t   *call;
    ngx_http_profile_wanted_t  wanted;

    r = ctx->request;

    call = ngx_pcalloc(r->pool, sizeof(ngx_http_profile_call_t));
    if (call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call->request = r;
    call->root = "";

    ngx_memzero(&wanted, sizeof(ngx_http_profile_wanted_t));

    wanted.format = ngx_http_profile_format(ctx, &negotiated);
    call->negotiated = negotiated;

    rc = ngx_http_profile_endpoint_wanted(ctx, &wanted);

    ngx_http_profile_drop(ctx);

    if (rc != NGX_OK) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                      "profile_seconds and profile_requests are for "
                      "flamegraphs in the modes \"wall\" and \"cpu\"");
    }

    if (ngx_http_profile_store(r)) {
        rc = ngx_http_profile_asker_keep_init(call, &wanted);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        /* a browser gets the console's page, if the server has a console */

        wanted.page = call->negotiated && wanted.format == &prof_encode_html
                      && ngx_http_profile_console_url(r);
        wanted.sent = !wanted.page;
    }

    return ngx_http_profile_asker_begin(call, &wanted);
}


static ngx_int_t
ngx_http_profile_endpoint_wanted(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_http_request_t          *r;
    ngx_http_core_srv_conf_t    *cscf;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_profile_filter_t   *f;
    ngx_http_profile_params_t   *params;

    r = ctx->request;
    params = &ctx->trigger.params;
    f = &wanted->filter;

    wanted->worker = -1;
    wanted->time = ngx_http_profile_param(params,
                                          NGX_HTTP_PROFILE_PARAM_SECONDS,
                                          NGX_HTTP_PROFILE_REQUESTS_MSEC);
    wanted->conf.mode = ngx_http_profile_mode(ctx);
    wanted->conf.memory = NGX_HTTP_PROFILE_SHARE_MEMORY;
    wanted->conf.frequency = ctx->frequency;

    if (ctx->trigger.record || wanted->conf.mode == PROF_MODE_OBJECT) {
        return NGX_DECLINED;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    /* a name that is too long does not restrict the capture */

    if (cscf->server_name.len < NGX_HTTP_PROFILE_FILTER_LEN) {
        ngx_memcpy(f->server, cscf->server_name.data, cscf->server_name.len);
    }

    if (clcf->name.len < NGX_HTTP_PROFILE_FILTER_LEN) {
        ngx_memcpy(f->location, clcf->name.data, clcf->name.len);
    }

    f->spans_given = ngx_http_profile_param_given(params,
                                          NGX_HTTP_PROFILE_PARAM_SPANS) != 0;
    f->spans = ngx_http_profile_param(params, NGX_HTTP_PROFILE_PARAM_SPANS,
                                      0);
    f->requests = ngx_http_profile_param(params,
                                         NGX_HTTP_PROFILE_PARAM_REQUESTS, 0);
    f->enabled = 1;

    return NGX_OK;
}
