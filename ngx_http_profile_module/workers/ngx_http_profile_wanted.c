
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The console's routes for captures of workers, and the arguments that they
 * take.
 *
 * The functions that read arguments return NGX_DECLINED, or the result of an
 * answer with the error.
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_param.h"
#include "workers/ngx_http_profile_asker.h"


#define NGX_HTTP_PROFILE_FREQUENCY   99
#define NGX_HTTP_PROFILE_SECONDS     5000        /* ms */
#define NGX_HTTP_PROFILE_GO_SECONDS  30000       /* ms, the default of Go */


static ngx_int_t ngx_http_profile_cpu_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_wall_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_object_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_heap_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_asker_route(ngx_http_profile_call_t *call,
    ngx_uint_t mode, ngx_uint_t inuse);
static ngx_int_t ngx_http_profile_wanted(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_params(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted, ngx_http_profile_params_t *params);
static void ngx_http_profile_wanted_set(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted, ngx_http_profile_params_t *params);
static ngx_int_t ngx_http_profile_wanted_worker(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_labels(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_filter(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
static ngx_int_t ngx_http_profile_wanted_text(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted, const char *name, char *to);


const ngx_http_profile_route_t  ngx_http_profile_workers_routes[] = {

    { ngx_string("cpu"), NGX_HTTP_GET|NGX_HTTP_POST,
      ngx_http_profile_cpu_route,
      "CPU time of the workers: seconds=, frequency=, format=, workers=, "
      "labels=; or of the past: from=, to=, worker=; POST stores it", 0 },

    { ngx_string("wall"), NGX_HTTP_GET|NGX_HTTP_POST,
      ngx_http_profile_wall_route,
      "all time of the workers, waiting included: as \"cpu\"", 0 },

    { ngx_string("object"), NGX_HTTP_GET|NGX_HTTP_POST,
      ngx_http_profile_object_route,
      "allocations of the workers: seconds=, interval=, format=, workers=", 0 },

    { ngx_string("debug/pprof/profile"), NGX_HTTP_GET,
      ngx_http_profile_cpu_route,
      "CPU time, for Go's clients", NGX_HTTP_PROFILE_PPROF },

    { ngx_string("debug/pprof/wall"), NGX_HTTP_GET,
      ngx_http_profile_wall_route,
      "all time, for Go's clients", NGX_HTTP_PROFILE_PPROF },

    { ngx_string("debug/pprof/allocs"), NGX_HTTP_GET,
      ngx_http_profile_object_route,
      "allocations, for Go's clients", NGX_HTTP_PROFILE_PPROF },

    { ngx_string("debug/pprof/heap"), NGX_HTTP_GET,
      ngx_http_profile_heap_route,
      "allocations in use, for Go's clients", NGX_HTTP_PROFILE_PPROF },

    { ngx_string("endpoints"), NGX_HTTP_GET, ngx_http_profile_asker_progress,
      "captures of endpoints that run, and their requests so far", 0 },

    { ngx_null_string, 0, NULL, NULL, 0 }
};


static ngx_int_t
ngx_http_profile_cpu_route(ngx_http_profile_call_t *call)
{
    ngx_int_t  rc;

    rc = ngx_http_profile_range(call, PROF_MODE_CPU);

    return (rc == NGX_DECLINED)
           ? ngx_http_profile_asker_route(call, PROF_MODE_CPU, 0) : rc;
}


static ngx_int_t
ngx_http_profile_wall_route(ngx_http_profile_call_t *call)
{
    ngx_int_t  rc;

    rc = ngx_http_profile_range(call, PROF_MODE_WALL);

    return (rc == NGX_DECLINED)
           ? ngx_http_profile_asker_route(call, PROF_MODE_WALL, 0) : rc;
}


static ngx_int_t
ngx_http_profile_object_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_asker_route(call, PROF_MODE_OBJECT, 0);
}


static ngx_int_t
ngx_http_profile_heap_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_asker_route(call, PROF_MODE_OBJECT, 1);
}


static ngx_int_t
ngx_http_profile_asker_route(ngx_http_profile_call_t *call, ngx_uint_t mode,
    ngx_uint_t inuse)
{
    ngx_int_t                  rc;
    ngx_http_profile_wanted_t  wanted;

    ngx_memzero(&wanted, sizeof(ngx_http_profile_wanted_t));

    wanted.inuse = inuse;
    wanted.conf.mode = mode;
    wanted.conf.memory = NGX_HTTP_PROFILE_SHARE_MEMORY;

    rc = ngx_http_profile_wanted(call, &wanted);

    if (rc == NGX_DECLINED && call->request->method == NGX_HTTP_POST) {
        rc = ngx_http_profile_asker_keep_init(call, &wanted);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /* a capture takes seconds, so a HEAD request does not start one */

    if (call->request->method == NGX_HTTP_HEAD) {
        return ngx_http_profile_answer_nothing(call);
    }

    return ngx_http_profile_asker_begin(call, &wanted);
}


/*
 * Reads the arguments of a capture.  The caller has set *wanted to zero,
 * except for the mode and the memory.
 */

static ngx_int_t
ngx_http_profile_wanted(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t                  rc;
    ngx_http_profile_params_t  params;

    params.given = 0;

    rc = ngx_http_profile_wanted_filter(call, wanted);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_params(call, wanted, &params);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_worker(call, wanted);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_labels(call, wanted);
    }

    if (rc == NGX_DECLINED) {
        ngx_http_profile_wanted_set(call, wanted, &params);
    }

    return rc;
}


static ngx_int_t
ngx_http_profile_wanted_params(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted, ngx_http_profile_params_t *params)
{
    ngx_int_t   rc;
    ngx_uint_t  i;

    struct {
        const char  *name;
        ngx_uint_t   n;
    } args[] = {
        { "requests", NGX_HTTP_PROFILE_PARAM_REQUESTS },
        { "seconds", NGX_HTTP_PROFILE_PARAM_SECONDS },
        { "frequency", NGX_HTTP_PROFILE_PARAM_FREQUENCY },
        { "format", NGX_HTTP_PROFILE_PARAM_FORMAT },
        { "interval", NGX_HTTP_PROFILE_PARAM_INTERVAL },
        { NULL, 0 }
    };

    rc = NGX_DECLINED;

    for (i = 0; rc == NGX_DECLINED && args[i].name; i++) {

        if (args[i].n != NGX_HTTP_PROFILE_PARAM_INTERVAL
            || wanted->conf.mode == PROF_MODE_OBJECT)
        {
            rc = ngx_http_profile_call_param(call, args[i].name, args[i].n,
                                             params);
        }
    }

    return rc;
}


static void
ngx_http_profile_wanted_set(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted, ngx_http_profile_params_t *params)
{
    ngx_msec_t                    time;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(call->request,
                                        ngx_http_profile_module);

    wanted->filter.requests = ngx_http_profile_param(params,
                                          NGX_HTTP_PROFILE_PARAM_REQUESTS, 0);
    wanted->filter.enabled |= (wanted->filter.requests != 0);

    /* Go's clients wait for profiles of CPU time, but not of memory */

    if (wanted->filter.requests) {
        time = NGX_HTTP_PROFILE_REQUESTS_MSEC;

    } else if (call->pprof && wanted->conf.mode != PROF_MODE_OBJECT) {
        time = NGX_HTTP_PROFILE_GO_SECONDS;

    } else {
        time = NGX_HTTP_PROFILE_SECONDS;
    }

    wanted->time = ngx_http_profile_param(params,
                                          NGX_HTTP_PROFILE_PARAM_SECONDS,
                                          time);

    if (wanted->conf.mode == PROF_MODE_OBJECT) {
        wanted->interval = ngx_http_profile_param(params,
                                             NGX_HTTP_PROFILE_PARAM_INTERVAL,
                                             plcf->object_interval);
    }

    wanted->conf.frequency = ngx_http_profile_param(params,
                                             NGX_HTTP_PROFILE_PARAM_FREQUENCY,
                                             wanted->filter.enabled
                                             ? PROF_FREQUENCY_DEFAULT
                                             : NGX_HTTP_PROFILE_FREQUENCY);

    if (ngx_http_profile_param_given(params, NGX_HTTP_PROFILE_PARAM_FORMAT)) {
        wanted->format = prof_encoders[
                              params->values[NGX_HTTP_PROFILE_PARAM_FORMAT]];

    } else if (call->pprof) {

        /* Go's clients expect the format of Go's server, not "Accept" */

        wanted->format = &prof_encode_pprof;

    } else {
        wanted->format = ngx_http_profile_accept_format(call->request,
                                                        prof_encoders[0]);
    }
}


/*
 * Reads the arguments "uri", "server" and "location".  Each of them selects a
 * capture of an endpoint instead of a capture of workers.
 */

static ngx_int_t
ngx_http_profile_wanted_filter(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_int_t                   rc;
    ngx_str_t                   value;
    ngx_http_profile_filter_t  *f;

    f = &wanted->filter;

    rc = ngx_http_profile_wanted_text(call, wanted, "uri", f->uri);

    if (rc == NGX_DECLINED && f->uri[0] && f->uri[0] != '/') {
        value.data = (u_char *) f->uri;
        value.len = ngx_strlen(f->uri);

        return ngx_http_profile_call_wrong(call, "uri", &value,
                                     "a prefix that begins with a slash");
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_text(call, wanted, "server", f->server);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_wanted_text(call, wanted, "location",
                                          f->location);
    }

    return rc;
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
        || ngx_http_profile_controls(value.data, value.len))
    {
        return ngx_http_profile_call_wrong(call, name, &value,
                      "a text of 1 to 255 bytes without control characters");
    }

    ngx_memcpy(to, value.data, value.len + 1);

    wanted->filter.enabled = 1;

    return NGX_DECLINED;
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

    if (ngx_http_profile_str_eq(&value, "all", 3)) {
        return NGX_DECLINED;
    }

    if (ngx_http_profile_str_eq(&value, "self", 4)) {
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

    return ngx_http_profile_call_wrong(call, "workers", &value,
                      "\"all\", \"self\" or the process id of a worker");
}


/*
 * Reads the argument "labels".  Without this argument samples do not have
 * their traces as labels, since databases create a series for each value of a
 * label.
 */

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

    if (!ngx_http_profile_str_eq(&value, "trace", 5)) {
        return ngx_http_profile_call_wrong(call, "labels", &value,
                                             "\"trace\"");
    }

    wanted->traces = NGX_HTTP_PROFILE_TRACES;

    return NGX_DECLINED;
}
