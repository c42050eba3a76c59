
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What Go's net/http/pprof has beside its profiles, for the clients of Go's
 * profiler: the index, the command line, and what is not there.
 */


#include "console/ngx_http_profile_routes.h"


/* whether the URI is one of Go's, and for its clients */

ngx_uint_t
ngx_http_profile_go_is(ngx_str_t *uri)
{
    size_t  i;

    static ngx_str_t  path = ngx_string("debug/pprof/");

    for (i = 1; i + path.len <= uri->len; i++) {

        if (uri->data[i - 1] == '/'
            && ngx_memcmp(uri->data + i, path.data, path.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* in a location of this name it is in the place of the console's list */

ngx_int_t
ngx_http_profile_go_index_route(ngx_http_profile_call_t *call)
{
    if (call->json) {
        return ngx_http_profile_list_route(call);
    }

    return ngx_http_profile_answer_page(call, "pprof.html");
}


/* as Go's: arguments, each but the last one followed by a null character */

ngx_int_t
ngx_http_profile_go_cmdline_route(ngx_http_profile_call_t *call)
{
    int                         i;
    u_char                     *p;
    ngx_str_t                   text;
    ngx_http_profile_answer_t   answer;

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

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.body = text;
    ngx_str_set(&answer.type, "text/plain; charset=utf-8");

    return ngx_http_profile_answer(call, &answer);
}
