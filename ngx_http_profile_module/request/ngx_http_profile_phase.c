
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A request with a context on its way through the phases: looked at when its
 * location is known and before its content is made, and timed in each handler.
 * Handlers of our own would cost every request, so the checkers of all entries
 * of nginx's phase engine, and the tops of the filter chains, are replaced
 * while the worker is armed.
 */


#include "stages/ngx_http_profile_stages.h"
#include "request/ngx_http_profile_trigger.h"
#include "reply/ngx_http_profile_reply.h"
#include "workers/ngx_http_profile_endpoint.h"
#include "workers/ngx_http_profile_asker.h"


static ngx_int_t ngx_http_profile_init_phases(void);
static void ngx_http_profile_disarm_phases(void);
static ngx_int_t ngx_http_profile_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_content(ngx_http_request_t *r,
    ngx_http_profile_ctx_t *ctx, ngx_http_phase_handler_t *ph, ngx_uint_t n);
static ngx_int_t ngx_http_profile_run_checker(ngx_http_request_t *r,
    ngx_http_profile_ctx_t *ctx, ngx_http_phase_handler_t *ph, ngx_uint_t n);
static ngx_str_t *ngx_http_profile_phase_name(ngx_http_phase_handler_t *ph,
    ngx_uint_t n);
static ngx_int_t ngx_http_profile_top_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_top_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_profile_top_request_body_filter(
    ngx_http_request_t *r, ngx_chain_t *in);
static ngx_int_t ngx_http_profile_name_phase(ngx_pool_t *pool,
    ngx_http_profile_main_conf_t *pmcf, ngx_uint_t n, const char *phase,
    ngx_http_handler_pt handler);


/* of the cycle in which the worker was armed */

static ngx_http_phase_handler_t          *ngx_http_profile_phases;
static ngx_http_profile_main_conf_t      *ngx_http_profile_pmcf;
static ngx_uint_t                         ngx_http_profile_rewrite_index;

/* nginx's own */

static ngx_http_output_header_filter_pt   ngx_http_profile_header_top;
static ngx_http_output_body_filter_pt     ngx_http_profile_body_top;
static ngx_http_request_body_filter_pt    ngx_http_profile_request_body_top;


static const char  *ngx_http_profile_phase_names[] = {
    "post-read",
    "server-rewrite",
    "find-config",
    "rewrite",
    "post-rewrite",
    "preaccess",
    "access",
    "post-access",
    "precontent",
    "content"
};


/* notes nginx's checkers, and names the handlers, once for a configuration */

static ngx_int_t
ngx_http_profile_init_phases(void)
{
    ngx_pool_t                    *pool;
    ngx_uint_t                     i, k, n, max, count;
    ngx_http_phase_handler_t      *ph;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_profile_main_conf_t  *pmcf;

    cmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_core_module);
    pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_profile_module);

    if (pmcf->nphases) {
        return NGX_OK;
    }

    pool = ngx_cycle->pool;
    ph = cmcf->phase_engine.handlers;

    for (max = 0; ph[max].checker; max++) { /* void */ }

    pmcf->checkers = ngx_palloc(pool,
                                max * sizeof(ngx_http_phase_handler_pt));
    pmcf->handlers = ngx_palloc(pool, max * sizeof(ngx_http_handler_pt));
    pmcf->phases = ngx_pcalloc(pool, max * sizeof(ngx_str_t));

    if (pmcf->checkers == NULL || pmcf->handlers == NULL
        || pmcf->phases == NULL)
    {
        return NGX_ERROR;
    }

    n = 0;

    /* as ngx_http_init_phase_handlers() lays them out */

    for (i = 0; i < NGX_HTTP_LOG_PHASE; i++) {

        count = cmcf->phases[i].handlers.nelts;

        switch (i) {

        case NGX_HTTP_FIND_CONFIG_PHASE:
            count = 1;
            break;

        case NGX_HTTP_POST_REWRITE_PHASE:
            count = cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers.nelts ? 1
                                                                        : 0;
            break;

        case NGX_HTTP_POST_ACCESS_PHASE:
            count = cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers.nelts ? 1 : 0;
            break;

        case NGX_HTTP_PRECONTENT_PHASE:
            pmcf->precontent = n;
            break;

        default:
            break;
        }

        for (k = 0; k < count && n < max; k++, n++) {

            pmcf->checkers[n] = ph[n].checker;
            pmcf->handlers[n] = ph[n].handler;

            if (ngx_http_profile_name_phase(pool, pmcf, n,
                                            ngx_http_profile_phase_names[i],
                                            ph[n].handler)
                != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    pmcf->nphases = max;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_name_phase(ngx_pool_t *pool,
    ngx_http_profile_main_conf_t *pmcf, ngx_uint_t n, const char *phase,
    ngx_http_handler_pt handler)
{
    char       *module;
    size_t      len;
    ngx_str_t  *name;

    module = handler ? ngx_http_profile_module_name(pmcf, handler) : NULL;

    name = &pmcf->phases[n];
    len = ngx_strlen(phase) + sizeof("phase : ")
          + (module ? ngx_strlen(module) : 0);

    name->data = ngx_pnalloc(pool, len);
    if (name->data == NULL) {
        return NGX_ERROR;
    }

    name->len = ngx_sprintf(name->data, "phase %s%s%s", phase,
                            module ? ": " : "", module ? module : "")
                - name->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_arm_phases(ngx_uint_t on)
{
    ngx_uint_t                  n;
    ngx_http_core_main_conf_t  *cmcf;

    if (!on) {
        ngx_http_profile_disarm_phases();
        return NGX_OK;
    }

    if (ngx_http_profile_init_phases() != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "profile: no memory for the names of phases");
        return NGX_ERROR;
    }

    cmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_core_module);

    ngx_http_profile_pmcf =
                       ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                    ngx_http_profile_module);

    ngx_http_profile_phases = cmcf->phase_engine.handlers;
    ngx_http_profile_rewrite_index = cmcf->phase_engine.location_rewrite_index;

    for (n = 0; n < ngx_http_profile_pmcf->nphases; n++) {
        ngx_http_profile_phases[n].checker = ngx_http_profile_checker;
    }

    ngx_http_profile_header_top = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_profile_top_header_filter;

    ngx_http_profile_body_top = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_profile_top_body_filter;

    ngx_http_profile_request_body_top = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter =
                                     ngx_http_profile_top_request_body_filter;

    ngx_http_profile_arm_log();

    return NGX_OK;
}


/*
 * ngx_lua moves its own handlers to the end of their phases when they run for
 * the first time; the checkers of a phase are all the same.
 */

static void
ngx_http_profile_disarm_phases(void)
{
    ngx_uint_t  n;

    for (n = 0; n < ngx_http_profile_pmcf->nphases; n++) {
        ngx_http_profile_phases[n].checker =
                                           ngx_http_profile_pmcf->checkers[n];
    }

    ngx_http_profile_disarm_log();

    ngx_http_top_header_filter = ngx_http_profile_header_top;
    ngx_http_top_body_filter = ngx_http_profile_body_top;
    ngx_http_top_request_body_filter = ngx_http_profile_request_body_top;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_checker(ngx_http_request_t *r, ngx_http_phase_handler_t *ph)
{
    ngx_uint_t               n;
    ngx_http_profile_ctx_t  *ctx;

    n = ph - ngx_http_profile_phases;
    ctx = ngx_http_profile_find(r);

    /* the location is known now */

    if (n == ngx_http_profile_rewrite_index
        && ngx_http_profile_observers.running)
    {
        ngx_http_profile_observers.running(r);
    }

    if (ctx == NULL || !ctx->tracked) {
        return ngx_http_profile_pmcf->checkers[n](r, ph);
    }

    if (n == ngx_http_profile_rewrite_index && r == r->main && !ctx->decided) {
        (void) ngx_http_profile_locate(ctx);
    }

    if (n == ngx_http_profile_pmcf->precontent) {
        return ngx_http_profile_content(r, ctx, ph, n);
    }

    return ngx_http_profile_run_checker(r, ctx, ph, n);
}


/* before the first handler of the precontent or the content phase */

PROF_GLUE static ngx_int_t
ngx_http_profile_content(ngx_http_request_t *r, ngx_http_profile_ctx_t *ctx,
    ngx_http_phase_handler_t *ph, ngx_uint_t n)
{
    if (r != r->main) {
        (void) ngx_http_profile_add_part(ctx->track, r);

    } else if (!ctx->decided && ngx_http_profile_admit(ctx) == NGX_OK) {

        if (ctx->reply.status) {
            return ngx_http_profile_send_error(ctx);
        }

        if (ngx_http_profile_param_given(&ctx->trigger.params,
                                         NGX_HTTP_PROFILE_PARAM_SECONDS)
            || ngx_http_profile_param_given(&ctx->trigger.params,
                                            NGX_HTTP_PROFILE_PARAM_REQUESTS))
        {
            return ngx_http_profile_endpoint_answer(ctx);
        }
    }

    return ngx_http_profile_run_checker(r, ctx, ph, n);
}


/* by the handler, which may have been moved since the entries were named */

static ngx_str_t *
ngx_http_profile_phase_name(ngx_http_phase_handler_t *ph, ngx_uint_t n)
{
    ngx_uint_t                     i;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_profile_pmcf;

    if (pmcf->handlers[n] == ph->handler) {
        return &pmcf->phases[n];
    }

    for (i = 0; i < pmcf->nphases; i++) {
        if (pmcf->handlers[i] == ph->handler
            && pmcf->checkers[i] == pmcf->checkers[n])
        {
            return &pmcf->phases[i];
        }
    }

    return &pmcf->phases[n];
}


/* the request, and the context with it, may be gone when a handler returns */

PROF_GLUE static ngx_int_t
ngx_http_profile_run_checker(ngx_http_request_t *r,
    ngx_http_profile_ctx_t *ctx, ngx_http_phase_handler_t *ph, ngx_uint_t n)
{
    ngx_int_t        rc;
    ngx_str_t       *name;
    uintptr_t        handler;
    ngx_uint_t       inner, part, span;
    prof_capture_t  *c;

    static ngx_str_t  content = ngx_string("phase content");

    c = ctx->track->capture;
    name = ngx_http_profile_phase_name(ph, n);
    handler = 0;

    /* a location's content handler runs instead of those of the phase */

    if (r->content_handler
        && ngx_http_profile_pmcf->checkers[n] == ngx_http_core_content_phase)
    {
        handler = (uintptr_t) r->content_handler;
        name = &content;
    }

    part = ngx_http_profile_begin_part(ctx, r);
    span = ngx_http_profile_begin_span(ctx, name);
    inner = span && handler
            && prof_span_begin(ngx_http_profile_sampler(), c, handler);

    rc = ngx_http_profile_pmcf->checkers[n](r, ph);

    if (inner) {
        prof_span_end(ngx_http_profile_sampler(), c);
    }

    if (span) {
        ngx_http_profile_end_span(ctx, c);
    }

    if (part) {
        ngx_http_profile_end_span(ctx, c);
    }

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_top_header_filter(ngx_http_request_t *r)
{
    ngx_int_t                rc;
    ngx_uint_t               spans;
    prof_capture_t          *c;
    ngx_http_profile_ctx_t  *ctx;

    static ngx_str_t  name = ngx_string("header filters");

    ctx = ngx_http_profile_find(r);

    if (ctx == NULL || !ctx->tracked) {
        return ngx_http_profile_header_top(r);
    }

    c = ctx->track->capture;
    spans = ngx_http_profile_begin_span(ctx, &name);

    rc = ngx_http_profile_header_top(r);

    if (spans) {
        ngx_http_profile_end_span(ctx, c);
    }

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_top_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_int_t                rc;
    ngx_uint_t               spans;
    prof_capture_t          *c;
    ngx_http_profile_ctx_t  *ctx;

    static ngx_str_t  name = ngx_string("body filters");

    ctx = ngx_http_profile_find(r);

    if (ctx == NULL || !ctx->tracked) {
        return ngx_http_profile_body_top(r, in);
    }

    c = ctx->track->capture;
    spans = ngx_http_profile_begin_span(ctx, &name);

    rc = ngx_http_profile_body_top(r, in);

    if (spans) {
        ngx_http_profile_end_span(ctx, c);
    }

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_top_request_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in)
{
    ngx_int_t                rc;
    ngx_uint_t               span;
    prof_capture_t          *c;
    ngx_http_profile_ctx_t  *ctx;

    static ngx_str_t  name = ngx_string("request body filters");

    ctx = ngx_http_profile_find(r);

    if (ctx == NULL || !ctx->tracked) {
        return ngx_http_profile_request_body_top(r, in);
    }

    /* an upstream that waits for the body is begun, and not yet asked */

    ngx_http_profile_wrap_upstreams(ctx->track);

    c = ctx->track->capture;
    span = ngx_http_profile_begin_span(ctx, &name);

    rc = ngx_http_profile_request_body_top(r, in);

    if (span) {
        ngx_http_profile_end_span(ctx, c);
    }

    return rc;
}


/* returns 1 if it has to be ended */

ngx_uint_t
ngx_http_profile_begin_span(ngx_http_profile_ctx_t *ctx, ngx_str_t *name)
{
    uintptr_t  frame;

    if (ctx->track->capture == NULL || !ctx->track->spans) {
        return 0;
    }

    frame = prof_capture_name(ctx->track->capture, (char *) name->data,
                              name->len);

    if (!prof_span_begin(ngx_http_profile_sampler(), ctx->track->capture,
                         frame))
    {
        return 0;
    }

    ngx_http_profile_object_push(ctx, name);

    return 1;
}


/* the context may be gone: it is there as long as its capture is running */

void
ngx_http_profile_end_span(ngx_http_profile_ctx_t *ctx, prof_capture_t *c)
{
    if (prof_turn_current(ngx_http_profile_sampler()) == c) {
        ngx_http_profile_object_pop(ctx);
    }

    prof_span_end(ngx_http_profile_sampler(), c);
}
