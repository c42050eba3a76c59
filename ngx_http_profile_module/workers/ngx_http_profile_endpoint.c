
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "request/ngx_http_profile_request.h"
#include "stages/ngx_http_profile_stages.h"
#include "core/ngx_http_profile_job.h"
#include "workers/ngx_http_profile_endpoint.h"


/* the maximum number of requests that are captured at the same time */
#define NGX_HTTP_PROFILE_AT_ONCE     64

/* captures may take 1 / NGX_HTTP_PROFILE_COST_SHARE of the time */
#define NGX_HTTP_PROFILE_COST_SHARE  10


struct ngx_http_profile_endpoint_s {
    ngx_http_profile_filter_t   filter;
    prof_capture_conf_t         conf;
    ngx_http_profile_sum_t     *sum;
    uint64_t                    start;
    uint64_t                    cost;        /* ns, of the event loop */
    ngx_uint_t                  requests;
    ngx_uint_t                  skipped;
    ngx_http_profile_seen_t     seen[NGX_HTTP_PROFILE_SEEN];
    ngx_uint_t                  traces;      /* requests still to label */
    uint64_t                    lost_traces; /* samples without a trace */
    uint32_t                   *times;       /* us */
    ngx_uint_t                  ntimes;
    unsigned                    used:1;
    unsigned                    traced:1;
};


static ngx_uint_t ngx_http_profile_endpoint_match(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep);
static ngx_uint_t ngx_http_profile_endpoint_located(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep);
static void ngx_http_profile_endpoint_watch(ngx_http_request_t *r);
static void ngx_http_profile_endpoint_saw(void *data);
static void ngx_http_profile_endpoint_take(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_endpoint_spans(ngx_uint_t mask,
    ngx_http_profile_params_t *params);
static ngx_uint_t ngx_http_profile_endpoint_mode(ngx_uint_t mask);
static ngx_int_t ngx_http_profile_endpoint_start(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep, ngx_uint_t mask);
static void ngx_http_profile_endpoint_skip(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_endpoint_add(ngx_http_profile_endpoint_t *ep,
    ngx_http_request_t *r, ngx_http_profile_part_t *part);
static ngx_uint_t ngx_http_profile_endpoint_trace(
    ngx_http_profile_endpoint_t *ep, ngx_http_request_t *r,
    ngx_http_profile_part_t *part);
static ngx_uint_t ngx_http_profile_endpoint_forget(
    ngx_http_profile_endpoint_t *ep);


static ngx_http_profile_endpoint_t
    ngx_http_profile_endpoints[NGX_HTTP_PROFILE_ENDPOINTS];

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nendpoints;


ngx_http_profile_endpoint_t *
ngx_http_profile_endpoint_create(ngx_http_profile_filter_t *filter,
    prof_capture_conf_t *conf, ngx_uint_t traces)
{
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

    ep->sum = ngx_http_profile_sum_create(conf);
    ep->times = ngx_alloc(NGX_HTTP_PROFILE_TIMES_MAX * sizeof(uint32_t),
                          ngx_cycle->log);

    if (ep->sum == NULL || ep->times == NULL) {

        if (ep->sum) {
            ngx_http_profile_sum_free(ep->sum);
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
    ngx_uint_t                    i, mask, empty;
    ngx_http_profile_endpoint_t  *ep, *first;

    mask = 0;
    empty = 0;
    first = NULL;
    now = prof_now();

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {
        ep = &ngx_http_profile_endpoints[i];

        empty |= ep->used && ep->requests == 0;

        if (!ep->used || ngx_http_profile_endpoint_full(ep)
            || !ngx_http_profile_endpoint_match(r, ep))
        {
            continue;
        }

        if ((ep->cost + ngx_http_profile_sum_cost(ep->sum))
            * NGX_HTTP_PROFILE_COST_SHARE > now - ep->start
            || ngx_http_profile_nlive >= NGX_HTTP_PROFILE_AT_ONCE)
        {
            ep->skipped++;
            continue;
        }

        mask |= (ngx_uint_t) 1 << i;
        first = first ? first : ep;
    }

    if (empty) {
        ngx_http_profile_endpoint_watch(r);
    }

    return mask ? ngx_http_profile_endpoint_start(r, first, mask)
                : NGX_DECLINED;
}


/* a capture that takes no request tells where requests ended instead */

static void
ngx_http_profile_endpoint_watch(ngx_http_request_t *r)
{
    ngx_http_cleanup_t  *cln;

    cln = ngx_http_cleanup_add(r, 0);

    if (cln) {
        cln->handler = ngx_http_profile_endpoint_saw;
        cln->data = r;
    }
}


static void
ngx_http_profile_endpoint_saw(void *data)
{
    ngx_http_request_t *r = data;

    u_char                       *p, *last;
    ngx_uint_t                    i;
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_profile_loc_conf_t  *plcf;
    u_char                        name[NGX_HTTP_PROFILE_SEEN_LEN];

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_is_own(plcf)) {
        return;
    }

    last = name + sizeof(name) - 1;
    p = clcf->name.len ? ngx_slprintf(name, last, "\"%V\"", &clcf->name)
                       : ngx_slprintf(name, last, "no location");

    if (cscf->server_name.len) {
        p = ngx_slprintf(p, last, " of the server \"%V\"",
                         &cscf->server_name);
    }

    *p = '\0';

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {

        if (ngx_http_profile_endpoints[i].used) {
            ngx_http_profile_see(ngx_http_profile_endpoints[i].seen,
                                 (char *) name, 1);
        }
    }
}


/* compares the request with the conditions that do not need its location */

static ngx_uint_t
ngx_http_profile_endpoint_match(ngx_http_request_t *r,
    ngx_http_profile_endpoint_t *ep)
{
    size_t                        len;
    ngx_str_t                    *name;
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_profile_loc_conf_t  *plcf;

    len = ngx_strlen(ep->filter.uri);

    if (r->uri.len < len || ngx_memcmp(r->uri.data, ep->filter.uri, len) != 0)
    {
        return 0;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    plcf = cscf->ctx->loc_conf[ngx_http_profile_module.ctx_index];
    name = &cscf->server_name;

    if (ep->filter.server_number && plcf->number != ep->filter.server_number)
    {
        return 0;
    }

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

    if (ep->filter.location_number
        && plcf->number != ep->filter.location_number)
    {
        return 0;
    }

    /* the profiler's own pages belong to a capture that names their location */

    if (ngx_http_profile_is_own(plcf) && ep->filter.location_number == 0
        && ep->filter.location[0] == '\0')
    {
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
    ngx_http_profile_part_t      *part;
    ngx_http_profile_endpoint_t  *ep;

    if (ctx->endpoints == 0) {
        return;
    }

    start = prof_now();

    if (ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_RECORDED) != NGX_OK) {
        ngx_http_profile_endpoint_skip(ctx);
        return;
    }

    ngx_http_profile_last_gap(ctx->track);
    ngx_http_profile_end(ctx);

    part = ngx_calloc(sizeof(ngx_http_profile_part_t), ngx_cycle->log);

    if (part == NULL || ctx->profile == NULL) {
        ngx_free(part);
        ngx_http_profile_endpoint_skip(ctx);
        return;
    }

    part->profile = ctx->profile;

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {
        ep = &ngx_http_profile_endpoints[i];

        if (!(ctx->endpoints & (ngx_uint_t) 1 << i)
            || !ngx_http_profile_endpoint_located(ctx->request, ep))
        {
            continue;
        }

        if (ngx_http_profile_ticket_take(ep->filter.ticket)) {
            ngx_http_profile_endpoint_add(ep, ctx->request, part);
        }

        ep->cost += prof_now() - start;
    }

    if (part->n == 0 || ngx_http_profile_sum_add(part) != NGX_OK) {
        ngx_free(part);
        return;
    }

    ctx->profile = NULL;
}


/* counts a request that is not captured, because it would cost too much */

static void
ngx_http_profile_endpoint_skip(ngx_http_profile_ctx_t *ctx)
{
    ngx_uint_t                    i;
    ngx_http_profile_endpoint_t  *ep;

    for (i = 0; i < NGX_HTTP_PROFILE_ENDPOINTS; i++) {
        ep = &ngx_http_profile_endpoints[i];

        if ((ctx->endpoints & (ngx_uint_t) 1 << i)
            && ngx_http_profile_endpoint_located(ctx->request, ep))
        {
            ep->skipped++;
        }
    }
}


static void
ngx_http_profile_endpoint_add(ngx_http_profile_endpoint_t *ep,
    ngx_http_request_t *r, ngx_http_profile_part_t *part)
{
    uint64_t                    us;
    ngx_http_profile_sum_to_t  *to;

    to = &part->to[part->n++];

    to->sum = ep->sum;
    to->traced = ngx_http_profile_endpoint_trace(ep, r, part);

    ep->requests++;

    if (ep->ntimes < NGX_HTTP_PROFILE_TIMES_MAX) {
        us = part->profile->wall / 1000;
        ep->times[ep->ntimes++] = (uint32_t) ngx_min(us, UINT32_MAX);
    }
}


/* returns whether the request gets its trace as labels */

static ngx_uint_t
ngx_http_profile_endpoint_trace(ngx_http_profile_endpoint_t *ep,
    ngx_http_request_t *r, ngx_http_profile_part_t *part)
{
    prof_trace_t  trace;

    if (!ep->traced || ngx_http_profile_trace(r, &trace) != NGX_OK) {
        return 0;
    }

    if (ep->traces == 0) {
        ep->lost_traces += part->profile->stats.samples;
        return 0;
    }

    ep->traces--;

    prof_trace_text(&trace, part->trace_id, part->span_id);

    return 1;
}


ngx_uint_t
ngx_http_profile_endpoint_full(ngx_http_profile_endpoint_t *ep)
{
    return ep->filter.requests
           && ngx_http_profile_ticket_left(ep->filter.ticket) == 0;
}


ngx_http_profile_sum_t *
ngx_http_profile_endpoint_finish(ngx_http_profile_endpoint_t *ep)
{
    ngx_http_profile_sum_t  *sum;

    sum = ep->sum;

    sum->requests = ep->requests;
    sum->skipped = ep->skipped;
    ngx_memcpy(sum->seen, ep->seen, sizeof(ep->seen));
    sum->lost_traces = ep->lost_traces;
    sum->times = ep->times;
    sum->ntimes = ep->ntimes;

    ep->times = NULL;

    sum->unfinished = ngx_http_profile_endpoint_forget(ep);

    return sum;
}


void
ngx_http_profile_endpoint_cancel(ngx_http_profile_endpoint_t *ep)
{
    ngx_http_profile_sum_free(ep->sum);

    (void) ngx_http_profile_endpoint_forget(ep);
}


/*
 * Takes the running requests out of the capture, which ends.  Returns the
 * number of those that are in its location.
 */

static ngx_uint_t
ngx_http_profile_endpoint_forget(ngx_http_profile_endpoint_t *ep)
{
    ngx_uint_t               n, bit;
    ngx_queue_t             *q;
    ngx_http_profile_ctx_t  *ctx;

    n = 0;
    bit = (ngx_uint_t) 1 << (ep - ngx_http_profile_endpoints);

    for (q = ngx_queue_head(&ngx_http_profile_live);
         q != ngx_queue_sentinel(&ngx_http_profile_live);
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);

        if (ctx->endpoints & bit) {
            ctx->endpoints &= ~bit;
            n += ngx_http_profile_endpoint_located(ctx->request, ep);
        }
    }

    ngx_free(ep->times);

    ep->used = 0;

    ngx_http_profile_nendpoints--;
    ngx_http_profile_all--;

    return n;
}
