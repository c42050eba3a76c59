
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The table of rooms.
 */


#include "bar/ngx_http_profile_bar.h"
#include "core/ngx_http_profile_ground.h"
#include "core/ngx_http_profile_room.h"
#include "main/ngx_http_profile_process.h"
#include "main/ngx_http_profile_rooms.h"


#define NGX_HTTP_PROFILE_COMMANDS  64

PROF_HIDDEN_BEGIN

extern ngx_http_profile_room_t  ngx_http_profile_console_room;
extern ngx_http_profile_room_t  ngx_http_profile_turns_room;
extern ngx_http_profile_room_t  ngx_http_profile_metrics_room;
extern ngx_http_profile_room_t  ngx_http_profile_context_room;
extern ngx_http_profile_room_t  ngx_http_profile_workers_room;
extern ngx_http_profile_room_t  ngx_http_profile_continuous_room;
extern ngx_http_profile_room_t  ngx_http_profile_keep_room;
extern ngx_http_profile_room_t  ngx_http_profile_request_room;
extern ngx_http_profile_room_t  ngx_http_profile_store_room;
extern ngx_http_profile_room_t  ngx_http_profile_loop_room;
extern ngx_http_profile_room_t  ngx_http_profile_core_room;

PROF_HIDDEN_END


static void ngx_http_profile_add_commands(void);


/*
 * The room "bar" is not here: it is a module of its own, because of the place
 * of its filters.
 */

static ngx_http_profile_room_t  *ngx_http_profile_rooms[] = {
    &ngx_http_profile_console_room,
    &ngx_http_profile_turns_room,
    &ngx_http_profile_metrics_room,
    &ngx_http_profile_context_room,
    &ngx_http_profile_workers_room,
    &ngx_http_profile_continuous_room,
    &ngx_http_profile_keep_room,
    &ngx_http_profile_request_room,
    &ngx_http_profile_store_room,
    &ngx_http_profile_loop_room,
    &ngx_http_profile_core_room,
    NULL
};


/*
 * The directives of all rooms; the last one is null.  The table is static, so
 * it needs no allocation.
 */

static ngx_command_t
    ngx_http_profile_commands[NGX_HTTP_PROFILE_COMMANDS + 1];

static ngx_module_t  *ngx_http_profile_modules[] = {
    &ngx_http_profile_module,
    &ngx_http_profile_bar_filter_module,
    NULL
};

/* of the configuration that is being read */

static void  *ngx_http_profile_main_conf;


/*
 * nginx looks up directives as soon as the module is loaded, also outside of
 * http {}.  If the table is too small, the module has no directive, so that
 * the first start of nginx shows the mistake.
 */

__attribute__((constructor)) static void
ngx_http_profile_add_commands(void)
{
    ngx_uint_t                 n;
    ngx_command_t             *cmd;
    ngx_http_profile_room_t  **room;

    n = 0;

    for (room = ngx_http_profile_rooms; *room; room++) {
        for (cmd = (*room)->commands; cmd && cmd->name.len; cmd++) {

            if (n == NGX_HTTP_PROFILE_COMMANDS) {
                return;
            }

            ngx_http_profile_commands[n++] = *cmd;
        }
    }

    ngx_http_profile_module.commands = ngx_http_profile_commands;

    ngx_http_profile_ground_load(ngx_http_profile_modules,
                                 ngx_http_profile_vars);
}


/* the last check of nginx before the first directive of the module */

void
ngx_http_profile_check_ground(ngx_conf_t *cf)
{
    ngx_module_t  **module;

    ngx_http_profile_ground_http(cf, &ngx_http_profile_module,
                                 ngx_http_profile_main_conf);

    if (ngx_http_profile_is_off()) {
        for (module = ngx_http_profile_modules; *module; module++) {
            ngx_http_profile_ground_ignore((*module)->commands);
        }
    }
}


void *
ngx_http_profile_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_profile_room_t       **room;
    ngx_http_profile_main_conf_t   *conf;

    ngx_http_profile_ground_conf(cf);

    if (ngx_http_profile_is_off()) {
        return ngx_http_profile_ground_nothing();
    }

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_main_conf_t));
    ngx_http_profile_main_conf = conf;

    for (room = ngx_http_profile_rooms; conf && *room; room++) {
        if ((*room)->create && (*room)->create(cf, conf) != NGX_OK) {
            return NULL;
        }
    }

    return conf;
}


char *
ngx_http_profile_init_main_conf(ngx_conf_t *cf, void *conf)
{
    char                      *rv;
    ngx_http_profile_room_t  **room;

    if (ngx_http_profile_is_off()) {
        return NGX_CONF_OK;
    }

    for (room = ngx_http_profile_rooms; *room; room++) {

        rv = (*room)->init ? (*room)->init(cf, conf) : NGX_CONF_OK;

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


void *
ngx_http_profile_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_profile_room_t      **room;
    ngx_http_profile_srv_conf_t   *conf;

    if (ngx_http_profile_is_off()) {
        return ngx_http_profile_ground_nothing();
    }

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_srv_conf_t));

    for (room = ngx_http_profile_rooms; conf && *room; room++) {
        if ((*room)->create_server
            && (*room)->create_server(cf, conf) != NGX_OK)
        {
            return NULL;
        }
    }

    return conf;
}


char *
ngx_http_profile_merge_srv_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_profile_srv_conf_t *conf = child;

    char                      *rv;
    ngx_http_profile_room_t  **room;

    if (ngx_http_profile_is_off()) {
        return NGX_CONF_OK;
    }

    for (room = ngx_http_profile_rooms; *room; room++) {

        rv = (*room)->merge_server ? (*room)->merge_server(cf, parent, conf)
                                   : NGX_CONF_OK;

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


void *
ngx_http_profile_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_profile_room_t      **room;
    ngx_http_profile_loc_conf_t   *conf;

    /*
     * The master does not use a number again after a reload, and workers
     * inherit the configuration from the master.
     */

    static ngx_uint_t  number;

    if (ngx_http_profile_is_off()) {
        return ngx_http_profile_ground_nothing();
    }

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_loc_conf_t));

    if (conf) {
        conf->number = ++number;
    }

    for (room = ngx_http_profile_rooms; conf && *room; room++) {
        if ((*room)->create_location
            && (*room)->create_location(cf, conf) != NGX_OK)
        {
            return NULL;
        }
    }

    return conf;
}


char *
ngx_http_profile_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_profile_loc_conf_t *prev = parent;
    ngx_http_profile_loc_conf_t *conf = child;

    char                       *rv;
    ngx_http_profile_room_t   **room;
    ngx_http_core_loc_conf_t   *clcf;

    if (ngx_http_profile_is_off()) {
        return NGX_CONF_OK;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    /* the configuration of a block "if" or "limit_except" */

    if (clcf->noname) {
        conf->number = prev->number;
    }

    for (room = ngx_http_profile_rooms; *room; room++) {

        rv = (*room)->merge_location
             ? (*room)->merge_location(cf, prev, conf) : NGX_CONF_OK;

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


void
ngx_http_profile_stop_rooms(void)
{
    ngx_http_profile_room_t  **room;

    for (room = ngx_http_profile_rooms; *room; room++) {
        if ((*room)->stop) {
            (*room)->stop();
        }
    }
}
