
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Facts of a request in its profile.
 */


#include "core/ngx_http_profile_redact.h"
#include "request/ngx_http_profile_request_private.h"


static void ngx_http_profile_add_trace(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_add_fact(ngx_http_profile_ctx_t *ctx,
    const char *name, ngx_str_t *value);


void
ngx_http_profile_add_facts(ngx_http_profile_ctx_t *ctx)
{
    u_char                    *copy;
    ngx_str_t                  line, value;
    ngx_time_t                *tp;
    ngx_http_request_t        *r;
    ngx_http_core_srv_conf_t  *cscf;
    ngx_http_core_loc_conf_t  *clcf;
    u_char                     buf[NGX_INT64_LEN * 2 + 16];

    r = ctx->request;

    if (ctx->profile == NULL) {
        return;
    }

    ctx->profile->mode = ngx_http_profile_mode(ctx);

    line = ctx->request_line;
    copy = ngx_http_profile_redact(r, &line);
    ngx_http_profile_add_fact(ctx, "request", &line);
    ngx_free(copy);

    ngx_http_profile_add_fact(ctx, "host", &r->headers_in.server);

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    (void) prof_profile_label(ctx->profile, "server",
                              (char *) cscf->server_name.data,
                              cscf->server_name.len);

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    (void) prof_profile_label(ctx->profile, "location",
                              (char *) clcf->name.data, clcf->name.len);

    ngx_http_profile_add_trace(ctx);

    value.data = buf;

    value.len = ngx_sprintf(buf, "%ui", ctx->status) - buf;
    ngx_http_profile_add_fact(ctx, "status", &value);

    tp = ngx_timeofday();
    value.len = ngx_sprintf(buf, "%T.%03M", tp->sec - r->start_sec
                            - (tp->msec < r->start_msec),
                            (tp->msec + 1000 - r->start_msec) % 1000)
                - buf;
    ngx_http_profile_add_fact(ctx, "request_time", &value);

    value.len = ngx_sprintf(buf, "%P", ngx_pid) - buf;
    ngx_http_profile_add_fact(ctx, "worker", &value);

    ngx_str_set(&value, NGINX_VER);
    ngx_http_profile_add_fact(ctx, "software", &value);

    value.data = ctx->id;
    value.len = NGX_HTTP_PROFILE_ID_LEN;
    ngx_http_profile_add_fact(ctx, "id", &value);

    if (ctx->timedout) {
        ngx_str_set(&value, "profile_timeout");
        ngx_http_profile_add_fact(ctx, "ended_by", &value);
    }

    ngx_http_profile_object_facts(ctx);
}


static void
ngx_http_profile_add_trace(ngx_http_profile_ctx_t *ctx)
{
    prof_trace_t  trace;
    char          trace_id[PROF_TRACE_ID_LEN + 1];
    char          span_id[PROF_SPAN_ID_LEN + 1];

    if (ngx_http_profile_trace(ctx->request, &trace) == NGX_OK) {
        prof_trace_text(&trace, trace_id, span_id);

        (void) prof_profile_label(ctx->profile, "trace_id", trace_id,
                                  PROF_TRACE_ID_LEN);
        (void) prof_profile_label(ctx->profile, "span_id", span_id,
                                  PROF_SPAN_ID_LEN);
    }
}


/* adds a fact; if memory is short, the profile is made without this fact */

static void
ngx_http_profile_add_fact(ngx_http_profile_ctx_t *ctx, const char *name,
    ngx_str_t *value)
{
    (void) prof_profile_fact(ctx->profile, name, (char *) value->data,
                             value->len);
}
