
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the program of the helper process.  It is beside the module, or beside
 * nginx if the module is linked into nginx.  So a module does not start the
 * helper of another version.
 */


#include "core/ngx_http_profile_redact.h"
#include "core/ngx_http_profile_room.h"
#include "core/ngx_http_profile_symbolizer.h"

#include <dlfcn.h>


#define NGX_HTTP_PROFILE_SYMBOLIZER  "ngx_http_profile_symbolizer"

/* ms between two messages of one worker about the helper */

#define NGX_HTTP_PROFILE_SYMBOLIZER_LOG  60000


static ngx_int_t ngx_http_profile_core_create_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_int_t ngx_http_profile_core_create(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf);
static char *ngx_http_profile_core_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf);
static char *ngx_http_profile_symbolizer(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_symbolizer_beside(ngx_cycle_t *cycle);


static ngx_command_t  ngx_http_profile_core_commands[] = {

    { ngx_string("profile_symbolizer"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_symbolizer,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_kernel"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_profile_main_conf_t, kernel),
      NULL },

    { ngx_string("profile_redact"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_profile_redact_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_core_room = {
    ngx_http_profile_core_commands,
    ngx_http_profile_core_create_main,
    NULL,                                  /* create server */
    ngx_http_profile_core_create,
    NULL,                                  /* init */
    NULL,                                  /* merge server */
    ngx_http_profile_core_merge,
    NULL                                   /* stop */
};


static ngx_int_t
ngx_http_profile_core_create_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    pmcf->kernel = NGX_CONF_UNSET;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_core_create(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf)
{
    conf->redact = NGX_CONF_UNSET_PTR;

    return NGX_OK;
}


static char *
ngx_http_profile_core_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf)
{
    ngx_conf_merge_ptr_value(conf->redact, prev->redact, NULL);

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_symbolizer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_main_conf_t *pmcf = conf;

    ngx_str_t  *value;

    if (pmcf->symbolizer.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    pmcf->symbolizer = value[1];

    if (ngx_strcmp(value[1].data, "off") == 0) {
        pmcf->symbolizer.len = 0;
        return NGX_CONF_OK;
    }

    return ngx_conf_full_name(cf->cycle, &pmcf->symbolizer, 0) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


void
ngx_http_profile_symbolizer_init(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf)
{
    char  *path;

    path = NULL;

    if (pmcf->symbolizer.len) {
        path = (char *) pmcf->symbolizer.data;

    } else if (pmcf->symbolizer.data == NULL) {
        path = ngx_http_profile_symbolizer_beside(cycle);
    }

    if (path && access(path, X_OK) == -1) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                      "profile: \"%s\" cannot be executed, names are taken "
                      "from symbol tables only", path);
    }

    prof_profile_helper(path);
}


static char *
ngx_http_profile_symbolizer_beside(ngx_cycle_t *cycle)
{
    char     *p, *slash;
    size_t    len;
    Dl_info   info;
    char      path[PATH_MAX];

    /* for the program itself, dladdr() returns the name in its command line */

    if (dladdr(&ngx_http_profile_module, &info) == 0
        || info.dli_fname == NULL)
    {
        return NULL;
    }

    len = strlen(info.dli_fname);

    p = realpath(len > 3 && strcmp(info.dli_fname + len - 3, ".so") == 0
                 ? info.dli_fname : "/proc/self/exe", path);

    slash = p ? strrchr(path, '/') : NULL;

    if (slash == NULL) {
        return NULL;
    }

    slash[1] = '\0';

    len = strlen(path);

    p = ngx_pnalloc(cycle->pool, len + sizeof(NGX_HTTP_PROFILE_SYMBOLIZER));

    if (p) {
        ngx_memcpy(p, path, len);
        ngx_memcpy(p + len, NGX_HTTP_PROFILE_SYMBOLIZER,
                   sizeof(NGX_HTTP_PROFILE_SYMBOLIZER));
    }

    return p;
}


void
ngx_http_profile_symbolizer_log(ngx_log_t *log)
{
    const char  *err;

    static ngx_msec_t  next;
    static ngx_uint_t  logged;

    err = prof_profile_helper_error();

    if (err == NULL
        || (logged && (ngx_msec_int_t) (ngx_current_msec - next) < 0))
    {
        return;
    }

    logged = 1;
    next = ngx_current_msec + NGX_HTTP_PROFILE_SYMBOLIZER_LOG;

    /* names are missing, and the server is well */

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "profile: the helper for names %s, names are missing", err);
}
