
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Values of directives, and the hash of request headers.  Errors name the
 * directive, the value and what it takes; nginx adds the line.
 */


#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_param.h"


static ngx_uint_t ngx_http_profile_known_header(ngx_str_t *name);
static ngx_int_t ngx_http_profile_copy_hash(ngx_hash_t *hash,
    ngx_array_t *keys);
static ngx_int_t ngx_http_profile_add_header_key(ngx_conf_t *cf,
    ngx_array_t *keys, ngx_str_t *name, ngx_http_header_handler_pt handler);


/* all three types are of one size on the platforms of the module */

ngx_http_profile_limit_t  ngx_http_profile_timeout_limit = {
    ngx_conf_set_msec_slot,
    1, NGX_MAX_INT_T_VALUE,
    "a time of at least 1ms"
};

ngx_http_profile_limit_t  ngx_http_profile_buffer_limit = {
    ngx_conf_set_size_slot,
    PROF_MEMORY_MIN, PROF_MEMORY_MAX,
    "a size from 128k to 1024m"
};

ngx_http_profile_limit_t  ngx_http_profile_interval_limit = {
    ngx_conf_set_size_slot,
    0, PROF_INTERVAL_MAX,
    "a size from 0 to 1024m"
};

ngx_http_profile_limit_t  ngx_http_profile_grace_limit = {
    ngx_conf_set_msec_slot,
    0, 60000,
    "a time from 0 to 60s"
};

ngx_http_profile_limit_t  ngx_http_profile_captures_limit = {
    ngx_conf_set_num_slot,
    1, NGX_MAX_INT_T_VALUE,
    "a number greater than zero"
};


char *
ngx_http_profile_mode(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t  *value;

    if (plcf->mode != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_profile_parse_mode(&value[1], &plcf->mode) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be \"wall\", \"cpu\" or \"object\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_profile_frequency(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t  *value;

    if (plcf->frequency != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_profile_parse_frequency(&value[1], &plcf->frequency)
        != NGX_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be a number of samples a second "
                           "from %d to %d",
                           &value[1], &cmd->name,
                           PROF_FREQUENCY_MIN, PROF_FREQUENCY_MAX);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_profile_format(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    u_char      *p, *last;
    ngx_str_t   *value;
    ngx_uint_t   i;
    u_char       names[NGX_MAX_CONF_ERRSTR];

    if (plcf->format) {
        return "is duplicate";
    }

    value = cf->args->elts;

    plcf->format = prof_encoder_find((char *) value[1].data, value[1].len);

    if (plcf->format) {
        return NGX_CONF_OK;
    }

    p = names;
    last = names + sizeof(names);

    for (i = 0; prof_encoders[i]; i++) {
        p = ngx_slprintf(p, last, "%s\"%s\"", i ? ", " : "",
                         prof_encoders[i]->name);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\" directive, "
                       "it must be one of %*s",
                       &value[1], &cmd->name, (size_t) (p - names), names);

    return NGX_CONF_ERROR;
}


/* a name of an argument or a header, or "off" */

char *
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
                           "the header has a meaning of its own",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    *name = value[1];

    if (ngx_strcmp(name->data, "off") == 0) {
        name->len = 0;
    }

    return NGX_CONF_OK;
}


/* one that nginx reads: it cannot have two handlers */

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


char *
ngx_http_profile_limited(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char *p = conf;

    char                      *rv;
    ngx_str_t                 *value;
    ngx_uint_t                *np;
    ngx_command_t              slot;
    ngx_http_profile_limit_t  *limit;

    limit = cmd->post;
    np = (ngx_uint_t *) (p + cmd->offset);

    slot = *cmd;
    slot.post = NULL;

    if (*np != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    rv = limit->set(cf, &slot, conf);

    if (rv == NGX_CONF_OK && *np >= limit->min && *np <= limit->max) {
        return NGX_CONF_OK;
    }

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\" directive, "
                       "it must be %s",
                       &value[1], &cmd->name, limit->takes);

    return NGX_CONF_ERROR;
}


/*
 * Puts the trigger headers in nginx's own hash of request headers, so that
 * requests without them pay nothing.
 */

ngx_int_t
ngx_http_profile_init_headers(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf, ngx_http_header_handler_pt handler)
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

    for (i = 0; i < pmcf->headers.nelts; i++) {
        if (ngx_http_profile_add_header_key(cf, &keys, &name[i], handler)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    init.hash = hash;
    init.key = ngx_hash_key_lc;
    init.max_size = 512;
    init.bucket_size = ngx_align(64, ngx_cacheline_size);
    init.name = "headers_in_hash";
    init.pool = cf->pool;
    init.temp_pool = NULL;

    return ngx_hash_init(&init, keys.elts, keys.nelts);
}


/* other modules may have added theirs: take what the hash holds */

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
    ngx_str_t *name, ngx_http_header_handler_pt handler)
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
    header->handler = handler;

    return NGX_OK;
}


ngx_str_t *
ngx_http_profile_console_url(ngx_http_request_t *r)
{
    ngx_http_profile_srv_conf_t  *pscf;

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    return pscf->console.len ? &pscf->console : NULL;
}
