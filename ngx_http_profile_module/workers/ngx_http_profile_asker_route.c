
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Routes of the console for captures of workers.
 */


#include "workers/ngx_http_profile_asker.h"


static ngx_int_t ngx_http_profile_asker_route(ngx_http_profile_call_t *call,
    ngx_uint_t mode, ngx_uint_t inuse);


ngx_int_t
ngx_http_profile_cpu_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_asker_route(call, PROF_MODE_CPU, 0);
}


ngx_int_t
ngx_http_profile_wall_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_asker_route(call, PROF_MODE_WALL, 0);
}


ngx_int_t
ngx_http_profile_object_route(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_asker_route(call, PROF_MODE_OBJECT, 0);
}


ngx_int_t
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

    /* a capture takes seconds: who wants the headers only gets them at once */

    if (call->request->method == NGX_HTTP_HEAD) {
        return ngx_http_profile_answer_nothing(call);
    }

    return ngx_http_profile_asker_begin(call, &wanted);
}
