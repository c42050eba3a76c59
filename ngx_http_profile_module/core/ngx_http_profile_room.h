
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A room, which is a folder of the module: its directives and its part in the
 * life of configurations and workers.  main/ has the table of all rooms, and
 * calls upper rooms first.  Each member may be NULL.
 */


#ifndef _NGX_HTTP_PROFILE_ROOM_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ROOM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"


/* structures are zero before the first function that creates them */

typedef struct {
    ngx_command_t   *commands;             /* the last one is null */

    ngx_int_t      (*create)(ngx_conf_t *cf,
                       ngx_http_profile_main_conf_t *pmcf);
    ngx_int_t      (*create_server)(ngx_conf_t *cf,
                       ngx_http_profile_srv_conf_t *conf);
    ngx_int_t      (*create_location)(ngx_conf_t *cf,
                       ngx_http_profile_loc_conf_t *conf);

    /* http {} was read, but its servers are not merged yet */
    char          *(*init)(ngx_conf_t *cf,
                       ngx_http_profile_main_conf_t *pmcf);

    char          *(*merge_server)(ngx_conf_t *cf,
                       ngx_http_profile_srv_conf_t *prev,
                       ngx_http_profile_srv_conf_t *conf);
    char          *(*merge_location)(ngx_conf_t *cf,
                       ngx_http_profile_loc_conf_t *prev,
                       ngx_http_profile_loc_conf_t *conf);

    /* a worker ends: the room must not begin anything afterwards */
    void           (*stop)(void);
} ngx_http_profile_room_t;


#endif /* _NGX_HTTP_PROFILE_ROOM_H_INCLUDED_ */
