
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directive profile_accounting.
 */


#include "core/ngx_http_profile_room.h"
#include "loop/ngx_http_profile_loop.h"


static ngx_int_t ngx_http_profile_loop_create_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *conf);
static char *ngx_http_profile_loop_merge(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf);


static ngx_command_t  ngx_http_profile_loop_commands[] = {

    { ngx_string("profile_accounting"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_profile_srv_conf_t, accounting),
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_loop_room = {
    ngx_http_profile_loop_commands,
    NULL,                                  /* create */
    ngx_http_profile_loop_create_server,
    NULL,                                  /* create location */
    NULL,                                  /* init */
    ngx_http_profile_loop_merge,
    NULL,                                  /* merge location */
    ngx_http_profile_loop_exit
};


static ngx_int_t
ngx_http_profile_loop_create_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *conf)
{
    conf->accounting = NGX_CONF_UNSET;

    return NGX_OK;
}


static char *
ngx_http_profile_loop_merge(ngx_conf_t *cf, ngx_http_profile_srv_conf_t *prev,
    ngx_http_profile_srv_conf_t *conf)
{
    ngx_conf_merge_value(conf->accounting, prev->accounting, 0);

    if (conf->accounting) {
        conf->track = 1;
    }

    return NGX_CONF_OK;
}
