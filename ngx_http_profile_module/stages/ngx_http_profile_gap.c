
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Gaps: what a request waited for between two turns.  They are recorded when
 * the next turn begins.
 *
 * A gap has two parts: until what was waited for was there, and from then on,
 * while the worker ran code of other requests.  When it was there is known
 * exactly if the worker slept (then the poll returned because of it), if it
 * was a timer.  Otherwise it came while the worker ran other code between two
 * polls, and the middle of that time is taken; of data on a TCP connection the
 * kernel knows when they came, to one of its ticks.
 */


#include "request/ngx_http_profile_request.h"
#include "stages/ngx_http_profile_stages.h"

#include <netinet/tcp.h>


/* shorter delays are the event loop's own work, not other requests' */
#define NGX_HTTP_PROFILE_BUSY_NS   50000

/* a poll that took longer than this has slept */
#define NGX_HTTP_PROFILE_SLEEP_NS  20000

/* after a busier time than this the kernel is asked when data came */
#define NGX_HTTP_PROFILE_ASK_NS    8000000


static void ngx_http_profile_busy_gap(prof_capture_t *c, uint64_t until);
static uint64_t ngx_http_profile_arrived(ngx_http_profile_wake_t *wake,
    uint64_t now);


PROF_HOT void
ngx_http_profile_find_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready,
    ngx_http_profile_gap_t *gap)
{
    gap->ready = ready;
    gap->end = ngx_http_profile_frame->start;

    ngx_http_profile_find_cause(tr, wake, &gap->cause);
}


PROF_HOT void
ngx_http_profile_first_gap(ngx_http_profile_track_t *tr, uint64_t begin,
    ngx_http_profile_gap_t *gap)
{
    gap->ready = tr->start + tr->times.wait;
    gap->end = begin;

    gap->cause.text = "client sending the request header";
    gap->cause.event = "event: client";
    gap->cause.inside = NULL;
    gap->cause.attempt = 1;
    gap->cause.len = 0;
}


void
ngx_http_profile_last_gap(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_gap_t  gap;

    if (ctx->capture == NULL || ngx_http_profile_turn_ctx() == ctx) {
        return;
    }

    gap.ready = prof_now();
    gap.end = gap.ready;

    ngx_http_profile_find_cause(ctx->track, NULL, &gap.cause);
    ngx_http_profile_add_gap(ctx->capture, &gap);
}


void
ngx_http_profile_add_gap(prof_capture_t *c, ngx_http_profile_gap_t *gap)
{
    uint64_t    ready;
    uintptr_t   frames[2];
    ngx_uint_t  n;

    frames[0] = ngx_http_profile_cause_name(c, &gap->cause);
    n = 1;

    if (gap->cause.inside) {
        frames[1] = ngx_http_profile_inside_name(c, &gap->cause);
        n = 2;
    }

    ready = ngx_max(gap->ready, prof_capture_mark(c));

    if (ready + NGX_HTTP_PROFILE_BUSY_NS > gap->end) {
        ready = gap->end;
    }

    prof_capture_gap(c, frames, n, ready);

    if (ready < gap->end) {
        ngx_http_profile_busy_gap(c, gap->end);
    }
}


static void
ngx_http_profile_busy_gap(prof_capture_t *c, uint64_t until)
{
    uintptr_t  frame;

    static char  busy[] = "worker busy with other requests";

    frame = prof_capture_name(c, busy, sizeof(busy) - 1);

    if (ngx_http_profile_watch) {
        prof_watch_gap(ngx_http_profile_watch, c, &frame, 1, until);

    } else {
        prof_capture_gap(c, &frame, 1, until);
    }
}


/* when the request could have run */

PROF_HOT uint64_t
ngx_http_profile_ready(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t now)
{
    uint64_t                  ready;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    /* in the iteration in which the worker was armed */

    if (loop->poll_end == 0 || ngx_http_profile_only_looks(tr, wake)) {
        return now;
    }

    /*
     * A timer may have been due before the poll, which waited nevertheless:
     * by nginx's time, which is that of the poll before it, it was not.
     */

    ready = wake->timer ? (uint64_t) loop->due * 1000000 : loop->poll_start;

    if (loop->last_end == 0
        || (loop->poll_end - loop->poll_start > NGX_HTTP_PROFILE_SLEEP_NS
            && ready >= loop->poll_start))
    {
        return loop->poll_end;
    }

    if (!wake->timer) {
        ready = ngx_http_profile_arrived(wake, now);
    }

    return ngx_min(ngx_max(ready, loop->last_end), loop->poll_start);
}


/*
 * While the worker was busy between two polls: in the middle of that time.  A
 * system call tells of data when they came, by a clock that ticks some 250
 * times in a second; it says something about a time of many ticks.
 */

static uint64_t
ngx_http_profile_arrived(ngx_http_profile_wake_t *wake, uint64_t now)
{
    uint64_t                  from, to, at;
    socklen_t                 len;
    struct tcp_info           ti;
    struct timespec           tick;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    from = loop->last_end;
    to = loop->poll_start;

    len = sizeof(struct tcp_info);

    if (to - from > NGX_HTTP_PROFILE_ASK_NS
        && wake->connection && wake->event == wake->connection->read
        && clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0
        && getsockopt(wake->connection->fd, IPPROTO_TCP, TCP_INFO, &ti, &len)
           == 0)
    {
        at = now - (uint64_t) ti.tcpi_last_data_recv * 1000000;

        from = ngx_max(from, at - tick.tv_nsec);
        to = ngx_min(to, at + tick.tv_nsec);
    }

    return from / 2 + to / 2;
}
