
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Gaps: the waits of a request between two turns.  A gap is added to the
 * capture when the next turn begins.
 *
 * A gap has two parts: until the awaited event occurs, and from then on, while
 * the worker runs code of other requests.  The time of the event is exact if
 * the worker slept (the poll returned because of it), or if the event is a
 * timer.  Otherwise the event occurred while the worker ran other code between
 * two polls, and the middle of this time is taken.  For data on a TCP
 * connection, the kernel knows the time to one of its ticks.
 */


#include "roles/ngx_http_profile_roles.h"
#include "stages/ngx_http_profile_stages.h"


/* the event loop itself causes shorter delays */
#define NGX_HTTP_PROFILE_DELAY_NS  50000

/* maximum number of frames; deeper stacks lose their outermost frames */
#define NGX_HTTP_PROFILE_GAP_FRAMES  64

static ngx_uint_t ngx_http_profile_waits(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_cause_t *cause,
    uintptr_t *frames);
static void ngx_http_profile_busy_gap(prof_capture_t *c, uint64_t until);
static void ngx_http_profile_busy_part(prof_capture_t *c,
    ngx_http_profile_busy_e what, uint64_t until);


PROF_HOT void
ngx_http_profile_find_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready,
    ngx_http_profile_gap_t *gap)
{
    gap->since = wake->since;
    gap->ready = ready;
    gap->end = wake->begin;

    ngx_http_profile_find_cause(tr, wake, &gap->cause);
}


PROF_HOT void
ngx_http_profile_first_gap(ngx_http_profile_track_t *tr, uint64_t begin,
    ngx_http_profile_gap_t *gap)
{
    gap->since = 0;
    gap->ready = tr->start + tr->times.wait;
    gap->end = begin;

    gap->cause.text = ngx_http_profile_causes[NGX_HTTP_PROFILE_CAUSE_HEADER];
    gap->cause.event = "event: client";
    gap->cause.inside = NULL;
    gap->cause.attempt = 1;
    gap->cause.len = 0;
}


uintptr_t
ngx_http_profile_begin_turn(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready, uintptr_t what)
{
    uint64_t                 now, own, ran;
    uintptr_t                frame;
    uintptr_t                frames[NGX_HTTP_PROFILE_GAP_FRAMES];
    ngx_uint_t               n;
    prof_capture_t          *c;
    ngx_http_profile_gap_t   gap;

    static char  header[] = "request header";

    c = tr->capture;

    if (wake) {
        ngx_http_profile_find_gap(tr, wake, ready, &gap);

        ngx_log_debug5(NGX_LOG_DEBUG_HTTP, tr->request->connection->log, 0,
                       "profile: gap of %p: %s%*s, ready for %L ns",
                       tr->request, gap.cause.text,
                       gap.cause.len, gap.cause.name,
                       (int64_t) (gap.end - ready));

        n = ngx_http_profile_waits(tr, wake, &gap.cause, frames);
        ngx_http_profile_add_gap(c, &gap, frames, n);

        ngx_http_profile_see_roles(tr, wake);

        return tr->spans ? ngx_http_profile_event_name(c, &gap.cause) : what;
    }

    prof_capture_begin(c, tr->start);

    /*
     * The worker has read the request's header, and then the profiler has
     * started the capture.  The first is the request's work, without a sample;
     * the second is left out.
     */

    now = prof_now();
    own = now - ngx_max(tr->prepared, ngx_http_profile_current->start);
    ran = now - ngx_http_profile_current->start - own;

    prof_capture_leave_out(c, own);

    ngx_http_profile_first_gap(tr, ngx_http_profile_current->start, &gap);

    gap.ready += own;
    gap.end += own;

    ngx_http_profile_add_gap(c, &gap, NULL, 0);

    frame = prof_capture_name(c, header, sizeof(header) - 1);
    prof_capture_ran(c, frame, now, ran);

    return what;
}


void
ngx_http_profile_last_gap(ngx_http_profile_track_t *tr)
{
    uintptr_t               frames[NGX_HTTP_PROFILE_GAP_FRAMES];
    ngx_uint_t              n;
    ngx_http_profile_gap_t  gap;

    if (tr->capture == NULL || ngx_http_profile_is_running(tr)) {
        return;
    }

    gap.since = 0;
    gap.ready = prof_now();
    gap.end = gap.ready;

    ngx_http_profile_find_cause(tr, NULL, &gap.cause);

    n = ngx_http_profile_waits(tr, NULL, &gap.cause, frames);
    ngx_http_profile_add_gap(tr->capture, &gap, frames, n);
}


/*
 * Finds where scripts wait.  For njs and Perl, this is only the function of
 * the location.
 */

static ngx_uint_t
ngx_http_profile_waits(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_cause_t *cause,
    uintptr_t *frames)
{
    ngx_str_t      *function;
    ngx_uint_t      n;
    prof_script_t   place;

    n = ngx_http_profile_lua_stack(tr, wake, frames,
                                   NGX_HTTP_PROFILE_GAP_FRAMES);

    if (n || ngx_strncmp(cause->text, "script ", 7) != 0) {
        return n;
    }

    function = ngx_http_profile_function(tr->request);
    if (function == NULL) {
        return 0;
    }

    ngx_memzero(&place, sizeof(prof_script_t));

    place.function = (char *) function->data;
    place.function_len = function->len;

    frames[0] = prof_capture_script(tr->capture, &place);

    return 1;
}


void
ngx_http_profile_add_gap(prof_capture_t *c, ngx_http_profile_gap_t *gap,
    const uintptr_t *script, ngx_uint_t n)
{
    uint64_t      ready;
    uintptr_t     frames[NGX_HTTP_PROFILE_GAP_FRAMES + 2];
    prof_await_t  wait;

    if (n) {
        ngx_memcpy(frames, script, n * sizeof(uintptr_t));
    }

    frames[n++] = ngx_http_profile_cause_name(c, &gap->cause);

    if (gap->cause.inside) {
        frames[n++] = ngx_http_profile_inside_name(c, &gap->cause);
    }

    ready = ngx_max(gap->ready, prof_capture_counted(c));

    if (ready + NGX_HTTP_PROFILE_DELAY_NS > gap->end) {
        ready = gap->end;
    }

    wait.since = gap->since;
    wait.ready = gap->ready;
    wait.end = gap->end;

    prof_capture_wait(c, frames, n, &wait, ready);

    if (ready < gap->end) {
        ngx_http_profile_busy_gap(c, gap->end);
    }
}


/* the request could run, but the worker did something else */

static void
ngx_http_profile_busy_gap(prof_capture_t *c, uint64_t until)
{
    uint64_t                 from, end, stopped;
    ngx_http_profile_busy_e  what;

    for (from = prof_capture_counted(c); from < until; from = end) {

        what = ngx_http_profile_busy_with(from, until, &end, &stopped);

        ngx_http_profile_busy_part(c, what, end - stopped);
        ngx_http_profile_busy_part(c, NGX_HTTP_PROFILE_BUSY_STOPPED, end);
    }
}


static void
ngx_http_profile_busy_part(prof_capture_t *c, ngx_http_profile_busy_e what,
    uint64_t until)
{
    uintptr_t   frame;
    ngx_str_t  *text;

    if (until <= prof_capture_counted(c)) {
        return;
    }

    text = &ngx_http_profile_busy_texts[what];
    frame = prof_capture_name(c, (char *) text->data, text->len);

    if (ngx_http_profile_watch) {
        prof_watch_gap(ngx_http_profile_watch, c, &frame, 1, until);

    } else {
        prof_capture_gap(c, &frame, 1, until);
    }
}
