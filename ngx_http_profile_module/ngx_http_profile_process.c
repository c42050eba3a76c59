
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_stall.h"
#include "ngx_http_profile_job.h"
#include "ngx_http_profile_light.h"
#include "ngx_http_profile_object.h"
#include "ngx_http_profile_process.h"
#include "ngx_http_profile_server.h"


PROF_HOT_DATA size_t      ngx_http_profile_min_arg;
PROF_HOT_DATA ngx_uint_t  ngx_http_profile_all;
PROF_HOT_DATA ngx_uint_t  ngx_http_profile_everywhere;

/* this worker is armed for all of its life */

static ngx_uint_t  ngx_http_profile_accounting;


void
ngx_http_profile_look_at_all(ngx_uint_t on)
{
    ngx_http_profile_all = on || ngx_http_profile_accounting;
}


ngx_int_t
ngx_http_profile_init_module(ngx_cycle_t *cycle)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    if (pmcf == NULL
        || pmcf->nlocations + pmcf->nconsoles + pmcf->watch_frequency == 0)
    {
        ngx_http_profile_inbox_close();
        return NGX_OK;
    }

    /* here, before the workers are forked, so that they share the tables */

    if (prof_process_init() != PROF_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "profile: cannot build the unwind tables");
        return NGX_ERROR;
    }

    return ngx_http_profile_inbox_init(cycle);
}


ngx_int_t
ngx_http_profile_init_process(ngx_cycle_t *cycle)
{
    ngx_http_profile_main_conf_t  *pmcf;

    /*
     * nginx unloads the module when it destroys the memory of its cycle: what
     * may still hold an address of the module's code needs it until the end.
     */

    prof_pin();

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    if (pmcf == NULL) {
        return NGX_OK;
    }

    ngx_http_profile_min_arg = pmcf->min_arg;

    /* caches' managers serve nobody */

    if (pmcf->accounting && ngx_process != NGX_PROCESS_HELPER) {

        if (ngx_http_profile_arm() != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_profile_accounting = 1;
        ngx_http_profile_all = 1;
        ngx_http_profile_everywhere = !pmcf->untracked;
        ngx_http_profile_brief_asked = ngx_http_profile_asks_times(cycle);
        ngx_http_profile_stall_ns = (uint64_t) pmcf->stall * 1000000;

        if (pmcf->watch_frequency) {
            ngx_http_profile_watch_start(pmcf->watch_frequency);
        }
    }

    if (ngx_http_profile_inbox_open(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    return pmcf->nlocations + pmcf->nconsoles
           ? ngx_http_profile_init_phases(cycle) : NGX_OK;
}


/*
 * Whatever is captured, and in the middle of whatever: afterwards no timer, no
 * signal, no hook, no thread and no pointer of nginx leads here, and nothing
 * begins any more.  Handlers that nginx or other modules still call, those of
 * the pools of requests for one, find that there is nothing to do.
 *
 * The unwind tables remain: a signal of another thread may be under way.
 */

void
ngx_http_profile_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_profile_min_arg = (size_t) -1;
    ngx_http_profile_accounting = 0;

    ngx_http_profile_share_exit();
    ngx_http_profile_capture_exit();
    ngx_http_profile_object_exit();
    ngx_http_profile_light_exit();
    ngx_http_profile_track_exit();
    ngx_http_profile_job_finish_all();
    ngx_http_profile_inbox_close();
    prof_profile_forget();

    ngx_http_profile_all = 0;
}


void
ngx_http_profile_exit_master(ngx_cycle_t *cycle)
{
    ngx_http_profile_inbox_close();
}
