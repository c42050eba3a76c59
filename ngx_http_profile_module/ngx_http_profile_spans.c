
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Spans of the log phase, of an upstream's callbacks, and of what a request was
 * redirected to.
 *
 * The handlers of the log phase stand in an array, and nginx calls all of them
 * with nothing but the request: while armed, the first place runs them all, and
 * the others do nothing.
 */


#include "ngx_http_profile.h"


static ngx_int_t ngx_http_profile_log_phase(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_no_log(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_process_header(ngx_http_request_t *r);
static void ngx_http_profile_finalize_request(ngx_http_request_t *r,
    ngx_int_t rc);


/* of the cycle in which the worker was armed */

static ngx_uint_t            ngx_http_profile_nlogs;
static ngx_http_handler_pt  *ngx_http_profile_logs;
static ngx_http_handler_pt   ngx_http_profile_log_handlers[64];


void
ngx_http_profile_arm_log(void)
{
    ngx_uint_t                  i;
    ngx_array_t                *handlers;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_core_module);

    handlers = &cmcf->phases[NGX_HTTP_LOG_PHASE].handlers;

    ngx_http_profile_logs = handlers->elts;
    ngx_http_profile_nlogs = handlers->nelts;

    if (handlers->nelts > sizeof(ngx_http_profile_log_handlers)
                          / sizeof(ngx_http_handler_pt))
    {
        ngx_http_profile_nlogs = 0;
    }

    for (i = 0; i < ngx_http_profile_nlogs; i++) {
        ngx_http_profile_log_handlers[i] = ngx_http_profile_logs[i];
        ngx_http_profile_logs[i] = i ? ngx_http_profile_no_log
                                     : ngx_http_profile_log_phase;
    }
}


void
ngx_http_profile_disarm_log(void)
{
    ngx_uint_t  i;

    for (i = 0; i < ngx_http_profile_nlogs; i++) {
        ngx_http_profile_logs[i] = ngx_http_profile_log_handlers[i];
    }

    ngx_http_profile_nlogs = 0;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_log_phase(ngx_http_request_t *r)
{
    u_char                        *p;
    ngx_str_t                      name;
    ngx_uint_t                     i, n, span;
    prof_capture_t                *c;
    ngx_http_profile_ctx_t        *ctx;
    ngx_http_profile_main_conf_t  *pmcf;
    u_char                         text[128];

    /*
     * Outside of all turns, as when the worker exits, a handler may disarm,
     * and nginx would go on with what is in the other places then.
     */

    if (ngx_http_profile_frame == NULL) {
        ngx_http_profile_disarm_log();

        return ngx_http_profile_log_handlers[0](r);
    }

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    n = ngx_http_profile_nlogs;
    name.data = text;

    for (i = 0; i < n; i++) {

        ctx = ngx_http_profile_find(r);

        if (ctx == NULL || !ctx->tracked) {
            (void) ngx_http_profile_log_handlers[i](r);
            continue;
        }

        p = (u_char *) ngx_http_profile_module_name(pmcf,
                                            ngx_http_profile_log_handlers[i]);

        name.len = ngx_snprintf(text, sizeof(text), "phase log%s%s",
                                p ? ": " : "", p ? p : (u_char *) "")
                   - text;

        c = ctx->capture;
        span = ngx_http_profile_begin_span(ctx, &name);

        (void) ngx_http_profile_log_handlers[i](r);

        if (span) {
            prof_span_end(ngx_http_profile_sampler(), c);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_no_log(ngx_http_request_t *r)
{
    return NGX_OK;
}


/* at the end of a turn: nginx sets them when the upstream is begun */

void
ngx_http_profile_wrap_upstreams(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_upstream_t      *u;
    ngx_http_profile_part_t  *part;

    if (!ctx->tracked || !ctx->spans) {
        return;
    }

    for (part = ctx->track->parts; part; part = part->next) {
        u = part->request->upstream;

        if (u == NULL) {
            continue;
        }

        if (u->process_header
            && u->process_header != ngx_http_profile_process_header)
        {
            part->process_header = u->process_header;
            u->process_header = ngx_http_profile_process_header;
        }

        if (u->finalize_request
            && u->finalize_request != ngx_http_profile_finalize_request)
        {
            part->finalize_request = u->finalize_request;
            u->finalize_request = ngx_http_profile_finalize_request;
        }
    }
}


void
ngx_http_profile_unwrap_upstreams(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_upstream_t      *u;
    ngx_http_profile_part_t  *part;

    for (part = ctx->track->parts; part; part = part->next) {
        u = part->request->upstream;

        if (u == NULL) {
            continue;
        }

        if (u->process_header == ngx_http_profile_process_header) {
            u->process_header = part->process_header;
        }

        if (u->finalize_request == ngx_http_profile_finalize_request) {
            u->finalize_request = part->finalize_request;
        }
    }
}


PROF_GLUE static ngx_int_t
ngx_http_profile_process_header(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_uint_t                span;
    prof_capture_t           *c;
    ngx_http_upstream_t      *u;
    ngx_http_profile_ctx_t   *ctx;
    ngx_http_profile_part_t  *part;

    static ngx_str_t  name = ngx_string("upstream: process header");

    ctx = ngx_http_profile_find(r);
    part = ngx_http_profile_add_part(ctx->track, r);

    u = r->upstream;
    u->process_header = part->process_header;

    c = ctx->capture;
    span = ngx_http_profile_begin_span(ctx, &name);

    rc = u->process_header(r);

    if (span) {
        prof_span_end(ngx_http_profile_sampler(), c);
    }

    /* it may have set the function for what comes next */

    part->process_header = u->process_header;
    u->process_header = ngx_http_profile_process_header;

    return rc;
}


PROF_GLUE static void
ngx_http_profile_finalize_request(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                span;
    prof_capture_t           *c;
    ngx_http_profile_ctx_t   *ctx;
    ngx_http_profile_part_t  *part;

    static ngx_str_t  name = ngx_string("upstream: finalize");

    ctx = ngx_http_profile_find(r);
    part = ngx_http_profile_add_part(ctx->track, r);

    r->upstream->finalize_request = part->finalize_request;

    c = ctx->capture;
    span = ngx_http_profile_begin_span(ctx, &name);

    part->finalize_request(r, rc);

    if (span) {
        prof_span_end(ngx_http_profile_sampler(), c);
    }
}


/* returns 1 if it has to be ended */

ngx_uint_t
ngx_http_profile_begin_part(ngx_http_profile_ctx_t *ctx,
    ngx_http_request_t *r)
{
    ngx_str_t  name;
    u_char     text[NGX_MAX_ERROR_STR / 4];

    if (!r->internal) {
        return 0;
    }

    name.data = text;
    name.len = ngx_snprintf(text, sizeof(text), "%s %V",
                            r == r->main ? "redirect" : "subrequest", &r->uri)
               - text;

    return ngx_http_profile_begin_span(ctx, &name);
}
