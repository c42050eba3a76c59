
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Spans of phases and filters, and the two moments that other rooms observe:
 * when the location of a request is known, and before its content is made.
 * Handlers of the module would cost each request.  So the checkers of all
 * entries of nginx's phase engine, and the tops of the filter chains, are
 * replaced while the worker has a sampler.
 *
 * The handlers of the log phase are in an array.  nginx calls all of them with
 * only the request as the argument.  While the worker is armed, the first
 * entry runs all handlers, and the other entries do nothing.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "roles/ngx_http_profile_roles.h"
#include "stages/ngx_http_profile_stages.h"


static ngx_int_t ngx_http_profile_init_phases(void);
static void ngx_http_profile_disarm_phases(void);
static ngx_int_t ngx_http_profile_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_run_checker(ngx_http_request_t *r,
    ngx_http_profile_track_t *tr, ngx_http_phase_handler_t *ph, ngx_uint_t n);
static uintptr_t ngx_http_profile_content_frame(ngx_http_request_t *r,
    prof_capture_t *c);
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
static ngx_int_t ngx_http_profile_filter_span(
    ngx_http_request_t *r, ngx_chain_t *in, ngx_http_profile_track_t *tr,
    ngx_http_output_body_filter_pt filter, ngx_str_t *name);
static ngx_http_profile_track_t *ngx_http_profile_staged_run(
    ngx_http_request_t *r, uintptr_t function);
static void ngx_http_profile_arm_log(void);
static void ngx_http_profile_disarm_log(void);
static ngx_int_t ngx_http_profile_log_phase(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_no_log(ngx_http_request_t *r);


/* the phase engine of the cycle in which the worker was armed */

static ngx_http_phase_handler_t          *ngx_http_profile_phases;
static ngx_http_profile_main_conf_t      *ngx_http_profile_pmcf;
static ngx_uint_t                         ngx_http_profile_rewrite_index;

static ngx_uint_t                         ngx_http_profile_nlogs;
static ngx_http_handler_pt               *ngx_http_profile_logs;
static ngx_http_handler_pt                ngx_http_profile_log_handlers[64];

/* nginx's own filters */

static ngx_http_output_header_filter_pt   ngx_http_profile_header_top;
static ngx_http_output_body_filter_pt     ngx_http_profile_body_top;
static ngx_http_request_body_filter_pt    ngx_http_profile_request_body_top;


ngx_http_profile_stage_observers_t  ngx_http_profile_stage_observers;

ngx_queue_t  ngx_http_profile_staged_tracks = {
    &ngx_http_profile_staged_tracks, &ngx_http_profile_staged_tracks
};


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


/* saves nginx's checkers, and names the handlers, once per configuration */

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

    /* in the order of ngx_http_init_phase_handlers() */

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
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, 0,
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
 * ngx_lua moves its handlers to the end of their phases when they run for the
 * first time.  All checkers of a phase are the same.
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
    ngx_int_t                  rc;
    ngx_uint_t                 n;
    ngx_http_profile_track_t  *tr;

    n = ph - ngx_http_profile_phases;

    /* the location is known now */

    if (n == ngx_http_profile_rewrite_index
        && ngx_http_profile_observers.running)
    {
        ngx_http_profile_observers.running(r);
    }

    tr = ngx_http_profile_staged_run(r, (uintptr_t) ph->handler);

    if (tr == NULL) {
        return ngx_http_profile_pmcf->checkers[n](r, ph);
    }

    if (n == ngx_http_profile_rewrite_index && r == r->main) {
        ngx_http_profile_stage_observers.located(tr);
    }

    /* before the first handler of the precontent or the content phase */

    if (n == ngx_http_profile_pmcf->precontent) {

        if (r != r->main) {
            (void) ngx_http_profile_add_subrequest(tr, r);

        } else {
            rc = ngx_http_profile_stage_observers.content(tr);

            if (rc != NGX_DECLINED) {
                return rc;
            }
        }
    }

    return ngx_http_profile_run_checker(r, tr, ph, n);
}


/* returns the name by the handler: another module may have moved handlers */

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


/* the request and its context may be freed when a handler returns */

PROF_GLUE static ngx_int_t
ngx_http_profile_run_checker(ngx_http_request_t *r,
    ngx_http_profile_track_t *tr, ngx_http_phase_handler_t *ph, ngx_uint_t n)
{
    ngx_int_t        rc;
    ngx_str_t       *name, place;
    uintptr_t        handler;
    ngx_uint_t       inner, part, span;
    prof_capture_t  *c;
    u_char           text[NGX_MAX_ERROR_STR / 4];

    static ngx_str_t  content = ngx_string("phase content");

    c = tr->capture;
    name = ngx_http_profile_phase_name(ph, n);
    handler = 0;

    /* the content handler of a location replaces those of the phase */

    if (r->content_handler
        && ngx_http_profile_pmcf->checkers[n] == ngx_http_core_content_phase)
    {
        handler = ngx_http_profile_content_frame(r, c);
        name = &content;
    }

    part = 0;

    /* a redirect or a subrequest */

    if (r->internal) {
        place.data = text;
        place.len = ngx_snprintf(text, sizeof(text), "%s %V",
                                 r == r->main ? "redirect" : "subrequest",
                                 ngx_http_profile_place(r))
                    - text;

        part = ngx_http_profile_begin_span(tr, &place);
    }

    span = ngx_http_profile_begin_span(tr, name);
    inner = span && handler
            && prof_span_begin(ngx_http_profile_sampler(), c, handler);

    rc = ngx_http_profile_pmcf->checkers[n](r, ph);

    if (inner) {
        prof_span_end(ngx_http_profile_sampler(), c);
    }

    if (span) {
        ngx_http_profile_end_span(tr, c);
    }

    if (part) {
        ngx_http_profile_end_span(tr, c);
    }

    return rc;
}


/* returns the function of a script, or nginx's function */

static uintptr_t
ngx_http_profile_content_frame(ngx_http_request_t *r, prof_capture_t *c)
{
    ngx_str_t  *function;

    function = c ? ngx_http_profile_function(r) : NULL;

    return function ? prof_capture_name(c, (char *) function->data,
                                        function->len)
                    : (uintptr_t) r->content_handler;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_top_header_filter(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_uint_t                 span;
    prof_capture_t            *c;
    ngx_http_profile_track_t  *tr;

    static ngx_str_t  name = ngx_string("header filters");

    tr = ngx_http_profile_staged_run(r, 0);

    if (tr == NULL) {
        return ngx_http_profile_header_top(r);
    }

    c = tr->capture;
    span = ngx_http_profile_begin_span(tr, &name);

    rc = ngx_http_profile_header_top(r);

    if (span) {
        ngx_http_profile_end_span(tr, c);
    }

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_top_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_profile_track_t  *tr;

    static ngx_str_t  name = ngx_string("body filters");

    tr = ngx_http_profile_staged_run(r, 0);

    return tr ? ngx_http_profile_filter_span(r, in, tr,
                                             ngx_http_profile_body_top, &name)
              : ngx_http_profile_body_top(r, in);
}


PROF_GLUE static ngx_int_t
ngx_http_profile_top_request_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in)
{
    ngx_http_profile_track_t  *tr;

    static ngx_str_t  name = ngx_string("request body filters");

    tr = ngx_http_profile_staged_run(r, 0);

    if (tr == NULL) {
        return ngx_http_profile_request_body_top(r, in);
    }

    /* the upstream waits for the body: it exists, but is not connected */

    ngx_http_profile_wrap_upstreams(tr);

    return ngx_http_profile_filter_span(r, in, tr,
                                     ngx_http_profile_request_body_top, &name);
}


PROF_GLUE static ngx_int_t
ngx_http_profile_filter_span(ngx_http_request_t *r, ngx_chain_t *in,
    ngx_http_profile_track_t *tr, ngx_http_output_body_filter_pt filter,
    ngx_str_t *name)
{
    ngx_int_t        rc;
    ngx_uint_t       span;
    prof_capture_t  *c;

    c = tr->capture;
    span = ngx_http_profile_begin_span(tr, name);

    rc = filter(r, in);

    if (span) {
        ngx_http_profile_end_span(tr, c);
    }

    return rc;
}


ngx_uint_t
ngx_http_profile_begin_span(ngx_http_profile_track_t *tr, ngx_str_t *name)
{
    if (tr->capture == NULL || !tr->spans
        || !prof_span_begin_named(ngx_http_profile_sampler(), tr->capture,
                                  (char *) name->data, name->len))
    {
        return 0;
    }

    if (ngx_http_profile_stage_observers.span_begins) {
        ngx_http_profile_stage_observers.span_begins(tr, name);
    }

    return 1;
}


/* the track may be freed: it is valid only while its capture runs */

void
ngx_http_profile_end_span(ngx_http_profile_track_t *tr, prof_capture_t *c)
{
    if (ngx_http_profile_stage_observers.span_ends
        && prof_turn_current(ngx_http_profile_sampler()) == c)
    {
        ngx_http_profile_stage_observers.span_ends(tr);
    }

    prof_span_end(ngx_http_profile_sampler(), c);
}


void
ngx_http_profile_stages_begin(ngx_http_profile_track_t *tr)
{
    tr->stages = 1;
    ngx_queue_insert_tail(&ngx_http_profile_staged_tracks, &tr->staged);
}


void
ngx_http_profile_stages_end(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_unwrap_upstreams(tr);

    tr->stages = 0;
    ngx_queue_remove(&tr->staged);
}


ngx_http_profile_track_t *
ngx_http_profile_staged(ngx_http_request_t *r)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);

    return (tr && tr->stages) ? tr : NULL;
}


/*
 * As ngx_http_profile_staged(); called when this function of a module runs for
 * the request.  The event that has led here may not be known as the request's.
 * If the function resumes a coroutine, more is known then.
 */

static ngx_http_profile_track_t *
ngx_http_profile_staged_run(ngx_http_request_t *r, uintptr_t function)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);

    if (!ngx_http_profile_resumes_in(function)) {
        ngx_http_profile_turn_found(tr, r, NULL);
    }

    return (tr && tr->stages) ? tr : NULL;
}


static void
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


static void
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
    ngx_http_profile_track_t      *tr;
    ngx_http_profile_main_conf_t  *pmcf;
    u_char                         text[128];

    /*
     * Outside of all turns, for example when the worker exits, a handler may
     * disarm the worker.  nginx would then continue with the restored entries.
     */

    if (ngx_http_profile_current == NULL) {
        ngx_http_profile_disarm_log();

        return ngx_http_profile_log_handlers[0](r);
    }

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    n = ngx_http_profile_nlogs;
    name.data = text;

    for (i = 0; i < n; i++) {

        tr = ngx_http_profile_staged(r);

        if (tr == NULL) {
            (void) ngx_http_profile_log_handlers[i](r);
            continue;
        }

        p = (u_char *) ngx_http_profile_module_name(pmcf,
                                            ngx_http_profile_log_handlers[i]);

        name.len = ngx_snprintf(text, sizeof(text), "phase log%s%s",
                                p ? ": " : "", p ? p : (u_char *) "")
                   - text;

        c = tr->capture;
        span = ngx_http_profile_begin_span(tr, &name);

        (void) ngx_http_profile_log_handlers[i](r);

        if (span) {
            ngx_http_profile_end_span(tr, c);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_no_log(ngx_http_request_t *r)
{
    return NGX_OK;
}
