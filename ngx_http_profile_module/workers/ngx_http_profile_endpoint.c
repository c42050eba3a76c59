
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "request/ngx_http_profile_request.h"
#include "stages/ngx_http_profile_stages.h"
#include "workers/ngx_http_profile_endpoint.h"


#define NGX_HTTP_PROFILE_ENDPOINTS   8

/* the maximum number of requests that are captured at the same time */
#define NGX_HTTP_PROFILE_AT_ONCE     64

/* captures may take one part in this many of the time */
#define NGX_HTTP_PROFILE_COST_SHARE  10


struct ngx_http_profile_endpoint_s {
    ngx_http_profile_filter_t   filter;
    prof_capture_conf_t         conf;
    prof_merge_t               *merge;
    uint64_t                    start;
    uint64_t                    start_realtime;
    uint64_t                    cost;        /* ns */
    ngx_uint_t                  requests;
    ngx_uint_t                  skipped;
    ngx_uint_t                  traces;      /* requests still to label */
    uint64_t                    lost_traces; /* samples without a trace */
    uint32_t                   *times;       /* us */
    ngx_uint_t                  ntimes;
    unsigned                    used:1;
    unsigned                    traced:1;
    unsigned                    failed:1;    /* memory was short */
};


static ngx_uint_t ngx_http_profile_endpoint_match(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep);
static ngx_uint_t ngx_http_profile_endpoint_located(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep);
static void ngx_http_profile_endpoint_take(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_endpoint_spans(ngx_uint_t mask,
    ngx_http_profile_params_t *params);
static ngx_uint_t ngx_http_profile_endpoint_mode(ngx_uint_t mask);
static ngx_int_t ngx_http_profile_endpoint_start(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep, ngx_uint_t mask);
static void ngx_http_profile_endpoint_add(ngx_http_profile_endpoint_t *ep,
    ngx_http_request_t *r, prof_profile_t *p);
static int ngx_http_profile_endpoint_merge(ngx_http_profile_endpoint_t *ep,
    ngx_http_request_t *r, prof_profile_t *p);
static void ngx_http_profile_endpoint_facts(ngx_http_profile_endpoint_t *ep,
    prof_profile_t *p);
static void ngx_http_profile_endpoint_number(prof_profile_t *p,
    const char *name, ngx_uint_t n);
static void ngx_http_profile_endpoint_forget(ngx_http_profile_endpoint_t *ep);


static ngx_http_profile_endpoint_t
    ngx_http_profile_endpoints[NGX_HTTP_PROFILE_ENDPOINTS];

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nendpoints;


ngx_http_profile_endpoint_t *
ngx_http_profile_endpoint_create(ngx_http_profile_filter_t *filter,
    prof_capture_conf_t *conf, ngx_uint_t traces)
{
    ngx_time_t                   *tp;
    ngx_uint_t                    i;
    ngx_http_profile_endpoint_t  *ep;

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {
        if (!ngx_http_profile_endpoints[i].used) {
            break;
        }
    }

    if (i == NGX_HTTP_PROFILE_ENDPOINTS) {
        ngx_set_errno(NGX_EBUSY);
        return NULL;
    }

    ep = &ngx_http_profile_endpoints[i];

    ngx_memzero(ep, sizeof(ngx_http_profile_endpoint_t));

    ep->filter = *filter;
    ep->conf = *conf;
    ep->traces = traces;
    ep->traced = (traces != 0);
    ep->start = prof_now();

    tp = ngx_timeofday();
    ep->start_realtime = ((uint64_t) tp->sec * 1000 + tp->msec) * 1000000;

    ep->merge = prof_merge_create("endpoint", 0);
    ep->times = ngx_alloc(NGX_HTTP_PROFILE_TIMES_MAX * sizeof(uint32_t),
                          ngx_cycle->log);

    if (ep->merge == NULL || ep->times == NULL) {

        if (ep->merge) {
            prof_merge_destroy(ep->merge);
        }

        ngx_free(ep->times);
        ngx_set_errno(NGX_ENOMEM);

        return NULL;
    }

    ep->used = 1;

    ngx_http_profile_nendpoints++;
    ngx_http_profile_all++;

    return ep;
}


ngx_int_t
ngx_http_profile_endpoint_begin(ngx_http_request_t *r)
{
    uint64_t                      now;
    ngx_uint_t                    i, mask;
    ngx_http_profile_endpoint_t  *ep, *first;

    mask = 0;
    first = NULL;
    now = prof_now();

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {
        ep = &ngx_http_profile_endpoints[i];

        if (!ep->used || ngx_http_profile_endpoint_full(ep)
            || !ngx_http_profile_endpoint_match(r, ep))
        {
            continue;
        }

        if (ep->cost * NGX_HTTP_PROFILE_COST_SHARE > now - ep->start
            || ngx_http_profile_nlive >= NGX_HTTP_PROFILE_AT_ONCE)
        {
            ep->skipped++;
            continue;
        }

        mask |= (ngx_uint_t) 1 << i;
        first = first ? first : ep;
    }

    return mask ? ngx_http_profile_endpoint_start(r, first, mask)
                : NGX_DECLINED;
}


/* compares the request with the conditions that do not need its location */

static ngx_uint_t
ngx_http_profile_endpoint_match(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep)
{
    size_t                     len;
    ngx_str_t                 *name;
    ngx_http_core_srv_conf_t  *cscf;

    len = ngx_strlen(ep->filter.uri);

    if (r->uri.len < len || ngx_memcmp(r->uri.data, ep->filter.uri, len) != 0)
    {
        return 0;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    name = &cscf->server_name;

    return ep->filter.server[0] == '\0'
           || (name->len == ngx_strlen(ep->filter.server)
               && ngx_memcmp(name->data, ep->filter.server, name->len) == 0);
}


static ngx_uint_t
ngx_http_profile_endpoint_located(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep)
{
    ngx_str_t                    *name;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_profile_loc_conf_t  *plcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
    name = &clcf->name;

    if (plcf->console) {
        return 0;
    }

    return ep->filter.location[0] == '\0'
           || (name->len == ngx_strlen(ep->filter.location)
               && ngx_memcmp(name->data, ep->filter.location, name->len) == 0);
}


static ngx_int_t
ngx_http_profile_endpoint_start(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep, ngx_uint_t mask)
{
    uint64_t                 start;
    ngx_http_profile_ctx_t  *ctx;

    start = prof_now();

    ctx = ngx_http_profile_create(r);
    if (ctx == NULL) {
        return NGX_DECLINED;
    }

    /* the client did not ask for a profile, so its response has no id */

    ctx->track->id.len = 0;
    ctx->endpoints = mask;
    ctx->take = ngx_http_profile_endpoint_take;
    ctx->verdict = NGX_HTTP_PROFILE_ADMITTED;
    ctx->decided = 1;
    ctx->conf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
    ctx->trigger.record = 1;

    ngx_http_profile_param_put(&ctx->trigger.params,
                               NGX_HTTP_PROFILE_PARAM_FREQUENCY,
                               ep->conf.frequency);
    ngx_http_profile_param_put(&ctx->trigger.params,
                               NGX_HTTP_PROFILE_PARAM_MODE,
                               ngx_http_profile_endpoint_mode(mask));
    ngx_http_profile_endpoint_spans(mask, &ctx->trigger.params);

    if (ngx_http_profile_start(ctx) != NGX_OK) {
        ctx->endpoints = 0;
        ngx_http_profile_drop(ctx);
        return NGX_DECLINED;
    }

    ep->cost += prof_now() - start;

    ngx_http_profile_run_request(ctx->track);

    return NGX_DONE;
}


/*
 * Returns the mode for a request: allocations if one of the captures counts
 * them.  Requests in the other captures have their times in each mode.
 */

static ngx_uint_t
ngx_http_profile_endpoint_mode(ngx_uint_t mask)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {

        if ((mask & (ngx_uint_t) 1 << i)
            && ngx_http_profile_endpoints[i].conf.mode == PROF_MODE_OBJECT)
        {
            return PROF_MODE_OBJECT;
        }
    }

    return PROF_MODE_WALL;
}


/* measures stages, unless all captures exclude them */

static void
ngx_http_profile_endpoint_spans(ngx_uint_t mask,
    ngx_http_profile_params_t *params)
{
    ngx_uint_t                  i, spans, given;
    ngx_http_profile_filter_t  *f;

    spans = 0;
    given = 1;

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {

        if (mask & (ngx_uint_t) 1 << i) {
            f = &ngx_http_profile_endpoints[i].filter;

            spans |= f->spans;
            given &= f->spans_given;
        }
    }

    if (spans || given) {
        ngx_http_profile_param_put(params, NGX_HTTP_PROFILE_PARAM_SPANS,
                                   spans);
    }
}


/* called when a captured request ends */

static void
ngx_http_profile_endpoint_take(ngx_http_profile_ctx_t *ctx)
{
    uint64_t                      start;
    ngx_uint_t                    i;
    ngx_http_profile_endpoint_t  *ep;

    if (ctx->endpoints == 0) {
        return;
    }

    start = prof_now();

    ngx_http_profile_last_gap(ctx->track);
    ngx_http_profile_end(ctx);

    if (ctx->profile == NULL) {
        return;
    }

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {
        ep = &ngx_http_profile_endpoints[i];

        if (!(ctx->endpoints & (ngx_uint_t) 1 << i)
            || !ngx_http_profile_endpoint_located(ctx->request, ep))
        {
            continue;
        }

        if (ep->filter.requests == 0
            || ngx_http_profile_ticket_take(ep->filter.ticket))
        {
            ngx_http_profile_endpoint_add(ep, ctx->request, ctx->profile);
        }

        ep->cost += prof_now() - start;
    }
}


static void
ngx_http_profile_endpoint_add(ngx_http_profile_endpoint_t *ep,
    ngx_http_request_t *r, prof_profile_t *p)
{
    uint64_t  us;

    if (ep->failed || ngx_http_profile_endpoint_merge(ep, r, p) != PROF_OK) {
        ep->failed = 1;
        return;
    }

    ep->requests++;

    if (ep->ntimes < NGX_HTTP_PROFILE_TIMES_MAX) {
        us = p->wall / 1000;
        ep->times[ep->ntimes++] = (uint32_t) ngx_min(us, UINT32_MAX);
    }
}


static int
ngx_http_profile_endpoint_merge(ngx_http_profile_endpoint_t *ep,
    ngx_http_request_t *r, prof_profile_t *p)
{
    prof_trace_t        trace;
    prof_merge_label_t  labels[2];
    char                trace_id[PROF_TRACE_ID_LEN + 1];
    char                span_id[PROF_SPAN_ID_LEN + 1];

    if (!ep->traced || ngx_http_profile_trace(r, &trace) != NGX_OK) {
        return prof_merge_add(ep->merge, p, NULL, 0);
    }

    if (ep->traces == 0) {
        ep->lost_traces += p->stats.samples;
        return prof_merge_add(ep->merge, p, NULL, 0);
    }

    ep->traces--;

    prof_trace_text(&trace, trace_id, span_id);

    labels[0].name = "trace_id";
    labels[0].value = trace_id;
    labels[0].unit = NULL;

    labels[1].name = "span_id";
    labels[1].value = span_id;
    labels[1].unit = NULL;

    return prof_merge_add(ep->merge, p, labels, 2);
}


ngx_uint_t
ngx_http_profile_endpoint_full(ngx_http_profile_endpoint_t *ep)
{
    return ep->filter.requests
           && ngx_http_profile_ticket_left(ep->filter.ticket) == 0;
}


prof_profile_t *
ngx_http_profile_endpoint_finish(ngx_http_profile_endpoint_t *ep)
{
    prof_profile_t  *p;

    p = prof_merge_finish(ep->merge);
    ep->merge = NULL;

    if (ep->failed) {
        prof_profile_destroy(p);
        p = NULL;
    }

    if (p) {
        p->mode = ep->conf.mode;
        p->stats.lost_traces = ep->lost_traces;

        if (p->start_realtime == 0) {
            p->start_realtime = ep->start_realtime;
            p->frequency = ep->conf.frequency;
            p->frequency_end = ep->conf.frequency;
        }

        ngx_http_profile_endpoint_facts(ep, p);
    }

    ngx_http_profile_endpoint_forget(ep);

    return p;
}


/* a profile without some of its facts is still useful */

static void
ngx_http_profile_endpoint_facts(ngx_http_profile_endpoint_t *ep,
    prof_profile_t *p)
{
    ngx_uint_t  i;
    prof_buf_t  b;

    ngx_http_profile_endpoint_number(p, "requests", ep->requests);
    ngx_http_profile_endpoint_number(p, "skipped", ep->skipped);

    prof_buf_init(&b);

    for (i = 0; i < ep->ntimes; i++) {
        prof_buf_number(&b, ep->times[i]);
        prof_buf_puts(&b, " ");
    }

    if (b.len && !prof_buf_failed(&b)) {
        (void) prof_profile_fact(p, "times", b.data, b.len);
    }

    prof_buf_free(&b);
}


static void
ngx_http_profile_endpoint_number(prof_profile_t *p, const char *name,
    ngx_uint_t n)
{
    u_char  buf[NGX_INT_T_LEN];

    (void) prof_profile_fact(p, name, (char *) buf,
                             ngx_sprintf(buf, "%ui", n) - buf);
}


void
ngx_http_profile_endpoint_cancel(ngx_http_profile_endpoint_t *ep)
{
    prof_merge_destroy(ep->merge);

    ngx_http_profile_endpoint_forget(ep);
}


/* running requests no longer belong to the capture */

static void
ngx_http_profile_endpoint_forget(ngx_http_profile_endpoint_t *ep)
{
    ngx_uint_t               bit;
    ngx_queue_t             *q;
    ngx_http_profile_ctx_t  *ctx;

    bit = (ngx_uint_t) 1 << (ep - ngx_http_profile_endpoints);

    for (q = ngx_queue_head(&ngx_http_profile_live);
         q != ngx_queue_sentinel(&ngx_http_profile_live);
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);
        ctx->endpoints &= ~bit;
    }

    ngx_free(ep->times);

    ep->used = 0;

    ngx_http_profile_nendpoints--;
    ngx_http_profile_all--;
}
