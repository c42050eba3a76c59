
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Parameters of a trigger.  They are one table: a new one is a line there, a
 * parser, and a text that says what the parser takes.
 */


#include "core/ngx_http_profile_param.h"
#include "request/ngx_http_profile_trigger.h"
#include "workers/ngx_http_profile_asker.h"


/* a parameter: its names in a query and in a header, and its parser */

typedef struct ngx_http_profile_param_s  ngx_http_profile_param_t;

struct ngx_http_profile_param_s {
    ngx_str_t    name;
    ngx_str_t    alias;
    ngx_str_t    short_name;
    ngx_int_t  (*set)(ngx_http_profile_trigger_t *t, ngx_str_t *value);
    ngx_int_t  (*takes)(ngx_http_request_t *r, ngx_str_t *text);
};


static ngx_http_profile_param_t *ngx_http_profile_find_param(u_char *p,
    size_t len);
static ngx_int_t ngx_http_profile_set_param(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_http_profile_param_t *param,
    ngx_str_t *name, ngx_str_t *value, ngx_uint_t *seen);

static ngx_int_t ngx_http_profile_set_mode(ngx_http_profile_trigger_t *t,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_takes_mode(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_int_t ngx_http_profile_set_format(ngx_http_profile_trigger_t *t,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_takes_format(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_int_t ngx_http_profile_set_frequency(ngx_http_profile_trigger_t *t,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_takes_frequency(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_int_t ngx_http_profile_set_spans(ngx_http_profile_trigger_t *t,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_takes_spans(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_int_t ngx_http_profile_set_seconds(ngx_http_profile_trigger_t *t,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_takes_seconds(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_int_t ngx_http_profile_set_requests(ngx_http_profile_trigger_t *t,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_takes_requests(ngx_http_request_t *r,
    ngx_str_t *text);


static ngx_http_profile_param_t  ngx_http_profile_params[] = {

    { ngx_string("profile_mode"),
      ngx_string("stackprof_mode"),
      ngx_string("mode"),
      ngx_http_profile_set_mode,
      ngx_http_profile_takes_mode },

    { ngx_string("profile_format"),
      ngx_null_string,
      ngx_string("format"),
      ngx_http_profile_set_format,
      ngx_http_profile_takes_format },

    { ngx_string("profile_frequency"),
      ngx_null_string,
      ngx_string("frequency"),
      ngx_http_profile_set_frequency,
      ngx_http_profile_takes_frequency },

    { ngx_string("profile_spans"),
      ngx_null_string,
      ngx_string("spans"),
      ngx_http_profile_set_spans,
      ngx_http_profile_takes_spans },

    { ngx_string("profile_seconds"),
      ngx_null_string,
      ngx_string("seconds"),
      ngx_http_profile_set_seconds,
      ngx_http_profile_takes_seconds },

    { ngx_string("profile_requests"),
      ngx_null_string,
      ngx_string("requests"),
      ngx_http_profile_set_requests,
      ngx_http_profile_takes_requests },

    { ngx_null_string, ngx_null_string, ngx_null_string, NULL, NULL }
};


/*
 * Sets what an argument says; others belong to the application.  NGX_DECLINED
 * as that of ngx_http_profile_error().
 */

ngx_int_t
ngx_http_profile_set_arg(ngx_http_request_t *r, ngx_http_profile_trigger_t *t,
    ngx_str_t *name, ngx_str_t *value, ngx_uint_t *seen)
{
    ngx_http_profile_param_t  *param;

    param = ngx_http_profile_find_param(name->data, name->len);

    return param ? ngx_http_profile_set_param(r, t, param, name, value, seen)
                 : NGX_OK;
}


/* the same for a parameter in a header, where all are ours */

ngx_int_t
ngx_http_profile_set_short(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value,
    ngx_uint_t *seen)
{
    ngx_http_profile_param_t  *param;

    for (param = ngx_http_profile_params; param->name.len; param++) {

        if (ngx_http_profile_str_eq(&param->short_name, name->data,
                                    name->len))
        {
            return ngx_http_profile_set_param(r, t, param, name, value, seen);
        }
    }

    return ngx_http_profile_error(r, t, &t->header,
                                  "has an unknown parameter, it takes mode, "
                                  "format, frequency, spans, seconds and "
                                  "requests",
                                  NULL);
}


/* whether one of the names that a trigger in the query takes is at p */

ngx_int_t
ngx_http_profile_is_parameter(ngx_http_profile_trigger_t *t, u_char *p,
    u_char *last)
{
    size_t   len;
    u_char  *eq;

    eq = ngx_strlchr(p, last, '=');
    len = (eq ? eq : last) - p;

    return ngx_http_profile_str_eq(&t->arg, p, len)
           || ngx_http_profile_find_param(p, len);
}


static ngx_http_profile_param_t *
ngx_http_profile_find_param(u_char *p, size_t len)
{
    ngx_http_profile_param_t  *param;

    for (param = ngx_http_profile_params; param->name.len; param++) {

        if (ngx_http_profile_str_eq(&param->name, p, len)
            || ngx_http_profile_str_eq(&param->alias, p, len))
        {
            return param;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_profile_set_param(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_http_profile_param_t *param,
    ngx_str_t *name, ngx_str_t *value, ngx_uint_t *seen)
{
    ngx_str_t   takes;
    ngx_uint_t  bit;

    bit = (ngx_uint_t) 1 << (param - ngx_http_profile_params);

    if (*seen & bit) {
        return ngx_http_profile_error(r, t, name, "was given more than once",
                                      NULL);
    }

    *seen |= bit;

    if (param->set(t, value) == NGX_OK) {
        return NGX_OK;
    }

    if (param->takes(r, &takes) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_profile_error(r, t, name, "takes", &takes);
}


/*
 * Notes what the client is told.  The name is one of ours: nothing else that
 * came from the client is in the text.
 */

ngx_int_t
ngx_http_profile_error(ngx_http_request_t *r, ngx_http_profile_trigger_t *t,
    ngx_str_t *name, const char *text, ngx_str_t *takes)
{
    u_char  *p;
    size_t   len;

    len = name->len + ngx_strlen(text) + sizeof(" \n")
          + (takes ? takes->len + 1 : 0);

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    t->error.data = p;

    p = ngx_sprintf(p, "%V %s", name, text);

    if (takes) {
        p = ngx_sprintf(p, " %V", takes);
    }

    *p++ = '\n';

    t->error.len = p - t->error.data;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_set_mode(ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    t->mode_given = 1;

    return ngx_http_profile_parse_mode(value, &t->mode);
}


static ngx_int_t
ngx_http_profile_set_spans(ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    t->spans_given = 1;
    t->spans = ngx_http_profile_str_eq(value, "on", 2);

    return t->spans || ngx_http_profile_str_eq(value, "off", 3) ? NGX_OK
                                                                : NGX_ERROR;
}


static ngx_int_t
ngx_http_profile_takes_spans(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_str_set(text, "\"on\" or \"off\"");

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_set_seconds(ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    ngx_int_t  ms;

    ms = ngx_atofp(value->data, value->len, 3);

    if (ms < NGX_HTTP_PROFILE_SECONDS_MIN
        || ms > NGX_HTTP_PROFILE_SECONDS_MAX)
    {
        return NGX_ERROR;
    }

    t->msec = ms;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_takes_seconds(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_str_set(text, "a number from 0.1 to 600");

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_set_requests(ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    ngx_int_t  n;

    n = ngx_atoi(value->data, value->len);

    if (n < 1 || n > NGX_HTTP_PROFILE_REQUESTS_MAX) {
        return NGX_ERROR;
    }

    t->requests = n;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_takes_requests(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_str_set(text, "a number from 1 to 100000");

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_takes_mode(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_str_set(text, "\"wall\", \"cpu\" or \"object\"");

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_set_format(ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    t->format = prof_encoder_find((char *) value->data, value->len);

    return t->format ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_profile_takes_format(ngx_http_request_t *r, ngx_str_t *text)
{
    u_char      *p;
    size_t       len;
    ngx_uint_t   i;

    len = 0;

    for (i = 0; prof_encoders[i]; i++) {
        len += ngx_strlen(prof_encoders[i]->name) + sizeof("\"\" or ");
    }

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text->data = p;

    for (i = 0; prof_encoders[i]; i++) {
        p = ngx_sprintf(p, "%s\"%s\"", i ? " or " : "",
                        prof_encoders[i]->name);
    }

    text->len = p - text->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_set_frequency(ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    t->frequency_given = 1;

    return ngx_http_profile_parse_frequency(value, &t->frequency);
}


static ngx_int_t
ngx_http_profile_takes_frequency(ngx_http_request_t *r, ngx_str_t *text)
{
    u_char  *p;

    p = ngx_pnalloc(r->pool, sizeof("a number from  to ") + 2 * NGX_INT32_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text->data = p;
    text->len = ngx_sprintf(p, "a number from %d to %d", PROF_FREQUENCY_MIN,
                            PROF_FREQUENCY_MAX)
                - p;

    return NGX_OK;
}
