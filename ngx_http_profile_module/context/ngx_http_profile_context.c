
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directive profile_context, and the records of requests.
 */


#include "context/ngx_http_profile_context.h"
#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_room.h"
#include "loop/ngx_http_profile_loop.h"


static ngx_int_t ngx_http_profile_context_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_context_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_context_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf);
static void ngx_http_profile_context_stop(void);
static ngx_int_t ngx_http_profile_context_handler(ngx_http_request_t *r);
static void ngx_http_profile_context_running(ngx_http_request_t *r);
static void ngx_http_profile_context_describe(ngx_http_profile_track_t *tr);


static ngx_command_t  ngx_http_profile_context_commands[] = {

    { ngx_string("profile_context"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_profile_main_conf_t, context),
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_context_room = {
    ngx_http_profile_context_commands,
    ngx_http_profile_context_create,
    NULL,                                  /* create server */
    NULL,                                  /* create location */
    ngx_http_profile_context_init_main,
    ngx_http_profile_context_merge_server,
    NULL,                                  /* merge location */
    ngx_http_profile_context_stop
};


static ngx_uint_t  ngx_http_profile_context_on;


static ngx_int_t
ngx_http_profile_context_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    pmcf->context = NGX_CONF_UNSET;

    return NGX_OK;
}


static char *
ngx_http_profile_context_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_conf_init_value(pmcf->context, 0);

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_context_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (pmcf->context) {
        conf->track = 1;
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_profile_context_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_profile_context_handler;

    return NGX_OK;
}


void
ngx_http_profile_context_open(ngx_cycle_t *cycle, ngx_uint_t on)
{
    if (on == ngx_http_profile_context_on) {
        return;
    }

    if (!on) {
        ngx_http_profile_context_stop();
        return;
    }

    if (prof_context_open() != PROF_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "profile: cannot publish the context of the process, "
                      "\"profile_context\" has no effect");
        return;
    }

    ngx_http_profile_context_on = 1;
    ngx_http_profile_add_running(ngx_http_profile_context_running);
}


static void
ngx_http_profile_context_stop(void)
{
    if (ngx_http_profile_context_on) {
        ngx_http_profile_context_on = 0;
        ngx_http_profile_remove_running(ngx_http_profile_context_running);
        prof_context_close();
    }
}


/* the request has found its location */

PROF_HOT static ngx_int_t
ngx_http_profile_context_handler(ngx_http_request_t *r)
{
    ngx_http_profile_track_t  *tr;

    tr = (ngx_http_profile_context_on && r == r->main)
         ? ngx_http_profile_find_track(r) : NULL;

    if (tr) {
        prof_context_attach(NULL);
        ngx_http_profile_context_describe(tr);
        prof_context_attach(&tr->context);
    }

    return NGX_DECLINED;
}


/* called when code of the request begins to run; NULL: of no request */

PROF_HOT static void
ngx_http_profile_context_running(ngx_http_request_t *r)
{
    ngx_http_profile_track_t  *tr;

    tr = r ? ngx_http_profile_find_track(r) : NULL;

    if (tr == NULL) {
        prof_context_attach(NULL);
        return;
    }

    if (!tr->described) {
        prof_context_attach(NULL);
        ngx_http_profile_context_describe(tr);
    }

    prof_context_attach(&tr->context);
}


PROF_HOT static void
ngx_http_profile_context_describe(ngx_http_profile_track_t *tr)
{
    uint8_t                    flags;
    ngx_int_t                  rc;
    prof_trace_t               trace;
    ngx_http_core_loc_conf_t  *clcf;

    flags = 0;
    rc = ngx_http_profile_trace_flags(tr->request, &trace, &flags);

    clcf = ngx_http_get_module_loc_conf(tr->request, ngx_http_core_module);

    prof_context_write(&tr->context, rc == NGX_OK ? &trace : NULL, flags,
                       (char *) clcf->name.data, clcf->name.len);
    tr->described = 1;
}
