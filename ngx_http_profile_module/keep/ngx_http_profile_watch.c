
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The watch (shared/prof.h): a low-frequency sampler of the worker, for
 * profile_keep, for stalls, and for what others run while a captured request
 * waits.
 */


#include "loop/ngx_http_profile_account.h"


PROF_HOT_DATA prof_watch_t       *ngx_http_profile_watch;
PROF_HOT_DATA prof_watch_spot_t   ngx_http_profile_spot;

/* who needs it */

static ngx_uint_t   ngx_http_profile_watchers;


void
ngx_http_profile_watch_start(ngx_uint_t frequency)
{
    const char  *err;

    if (ngx_http_profile_watchers++ || ngx_http_profile_watch) {
        return;
    }

    ngx_http_profile_watch = prof_watch_create(frequency,
                                               &ngx_http_profile_spot, &err);

    if (ngx_http_profile_watch == NULL) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "profile: %s", err);
    }
}


void
ngx_http_profile_watch_stop(void)
{
    if (--ngx_http_profile_watchers == 0) {
        ngx_http_profile_watch_exit();
    }
}


/* whoever needs it */

void
ngx_http_profile_watch_exit(void)
{
    ngx_http_profile_watchers = 0;

    if (ngx_http_profile_watch) {
        prof_watch_destroy(ngx_http_profile_watch);
        ngx_http_profile_watch = NULL;
    }
}
