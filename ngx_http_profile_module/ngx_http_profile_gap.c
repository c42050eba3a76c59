
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Gaps: what a request waited for between two turns.  The cause is found when
 * the next turn begins, from what wakes the request and from the state that it
 * is in: nobody has touched either since the last turn.
 *
 * A gap has two parts: until what was waited for was there, and from then on,
 * while the worker ran code of other requests.  When it was there is known
 * exactly if the worker slept (then the poll returned because of it), if it
 * was a timer, or if it was data on a TCP connection (the kernel knows when
 * they came, to the millisecond).  Otherwise it came while the worker ran
 * other code between two polls, and the middle of that time is taken.
 */


#include "ngx_http_profile.h"

#include <netinet/tcp.h>


/* shorter delays are the event loop's own work, not other requests' */
#define NGX_HTTP_PROFILE_BUSY_NS   50000

/* a poll that took longer than this has slept */
#define NGX_HTTP_PROFILE_SLEEP_NS  20000

/* after a busier time than this the kernel is asked when data came */
#define NGX_HTTP_PROFILE_ASK_NS    2000000


static void ngx_http_profile_busy_gap(prof_capture_t *c, uint64_t until);
static ngx_http_profile_part_t *ngx_http_profile_waiting_part(
    ngx_http_profile_track_t *tr, ngx_http_profile_wake_t *wake);
static u_char *ngx_http_profile_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_part_t *part, u_char *p,
    u_char *last);
static u_char *ngx_http_profile_client_cause(ngx_http_request_t *r,
    ngx_event_t *ev, u_char *p, u_char *last);
static u_char *ngx_http_profile_part_cause(ngx_http_profile_part_t *part,
    u_char *p, u_char *last);
static u_char *ngx_http_profile_upstream_cause(ngx_http_request_t *r,
    u_char *p, u_char *last);
static u_char *ngx_http_profile_socket_cause(ngx_connection_t *c, u_char *p,
    u_char *last);


/*
 * Closes the gap before a turn; wake is NULL when the capture ends in it.
 */

void
ngx_http_profile_gap(ngx_http_profile_track_t *tr, prof_capture_t *c,
    ngx_http_profile_wake_t *wake)
{
    u_char                   *p;
    uint64_t                  ready, now;
    uintptr_t                 frames[2];
    ngx_uint_t                n;
    ngx_http_request_t       *r;
    ngx_http_profile_part_t  *part;
    u_char                    text[NGX_MAX_ERROR_STR / 4];

    part = ngx_http_profile_waiting_part(tr, wake);

    p = ngx_http_profile_cause(tr, wake, part, text, text + sizeof(text));

    frames[0] = prof_capture_name(c, (char *) text, p - text);
    n = 1;

    /* what the client asked for is not named again */

    r = part ? part->request : tr->request;

    if (r->internal) {
        p = ngx_slprintf(text, text + sizeof(text), "%s %V",
                         r == r->main ? "redirect" : "subrequest", &r->uri);

        frames[1] = prof_capture_name(c, (char *) text, p - text);
        n = 2;
    }

    now = prof_now();
    ready = wake ? ngx_http_profile_ready(wake, now) : now;
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


/* the span of a turn: what began it */

uintptr_t
ngx_http_profile_wake_name(ngx_http_profile_track_t *tr, prof_capture_t *c,
    ngx_http_profile_wake_t *wake)
{
    const char               *name;
    ngx_http_profile_part_t  *part;

    part = ngx_http_profile_waiting_part(tr, wake);

    if (wake->resolver) {
        name = "event: resolver";

    } else if (part && part->aio) {
        name = "event: disk or thread pool";

    } else if (wake->body || wake->connection == tr->request->connection) {
        name = "event: client";

    } else if (part && part->request->upstream && wake->connection) {
        name = "event: upstream";

    } else if (wake->connection) {
        name = "event: script socket";

    } else if (wake->timer) {
        name = "event: timer";

    } else {
        name = "event";
    }

    return prof_capture_name(c, name, ngx_strlen(name));
}


/* when the request could have run */

uint64_t
ngx_http_profile_ready(ngx_http_profile_wake_t *wake, uint64_t now)
{
    uint64_t                  ready;
    socklen_t                 len;
    struct tcp_info           ti;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    /* in the iteration in which the worker was armed */

    if (loop->poll_end == 0) {
        return now;
    }

    if (loop->poll_end - loop->poll_start > NGX_HTTP_PROFILE_SLEEP_NS
        || loop->last_end == 0)
    {
        return loop->poll_end;
    }

    if (wake->timer) {
        ready = (uint64_t) wake->event->timer.key * 1000000;

    } else {
        ready = loop->last_end + (loop->poll_start - loop->last_end) / 2;

        /* a system call, for the milliseconds that it tells */

        len = sizeof(struct tcp_info);

        if (loop->poll_start - loop->last_end > NGX_HTTP_PROFILE_ASK_NS
            && wake->connection && wake->event == wake->connection->read
            && getsockopt(wake->connection->fd, IPPROTO_TCP, TCP_INFO, &ti,
                          &len)
               == 0)
        {
            ready = now - (uint64_t) ti.tcpi_last_data_recv * 1000000;
        }
    }

    return ngx_min(ngx_max(ready, loop->last_end), loop->poll_start);
}


/* the part of the request that waited for what has come, or NULL */

static ngx_http_profile_part_t *
ngx_http_profile_waiting_part(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_http_request_t       *r;
    ngx_http_profile_part_t  *part, *any;

    any = NULL;

    for (part = tr->parts; part; part = part->next) {
        r = part->request;

        if (r->done) {
            continue;
        }

        if (wake && wake->request == r) {
            return part;
        }

        if (wake && wake->connection && r->upstream
            && r->upstream->peer.connection == wake->connection)
        {
            return part;
        }

#if (NGX_HTTP_CACHE)
        if (wake && wake->event && r->cache
            && wake->event == &r->cache->wait_event)
        {
            return part;
        }
#endif

        /* parts are listed from the youngest to the main request */

        if (any == NULL
            && (part->aio || (r->upstream && r->upstream->peer.connection)))
        {
            any = part;
        }
    }

    /* something else has come: what is waited for says most about the gap */

    if (wake && (wake->timer || (wake->connection
        && wake->connection != tr->request->connection)))
    {
        return NULL;
    }

    return any;
}


static u_char *
ngx_http_profile_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_part_t *part, u_char *p,
    u_char *last)
{
    u_char              *end;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tr->request;
    c = wake ? wake->connection : NULL;

    if (wake && wake->resolver) {
        return ngx_slprintf(p, last, "resolver %V", &wake->resolver->name);
    }

    if (wake && wake->body) {
        return ngx_slprintf(p, last, "client sending the request body");
    }

    if (c == r->connection) {
        end = ngx_http_profile_client_cause(r, wake->event, p, last);

        if (end != p) {
            return end;
        }
    }

    if (part) {
        end = ngx_http_profile_part_cause(part, p, last);

        if (end != p) {
            return end;
        }
    }

    if (c && c != r->connection) {
        return ngx_http_profile_socket_cause(c, p, last);
    }

    if (wake && wake->timer && c == NULL) {
        return ngx_slprintf(p, last, "script timer");
    }

    if (c == r->connection && wake->event == c->write) {
        return ngx_slprintf(p, last, "client not reading");
    }

    return ngx_slprintf(p, last, "unknown");
}


static u_char *
ngx_http_profile_client_cause(ngx_http_request_t *r, ngx_event_t *ev,
    u_char *p, u_char *last)
{
    ngx_connection_t  *c;

    c = r->connection;

    /* a delayed request has sent nothing yet, a delayed response has */

    if (ev == c->write && c->write->delayed) {
        if (r->header_sent) {
            return ngx_slprintf(p, last, "limit_rate");
        }

        return ngx_slprintf(p, last, r->headers_out.www_authenticate
                                     ? "auth_delay" : "limit_req");
    }

    /* all was sent, and what the client still sends is thrown away */

    if (r->lingering_time) {
        return ngx_slprintf(p, last, "client closing the connection");
    }

    /* -1: none was read, 0: all of it was, but for what a stream holds */

    if (r->request_body
        && (r->request_body->rest > 0
#if (NGX_HTTP_V2 && nginx_version >= 1021002)
            || (r->stream && ev == c->read && !r->request_body->last_saved)
#endif
           ))
    {
        return ngx_slprintf(p, last, "client sending the request body");
    }

    return p;
}


static u_char *
ngx_http_profile_part_cause(ngx_http_profile_part_t *part, u_char *p,
    u_char *last)
{
    ngx_http_request_t   *r;
    ngx_http_upstream_t  *u;

    r = part->request;
    u = r->upstream;

    if (part->aio) {
        return ngx_slprintf(p, last, "disk or thread pool");
    }

#if (NGX_HTTP_CACHE)
    if (r->cache && r->cache->waiting) {
        return ngx_slprintf(p, last, "cache lock");
    }
#endif

    if (u && u->resolved && u->resolved->ctx) {
        return ngx_slprintf(p, last, "resolver %V", &u->resolved->host);
    }

    if (u && u->peer.connection && u->peer.name && u->state) {
        return ngx_http_profile_upstream_cause(r, p, last);
    }

    return p;
}


static u_char *
ngx_http_profile_upstream_cause(ngx_http_request_t *r, u_char *p,
    u_char *last)
{
    char                       *what;
    ngx_uint_t                  i, n;
    ngx_connection_t           *c;
    ngx_http_upstream_t        *u;
    ngx_http_upstream_state_t  *state;

    u = r->upstream;
    c = u->peer.connection;

    if (c->read->delayed) {
        what = "limit_rate of upstream";

    } else if (u->state->connect_time == (ngx_msec_t) -1) {

        what = "upstream connect";

#if (NGX_HTTP_SSL)
        if (c->ssl) {
            what = "upstream TLS handshake";
        }
#endif

    } else if (u->state->header_time == (ngx_msec_t) -1) {

        if (c->write->timer_set || u->request_body_blocked) {
            what = "sending to upstream";

        } else if (u->buffer.start == NULL
                   || u->buffer.last == u->buffer.start)
        {
            what = "upstream first byte";

        } else {
            what = "upstream header";
        }

    } else {
        what = "upstream body";
    }

    p = ngx_slprintf(p, last, "%s %V", what, u->peer.name);

    /* a redirect puts an empty one between those of its parts */

    state = r->upstream_states->elts;
    i = r->upstream_states->nelts;

    for (n = 0; i && state[i - 1].peer; n++, i--) { /* void */ }

    return n > 1 ? ngx_slprintf(p, last, " (try %ui)", n) : p;
}


/* a connection that no upstream of nginx has: a script's */

static u_char *
ngx_http_profile_socket_cause(ngx_connection_t *c, u_char *p, u_char *last)
{
    size_t          len;
    socklen_t       socklen;
    ngx_sockaddr_t  sa;
    u_char          text[NGX_SOCKADDR_STRLEN];

    socklen = sizeof(ngx_sockaddr_t);

    if (getpeername(c->fd, &sa.sockaddr, &socklen) == -1) {
        return ngx_slprintf(p, last, "script socket connect");
    }

    len = ngx_sock_ntop(&sa.sockaddr, socklen, text, sizeof(text), 1);

    return ngx_slprintf(p, last, "script socket %*s", len, text);
}
