
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the event loop writes to the turn log: a record for each run, and the
 * row of a request.
 *
 * A row is made when the request is read, so that it is there if the request
 * ends the worker.  It is completed when the request is logged
 * (ngx_http_profile_turn_row.c).
 */


#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_redact.h"
#include "loop/ngx_http_profile_loop_private.h"


/* a request line ends with " HTTP/1.1", in every version of HTTP */
#define NGX_HTTP_PROFILE_PROTOCOL  (sizeof(" HTTP/1.1") - 1)


static void ngx_http_profile_log_redacted(ngx_http_request_t *r,
    prof_turns_request_t *row);
PROF_GLUE_INLINE void ngx_http_profile_log_text(prof_turns_request_t *row,
    u_char *data, size_t len);


/*
 * The turn could have begun when the poll returned, as in
 * ngx_http_profile_account_start().
 */

PROF_HOT void
ngx_http_profile_log_first(ngx_http_profile_track_t *tr)
{
    size_t                        len;
    uint64_t                      polled;
    ngx_http_request_t           *r;
    prof_turns_writer_t          *w;
    prof_turns_request_t         *row;
    ngx_http_profile_run_t       *run;
    ngx_http_profile_loc_conf_t  *plcf;

    w = &ngx_http_profile_turn_log;
    r = tr->request;
    run = ngx_http_profile_current;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    row = prof_turns_add(w);

    row->status = 0;
    row->location = plcf->entry;
    row->start = run->start;

    if (r->args.len) {
        ngx_http_profile_log_redacted(r, row);

    } else {
        len = r->request_line.len;
        len -= (len > NGX_HTTP_PROFILE_PROTOCOL
                && r->http_version >= NGX_HTTP_VERSION_10)
               ? NGX_HTTP_PROFILE_PROTOCOL : 0;

        ngx_http_profile_log_text(row, r->request_line.data, len);
    }

    tr->number = prof_turns_added(w, row);

    if (w->depth == 0 || !prof_turns_open(w)) {
        return;
    }

    polled = ngx_http_profile_loop.poll_end;

    w->row = row;
    w->run->request = tr->number;
    w->run->flags |= PROF_TURNS_FIRST;

    if (polled && polled < run->start) {
        prof_turns_stalled(w, run->start - polled);
    }
}


/* the request has arguments, whose values may be hidden */

__attribute__((noinline)) static void
ngx_http_profile_log_redacted(ngx_http_request_t *r, prof_turns_request_t *row)
{
    u_char     *copy;
    ngx_str_t   text;

    text = r->request_line;

    if (r->http_version >= NGX_HTTP_VERSION_10
        && text.len > NGX_HTTP_PROFILE_PROTOCOL)
    {
        text.len -= NGX_HTTP_PROFILE_PROTOCOL;
    }

    copy = ngx_http_profile_redact(r, &text);

    ngx_http_profile_log_text(row, text.data, text.len);

    if (copy) {
        ngx_free(copy);
    }
}


PROF_GLUE_INLINE void
ngx_http_profile_log_text(prof_turns_request_t *row, u_char *data, size_t len)
{
    row->cut = 0;

    if (len > PROF_TURNS_TEXT) {
        row->cut = (uint16_t) ngx_min(len - PROF_TURNS_TEXT, UINT16_MAX);
        len = PROF_TURNS_TEXT;
    }

    row->len = (uint16_t) len;

    ngx_memcpy(row->text, data, len);
}


/* a request of one turn has no end of a turn in which its location is known */

PROF_HOT ngx_int_t
ngx_http_profile_log_located(ngx_http_request_t *r)
{
    prof_turns_request_t         *row;
    ngx_http_profile_loc_conf_t  *plcf;

    row = ngx_http_profile_turn_log.row;

    if (row && r == r->main) {
        plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
        row->location = plcf->entry;
    }

    return NGX_DECLINED;
}


PROF_HOT void
ngx_http_profile_log_woken(ngx_http_profile_wake_t *wake, uint64_t ready)
{
    uint64_t              start;
    prof_turns_writer_t  *w;

    w = &ngx_http_profile_turn_log;
    start = ngx_http_profile_current->start;

    if (w->depth == 0 || !prof_turns_open(w)) {
        return;
    }

    prof_turns_stalled(w, start > ready ? start - ready : 0);

    w->run->flags |= (wake->timer ? PROF_TURNS_TIMER : 0)
                     | ((wake->request && wake->request != wake->request->main)
                        ? PROF_TURNS_SUBREQUEST : 0);
}


void
ngx_http_profile_log_found(ngx_http_profile_track_t *tr, uint64_t begin,
    uint64_t ready)
{
    prof_turns_writer_t  *w;

    w = &ngx_http_profile_turn_log;

    if (w->depth == 0 || !prof_turns_open(w)) {
        return;
    }

    if (begin > w->run->start) {
        prof_turns_leave(w, begin, 0);
        prof_turns_enter(w, begin, ngx_http_profile_current->handler);
    }

    if (tr) {
        prof_turns_own(w, tr->number);
        prof_turns_stalled(w, begin > ready ? begin - ready : 0);
    }
}


PROF_HOT void
ngx_http_profile_log_leave(ngx_http_profile_run_t *run, uint64_t now)
{
    uint32_t              flags;
    prof_turns_writer_t  *w;
#if (NGX_HTTP_SSL)
    ngx_connection_t     *c;
#endif

    w = &ngx_http_profile_turn_log;

    flags = (run->accept ? PROF_TURNS_ACCEPT : 0)
            | (run->tail ? PROF_TURNS_LAST : 0);

#if (NGX_HTTP_SSL)
    c = run->connection;

    if (w->row == NULL && c && c->fd != (ngx_socket_t) -1 && c->ssl
        && c->requests == 0)
    {
        flags |= PROF_TURNS_TLS;
    }
#endif

    prof_turns_leave(w, now, flags);
}
