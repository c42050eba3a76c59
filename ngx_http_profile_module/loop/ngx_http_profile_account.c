
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Where the time of each request goes.  Nothing is sampled: the wall clock is
 * read at the ends of runs, and the time between two readings is charged to the
 * run.
 */


#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_loss.h"
#include "loop/ngx_http_profile_brief.h"
#include "loop/ngx_http_profile_loop_private.h"


/* nginx's time may be this much behind when a request is logged */
#define NGX_HTTP_PROFILE_BEHIND_NS  100000

#define NGX_HTTP_PROFILE_MSEC       1000000

/* sums may be off by this time, or by a hundredth of the whole */

#define ngx_http_profile_is_off_by(off, ns, whole)                            \
    ((uint64_t) ((off) + (ns)) > 2 * (ns)                                     \
     && (uint64_t) ((off) < 0 ? -(off) : (off)) > (whole) / 100)

/* the maximum number of pieces; then the earlier waits are final */
#define NGX_HTTP_PROFILE_PIECES     64


/*
 * The gaps of a request that waits for several events at once.  The event that
 * ends a gap was awaited since an earlier turn, perhaps beside others.  The
 * request could not go on before its last event, so the last wait is counted as
 * a whole; before it the wait that ended when the last one began, and so on.
 * The other waits took place beside these, and are not counted.
 */

typedef struct {
    uint64_t                   since;     /* begin of the turn that began to
                                             wait */
    uint64_t                   ready;     /* the event occurred */
    uint64_t                   begin;     /* of the turn after the gap */
    uint64_t                   wait;      /* of the gap, without the stall */
    uint64_t                   stall;
    ngx_uint_t                 cause;
} ngx_http_profile_piece_t;


struct ngx_http_profile_pieces_s {
    ngx_uint_t                 n;
    ngx_http_profile_piece_t   piece[NGX_HTTP_PROFILE_PIECES];
};


static int64_t ngx_http_profile_waited(ngx_http_request_t *r);
static uint64_t ngx_http_profile_poll_end(uint64_t begin);
static void ngx_http_profile_account_piece(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready, uint64_t begin);
static void ngx_http_profile_account_pieces(ngx_http_profile_track_t *tr);
static void ngx_http_profile_account_critical(ngx_http_profile_track_t *tr,
    ngx_http_profile_piece_t *first, ngx_http_profile_piece_t *last);
static uint64_t ngx_http_profile_account_now(ngx_http_profile_track_t *tr);
static void ngx_http_profile_account_until(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times, uint64_t now);
static ngx_int_t ngx_http_profile_account_waited(ngx_http_profile_run_t *run);
static ngx_int_t ngx_http_profile_account_logged(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_account_noted(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_account_end(ngx_http_request_t *r,
    ngx_http_profile_track_t *tr);
static void ngx_http_profile_account_tail(ngx_http_profile_run_t *run);
static void ngx_http_profile_account_last(ngx_http_profile_track_t *tr,
    uint64_t now);
static void ngx_http_profile_account_check(ngx_http_profile_track_t *tr);
static void ngx_http_profile_account_unequal(ngx_http_profile_track_t *tr,
    int64_t parts);
static void ngx_http_profile_account_place(ngx_http_profile_track_t *tr);
static void ngx_http_profile_account_late(void);
static void ngx_http_profile_update_time(uint64_t now);


PROF_HOT void
ngx_http_profile_account_start(ngx_http_profile_track_t *tr, uint64_t begin)
{
    uint64_t             from, opening;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tr->request;
    from = ngx_http_profile_poll_end(begin);

    tr->start = from - ngx_http_profile_waited(r) * NGX_HTTP_PROFILE_MSEC;
    tr->times.wait += from - tr->start;
    tr->since = begin;
    tr->begun = 1;

    ngx_http_profile_add_stall(tr, from, begin);

    if (ngx_http_profile_observers.waited && from > tr->start) {
        ngx_http_profile_observers.waited(tr, NULL, from - tr->start);
    }

    if (ngx_http_profile_nopening) {
        c = r->connection;

#if (NGX_HTTP_V2)
        if (r->stream) {
            c = r->stream->connection->connection;
        }
#endif

        opening = ngx_http_profile_take_opening_cpu(c);

        tr->times.cpu += opening;
        tr->times.outside += opening;
    }
}


/* returns milliseconds from the start of $request_time to the poll's end */

PROF_HOT static int64_t
ngx_http_profile_waited(ngx_http_request_t *r)
{
    int64_t                   ms;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    ms = (int64_t) (loop->poll_sec - r->start_sec) * 1000
         + (int64_t) (loop->poll_msec - r->start_msec);

    if (ms >= 0) {
        return ms;
    }

    /*
     * A script, or the log of another request, updated nginx's time after the
     * poll, although this request had arrived before.
     */

    r->start_sec = loop->poll_sec;
    r->start_msec = loop->poll_msec;

    return 0;
}


/* returns the poll's end: nginx's time, unless it was updated since */

PROF_HOT static uint64_t
ngx_http_profile_poll_end(uint64_t begin)
{
    int64_t                   ago;
    uint64_t                  now;
    ngx_time_t               *tp;
    struct timeval            tv;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    if (loop->poll_end) {
        return ngx_min(loop->poll_end, begin);
    }

    /* in the iteration that arms the worker, only the millisecond is known */

    tp = ngx_timeofday();

    loop->poll_sec = tp->sec;
    loop->poll_msec = tp->msec;

    ngx_gettimeofday(&tv);
    now = prof_now();

    ago = (int64_t) (tv.tv_sec - tp->sec) * 1000000000
          + ((int64_t) tv.tv_usec - (int64_t) tp->msec * 1000) * 1000
          - NGX_HTTP_PROFILE_MSEC;

    return ngx_min(now - ngx_max(ago, 0), begin);
}


PROF_HOT void
ngx_http_profile_account_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready, uint64_t begin)
{
    if (tr->closed) {
        return;
    }

    if (ngx_http_profile_awaits_more(tr, wake) || tr->pieces) {
        ngx_http_profile_account_piece(tr, wake, ready, begin);
        return;
    }

    ready = ngx_max(ready, tr->since);
    ready = ngx_min(ready, begin);

    if (ngx_http_profile_observers.waited && ready > tr->since) {
        ngx_http_profile_observers.waited(tr, wake, ready - tr->since);
    }

    tr->times.wait += ready - tr->since;
    tr->since = begin;

    ngx_http_profile_add_stall(tr, ready, begin);
}


__attribute__((noinline)) static void
ngx_http_profile_account_piece(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready, uint64_t begin)
{
    ngx_http_profile_piece_t    piece;
    ngx_http_profile_pieces_t  *pieces;

    piece.since = wake->since ? wake->since : tr->since;
    piece.ready = ready;
    piece.begin = begin;

    ready = ngx_max(ready, tr->since);
    ready = ngx_min(ready, begin);

    piece.wait = ready - tr->since;
    piece.stall = begin - ready;
    piece.cause = ngx_http_profile_observers.waited
                  ? ngx_http_profile_observers.waited(tr, wake, piece.wait)
                  : 0;

    tr->times.wait += piece.wait;
    tr->times.stall += piece.stall;
    tr->since = begin;

    pieces = tr->pieces;

    if (pieces == NULL) {
        pieces = ngx_palloc(tr->request->pool,
                            sizeof(ngx_http_profile_pieces_t));
        if (pieces == NULL) {
            ngx_http_profile_split_stall(tr, ready, begin);
            return;
        }

        pieces->n = 0;
        tr->pieces = pieces;
    }

    pieces->piece[pieces->n++] = piece;

    if (pieces->n == NGX_HTTP_PROFILE_PIECES
        || !ngx_http_profile_awaits_more(tr, wake))
    {
        ngx_http_profile_account_pieces(tr);
    }
}


/* no later wait has begun before the last piece, which is on the path */

static void
ngx_http_profile_account_pieces(ngx_http_profile_track_t *tr)
{
    ngx_uint_t                 last, first;
    ngx_http_profile_piece_t  *piece;

    piece = tr->pieces->piece;

    for (last = tr->pieces->n; last; last = first) {

        first = last - 1;

        while (first && piece[first - 1].begin > piece[last - 1].since) {
            first--;
        }

        if (first < last - 1) {
            ngx_http_profile_account_critical(tr, &piece[first],
                                              &piece[last - 1]);
        }
    }

    for (first = 0; first < tr->pieces->n; first++) {

        if (ngx_http_profile_noted_until > piece[first].begin
                                           - piece[first].stall)
        {
            ngx_http_profile_split_stall(tr, piece[first].begin
                                             - piece[first].stall,
                                         piece[first].begin);
        }
    }

    tr->pieces->n = 0;
}


/* the pieces before the last one were waits for the last event */

static void
ngx_http_profile_account_critical(ngx_http_profile_track_t *tr,
    ngx_http_profile_piece_t *first, ngx_http_profile_piece_t *last)
{
    uint64_t                   ns, moved;
    ngx_http_profile_piece_t  *piece;

    moved = 0;

    for (piece = first; piece < last; piece++) {

        if (tr->waited & (uint32_t) 1 << piece->cause) {
            tr->waits[piece->cause] -= piece->wait;

            if (tr->waits[piece->cause] == 0) {
                tr->waited &= ~((uint32_t) 1 << piece->cause);
            }
        }

        ns = (last->ready > piece->begin - piece->stall)
             ? ngx_min(piece->stall,
                       last->ready - (piece->begin - piece->stall))
             : 0;

        piece->stall -= ns;

        tr->times.wait += ns;
        tr->times.stall -= ns;

        moved += piece->wait + ns;
    }

    if (!(tr->waited & (uint32_t) 1 << last->cause)) {
        tr->waited |= (uint32_t) 1 << last->cause;
        tr->waits[last->cause] = 0;
    }

    tr->waits[last->cause] += moved;
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
    tr->times.no_processor += tr->turn_no_processor;
    tr->times.blocked += tr->turn_blocked;
    tr->turn = 0;
    tr->turn_cpu = 0;
    tr->turn_no_processor = 0;
    tr->turn_blocked = 0;
    tr->since = now;
}


void
ngx_http_profile_account_times(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times)
{
    uint64_t  now;

    if (!tr->begun) {
        ngx_http_profile_account_start(tr, tr->since);
    }

    if (tr == &ngx_http_profile_brief) {
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


/* charges the running turn of the request until now */

PROF_HOT static uint64_t
ngx_http_profile_account_now(ngx_http_profile_track_t *tr)
{
    return ngx_http_profile_is_running(tr)
           ? ngx_http_profile_charge(ngx_http_profile_current) : prof_now();
}


PROF_HOT static void
ngx_http_profile_account_until(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times, uint64_t now)
{
    if (ngx_http_profile_is_running(tr)) {
        times->turns++;
        times->running += tr->turn;
        times->longest = ngx_max(times->longest, tr->turn);
        times->no_processor += tr->turn_no_processor;
        times->blocked += tr->turn_blocked;

    } else {
        times->wait += now - tr->since;
    }

    times->wall = now - tr->start;
}


/*
 * Most requests are brief, do not wait, and their times are not read.  A script
 * may still read the times after this handler.  Such a request is counted at
 * the end of its event, because the clock is read then anyway; nginx has freed
 * the request by then.
 */

PROF_HOT ngx_int_t
ngx_http_profile_account_log(ngx_http_request_t *r)
{
    ngx_http_profile_run_t    *run;
    ngx_http_profile_track_t  *tr;

    tr = &ngx_http_profile_brief;
    run = ngx_http_profile_current;

    if (r != tr->request || tr->begun || !ngx_http_profile_is_running(tr)
        || !ngx_http_profile_is_plain(run) || ngx_http_profile_nopening)
    {
        return ngx_http_profile_account_logged(r);
    }

    if (ngx_http_profile_observers.notes_logged) {
        return ngx_http_profile_account_noted(r);
    }

    if (ngx_http_profile_observers.counted) {

        ngx_http_profile_account_place(tr);

        if (r->start_msec != ngx_http_profile_loop.poll_msec
            || r->start_sec != ngx_http_profile_loop.poll_sec)
        {
            return ngx_http_profile_account_waited(run);
        }
    }

    ngx_http_profile_account_tail(run);

    return NGX_OK;
}


__attribute__((noinline)) static ngx_int_t
ngx_http_profile_account_waited(ngx_http_profile_run_t *run)
{
    ngx_http_profile_account_start(&ngx_http_profile_brief,
                                   ngx_http_profile_brief.since);

    ngx_http_profile_account_tail(run);

    return NGX_OK;
}


__attribute__((noinline, hot)) static ngx_int_t
ngx_http_profile_account_logged(ngx_http_request_t *r)
{
    return ngx_http_profile_account_end(r, r == r->main
                                           ? ngx_http_profile_find_track(r)
                                           : NULL);
}


/* the brief request is logged, and profile_keep may keep it */

__attribute__((noinline, hot)) static ngx_int_t
ngx_http_profile_account_noted(ngx_http_request_t *r)
{
    ngx_http_profile_track_t  *tr;

    tr = &ngx_http_profile_brief;

    if (ngx_http_profile_observers.counted) {
        return ngx_http_profile_account_end(r, tr);
    }

    ngx_http_profile_observers.notes_logged(tr);

    if (tr->request != r) {

        /* the request has a lasting track now */

        tr = ngx_http_profile_find_track(r);

        if (tr) {
            (void) ngx_http_profile_account_close(tr);
        }

        return NGX_OK;
    }

    if (tr->begun) {
        (void) ngx_http_profile_account_close(tr);
    }

    ngx_http_profile_account_tail(ngx_http_profile_current);

    return NGX_OK;
}


PROF_HOT static ngx_int_t
ngx_http_profile_account_end(ngx_http_request_t *r,
    ngx_http_profile_track_t *tr)
{
    uint64_t                 now;
    ngx_http_profile_run_t  *run;

    if (tr == NULL || !tr->accounted || (tr->closed && !tr->own)) {
        return NGX_OK;
    }

    if (!ngx_http_profile_is_running(tr)) {
        ngx_http_profile_turn_found(tr, r, NULL);
    }

    run = ngx_http_profile_is_running(tr) ? ngx_http_profile_current : NULL;

    if (tr->own) {
        now = prof_now();
        ngx_http_profile_update_time(now);

    } else {
        now = ngx_http_profile_account_close(tr);
    }

    if (run && ngx_http_profile_observers.slow_ns
        && now - run->start >= ngx_http_profile_observers.slow_ns)
    {
        ngx_http_profile_report_slow(run, tr, now - run->start);

        /*
         * the call may have opened a connection, so the request has a lasting
         * track
         */

        tr = ngx_http_profile_find_track(r);
    }

    if (tr && ngx_http_profile_observers.notes_logged && !tr->own
        && (tr == &ngx_http_profile_brief || tr->notes || tr->unnoted))
    {
        ngx_http_profile_observers.notes_logged(tr);

        if (tr->request != r) {
            tr = ngx_http_profile_find_track(r);
        }
    }

    if (tr && ngx_http_profile_observers.counted) {
        ngx_http_profile_account_place(tr);
        ngx_http_profile_observers.counted(tr);
    }

    if (r == ngx_http_profile_brief.request) {

        /* the request is freed next */

        if (run && run->prev == NULL) {
            ngx_http_profile_account_tail(run);

        } else {
            ngx_http_profile_turn_forget(&ngx_http_profile_brief);
        }
    }

    return NGX_OK;
}


/* the rest of the run frees the request, and belongs to no request */

PROF_HOT static void
ngx_http_profile_account_tail(ngx_http_profile_run_t *run)
{
    run->track = NULL;
    run->tail = 1;
}


PROF_HOT uint64_t
ngx_http_profile_account_close(ngx_http_profile_track_t *tr)
{
    uint64_t  now;

    if (tr->closed) {
        return tr->start + tr->times.wall;
    }

    if (!tr->begun) {
        ngx_http_profile_account_start(tr, tr->since);
    }

    now = ngx_http_profile_account_now(tr);

    if (ngx_http_profile_observers.waited && !ngx_http_profile_is_running(tr)
        && now > tr->since)
    {
        ngx_http_profile_account_last(tr, now);
    }

    if (tr->pieces) {
        ngx_http_profile_account_pieces(tr);
    }

    ngx_http_profile_account_until(tr, &tr->times, now);
    tr->closed = 1;

    ngx_http_profile_update_time(now);
    ngx_http_profile_account_check(tr);

    return now;
}


void
ngx_http_profile_account_own(ngx_http_profile_track_t *tr, ngx_uint_t waited)
{
    if (!tr->accounted || tr->closed) {
        return;
    }

    if (waited || ngx_http_profile_is_running(tr)) {
        (void) ngx_http_profile_account_close(tr);

    } else {

        if (tr->pieces) {
            ngx_http_profile_account_pieces(tr);
        }

        ngx_http_profile_account_until(tr, &tr->times, tr->since);
        tr->closed = 1;
    }

    tr->own = 1;

    /* the profile of this request exists already */

    if (tr->notes) {
        ngx_http_profile_observers.notes_drop(tr);
    }
}


uint64_t
ngx_http_profile_account_rest(ngx_http_profile_track_t *tr)
{
    return tr->own ? prof_now() - tr->start - tr->times.wall : 0;
}


/*
 * The request ends in code that is not seen as a turn, or that is not its own:
 * the time since the last turn has a cause as well.
 */

__attribute__((noinline)) static void
ngx_http_profile_account_last(ngx_http_profile_track_t *tr, uint64_t now)
{
    ngx_http_profile_wake_t  wake;

    ngx_memzero(&wake, sizeof(ngx_http_profile_wake_t));
    wake.request = tr->request;
    wake.begin = now;
    wake.found = 1;

    ngx_http_profile_observers.waited(tr, &wake, now - tr->since);
}


/*
 * The parts of a request's time add up to the whole, and the whole is
 * $request_time, in which the clock of the day may have been set.
 */

PROF_HOT static void
ngx_http_profile_account_check(ngx_http_profile_track_t *tr)
{
    int64_t                    parts, clock;
    ngx_time_t                *tp;
    ngx_http_profile_times_t  *times;

    tp = ngx_timeofday();
    times = &tr->times;

    parts = (int64_t) (times->running + times->wait + times->stall
                       - times->wall);
    clock = ((int64_t) (tp->sec - tr->request->start_sec) * 1000
             + (int64_t) (tp->msec - tr->request->start_msec))
            * NGX_HTTP_PROFILE_MSEC - (int64_t) times->wall;

    if (ngx_http_profile_is_off_by(parts, NGX_HTTP_PROFILE_MSEC, times->wall)
        || ngx_http_profile_is_off_by(clock, 2 * NGX_HTTP_PROFILE_MSEC,
                                      times->wall))
    {
        ngx_http_profile_account_unequal(tr, parts);
    }
}


__attribute__((noinline)) static void
ngx_http_profile_account_unequal(ngx_http_profile_track_t *tr, int64_t parts)
{
    ngx_http_profile_unequal();

#if (NGX_DEBUG)
    if (parts > NGX_HTTP_PROFILE_MSEC || parts < -NGX_HTTP_PROFILE_MSEC) {
        ngx_log_error(NGX_LOG_ALERT, tr->request->connection->log, 0,
                      "profile: the times of a request do not add up: "
                      "%uL ns, running %uL, wait %uL, stall %uL",
                      tr->times.wall, tr->times.running, tr->times.wait,
                      tr->times.stall);
    }
#endif
}


/* notes the place in the metrics: the request may be freed before it counts */

PROF_HOT static void
ngx_http_profile_account_place(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(tr->request, ngx_http_profile_module);

    tr->place = plcf->place;
}


void
ngx_http_profile_account_brief(uint64_t now, uint64_t cpu)
{
    ngx_http_profile_track_t  *tr;

    tr = &ngx_http_profile_brief;

    tr->times.turns = 1;
    tr->times.running = now - tr->since;
    tr->times.longest = tr->times.running;
    tr->times.cpu += cpu;
    tr->times.wall = now - tr->start;
    tr->closed = 1;

    if (cpu > tr->times.running) {
        tr->times.outside += cpu - tr->times.running;
    }

    ngx_http_profile_observers.counted(tr);
}


void
ngx_http_profile_account_polled(void)
{
    ngx_http_profile_track_t  *tr;

    tr = &ngx_http_profile_brief;

    tr->start = ngx_http_profile_loop.poll_end;
    tr->begun = 1;

    ngx_http_profile_add_stall(tr, tr->start, tr->since);
}


void
ngx_http_profile_account_freed(void)
{
    if (!ngx_http_profile_brief.begun) {
        ngx_http_profile_account_polled();
    }

    ngx_http_profile_account_late();
}


/*
 * If the brief request was logged in the running turn, makes its times final,
 * and counts the request.
 */

static void
ngx_http_profile_account_late(void)
{
    ngx_http_profile_run_t    *run;
    ngx_http_profile_track_t  *tr;

    tr = &ngx_http_profile_brief;
    run = ngx_http_profile_current;

    if (run == NULL || !run->tail || tr->closed) {
        return;
    }

    run->track = tr;

    (void) ngx_http_profile_account_close(tr);

    run->track = NULL;

    if (ngx_http_profile_observers.counted
        && ngx_http_profile_observers.notes_logged == NULL)
    {
        ngx_http_profile_observers.counted(tr);
    }
}


/*
 * $request_time is the difference of two times of polls, so code that ran since
 * the last poll is missing.  The time of nginx's timers is not updated, since
 * timers that are set in the same iteration would expire in another order.
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


void
ngx_http_profile_update_request_time(ngx_http_request_t *r)
{
    (void) ngx_http_profile_waited(r);
    ngx_http_profile_update_time(prof_now());
}
