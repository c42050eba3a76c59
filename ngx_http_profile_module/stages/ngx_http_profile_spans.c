
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Spans of the log phase, of redirects and of subrequests.
 *
 * The handlers of the log phase are in an array.  nginx calls all of them with
 * only the request as the argument.  While the worker is armed, the first
 * entry runs all handlers, and the other entries do nothing.
 */


#include "roles/ngx_http_profile_roles.h"
#include "stages/ngx_http_profile_stages.h"


static ngx_int_t ngx_http_profile_log_phase(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_no_log(ngx_http_request_t *r);


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


/* returns 1 if the span has to be ended */

ngx_uint_t
ngx_http_profile_begin_part(ngx_http_profile_track_t *tr,
    ngx_http_request_t *r)
{
    ngx_str_t  name;
    u_char     text[NGX_MAX_ERROR_STR / 4];

    if (!r->internal) {
        return 0;
    }

    name.data = text;
    name.len = ngx_snprintf(text, sizeof(text), "%s %V",
                            r == r->main ? "redirect" : "subrequest",
                            ngx_http_profile_place(r))
               - text;

    return ngx_http_profile_begin_span(tr, &name);
}
