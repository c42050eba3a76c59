
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_symbolizer.h"
#include "reply/ngx_http_profile_reply.h"
#include "request/ngx_http_profile_request.h"
#include "core/ngx_http_profile_job.h"
#include "keep/ngx_http_profile_keep.h"
#include "request/ngx_http_profile_object.h"
#include "main/ngx_http_profile_process.h"
#include "main/ngx_http_profile_rooms.h"
#include "workers/ngx_http_profile_workers.h"


PROF_HOT_DATA size_t      ngx_http_profile_min_arg;
PROF_HOT_DATA ngx_uint_t  ngx_http_profile_everywhere;

static void ngx_http_profile_configure(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf);
static void ngx_http_profile_follow(ngx_cycle_t *cycle);
static void ngx_http_profile_unload(void *data);
static void ngx_http_profile_end_all(void);


/* this worker is armed for all of its life */

static ngx_uint_t    ngx_http_profile_accounting;

/* of the watch that it has as long, or 0 */

static ngx_uint_t    ngx_http_profile_watched;

/* this process serves requests */

static ngx_uint_t    ngx_http_profile_serves;

/* the last configuration that has the module */

static ngx_cycle_t  *ngx_http_profile_cycle;


ngx_int_t
ngx_http_profile_init_module(ngx_cycle_t *cycle)
{
    ngx_http_profile_main_conf_t  *pmcf;

    ngx_http_profile_follow(cycle);

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    /* a process without a master does not start again for a configuration */

    if (ngx_http_profile_serves) {
        ngx_http_profile_configure(cycle, pmcf);
    }

    if (pmcf == NULL
        || pmcf->nlocations + pmcf->nconsoles + pmcf->watch_frequency == 0)
    {
        ngx_http_profile_inbox_close();
        return NGX_OK;
    }

    /* here, before the workers are forked, so that they share the tables */

    if (prof_process_init() != PROF_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "profile: cannot build the unwind tables, each worker "
                      "builds its own when it starts a capture");
    }

    ngx_http_profile_symbolizer_init(cycle, pmcf);
    ngx_http_profile_inbox_init(cycle);

    return NGX_OK;
}


/*
 * Each configuration has the module anew.  If the memory of one is destroyed
 * and none came after it, a reload has removed the module, and what nginx does
 * not know of goes with it.
 */

static void
ngx_http_profile_follow(ngx_cycle_t *cycle)
{
    ngx_pool_cleanup_t  *cln;

    ngx_http_profile_cycle = NULL;

    cln = ngx_pool_cleanup_add(cycle->pool, 0);

    if (cln) {
        cln->handler = ngx_http_profile_unload;
        cln->data = cycle;

        ngx_http_profile_cycle = cycle;
    }
}


static void
ngx_http_profile_unload(void *data)
{
    if (data != ngx_http_profile_cycle) {
        return;
    }

    ngx_http_profile_cycle = NULL;

    if (ngx_http_profile_serves) {
        ngx_http_profile_end_all();
    }

    ngx_http_profile_inbox_close();
    prof_process_done();
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

    /* caches' managers serve nobody */

    if (ngx_process == NGX_PROCESS_HELPER) {
        return NGX_OK;
    }

    ngx_http_profile_serves = 1;

    ngx_http_profile_loop_init();
    ngx_http_profile_capture_init();
    ngx_http_profile_reply_init();
    ngx_http_profile_endpoint_init();
    ngx_http_profile_asker_init();

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    ngx_http_profile_configure(cycle, pmcf);
    ngx_http_profile_inbox_open(cycle);

    return NGX_OK;
}


/* what each request meets, by the configuration */

static void
ngx_http_profile_configure(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_uint_t  on, frequency;

    on = pmcf && pmcf->accounting;

    if (on && !ngx_http_profile_accounting && ngx_http_profile_arm() != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "profile: no memory to track requests, they are not "
                      "accounted");
        on = 0;
    }

    frequency = on ? pmcf->watch_frequency : 0;

    if (frequency != ngx_http_profile_watched) {

        if (ngx_http_profile_watched) {
            ngx_http_profile_watch_stop();
        }

        if (frequency) {
            ngx_http_profile_watch_start(frequency);
        }

        ngx_http_profile_watched = frequency;
    }

    if (on && pmcf->nkeeps) {
        ngx_http_profile_keep_init();
    }

    if (!on && ngx_http_profile_accounting) {
        ngx_http_profile_disarm();
    }

    ngx_http_profile_all += on - ngx_http_profile_accounting;
    ngx_http_profile_accounting = on;

    ngx_http_profile_min_arg = pmcf ? pmcf->min_arg : (size_t) -1;
    ngx_http_profile_everywhere = on && !pmcf->untracked;
    ngx_http_profile_stall_observe(on ? (uint64_t) pmcf->stall * 1000000 : 0);
    ngx_http_profile_brief_asked = on && ngx_http_profile_asks_times(cycle);
}


void
ngx_http_profile_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_profile_cycle = NULL;

    ngx_http_profile_end_all();
}


void
ngx_http_profile_exit_master(ngx_cycle_t *cycle)
{
    ngx_http_profile_cycle = NULL;

    ngx_http_profile_inbox_close();

    /* no signal of the master's reads them */

    if (ngx_process == NGX_PROCESS_MASTER) {
        prof_process_done();
    }
}


/*
 * Whatever is captured, and in the middle of whatever: afterwards no timer, no
 * signal, no hook, no thread and no pointer of nginx leads here, and nothing
 * begins any more.  Handlers that nginx or other modules still call, those of
 * the pools of requests for one, find that there is nothing to do.
 *
 * The unwind tables remain: a signal of another thread may be under way.
 */

static void
ngx_http_profile_end_all(void)
{
    ngx_http_profile_min_arg = (size_t) -1;
    ngx_http_profile_accounting = 0;

    ngx_http_profile_stop_rooms();
    ngx_http_profile_job_finish_all();
    ngx_http_profile_inbox_close();
    prof_profile_forget();

    ngx_http_profile_all = 0;
    ngx_http_profile_serves = 0;
}
