
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Directives of captured requests, their inheritance, and nginx's hash of
 * request headers.  An error names the directive, the value and the values
 * that the directive takes; nginx adds the line.
 */


#include "core/ngx_http_profile_room.h"
#include "core/ngx_http_profile_param.h"
#include "request/ngx_http_profile_object.h"
#include "request/ngx_http_profile_request.h"


static char *ngx_http_profile_name(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_uint_t ngx_http_profile_known_header(ngx_str_t *name);
static ngx_int_t ngx_http_profile_request_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_int_t ngx_http_profile_request_create_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *conf);
static ngx_int_t ngx_http_profile_request_create_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf);
static char *ngx_http_profile_request_init(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_request_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf);
static void ngx_http_profile_request_stop(void);
static char *ngx_http_profile_if(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_add_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf);
static ngx_int_t ngx_http_profile_add_name(ngx_array_t *names,
    ngx_str_t *name);
static ngx_int_t ngx_http_profile_copy_hash(ngx_hash_t *hash,
    ngx_array_t *keys);
static ngx_int_t ngx_http_profile_add_header_key(ngx_conf_t *cf,
    ngx_array_t *keys, ngx_str_t *name);


/*
 * ngx_http_profile_limited() compares numbers, times and sizes as ngx_uint_t:
 * their types have the same size on all platforms of the module.
 */

static ngx_http_profile_limit_t  ngx_http_profile_frequency_limit = {
    ngx_conf_set_num_slot,
    PROF_FREQUENCY_MIN, PROF_FREQUENCY_MAX,
    "a number of samples a second from 1 to 10000"
};

static ngx_http_profile_limit_t  ngx_http_profile_timeout_limit = {
    ngx_conf_set_msec_slot,
    1, NGX_MAX_INT_T_VALUE,
    "a time of at least 1ms"
};

static ngx_http_profile_limit_t  ngx_http_profile_buffer_limit = {
    ngx_conf_set_size_slot,
    PROF_MEMORY_MIN, PROF_MEMORY_MAX,
    "a size from 128k to 1024m"
};

static ngx_http_profile_limit_t  ngx_http_profile_interval_limit = {
    ngx_conf_set_size_slot,
    0, PROF_INTERVAL_MAX,
    "a size from 0 to 1024m"
};

static ngx_http_profile_limit_t  ngx_http_profile_grace_limit = {
    ngx_conf_set_msec_slot,
    0, 60000,
    "a time from 0 to 60s"
};

static ngx_http_profile_limit_t  ngx_http_profile_captures_limit = {
    ngx_conf_set_num_slot,
    1, NGX_MAX_INT_T_VALUE,
    "a number greater than zero"
};


static ngx_command_t  ngx_http_profile_request_commands[] = {

    { ngx_string("profile_endpoint"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, enable),
      NULL },

    { ngx_string("profile_allow"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_profile_allow,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, allow),
      NULL },

    { ngx_string("profile_if"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_if,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_mode"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_param_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, mode),
      (void *) NGX_HTTP_PROFILE_PARAM_MODE },

    { ngx_string("profile_frequency"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_limited,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, frequency),
      &ngx_http_profile_frequency_limit },

    { ngx_string("profile_format"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_param_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, format),
      (void *) NGX_HTTP_PROFILE_PARAM_FORMAT },

    { ngx_string("profile_arg"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_name,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, arg),
      NULL },

    { ngx_string("profile_header"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_name,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, header),
      NULL },

    { ngx_string("profile_spans"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, spans),
      NULL },

    { ngx_string("profile_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_limited,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, timeout),
      &ngx_http_profile_timeout_limit },

    { ngx_string("profile_buffer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_limited,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, buffer),
      &ngx_http_profile_buffer_limit },

    { ngx_string("profile_object_interval"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_limited,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, object_interval),
      &ngx_http_profile_interval_limit },

    { ngx_string("profile_object_grace"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_limited,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, object_grace),
      &ngx_http_profile_grace_limit },

    { ngx_string("profile_max_captures"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_limited,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_profile_main_conf_t, max_captures),
      &ngx_http_profile_captures_limit },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_request_room = {
    ngx_http_profile_request_commands,
    ngx_http_profile_request_create,
    ngx_http_profile_request_create_server,
    ngx_http_profile_request_create_location,
    ngx_http_profile_request_init,
    NULL,                                  /* merge server */
    ngx_http_profile_request_merge,
    ngx_http_profile_request_stop
};


static ngx_int_t
ngx_http_profile_request_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    pmcf->query.more = NGX_MAX_SIZE_T_VALUE;
    pmcf->max_captures = NGX_CONF_UNSET_UINT;

    return ngx_array_init(&pmcf->headers, cf->pool, 1, sizeof(ngx_str_t));
}


static ngx_int_t
ngx_http_profile_request_create_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *conf)
{
    return ngx_array_init(&conf->locations, cf->pool, 4, sizeof(void *));
}


static ngx_int_t
ngx_http_profile_request_create_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf)
{
    conf->enable = NGX_CONF_UNSET;
    conf->allow = NGX_CONF_UNSET_PTR;
    conf->condition = NGX_CONF_UNSET_PTR;
    conf->mode = NGX_CONF_UNSET_UINT;
    conf->format = NGX_CONF_UNSET_UINT;
    conf->frequency = NGX_CONF_UNSET_UINT;
    conf->spans = NGX_CONF_UNSET;
    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->buffer = NGX_CONF_UNSET_SIZE;
    conf->object_interval = NGX_CONF_UNSET_SIZE;
    conf->object_grace = NGX_CONF_UNSET_MSEC;

    return NGX_OK;
}


static char *
ngx_http_profile_request_init(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_conf_init_uint_value(pmcf->max_captures,
                             NGX_HTTP_PROFILE_MAX_CAPTURES);

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_request_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf)
{
    ngx_http_profile_main_conf_t  *pmcf;

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_ptr_value(conf->allow, prev->allow, NULL);
    ngx_conf_merge_ptr_value(conf->condition, prev->condition, NULL);
    ngx_conf_merge_uint_value(conf->mode, prev->mode, PROF_MODE_WALL);
    ngx_conf_merge_uint_value(conf->frequency, prev->frequency,
                              PROF_FREQUENCY_DEFAULT);
    ngx_conf_merge_str_value(conf->header, prev->header, "X-Profile");
    ngx_conf_merge_value(conf->spans, prev->spans, 1);
    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 60000);
    ngx_conf_merge_size_value(conf->buffer, prev->buffer,
                              PROF_MEMORY_DEFAULT);
    ngx_conf_merge_size_value(conf->object_interval, prev->object_interval,
                              PROF_INTERVAL_DEFAULT);
    ngx_conf_merge_msec_value(conf->object_grace, prev->object_grace, 0);

    ngx_conf_merge_uint_value(conf->format, prev->format, 0);
    ngx_conf_merge_str_value(conf->arg, prev->arg, "performance_bar");

    conf->arg_rare = ngx_http_profile_arg_rare(&conf->arg);

    if (conf->allow == NULL) {

        pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

        if (pmcf->local == NULL) {
            pmcf->local = ngx_http_profile_allow_default(cf);
            if (pmcf->local == NULL) {
                return NGX_CONF_ERROR;
            }
        }

        conf->allow = pmcf->local;
    }

    return conf->enable ? ngx_http_profile_add_location(cf, conf)
                        : NGX_CONF_OK;
}


static void
ngx_http_profile_request_stop(void)
{
    ngx_http_profile_request_exit();
    ngx_http_profile_object_exit();
}


static char *
ngx_http_profile_if(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t  *value;

    if (plcf->condition != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    plcf->condition = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (plcf->condition == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    return ngx_http_profile_condition(cf, &cmd->name, &value[1],
                                      plcf->condition);
}


/* adds the location to the server that is being merged */

static char *
ngx_http_profile_add_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf)
{
    ngx_http_profile_query_t       query;
    ngx_http_profile_srv_conf_t   *pscf;
    ngx_http_profile_loc_conf_t  **plcf;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    pscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_profile_module);

    plcf = ngx_array_push(&pscf->locations);
    if (plcf == NULL) {
        return NGX_CONF_ERROR;
    }

    *plcf = conf;
    pscf->conditional |= (conf->condition != NULL);
    pmcf->nlocations++;

    if (conf->arg.len) {
        query.more = conf->arg.len - 1;
        query.before = conf->arg_rare;
        query.rare = conf->arg.data[conf->arg_rare];

        ngx_http_profile_add_query(&pmcf->query, &query);
    }

    if (conf->header.len
        && ngx_http_profile_add_name(&pmcf->headers, &conf->header) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * One search finds all names of the same length that have the same rarest byte
 * at the same place.  For other names, only the length of the query is
 * checked.
 */

void
ngx_http_profile_add_query(ngx_http_profile_query_t *query,
    ngx_http_profile_query_t *other)
{
    if (query->more == NGX_MAX_SIZE_T_VALUE) {
        *query = *other;
        return;
    }

    if (other->more != NGX_MAX_SIZE_T_VALUE
        && (query->more != other->more || query->before != other->before
            || query->rare != other->rare))
    {
        query->more = ngx_min(query->more, other->more);
        query->rare = -1;
    }
}


static ngx_int_t
ngx_http_profile_add_name(ngx_array_t *names, ngx_str_t *name)
{
    ngx_str_t   *known;
    ngx_uint_t   i;

    known = names->elts;

    for (i = 0; i < names->nelts; i++) {
        if (known[i].len == name->len
            && ngx_strncasecmp(known[i].data, name->data, name->len) == 0)
        {
            return NGX_OK;
        }
    }

    known = ngx_array_push(names);
    if (known == NULL) {
        return NGX_ERROR;
    }

    *known = *name;

    return NGX_OK;
}


/* sets the name of an argument or of a header, or "off" */

static char *
ngx_http_profile_name(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char *p = conf;

    size_t      i;
    u_char      ch;
    ngx_str_t  *value, *name;

    name = (ngx_str_t *) (p + cmd->offset);

    if (name->data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 0; i < value[1].len; i++) {
        ch = value[1].data[i];

        if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
              || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-'))
        {
            break;
        }
    }

    if (value[1].len == 0 || i < value[1].len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be a name of letters, digits, "
                           "\"_\" and \"-\", or \"off\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    if (cmd->offset == offsetof(ngx_http_profile_loc_conf_t, header)
        && ngx_http_profile_known_header(&value[1]))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "nginx itself uses this header",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    *name = value[1];

    if (ngx_strcmp(name->data, "off") == 0) {
        name->len = 0;
    }

    return NGX_CONF_OK;
}


/* returns whether nginx already has a handler for the header */

static ngx_uint_t
ngx_http_profile_known_header(ngx_str_t *name)
{
    ngx_http_header_t  *header;

    for (header = ngx_http_headers_in; header->name.len; header++) {

        if (header->name.len == name->len
            && ngx_strncasecmp(header->name.data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Puts the trigger headers in nginx's own hash of request headers, so that
 * requests without them pay nothing.
 */

ngx_int_t
ngx_http_profile_init_headers(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_str_t                  *name;
    ngx_uint_t                  i;
    ngx_hash_t                 *hash;
    ngx_array_t                 keys;
    ngx_hash_init_t             init;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    hash = &cmcf->headers_in_hash;

    if (ngx_array_init(&keys, cf->temp_pool, 64, sizeof(ngx_hash_key_t))
        != NGX_OK
        || ngx_http_profile_copy_hash(hash, &keys) != NGX_OK)
    {
        return NGX_ERROR;
    }

    name = pmcf->headers.elts;
    init.bucket_size = 64;

    for (i = 0; i < pmcf->headers.nelts; i++) {

        /* nginx has no directive for the size of a bucket of this hash */

        init.bucket_size = ngx_max(init.bucket_size,
                                   sizeof(ngx_hash_elt_t) + name[i].len
                                   + 2 * sizeof(void *));

        if (ngx_http_profile_add_header_key(cf, &keys, &name[i])
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    init.hash = hash;
    init.key = ngx_hash_key_lc;
    init.max_size = 512;
    init.bucket_size = ngx_align(init.bucket_size, ngx_cacheline_size);
    init.name = "headers_in_hash";
    init.pool = cf->pool;
    init.temp_pool = NULL;

    return ngx_hash_init(&init, keys.elts, keys.nelts);
}


/* copies the names of nginx's hash, to which other modules may have added */

static ngx_int_t
ngx_http_profile_copy_hash(ngx_hash_t *hash, ngx_array_t *keys)
{
    ngx_uint_t       i;
    ngx_hash_key_t  *hk;
    ngx_hash_elt_t  *elt;

    for (i = 0; i < hash->size; i++) {

        for (elt = hash->buckets[i]; elt && elt->value; /* void */ ) {

            hk = ngx_array_push(keys);
            if (hk == NULL) {
                return NGX_ERROR;
            }

            hk->key.len = elt->len;
            hk->key.data = elt->name;
            hk->key_hash = ngx_hash_key(elt->name, elt->len);
            hk->value = elt->value;

            elt = (ngx_hash_elt_t *) ngx_align_ptr(&elt->name[0] + elt->len,
                                                   sizeof(void *));
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_add_header_key(ngx_conf_t *cf, ngx_array_t *keys,
    ngx_str_t *name)
{
    u_char             *lowcase;
    ngx_hash_key_t     *hk;
    ngx_http_header_t  *header;

    lowcase = ngx_pnalloc(cf->pool, name->len);
    header = ngx_pcalloc(cf->pool, sizeof(ngx_http_header_t));
    hk = ngx_array_push(keys);

    if (lowcase == NULL || header == NULL || hk == NULL) {
        return NGX_ERROR;
    }

    hk->key_hash = ngx_hash_strlow(lowcase, name->data, name->len);
    hk->key.data = lowcase;
    hk->key.len = name->len;
    hk->value = header;

    header->name = *name;
    header->handler = ngx_http_profile_header;

    return NGX_OK;
}
