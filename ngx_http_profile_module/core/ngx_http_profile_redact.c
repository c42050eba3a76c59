
/*
 * Copyright (C) The ngx_http_profile_module authors

 */


#include "core/ngx_http_profile_redact.h"


#define NGX_HTTP_PROFILE_HIDDEN  "***"


static ngx_uint_t ngx_http_profile_redacted(ngx_array_t *names, u_char *p,
    u_char *last);
static ngx_uint_t ngx_http_profile_same_name(ngx_str_t *name, u_char *p,
    u_char *last);


char *
ngx_http_profile_redact_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t   *value, *name;
    ngx_uint_t   i;

    if (plcf->redact != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        plcf->redact = NULL;
        return NGX_CONF_OK;
    }

    plcf->redact = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                    sizeof(ngx_str_t));
    if (plcf->redact == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (value[i].len == 0
            || strcspn((char *) value[i].data, "&=?# ") != value[i].len)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V\" in \"%V\" directive, it "
                               "must be the name of an argument, or \"off\"",
                               &value[i], &cmd->name);
            return NGX_CONF_ERROR;
        }

        /* the array has space for all names */

        name = ngx_array_push(plcf->redact);
        *name = value[i];
    }

    return NGX_CONF_OK;
}


u_char *
ngx_http_profile_redact(ngx_http_request_t *r, ngx_str_t *text)
{
    u_char                       *p, *next, *value, *end, *copy, *last;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    end = text->data + text->len;
    p = ngx_strlchr(text->data, end, '?');

    if (plcf->redact == NULL || p == NULL) {
        return NULL;
    }

    /* the shortest arguments have two bytes: "a=" or "a&" */

    copy = ngx_alloc(text->len + (text->len / 2 + 1)
                     * (sizeof(NGX_HTTP_PROFILE_HIDDEN) - 1), ngx_cycle->log);
    if (copy == NULL) {
        text->len = p - text->data;
        return NULL;
    }

    p++;
    last = ngx_cpymem(copy, text->data, p - text->data);

    for ( ;; ) {

        /* a space ends the URI of a request line */

        for (next = p; next < end && *next != '&' && *next != ' '; next++) {
            /* void */
        }

        value = ngx_strlchr(p, next, '=');

        if (value && ngx_http_profile_redacted(plcf->redact, p, value)) {
            last = ngx_cpymem(last, p, value + 1 - p);
            last = ngx_cpymem(last, NGX_HTTP_PROFILE_HIDDEN,
                              sizeof(NGX_HTTP_PROFILE_HIDDEN) - 1);

        } else {
            last = ngx_cpymem(last, p, next - p);
        }

        if (next == end || *next == ' ') {
            break;
        }

        *last++ = '&';
        p = next + 1;
    }

    last = ngx_cpymem(last, next, end - next);

    text->data = copy;
    text->len = last - copy;

    return copy;
}


static ngx_uint_t
ngx_http_profile_redacted(ngx_array_t *names, u_char *p, u_char *last)
{
    ngx_str_t   *name;
    ngx_uint_t   i;

    name = names->elts;

    for (i = 0; i < names->nelts; i++) {

        if (ngx_http_profile_same_name(&name[i], p, last)) {
            return 1;
        }
    }

    return 0;
}


/*
 * Returns whether an application might read the argument at p by this name.
 * Applications decode the names of arguments, and some ignore their case.
 */

static ngx_uint_t
ngx_http_profile_same_name(ngx_str_t *name, u_char *p, u_char *last)
{
    size_t     n;
    u_char     c;
    ngx_int_t  code;

    for (n = 0; p < last; n++) {
        c = *p++;

        if (c == '%' && last - p >= 2) {
            code = ngx_hextoi(p, 2);

            if (code != NGX_ERROR) {
                c = (u_char) code;
                p += 2;
            }
        }

        if (n == name->len || ngx_tolower(c) != ngx_tolower(name->data[n])) {
            return 0;
        }
    }

    return n == name->len;
}
