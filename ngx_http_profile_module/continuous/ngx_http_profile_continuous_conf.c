
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directive profile_continuous, and the shared memory of the slices.
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_room.h"


#define NGX_HTTP_PROFILE_SLICE_FREQUENCY      19

/* Hz, the lowest tick rate of common kernels; CPU clocks tick no faster */
#define NGX_HTTP_PROFILE_SLICE_FREQUENCY_MAX  100

#define NGX_HTTP_PROFILE_SLICE        10000             /* ms */
#define NGX_HTTP_PROFILE_SLICE_MIN    1000
#define NGX_HTTP_PROFILE_SLICE_MAX    60000
#define NGX_HTTP_PROFILE_SLICE_MERGE  (15 * 60 * 1000)
#define NGX_HTTP_PROFILE_SLICE_KEEP   (60 * 60 * 1000)
#define NGX_HTTP_PROFILE_SLICE_LAST   (7 * 24 * 60 * 60 * 1000U)
#define NGX_HTTP_PROFILE_SLICE_SIZE   (8 * 1024 * 1024)


static char *ngx_http_profile_continuous(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_profile_continuous_param(
    ngx_http_profile_continuous_t *conf, ngx_str_t *value);
static ngx_int_t ngx_http_profile_continuous_time(ngx_str_t *value,
    ngx_msec_t min, ngx_msec_t max, ngx_msec_t *time);
static char *ngx_http_profile_continuous_init(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_int_t ngx_http_profile_continuous_open(ngx_shm_zone_t *shm_zone,
    void *data);


static ngx_command_t  ngx_http_profile_continuous_commands[] = {

    { ngx_string("profile_continuous"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_profile_continuous,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_continuous_room = {
    ngx_http_profile_continuous_commands,
    NULL,                                  /* create */
    NULL,                                  /* create server */
    NULL,                                  /* create location */
    ngx_http_profile_continuous_init,
    NULL,                                  /* merge server */
    NULL,                                  /* merge location */
    ngx_http_profile_slice_stop
};


/*
 * profile_continuous on [frequency=n] [slice=time] [merge=time] [keep=time]
 *                       [size=size] [wall=on|off]
 */

static char *
ngx_http_profile_continuous(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_main_conf_t *pmcf = conf;

    ngx_str_t                      *value;
    ngx_uint_t                      i, on;
    ngx_http_profile_continuous_t  *cont;

    if (pmcf->continuous != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;
    on = (ngx_strcmp(value[1].data, "on") == 0);

    if (!on && (ngx_strcmp(value[1].data, "off") != 0 || cf->args->nelts > 2))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, it must "
                           "be \"on\" with parameters, or \"off\" alone",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    cont = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_continuous_t));
    if (cont == NULL) {
        return NGX_CONF_ERROR;
    }

    cont->frequency = on ? NGX_HTTP_PROFILE_SLICE_FREQUENCY : 0;
    cont->slice = NGX_HTTP_PROFILE_SLICE;
    cont->merge = NGX_HTTP_PROFILE_SLICE_MERGE;
    cont->keep = NGX_HTTP_PROFILE_SLICE_KEEP;
    cont->size = NGX_HTTP_PROFILE_SLICE_SIZE;

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_profile_continuous_param(cont, &value[i]) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" in \"%V\" "
                               "directive, it must be \"frequency=\" with a "
                               "number of samples a second from 1 to %d, "
                               "\"slice=\" with a time from 1s to 60s, "
                               "\"merge=\" or \"keep=\" with a time from 1s "
                               "to 7d, \"size=\" with a size of at least "
                               "%uzk, or \"wall=\" with \"on\" or \"off\"",
                               &value[i], &cmd->name,
                               NGX_HTTP_PROFILE_SLICE_FREQUENCY_MAX,
                               8 * ngx_pagesize / 1024);
            return NGX_CONF_ERROR;
        }
    }

    pmcf->continuous = cont;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_continuous_param(ngx_http_profile_continuous_t *conf,
    ngx_str_t *value)
{
    ssize_t     size;
    ngx_int_t   n;
    ngx_str_t   s;
    ngx_uint_t  i;

    static ngx_str_t  names[] = {
        ngx_string("frequency="),
        ngx_string("slice="),
        ngx_string("merge="),
        ngx_string("keep="),
        ngx_string("size="),
        ngx_string("wall=")
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (ngx_strncmp(value->data, names[i].data, names[i].len) == 0) {
            break;
        }
    }

    if (i == sizeof(names) / sizeof(names[0])) {
        return NGX_ERROR;
    }

    s.data = value->data + names[i].len;
    s.len = value->len - names[i].len;

    switch (i) {

    case 0:
        n = ngx_atoi(s.data, s.len);

        if (n < 1 || n > NGX_HTTP_PROFILE_SLICE_FREQUENCY_MAX) {
            return NGX_ERROR;
        }

        conf->frequency = n;
        return NGX_OK;

    case 1:
        return ngx_http_profile_continuous_time(&s, NGX_HTTP_PROFILE_SLICE_MIN,
                                                NGX_HTTP_PROFILE_SLICE_MAX,
                                                &conf->slice);

    case 2:
        return ngx_http_profile_continuous_time(&s, NGX_HTTP_PROFILE_SLICE_MIN,
                                                NGX_HTTP_PROFILE_SLICE_LAST,
                                                &conf->merge);

    case 3:
        return ngx_http_profile_continuous_time(&s, NGX_HTTP_PROFILE_SLICE_MIN,
                                                NGX_HTTP_PROFILE_SLICE_LAST,
                                                &conf->keep);

    case 4:
        size = ngx_parse_size(&s);

        if (size < (ssize_t) (8 * ngx_pagesize)) {
            return NGX_ERROR;
        }

        conf->size = size;
        return NGX_OK;

    default:
        conf->wall = (ngx_strcmp(s.data, "on") == 0);

        return (conf->wall || ngx_strcmp(s.data, "off") == 0) ? NGX_OK
                                                              : NGX_ERROR;
    }
}


static ngx_int_t
ngx_http_profile_continuous_time(ngx_str_t *value, ngx_msec_t min,
    ngx_msec_t max, ngx_msec_t *time)
{
    ngx_int_t  n;

    n = ngx_parse_time(value, 0);

    if (n == NGX_ERROR || (ngx_msec_t) n < min || (ngx_msec_t) n > max) {
        return NGX_ERROR;
    }

    *time = n;

    return NGX_OK;
}


/* runs after the configuration was read */

static char *
ngx_http_profile_continuous_init(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_http_profile_continuous_t  *conf;

    static ngx_str_t  name = ngx_string("ngx_http_profile_slices");
    static ngx_str_t  page = ngx_string("ngx_http_profile_continuous");

    conf = pmcf->continuous;

    if (conf == NULL) {
        return NGX_CONF_OK;
    }

    if (conf->frequency == 0) {
        pmcf->continuous = NULL;
        return NGX_CONF_OK;
    }

    conf->store = ngx_http_profile_store_create(cf, &name, conf->size);

    if (conf->store == NULL) {
        return NGX_CONF_ERROR;
    }

    conf->zone = ngx_http_profile_shared_memory(cf, &page,
                               8 * ngx_pagesize
                               + sizeof(ngx_http_profile_slice_page_t),
                               ngx_http_profile_continuous_open);

    if (conf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    conf->zone->data = conf;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_continuous_open(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t                *pool;
    ngx_http_profile_continuous_t  *conf, *before;

    conf = shm_zone->data;
    before = data;
    pool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (before) {
        conf->page = before->page;
        return NGX_OK;
    }

    if (shm_zone->shm.exists) {
        conf->page = pool->data;
        return NGX_OK;
    }

    conf->page = ngx_slab_calloc(pool, sizeof(ngx_http_profile_slice_page_t));
    pool->data = conf->page;

    return conf->page ? NGX_OK : NGX_ERROR;
}
