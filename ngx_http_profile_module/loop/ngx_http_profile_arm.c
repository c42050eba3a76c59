
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Arming a worker: counts the users of the module's event loop
 * (ngx_http_profile_events.c) and of the sampler.  Captures need the sampler,
 * and also the watch.  The watch is a sampler of a low frequency, which
 * profile_keep and stalls use as well.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "loop/ngx_http_profile_loop_private.h"
#include "core/ngx_http_profile_job.h"


/* Hz of the watch while captures exist; the kernel's ticks are 4 ms */
#define NGX_HTTP_PROFILE_WATCH_FREQUENCY  250


typedef struct {
    ngx_uint_t                 users;        /* calls that armed the worker */
    ngx_uint_t                 captures;     /* users of the sampler */
    ngx_uint_t                 ended;        /* no use may begin */
    prof_sampler_t            *sampler;      /* exists while captures exist */
    ngx_http_profile_arming_t  arming;       /* functions of the event loop */
} ngx_http_profile_worker_t;


static void ngx_http_profile_disarm_sampler(void);


/* a worker is one process and one thread */

PROF_HOT_DATA static ngx_http_profile_worker_t  worker;

PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_armed;
PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_disarms;


void
ngx_http_profile_arm_init(ngx_http_profile_arming_t *arming)
{
    worker.arming = *arming;
}


PROF_HOT ngx_int_t
ngx_http_profile_arm(void)
{
    if (!ngx_http_profile_armed) {

        if (worker.ended || worker.arming.arm() != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_profile_armed = worker.sampler ? NGX_HTTP_PROFILE_SAMPLED
                                                : NGX_HTTP_PROFILE_ARMED;

        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "profile: worker armed");
    }

    worker.users++;

    return NGX_OK;
}


PROF_HOT void
ngx_http_profile_disarm(void)
{
    worker.users--;
    ngx_http_profile_disarm_idle();
}


PROF_HOT void
ngx_http_profile_disarm_idle(void)
{
    if (ngx_http_profile_current) {
        ngx_http_profile_disarms = 1;
        return;
    }

    ngx_http_profile_disarms = 0;

    if (worker.sampler && worker.captures == 0) {
        ngx_http_profile_disarm_sampler();
    }

    if (worker.users || !ngx_http_profile_armed) {
        return;
    }

    ngx_http_profile_armed = 0;

    worker.arming.disarm();

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: worker disarmed");
}


void
ngx_http_profile_arm_exit(void)
{
    worker.ended = 1;

    ngx_http_profile_current = NULL;

    if (worker.sampler) {
        ngx_http_profile_disarm_sampler();
    }

    ngx_http_profile_watch_end();

    ngx_http_profile_armed = 0;
}


ngx_int_t
ngx_http_profile_arm_sampler(ngx_uint_t frequency)
{
    const char  *err;

    if (worker.ended) {
        return NGX_ERROR;
    }

    if (worker.sampler == NULL) {

        worker.sampler = prof_sampler_create(&err);

        if (worker.sampler == NULL) {
            ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                                 "profile: %s", err);
            return NGX_ERROR;
        }

        if (ngx_http_profile_observers.sampling
            && ngx_http_profile_observers.sampling(1) != NGX_OK)
        {
            prof_sampler_destroy(worker.sampler);
            worker.sampler = NULL;
            return NGX_ERROR;
        }

        if (ngx_http_profile_armed) {
            ngx_http_profile_armed = NGX_HTTP_PROFILE_SAMPLED;
        }

        ngx_http_profile_watch_start(ngx_min(frequency,
                                         NGX_HTTP_PROFILE_WATCH_FREQUENCY));

        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "profile: sampler created");
    }

    worker.captures++;

    return NGX_OK;
}


void
ngx_http_profile_release_sampler(void)
{
    worker.captures--;
    ngx_http_profile_disarm_idle();
}


static void
ngx_http_profile_disarm_sampler(void)
{
    if (ngx_http_profile_observers.sampling) {
        (void) ngx_http_profile_observers.sampling(0);
    }

    ngx_http_profile_watch_stop();

    prof_sampler_destroy(worker.sampler);
    worker.sampler = NULL;

    if (ngx_http_profile_armed) {
        ngx_http_profile_armed = NGX_HTTP_PROFILE_ARMED;
    }

    ngx_http_profile_job_trim();

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: sampler destroyed");
}


prof_sampler_t *
ngx_http_profile_sampler(void)
{
    return worker.sampler;
}
