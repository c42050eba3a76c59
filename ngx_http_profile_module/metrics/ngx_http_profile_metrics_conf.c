
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directive profile_metrics.
 */


#include "core/ngx_http_profile_room.h"
#include "metrics/ngx_http_profile_metrics_private.h"


/* the default number of places, and the maximum */
#define NGX_HTTP_PROFILE_PLACES      256
#define NGX_HTTP_PROFILE_PLACES_MAX  10000


static ngx_int_t ngx_http_profile_metrics_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_metrics_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_metrics_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf);
static char *ngx_http_profile_metrics_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf);
static void ngx_http_profile_metrics_stop(void);
static ngx_int_t ngx_http_profile_metrics_name(ngx_conf_t *cf,
    ngx_str_t *name);
static char *ngx_http_profile_metrics(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_command_t  ngx_http_profile_metrics_commands[] = {

    { ngx_string("profile_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_profile_metrics,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_metrics_room = {
    ngx_http_profile_metrics_commands,
    ngx_http_profile_metrics_create,
    NULL,                                  /* create server */
    NULL,                                  /* create location */
    ngx_http_profile_metrics_init_main,
    ngx_http_profile_metrics_merge_server,
    ngx_http_profile_metrics_merge,
    ngx_http_profile_metrics_stop
};


static ngx_int_t
ngx_http_profile_metrics_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    return ngx_array_init(&pmcf->locations, cf->pool, 16,
                          sizeof(ngx_http_profile_location_t));
}


static char *
ngx_http_profile_metrics_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    if (pmcf->nmetrics && pmcf->places == 0) {
        pmcf->places = NGX_HTTP_PROFILE_PLACES;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_metrics_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (pmcf->places) {
        conf->track = 1;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_metrics_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf)
{
    ngx_http_core_srv_conf_t      *cscf;
    ngx_http_profile_location_t   *location;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (pmcf->places == 0 && pmcf->turn_log == 0) {
        return NGX_CONF_OK;
    }

    location = ngx_array_push(&pmcf->locations);
    if (location == NULL) {
        return NGX_CONF_ERROR;
    }

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

    conf->entry = (pmcf->locations.nelts <= UINT16_MAX)
                   ? (uint16_t) pmcf->locations.nelts : 0;

    location->conf = conf;
    location->server = cscf->server_name;

    return ngx_http_profile_metrics_name(cf, &location->name) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* requests that end after this call are still counted */

static void
ngx_http_profile_metrics_stop(void)
{
    ngx_http_profile_worker_end();
    ngx_http_profile_history_in(NULL);
}


/*
 * Makes the name of the location with its modifier, so that two locations of a
 * server have different names.  A block "if" gets the name of its location.
 */

static ngx_int_t
ngx_http_profile_metrics_name(ngx_conf_t *cf, ngx_str_t *name)
{
    char                      *modifier;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    modifier = clcf->exact_match ? "= " : "";

#if (NGX_PCRE)
    if (clcf->regex) {
        modifier = "~ ";
    }
#endif

    name->data = ngx_pnalloc(cf->pool, clcf->name.len + sizeof("= "));
    if (name->data == NULL) {
        return NGX_ERROR;
    }

    name->len = ngx_sprintf(name->data, "%s%V", modifier, &clcf->name)
                - name->data;

    return NGX_OK;
}


static char *
ngx_http_profile_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_int_t                      n;
    ngx_str_t                     *value;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_profile_main_conf_t  *pmcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler == ngx_http_profile_metrics_handler) {
        return "is duplicate";
    }

    clcf->handler = ngx_http_profile_metrics_handler;
    plcf->metrics = 1;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    pmcf->nmetrics++;

    if (cf->args->nelts == 1) {
        return NGX_CONF_OK;
    }

    value = cf->args->elts;

    n = ngx_strncmp(value[1].data, "locations=", 10) == 0
        ? ngx_atoi(value[1].data + 10, value[1].len - 10) : 0;

    if (n < 1 || n > NGX_HTTP_PROFILE_PLACES_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" in \"profile_metrics\" "
                           "directive, it must be \"locations=\" with a "
                           "number from 1 to %d",
                           &value[1], NGX_HTTP_PROFILE_PLACES_MAX);
        return NGX_CONF_ERROR;
    }

    pmcf->places = ngx_max(pmcf->places, (ngx_uint_t) n);

    return NGX_CONF_OK;
}
