
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * profile_keep.  The turns of a request and the gaps before them are noted as
 * steps.  A capture is made of the steps when the steps are full, when the
 * watch is about to forget their samples, or when the request is kept.
 */


#include "request/ngx_http_profile_request.h"
#include "stages/ngx_http_profile_stages.h"
#include "core/ngx_http_profile_job.h"
#include "keep/ngx_http_profile_keep.h"
#include "core/ngx_http_profile_loss.h"
#include "loop/ngx_http_profile_brief.h"


/* memory of a capture: some hundred entries in its call tree and timeline */
#define NGX_HTTP_PROFILE_KEEP_MEMORY  32768

/* maximum number of requests with notes in a worker; others are not kept */
#define NGX_HTTP_PROFILE_MAX_NOTES    1024

/* maximum number of steps; most requests have fewer turns */
#define NGX_HTTP_PROFILE_KEEP_STEPS   24


/* a turn, and the gap before it */

typedef struct {
    ngx_http_profile_gap_t      gap;
    uint64_t                    end;
    uint64_t                    cpu;
    uint64_t                    no_processor;
    uint64_t                    blocked;
} ngx_http_profile_step_t;


struct ngx_http_profile_notes_s {
    ngx_http_profile_track_t   *track;
    ngx_queue_t                 queue;
    uint64_t                    start;
    uint32_t                    taken;       /* at the first step */
    prof_capture_t             *capture;     /* of earlier steps, or NULL */
    ngx_uint_t                  n;           /* complete steps */
    ngx_http_profile_step_t     steps[NGX_HTTP_PROFILE_KEEP_STEPS];
};


static void ngx_http_profile_keep_begin(ngx_http_profile_track_t *tr,
    uint64_t begin);
static ngx_uint_t ngx_http_profile_keep_chosen(ngx_uint_t share,
    ngx_uint_t of);
static ngx_http_profile_notes_t *ngx_http_profile_keep_get(void);
static void ngx_http_profile_keep_turn_begins(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready);
static void ngx_http_profile_keep_turn_ended(ngx_http_profile_track_t *tr,
    uint64_t now);
static void ngx_http_profile_keep_step(ngx_http_profile_notes_t *notes,
    ngx_http_profile_track_t *tr, uint64_t now);
static void ngx_http_profile_keep_age(void);
static ngx_int_t ngx_http_profile_keep_flush(
    ngx_http_profile_notes_t *notes);
static prof_capture_t *ngx_http_profile_keep_capture(uint64_t start);
static void ngx_http_profile_keep_logged(ngx_http_profile_track_t *tr);
static ngx_msec_t ngx_http_profile_keep_elapsed(
    ngx_http_profile_track_t *tr);
static ngx_uint_t ngx_http_profile_keep_wants_exemplar(
    ngx_http_profile_track_t *tr, ngx_http_profile_keep_conf_t *keep);
static void ngx_http_profile_keep_wanted(ngx_http_request_t *r,
    ngx_http_profile_keep_conf_t *keep);
static ngx_int_t ngx_http_profile_keep_admit(ngx_http_profile_track_t *tr,
    ngx_http_profile_keep_conf_t *keep, uint64_t now);
static void ngx_http_profile_keep_lose(ngx_http_profile_track_t *tr);
static void ngx_http_profile_keep_log(ngx_http_profile_track_t *tr,
    uint64_t now);
static void ngx_http_profile_keep_finish(ngx_http_profile_notes_t *notes,
    ngx_http_profile_ctx_t *ctx);
static void ngx_http_profile_keep_drop(ngx_http_profile_track_t *tr);


/* used notes in the order of their start or last flush; and unused notes */

static ngx_queue_t  ngx_http_profile_used_notes = {
    &ngx_http_profile_used_notes,
    &ngx_http_profile_used_notes
};

static ngx_queue_t  ngx_http_profile_free_notes = {
    &ngx_http_profile_free_notes,
    &ngx_http_profile_free_notes
};

static ngx_uint_t  ngx_http_profile_nnotes;

ngx_uint_t  (*ngx_http_profile_keep_exemplar)(ngx_http_profile_track_t *tr);


void
ngx_http_profile_keep_init(void)
{
    ngx_http_profile_observers.notes_begin = ngx_http_profile_keep_begin;
    ngx_http_profile_observers.notes_turn_begins =
                                             ngx_http_profile_keep_turn_begins;
    ngx_http_profile_observers.notes_turn_ended =
                                              ngx_http_profile_keep_turn_ended;
    ngx_http_profile_observers.notes_age = ngx_http_profile_keep_age;
    ngx_http_profile_observers.notes_logged = ngx_http_profile_keep_logged;
    ngx_http_profile_observers.notes_drop = ngx_http_profile_keep_drop;
}


PROF_HOT static void
ngx_http_profile_keep_begin(ngx_http_profile_track_t *tr, uint64_t begin)
{
    ngx_http_profile_notes_t     *notes;
    ngx_http_profile_srv_conf_t  *pscf;

    if (ngx_http_profile_watch == NULL) {
        return;
    }

    pscf = ngx_http_get_module_srv_conf(tr->request, ngx_http_profile_module);

    /* a request that is logged already was chosen earlier */

    if (pscf->keep_share == 0
        || !(tr->closed || ngx_http_profile_keep_chosen(pscf->keep_share,
                                                        10000)))
    {
        return;
    }

    notes = ngx_http_profile_keep_get();
    if (notes == NULL) {
        tr->unnoted = 1;
        return;
    }

    notes->track = tr;
    notes->start = tr->start;
    notes->taken = ngx_http_profile_spot.taken;
    notes->n = 0;

    ngx_http_profile_first_gap(tr, begin, &notes->steps[0].gap);

    ngx_queue_insert_tail(&ngx_http_profile_used_notes, &notes->queue);

    tr->notes = notes;
}


PROF_HOT static ngx_uint_t
ngx_http_profile_keep_chosen(ngx_uint_t share, ngx_uint_t of)
{
    return share == of || (ngx_uint_t) ngx_random() % of < share;
}


PROF_HOT static ngx_http_profile_notes_t *
ngx_http_profile_keep_get(void)
{
    ngx_queue_t               *q;
    ngx_http_profile_notes_t  *notes;

    if (!ngx_queue_empty(&ngx_http_profile_free_notes)) {

        q = ngx_queue_head(&ngx_http_profile_free_notes);
        ngx_queue_remove(q);

        return ngx_queue_data(q, ngx_http_profile_notes_t, queue);
    }

    if (ngx_http_profile_nnotes == NGX_HTTP_PROFILE_MAX_NOTES) {
        return NULL;
    }

    prof_heap_mute();
    notes = ngx_alloc(sizeof(ngx_http_profile_notes_t), ngx_cycle->log);
    prof_heap_unmute();

    if (notes) {
        notes->capture = NULL;
        ngx_http_profile_nnotes++;
    }

    return notes;
}


PROF_HOT static void
ngx_http_profile_keep_turn_begins(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready)
{
    ngx_http_profile_notes_t  *notes;

    notes = tr->notes;

    ngx_http_profile_find_gap(tr, wake, ready, &notes->steps[notes->n].gap);
}


PROF_HOT static void
ngx_http_profile_keep_turn_ended(ngx_http_profile_track_t *tr, uint64_t now)
{
    ngx_http_profile_notes_t  *notes;

    notes = tr->notes;

    ngx_http_profile_keep_step(notes, tr, now);

    if (notes->n < NGX_HTTP_PROFILE_KEEP_STEPS) {
        return;
    }

    if (ngx_http_profile_keep_flush(notes) != NGX_OK) {
        ngx_http_profile_keep_drop(tr);
        tr->unnoted = 1;
    }

    ngx_http_profile_forgive();
}


PROF_HOT static void
ngx_http_profile_keep_step(ngx_http_profile_notes_t *notes,
    ngx_http_profile_track_t *tr, uint64_t now)
{
    ngx_http_profile_step_t  *step;

    step = &notes->steps[notes->n++];
    step->end = now;
    step->cpu = tr->turn_cpu;
    step->no_processor = tr->turn_no_processor;
    step->blocked = tr->turn_blocked;
}


/* flushes the notes whose samples the watch is about to forget */

static void
ngx_http_profile_keep_age(void)
{
    ngx_queue_t               *q;
    ngx_http_profile_notes_t  *notes;

    while (!ngx_queue_empty(&ngx_http_profile_used_notes)) {

        q = ngx_queue_head(&ngx_http_profile_used_notes);
        notes = ngx_queue_data(q, ngx_http_profile_notes_t, queue);

        if (ngx_http_profile_spot.taken - notes->taken < PROF_WATCH_KEPT) {
            return;
        }

        if (ngx_http_profile_keep_flush(notes) != NGX_OK) {
            notes->track->unnoted = 1;
            ngx_http_profile_keep_drop(notes->track);
            continue;
        }

        notes->taken = ngx_http_profile_spot.taken;

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&ngx_http_profile_used_notes, q);
    }
}


/* adds the steps to the capture; makes the capture if necessary */

static ngx_int_t
ngx_http_profile_keep_flush(ngx_http_profile_notes_t *notes)
{
    uintptr_t                 what;
    ngx_uint_t                i;
    prof_capture_t           *c;
    ngx_http_profile_step_t  *step;

    /* a reload of a single process may have removed profile_keep */

    if (ngx_http_profile_watch == NULL) {
        return NGX_ERROR;
    }

    if (notes->capture == NULL) {
        notes->capture = ngx_http_profile_keep_capture(notes->start);
    }

    c = notes->capture;

    if (c == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < notes->n; i++) {
        step = &notes->steps[i];

        ngx_http_profile_add_gap(c, &step->gap, NULL, 0);

        what = ngx_http_profile_event_name(c, &step->gap.cause);

        prof_watch_turn(ngx_http_profile_watch, c, (uintptr_t) notes, what,
                        step->end, step->cpu);

        prof_capture_idle(c, step->no_processor, step->blocked);
    }

    /* the gap before the running turn is not used yet */

    if (notes->n < NGX_HTTP_PROFILE_KEEP_STEPS) {
        notes->steps[0].gap = notes->steps[notes->n].gap;
    }

    notes->n = 0;

    return NGX_OK;
}


static prof_capture_t *
ngx_http_profile_keep_capture(uint64_t start)
{
    prof_capture_t                *c;
    prof_capture_conf_t            conf;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_profile_module);

    ngx_memzero(&conf, sizeof(prof_capture_conf_t));

    conf.frequency = pmcf->watch_frequency;
    conf.mode = PROF_MODE_WALL;
    conf.memory = NGX_HTTP_PROFILE_KEEP_MEMORY;

    prof_heap_mute();

    c = prof_capture_create(&conf);

    if (c) {
        prof_capture_begin(c, start);
    }

    prof_heap_unmute();

    return c;
}


PROF_HOT static void
ngx_http_profile_keep_logged(ngx_http_profile_track_t *tr)
{
    ngx_http_request_t            *r;
    ngx_http_profile_loc_conf_t   *plcf;
    ngx_http_profile_keep_conf_t  *keep;

    r = tr->request;
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
    keep = plcf->keep;

    if (keep == NULL || ngx_http_profile_watch == NULL) {

        /* the notes were taken for other locations of the server */

        if (tr->notes) {
            ngx_http_profile_keep_drop(tr);
        }

        return;
    }

    if (!tr->closed) {
        ngx_http_profile_update_request_time(r);
    }

    if ((keep->slow && ngx_http_profile_keep_elapsed(tr) >= keep->slow)
        || (keep->condition && ngx_http_profile_holds(r, keep->condition)))
    {
        ngx_http_profile_keep_wanted(r, keep);

    } else if (ngx_http_profile_keep_exemplar
               && ngx_http_profile_keep_wants_exemplar(tr, keep))
    {
        ngx_http_profile_keep_wanted(r, keep);

    } else if (tr->notes) {
        ngx_http_profile_keep_drop(tr);
    }
}


/* the value of $request_time */

static ngx_msec_t
ngx_http_profile_keep_elapsed(ngx_http_profile_track_t *tr)
{
    ngx_time_t          *tp;
    ngx_http_request_t  *r;

    if (tr->closed) {
        return tr->times.wall / 1000000;
    }

    r = tr->request;
    tp = ngx_timeofday();

    return ngx_max((ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                                     + (tp->msec - r->start_msec)), 0);
}


/* nothing is counted as lost if such a request cannot be kept */

PROF_HOT static ngx_uint_t
ngx_http_profile_keep_wants_exemplar(ngx_http_profile_track_t *tr,
    ngx_http_profile_keep_conf_t *keep)
{
    return (tr->notes || tr == &ngx_http_profile_brief)
           && tr->closed
           && keep->next <= tr->start + tr->times.wall
           && ngx_http_profile_keep_exemplar(tr)
           && ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_KEPT) == NGX_OK;
}


/*
 * A script in the condition may have given the request a lasting track.
 *
 * Requests for the console and for metrics are not kept, unless their location
 * has a profile_keep of its own: an operator's work in the list would fill the
 * list.
 */

__attribute__((noinline)) static void
ngx_http_profile_keep_wanted(ngx_http_request_t *r,
    ngx_http_profile_keep_conf_t *keep)
{
    uint64_t                      now;
    ngx_http_profile_track_t     *tr, *lasting;
    ngx_http_profile_loc_conf_t  *plcf;

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL) {
        return;
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_is_own(plcf) && !plcf->keep_own) {

        if (tr->notes) {
            ngx_http_profile_keep_drop(tr);
        }

        return;
    }

    now = ngx_http_profile_account_close(tr);

    if (ngx_http_profile_keep_admit(tr, keep, now) != NGX_OK) {

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: not kept, loss: %d, without notes: %d",
                       (int) tr->lost, (int) tr->unnoted);

        if (tr->notes) {
            ngx_http_profile_keep_drop(tr);
        }

        return;
    }

    lasting = ngx_http_profile_lasting(tr);

    if (lasting == NULL || lasting->notes == NULL) {
        ngx_http_profile_keep_lose(lasting ? lasting : tr);
        return;
    }

    ngx_http_profile_keep_log(lasting, now);
}


/*
 * Returns whether a request that the condition has chosen can be kept.  At a
 * rate of N profiles in a second, N profiles may follow each other at once.
 * Returns NGX_DECLINED if the request is not in the share, and NGX_BUSY if it
 * is counted as lost.
 */

PROF_HOT static ngx_int_t
ngx_http_profile_keep_admit(ngx_http_profile_track_t *tr,
    ngx_http_profile_keep_conf_t *keep, uint64_t now)
{
    uint64_t                      interval;
    ngx_int_t                     rc;
    ngx_http_profile_srv_conf_t  *pscf;

    /* notes were taken of a share of all requests already */

    pscf = ngx_http_get_module_srv_conf(tr->request, ngx_http_profile_module);

    if (!ngx_http_profile_keep_chosen(keep->share,
                                      tr == &ngx_http_profile_brief
                                      ? 10000 : pscf->keep_share))
    {
        return NGX_DECLINED;
    }

    if (tr->unnoted) {
        ngx_http_profile_keep_lose(tr);
        return NGX_BUSY;
    }

    interval = 1000000000 / keep->rate;

    if (keep->next > now + 1000000000 - interval) {
        tr->lost = NGX_HTTP_PROFILE_LOSS_RATE;
        ngx_http_profile_lose(tr->lost, ngx_cycle->log);
        return NGX_BUSY;
    }

    rc = ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_KEPT);

    if (rc != NGX_OK) {
        tr->lost = ngx_http_profile_loss_of(rc);
        ngx_http_profile_lose(tr->lost, ngx_cycle->log);
        return NGX_BUSY;
    }

    keep->next = ngx_max(keep->next, now) + interval;

    return NGX_OK;
}


static void
ngx_http_profile_keep_lose(ngx_http_profile_track_t *tr)
{
    tr->lost = NGX_HTTP_PROFILE_LOSS_MEMORY;
    ngx_http_profile_lose(tr->lost, ngx_cycle->log);
}


static void
ngx_http_profile_keep_log(ngx_http_profile_track_t *tr, uint64_t now)
{
    ngx_http_profile_ctx_t    *ctx;
    ngx_http_profile_notes_t  *notes;

    if (ngx_http_profile_is_running(tr)) {

        if (ngx_http_profile_spot.fresh) {
            ngx_http_profile_watch_pass(ngx_http_profile_current);
        }

        /* the report of a stall, or an inner run, has passed earlier ones */

        if (tr->notes) {
            prof_watch_give(ngx_http_profile_watch,
                            ngx_http_profile_current->start,
                            (uintptr_t) &ngx_http_profile_brief,
                            (uintptr_t) tr->notes);
        }

        /* the call may have dropped the notes */

        if (tr->notes) {
            ngx_http_profile_keep_step(tr->notes, tr, now);
        }
    }

    notes = tr->notes;

    if (notes == NULL) {
        return;
    }

    prof_heap_mute();

    ctx = (ngx_http_profile_keep_flush(notes) == NGX_OK)
          ? ngx_http_profile_create(tr->request) : NULL;

    if (ctx) {
        ngx_http_profile_keep_finish(notes, ctx);

        if (ctx->profile) {
            tr->samples = ctx->profile->stats.samples;
        }

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, tr->request->connection->log, 0,
                       "profile: keep %*s",
                       (size_t) NGX_HTTP_PROFILE_ID_LEN, ctx->id);

        if (ngx_http_profile_record(ctx) != NGX_OK) {
            tr->id.len = 0;
        }

        ngx_http_profile_drop(ctx);

    } else {
        ngx_http_profile_keep_lose(tr);
    }

    ngx_http_profile_keep_drop(tr);

    prof_heap_unmute();
}


static void
ngx_http_profile_keep_finish(ngx_http_profile_notes_t *notes,
    ngx_http_profile_ctx_t *ctx)
{
    u_char              *p;
    ngx_str_t            method, path;
    ngx_http_request_t  *r;
    u_char               title[NGX_MAX_ERROR_STR];

    r = ctx->request;

    ngx_http_profile_sent(r, &method, &path);

    p = ngx_slprintf(title, title + sizeof(title) - 1, "%V %V", &method,
                     &path);
    *p = '\0';

    ctx->conf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
    ctx->verdict = NGX_HTTP_PROFILE_ADMITTED;
    ctx->status = r->err_status ? r->err_status : r->headers_out.status;
    ctx->profile = prof_capture_finish(notes->capture, (char *) title);
}


PROF_HOT static void
ngx_http_profile_keep_drop(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_notes_t  *notes;

    notes = tr->notes;
    tr->notes = NULL;

    /* the memory of a finished capture belongs to its profile */

    if (notes->capture) {
        prof_capture_destroy(notes->capture);
        notes->capture = NULL;
    }

    ngx_queue_remove(&notes->queue);
    ngx_queue_insert_head(&ngx_http_profile_free_notes, &notes->queue);
}


void
ngx_http_profile_keep_exit(void)
{
    ngx_queue_t               *q;
    ngx_http_profile_notes_t  *notes;

    while (!ngx_queue_empty(&ngx_http_profile_used_notes)) {
        q = ngx_queue_head(&ngx_http_profile_used_notes);
        notes = ngx_queue_data(q, ngx_http_profile_notes_t, queue);

        ngx_http_profile_keep_drop(notes->track);
    }

    while (!ngx_queue_empty(&ngx_http_profile_free_notes)) {
        q = ngx_queue_head(&ngx_http_profile_free_notes);
        ngx_queue_remove(q);

        ngx_free(ngx_queue_data(q, ngx_http_profile_notes_t, queue));
    }
}
