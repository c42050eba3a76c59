
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Parameters of captures.  Triggers, calls of the console and directives take
 * the same values, and describe them in the same words.
 */


#ifndef _NGX_HTTP_PROFILE_PARAM_H_INCLUDED_
#define _NGX_HTTP_PROFILE_PARAM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


typedef enum {
    NGX_HTTP_PROFILE_PARAM_MODE = 0,    /* prof_mode_e */
    NGX_HTTP_PROFILE_PARAM_FORMAT,      /* index in prof_encoders[] */
    NGX_HTTP_PROFILE_PARAM_FREQUENCY,   /* samples a second */
    NGX_HTTP_PROFILE_PARAM_SPANS,       /* 1: stages are measured and shown */
    NGX_HTTP_PROFILE_PARAM_SECONDS,     /* length of a capture, in ms */
    NGX_HTTP_PROFILE_PARAM_REQUESTS,    /* length of a capture, in requests */
    NGX_HTTP_PROFILE_PARAM_TRIGGERS,    /* triggers only have the parameters
                                           above */
    NGX_HTTP_PROFILE_PARAM_INTERVAL =   /* bytes between samples of memory */
        NGX_HTTP_PROFILE_PARAM_TRIGGERS,
    NGX_HTTP_PROFILE_PARAMS
} ngx_http_profile_param_e;


typedef struct {
    ngx_uint_t                 given;        /* bits: 1 << parameter */
    ngx_uint_t                 values[NGX_HTTP_PROFILE_PARAMS];
} ngx_http_profile_params_t;


#define ngx_http_profile_param_given(params, n)                               \
    ((params)->given & (ngx_uint_t) 1 << (n))

/* the value of the parameter, or preset if it is not given */

#define ngx_http_profile_param(params, n, preset)                             \
    (ngx_http_profile_param_given(params, n) ? (params)->values[n] : (preset))


PROF_HIDDEN_BEGIN

/* returns the parameter of this name ("mode"), or NGX_HTTP_PROFILE_PARAMS */
ngx_uint_t ngx_http_profile_param_find(u_char *name, size_t len);

/*
 * Returns the parameter of a trigger that was probably meant by this name, or
 * NGX_HTTP_PROFILE_PARAMS.
 */
ngx_uint_t ngx_http_profile_param_near(u_char *name, size_t len);

/* returns the name of the parameter; static memory */
const char *ngx_http_profile_param_name(ngx_uint_t n);

/* writes a text about all parameters of triggers; returns its end */
u_char *ngx_http_profile_param_help(u_char *p, u_char *last);

/* returns the parsed value, or NGX_ERROR if the parameter does not take it */
ngx_int_t ngx_http_profile_param_parse(ngx_uint_t n, ngx_str_t *value);

/*
 * Returns the number of control characters in a text.  No parameter takes a
 * control character: a null character would hide the rest of a text from
 * functions of C.
 */
size_t ngx_http_profile_controls(u_char *p, size_t len);

/* sets a value that the caller knows to be valid */
void ngx_http_profile_param_put(ngx_http_profile_params_t *params,
    ngx_uint_t n, ngx_uint_t value);

/* parses the value and sets it in *params; NGX_OK or NGX_ERROR */
ngx_int_t ngx_http_profile_param_set(ngx_http_profile_params_t *params,
    ngx_uint_t n, ngx_str_t *value);

/* returns a description of the values that parameter n takes; static memory */
const char *ngx_http_profile_param_takes(ngx_uint_t n);

/*
 * A directive for a field of ngx_uint_t.  cmd->post is the number of the
 * parameter.
 */
char *ngx_http_profile_param_slot(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_PARAM_H_INCLUDED_ */
