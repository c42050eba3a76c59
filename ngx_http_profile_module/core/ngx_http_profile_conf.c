
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Setters of directives with limits, shared memory, and the URL of the console.
 */


#include "core/ngx_http_profile_conf.h"


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


char *
ngx_http_profile_condition(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_str_t *value, ngx_http_complex_value_t *condition)
{
    ngx_http_compile_complex_value_t  ccv;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = condition;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (condition->lengths || value->len == 0
        || (value->len == 1
            && (value->data[0] == '0' || value->data[0] == '1')))
    {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid condition \"%V\" in \"%V\" directive, it "
                       "must contain a variable, or be \"0\", \"1\" or empty",
                       value, directive);

    return NGX_CONF_ERROR;
}


ngx_uint_t
ngx_http_profile_holds(ngx_http_request_t *r,
    ngx_http_complex_value_t *condition)
{
    ngx_str_t  value;

    return ngx_http_complex_value(r, condition, &value) == NGX_OK
           && value.len
           && (value.len > 1 || value.data[0] != '0');
}


/* nginx lets one module use a zone twice, if both uses have the same size */

ngx_shm_zone_t *
ngx_http_profile_shared_memory(ngx_conf_t *cf, ngx_str_t *name, size_t size,
    ngx_shm_zone_init_pt init)
{
    ngx_shm_zone_t  *zone;

    zone = ngx_shared_memory_add(cf, name, size, &ngx_http_profile_module);

    if (zone == NULL) {
        return NULL;
    }

    if (zone->init) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the zone \"%V\" is already used by another "
                           "directive of the module", name);
        return NULL;
    }

    zone->init = init;

    return zone;
}


ngx_str_t *
ngx_http_profile_console_url(ngx_http_request_t *r)
{
    ngx_http_profile_srv_conf_t  *pscf;

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    return pscf->console.len ? &pscf->console : NULL;
}
