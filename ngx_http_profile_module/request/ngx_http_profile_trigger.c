
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Triggers: where a request may ask for a profile, and what it says there.
 * What is looked for is set per server, so it is known before the location.
 */


#include "request/ngx_http_profile_trigger.h"
#include "bar/ngx_http_profile_bar.h"
#include "store/ngx_http_profile_store.h"


/* a trigger: where a request is searched, and what is read there */

typedef struct {
    ngx_int_t  (*find)(ngx_http_request_t *r, ngx_http_profile_trigger_t *t);
    ngx_int_t  (*parse)(ngx_http_request_t *r, ngx_http_profile_trigger_t *t);
    size_t       name;                       /* set when it was found */
} ngx_http_profile_trigger_def_t;


static void ngx_http_profile_unmark(void *data);
static ngx_int_t ngx_http_profile_find_in_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_find_in_headers(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_find_order(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_parse_order(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_parse_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_parse_header(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_parse_header_params(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, u_char *p, u_char *last);
static ngx_int_t ngx_http_profile_set_action(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value);
static void ngx_http_profile_trim(u_char **p, u_char **last);


/* requests of this worker that came with a trigger header */

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nmarks;


/* of those that are found, the first one counts */

static ngx_http_profile_trigger_def_t  ngx_http_profile_triggers[] = {

    { ngx_http_profile_find_in_args,
      ngx_http_profile_parse_args,
      offsetof(ngx_http_profile_trigger_t, arg) },

    { ngx_http_profile_find_in_headers,
      ngx_http_profile_parse_header,
      offsetof(ngx_http_profile_trigger_t, header) },

    { ngx_http_profile_find_order,
      ngx_http_profile_parse_order,
      offsetof(ngx_http_profile_trigger_t, order) },

    { NULL, NULL, 0 }
};


static ngx_str_t  ngx_http_profile_takes_action =
    ngx_string("\"flamegraph\" or \"record\"");


/*
 * nginx calls it for each header line with a name that profile_header gave,
 * here or in another server.
 */

ngx_int_t
ngx_http_profile_header(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset)
{
    ngx_pool_cleanup_t  *cln;

    if (ngx_http_get_module_ctx(r, ngx_http_profile_module)) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_profile_unmark;
    ngx_http_profile_nmarks++;

    ngx_http_set_ctx(r, &ngx_http_profile_marked, ngx_http_profile_module);

    return NGX_OK;
}


static void
ngx_http_profile_unmark(void *data)
{
    ngx_http_profile_nmarks--;
}


/* notes all triggers that there are: none may get to the application */

ngx_int_t
ngx_http_profile_find_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_int_t                        rc;
    ngx_http_profile_trigger_def_t  *def;

    rc = NGX_DECLINED;

    for (def = ngx_http_profile_triggers; def->find; def++) {
        if (def->find(r, t) == NGX_OK) {
            rc = NGX_OK;
        }
    }

    return rc;
}


/* NGX_DECLINED: t->error says what is wrong */

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
 * How far a name may be moved along a query where a byte stands below its end:
 * until it has that byte there itself, or until all of it is behind that.
 */

u_char *
ngx_http_profile_arg_shift(ngx_pool_t *pool, ngx_str_t *name)
{
    size_t   i;
    u_char  *shift;

    shift = ngx_pnalloc(pool, 256);
    if (shift == NULL) {
        return NULL;
    }

    ngx_memset(shift, ngx_min(name->len, 255), 256);

    for (i = 0; i + 1 < name->len; i++) {
        shift[name->data[i]] = (u_char) ngx_min(name->len - 1 - i, 255);
    }

    return shift;
}


/*
 * Whether there is an argument of that name.  Every request with arguments
 * pays for this: by Horspool's way of searching, most bytes of the query are
 * never looked at, and of those that are, one at a time.
 */

PROF_HOT ngx_int_t
ngx_http_profile_find_arg(ngx_str_t *args, ngx_str_t *name, u_char *shift)
{
    u_char  *p, *start, *last, end;

    if (name->len == 0 || name->len > args->len) {
        return NGX_DECLINED;
    }

    end = name->data[name->len - 1];
    last = args->data + args->len;

    for (p = args->data + name->len - 1; p < last; p += shift[*p]) {

        if (*p != end) {
            continue;
        }

        start = p + 1 - name->len;

        if ((p + 1 == last || p[1] == '=' || p[1] == '&')
            && (start == args->data || start[-1] == '&')
            && ngx_memcmp(start, name->data, name->len) == 0)
        {
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_find_in_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_find_arg(&r->args, &plcf->arg, plcf->arg_shift)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    t->arg = plcf->arg;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_find_in_headers(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_uint_t                    n;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (plcf->header.len == 0
        || ngx_http_get_module_ctx(r, ngx_http_profile_module) == NULL
        || ngx_http_profile_find_header(r, &plcf->header, &n) == NULL)
    {
        return NGX_DECLINED;
    }

    t->header = plcf->header;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_find_order(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_uint_t  mode;

    if (t->arg.len || t->header.len
        || ngx_http_profile_bar_ordered(r, &mode) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    ngx_str_set(&t->order, "an order of the bar");

    return NGX_OK;
}


/* it is taken when the request is admitted; somebody may have been faster */

static ngx_int_t
ngx_http_profile_parse_order(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    if (ngx_http_profile_bar_ordered(r, &t->mode) != NGX_OK) {
        return NGX_ERROR;
    }

    t->mode_given = 1;
    t->record = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_parse_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    u_char     *p, *last, *next, *eq;
    ngx_int_t   rc;
    ngx_str_t   name, value;
    ngx_uint_t  actions, seen;

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

        if (!ngx_http_profile_str_eq(&t->arg, name.data, name.len)) {

            rc = ngx_http_profile_set_arg(r, t, &name, &value, &seen);

        } else if (actions++) {

            rc = ngx_http_profile_error(r, t, &name,
                                        "was given more than once", NULL);

        } else {
            rc = ngx_http_profile_set_action(r, t, &name, &value);
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
    u_char           *p, *last, *next, *end;
    ngx_int_t         rc;
    ngx_str_t         value;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    h = ngx_http_profile_find_header(r, &t->header, &n);

    if (n > 1) {
        return ngx_http_profile_error(r, t, &t->header,
                                      "was given more than once", NULL);
    }

    p = h->value.data;
    last = p + h->value.len;

    next = ngx_strlchr(p, last, ';');
    if (next == NULL) {
        next = last;
    }

    end = next;
    ngx_http_profile_trim(&p, &end);

    value.data = p;
    value.len = end - p;

    rc = ngx_http_profile_set_action(r, t, &t->header, &value);

    if (rc != NGX_OK || next == last) {
        return rc;
    }

    return ngx_http_profile_parse_header_params(r, t, next + 1, last);
}


static ngx_int_t
ngx_http_profile_parse_header_params(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, u_char *p, u_char *last)
{
    u_char     *next, *end, *eq;
    ngx_int_t   rc;
    ngx_str_t   name, value;
    ngx_uint_t  seen;

    seen = 0;

    for ( /* void */ ; p < last; p = next + 1) {

        next = ngx_strlchr(p, last, ';');
        if (next == NULL) {
            next = last;
        }

        end = next;
        ngx_http_profile_trim(&p, &end);

        if (p == end) {
            continue;
        }

        eq = ngx_strlchr(p, end, '=');

        name.data = p;
        name.len = (eq ? eq : end) - p;
        value.data = eq ? eq + 1 : end;
        value.len = end - value.data;

        rc = ngx_http_profile_set_short(r, t, &name, &value, &seen);

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

    if (ngx_http_profile_str_eq(value, "record", 6)) {
        t->record = 1;

        if (ngx_http_profile_store(r)) {
            return NGX_OK;
        }

        return ngx_http_profile_error(r, t, name,
                                      "needs a store to record to: set "
                                      "profile_console, profile_zone or "
                                      "profile_store", NULL);
    }

    return ngx_http_profile_error(r, t, name, "takes",
                                  &ngx_http_profile_takes_action);
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
