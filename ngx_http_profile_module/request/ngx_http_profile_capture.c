
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The life of a triggered request's context.  The context is created in the
 * POST_READ phase, completed when nginx has nothing left to send, and dropped
 * when the request is refused or freed.
 *
 * Admission: the location of a request decides about its trigger.  A request
 * may pass several locations.  The decision of the last one holds.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "request/ngx_http_profile_request_private.h"
#include "stages/ngx_http_profile_stages.h"
#include "core/ngx_http_profile_fate.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_loss.h"


/* turns and gaps may differ from a request's time by this, or by one part */

#define NGX_HTTP_PROFILE_SUM_NS    1000000
#define NGX_HTTP_PROFILE_SUM_PART  100


static void ngx_http_profile_turn_ended(ngx_http_profile_track_t *tr);
static void ngx_http_profile_located(ngx_http_profile_track_t *tr);
static ngx_int_t ngx_http_profile_content(ngx_http_profile_track_t *tr);
static ngx_uint_t ngx_http_profile_check_all(void);
static void ngx_http_profile_check_sum(ngx_http_profile_track_t *tr);
static void ngx_http_profile_timeout_handler(ngx_event_t *ev);
static void ngx_http_profile_cleanup(void *data);
static void ngx_http_profile_locate(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_forget(ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_apply_trigger(ngx_http_profile_ctx_t *ctx);
static ngx_uint_t ngx_http_profile_conditional(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);
static void ngx_http_profile_refuse(ngx_http_profile_ctx_t *ctx);


ngx_queue_t  ngx_http_profile_live = {
    &ngx_http_profile_live, &ngx_http_profile_live
};

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nlive;


ngx_http_profile_request_observers_t  ngx_http_profile_request_observers;


/* captures of this worker that count for profile_max_captures */

ngx_uint_t  ngx_http_profile_slots;


/* in the order of prof_mode_e */

static ngx_http_profile_counting_t
    *ngx_http_profile_countings[PROF_MODE_MAX] = {
    NULL,                                  /* wall */
    NULL,                                  /* cpu */
    &ngx_http_profile_object_counting      /* object */
};


static ngx_str_t  ngx_http_profile_too_many =
    ngx_string("too many captures are running in this worker\n");

static ngx_str_t  ngx_http_profile_others_wrong =
    ngx_string("profile_seconds and profile_requests are for flamegraphs in "
               "the modes \"wall\" and \"cpu\"\n");


/* observes the event loop and the stages of captured requests */

void
ngx_http_profile_capture_init(void)
{
    ngx_http_profile_observers.sampling = ngx_http_profile_arm_phases;
    ngx_http_profile_observers.turn_begins = ngx_http_profile_begin_turn;
    ngx_http_profile_observers.turn_ended = ngx_http_profile_turn_ended;
    ngx_http_profile_observers.event_added = ngx_http_profile_wrap_upstreams;

    ngx_http_profile_stage_observers.located = ngx_http_profile_located;
    ngx_http_profile_stage_observers.content = ngx_http_profile_content;
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

    ngx_http_profile_locate(ctx);
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

    ctx->timer.handler = ngx_http_profile_timeout_handler;
    ctx->timer.data = ctx;
    ctx->timer.log = ngx_cycle->log;
    ctx->timer.cancelable = 1;

    ngx_add_timer(&ctx->timer, plcf->timeout);

    return NGX_OK;
}


/*
 * Applies the trigger's frequency and mode to the running capture, since the
 * client is permitted now.
 */

static void
ngx_http_profile_apply_trigger(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_loc_conf_t  *plcf;
    ngx_http_profile_counting_t  *counting;

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

    counting = ngx_http_profile_countings[
                        ngx_http_profile_param(&ctx->trigger.params,
                                               NGX_HTTP_PROFILE_PARAM_MODE,
                                               plcf->mode)];

    if (counting && ctx->counting == NULL) {
        ctx->counting = counting;
        counting->begin(ctx);
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


static void
ngx_http_profile_located(ngx_http_profile_track_t *tr)
{
    if (!tr->ctx->decided) {
        ngx_http_profile_locate(tr->ctx);
    }
}


static ngx_int_t
ngx_http_profile_content(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_ctx_t  *ctx;

    ctx = tr->ctx;

    if (ctx->decided || ngx_http_profile_admit(ctx) != NGX_OK
        || ctx->reply.status == 0)
    {
        return NGX_DECLINED;
    }

    return ngx_http_profile_request_observers.error(ctx);
}


/*
 * The turn may have set callbacks of an upstream, which are replaced now.  It
 * may also have completed the response.
 */

static void
ngx_http_profile_turn_ended(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_wrap_upstreams(tr);
    ngx_http_profile_request_observers.check(tr->ctx);
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
            ngx_http_profile_request_observers.check(ctx);
            found |= !ctx->tracked;
        }
    }

    return found;
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

        if (ctx->counting) {
            ctx->counting->end(ctx);
        }

        ctx->profile = prof_capture_finish(c, (char *) title);
    }

    prof_capture_totals(c, &stats, NULL, NULL, NULL);
    ctx->track->samples = stats.samples;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ctx->request->connection->log, 0,
                   "profile: capture %*s ends, %uL samples",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id,
                   (uint64_t) stats.samples);

    if (ctx->counting == NULL || !ctx->counting->take(ctx)) {

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


static void
ngx_http_profile_timeout_handler(ngx_event_t *ev)
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

    ngx_http_profile_request_observers.timeout(ctx);
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

    if (ctx->counting) {
        ctx->counting->drop(ctx);
        ctx->counting = NULL;
    }

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


static void
ngx_http_profile_cleanup(void *data)
{
    ngx_http_profile_ctx_t *ctx = data;

    ngx_http_profile_request_observers.abandoned(ctx);

    if (ctx->take == NULL) {
        ngx_http_profile_request_observers.freed(ctx);

    } else if (ctx->request) {
        ctx->take(ctx);
    }

    ngx_http_profile_drop(ctx);
}


void
ngx_http_profile_capture_exit(void)
{
    ngx_queue_t             *q;
    ngx_http_profile_ctx_t  *ctx;

    while (!ngx_queue_empty(&ngx_http_profile_live)) {
        q = ngx_queue_head(&ngx_http_profile_live);
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);

        ngx_http_profile_request_observers.abandoned(ctx);
        ngx_http_profile_drop(ctx);
    }
}


/*
 * Called when the configuration in force changes: in the server, and in each
 * location.  Takes the trigger out if the configuration may permit the
 * trigger, and puts it back otherwise.  If memory is short, the trigger stays
 * in the request, and ngx_http_profile_admit() tries again.
 */

static void
ngx_http_profile_locate(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_request_t           *r;
    ngx_http_profile_loc_conf_t  *plcf;

    r = ctx->request;

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

    if (!ngx_http_profile_conditional(r, plcf)) {
        ngx_http_profile_apply_trigger(ctx);
    }
}


/*
 * Returns whether profile_if can still refuse the request.  Before the request
 * has a location, any location of the server may have a condition.
 */

static ngx_uint_t
ngx_http_profile_conditional(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf)
{
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_profile_srv_conf_t  *pscf;

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    if (r->loc_conf != cscf->ctx->loc_conf) {
        return plcf->condition != NULL;
    }

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    return pscf->conditional;
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
