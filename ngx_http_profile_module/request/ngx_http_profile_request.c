
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The life of a triggered request, in the order of time.
 *
 * The request begins in the POST_READ phase, and its capture with it.  The
 * location of the request decides about its trigger.  A request may pass
 * several locations, and the decision of the last one holds.
 *
 * The response either is recorded or is replaced.  Recorded: the original
 * response is sent, its header contains the profile's id, and the profile is
 * stored when the request ends.  Replaced: the status of the original response
 * is noted, and its body is discarded.  When nginx has nothing left to send,
 * the capture ends, a job makes the profile, and the reply is sent instead.
 *
 * The filters are below all filters that produce the body (for example gzip and
 * range) and above the filters that frame it for the protocol.
 */


#include "core/ngx_http_profile_fate.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_log_limit.h"
#include "core/ngx_http_profile_loss.h"
#include "request/ngx_http_profile_request_private.h"
#include "stages/ngx_http_profile_stages.h"
#include "store/ngx_http_profile_store.h"


/* ms between checks whether the request's thread operations have ended */
#define NGX_HTTP_PROFILE_CUT_AGAIN  10

/* turns and gaps may differ from a request's time by this, or by one part */
#define NGX_HTTP_PROFILE_SUM_NS     1000000
#define NGX_HTTP_PROFILE_SUM_PART   100


static void ngx_http_profile_locate(ngx_http_profile_track_t *tr);
static void ngx_http_profile_apply_trigger(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_content(ngx_http_profile_track_t *tr);
static void ngx_http_profile_refuse(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_filter_header(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_send_recorded(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_replace(ngx_http_profile_ctx_t *ctx);
static ngx_int_t ngx_http_profile_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static void ngx_http_profile_turn_ended(ngx_http_profile_track_t *tr);
static ngx_uint_t ngx_http_profile_check_all(void);
static void ngx_http_profile_check_complete(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_check_sum(ngx_http_profile_track_t *tr);
static ngx_int_t ngx_http_profile_send_reply(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_timeout(ngx_event_t *ev);
static void ngx_http_profile_cut(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_record_capture(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_cleanup(void *data);
static void ngx_http_profile_forget(ngx_http_profile_ctx_t *ctx);


ngx_queue_t  ngx_http_profile_live = {
    &ngx_http_profile_live, &ngx_http_profile_live
};

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nlive;


/* captures of this worker that count for profile_max_captures */

ngx_uint_t  ngx_http_profile_slots;


PROF_HOT_DATA ngx_http_output_header_filter_pt
    ngx_http_profile_next_header_filter;
PROF_HOT_DATA ngx_http_output_body_filter_pt
    ngx_http_profile_next_body_filter;


static ngx_str_t  ngx_http_profile_too_many =
    ngx_string("too many captures are running in this worker\n");

static ngx_str_t  ngx_http_profile_others_wrong =
    ngx_string("profile_seconds and profile_requests are for flamegraphs in "
               "the modes \"wall\" and \"cpu\"\n");

static ngx_str_t  ngx_http_profile_crowded =
    ngx_string("too many captures are running in this worker");

static ngx_str_t  ngx_http_profile_too_many_jobs =
    ngx_string("too many profiles wait to be made in this worker\n");

static ngx_str_t  ngx_http_profile_not_made =
    ngx_string("the profile could not be made, see the error log\n");


/* observes the event loop and the stages of captured requests */

void
ngx_http_profile_request_open(void)
{
    ngx_http_profile_observers.sampling = ngx_http_profile_arm_phases;
    ngx_http_profile_observers.turn_begins = ngx_http_profile_begin_turn;
    ngx_http_profile_observers.turn_ended = ngx_http_profile_turn_ended;
    ngx_http_profile_observers.event_added = ngx_http_profile_wrap_upstreams;

    ngx_http_profile_stage_observers.located = ngx_http_profile_locate;
    ngx_http_profile_stage_observers.content = ngx_http_profile_content;
}


ngx_int_t
ngx_http_profile_filter_init(ngx_conf_t *cf)
{
    ngx_http_profile_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_profile_header_filter;

    ngx_http_profile_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_profile_body_filter;

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_begin(ngx_http_request_t *r)
{
    ngx_http_profile_ctx_t      *ctx;
    ngx_http_profile_trigger_t   t;

    ngx_memzero(&t, sizeof(ngx_http_profile_trigger_t));

    if (ngx_http_profile_find_trigger(r, &t) != NGX_OK
        || ngx_http_profile_access_any(r, &t) != NGX_OK
        || ngx_http_profile_parse_trigger(r, &t) == NGX_ERROR)
    {
        return NGX_DECLINED;
    }

    ctx = ngx_http_profile_create(r);
    if (ctx == NULL) {
        return NGX_DECLINED;
    }

    ctx->trigger = t;
    ctx->others = ngx_http_profile_param_given(&t.params,
                                               NGX_HTTP_PROFILE_PARAM_SECONDS)
                  || ngx_http_profile_param_given(&t.params,
                                              NGX_HTTP_PROFILE_PARAM_REQUESTS);

    if (t.order.len) {
        ngx_memcpy(ctx->id, t.order.data, NGX_HTTP_PROFILE_ID_LEN);
    }

    if (ngx_http_profile_start(ctx) != NGX_OK) {
        ngx_http_profile_forget(ctx);
        return NGX_DECLINED;
    }

    ngx_http_profile_locate(ctx->track);
    ngx_http_profile_run_request(ctx->track);

    return NGX_DONE;
}


ngx_http_profile_ctx_t *
ngx_http_profile_create(ngx_http_request_t *r)
{
    uint64_t                   now;
    ngx_pool_cleanup_t        *cln;
    ngx_http_profile_ctx_t    *ctx;
    ngx_http_profile_track_t  *tr;

    now = prof_now();

    tr = ngx_http_profile_track(r);
    if (tr == NULL) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_profile_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_profile_ctx_t));

    if (ngx_http_profile_make_id(ctx->id, r->connection->log) != NGX_OK) {
        return NULL;
    }

    ctx->request = r;
    ctx->request_line = r->request_line;
    ctx->track = tr;

    tr->ctx = ctx;
    tr->prepared = now;
    tr->timer = &ctx->timer;
    tr->id.len = NGX_HTTP_PROFILE_ID_LEN;
    tr->id.data = ctx->id;

    cln->handler = ngx_http_profile_cleanup;

    ngx_queue_insert_tail(&ngx_http_profile_live, &ctx->queue);
    ngx_http_profile_nlive++;

    ngx_http_profile_observers.polling = ngx_http_profile_check_all;

    return ctx;
}


ngx_int_t
ngx_http_profile_start(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t           *r;
    prof_capture_conf_t           conf;
    ngx_http_profile_loc_conf_t  *plcf;

    r = ctx->request;
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    ctx->frequency = ngx_http_profile_param(&ctx->trigger.params,
                                            NGX_HTTP_PROFILE_PARAM_FREQUENCY,
                                            plcf->frequency);

    /* before a request is admitted, it can only lower the frequency */

    conf.frequency = ngx_min(ctx->frequency, plcf->frequency);
    conf.mode = PROF_MODE_WALL;
    conf.memory = plcf->buffer;
    ctx->track->spans = ngx_http_profile_param(&ctx->trigger.params,
                                               NGX_HTTP_PROFILE_PARAM_SPANS,
                                               (ngx_uint_t) plcf->spans);

    /* the profile of this request is not shown */

    if (ctx->trigger.error.len || ctx->others) {
        conf.frequency = PROF_FREQUENCY_MIN;
        conf.memory = PROF_MEMORY_MIN;
    }

    if (ngx_http_profile_arm_sampler(plcf->frequency) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->track->capture = prof_capture_create(&conf);

    if (ctx->track->capture == NULL) {
        ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, ngx_errno,
                             "profile: cannot allocate the memory of a "
                             "capture");

        ngx_http_profile_release_sampler();
        return NGX_ERROR;
    }

    ctx->tracked = 1;
    ngx_http_profile_stages_begin(ctx->track);

    if (ctx->verdict == NGX_HTTP_PROFILE_ADMITTED) {
        ngx_http_profile_apply_trigger(ctx);
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: capture %*s begins, %ui Hz, timeout %M",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id,
                   (ngx_uint_t) conf.frequency, plcf->timeout);

    ctx->timer.handler = ngx_http_profile_timeout;
    ctx->timer.data = ctx;
    ctx->timer.log = ngx_cycle->log;
    ctx->timer.cancelable = 1;

    ngx_add_timer(&ctx->timer, plcf->timeout);

    return NGX_OK;
}


/*
 * Called when the configuration in force changes: in the server, and in each
 * location.  Takes the trigger out if the configuration may permit the
 * trigger, and puts it back otherwise.  If memory is short, the trigger stays
 * in the request, and ngx_http_profile_admit() tries again.
 */

static void
ngx_http_profile_locate(ngx_http_profile_track_t *tr)
{
    ngx_uint_t                    conditional;
    ngx_http_request_t           *r;
    ngx_http_profile_ctx_t       *ctx;
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_profile_srv_conf_t  *pscf;
    ngx_http_profile_loc_conf_t  *plcf;

    r = tr->request;
    ctx = tr->ctx;

    if (ctx->decided) {
        return;
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_access_address(r, plcf) != NGX_OK) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: location of \"%V\" does not permit the "
                       "trigger", &r->uri);

        ngx_http_profile_unstrip(ctx);
        return;
    }

    if (ngx_http_profile_strip(ctx) != NGX_OK) {
        ngx_http_profile_unstrip(ctx);
        return;
    }

    /*
     * If profile_if can still refuse the request, the capture stays at the
     * lower frequency.  Before the request has a location, any location of the
     * server may have a condition.
     */

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    conditional = (r->loc_conf == cscf->ctx->loc_conf)
                  ? pscf->conditional : (plcf->condition != NULL);

    if (!conditional) {
        ngx_http_profile_apply_trigger(ctx);
    }
}


/*
 * Applies the trigger's frequency and mode to the running capture, since the
 * client is permitted now.
 */

static void
ngx_http_profile_apply_trigger(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_loc_conf_t  *plcf;

    if (ctx->track->capture == NULL || ctx->trigger.error.len || ctx->others)
    {
        return;
    }

    plcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_profile_module);

    if (!ctx->unfolded) {
        ctx->unfolded = 1;

        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ctx->request->connection->log, 0,
                       "profile: capture at the full frequency, %ui Hz",
                       (ngx_uint_t) ctx->frequency);

        prof_capture_set_frequency(ngx_http_profile_sampler(),
                                   ctx->track->capture, ctx->frequency);
    }

    if (ngx_http_profile_param(&ctx->trigger.params,
                               NGX_HTTP_PROFILE_PARAM_MODE, plcf->mode)
        == PROF_MODE_OBJECT)
    {
        ngx_http_profile_object_begin(ctx);
    }
}


ngx_http_profile_ctx_t *
ngx_http_profile_find(ngx_http_request_t *r)
{
    ngx_http_profile_track_t  *tr;

    if (ngx_http_profile_nlive == 0) {
        return NULL;
    }

    tr = ngx_http_profile_find_track(r);

    return tr ? tr->ctx : NULL;
}


/*
 * A request whose trigger is wrong gets the error now, and its content is not
 * made.  Returns NGX_DECLINED, or the result of a checker of nginx's phase
 * engine.
 */

static ngx_int_t
ngx_http_profile_content(ngx_http_profile_track_t *tr)
{
    ngx_int_t                rc;
    ngx_http_request_t      *r;
    ngx_http_profile_ctx_t  *ctx;

    r = tr->request;
    ctx = tr->ctx;

    if (ctx->decided || ngx_http_profile_admit(ctx) != NGX_OK
        || ctx->reply.status == 0)
    {
        return NGX_DECLINED;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc == NGX_OK) {
        rc = ngx_http_profile_send_reply(ctx);
    }

    ngx_http_finalize_request(r, rc);

    return NGX_OK;
}


/*
 * Decides for the current location of the request; another location decides
 * again.  Returns NGX_OK if the request is admitted; ctx->reply is set if the
 * reply is an error.  Returns NGX_DECLINED if the request is refused.
 */

ngx_int_t
ngx_http_profile_admit(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t            *r;
    ngx_http_profile_loc_conf_t   *plcf;
    ngx_http_profile_main_conf_t  *pmcf;

    r = ctx->request;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ctx->verdict != NGX_HTTP_PROFILE_UNDECIDED && ctx->conf == plcf) {
        return ctx->verdict == NGX_HTTP_PROFILE_ADMITTED ? NGX_OK
                                                         : NGX_DECLINED;
    }

    ctx->conf = plcf;

    if (ngx_http_profile_access(r, &ctx->trigger, plcf) != NGX_OK) {
        ngx_http_profile_refuse(ctx);
        return NGX_DECLINED;
    }

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    ctx->verdict = NGX_HTTP_PROFILE_ADMITTED;

    if (ngx_http_profile_strip(ctx) != NGX_OK) {
        ngx_http_profile_refuse(ctx);
        return NGX_DECLINED;
    }

    if (ctx->timer.timer_set) {
        ngx_add_timer(&ctx->timer, plcf->timeout);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: trigger admitted, captures: %ui of %ui",
                   ngx_http_profile_slots, pmcf->max_captures);

    if (ctx->trigger.error.len) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: wrong trigger: %V", &ctx->trigger.error);

        ngx_http_profile_set_error(ctx, ctx->trigger.help
                                        ? NGX_HTTP_OK : NGX_HTTP_BAD_REQUEST,
                                   &ctx->trigger.error);
        return NGX_OK;
    }

    if (ctx->others
        && (ctx->trigger.record
            || ngx_http_profile_mode(ctx) == PROF_MODE_OBJECT))
    {
        ngx_http_profile_set_error(ctx, NGX_HTTP_BAD_REQUEST,
                                   &ngx_http_profile_others_wrong);
        return NGX_OK;
    }

    if (ctx->slot) {
        return NGX_OK;
    }

    if (ngx_http_profile_slots >= pmcf->max_captures) {

        /* the client gets the original response, but no profile is stored */

        if (ctx->trigger.record) {
            ctx->crowded = 1;
            return NGX_OK;
        }

        ctx->track->lost = NGX_HTTP_PROFILE_LOSS_SLOTS;
        ngx_http_profile_lose(ctx->track->lost, r->connection->log);

        ngx_http_profile_set_error(ctx, NGX_HTTP_TOO_MANY_REQUESTS,
                                   &ngx_http_profile_too_many);
        return NGX_OK;
    }

    ctx->slot = 1;
    ngx_http_profile_slots++;

    if (!ctx->fated) {
        ctx->fated = 1;
        ngx_http_profile_fate_add(ctx->id);
    }

    ngx_http_profile_apply_trigger(ctx);

    return NGX_OK;
}


static void
ngx_http_profile_refuse(ngx_http_profile_ctx_t *ctx)
{
    ctx->verdict = NGX_HTTP_PROFILE_REFUSED;

    if (ctx->slot) {
        ctx->slot = 0;
        ngx_http_profile_slots--;
    }

    ngx_http_profile_unstrip(ctx);
}


void
ngx_http_profile_set_error(ngx_http_profile_ctx_t *ctx, ngx_uint_t status,
    ngx_str_t *text)
{
    ctx->reply.status = status;
    ctx->reply.body = *text;
    ngx_str_set(&ctx->reply.content_type, "text/plain");
}


/* while no request is captured, the filters cost only this check */

PROF_HOT ngx_int_t
ngx_http_profile_header_filter(ngx_http_request_t *r)
{
    if (ngx_http_profile_nlive == 0) {
        return ngx_http_profile_next_header_filter(r);
    }

    return ngx_http_profile_filter_header(r);
}


__attribute__((noinline)) static ngx_int_t
ngx_http_profile_filter_header(ngx_http_request_t *r)
{
    ngx_uint_t               store;
    ngx_http_profile_ctx_t  *ctx;

    ctx = (r == r->main) ? ngx_http_profile_find(r) : NULL;

    if (ctx == NULL || !ctx->tracked || ctx->decided) {
        return ngx_http_profile_next_header_filter(r);
    }

    /* a request that did not reach the content phase is decided here */

    if (ngx_http_profile_admit(ctx) != NGX_OK) {
        ngx_http_profile_drop(ctx);
        return ngx_http_profile_next_header_filter(r);
    }

    if (ctx->trigger.record && ctx->reply.status == 0) {
        return ngx_http_profile_send_recorded(ctx);
    }

    /* nginx does not wait for a reply that replaces such a response */

    if (r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS
        || r->filter_finalize)
    {
        store = ngx_http_profile_store(r) && ctx->reply.status == 0
                && !ctx->others;

        ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                      "profile: a %s cannot be replaced%s",
                      r->filter_finalize ? "response of a filter"
                                         : "switch of protocols",
                      store ? ", recording it" : "");

        if (store) {
            return ngx_http_profile_send_recorded(ctx);
        }

        ngx_http_profile_drop(ctx);
        return ngx_http_profile_next_header_filter(r);
    }

    return ngx_http_profile_replace(ctx);
}


/* sends the original response, with the profile's id in its header */

static ngx_int_t
ngx_http_profile_send_recorded(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: record %*s, response is sent, too many captures: "
                   "%d",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id,
                   (int) ctx->crowded);

    ctx->decided = 1;
    ctx->status = r->headers_out.status;

    rc = ngx_http_profile_private(r);

    if (ctx->crowded) {
        ngx_http_profile_lose(NGX_HTTP_PROFILE_LOSS_SLOTS,
                              r->connection->log);
        ctx->track->lost = NGX_HTTP_PROFILE_LOSS_SLOTS;

        if (rc == NGX_OK) {
            (void) ngx_http_profile_add_header(r, "X-Profile-Dropped",
                                               &ngx_http_profile_crowded);
        }

        ngx_http_profile_drop(ctx);

        return ngx_http_profile_next_header_filter(r);
    }

    if (rc == NGX_ERROR
        || (rc == NGX_OK
            && (ngx_http_profile_add_id(r, ctx->id) != NGX_OK
                || ngx_http_profile_add_link(r, ctx->id) != NGX_OK))
        || (ctx->trigger.order.len
            && ngx_http_profile_request_observers.order_used(r) != NGX_OK))
    {
        ngx_http_profile_drop(ctx);

        return ngx_http_profile_next_header_filter(r);
    }

    ctx->record = 1;

    /* profile_timeout has ended the capture already */

    if (ctx->track->capture == NULL) {
        (void) ngx_http_profile_record(ctx);
        ngx_http_profile_drop(ctx);
    }

    return ngx_http_profile_next_header_filter(r);
}


static ngx_int_t
ngx_http_profile_replace(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: replace response, status %ui",
                   r->headers_out.status);

    ctx->status = r->headers_out.status;
    ctx->decided = 1;
    ctx->sink = 1;

    if (ctx->timedout) {
        ngx_add_timer(&ctx->timer, 1);
    }

    if (ctx->status == 0) {

        /* nginx logs 9 for a response of HTTP/0.9, which has no status */

        ctx->status = 9;
    }

    /* ngx_http_header_filter() would set these */

    r->header_sent = 1;

    if (r->method == NGX_HTTP_HEAD
        || r->headers_out.status == NGX_HTTP_NO_CONTENT
        || r->headers_out.status == NGX_HTTP_NOT_MODIFIED)
    {
        r->header_only = 1;
    }

    if (r->header_only) {
        r->connection->buffered |= NGX_HTTP_PROFILE_BUFFERED;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    if (ngx_http_profile_nlive == 0) {
        return ngx_http_profile_next_body_filter(r, in);
    }

    return ngx_http_profile_filter_body(r, in);
}


__attribute__((noinline)) ngx_int_t
ngx_http_profile_filter_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_profile_ctx_t  *ctx;

    ctx = ngx_http_profile_find(r);

    if (ctx == NULL || !ctx->sink) {
        return ngx_http_profile_next_body_filter(r, in);
    }

    /*
     * The bit is set only at the end of the response: code that flushes, as
     * Lua's ngx.flush(true), waits until nothing is buffered.  If an upstream
     * fails midway, nginx sends only a flush and finalizes the request.
     */

    for ( /* void */ ; in; in = in->next) {
        in->buf->pos = in->buf->last;
        in->buf->file_pos = in->buf->file_last;

        if (in->buf->last_buf || (in->buf->flush && r->upstream)) {
            r->connection->buffered |= NGX_HTTP_PROFILE_BUFFERED;
        }
    }

    return NGX_OK;
}


/*
 * The turn may have set callbacks of an upstream, which are replaced now.  It
 * may also have completed the response.
 */

static void
ngx_http_profile_turn_ended(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_wrap_upstreams(tr);
    ngx_http_profile_check_complete(tr->ctx);
}


/*
 * Checks all requests before a poll, because code that runs outside of a
 * request's turns may finalize the request.  Returns 1 if a request was
 * completed; the poll must not wait long then, since the completion may post
 * an event.
 */

PROF_HOT static ngx_uint_t
ngx_http_profile_check_all(void)
{
    ngx_uint_t               found;
    ngx_queue_t             *q, *next;
    ngx_http_profile_ctx_t  *ctx;

    found = 0;

    for (q = ngx_queue_head(&ngx_http_profile_live);
         q != ngx_queue_sentinel(&ngx_http_profile_live);
         q = next)
    {
        next = ngx_queue_next(q);
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);

        if (ctx->tracked) {
            ngx_http_profile_check_complete(ctx);
            found |= !ctx->tracked;
        }
    }

    return found;
}


/*
 * Ends the capture and starts the job, if nginx has completed the response that
 * is discarded: the request is finalized, and no filter holds a part of the
 * response.
 */

static void
ngx_http_profile_check_complete(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_event_t         *wev;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (!ctx->tracked || !ctx->sink
        || r->http_state != NGX_HTTP_WRITING_REQUEST_STATE
        || r->buffered
        || r->postponed
        || (r->connection->buffered & NGX_HTTP_GZIP_BUFFERED))
    {
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: original response complete");

    /* without a job, no memory is taken for the profile */

    if (ctx->reply.status == 0 && !ctx->others) {

        rc = ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_ASKED);

        if (rc != NGX_OK) {
            ctx->track->lost = ngx_http_profile_loss_of(rc);
            ngx_http_profile_lose(ctx->track->lost, r->connection->log);

            if (rc == NGX_BUSY) {
                ngx_http_profile_set_error(ctx, NGX_HTTP_TOO_MANY_REQUESTS,
                                           &ngx_http_profile_too_many_jobs);

            } else {
                ngx_http_profile_set_error(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           &ngx_http_profile_not_made);
            }
        }
    }

    ngx_http_profile_end(ctx);
    ngx_http_profile_end_tracking(ctx);
    ngx_http_profile_account_own(ctx->track, ctx->timedout);

    r->write_event_handler = ngx_http_profile_writer;

    wev = r->connection->write;

    if (wev->timer_set && !wev->delayed) {
        ngx_del_timer(wev);
    }

    if (ctx->reply.status == 0 && !ctx->others) {

        ngx_http_profile_add_facts(ctx);

        if (ctx->profile && ngx_http_profile_render(ctx, 1) == NGX_OK) {
            return;
        }

        ngx_http_profile_set_error(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                   &ngx_http_profile_not_made);
    }

    ctx->reply.ready = 1;
    ngx_post_event(wev, &ngx_posted_events);
}


/* makes the profile of the capture, unless the profile exists already */

void
ngx_http_profile_end(ngx_http_profile_ctx_t *ctx)
{
    u_char          *p;
    ngx_str_t        method, path;
    prof_stats_t     stats;
    prof_capture_t  *c;
    u_char           title[NGX_MAX_ERROR_STR];

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    c = ctx->track->capture;

    if (c == NULL) {
        return;
    }

    prof_turn_end(ngx_http_profile_sampler(), c);

    ngx_http_profile_check_sum(ctx->track);

    /* nginx has set its time at the poll before the last turn */

    ngx_time_update();

    if (ctx->profile == NULL && ctx->reply.status == 0 && !ctx->others) {
        ngx_http_profile_sent(ctx->request, &method, &path);

        p = ngx_slprintf(title, title + sizeof(title) - 1, "%V %V", &method,
                         &path);
        *p = '\0';

        ngx_http_profile_object_end(ctx);

        ctx->profile = prof_capture_finish(c, (char *) title);
    }

    prof_capture_totals(c, &stats, NULL, NULL, NULL);
    ctx->track->samples = stats.samples;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ctx->request->connection->log, 0,
                   "profile: capture %*s ends, %uL samples",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id,
                   (uint64_t) stats.samples);

    if (!ngx_http_profile_object_take(ctx)) {

        if (ctx->profile) {
            prof_capture_settle(c, ctx->profile);
        }

        prof_capture_destroy(c);
    }

    ctx->track->capture = NULL;
}


/*
 * Turns and gaps must add up to the time of the request.  Code that is not seen
 * as a turn may have ended the request: then the time since the last turn is
 * shown as not tracked.
 */

static void
ngx_http_profile_check_sum(ngx_http_profile_track_t *tr)
{
    uint64_t   now, counted;
    uintptr_t  frame;

    static char  name[] = "untracked";

    now = prof_now();
    counted = prof_capture_counted(tr->capture);

    if (!tr->begun || now <= counted
        || now - counted < NGX_HTTP_PROFILE_SUM_NS
        || (now - counted) * NGX_HTTP_PROFILE_SUM_PART < now - tr->start)
    {
        return;
    }

    ngx_log_error(NGX_LOG_INFO, tr->request->connection->log, 0,
                  "profile: %uL ns at the end of the request were not tracked",
                  now - counted);

    frame = prof_capture_name(tr->capture, name, sizeof(name) - 1);

    prof_capture_untracked(tr->capture, frame, now);
}


void
ngx_http_profile_end_tracking(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->tracked) {
        ngx_http_profile_stages_end(ctx->track);
        ctx->tracked = 0;
        ngx_http_profile_release_sampler();
    }
}


/*
 * Replaces ngx_http_writer() when the original response is complete, and for
 * long responses of the console.  A filter above may still hold a part of a
 * response that failed midway; this part is not sent.
 */

void
ngx_http_profile_writer(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_profile_ctx_t    *ctx;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;

        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ctx = ngx_http_profile_find(r);

    /* a capture that does not replace the response goes on beside it */

    if (ctx && !ctx->sink) {
        ctx = NULL;
    }

    if (ctx && ctx->others && ctx->reply.status == 0) {
        c->buffered &= ~NGX_HTTP_PROFILE_BUFFERED;
        ngx_http_profile_reply_clean(r);

        rc = ngx_http_profile_request_observers.others(ctx);

        ngx_http_finalize_request(r, rc);
        return;
    }

    if (ctx && !ctx->reply.ready) {

        /* the job is not ready, so no timeout for the client is set */

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    rc = ctx ? ngx_http_profile_send_reply(ctx)
             : ngx_http_profile_send_rest(r);

    if (rc == NGX_ERROR) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    if (c->buffered) {

        if (!wev->delayed) {
            ngx_add_timer(wev, clcf->send_timeout);
        }

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_profile_send_reply(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_str_t            body;
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: send reply, status %ui, %uz bytes",
                   ctx->reply.status, ctx->reply.body.len);

    r->connection->buffered &= ~NGX_HTTP_PROFILE_BUFFERED;

    if (ngx_http_profile_reply_header(ctx) != NGX_OK) {
        ngx_http_profile_drop(ctx);
        return NGX_ERROR;
    }

    body = ctx->reply.body;

    /* without a context the filters pass the reply on */

    ngx_http_profile_drop(ctx);

    rc = ngx_http_profile_next_header_filter(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_profile_send(r, &body);
}


/*
 * profile_timeout has passed: the capture ends.  The response of a recorded
 * request continues.
 */

static void
ngx_http_profile_timeout(ngx_event_t *ev)
{
    ngx_http_profile_ctx_t  *ctx;

    ctx = ev->data;

    if (ctx->verdict == NGX_HTTP_PROFILE_REFUSED) {
        ngx_http_profile_drop(ctx);
        return;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ctx->request->connection->log, 0,
                   "profile: capture %*s timed out",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id);

    ctx->timedout = 1;

    if (ctx->record) {
        ngx_http_profile_record_capture(ctx);
        ngx_http_profile_drop(ctx);
        return;
    }

    ngx_http_profile_last_gap(ctx->track);
    ngx_http_profile_end(ctx);

    if (ctx->sink && ctx->tracked) {
        ngx_http_profile_cut(ctx);
    }
}


/*
 * Ends a response that no client receives.  A response that is replaced by its
 * profile may be endless.  After the capture, the rest of the response is of
 * no use.  The code that makes it is stopped as if the client had
 * disconnected, but the request stays, for the profile.
 */

static void
ngx_http_profile_cut(ngx_http_profile_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_http_cleanup_t  *cln;

    r = ctx->request;
    c = r->connection;

    /* thread operations of the request use its buffers */

    if (r->blocked) {
        ngx_add_timer(&ctx->timer, NGX_HTTP_PROFILE_CUT_AGAIN);
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "profile: cut response");

    ngx_http_profile_unwrap(ctx->track);

    /*
     * As in ngx_http_terminate_request().  The handlers may finalize requests,
     * so one more reference keeps the main request.
     */

    r->count++;

    cln = r->cleanup;
    r->cleanup = NULL;

    for ( /* void */ ; cln; cln = cln->next) {
        if (cln->handler) {
            cln->handler(cln->data);
        }
    }

    r->count = r->discard_body ? 2 : 1;
    r->posted_requests = NULL;
    r->postponed = NULL;
    r->buffered = 0;

    c->data = r;
    c->buffered &= NGX_LOWLEVEL_BUFFERED;
    c->buffered |= NGX_HTTP_PROFILE_BUFFERED;
    c->write->delayed = 0;

    if (r->reading_body) {
        r->keepalive = 0;
        r->lingering_close = 1;
    }

    /* ngx_http_finalize_request() sets these when data is left to send */

    r->http_state = NGX_HTTP_WRITING_REQUEST_STATE;
    r->read_event_handler = r->discard_body
                            ? ngx_http_discarded_request_body_handler
                            : ngx_http_test_reading;

    ngx_http_profile_check_complete(ctx);
}


/* ends the capture, and makes its profile if a job can be started */

static void
ngx_http_profile_record_capture(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_RECORDED);

    if (rc != NGX_OK) {
        ctx->track->lost = ngx_http_profile_loss_of(rc);
        ngx_http_profile_lose(ctx->track->lost, ngx_cycle->log);
        return;
    }

    ngx_http_profile_last_gap(ctx->track);
    ngx_http_profile_end(ctx);

    (void) ngx_http_profile_record(ctx);
}


/* starts a job that stores the profile; the request may end before the job */

ngx_int_t
ngx_http_profile_record(ngx_http_profile_ctx_t *ctx)
{
    ngx_int_t  rc;

    ngx_http_profile_add_facts(ctx);

    rc = ctx->profile ? ngx_http_profile_render(ctx, 0) : NGX_ERROR;

    if (rc != NGX_OK) {
        ctx->track->lost = ngx_http_profile_loss_of(rc);
        ngx_http_profile_lose(ctx->track->lost, ngx_cycle->log);
    }

    return rc;
}


/*
 * The request ends.  Most of its data is valid, but its pool must not be used
 * for allocations.
 */

static void
ngx_http_profile_cleanup(void *data)
{
    ngx_http_profile_ctx_t *ctx = data;

    ngx_http_profile_render_abandon(ctx);

    if (ctx->request == NULL) {
        return;
    }

    if (ctx->take) {
        ctx->take(ctx);

    } else if (ctx->verdict == NGX_HTTP_PROFILE_ADMITTED
               && (ctx->record || ctx->trigger.record)
               && !ctx->crowded && ctx->reply.status == 0)
    {
        /* an admitted request without a response is recorded as well */

        if (ctx->status == 0) {
            ctx->status = ctx->request->headers_out.status;
        }

        ngx_http_profile_record_capture(ctx);
    }

    ngx_http_profile_drop(ctx);
}


/* frees all that the context holds, except memory of the request's pool */

void
ngx_http_profile_drop(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_track_t  *tr;

    tr = ctx->track;

    if (ctx->request == NULL) {
        return;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ctx->request->connection->log, 0,
                   "profile: context %*s dropped, verdict %d",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id,
                   (int) ctx->verdict);

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (tr->capture) {
        prof_turn_end(ngx_http_profile_sampler(), tr->capture);
        ngx_http_profile_free_capture(tr->capture);
        tr->capture = NULL;
    }

    ngx_http_profile_free_profile(ctx->profile);
    ctx->profile = NULL;

    ngx_http_profile_object_drop(ctx);

    if (ctx->slot) {
        ctx->slot = 0;
        ngx_http_profile_slots--;
    }

    ngx_http_profile_end_tracking(ctx);
    ngx_http_profile_forget(ctx);
}


/* ends the life of a context that is not tracked and has no profile */

static void
ngx_http_profile_forget(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_track_t  *tr;

    tr = ctx->track;

    /* no job makes the profile */

    if (ctx->fated) {
        ctx->fated = 0;
        ngx_http_profile_fate_set(ctx->id, NGX_HTTP_PROFILE_FATE_NEVER);
    }

    tr->ctx = NULL;
    tr->timer = NULL;

    if (ctx->verdict != NGX_HTTP_PROFILE_ADMITTED) {
        tr->id.len = 0;
    }

    if (!tr->accounted) {
        ngx_http_profile_untrack(tr);
    }

    ngx_queue_remove(&ctx->queue);
    ngx_http_profile_nlive--;

    if (ngx_http_profile_nlive == 0) {
        ngx_http_profile_observers.polling = NULL;
    }

    ctx->request = NULL;
}


void
ngx_http_profile_request_exit(void)
{
    ngx_queue_t             *q;
    ngx_http_profile_ctx_t  *ctx;

    while (!ngx_queue_empty(&ngx_http_profile_live)) {
        q = ngx_queue_head(&ngx_http_profile_live);
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);

        ngx_http_profile_render_abandon(ctx);
        ngx_http_profile_drop(ctx);
    }
}
