
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Triggers: the places of a request that may ask for a profile.  The names of
 * the argument and of the header are set per server, so they are known before
 * the location.
 *
 * The trigger is taken out of the request, and put back if the request is not
 * permitted.  While the trigger is out, $args, $arg_..., $http_...,
 * $request_uri and requests to upstreams do not contain it.  $request (the
 * request line as the client sent it) always contains it.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "request/ngx_http_profile_request_private.h"
#include "core/ngx_http_profile_param.h"
#include "store/ngx_http_profile_store.h"


/* the length of the help, without names that the configuration sets */

#define NGX_HTTP_PROFILE_HELP  2048


static void ngx_http_profile_header_done(void *data);
static ngx_int_t ngx_http_profile_parse_args(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_not_meant(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name);
static ngx_int_t ngx_http_profile_parse_header(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_int_t ngx_http_profile_next_pair(u_char **pos, u_char *last,
    u_char separator, ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_profile_is_parameter(ngx_http_profile_trigger_t *t,
    u_char *p, u_char *last);
static ngx_uint_t ngx_http_profile_arg_param(ngx_str_t *arg, u_char *p,
    size_t len);
static ngx_int_t ngx_http_profile_set_action(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_profile_set_param(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_uint_t n, ngx_str_t *name,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_error(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, const char *text,
    const char *takes);
static ngx_int_t ngx_http_profile_help(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static void ngx_http_profile_trim(u_char **p, u_char **last);
static ngx_int_t ngx_http_profile_strip_args(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_strip_uri(ngx_http_profile_ctx_t *ctx);
static u_char *ngx_http_profile_copy_args(ngx_http_profile_trigger_t *t,
    u_char *dst, u_char *p, u_char *last);
static ngx_int_t ngx_http_profile_strip_headers(ngx_http_profile_ctx_t *ctx);
static ngx_uint_t ngx_http_profile_split_headers(ngx_http_profile_ctx_t *ctx,
    ngx_list_part_t *runs);
static ngx_int_t ngx_http_profile_unstrip_headers(ngx_http_profile_ctx_t *ctx);


static ngx_str_t  ngx_http_profile_prefix = ngx_string("profile_");
static ngx_str_t  ngx_http_profile_none = ngx_string("(off)");

ngx_http_profile_request_observers_t  ngx_http_profile_request_observers;

/* requests of this worker that came with a trigger header */

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nheaders;


ngx_int_t
ngx_http_profile_header(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset)
{
    ngx_pool_cleanup_t  *cln;

    /* an earlier header line has already marked the request */

    if (ngx_http_get_module_ctx(r, ngx_http_profile_module)) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_profile_header_done;
    ngx_http_profile_nheaders++;

    ngx_http_set_ctx(r, &ngx_http_profile_untracked, ngx_http_profile_module);

    return NGX_OK;
}


static void
ngx_http_profile_header_done(void *data)
{
    ngx_http_profile_nheaders--;
}


ngx_int_t
ngx_http_profile_find_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_uint_t                    n;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_find_arg(r, plcf, r->args.data) == NGX_OK) {
        t->arg = plcf->arg;
    }

    if (plcf->header.len
        && ngx_http_get_module_ctx(r, ngx_http_profile_module)
        && ngx_http_profile_find_header(r, &plcf->header, &n))
    {
        t->header = plcf->header;
    }

    /* an order is taken out of the cookies even if it is not used */

    if (ngx_http_profile_request_observers.find_order) {
        ngx_http_profile_request_observers.find_order(r, t);
    }

    return (t->arg.len || t->header.len || t->order.len) ? NGX_OK
                                                         : NGX_DECLINED;
}


ngx_uint_t
ngx_http_profile_arg_rare(ngx_str_t *name)
{
    u_char      *p;
    ngx_uint_t   i, rare, rank, lowest;

    static u_char  bytes[] = "_-QZXJKVWBYGFPqzxjkvwbygfpUDCMHLNRSIOTAE"
                             "9876543210umhcdlnrsiotae";

    rare = 0;
    lowest = sizeof(bytes);

    for (i = 0; i < name->len; i++) {

        p = (u_char *) ngx_strchr(bytes, name->data[i]);
        rank = p ? (ngx_uint_t) (p - bytes) : sizeof(bytes) - 1;

        if (rank < lowest) {
            lowest = rank;
            rare = i;
        }
    }

    return rare;
}


PROF_HOT ngx_int_t
ngx_http_profile_find_arg(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf, u_char *p)
{
    u_char     *start, *last;
    size_t      before, after;
    ngx_str_t  *args, *name;

    args = &r->args;
    name = &plcf->arg;

    if (name->len == 0 || name->len > args->len) {
        return NGX_DECLINED;
    }

    last = args->data + args->len;
    before = plcf->arg_rare;
    after = name->len - before;

    for ( /* void */ ; ; p++) {

        p = memchr(p, name->data[before], last - p);

        if (p == NULL || (size_t) (last - p) < after) {
            return NGX_DECLINED;
        }

        if ((size_t) (p - args->data) < before) {
            continue;
        }

        start = p - before;

        if ((start == args->data || start[-1] == '&')
            && ngx_memcmp(start, name->data, name->len) == 0
            && (p + after == last || p[after] == '=' || p[after] == '&'))
        {
            return NGX_OK;
        }
    }
}


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


/* reads the trigger's arguments, and skips those of the application */

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
            n = ngx_http_profile_arg_param(&t->arg, name.data, name.len);

            rc = (n == NGX_HTTP_PROFILE_PARAMS)
                 ? ngx_http_profile_not_meant(r, t, &name)
                 : ngx_http_profile_set_param(r, t, n, &name, &value);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


/*
 * Returns NGX_OK if the argument is one of the application, which may have
 * names with the same prefix.
 */

static ngx_int_t
ngx_http_profile_not_meant(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name)
{
    u_char      *p, meant[64];
    ngx_uint_t   n;

    n = NGX_HTTP_PROFILE_PARAMS;

    if (name->len > ngx_http_profile_prefix.len
        && ngx_strncmp(name->data, ngx_http_profile_prefix.data,
                       ngx_http_profile_prefix.len)
           == 0)
    {
        n = ngx_http_profile_param_near(name->data
                                        + ngx_http_profile_prefix.len,
                                        name->len
                                        - ngx_http_profile_prefix.len);
    }

    if (n == NGX_HTTP_PROFILE_PARAMS) {
        return NGX_OK;
    }

    p = ngx_slprintf(meant, meant + sizeof(meant) - 1, "profile_%s",
                     ngx_http_profile_param_name(n));
    *p = '\0';

    return ngx_http_profile_error(r, t, name,
                                  "is unknown, the nearest name is",
                                  (const char *) meant);
}


/* parses action *( ";" name "=" value ), with optional white space around */

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


/* returns whether the argument from p to last belongs to the trigger */

static ngx_int_t
ngx_http_profile_is_parameter(ngx_http_profile_trigger_t *t, u_char *p,
    u_char *last)
{
    size_t   len;
    u_char  *eq;

    eq = ngx_strlchr(p, last, '=');
    len = (eq ? eq : last) - p;

    return ngx_http_profile_str_eq(&t->arg, p, len)
           || ngx_http_profile_arg_param(&t->arg, p, len)
              != NGX_HTTP_PROFILE_PARAMS;
}


/*
 * Returns the parameter of this argument, or NGX_HTTP_PROFILE_PARAMS.  GitLab
 * has the arguments "performance_bar" and "stackprof_mode".  If the trigger has
 * another name, both belong to GitLab.
 */

static ngx_uint_t
ngx_http_profile_arg_param(ngx_str_t *arg, u_char *p, size_t len)
{
    ngx_uint_t  n;

    static ngx_str_t  name = ngx_string("performance_bar");
    static ngx_str_t  alias = ngx_string("stackprof_mode");

    if (ngx_http_profile_str_eq(&alias, p, len)
        && ngx_http_profile_str_eq(&name, arg->data, arg->len))
    {
        return NGX_HTTP_PROFILE_PARAM_MODE;
    }

    if (len <= ngx_http_profile_prefix.len
        || ngx_memcmp(p, ngx_http_profile_prefix.data,
                      ngx_http_profile_prefix.len) != 0)
    {
        return NGX_HTTP_PROFILE_PARAMS;
    }

    n = ngx_http_profile_param_find(p + ngx_http_profile_prefix.len,
                                    len - ngx_http_profile_prefix.len);

    return n < NGX_HTTP_PROFILE_PARAM_TRIGGERS ? n : NGX_HTTP_PROFILE_PARAMS;
}


static ngx_int_t
ngx_http_profile_set_action(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value)
{
    if (ngx_http_profile_str_eq(value, "flamegraph", 10)) {
        return NGX_OK;
    }

    if (ngx_http_profile_str_eq(value, "help", 4)) {
        return ngx_http_profile_help(r, t);
    }

    if (!ngx_http_profile_str_eq(value, "record", 6)) {
        return ngx_http_profile_error(r, t, name, "takes",
                                      "\"flamegraph\", \"record\" or "
                                      "\"help\"");
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


/* the text takes the place of an error, so it is for the same clients */

static ngx_int_t
ngx_http_profile_help(ngx_http_request_t *r, ngx_http_profile_trigger_t *t)
{
    u_char                       *p, *last;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    p = ngx_pnalloc(r->pool, NGX_HTTP_PROFILE_HELP + plcf->arg.len
                             + plcf->header.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = p + NGX_HTTP_PROFILE_HELP + plcf->arg.len + plcf->header.len;

    t->help = 1;
    t->error.data = p;

    p = ngx_slprintf(p, last, "A trigger in the query is %V=ACTION:\n\n"
                     "flamegraph\n    the profile replaces the response\n"
                     "record\n    the response is sent, and the profile is "
                     "stored for the console\n\n"
                     "Further arguments:\n\n",
                     plcf->arg.len ? &plcf->arg : &ngx_http_profile_none);

    p = ngx_http_profile_param_help(p, last);

    p = ngx_slprintf(p, last, "\nThe same in a header:\n\n"
                     "%V: flamegraph; mode=cpu; format=svg\n",
                     plcf->header.len ? &plcf->header
                                      : &ngx_http_profile_none);

    t->error.len = p - t->error.data;

    return NGX_DECLINED;
}


/* makes the error text for the client; nginx's names have no control bytes */

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


ngx_int_t
ngx_http_profile_strip(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->trigger.arg.len
        && (ngx_http_profile_strip_args(ctx) != NGX_OK
            || ngx_http_profile_strip_uri(ctx) != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (ctx->trigger.header.len
        && ngx_http_profile_strip_headers(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_profile_unstrip(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->stripped_args.data && r->args.data == ctx->stripped_args.data) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: arguments \"%V\" restored", &ctx->args);

        r->args = ctx->args;
    }

    if (ctx->stripped_uri.data
        && r->unparsed_uri.data == ctx->stripped_uri.data)
    {
        r->unparsed_uri = ctx->unparsed_uri;
    }

    if (ctx->stripped_headers
        && ngx_http_profile_unstrip_headers(ctx) != NGX_OK)
    {
        ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, 0,
                             "profile: no memory to restore \"%V\"",
                             &ctx->trigger.header);
    }
}


static ngx_int_t
ngx_http_profile_strip_args(ngx_http_profile_ctx_t *ctx)
{
    u_char              *p, *last;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->stripped_args.data && r->args.data == ctx->stripped_args.data) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, r->args.len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_http_profile_copy_args(&ctx->trigger, p, r->args.data,
                                      r->args.data + r->args.len);

    ctx->args = r->args;

    ctx->stripped_args.data = p;
    ctx->stripped_args.len = last - p;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: arguments \"%V\" become \"%V\"",
                   &ctx->args, &ctx->stripped_args);

    r->args = ctx->stripped_args;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_strip_uri(ngx_http_profile_ctx_t *ctx)
{
    u_char              *p, *q, *uri, *last;
    ngx_http_request_t  *r;

    r = ctx->request;

    last = r->unparsed_uri.data + r->unparsed_uri.len;
    q = ngx_strlchr(r->unparsed_uri.data, last, '?');

    if (q == NULL
        || (ctx->stripped_uri.data
            && r->unparsed_uri.data == ctx->stripped_uri.data))
    {
        return NGX_OK;
    }

    uri = ngx_pnalloc(r->pool, r->unparsed_uri.len + 1);
    if (uri == NULL) {
        return NGX_ERROR;
    }

    q++;

    p = ngx_cpymem(uri, r->unparsed_uri.data, q - r->unparsed_uri.data);
    last = ngx_http_profile_copy_args(&ctx->trigger, p, q, last);

    if (last == p) {

        /* no arguments are left, so the question mark is removed */

        last--;
    }

    ctx->unparsed_uri = r->unparsed_uri;

    ctx->stripped_uri.data = uri;
    ctx->stripped_uri.len = last - uri;

    r->unparsed_uri = ctx->stripped_uri;

    return NGX_OK;
}


/* copies the arguments of the application in their order */

static u_char *
ngx_http_profile_copy_args(ngx_http_profile_trigger_t *t, u_char *dst,
    u_char *p, u_char *last)
{
    u_char  *start, *next;

    start = dst;

    for ( /* void */ ; p < last; p = next + 1) {

        next = ngx_strlchr(p, last, '&');
        if (next == NULL) {
            next = last;
        }

        if (ngx_http_profile_is_parameter(t, p, next)) {
            continue;
        }

        if (dst != start) {
            *dst++ = '&';
        }

        dst = ngx_cpymem(dst, p, next - p);
    }

    return dst;
}


/*
 * Takes the trigger's headers out of the list.  Pointers to headers exist, so
 * headers must not move.  Code that reads a list expects that only its first
 * part can be empty.  So the list gets new parts, which refer to the remaining
 * headers in the memory of the old parts.
 */

static ngx_int_t
ngx_http_profile_strip_headers(ngx_http_profile_ctx_t *ctx)
{
    ngx_list_t           empty, *list;
    ngx_uint_t           i, n, nruns;
    ngx_list_part_t     *part, *runs;
    ngx_http_request_t  *r;

    r = ctx->request;
    list = &r->headers_in.headers;

    if (ctx->stripped_headers
        || ngx_http_profile_find_header(r, &ctx->trigger.header, &n) == NULL)
    {
        return NGX_OK;
    }

    for (part = &list->part; part; part = part->next) {
        n++;
    }

    runs = ngx_pcalloc(r->pool, 2 * n * sizeof(ngx_list_part_t));
    if (runs == NULL) {
        return NGX_ERROR;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: header \"%V\" taken out", &ctx->trigger.header);

    nruns = ngx_http_profile_split_headers(ctx, runs);

    ctx->headers = *list;

    if (nruns == 0) {

        /* new headers must not overwrite the headers that were taken out */

        if (ngx_list_init(&empty, r->pool, list->nalloc, list->size)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        *list = empty;
        list->last = &list->part;

    } else {

        for (i = 1; i < nruns; i++) {
            runs[i - 1].next = &runs[i];
        }

        list->part = runs[0];
        list->last = (nruns == 1) ? &list->part : &runs[nruns - 1];

        /* the last part is full, so new headers go to a new part */

        list->nalloc = list->last->nelts;
    }

    /* the copy shows later whether other code has changed the list */

    ngx_memcpy(&runs[n], runs, n * sizeof(ngx_list_part_t));

    ctx->header_runs = runs;
    ctx->nheader_runs = n;
    ctx->stripped_list = *list;
    ctx->stripped_headers = 1;

    return NGX_OK;
}


/* makes parts without the trigger's headers; returns their number */

static ngx_uint_t
ngx_http_profile_split_headers(ngx_http_profile_ctx_t *ctx,
    ngx_list_part_t *runs)
{
    ngx_uint_t        i, start, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;

    for (part = &ctx->request->headers_in.headers.part;
         part;
         part = part->next)
    {
        h = part->elts;
        start = 0;

        for (i = 0; i <= part->nelts; i++) {

            if (i < part->nelts
                && !ngx_http_profile_is_header(&h[i], &ctx->trigger.header))
            {
                continue;
            }

            if (i > start) {
                runs[n].elts = &h[start];
                runs[n].nelts = i - start;
                n++;
            }

            start = i + 1;
        }
    }

    return n;
}


static ngx_int_t
ngx_http_profile_unstrip_headers(ngx_http_profile_ctx_t *ctx)
{
    ngx_uint_t        i;
    ngx_list_t       *list;
    ngx_list_part_t  *part, *runs;
    ngx_table_elt_t  *h, *new;

    ctx->stripped_headers = 0;

    list = &ctx->request->headers_in.headers;
    runs = ctx->header_runs;

    if (ngx_memcmp(list, &ctx->stripped_list, sizeof(ngx_list_t)) == 0
        && ngx_memcmp(runs, &runs[ctx->nheader_runs],
                      ctx->nheader_runs * sizeof(ngx_list_part_t))
           == 0)
    {
        *list = ctx->headers;
        return NGX_OK;
    }

    /* other code has changed the list, so the headers are appended */

    for (part = &ctx->headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_profile_is_header(&h[i], &ctx->trigger.header)) {
                continue;
            }

            new = ngx_list_push(list);
            if (new == NULL) {
                return NGX_ERROR;
            }

            *new = h[i];
        }
    }

    return NGX_OK;
}
