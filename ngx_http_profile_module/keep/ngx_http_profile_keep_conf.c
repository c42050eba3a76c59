
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Directives of requests that are kept, and of stalls.
 */


#include "core/ngx_http_profile_room.h"
#include "keep/ngx_http_profile_keep.h"


static char *ngx_http_profile_keep(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_keep_param(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_profile_keep_conf_t *keep, ngx_http_profile_main_conf_t *pmcf);

static ngx_int_t ngx_http_profile_keep_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_int_t ngx_http_profile_keep_create_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf);
static char *ngx_http_profile_keep_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_keep_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf);
static char *ngx_http_profile_keep_merge_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf);


static ngx_command_t  ngx_http_profile_keep_commands[] = {

    { ngx_string("profile_keep"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_profile_keep,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_stall_threshold"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_stall_threshold,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_keep_room = {
    ngx_http_profile_keep_commands,
    ngx_http_profile_keep_create,
    NULL,                                  /* create server */
    ngx_http_profile_keep_create_location,
    ngx_http_profile_keep_init_main,
    ngx_http_profile_keep_merge_server,
    ngx_http_profile_keep_merge_location,
    ngx_http_profile_keep_exit
};


static ngx_int_t
ngx_http_profile_keep_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    pmcf->stall = NGX_CONF_UNSET_MSEC;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_keep_create_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf)
{
    conf->keep = NGX_CONF_UNSET_PTR;

    return NGX_OK;
}


static char *
ngx_http_profile_keep_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_conf_init_msec_value(pmcf->stall, 0);

    /* the shortest stall has some samples; the kernel limits the frequency */

    if (pmcf->stall) {
        pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                        NGX_HTTP_PROFILE_KEEP_FREQUENCY);
        pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                        4000 / pmcf->stall + 1);
        pmcf->watch_frequency = ngx_min(pmcf->watch_frequency,
                                        NGX_HTTP_PROFILE_KEEP_MAX);
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_keep_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (pmcf->stall) {
        conf->track = 1;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_keep_merge_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf)
{
    ngx_http_profile_srv_conf_t  *pscf;

    conf->keep_own = (conf->keep != NGX_CONF_UNSET_PTR);

    ngx_conf_merge_ptr_value(conf->keep, prev->keep, NULL);

    if (conf->keep) {
        pscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_profile_module);

        pscf->keep_share = ngx_max(pscf->keep_share, conf->keep->share);
        pscf->track = 1;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_keep(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t                     *value;
    ngx_uint_t                     i;
    ngx_http_profile_keep_conf_t  *keep;
    ngx_http_profile_main_conf_t  *pmcf;

    if (plcf->keep != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {

        if (cf->args->nelts > 2) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" in \"profile_keep\" "
                               "directive, \"off\" takes no parameters",
                               &value[2]);
            return NGX_CONF_ERROR;
        }

        plcf->keep = NULL;
        return NGX_CONF_OK;
    }

    keep = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_keep_conf_t));
    if (keep == NULL) {
        return NGX_CONF_ERROR;
    }

    keep->share = 10000;
    keep->rate = NGX_HTTP_PROFILE_KEEP_RATE;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    pmcf->nkeeps++;

    i = 1;

    if (ngx_strncmp(value[1].data, "slow=", 5) != 0) {

        keep->condition = ngx_palloc(cf->pool,
                                     sizeof(ngx_http_complex_value_t));
        if (keep->condition == NULL) {
            return NGX_CONF_ERROR;
        }

        if (ngx_http_profile_condition(cf, &cmd->name, &value[1],
                                       keep->condition)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }

        i = 2;
    }

    for ( /* void */ ; i < cf->args->nelts; i++) {
        if (ngx_http_profile_keep_param(cf, &value[i], keep, pmcf)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                    NGX_HTTP_PROFILE_KEEP_FREQUENCY);

    plcf->keep = keep;

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_keep_param(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_profile_keep_conf_t *keep, ngx_http_profile_main_conf_t *pmcf)
{
    ngx_int_t  n;
    ngx_str_t  time;

    if (ngx_strncmp(value->data, "slow=", 5) == 0) {

        time.data = value->data + 5;
        time.len = value->len - 5;

        n = ngx_parse_time(&time, 0);

        if (n > 0) {
            keep->slow = n;
            return NGX_CONF_OK;
        }
    }

    if (ngx_strncmp(value->data, "share=", 6) == 0
        && value->data[value->len - 1] == '%')
    {
        n = ngx_atofp(value->data + 6, value->len - 7, 2);

        if (n > 0 && n <= 10000) {
            keep->share = n;
            return NGX_CONF_OK;
        }
    }

    if (ngx_strncmp(value->data, "frequency=", 10) == 0) {

        n = ngx_atoi(value->data + 10, value->len - 10);

        if (n > 0 && n <= NGX_HTTP_PROFILE_KEEP_MAX) {
            pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                            (ngx_uint_t) n);
            return NGX_CONF_OK;
        }
    }

    if (ngx_strncmp(value->data, "rate=", 5) == 0) {

        n = ngx_atoi(value->data + 5, value->len - 5);

        if (n > 0 && n <= NGX_HTTP_PROFILE_KEEP_RATE_MAX) {
            keep->rate = n;
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" in \"profile_keep\" "
                       "directive, it must be \"slow=\" with a time greater "
                       "than zero, \"share=\" with a percentage from "
                       "0.01%% to 100%%, \"frequency=\" with a number "
                       "of samples a second from 1 to %d, or \"rate=\" with "
                       "a number of profiles a second from 1 to %d",
                       value, NGX_HTTP_PROFILE_KEEP_MAX,
                       NGX_HTTP_PROFILE_KEEP_RATE_MAX);

    return NGX_CONF_ERROR;
}
