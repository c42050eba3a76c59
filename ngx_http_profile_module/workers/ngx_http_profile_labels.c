
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Labels of samples in captures of workers: the location of the request that
 * the worker runs, and the trace in its header "traceparent".
 */


#include "core/ngx_http_profile_conf.h"
#include "loop/ngx_http_profile_loop.h"
#include "workers/ngx_http_profile_share.h"


static void ngx_http_profile_labels(ngx_http_request_t *r);


/* the number of captures with locations, and of those with traces */

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nlocated;
static ngx_uint_t  ngx_http_profile_ntraced;


/* called when code of the request begins to run; NULL: of no request */

static void
ngx_http_profile_labels(ngx_http_request_t *r)
{
    prof_trace_t               trace;
    ngx_http_core_loc_conf_t  *clcf;

    if (r == NULL) {
        prof_process_location(NULL);
        prof_process_trace(NULL);
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    /* texts of the configuration are null-terminated */

    prof_process_location(clcf->name.len ? (char *) clcf->name.data : NULL);

    if (ngx_http_profile_ntraced) {
        prof_process_trace(ngx_http_profile_trace(r, &trace) == NGX_OK
                           ? &trace : NULL);
    }
}


ngx_int_t
ngx_http_profile_labels_begin(ngx_uint_t traced)
{
    if (ngx_http_profile_arm_sampler(PROF_FREQUENCY_MAX) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_profile_ntraced += traced;

    if (ngx_http_profile_nlocated++ == 0) {
        ngx_http_profile_add_running(ngx_http_profile_labels);
    }

    ngx_http_profile_all++;

    return NGX_OK;
}


void
ngx_http_profile_labels_end(ngx_uint_t traced)
{
    ngx_http_profile_ntraced -= traced;
    ngx_http_profile_nlocated--;

    if (ngx_http_profile_nlocated == 0) {
        ngx_http_profile_remove_running(ngx_http_profile_labels);
    }

    ngx_http_profile_all--;
    ngx_http_profile_release_sampler();
}
