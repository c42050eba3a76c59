
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Routes of the console for captures of workers: our own, and those that Go's
 * net/http/pprof has, for its clients.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_server.h"


static ngx_int_t ngx_http_profile_server_route(ngx_http_profile_call_t *call,
    ngx_uint_t mode, ngx_uint_t inuse);
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

    rc = ngx_http_profile_wanted(call, &wanted);

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
