
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The state of the profiler in the worker that was asked.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_profiles.h"
#include "ngx_http_profile_server.h"
#include "ngx_http_profile_stall.h"


static json_t *ngx_http_profile_status_worker(ngx_http_request_t *r);
static json_t *ngx_http_profile_status_store(ngx_http_request_t *r);
static json_t *ngx_http_profile_status_unwind(void);
static json_t *ngx_http_profile_status_stalls(ngx_http_request_t *r);
static json_t *ngx_http_profile_status_captures(void);
static json_t *ngx_http_profile_status_workers(void);


ngx_int_t
ngx_http_profile_status_route(ngx_http_profile_call_t *call)
{
    json_t  *json;

    if (!call->json) {
        return ngx_http_profile_answer_page(call, "status.html");
    }

    json = json_pack("{s:o, s:o*, s:o*, s:o*, s:o, s:o}",
                     "worker", ngx_http_profile_status_worker(call->request),
                     "store", ngx_http_profile_status_store(call->request),
                     "unwind", ngx_http_profile_status_unwind(),
                     "stalls", ngx_http_profile_status_stalls(call->request),
                     "captures", ngx_http_profile_status_captures(),
                     "workers", ngx_http_profile_status_workers());

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK, json);
}


static json_t *
ngx_http_profile_status_worker(ngx_http_request_t *r)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I}",
                     "pid", (json_int_t) ngx_pid,
                     "version", NGINX_VERSION,
                     "captures", (json_int_t) ngx_http_profile_slots,
                     "max_captures", (json_int_t) pmcf->max_captures,
                     "connections", (json_int_t) (ngx_cycle->connection_n
                                              - ngx_cycle->free_connection_n),
                     "max_connections", (json_int_t) ngx_cycle->connection_n);
}


static json_t *
ngx_http_profile_status_store(ngx_http_request_t *r)
{
    json_t                         *json;
    ngx_http_profile_store_t       *store;
    ngx_http_profile_store_stat_t   st;

    store = ngx_http_profile_store(r);

    if (store == NULL) {
        return NULL;
    }

    ngx_http_profile_store_stat(store, &st);

    json = json_pack("{s:s%, s:I, s:I, s:I, s:I}",
                     "zone", (char *) st.zone.data, st.zone.len,
                     "memory_size", (json_int_t) st.memory_size,
                     "memory_used", (json_int_t) st.memory_used,
                     "profiles", (json_int_t) st.entries,
                     "pinned", (json_int_t) st.pinned);

    if (json && st.path.len) {
        (void) json_object_update_new(json,
                   json_pack("{s:s%, s:I, s:I, s:I}",
                             "path", (char *) st.path.data, st.path.len,
                             "disk_max", (json_int_t) st.disk_max,
                             "disk_used", (json_int_t) st.disk_used,
                             "inactive_s", (json_int_t) st.inactive));
    }

    (void) json_object_update_new(json,
                   json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                             "added", (json_int_t) st.added,
                             "evicted", (json_int_t) st.evicted,
                             "expired", (json_int_t) st.expired,
                             "deleted", (json_int_t) st.deleted,
                             "dropped", (json_int_t) st.dropped,
                             "failed", (json_int_t) st.failed,
                             "torn", (json_int_t) st.torn));

    return json;
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
ngx_http_profile_status_stalls(ngx_http_request_t *r)
{
    char                          *request;
    size_t                         len;
    json_t                        *list;
    ngx_uint_t                     i, n;
    ngx_http_profile_stall_t      *st;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    if (pmcf->stall_zone == NULL) {
        return NULL;
    }

    st = ngx_palloc(r->pool, NGX_HTTP_PROFILE_STALLS
                             * sizeof(ngx_http_profile_stall_t));
    if (st == NULL) {
        return NULL;
    }

    list = json_array();
    n = ngx_http_profile_stalls(pmcf->stall_zone, st);

    for (i = 0; i < n; i++) {

        len = ngx_strlen(st[i].request);
        request = prof_text_utf8((char *) st[i].request, &len);

        (void) json_array_append_new(list,
                   json_pack("{s:I, s:I, s:I, s:s*, s:s, s:s}",
                             "wall", (json_int_t) st[i].wall,
                             "time", (json_int_t) st[i].when,
                             "worker", (json_int_t) st[i].worker,
                             "request", request,
                             "handler", (char *) st[i].handler,
                             "stack", (char *) st[i].stack));

        free(request);
    }

    return list;
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


/* those that a capture of workers asks */

static json_t *
ngx_http_profile_status_workers(void)
{
    json_t      *list;
    ngx_pid_t    pid;
    ngx_uint_t   i;

    list = json_array();

    for (i = 0; i < ngx_http_profile_inbox_workers(); i++) {
        pid = ngx_http_profile_inbox_pid(i);

        if (pid) {
            (void) json_array_append_new(list,
                       json_pack("{s:I, s:I, s:b}",
                                 "worker", (json_int_t) i,
                                 "pid", (json_int_t) pid,
                                 "this", (int) (pid == ngx_pid)));
        }
    }

    return list;
}
