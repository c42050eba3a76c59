
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directives of the store.
 */


#include "core/ngx_http_profile_room.h"
#include "store/ngx_http_profile_zone.h"


#define NGX_HTTP_PROFILE_ZONE_SIZE  (8 * 1024 * 1024)
#define NGX_HTTP_PROFILE_STORE_MAX  (128 * 1024 * 1024)

/* the longest name in the directory: an id and a process id */
#define NGX_HTTP_PROFILE_NAME_LEN                                             \
    (sizeof("/.") - 1 + NGX_HTTP_PROFILE_ID_LEN + NGX_INT64_LEN)


static ngx_http_profile_store_t *ngx_http_profile_store_conf(ngx_conf_t *cf);
static char *ngx_http_profile_store_param(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_profile_store_t *store, ngx_str_t *value);

static char *ngx_http_profile_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_store_path(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_store_init(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_int_t ngx_http_profile_store_share(ngx_conf_t *cf,
    ngx_http_profile_store_t *store, ngx_str_t *name);
static ngx_int_t ngx_http_profile_store_open(ngx_shm_zone_t *shm_zone,
    void *data);


static ngx_command_t  ngx_http_profile_store_commands[] = {

    { ngx_string("profile_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_store"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE123,
      ngx_http_profile_store_path,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_store_room = {
    ngx_http_profile_store_commands,
    NULL,                                  /* create */
    NULL,                                  /* create server */
    NULL,                                  /* create location */
    ngx_http_profile_store_init,
    NULL,                                  /* merge server */
    NULL,                                  /* merge location */
    NULL                                   /* stop */
};


static ngx_http_profile_store_t *
ngx_http_profile_store_conf(ngx_conf_t *cf)
{
    ngx_http_profile_store_t      *store;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (pmcf->store) {
        return pmcf->store;
    }

    store = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_store_t));

    pmcf->store = store;

    return store;
}


/* profile_zone name:size */

static char *
ngx_http_profile_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char                    *p;
    ssize_t                    size;
    ngx_str_t                 *value, s;
    ngx_http_profile_store_t  *store;

    store = ngx_http_profile_store_conf(cf);
    if (store == NULL) {
        return NGX_CONF_ERROR;
    }

    if (store->name.len) {
        return "is duplicate";
    }

    value = cf->args->elts;
    size = NGX_ERROR;

    p = (u_char *) ngx_strchr(value[1].data, ':');

    if (p) {
        s.data = p + 1;
        s.len = value[1].data + value[1].len - s.data;

        size = ngx_parse_size(&s);
    }

    if (p == value[1].data || size < (ssize_t) (8 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be a name and a size of at least %uzk, "
                           "as in \"profiles:16m\"",
                           &value[1], &cmd->name, 8 * ngx_pagesize / 1024);
        return NGX_CONF_ERROR;
    }

    store->name.data = value[1].data;
    store->name.len = p - value[1].data;
    store->size = size;

    return NGX_CONF_OK;
}


/* profile_store path [max=size] [inactive=time] */

static char *
ngx_http_profile_store_path(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                      *rv;
    ngx_str_t                 *value;
    ngx_path_t                *path;
    ngx_uint_t                 i;
    ngx_http_profile_store_t  *store;

    store = ngx_http_profile_store_conf(cf);
    if (store == NULL) {
        return NGX_CONF_ERROR;
    }

    if (store->path) {
        return "is duplicate";
    }

    value = cf->args->elts;

    path = ngx_pcalloc(cf->pool, sizeof(ngx_path_t));
    if (path == NULL) {
        return NGX_CONF_ERROR;
    }

    path->name = value[1];

    while (path->name.len > 1 && path->name.data[path->name.len - 1] == '/') {
        path->name.data[--path->name.len] = '\0';
    }

    if (ngx_conf_full_name(cf->cycle, &path->name, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (path->name.len + NGX_HTTP_PROFILE_NAME_LEN >= NGX_MAX_PATH) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the path in \"%V\" directive is longer than "
                           "%d bytes", &cmd->name,
                           (int) (NGX_MAX_PATH - NGX_HTTP_PROFILE_NAME_LEN));
        return NGX_CONF_ERROR;
    }

    store->max = NGX_HTTP_PROFILE_STORE_MAX;

    for (i = 2; i < cf->args->nelts; i++) {
        rv = ngx_http_profile_store_param(cf, cmd, store, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    path->manager = ngx_http_profile_files_manager;
    path->data = store;
    path->conf_file = cf->conf_file->file.name.data;
    path->line = cf->conf_file->line;

    store->path = path;

    return (ngx_add_path(cf, &store->path) == NGX_OK) ? NGX_CONF_OK
                                                      : NGX_CONF_ERROR;
}


static char *
ngx_http_profile_store_param(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_profile_store_t *store, ngx_str_t *value)
{
    ngx_str_t  s;

    if (ngx_strncmp(value->data, "max=", 4) == 0) {

        s.data = value->data + 4;
        s.len = value->len - 4;

        store->max = ngx_parse_offset(&s);

        if (store->max > 0) {
            return NGX_CONF_OK;
        }

    } else if (ngx_strncmp(value->data, "inactive=", 9) == 0) {

        s.data = value->data + 9;
        s.len = value->len - 9;

        store->inactive = ngx_parse_time(&s, 1);

        if (store->inactive > 0) {
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" in \"%V\" directive, "
                       "it must be \"max=\" and a size, "
                       "or \"inactive=\" and a time, greater than zero",
                       value, &cmd->name);

    return NGX_CONF_ERROR;
}


/*
 * Runs after the configuration was read.  A configuration with a console has a
 * store.  The name of a zone with an index of files contains their path, so a
 * reload with another path makes another zone.
 */

static char *
ngx_http_profile_store_init(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    u_char                    *p;
    ngx_str_t                  name;
    ngx_http_profile_store_t  *store;

    if (pmcf->store == NULL && pmcf->nconsoles + pmcf->nkeeps == 0) {
        return NGX_CONF_OK;
    }

    store = ngx_http_profile_store_conf(cf);
    if (store == NULL) {
        return NGX_CONF_ERROR;
    }

    if (store->name.len == 0) {
        ngx_str_set(&store->name, "ngx_http_profile");
        store->size = NGX_HTTP_PROFILE_ZONE_SIZE;
    }

    name = store->name;

    if (store->path) {
        name.len += 1 + store->path->name.len;
        name.data = ngx_pnalloc(cf->pool, name.len + 1);

        if (name.data == NULL) {
            return NGX_CONF_ERROR;
        }

        p = ngx_sprintf(name.data, "%V:%V", &store->name, &store->path->name);
        *p = '\0';
    }

    return (ngx_http_profile_store_share(cf, store, &name) == NGX_OK)
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


ngx_http_profile_store_t *
ngx_http_profile_store_create(ngx_conf_t *cf, ngx_str_t *name, size_t size)
{
    ngx_http_profile_store_t  *store;

    store = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_store_t));
    if (store == NULL) {
        return NULL;
    }

    store->name = *name;
    store->size = size;

    return (ngx_http_profile_store_share(cf, store, name) == NGX_OK) ? store
                                                                     : NULL;
}


static ngx_int_t
ngx_http_profile_store_share(ngx_conf_t *cf, ngx_http_profile_store_t *store,
    ngx_str_t *name)
{
    store->shm_zone = ngx_http_profile_shared_memory(cf, name, store->size,
                                                 ngx_http_profile_store_open);

    if (store->shm_zone == NULL) {
        return NGX_ERROR;
    }

    store->shm_zone->data = store;

    return NGX_OK;
}


/* opens the zone; a new zone gets the files of the directory */

static ngx_int_t
ngx_http_profile_store_open(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_profile_store_t  *store;

    (void) ngx_http_profile_zone_init(shm_zone, data);

    store = shm_zone->data;

    if (store->path && data == NULL && !shm_zone->shm.exists
        && !ngx_test_config)
    {
        ngx_http_profile_load(store, shm_zone->shm.log);
    }

    return NGX_OK;
}
