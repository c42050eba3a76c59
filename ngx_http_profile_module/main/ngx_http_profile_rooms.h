
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * All rooms of the module (core/ngx_http_profile_room.h).
 */


#ifndef _NGX_HTTP_PROFILE_ROOMS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ROOMS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


PROF_HIDDEN_BEGIN

/* called in the preconfiguration; the module may be off afterwards */
void ngx_http_profile_check_ground(ngx_conf_t *cf);

void *ngx_http_profile_create_main_conf(ngx_conf_t *cf);
char *ngx_http_profile_init_main_conf(ngx_conf_t *cf, void *conf);
void *ngx_http_profile_create_srv_conf(ngx_conf_t *cf);
char *ngx_http_profile_merge_srv_conf(ngx_conf_t *cf, void *parent,
    void *child);
void *ngx_http_profile_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_profile_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);

/* called when this worker ends: afterwards no room begins any work */
void ngx_http_profile_stop_rooms(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ROOMS_H_INCLUDED_ */
