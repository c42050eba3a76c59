
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A trigger that asks for a capture of its location: of the requests in the
 * next seconds, or of a number of requests.  The location is the one in which
 * the request with the trigger ends, so the capture begins when this request
 * has run.  Its client gets the profile of the others instead of its response.
 */


#include "store/ngx_http_profile_store.h"
#include "request/ngx_http_profile_request.h"
#include "workers/ngx_http_profile_asker.h"


static ngx_int_t ngx_http_profile_endpoint_ask(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_endpoint_wanted(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wanted_t *wanted);


void
ngx_http_profile_endpoint_init(void)
{
    ngx_http_profile_request_observers.others = ngx_http_profile_endpoint_ask;
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
        ngx_http_profile_drop(ctx);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call->request = r;
    call->root = "";

    ngx_memzero(&wanted, sizeof(ngx_http_profile_wanted_t));

    wanted.format = ngx_http_profile_format(ctx, &negotiated);
    call->negotiated = negotiated;

    ngx_http_profile_endpoint_wanted(ctx, &wanted);

    ngx_http_profile_drop(ctx);

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


static void
ngx_http_profile_endpoint_wanted(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wanted_t *wanted)
{
    u_char                       *p, *last;
    ngx_http_request_t           *r;
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_profile_filter_t    *f;
    ngx_http_profile_params_t    *params;
    ngx_http_profile_loc_conf_t  *plcf;

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

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    plcf = cscf->ctx->loc_conf[ngx_http_profile_module.ctx_index];
    f->server_number = plcf->number;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
    f->location_number = plcf->number;

    p = (u_char *) wanted->title;
    last = p + sizeof(wanted->title) - 1;

    if (clcf->name.len) {
        p = ngx_slprintf(p, last, "%V", &clcf->name);

    } else if (cscf->server_name.len) {
        p = ngx_slprintf(p, last, "server %V", &cscf->server_name);

    } else {
        p = ngx_slprintf(p, last, "a server without a name");
    }

    *p = '\0';

    f->spans_given = ngx_http_profile_param_given(params,
                                          NGX_HTTP_PROFILE_PARAM_SPANS) != 0;
    f->spans = ngx_http_profile_param(params, NGX_HTTP_PROFILE_PARAM_SPANS,
                                      0);
    f->requests = ngx_http_profile_param(params,
                                         NGX_HTTP_PROFILE_PARAM_REQUESTS, 0);
    f->enabled = 1;
}
