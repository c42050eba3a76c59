
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What a call asks for: the arguments of captures of workers.
 *
 * All functions return NGX_DECLINED if nothing was answered.
 */


#include "core/ngx_http_profile_param.h"
#include "workers/ngx_http_profile_asker.h"


#define NGX_HTTP_PROFILE_FREQUENCY   99
#define NGX_HTTP_PROFILE_SECONDS     5000        /* ms */
#define NGX_HTTP_PROFILE_GO_SECONDS  30000       /* ms, as in Go */


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
static ngx_int_t ngx_http_profile_wanted_labels(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_wrong(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value, const char *takes);
static ngx_int_t ngx_http_profile_wanted_filter(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_text(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted, const char *name, char *to);


ngx_int_t
ngx_http_profile_wanted(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t  rc;

    rc = ngx_http_profile_wanted_filter(call, wanted);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_seconds(call, wanted);
    }

    if (rc == NGX_DECLINED && wanted->conf.mode == PROF_MODE_OBJECT) {
        rc = ngx_http_profile_wanted_interval(call, wanted);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_frequency(call, wanted);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_format(call, wanted);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_worker(call, wanted);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_labels(call, wanted);
    }

    return rc;
}


/* with any of these arguments it is a capture of requests */

static ngx_int_t
ngx_http_profile_wanted_filter(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t                   rc, n;
    ngx_str_t                   value;
    ngx_http_profile_filter_t  *f;

    f = &wanted->filter;

    rc = ngx_http_profile_wanted_text(call, wanted, "uri", f->uri);

    if (rc == NGX_DECLINED && f->uri[0] && f->uri[0] != '/') {
        value.data = (u_char *) f->uri;
        value.len = ngx_strlen(f->uri);

        return ngx_http_profile_wanted_wrong(call, "uri", &value,
                                     "a prefix that begins with a slash");
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_text(call, wanted, "server", f->server);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_text(call, wanted, "location",
                                          f->location);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_profile_call_arg(call, "requests", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    n = ngx_atoi(value.data, value.len);

    if (n < 1 || n > NGX_HTTP_PROFILE_REQUESTS_MAX) {
        return ngx_http_profile_wanted_wrong(call, "requests", &value,
                                             "a number from 1 to 100000");
    }

    f->requests = n;
    f->enabled = 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_wanted_text(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted, const char *name, char *to)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_profile_call_arg(call, name, &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (value.len == 0 || value.len >= NGX_HTTP_PROFILE_FILTER_LEN
        || ngx_strlen(value.data) != value.len)
    {
        return ngx_http_profile_wanted_wrong(call, name, &value,
                                             "a text of 1 to 255 bytes");
    }

    ngx_memcpy(to, value.data, value.len + 1);

    wanted->filter.enabled = 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_wanted_seconds(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t  rc, ms;
    ngx_str_t  value;

    /* Go's clients wait for CPU profiles, and not for those of memory */

    wanted->time = (call->pprof && wanted->conf.mode != PROF_MODE_OBJECT)
                   ? NGX_HTTP_PROFILE_GO_SECONDS : NGX_HTTP_PROFILE_SECONDS;

    if (wanted->filter.requests) {
        wanted->time = NGX_HTTP_PROFILE_REQUESTS_MSEC;
    }

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

    wanted->conf.frequency = wanted->filter.enabled
                             ? PROF_FREQUENCY_DEFAULT
                             : NGX_HTTP_PROFILE_FREQUENCY;

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

    if (call->pprof) {
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


/* off unless asked for: each request may be a label of its own */

static ngx_int_t
ngx_http_profile_wanted_labels(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_profile_call_arg(call, "labels", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (ngx_strcmp(value.data, "trace") != 0) {
        return ngx_http_profile_wanted_wrong(call, "labels", &value,
                                             "\"trace\"");
    }

    wanted->traces = NGX_HTTP_PROFILE_TRACES;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_wanted_wrong(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value, const char *takes)
{
    return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                "\"%s\" is \"%V\", it must be %s",
                                name, value, takes);
}
