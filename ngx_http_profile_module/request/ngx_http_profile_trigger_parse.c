
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Parses a trigger: its action and its parameters.
 */


#include "core/ngx_http_profile_param.h"
#include "request/ngx_http_profile_trigger.h"
#include "store/ngx_http_profile_store.h"


static ngx_int_t ngx_http_profile_parse_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_parse_header(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_next_pair(u_char **pos, u_char *last,
    u_char separator, ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_http_profile_arg_param(u_char *p, size_t len);
static ngx_int_t ngx_http_profile_set_action(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_profile_set_param(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_uint_t n, ngx_str_t *name,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_error(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, const char *text,
    const char *takes);
static void ngx_http_profile_trim(u_char **p, u_char **last);


ngx_int_t
ngx_http_profile_parse_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    if (t->arg.len) {
        return ngx_http_profile_parse_args(r, t);
    }

    if (t->header.len) {
        return ngx_http_profile_parse_header(r, t);
    }

    t->record = 1;

    return NGX_OK;
}


ngx_uint_t
ngx_http_profile_mode(ngx_http_profile_ctx_t *ctx)
{
    return ngx_http_profile_param(&ctx->trigger.params,
                                  NGX_HTTP_PROFILE_PARAM_MODE,
                                  ctx->conf->mode);
}


const prof_encoder_t *
ngx_http_profile_format(ngx_http_profile_ctx_t *ctx, ngx_uint_t *negotiated)
{
    ngx_http_profile_params_t  *params;

    params = &ctx->trigger.params;

    *negotiated = !ngx_http_profile_param_given(params,
                                               NGX_HTTP_PROFILE_PARAM_FORMAT);
    if (*negotiated) {
        return ngx_http_profile_accept_format(ctx->request,
                                              prof_encoders[ctx->conf->format]);
    }

    return prof_encoders[params->values[NGX_HTTP_PROFILE_PARAM_FORMAT]];
}


/* other arguments belong to the application */

static ngx_int_t
ngx_http_profile_parse_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    u_char     *p, *last;
    ngx_int_t   rc;
    ngx_str_t   name, value;
    ngx_uint_t  n, actions;

    actions = 0;

    p = r->args.data;
    last = p + r->args.len;

    while (ngx_http_profile_next_pair(&p, last, '&', &name, &value)
           == NGX_OK)
    {
        if (ngx_http_profile_str_eq(&t->arg, name.data, name.len)) {

            rc = actions++ ? ngx_http_profile_error(r, t, &name,
                                              "was given more than once", NULL)
                           : ngx_http_profile_set_action(r, t, &name, &value);

        } else {
            n = ngx_http_profile_arg_param(name.data, name.len);

            rc = (n == NGX_HTTP_PROFILE_PARAMS) ? NGX_OK
                 : ngx_http_profile_set_param(r, t, n, &name, &value);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


/* action *( ";" name "=" value ), with optional white space around */

static ngx_int_t
ngx_http_profile_parse_header(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    u_char           *p, *last, *end;
    ngx_int_t         rc;
    ngx_str_t         name, value;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    h = ngx_http_profile_find_header(r, &t->header, &n);

    if (n > 1) {
        return ngx_http_profile_error(r, t, &t->header,
                                      "was given more than once", NULL);
    }

    p = h->value.data;
    last = p + h->value.len;

    end = ngx_strlchr(p, last, ';');
    if (end == NULL) {
        end = last;
    }

    value.data = p;
    p = end + 1;

    ngx_http_profile_trim(&value.data, &end);
    value.len = end - value.data;

    rc = ngx_http_profile_set_action(r, t, &t->header, &value);

    while (rc == NGX_OK
           && ngx_http_profile_next_pair(&p, last, ';', &name, &value)
              == NGX_OK)
    {
        if (name.len == 0 && value.data == name.data) {
            continue;
        }

        n = ngx_http_profile_param_find(name.data, name.len);

        if (n >= NGX_HTTP_PROFILE_PARAM_TRIGGERS) {
            return ngx_http_profile_error(r, t, &t->header,
                                  "has an unknown parameter, it takes mode, "
                                  "format, frequency, spans, seconds and "
                                  "requests",
                                  NULL);
        }

        rc = ngx_http_profile_set_param(r, t, n, &name, &value);
    }

    return rc;
}


/* returns NGX_DECLINED after the last pair */

static ngx_int_t
ngx_http_profile_next_pair(u_char **pos, u_char *last, u_char separator,
    ngx_str_t *name, ngx_str_t *value)
{
    u_char  *p, *end, *eq;

    p = *pos;

    if (p >= last) {
        return NGX_DECLINED;
    }

    end = ngx_strlchr(p, last, separator);
    if (end == NULL) {
        end = last;
    }

    *pos = end + 1;

    if (separator == ';') {
        ngx_http_profile_trim(&p, &end);
    }

    eq = ngx_strlchr(p, end, '=');

    name->data = p;
    name->len = (eq ? eq : end) - p;
    value->data = eq ? eq + 1 : end;
    value->len = end - value->data;

    return NGX_OK;
}


static void
ngx_http_profile_trim(u_char **p, u_char **last)
{
    while (*p < *last && (**p == ' ' || **p == '\t')) {
        (*p)++;
    }

    while (*p < *last && ((*last)[-1] == ' ' || (*last)[-1] == '\t')) {
        (*last)--;
    }
}


ngx_int_t
ngx_http_profile_is_parameter(ngx_http_profile_trigger_t *t, u_char *p,
    u_char *last)
{
    size_t   len;
    u_char  *eq;

    eq = ngx_strlchr(p, last, '=');
    len = (eq ? eq : last) - p;

    return ngx_http_profile_str_eq(&t->arg, p, len)
           || ngx_http_profile_arg_param(p, len) != NGX_HTTP_PROFILE_PARAMS;
}


/* returns the parameter of this argument, or NGX_HTTP_PROFILE_PARAMS */

static ngx_uint_t
ngx_http_profile_arg_param(u_char *p, size_t len)
{
    ngx_uint_t  n;

    static ngx_str_t  prefix = ngx_string("profile_");
    static ngx_str_t  alias = ngx_string("stackprof_mode");

    if (ngx_http_profile_str_eq(&alias, p, len)) {
        return NGX_HTTP_PROFILE_PARAM_MODE;
    }

    if (len <= prefix.len || ngx_memcmp(p, prefix.data, prefix.len) != 0) {
        return NGX_HTTP_PROFILE_PARAMS;
    }

    n = ngx_http_profile_param_find(p + prefix.len, len - prefix.len);

    return n < NGX_HTTP_PROFILE_PARAM_TRIGGERS ? n : NGX_HTTP_PROFILE_PARAMS;
}


static ngx_int_t
ngx_http_profile_set_action(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value)
{
    if (ngx_http_profile_str_eq(value, "flamegraph", 10)) {
        return NGX_OK;
    }

    if (!ngx_http_profile_str_eq(value, "record", 6)) {
        return ngx_http_profile_error(r, t, name, "takes",
                                      "\"flamegraph\" or \"record\"");
    }

    t->record = 1;

    if (ngx_http_profile_store(r)) {
        return NGX_OK;
    }

    return ngx_http_profile_error(r, t, name,
                                  "needs a store to record to: set "
                                  "profile_console, profile_zone or "
                                  "profile_store", NULL);
}


static ngx_int_t
ngx_http_profile_set_param(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_uint_t n, ngx_str_t *name,
    ngx_str_t *value)
{
    if (ngx_http_profile_param_given(&t->params, n)) {
        return ngx_http_profile_error(r, t, name, "was given more than once",
                                      NULL);
    }

    if (ngx_http_profile_param_set(&t->params, n, value) == NGX_OK) {
        return NGX_OK;
    }

    return ngx_http_profile_error(r, t, name, "takes",
                                  ngx_http_profile_param_takes(n));
}


/*
 * Makes the error text for the client.  The name is one that the module knows,
 * so the text contains no other input of the client.
 */

static ngx_int_t
ngx_http_profile_error(ngx_http_request_t *r, ngx_http_profile_trigger_t *t,
    ngx_str_t *name, const char *text, const char *takes)
{
    u_char  *p;
    size_t   len;

    len = name->len + ngx_strlen(text) + sizeof(" \n")
          + (takes ? ngx_strlen(takes) + 1 : 0);

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    t->error.data = p;

    p = ngx_sprintf(p, "%V %s", name, text);

    if (takes) {
        p = ngx_sprintf(p, " %s", takes);
    }

    *p++ = '\n';

    t->error.len = p - t->error.data;

    return NGX_DECLINED;
}
