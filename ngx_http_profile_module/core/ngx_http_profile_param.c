
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_param.h"

#include <ctype.h>


/* the longest name of a parameter, and some letters too many */

#define NGX_HTTP_PROFILE_PARAM_NAME  16

/* a parser returns a value that is at least 0, or NGX_ERROR */

typedef struct {
    ngx_str_t     name;
    ngx_int_t   (*parse)(ngx_str_t *value);
    ngx_int_t     min;
    ngx_int_t     max;
    const char   *takes;         /* NULL: names of a table */
    const char   *text;          /* what a trigger gets; NULL: not a trigger's
                                    parameter */
} ngx_http_profile_param_t;


static ngx_int_t ngx_http_profile_parse_mode(ngx_str_t *value);
static ngx_int_t ngx_http_profile_parse_format(ngx_str_t *value);
static ngx_int_t ngx_http_profile_parse_number(ngx_str_t *value);
static ngx_int_t ngx_http_profile_parse_flag(ngx_str_t *value);
static ngx_int_t ngx_http_profile_parse_seconds(ngx_str_t *value);
static ngx_int_t ngx_http_profile_parse_bytes(ngx_str_t *value);


/* in the order of ngx_http_profile_param_e */

static ngx_http_profile_param_t
    ngx_http_profile_param_defs[NGX_HTTP_PROFILE_PARAMS] =
{
    { ngx_string("mode"), ngx_http_profile_parse_mode,
      0, NGX_MAX_INT_T_VALUE, NULL, "what the profile shows first" },

    { ngx_string("format"), ngx_http_profile_parse_format,
      0, NGX_MAX_INT_T_VALUE, NULL, "the format of the profile" },

    { ngx_string("frequency"), ngx_http_profile_parse_number,
      PROF_FREQUENCY_MIN, PROF_FREQUENCY_MAX, "a number from 1 to 10000",
      "samples a second" },

    { ngx_string("spans"), ngx_http_profile_parse_flag,
      0, 1, "\"on\" or \"off\"", "phases, filters and events in the profile" },

    { ngx_string("seconds"), ngx_http_profile_parse_seconds,
      100, 600000, "a number from 0.1 to 600",
      "captures all requests of this location for this time" },

    { ngx_string("requests"), ngx_http_profile_parse_number,
      1, 100000, "a number from 1 to 100000",
      "captures this number of requests of this location" },

    { ngx_string("interval"), ngx_http_profile_parse_bytes,
      0, PROF_INTERVAL_MAX, "a size from 0 to 1024m", NULL }
};


ngx_uint_t
ngx_http_profile_param_find(u_char *name, size_t len)
{
    ngx_uint_t  n;

    for (n = 0; n < NGX_HTTP_PROFILE_PARAMS; n++) {
        if (ngx_http_profile_str_eq(&ngx_http_profile_param_defs[n].name,
                                    name, len))
        {
            break;
        }
    }

    return n;
}


/*
 * A name is meant if it is the beginning of the parameter, or if few letters
 * have to be inserted, deleted or replaced: one in four.  Errors show the name,
 * so a name of other characters is not meant.
 */

ngx_uint_t
ngx_http_profile_param_near(u_char *name, size_t len)
{
    size_t       i, k, was, above, row[NGX_HTTP_PROFILE_PARAM_NAME + 1];
    ngx_str_t   *param;
    ngx_uint_t   n;

    if (len > NGX_HTTP_PROFILE_PARAM_NAME) {
        return NGX_HTTP_PROFILE_PARAMS;
    }

    for (i = 0; i < len; i++) {
        if (!isalnum(name[i]) && name[i] != '_' && name[i] != '-') {
            return NGX_HTTP_PROFILE_PARAMS;
        }
    }

    for (n = 0; n < NGX_HTTP_PROFILE_PARAM_TRIGGERS; n++) {
        param = &ngx_http_profile_param_defs[n].name;

        if (len >= 3 && len < param->len
            && ngx_strncasecmp(param->data, name, len) == 0)
        {
            break;
        }

        /* row[k] is the distance of the first k letters of both names */

        for (k = 0; k <= len; k++) {
            row[k] = k;
        }

        for (i = 0; i < param->len; i++) {
            was = row[0]++;

            for (k = 0; k < len; k++) {
                above = row[k + 1];
                was += (ngx_tolower(name[k]) != param->data[i]);
                row[k + 1] = ngx_min(was, ngx_min(above, row[k]) + 1);
                was = above;
            }
        }

        if (row[len] <= ngx_max(param->len, 4) / 4) {
            break;
        }
    }

    return n < NGX_HTTP_PROFILE_PARAM_TRIGGERS ? n : NGX_HTTP_PROFILE_PARAMS;
}


u_char *
ngx_http_profile_param_help(u_char *p, u_char *last)
{
    ngx_uint_t  n;

    for (n = 0; n < NGX_HTTP_PROFILE_PARAM_TRIGGERS; n++) {
        p = ngx_slprintf(p, last, "profile_%V\n    %s: %s\n",
                         &ngx_http_profile_param_defs[n].name,
                         ngx_http_profile_param_defs[n].text,
                         ngx_http_profile_param_takes(n));
    }

    return p;
}


const char *
ngx_http_profile_param_name(ngx_uint_t n)
{
    return (const char *) ngx_http_profile_param_defs[n].name.data;
}


ngx_int_t
ngx_http_profile_param_parse(ngx_uint_t n, ngx_str_t *value)
{
    ngx_int_t                  v;
    ngx_http_profile_param_t  *param;

    param = &ngx_http_profile_param_defs[n];
    v = param->parse(value);

    return (v < param->min || v > param->max) ? NGX_ERROR : v;
}


ngx_int_t
ngx_http_profile_param_set(ngx_http_profile_params_t *params, ngx_uint_t n,
    ngx_str_t *value)
{
    ngx_int_t  v;

    v = ngx_http_profile_param_parse(n, value);

    if (v == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_http_profile_param_put(params, n, v);

    return NGX_OK;
}


size_t
ngx_http_profile_controls(u_char *p, size_t len)
{
    size_t   n;
    u_char  *last;

    n = 0;

    for (last = p + len; p < last; p++) {
        n += (*p < ' ' || *p == 0x7f);
    }

    return n;
}


void
ngx_http_profile_param_put(ngx_http_profile_params_t *params, ngx_uint_t n,
    ngx_uint_t value)
{
    params->given |= (ngx_uint_t) 1 << n;
    params->values[n] = value;
}


const char *
ngx_http_profile_param_takes(ngx_uint_t n)
{
    u_char      *p;
    ngx_uint_t   i, last;

    static u_char  names[256];

    if (ngx_http_profile_param_defs[n].takes) {
        return ngx_http_profile_param_defs[n].takes;
    }

    last = PROF_MODE_MAX - 1;

    if (n == NGX_HTTP_PROFILE_PARAM_FORMAT) {
        for (last = 0; prof_encoders[last + 1]; last++) { /* void */ }
    }

    p = names;

    for (i = 0; i <= last; i++) {
        p = ngx_slprintf(p, names + sizeof(names) - 1, "%s\"%s\"",
                         i == 0 ? "" : i < last ? ", " : " or ",
                         n == NGX_HTTP_PROFILE_PARAM_FORMAT
                         ? prof_encoders[i]->name : prof_mode_name(i));
    }

    *p = '\0';

    return (const char *) names;
}


char *
ngx_http_profile_param_slot(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char *p = conf;

    ngx_int_t    v;
    ngx_str_t   *value;
    ngx_uint_t  *np;

    np = (ngx_uint_t *) (p + cmd->offset);

    if (*np != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    v = ngx_http_profile_param_parse((uintptr_t) cmd->post, &value[1]);

    if (v == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be %s", &value[1], &cmd->name,
                           ngx_http_profile_param_takes(
                               (uintptr_t) cmd->post));
        return NGX_CONF_ERROR;
    }

    *np = v;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_parse_mode(ngx_str_t *value)
{
    ngx_int_t    mode;
    const char  *name;

    for (mode = 0; mode < PROF_MODE_MAX; mode++) {
        name = prof_mode_name(mode);

        if (value->len == ngx_strlen(name)
            && ngx_strncmp(value->data, name, value->len) == 0)
        {
            return mode;
        }
    }

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_profile_parse_format(ngx_str_t *value)
{
    ngx_int_t              i;
    const prof_encoder_t  *encoder;

    encoder = prof_encoder_find((char *) value->data, value->len);

    if (encoder == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; prof_encoders[i] != encoder; i++) { /* void */ }

    return i;
}


static ngx_int_t
ngx_http_profile_parse_number(ngx_str_t *value)
{
    return ngx_atoi(value->data, value->len);
}


static ngx_int_t
ngx_http_profile_parse_flag(ngx_str_t *value)
{
    if (ngx_http_profile_str_eq(value, "on", 2)) {
        return 1;
    }

    return ngx_http_profile_str_eq(value, "off", 3) ? 0 : NGX_ERROR;
}


static ngx_int_t
ngx_http_profile_parse_seconds(ngx_str_t *value)
{
    return ngx_atofp(value->data, value->len, 3);
}


static ngx_int_t
ngx_http_profile_parse_bytes(ngx_str_t *value)
{
    return ngx_parse_size(value);
}
