
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Routes of the console for captures of workers.
 */


#include "workers/ngx_http_profile_asker.h"


static ngx_int_t ngx_http_profile_cpu_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_wall_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_object_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_heap_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_asker_route(ngx_http_profile_call_t *call,
    ngx_uint_t mode, ngx_uint_t inuse);


const ngx_http_profile_route_t  ngx_http_profile_workers_routes[] = {

    { ngx_string("cpu"), NGX_HTTP_GET|NGX_HTTP_POST,
      ngx_http_profile_cpu_route,
      "CPU time of the workers: seconds=, frequency=, format=, workers=, "
      "labels=; POST stores it", 0 },

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

    { ngx_null_string, 0, NULL, NULL, 0 }
};


static ngx_int_t
ngx_http_profile_cpu_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_asker_route(call, PROF_MODE_CPU, 0);
}


static ngx_int_t
ngx_http_profile_wall_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_asker_route(call, PROF_MODE_WALL, 0);
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

    /* a capture takes seconds, so HEAD requests get the headers at once */

    if (call->request->method == NGX_HTTP_HEAD) {
        return ngx_http_profile_answer_nothing(call);
    }

    return ngx_http_profile_asker_begin(call, &wanted);
}
