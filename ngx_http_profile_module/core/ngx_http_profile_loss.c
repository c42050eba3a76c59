
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_log_limit.h"
#include "core/ngx_http_profile_loss.h"


ngx_http_profile_losses_t   ngx_http_profile_losses;
ngx_http_profile_losses_t  *ngx_http_profile_all_losses;


ngx_str_t  ngx_http_profile_loss_names[NGX_HTTP_PROFILE_LOSSES] = {
    ngx_null_string,
    ngx_string("rate"),
    ngx_string("queue"),
    ngx_string("memory"),
    ngx_string("slots")
};


static const char  *ngx_http_profile_loss_texts[NGX_HTTP_PROFILE_LOSSES] = {
    "",
    "profile_keep has kept as many as its \"rate\" allows",
    "too many profiles wait to be made in this worker",
    "there is no memory or no thread",
    "too many captures are running in this worker"
};


void
ngx_http_profile_kept(void)
{
    ngx_http_profile_losses.kept++;

    if (ngx_http_profile_all_losses) {
        ngx_http_profile_all_losses->kept++;
    }
}


void
ngx_http_profile_unequal(void)
{
    ngx_http_profile_losses.unequal++;

    if (ngx_http_profile_all_losses) {
        ngx_http_profile_all_losses->unequal++;
    }
}


void
ngx_http_profile_lose(ngx_http_profile_loss_e cause, ngx_log_t *log)
{
    ngx_uint_t  omitted;

    static ngx_http_profile_log_limit_t  lines[NGX_HTTP_PROFILE_LOSSES];

    ngx_http_profile_losses.lost[cause]++;

    if (ngx_http_profile_all_losses) {
        ngx_http_profile_all_losses->lost[cause]++;
    }

    if (ngx_http_profile_log_limit(&lines[cause], &omitted) == NGX_OK) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "profile: dropped, %s, %ui more not logged",
                      ngx_http_profile_loss_texts[cause], omitted);
    }
}
