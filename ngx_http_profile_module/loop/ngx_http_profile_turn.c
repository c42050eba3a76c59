
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Turns: what the worker runs for one request without a break.  Most begin in
 * the event loop (ngx_http_profile_dispatch.c), the others where nginx enters a
 * request from somebody else's event (ngx_http_profile_wrap.c).
 */


#include "request/ngx_http_profile_request.h"
#include "stages/ngx_http_profile_stages.h"
#include "keep/ngx_http_profile_keep.h"


static void ngx_http_profile_first_turn(void *data);
static void ngx_http_profile_turn_again(ngx_http_profile_track_t *tr,
    ngx_http_profile_frame_t *outer, uintptr_t what, prof_turn_pt fn,
    void *data);
static void ngx_http_profile_own_turn(uintptr_t what, prof_turn_pt fn,
    void *data);
static void ngx_http_profile_capture_turn(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wake_t *wake, uint64_t ready, uintptr_t what,
    prof_turn_pt fn, void *data);


/*
 * Runs fn(data) as a turn of the request; wake is NULL for the first one, which
 * nothing was waited for before.  The request, and all that belongs to it, may
 * be gone when it returns.
 */

PROF_GLUE void
ngx_http_profile_turn(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn, void *data)
{
    uint64_t                   ready;
    ngx_http_profile_frame_t   frame;
    ngx_http_profile_frame_t  *outer;

    for (outer = ngx_http_profile_frame; outer; outer = outer->prev) {

        if (outer->track == tr) {
            ngx_http_profile_turn_again(tr, outer, what, fn, data);
            return;
        }
    }

    ngx_http_profile_unwrap(tr);

    frame.top = (uintptr_t) __builtin_frame_address(0);

    ngx_http_profile_enter(&frame, tr, what);

    ready = 0;

    if (wake) {
        ready = ngx_http_profile_ready(tr, wake, frame.start);
        ngx_http_profile_account_gap(tr, ready, frame.start);

    } else {
        ngx_http_profile_account_start(tr, frame.start);
    }

    if (tr->ctx && tr->ctx->capture) {
        ngx_http_profile_capture_turn(tr->ctx, wake, ready, what, fn, data);

    } else {

        if (wake == NULL) {
            ngx_http_profile_keep_begin(tr, frame.start);

        } else if (tr->light) {
            ngx_http_profile_keep_gap(tr, wake, ready);
        }

        ngx_http_profile_own_turn(what, fn, data);
    }

    ngx_http_profile_leave(&frame);
}


/*
 * Within a turn of the same request, maybe by way of another one's.  The turn
 * ends, and what stands between turns is set up, when the outer one ends.
 */

PROF_GLUE static void
ngx_http_profile_turn_again(ngx_http_profile_track_t *tr,
    ngx_http_profile_frame_t *outer, uintptr_t what, prof_turn_pt fn,
    void *data)
{
    ngx_http_profile_frame_t  frame;

    if (outer == ngx_http_profile_frame) {
        fn(data);
        return;
    }

    frame.top = (uintptr_t) __builtin_frame_address(0);

    ngx_http_profile_enter(&frame, tr, what);
    frame.again = 1;

    if (tr->ctx && tr->ctx->capture) {
        prof_turn_run(ngx_http_profile_sampler(), tr->ctx->capture, what, fn,
                      data);

    } else {
        ngx_http_profile_own_turn(what, fn, data);
    }

    ngx_http_profile_leave(&frame);
}


/* a turn that is not captured; it may be within one that is */

PROF_GLUE static void
ngx_http_profile_own_turn(uintptr_t what, prof_turn_pt fn, void *data)
{
    prof_sampler_t  *s;

    s = ngx_http_profile_sampler();

    if (s && prof_turn_current(s)) {
        prof_turn_run(s, NULL, what, fn, data);
        return;
    }

    fn(data);
}


PROF_GLUE static void
ngx_http_profile_capture_turn(ngx_http_profile_ctx_t *ctx,
    ngx_http_profile_wake_t *wake, uint64_t ready, uintptr_t what,
    prof_turn_pt fn, void *data)
{
    uintptr_t                  frame;
    prof_capture_t            *c;
    ngx_http_profile_gap_t     gap;
    ngx_http_profile_track_t  *tr;

    static char  header[] = "request header and start of the capture";

    tr = ctx->track;
    c = ctx->capture;

    if (wake == NULL) {
        prof_capture_begin(c, tr->start);

        ngx_http_profile_first_gap(tr, ngx_http_profile_frame->start, &gap);
        ngx_http_profile_add_gap(c, &gap);

        /* most of it is the profiler's, and not what the request runs */

        frame = prof_capture_name(c, header, sizeof(header) - 1);
        prof_capture_gap(c, &frame, 1, 0);

    } else {
        ngx_http_profile_find_gap(tr, wake, ready, &gap);
        ngx_http_profile_add_gap(c, &gap);

        if (ctx->spans) {
            what = ngx_http_profile_event_name(c, &gap.cause);
        }
    }

    prof_turn_run(ngx_http_profile_sampler(), c, what, fn, data);
}


/*
 * The first turn of a request, in the POST_READ phase: the rest of the phases
 * runs from here, so the turn begins and ends in this call.  The request may be
 * gone when it returns.
 */

PROF_GLUE void
ngx_http_profile_run_request(ngx_http_profile_track_t *tr)
{
    tr->request->phase_handler++;

    ngx_http_profile_turn(tr, NULL, (uintptr_t) ngx_http_core_run_phases,
                          ngx_http_profile_first_turn, tr->request);
}


PROF_GLUE static void
ngx_http_profile_first_turn(void *data)
{
    ngx_http_request_t *r = data;

    ngx_connection_t  *c;

    c = r->connection;

    ngx_http_core_run_phases(r);
    ngx_http_run_posted_requests(c);
}


/*
 * The event that runs turns out to begin this request: from its start on it is
 * a turn.  NGX_DECLINED: not all of it is.
 */

PROF_HOT ngx_int_t
ngx_http_profile_adopt(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_frame_t  *frame;

    frame = ngx_http_profile_frame;

    if (frame == NULL || frame->track || frame->tail
        || frame->connection != tr->request->connection)
    {
        return NGX_DECLINED;
    }

    frame->track = tr;

    return NGX_OK;
}


/* the request goes, maybe in the middle of its turn */

PROF_HOT void
ngx_http_profile_turn_forget(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_frame_t  *frame;

    for (frame = ngx_http_profile_frame; frame; frame = frame->prev) {
        if (frame->track == tr) {
            frame->track = NULL;
            frame->tail = 1;
        }
    }
}


/* the capture whose turn is running, or NULL */

ngx_http_profile_ctx_t *
ngx_http_profile_turn_ctx(void)
{
    ngx_http_profile_frame_t  *frame;

    frame = ngx_http_profile_frame;

    return (frame && frame->track) ? frame->track->ctx : NULL;
}


ngx_http_profile_part_t *
ngx_http_profile_add_part(ngx_http_profile_track_t *tr, ngx_http_request_t *r)
{
    ngx_http_profile_part_t  *part;

    for (part = tr->parts; part; part = part->next) {
        if (part->request == r) {
            return part;
        }
    }

    part = ngx_pcalloc(tr->request->pool, sizeof(ngx_http_profile_part_t));
    if (part == NULL) {
        return NULL;
    }

    part->request = r;
    part->next = tr->parts;
    tr->parts = part;

    return part;
}
