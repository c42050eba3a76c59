
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Values of parameters, which directives, triggers and calls of the console
 * share.
 */


#ifndef _NGX_HTTP_PROFILE_PARAM_H_INCLUDED_
#define _NGX_HTTP_PROFILE_PARAM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


PROF_HIDDEN_BEGIN

/* "wall", "cpu" or "object"; NGX_OK, or NGX_ERROR for another value */
ngx_int_t ngx_http_profile_parse_mode(ngx_str_t *value, ngx_uint_t *mode);

/* returns the name of a mode; static memory */
ngx_str_t *ngx_http_profile_mode_name(ngx_uint_t mode);

/* samples a second; NGX_OK, or NGX_ERROR if the value is out of range */
ngx_int_t ngx_http_profile_parse_frequency(ngx_str_t *value,
    ngx_uint_t *frequency);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_PARAM_H_INCLUDED_ */
