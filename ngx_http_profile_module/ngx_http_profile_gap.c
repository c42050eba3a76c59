
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


#include "ngx_http_profile.h"

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


/*
 * Closes the gap before a turn; wake is NULL when the capture ends in it.
 */

void
ngx_http_profile_gap(ngx_http_profile_track_t *tr, prof_capture_t *c,
    ngx_http_profile_wake_t *wake)
{
    u_char                   *p, *last;
    uint64_t                  ready, now;
    uintptr_t                 frames[2];
    ngx_uint_t                n;
    ngx_http_request_t       *r;
    ngx_http_profile_part_t  *part;
    u_char                    text[NGX_MAX_ERROR_STR / 4];

    part = ngx_http_profile_waiting_part(tr, wake);

    last = text + sizeof(text);
    p = ngx_http_profile_cause(tr, wake, part, text, last);

    frames[0] = prof_capture_name(c, (char *) text, p - text);
    n = 1;

    /* what the client asked for is not named again */

    r = part ? part->request : tr->request;

    if (r->internal) {
        p = ngx_http_profile_put(text, last,
                                 r == r->main ? "redirect " : "subrequest ");
        p = ngx_http_profile_put_str(p, last, ngx_http_profile_place(r));

        frames[1] = prof_capture_name(c, (char *) text, p - text);
        n = 2;
    }

    now = wake ? ngx_http_profile_frame->start : prof_now();
    ready = wake ? ngx_http_profile_ready(tr, wake, now) : now;
    ready = ngx_max(ready, prof_capture_mark(c));

    if (ready + NGX_HTTP_PROFILE_BUSY_NS > now) {
        ready = now;
    }

    prof_capture_gap(c, frames, n, ready);

    if (ready < now) {
        ngx_http_profile_busy_gap(c, now);
    }
}


/* the time before the first turn, which began when the frame did */

void
ngx_http_profile_first_gap(ngx_http_profile_track_t *tr, prof_capture_t *c,
    uint64_t begin)
{
    uint64_t   from;
    uintptr_t  frame;

    static char  header[] = "client sending the request header";

    from = tr->start + tr->times.wait;

    prof_capture_begin(c, tr->start);

    if (begin < from + NGX_HTTP_PROFILE_BUSY_NS) {
        from = begin;
    }

    frame = prof_capture_name(c, header, sizeof(header) - 1);
    prof_capture_gap(c, &frame, 1, from);

    if (from < begin) {
        ngx_http_profile_busy_gap(c, begin);
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

    if (loop->poll_end - loop->poll_start > NGX_HTTP_PROFILE_SLEEP_NS
        || loop->last_end == 0)
    {
        return loop->poll_end;
    }

    ready = wake->timer ? (uint64_t) wake->event->timer.key * 1000000
                        : ngx_http_profile_arrived(wake, now);

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
