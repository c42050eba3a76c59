
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Triggers: where a request may ask for a profile, and what it may ask for.
 */


#include "ngx_http_profile.h"


typedef struct {
    ngx_str_t   name;
    ngx_uint_t  mode;
} ngx_http_profile_mode_t;


/* a parameter: its names in a query and in a header, and its parser */

typedef struct ngx_http_profile_param_s  ngx_http_profile_param_t;

struct ngx_http_profile_param_s {
    ngx_str_t    name;
    ngx_str_t    alias;
    ngx_str_t    short_name;
    ngx_int_t  (*set)(ngx_http_profile_trigger_t *t, ngx_str_t *value);
    ngx_int_t  (*takes)(ngx_http_request_t *r, ngx_str_t *text);
};


/* a trigger: where a request is searched, and what is read there */

typedef struct {
    ngx_int_t  (*find)(ngx_http_request_t *r,
                       ngx_http_profile_main_conf_t *pmcf,
                       ngx_http_profile_trigger_t *t);
    ngx_int_t  (*parse)(ngx_http_request_t *r, ngx_http_profile_trigger_t *t);
    size_t       name;                       /* set when it was found */
} ngx_http_profile_trigger_def_t;


static void ngx_http_profile_unmark(void *data);
static ngx_int_t ngx_http_profile_find_in_args(ngx_http_request_t *r,
    ngx_http_profile_main_conf_t *pmcf, ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_find_header(ngx_http_request_t *r,
    ngx_http_profile_main_conf_t *pmcf, ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_parse_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_parse_header(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_set_action(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_profile_set_param(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_http_profile_param_t *param,
    ngx_str_t *name, ngx_str_t *value, ngx_uint_t *seen);
static ngx_int_t ngx_http_profile_error(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, const char *text,
    ngx_str_t *takes);
static void ngx_http_profile_trim(u_char **p, u_char **last);

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


/* requests of this worker that came with a trigger header */

ngx_uint_t  ngx_http_profile_nmarks;


static ngx_http_profile_mode_t  ngx_http_profile_modes[] = {
    { ngx_string("wall"), PROF_MODE_WALL },
    { ngx_string("cpu"), PROF_MODE_CPU },
    { ngx_null_string, 0 }
};


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

    { ngx_null_string, ngx_null_string, ngx_null_string, NULL, NULL }
};


/* the first that is found counts */

static ngx_http_profile_trigger_def_t  ngx_http_profile_triggers[] = {

    { ngx_http_profile_find_in_args,
      ngx_http_profile_parse_args,
      offsetof(ngx_http_profile_trigger_t, arg) },

    { ngx_http_profile_find_header,
      ngx_http_profile_parse_header,
      offsetof(ngx_http_profile_trigger_t, header) },

    { NULL, NULL, 0 }
};


static ngx_str_t  ngx_http_profile_takes_action = ngx_string("\"flamegraph\"");


/* an empty name is no name */

#define ngx_http_profile_str_eq(s, p, n)                                      \
    ((n) && (s)->len == (size_t) (n) && ngx_memcmp((s)->data, p, n) == 0)


/* nginx calls it for each header line with a name that profile_header gave */

ngx_int_t
ngx_http_profile_header(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_profile_mark_t  *mark;

    mark = ngx_http_get_module_ctx(r, ngx_http_profile_module);

    if (mark == NULL) {
        cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_profile_mark_t));
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_profile_unmark;
        ngx_http_profile_nmarks++;

        mark = cln->data;
        mark->header = h;
        mark->n = 0;

        ngx_http_set_ctx(r, mark, ngx_http_profile_module);
    }

    mark->n++;

    return NGX_OK;
}


static void
ngx_http_profile_unmark(void *data)
{
    ngx_http_profile_nmarks--;
}


ngx_int_t
ngx_http_profile_find_trigger(ngx_http_request_t *r,
    ngx_http_profile_main_conf_t *pmcf, ngx_http_profile_trigger_t *t)
{
    ngx_http_profile_trigger_def_t  *def;

    for (def = ngx_http_profile_triggers; def->find; def++) {
        if (def->find(r, pmcf, t) == NGX_OK) {
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_profile_parse_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_str_t                       *name;
    ngx_http_profile_trigger_def_t  *def;

    for (def = ngx_http_profile_triggers; def->find; def++) {
        name = (ngx_str_t *) ((u_char *) t + def->name);

        if (name->len) {
            return def->parse(r, t);
        }
    }

    return NGX_OK;
}


/*
 * The first of the names that is the name of an argument, or NULL.  Every
 * request with arguments pays for this: memchr() makes long ones cheap, and
 * what is shorter than the name is not looked at.
 */

ngx_str_t *
ngx_http_profile_find_arg(ngx_http_request_t *r, ngx_array_t *names)
{
    u_char      *p, *last, ch;
    ngx_str_t   *name, *end;

    last = r->args.data + r->args.len;

    name = names->elts;
    end = name + names->nelts;

    for ( /* void */ ; name < end; name++) {

        p = r->args.data;

        while ((size_t) (last - p) >= name->len) {

            ch = (p + name->len < last) ? p[name->len] : '&';

            if ((ch == '=' || ch == '&') && *p == *name->data
                && ngx_memcmp(p, name->data, name->len) == 0)
            {
                return name;
            }

            p = memchr(p, '&', last - p);

            if (p == NULL) {
                break;
            }

            p++;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_profile_find_in_args(ngx_http_request_t *r,
    ngx_http_profile_main_conf_t *pmcf, ngx_http_profile_trigger_t *t)
{
    ngx_str_t  *name;

    name = ngx_http_profile_find_arg(r, &pmcf->args);

    if (name == NULL) {
        return NGX_DECLINED;
    }

    t->arg = *name;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_find_header(ngx_http_request_t *r,
    ngx_http_profile_main_conf_t *pmcf, ngx_http_profile_trigger_t *t)
{
    ngx_http_profile_mark_t  *mark;

    mark = ngx_http_get_module_ctx(r, ngx_http_profile_module);

    if (mark == NULL) {
        return NGX_DECLINED;
    }

    t->header = mark->header->key;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_parse_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    u_char                    *p, *last, *next, *eq;
    ngx_int_t                  rc;
    ngx_str_t                  name, value;
    ngx_uint_t                 i, actions, seen;
    ngx_http_profile_param_t  *param;

    actions = 0;
    seen = 0;

    last = r->args.data + r->args.len;

    for (p = r->args.data; p < last; p = next + 1) {

        next = ngx_strlchr(p, last, '&');
        if (next == NULL) {
            next = last;
        }

        eq = ngx_strlchr(p, next, '=');

        name.data = p;
        name.len = (eq ? eq : next) - p;
        value.data = eq ? eq + 1 : next;
        value.len = next - value.data;

        if (ngx_http_profile_str_eq(&t->arg, name.data, name.len)) {

            if (actions++) {
                return ngx_http_profile_error(r, t, &name,
                                              "was given more than once",
                                              NULL);
            }

            rc = ngx_http_profile_set_action(r, t, &name, &value);
            if (rc != NGX_OK) {
                return rc;
            }

            continue;
        }

        for (i = 0; ngx_http_profile_params[i].name.len; i++) {
            param = &ngx_http_profile_params[i];

            if (ngx_http_profile_str_eq(&param->name, name.data, name.len)
                || ngx_http_profile_str_eq(&param->alias, name.data, name.len))
            {
                rc = ngx_http_profile_set_param(r, t, param, &name, &value,
                                                &seen);
                if (rc != NGX_OK) {
                    return rc;
                }
            }
        }
    }

    return NGX_OK;
}


/* action *( ";" name "=" value ), with optional white space around */

static ngx_int_t
ngx_http_profile_parse_header(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    u_char                    *p, *last, *next, *end, *eq;
    ngx_int_t                  rc;
    ngx_str_t                  name, value;
    ngx_uint_t                 i, n, seen;
    ngx_http_profile_mark_t   *mark;
    ngx_http_profile_param_t  *param;

    mark = ngx_http_get_module_ctx(r, ngx_http_profile_module);

    if (mark->n > 1) {
        return ngx_http_profile_error(r, t, &t->header,
                                      "was given more than once", NULL);
    }

    seen = 0;
    last = mark->header->value.data + mark->header->value.len;

    for (n = 0, p = mark->header->value.data; p <= last; n++, p = next + 1) {

        next = ngx_strlchr(p, last, ';');
        if (next == NULL) {
            next = last;
        }

        end = next;
        ngx_http_profile_trim(&p, &end);

        if (n == 0) {
            value.data = p;
            value.len = end - p;

            rc = ngx_http_profile_set_action(r, t, &t->header, &value);
            if (rc != NGX_OK) {
                return rc;
            }

            continue;
        }

        if (p == end) {
            continue;
        }

        eq = ngx_strlchr(p, end, '=');

        name.data = p;
        name.len = (eq ? eq : end) - p;
        value.data = eq ? eq + 1 : end;
        value.len = end - value.data;

        for (i = 0; ngx_http_profile_params[i].name.len; i++) {
            param = &ngx_http_profile_params[i];

            if (ngx_http_profile_str_eq(&param->short_name, name.data,
                                        name.len))
            {
                break;
            }
        }

        if (ngx_http_profile_params[i].name.len == 0) {
            return ngx_http_profile_error(r, t, &t->header,
                                          "has an unknown parameter, it takes "
                                          "mode, format and frequency", NULL);
        }

        rc = ngx_http_profile_set_param(r, t, &ngx_http_profile_params[i],
                                        &name, &value, &seen);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_set_action(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value)
{
    if (ngx_http_profile_str_eq(value, "flamegraph", 10)) {
        return NGX_OK;
    }

    return ngx_http_profile_error(r, t, name, "takes",
                                  &ngx_http_profile_takes_action);
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


static ngx_int_t
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


static ngx_int_t
ngx_http_profile_set_mode(ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    t->mode_given = 1;

    return ngx_http_profile_parse_mode(value, &t->mode);
}


static ngx_int_t
ngx_http_profile_takes_mode(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_str_set(text, "\"wall\" or \"cpu\"");

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


/* whether one of the names that a trigger in the query takes is at p */

ngx_int_t
ngx_http_profile_is_parameter(ngx_http_profile_trigger_t *t, u_char *p,
    u_char *last)
{
    size_t                     len;
    u_char                    *eq;
    ngx_http_profile_param_t  *param;

    eq = ngx_strlchr(p, last, '=');
    len = (eq ? eq : last) - p;

    if (ngx_http_profile_str_eq(&t->arg, p, len)) {
        return NGX_OK;
    }

    for (param = ngx_http_profile_params; param->name.len; param++) {

        if (ngx_http_profile_str_eq(&param->name, p, len)
            || ngx_http_profile_str_eq(&param->alias, p, len))
        {
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}
