
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Where the time of each request goes, without sampling: the wall clock is read
 * at the ends of turns, and what lies between two readings is charged to what
 * has run.
 */


#include "keep/ngx_http_profile_keep.h"
#include "workers/ngx_http_profile_asker.h"
#include "keep/ngx_http_profile_stall.h"


/* nginx's time may be behind by that when a request is logged */
#define NGX_HTTP_PROFILE_BEHIND_NS  100000

#define NGX_HTTP_PROFILE_MSEC       1000000

/* now is in a turn of the request */

#define ngx_http_profile_is_running(tr)                                       \
    (ngx_http_profile_frame && ngx_http_profile_frame->track == (tr))


static int64_t ngx_http_profile_waited(ngx_http_request_t *r);
static uint64_t ngx_http_profile_poll_end(uint64_t begin);
static ngx_uint_t ngx_http_profile_account_unasked(ngx_http_request_t *r,
    ngx_uint_t *wanted);
__attribute__((noinline)) static ngx_int_t ngx_http_profile_account_end(
    ngx_http_request_t *r, ngx_http_profile_track_t *tr);
static ngx_int_t ngx_http_profile_account_keep(ngx_http_profile_track_t *tr,
    ngx_http_profile_frame_t *frame, uint64_t now, ngx_uint_t wanted);
static uint64_t ngx_http_profile_account_now(ngx_http_profile_track_t *tr);
static void ngx_http_profile_account_until(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times, uint64_t now);
static uint64_t ngx_http_profile_account_close(ngx_http_profile_track_t *tr);
static void ngx_http_profile_account_late(void);
static void ngx_http_profile_update_time(uint64_t now);


/* in the POST_READ phase, of a request that nobody captures */

PROF_HOT ngx_int_t
ngx_http_profile_account_begin(ngx_http_profile_track_t *tr)
{
    if (ngx_http_profile_adopt(tr) == NGX_OK) {
        ngx_http_profile_account_start(tr, ngx_http_profile_frame->start);
        ngx_http_profile_keep_begin(tr, ngx_http_profile_frame->start);

        return NGX_DECLINED;
    }

    ngx_http_profile_run_request(tr);

    return NGX_DONE;
}


/* the first turn begins */

PROF_HOT void
ngx_http_profile_account_start(ngx_http_profile_track_t *tr, uint64_t begin)
{
    uint64_t             from;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tr->request;
    from = ngx_http_profile_poll_end(begin);

    tr->start = from - ngx_http_profile_waited(r) * NGX_HTTP_PROFILE_MSEC;
    tr->times.wait += from - tr->start;
    tr->times.stall += begin - from;
    tr->mark = begin;
    tr->begun = 1;

    if (ngx_http_profile_nasides) {
        c = r->connection;

#if (NGX_HTTP_V2)
        if (r->stream) {
            c = r->stream->connection->connection;
        }
#endif

        tr->times.cpu += ngx_http_profile_take_aside(c);
    }
}


/* milliseconds from the start of $request_time until the poll's end */

PROF_HOT static int64_t
ngx_http_profile_waited(ngx_http_request_t *r)
{
    int64_t  ms;

    ms = ngx_http_profile_loop.poll_msec
         - ((uint64_t) r->start_sec * 1000 + r->start_msec);

    if (ms >= 0) {
        return ms;
    }

    /*
     * Nginx's time was moved on since then, by a script or when another
     * request was logged.  This one was there already.
     */

    r->start_sec = (time_t) (ngx_http_profile_loop.poll_msec / 1000);
    r->start_msec = (ngx_msec_t) (ngx_http_profile_loop.poll_msec % 1000);

    return 0;
}


/* when the poll ended, of which nginx's time is until somebody updates it */

PROF_HOT static uint64_t
ngx_http_profile_poll_end(uint64_t begin)
{
    int64_t                   ago;
    uint64_t                  now;
    struct timeval            tv;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    if (loop->poll_end) {
        return ngx_min(loop->poll_end, begin);
    }

    /* of the iteration in which the worker was armed: to a millisecond */

    loop->poll_msec = ngx_http_profile_msec(ngx_timeofday());

    ngx_gettimeofday(&tv);
    now = prof_now();

    ago = ((uint64_t) tv.tv_sec * 1000000 + tv.tv_usec
           - loop->poll_msec * 1000) * 1000 - NGX_HTTP_PROFILE_MSEC;

    return ngx_min(now - ngx_max(ago, 0), begin);
}


PROF_HOT void
ngx_http_profile_account_gap(ngx_http_profile_track_t *tr,
    uint64_t ready, uint64_t begin)
{
    if (tr->closed) {
        return;
    }

    ready = ngx_max(ready, tr->mark);
    ready = ngx_min(ready, begin);

    tr->times.wait += ready - tr->mark;
    tr->times.stall += begin - ready;
    tr->mark = begin;
}


PROF_HOT void
ngx_http_profile_account_turn(ngx_http_profile_track_t *tr, uint64_t now)
{
    if (tr->closed) {
        return;
    }

    tr->times.turns++;
    tr->times.running += tr->turn;
    tr->times.longest = ngx_max(tr->times.longest, tr->turn);
    tr->turn = 0;
    tr->turn_cpu = 0;
    tr->mark = now;
}


void
ngx_http_profile_account_times(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times)
{
    uint64_t  now;

    if (!tr->begun) {
        ngx_http_profile_account_start(tr, tr->mark);
        ngx_http_profile_account_late();
    }

    if (tr->closed) {
        *times = tr->times;
        return;
    }

    now = ngx_http_profile_account_now(tr);

    *times = tr->times;
    ngx_http_profile_account_until(tr, times, now);
}


/* its turn, if it has one now, is charged until now */

PROF_HOT static uint64_t
ngx_http_profile_account_now(ngx_http_profile_track_t *tr)
{
    return ngx_http_profile_is_running(tr)
           ? ngx_http_profile_charge(ngx_http_profile_frame) : prof_now();
}


PROF_HOT static void
ngx_http_profile_account_until(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times, uint64_t now)
{
    if (ngx_http_profile_is_running(tr)) {
        times->turns++;
        times->running += tr->turn;
        times->longest = ngx_max(times->longest, tr->turn);

    } else {
        times->wait += now - tr->mark;
    }

    times->wall = now - tr->start;
}


/* most requests: no more of it is read than its address */

PROF_HOT ngx_int_t
ngx_http_profile_account_log(ngx_http_request_t *r)
{
    ngx_uint_t                 wanted;
    ngx_http_profile_frame_t  *frame;
    ngx_http_profile_track_t  *tr;

    if (r != ngx_http_profile_brief.request) {
        return ngx_http_profile_account_end(r, r == r->main
                                               ? ngx_http_profile_find_track(r)
                                               : NULL);
    }

    tr = &ngx_http_profile_brief;
    frame = ngx_http_profile_frame;

    if (tr->begun || !ngx_http_profile_is_plain
        || !ngx_http_profile_is_running(tr) || frame->prev
        || ngx_http_profile_nasides)
    {
        return ngx_http_profile_account_end(r, tr);
    }

    if (ngx_http_profile_account_unasked(r, &wanted)) {
        frame->track = NULL;
        frame->tail = 1;

        return NGX_OK;
    }

    if (!tr->begun) {
        ngx_http_profile_account_start(tr, tr->mark);
    }

    return ngx_http_profile_account_keep(tr, frame,
                                         ngx_http_profile_account_close(tr),
                                         wanted);
}


/*
 * Of the brief request: nobody asks for its times, but for scripts, maybe, in a
 * moment.  If not, *wanted says whether profile_keep wants it; scripts may also
 * be what its condition asks.
 */

PROF_HOT static ngx_uint_t
ngx_http_profile_account_unasked(ngx_http_request_t *r, ngx_uint_t *wanted)
{
    if (!ngx_http_profile_keep_asked(r)) {
        return 1;
    }

    /* for $request_time */

    (void) ngx_http_profile_waited(r);
    ngx_http_profile_update_time(prof_now());

    *wanted = ngx_http_profile_keep_wanted(r);

    return !*wanted && !ngx_http_profile_brief.begun;
}


PROF_HOT static ngx_int_t
ngx_http_profile_account_end(ngx_http_request_t *r,
    ngx_http_profile_track_t *tr)
{
    uint64_t                   now;
    ngx_http_profile_frame_t  *frame;

    if (tr == NULL || !tr->accounted || tr->closed) {
        return NGX_OK;
    }

    frame = ngx_http_profile_is_running(tr) ? ngx_http_profile_frame : NULL;

    if (!tr->begun) {
        ngx_http_profile_account_start(tr, tr->mark);
    }

    now = ngx_http_profile_account_close(tr);

    if (frame && ngx_http_profile_stall_ns
        && now - frame->start >= ngx_http_profile_stall_ns)
    {
        ngx_http_profile_stall(frame, tr, now - frame->start);

        /* it may have opened something, and is brief no more */

        tr = ngx_http_profile_find_track(r);
    }

    if (tr == NULL
        || (tr != &ngx_http_profile_brief && tr->light == NULL && !tr->dark))
    {
        return NGX_OK;
    }

    return ngx_http_profile_account_keep(tr, frame, now,
                                         ngx_http_profile_keep_wanted(r));
}


/* times are final: whether the request is kept, and what is left of it */

PROF_HOT static ngx_int_t
ngx_http_profile_account_keep(ngx_http_profile_track_t *tr,
    ngx_http_profile_frame_t *frame, uint64_t now, ngx_uint_t wanted)
{
    ngx_http_profile_track_t  *lasting;

    if (wanted && ngx_http_profile_keep_admit(tr, now) != NGX_OK) {
        wanted = 0;
    }

    if (tr == &ngx_http_profile_brief && !wanted) {

        /* it is freed next, and what is run until then is nobody's */

        ngx_http_profile_turn_forget(tr);

        return NGX_OK;
    }

    lasting = ngx_http_profile_lasting(tr);

    if (lasting == NULL || lasting->light == NULL) {

        if (wanted) {
            ngx_http_profile_keep_lose(lasting ? lasting : tr);
        }

        return NGX_OK;
    }

    tr = lasting;

    if (wanted) {
        ngx_http_profile_keep_log(tr, frame, now);

    } else {
        ngx_http_profile_keep_drop(tr);
    }

    return NGX_OK;
}


PROF_HOT static uint64_t
ngx_http_profile_account_close(ngx_http_profile_track_t *tr)
{
    uint64_t  now;

    now = ngx_http_profile_account_now(tr);
    ngx_http_profile_account_until(tr, &tr->times, now);
    tr->closed = 1;

    ngx_http_profile_update_time(now);

    return now;
}


/* of the brief request: it was logged a moment ago, and its turn goes on */

static void
ngx_http_profile_account_late(void)
{
    ngx_http_profile_frame_t  *frame;

    frame = ngx_http_profile_frame;

    if (frame && frame->tail) {
        frame->track = &ngx_http_profile_brief;

        (void) ngx_http_profile_account_close(frame->track);

        frame->track = NULL;
    }
}


/*
 * $request_time is the difference of two times of polls, and lacks what was
 * run since the last one.  The time of timers stays that of the poll: timers
 * that are set in the same iteration would expire in another order.
 */

PROF_HOT static void
ngx_http_profile_update_time(uint64_t now)
{
    ngx_msec_t                msec;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    if (now - loop->updated >= NGX_HTTP_PROFILE_BEHIND_NS) {

        msec = ngx_current_msec;
        ngx_time_update();
        ngx_current_msec = msec;

        loop->updated = now;
    }
}
