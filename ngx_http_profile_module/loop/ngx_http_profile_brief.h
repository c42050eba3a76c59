
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The brief request.  Most requests begin and end in one event, one after the
 * other.  The track of such a request is ngx_http_profile_brief, and its
 * connections and events are not noted.  A request that does more gets a
 * lasting track.
 *
 * Accounting costs a request for a file 316 instructions in this way, and 918
 * with a lasting track (bench/accounting.pl --instructions).
 *
 * Context: a worker, not in a signal.
 */


#ifndef _NGX_HTTP_PROFILE_BRIEF_H_INCLUDED_
#define _NGX_HTTP_PROFILE_BRIEF_H_INCLUDED_


#include "loop/ngx_http_profile_loop.h"


PROF_HIDDEN_BEGIN

/* the track of the brief request; request is NULL without a brief request */
extern ngx_http_profile_track_t  ngx_http_profile_brief;

/*
 * Set if logs need the times of brief requests.  Otherwise the times are
 * computed when a script reads them.
 */
extern ngx_uint_t  ngx_http_profile_brief_asked;

/* computes the times of the brief request */
void ngx_http_profile_ask_brief(void);

PROF_HIDDEN_END


/*
 * Makes the current run the first turn of this request, from the run's start.
 * Returns NGX_DECLINED if a part of the run was not for the request.
 */

PROF_GLUE_INLINE ngx_int_t
ngx_http_profile_adopt(ngx_http_profile_track_t *tr, ngx_http_request_t *r)
{
    ngx_http_profile_run_t  *run;

    run = ngx_http_profile_current;

    if (run == NULL || run->track || run->tail
        || run->connection != r->connection)
    {
        return NGX_DECLINED;
    }

    run->track = tr;

    return NGX_OK;
}


/*
 * Called in the POST_READ phase.  Returns NGX_DECLINED if the request needs a
 * lasting track.
 */

PROF_GLUE_INLINE ngx_int_t
ngx_http_profile_track_brief(ngx_http_request_t *r)
{
    ngx_http_profile_track_t  *tr;

    tr = &ngx_http_profile_brief;

    if (tr->request || ngx_http_profile_adopt(tr, r) != NGX_OK) {
        return NGX_DECLINED;
    }

    tr->request = r;
    tr->begun = 0;
    tr->closed = 0;
    tr->described = 0;
    tr->accounted = 1;
    tr->lost = 0;
    tr->since = ngx_http_profile_current->start;

    if (ngx_http_profile_logs_turns()) {
        ngx_http_profile_log_first(tr);
    }

    tr->waited = 0;
    tr->turn = 0;
    tr->turn_cpu = 0;
    tr->turn_no_processor = 0;
    tr->turn_blocked = 0;

    /* in parts that take a few stores */

    ngx_memzero(&tr->times, offsetof(ngx_http_profile_times_t, busy));
    ngx_memzero(tr->times.busy, sizeof(tr->times.busy));

    if (ngx_http_profile_brief_asked) {
        ngx_http_profile_ask_brief();
    }

    return NGX_OK;
}


#endif /* _NGX_HTTP_PROFILE_BRIEF_H_INCLUDED_ */
