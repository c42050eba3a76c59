
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "bar/ngx_http_profile_bar.h"
#include "context/ngx_http_profile_context.h"
#include "core/ngx_http_profile_fate.h"
#include "core/ngx_http_profile_ground.h"
#include "core/ngx_http_profile_kernel.h"
#include "core/ngx_http_profile_symbolizer.h"
#include "request/ngx_http_profile_request.h"
#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_job.h"
#include "keep/ngx_http_profile_keep.h"
#include "loop/ngx_http_profile_brief.h"
#include "turns/ngx_http_profile_turns.h"
#include "metrics/ngx_http_profile_metrics.h"
#include "request/ngx_http_profile_object.h"
#include "roles/ngx_http_profile_roles.h"
#include "stages/ngx_http_profile_stages.h"
#include "main/ngx_http_profile_process.h"
#include "main/ngx_http_profile_rooms.h"
#include "workers/ngx_http_profile_workers.h"


PROF_HOT_DATA ngx_http_profile_query_t  ngx_http_profile_query = {
    NGX_MAX_SIZE_T_VALUE, 0, 0
};

PROF_HOT_DATA ngx_uint_t                ngx_http_profile_everywhere;

static void ngx_http_profile_configure(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf);
static void ngx_http_profile_init_names(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf);
static void ngx_http_profile_keep_zones(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_profile_keep_zone(ngx_cycle_t *cycle,
    ngx_shm_zone_t *zone);
static ngx_shm_zone_t *ngx_http_profile_find_zone(ngx_cycle_t *cycle,
    ngx_str_t *name);
static void ngx_http_profile_follow(ngx_cycle_t *cycle);
static void ngx_http_profile_unload(void *data);
static void ngx_http_profile_end_all(void);


/* 1: this worker stays armed, because the configuration accounts requests */

static ngx_uint_t    ngx_http_profile_accounting;

/* the frequency at which the watch always runs, or 0 */

static ngx_uint_t    ngx_http_profile_watched;

/* this process serves requests */

static ngx_uint_t    ngx_http_profile_serves;

/* the last configuration that has the module */

static ngx_cycle_t  *ngx_http_profile_cycle;


ngx_int_t
ngx_http_profile_init_module(ngx_cycle_t *cycle)
{
    ngx_uint_t                     captures;
    ngx_http_profile_main_conf_t  *pmcf;

    if (ngx_http_profile_is_off()) {
        ngx_http_profile_ground_log(cycle);
        return NGX_OK;
    }

    ngx_http_profile_follow(cycle);
    ngx_http_profile_init_checker(cycle);

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    /* a process without a master does not start again for a configuration */

    ngx_http_profile_metrics_init(cycle);
    ngx_http_profile_turns_init(cycle);

    if (ngx_http_profile_serves) {
        ngx_http_profile_keep_zones(cycle);
        ngx_http_profile_configure(cycle, pmcf);
    }

    captures = pmcf && (pmcf->nlocations + pmcf->nconsoles
                        + pmcf->watch_frequency || pmcf->continuous);

    if (captures || (pmcf && pmcf->places)) {
        ngx_http_profile_init_names(cycle, pmcf);
    }

    if (!captures) {
        ngx_http_profile_inbox_close();
        ngx_http_profile_kernel_close();
    ngx_http_profile_fate_close();
        return NGX_OK;
    }

    ngx_http_profile_kernel_init(cycle, pmcf);
    ngx_http_profile_inbox_init(cycle);
    ngx_http_profile_fate_init();

    return NGX_OK;
}


/* for profiles, and for the names of event handlers in metrics */

static void
ngx_http_profile_init_names(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf)
{
    /* called before the workers are forked, so that they share the tables */

    if (prof_process_init() != PROF_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "profile: cannot build the unwind tables, each worker "
                      "builds its own when it starts a capture");
    }

    ngx_http_profile_roles_init(cycle);
    ngx_http_profile_symbolizer_init(cycle, pmcf);
}


/*
 * A process without a master serves open connections with the configuration
 * that they began with.  When this function has run, nginx unmaps the shared
 * memory that the new configuration does not have.  Requests and jobs may still
 * use that memory, so the new configuration gets it as well.
 */

static void
ngx_http_profile_keep_zones(ngx_cycle_t *cycle)
{
    ngx_uint_t        i;
    ngx_shm_zone_t   *zone;
    ngx_list_part_t  *part;

    for (part = &cycle->old_cycle->shared_memory.part;
         part;
         part = part->next)
    {
        zone = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if ((zone[i].tag == &ngx_http_profile_module
                 || zone[i].tag == &ngx_http_profile_bar_filter_module)
                && ngx_http_profile_keep_zone(cycle, &zone[i]) != NGX_OK)
            {
                ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                              "profile: no memory to keep the zone \"%V\" for "
                              "requests that use it", &zone[i].shm.name);
            }
        }
    }
}


static ngx_int_t
ngx_http_profile_keep_zone(ngx_cycle_t *cycle, ngx_shm_zone_t *zone)
{
    ngx_str_t        name;
    ngx_shm_zone_t  *same, *kept;

    same = ngx_http_profile_find_zone(cycle, &zone->shm.name);

    if (same && same->shm.addr == zone->shm.addr) {
        return NGX_OK;
    }

    if (same == NULL) {

        /* a later configuration with this zone uses its memory again */

        name.len = zone->shm.name.len;
        name.data = ngx_pstrdup(cycle->pool, &zone->shm.name);

    } else {

        /*
         * The zone has another size in the new configuration.  nginx looks only
         * at the first zone with a name, so the old zone gets another name.
         */

        name.data = ngx_pnalloc(cycle->pool,
                                sizeof("ngx_http_profile:")
                                + 2 * NGX_PTR_SIZE);
        if (name.data) {
            name.len = ngx_sprintf(name.data, "ngx_http_profile:%p",
                                   zone->shm.addr)
                       - name.data;
        }
    }

    if (name.data == NULL) {
        return NGX_ERROR;
    }

    kept = ngx_list_push(&cycle->shared_memory);
    if (kept == NULL) {
        return NGX_ERROR;
    }

    zone->shm.name = name;
    *kept = *zone;

    return NGX_OK;
}


static ngx_shm_zone_t *
ngx_http_profile_find_zone(ngx_cycle_t *cycle, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_shm_zone_t   *zone;
    ngx_list_part_t  *part;

    for (part = &cycle->shared_memory.part; part; part = part->next) {
        zone = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (zone[i].shm.name.len == name->len
                && ngx_strncmp(zone[i].shm.name.data, name->data, name->len)
                   == 0)
            {
                return &zone[i];
            }
        }
    }

    return NULL;
}


/*
 * Each configuration loads the module again.  If the memory of a configuration
 * is destroyed and no configuration came after it, a reload has removed the
 * module.  Then the module also frees everything that nginx does not free.
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
    ngx_http_profile_metrics_close();
    ngx_http_profile_turns_close();
    ngx_http_profile_kernel_close();
    (void) prof_profile_roles(NULL, 0);
    prof_profile_forget();
    prof_process_done();
}


ngx_int_t
ngx_http_profile_init_process(ngx_cycle_t *cycle)
{
    if (ngx_http_profile_is_off()) {
        return NGX_OK;
    }

    /*
     * nginx unloads the module when it destroys the memory of its cycle.  The
     * worker keeps the module mapped until it ends, since other code may hold
     * addresses of the module's code.
     */

    prof_pin();

    /* cache managers serve no requests */

    if (ngx_process == NGX_PROCESS_HELPER) {
        return NGX_OK;
    }

    if (ngx_http_profile_ground == NGX_HTTP_PROFILE_GROUND_OPEN) {

        ngx_http_profile_ground_process(cycle);
        ngx_http_profile_init_checker(cycle);

        if (ngx_http_profile_ground != NGX_HTTP_PROFILE_GROUND_FITS) {
            return NGX_OK;
        }
    }

    ngx_http_profile_begin_process(cycle);

    return NGX_OK;
}


void
ngx_http_profile_begin_process(ngx_cycle_t *cycle)
{
    ngx_http_profile_main_conf_t  *pmcf;

    ngx_http_profile_serves = 1;

    ngx_http_profile_loop_init();
    ngx_http_profile_request_open();
    ngx_http_profile_endpoint_init();
    ngx_http_profile_asker_init();

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    /* before tables of all connections are made */

    ngx_http_profile_inbox_open(cycle);
    ngx_http_profile_configure(cycle, pmcf);
    ngx_http_profile_attendant_start(cycle->log);
    ngx_http_profile_symbolizer_start(cycle);

    /*
     * Finds Lua's functions before a capture needs them: a look-up waits while
     * another thread loads an object, and there is no such thread yet.
     */

    (void) ngx_http_profile_lua_state();
}


/* sets the variables that each request reads, by the configuration */

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

    /* without a master, connections may still use earlier configurations */

    if (pmcf) {
        ngx_http_profile_add_query(&ngx_http_profile_query, &pmcf->query);

    } else {
        ngx_http_profile_query.more = NGX_MAX_SIZE_T_VALUE;
    }

    ngx_http_profile_everywhere = on && !pmcf->untracked;
    ngx_http_profile_stall_observe(on ? (uint64_t) pmcf->stall * 1000000 : 0);
    ngx_http_profile_metrics_open(cycle);
    ngx_http_profile_turns_open(cycle);
    ngx_http_profile_slice_configure(pmcf ? pmcf->continuous : NULL);
    ngx_http_profile_context_open(cycle, on && pmcf->context);
    ngx_http_profile_brief_asked = on && ngx_http_profile_asks_times(cycle);
}


void
ngx_http_profile_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_profile_cycle = NULL;

    if (ngx_http_profile_serves) {
        ngx_http_profile_end_all();
    }
}


void
ngx_http_profile_exit_master(ngx_cycle_t *cycle)
{
    if (ngx_http_profile_is_off()) {
        return;
    }

    ngx_http_profile_cycle = NULL;

    ngx_http_profile_inbox_close();
    ngx_http_profile_metrics_close();
    ngx_http_profile_turns_close();
    ngx_http_profile_kernel_close();
    ngx_http_profile_fate_close();
    (void) prof_profile_roles(NULL, 0);
    prof_profile_forget();

    /* no signal handler of the master reads the tables */

    if (ngx_process == NGX_PROCESS_MASTER) {
        prof_process_done();
    }
}


/*
 * Ends all captures, also in the middle of a turn.  Afterwards no timer,
 * signal, hook, thread or pointer of nginx calls the module, and no capture can
 * begin.  Handlers that nginx or other modules still call, for example
 * cleanups of the pools of requests, do nothing.
 *
 * The unwind tables remain: another thread's signal may still be pending.
 */

static void
ngx_http_profile_end_all(void)
{
    ngx_http_profile_query.more = NGX_MAX_SIZE_T_VALUE;
    ngx_http_profile_accounting = 0;

    ngx_http_profile_attendant_stop();
    ngx_http_profile_stop_rooms();
    ngx_http_profile_job_finish_all();
    ngx_http_profile_inbox_close();
    prof_profile_forget();

    ngx_http_profile_all = 0;
    ngx_http_profile_serves = 0;
}
