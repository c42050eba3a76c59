
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The state of the profiler in the worker that was asked.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_console.h"


static json_t *ngx_http_profile_status_unwind(void);
static json_t *ngx_http_profile_status_captures(void);


ngx_int_t
ngx_http_profile_status_route(ngx_http_profile_call_t *call)
{
    json_t  *json;

    if (!call->json) {
        return ngx_http_profile_answer_page(call, "status.html");
    }

    json = json_pack("{s:s, s:I, s:I, s:o, s:o*}",
                     "nginx", NGINX_VERSION,
                     "pid", (json_int_t) ngx_pid,
                     "time", (json_int_t) ngx_time(),
                     "captures", ngx_http_profile_status_captures(),
                     "unwind", ngx_http_profile_status_unwind());

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK, json);
}


/* the tables are those of the process: workers share them until one renews */

static json_t *
ngx_http_profile_status_unwind(void)
{
    prof_unwind_info_t    info;
    const prof_unwind_t  *u;

    u = prof_process_unwind();

    if (u == NULL) {
        return NULL;
    }

    prof_unwind_info(u, &info);

    return json_pack("{s:I, s:I, s:I, s:I, s:I}",
                     "objects", (json_int_t) info.objects,
                     "rows", (json_int_t) info.rows,
                     "unsupported", (json_int_t) info.unsupported,
                     "bytes", (json_int_t) info.bytes,
                     "build_ns", (json_int_t) info.build_ns);
}


static json_t *
ngx_http_profile_status_captures(void)
{
    char                    *uri;
    size_t                   len;
    json_t                  *list, *json;
    uint64_t                 wall, running, cpu;
    ngx_queue_t             *q;
    prof_stats_t             st;
    ngx_http_profile_ctx_t  *ctx;

    list = json_array();

    for (q = ngx_queue_head(&ngx_http_profile_live);
         q != ngx_queue_sentinel(&ngx_http_profile_live);
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);

        if (ctx->capture == NULL
            || ctx->verdict == NGX_HTTP_PROFILE_REFUSED)
        {
            continue;
        }

        prof_capture_totals(ctx->capture, &st, &wall, &running, &cpu);

        len = ctx->request->uri.len;
        uri = prof_text_utf8((char *) ctx->request->uri.data, &len);

        json = json_pack("{s:s%, s:s*, s:I, s:I, s:I, s:I}",
                         "id", ctx->id, (size_t) NGX_HTTP_PROFILE_ID_LEN,
                         "uri", uri,
                         "wall", (json_int_t) wall,
                         "running", (json_int_t) running,
                         "cpu", (json_int_t) cpu,
                         "samples", (json_int_t) st.samples);

        free(uri);

        json_array_append_new(list, json);
    }

    return list;
}
