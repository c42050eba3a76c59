
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Routes of the console for captures of workers: our own, and those that Go's
 * net/http/pprof has, for its clients.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_server.h"


#define NGX_HTTP_PROFILE_FREQUENCY   99
#define NGX_HTTP_PROFILE_SECONDS     5000        /* ms */
#define NGX_HTTP_PROFILE_GO_SECONDS  30000       /* ms, as in Go */


static ngx_int_t ngx_http_profile_server_route(ngx_http_profile_call_t *call,
    ngx_uint_t mode, ngx_uint_t inuse);
static ngx_int_t ngx_http_profile_wanted_seconds(
    ngx_http_profile_call_t *call, ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_frequency(
    ngx_http_profile_call_t *call, ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_interval(
    ngx_http_profile_call_t *call, ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_format(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static const prof_encoder_t *ngx_http_profile_wanted_accept(
    ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_wanted_worker(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_wrong(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value, const char *takes);
static ngx_int_t ngx_http_profile_go_text(ngx_http_profile_call_t *call,
    ngx_str_t *text);


ngx_int_t
ngx_http_profile_cpu_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_server_route(call, PROF_MODE_CPU, 0);
}


ngx_int_t
ngx_http_profile_wall_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_server_route(call, PROF_MODE_WALL, 0);
}


ngx_int_t
ngx_http_profile_object_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_server_route(call, PROF_MODE_OBJECT, 0);
}


ngx_int_t
ngx_http_profile_heap_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_server_route(call, PROF_MODE_OBJECT, 1);
}


static ngx_int_t
ngx_http_profile_server_route(ngx_http_profile_call_t *call, ngx_uint_t mode,
    ngx_uint_t inuse)
{
    ngx_int_t                  rc;
    ngx_http_profile_wanted_t  wanted;

    ngx_memzero(&wanted, sizeof(ngx_http_profile_wanted_t));

    wanted.inuse = inuse;
    wanted.conf.mode = mode;
    wanted.conf.memory = NGX_HTTP_PROFILE_SHARE_MEMORY;

    rc = ngx_http_profile_wanted_seconds(call, &wanted);

    if (rc == NGX_DECLINED) {
        rc = (mode == PROF_MODE_OBJECT)
             ? ngx_http_profile_wanted_interval(call, &wanted)
             : ngx_http_profile_wanted_frequency(call, &wanted);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_format(call, &wanted);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_worker(call, &wanted);
    }

    if (rc == NGX_DECLINED && call->request->method == NGX_HTTP_POST) {
        rc = ngx_http_profile_server_keep_init(call, &wanted);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /* a capture takes seconds: who wants the headers only gets them at once */

    if (call->request->method == NGX_HTTP_HEAD) {
        return ngx_http_profile_answer_nothing(call);
    }

    return ngx_http_profile_server_begin(call, &wanted);
}


/* as this one, these functions return NGX_DECLINED if nothing was answered */

static ngx_int_t
ngx_http_profile_wanted_seconds(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t  rc, ms;
    ngx_str_t  value;

    /* Go's clients wait for CPU profiles, and not for those of memory */

    wanted->time = ((call->route->flags & NGX_HTTP_PROFILE_PPROF)
                    && wanted->conf.mode != PROF_MODE_OBJECT)
                   ? NGX_HTTP_PROFILE_GO_SECONDS : NGX_HTTP_PROFILE_SECONDS;

    rc = ngx_http_profile_call_arg(call, "seconds", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    ms = ngx_atofp(value.data, value.len, 3);

    if (ms < NGX_HTTP_PROFILE_SECONDS_MIN
        || ms > NGX_HTTP_PROFILE_SECONDS_MAX)
    {
        return ngx_http_profile_wanted_wrong(call, "seconds", &value,
                                             "a number from 0.1 to 600");
    }

    wanted->time = ms;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_wanted_frequency(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t   rc;
    ngx_str_t   value;
    ngx_uint_t  frequency;

    wanted->conf.frequency = NGX_HTTP_PROFILE_FREQUENCY;

    rc = ngx_http_profile_call_arg(call, "frequency", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (ngx_http_profile_parse_frequency(&value, &frequency) != NGX_OK) {
        return ngx_http_profile_wanted_wrong(call, "frequency", &value,
                                             "a number from 1 to 10000");
    }

    wanted->conf.frequency = frequency;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_wanted_interval(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ssize_t                       size;
    ngx_int_t                     rc;
    ngx_str_t                     value;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(call->request,
                                        ngx_http_profile_module);

    wanted->interval = plcf->object_interval;

    rc = ngx_http_profile_call_arg(call, "interval", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    size = ngx_parse_size(&value);

    if (size < 0 || size > PROF_INTERVAL_MAX) {
        return ngx_http_profile_wanted_wrong(call, "interval", &value,
                                             "a size from 0 to 1024m");
    }

    wanted->interval = size;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_wanted_format(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    u_char     *p, *last;
    ngx_int_t   rc;
    ngx_str_t   value;
    ngx_uint_t  i;
    u_char      takes[256];

    wanted->format = ngx_http_profile_wanted_accept(call);

    rc = ngx_http_profile_call_arg(call, "format", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    wanted->format = prof_encoder_find((char *) value.data, value.len);

    if (wanted->format) {
        return NGX_DECLINED;
    }

    p = takes;
    last = takes + sizeof(takes) - 1;

    for (i = 0; prof_encoders[i]; i++) {
        p = ngx_slprintf(p, last, "%s\"%s\"", i ? " or " : "",
                         prof_encoders[i]->name);
    }

    *p = '\0';

    return ngx_http_profile_wanted_wrong(call, "format", &value,
                                         (char *) takes);
}


/* Go's clients say nothing, or anything, and expect what Go's server sends */

static const prof_encoder_t *
ngx_http_profile_wanted_accept(ngx_http_profile_call_t *call)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    static ngx_str_t  name = ngx_string("Accept");

    if (call->route->flags & NGX_HTTP_PROFILE_PPROF) {
        return &prof_encode_pprof;
    }

    h = ngx_http_profile_find_header(call->request, &name, &n);

    return h ? prof_accept_encoder((char *) h->value.data, h->value.len,
                                   prof_encoders[0])
             : prof_encoders[0];
}


static ngx_int_t
ngx_http_profile_wanted_worker(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t   rc, pid;
    ngx_str_t   value;
    ngx_uint_t  i;

    wanted->worker = -1;

    rc = ngx_http_profile_call_arg(call, "workers", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (ngx_strcmp(value.data, "all") == 0) {
        return NGX_DECLINED;
    }

    if (ngx_strcmp(value.data, "self") == 0) {
        wanted->worker = ngx_worker;
        return NGX_DECLINED;
    }

    pid = ngx_atoi(value.data, value.len);

    for (i = 0; pid > 0 && i < ngx_http_profile_inbox_workers(); i++) {

        if (ngx_http_profile_inbox_pid(i) == pid) {
            wanted->worker = i;
            return NGX_DECLINED;
        }
    }

    return ngx_http_profile_wanted_wrong(call, "workers", &value,
                      "\"all\", \"self\" or the process id of a worker");
}


static ngx_int_t
ngx_http_profile_wanted_wrong(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value, const char *takes)
{
    return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                "\"%s\" is \"%V\", it must be %s",
                                name, value, takes);
}


/* as Go's: arguments, each but the last one followed by a null character */

ngx_int_t
ngx_http_profile_go_cmdline_route(ngx_http_profile_call_t *call)
{
    int        i;
    u_char    *p;
    ngx_str_t  text;

    text.len = 0;

    for (i = 0; i < ngx_argc; i++) {
        text.len += ngx_strlen(ngx_argv[i]) + 1;
    }

    text.data = ngx_pnalloc(call->request->pool, text.len);
    if (text.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = text.data;

    for (i = 0; i < ngx_argc; i++) {
        p = ngx_cpymem(p, ngx_argv[i], ngx_strlen(ngx_argv[i]) + 1);
    }

    text.len--;

    return ngx_http_profile_go_text(call, &text);
}


/*
 * Addresses in our profiles come with the names of their functions, so there
 * are none to be asked for; clients look whether this is there.
 */

ngx_int_t
ngx_http_profile_go_symbol_route(ngx_http_profile_call_t *call)
{
    ngx_str_t  text;

    ngx_str_set(&text, "num_symbols: 1\n");

    return ngx_http_profile_go_text(call, &text);
}


static ngx_int_t
ngx_http_profile_go_text(ngx_http_profile_call_t *call, ngx_str_t *text)
{
    ngx_http_profile_answer_t  answer;

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.body = *text;
    ngx_str_set(&answer.type, "text/plain; charset=utf-8");

    return ngx_http_profile_answer(call, &answer);
}
