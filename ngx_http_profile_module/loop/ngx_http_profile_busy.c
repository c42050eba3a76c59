
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the worker did lately, for requests that could have run in this time.
 * Most runs are those of other requests, and are not noted.  Noted are
 *
 *     runs of no request: timers and their sockets, other protocols
 *     runs of the profiler
 *     runs in which the worker had no processor for a part of their time
 *
 * A run that is short is not noted: its time counts as that of requests.
 */


#include "loop/ngx_http_profile_charge.h"


/* the older ones are forgotten */
#define NGX_HTTP_PROFILE_NOTED  256


typedef struct {
    uint64_t                  start;
    uint64_t                  end;
    uint64_t                  stopped;   /* a part without a processor */
    ngx_http_profile_busy_e   what;
} ngx_http_profile_noted_t;


static ngx_http_profile_noted_t  ngx_http_profile_noted[NGX_HTTP_PROFILE_NOTED];
static ngx_uint_t                ngx_http_profile_nnoted;

PROF_HOT_DATA uint64_t           ngx_http_profile_noted_until;


ngx_str_t  ngx_http_profile_busy_texts[] = {
    ngx_string("worker busy with other requests"),
    ngx_string("worker busy with timers"),
    ngx_string("worker busy with the profiler"),
    ngx_string("worker without a processor")
};


void
ngx_http_profile_note_run(ngx_http_profile_run_t *run, uint64_t now)
{
    uint64_t                   stopped;
    ngx_connection_t          *c;
    ngx_http_profile_busy_e    what;
    ngx_http_profile_track_t  *tr;

    tr = run->track;
    c = run->connection;

    if ((ngx_http_profile_own_at >= run->start
         && ngx_http_profile_own_at <= now)
        || (tr && tr->own))
    {
        what = NGX_HTTP_PROFILE_BUSY_PROFILER;

    } else if (tr || run->tail
               || (c && c->listening
                   && c->listening->handler == ngx_http_init_connection))
    {
        what = NGX_HTTP_PROFILE_BUSY_REQUESTS;

    } else {
        what = NGX_HTTP_PROFILE_BUSY_TIMERS;
    }

    /* a run is charged several times if its request ends in it */

    stopped = ngx_http_profile_cpu.stopped;
    ngx_http_profile_cpu.stopped = 0;

    if (what != NGX_HTTP_PROFILE_BUSY_REQUESTS
        || stopped >= NGX_HTTP_PROFILE_BUSY_NS)
    {
        ngx_http_profile_note_busy(what, run->start, now, stopped);
    }
}


void
ngx_http_profile_note_busy(ngx_http_profile_busy_e what, uint64_t start,
    uint64_t end, uint64_t stopped)
{
    ngx_http_profile_noted_t  *noted;

    if (end - start < NGX_HTTP_PROFILE_BUSY_NS) {
        return;
    }

    noted = &ngx_http_profile_noted[ngx_http_profile_nnoted++
                                    % NGX_HTTP_PROFILE_NOTED];

    noted->start = start;
    noted->end = end;
    noted->stopped = ngx_min(stopped, end - start);
    noted->what = what;

    ngx_http_profile_noted_until = ngx_max(ngx_http_profile_noted_until, end);
}


/*
 * The worker has slept although a timer was due, because nginx's time was that
 * of the poll before.  So the time of this poll belongs to a run since then,
 * which has made nginx's time old.
 */

void
ngx_http_profile_note_poll(void)
{
    ngx_http_profile_loop_t   *loop;
    ngx_http_profile_noted_t  *last;

    loop = &ngx_http_profile_loop;
    last = &ngx_http_profile_noted[(ngx_http_profile_nnoted - 1)
                                   % NGX_HTTP_PROFILE_NOTED];

    if (last->end > loop->last_end && last->end <= loop->poll_start) {
        ngx_http_profile_note_busy(last->what, loop->poll_start,
                                   loop->poll_end, 0);
    }
}


/*
 * When the worker was without a processor within a run is not known, so each
 * part of the run has its share.
 */

ngx_http_profile_busy_e
ngx_http_profile_busy_with(uint64_t from, uint64_t to, uint64_t *end,
    uint64_t *stopped)
{
    ngx_uint_t                 i, n;
    ngx_http_profile_noted_t  *noted, *found;

    found = NULL;
    n = ngx_min(ngx_http_profile_nnoted, NGX_HTTP_PROFILE_NOTED);

    *end = to;
    *stopped = 0;

    for (i = 0; i < n; i++) {
        noted = &ngx_http_profile_noted[i];

        if (noted->start > from) {
            *end = ngx_min(*end, noted->start);

        } else if (noted->end > from) {
            *end = ngx_min(*end, noted->end);
            found = noted;
        }
    }

    if (found == NULL) {
        return NGX_HTTP_PROFILE_BUSY_REQUESTS;
    }

    *stopped = (double) found->stopped * (*end - from)
               / (found->end - found->start);

    return found->what;
}


void
ngx_http_profile_split_stall(ngx_http_profile_track_t *tr, uint64_t from,
    uint64_t to)
{
    uint64_t                 end, stopped;
    ngx_http_profile_busy_e  what;

    for ( /* void */ ; from < to; from = end) {

        what = ngx_http_profile_busy_with(from, to, &end, &stopped);

        if (what != NGX_HTTP_PROFILE_BUSY_REQUESTS) {
            tr->times.busy[what] += end - from - stopped;
        }

        tr->times.busy[NGX_HTTP_PROFILE_BUSY_STOPPED] += stopped;
    }
}
