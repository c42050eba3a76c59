
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_param.h"


typedef struct {
    ngx_str_t   name;
    ngx_uint_t  mode;
} ngx_http_profile_mode_t;


static ngx_http_profile_mode_t  ngx_http_profile_modes[] = {
    { ngx_string("wall"), PROF_MODE_WALL },
    { ngx_string("cpu"), PROF_MODE_CPU },
    { ngx_string("object"), PROF_MODE_OBJECT },
    { ngx_null_string, 0 }
};


ngx_int_t
ngx_http_profile_parse_mode(ngx_str_t *value, ngx_uint_t *mode)
{
    ngx_uint_t  i;

    for (i = 0; ngx_http_profile_modes[i].name.len; i++) {

        if (ngx_http_profile_str_eq(&ngx_http_profile_modes[i].name,
                                    value->data, value->len))
        {
            *mode = ngx_http_profile_modes[i].mode;
            return NGX_OK;
        }
    }

    return NGX_ERROR;
}


ngx_str_t *
ngx_http_profile_mode_name(ngx_uint_t mode)
{
    ngx_uint_t  i;

    for (i = 0; ngx_http_profile_modes[i].name.len; i++) {

        if (ngx_http_profile_modes[i].mode == mode) {
            break;
        }
    }

    return &ngx_http_profile_modes[i].name;
}


ngx_int_t
ngx_http_profile_parse_frequency(ngx_str_t *value, ngx_uint_t *frequency)
{
    ngx_int_t  n;

    n = ngx_atoi(value->data, value->len);

    if (n < PROF_FREQUENCY_MIN || n > PROF_FREQUENCY_MAX) {
        return NGX_ERROR;
    }

    *frequency = n;

    return NGX_OK;
}
