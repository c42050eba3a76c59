
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The cause of a gap, in words.  It is told from what wakes the request and
 * from the state that it is in: nobody has touched either since the last turn.
 */


#include "ngx_http_profile.h"


static u_char *ngx_http_profile_client_cause(ngx_http_request_t *r,
    ngx_event_t *ev, u_char *p, u_char *last);
static ngx_uint_t ngx_http_profile_reads_body(ngx_http_request_t *r,
    ngx_event_t *ev);
static u_char *ngx_http_profile_part_cause(ngx_http_profile_part_t *part,
    u_char *p, u_char *last);
static u_char *ngx_http_profile_upstream_cause(ngx_http_request_t *r,
    u_char *p, u_char *last);
static u_char *ngx_http_profile_socket_cause(ngx_connection_t *c, u_char *p,
    u_char *last);


/* the part of the request that waited for what has come, or NULL */

ngx_http_profile_part_t *
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


u_char *
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
        p = ngx_http_profile_put(p, last, "resolver ");
        return ngx_http_profile_put_str(p, last, &wake->resolver->name);
    }

    if (wake && wake->body) {
        return ngx_http_profile_put(p, last, "client sending the request body");
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
        return ngx_http_profile_put(p, last, "script timer");
    }

    if (c == r->connection && wake->event == c->write) {
        return ngx_http_profile_put(p, last, "client not reading");
    }

    return ngx_http_profile_put(p, last, "unknown");
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
            return ngx_http_profile_put(p, last, "limit_rate");
        }

        return ngx_http_profile_put(p, last,
                                     r->headers_out.www_authenticate
                                     ? "auth_delay" : "limit_req");
    }

    /* all was sent, and what the client still sends is thrown away */

    if (r->lingering_time) {
        return ngx_http_profile_put(p, last, "client closing the connection");
    }

    if (ngx_http_profile_reads_body(r, ev)) {
        return ngx_http_profile_put(p, last, "client sending the request body");
    }

    return p;
}


/* -1: none was read, 0: all of it was, but for what a stream holds */

static ngx_uint_t
ngx_http_profile_reads_body(ngx_http_request_t *r, ngx_event_t *ev)
{
    if (r->request_body == NULL
        || (r->headers_in.content_length_n <= 0 && !r->headers_in.chunked))
    {
        return 0;
    }

    return r->request_body->rest > 0
#if (NGX_HTTP_V2 && nginx_version >= 1021002)
           || (r->stream && ev == r->connection->read
               && !r->request_body->last_saved)
#endif
           ;
}


/* a named location has no URI of its own */

ngx_str_t *
ngx_http_profile_place(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return clcf->named ? &clcf->name : &r->uri;
}


/*
 * While an upstream works, nginx only looks whether the client is still there:
 * nothing is waited for that could have been there earlier.
 */

ngx_uint_t
ngx_http_profile_only_looks(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tr->request;
    c = r->connection;

    if (wake->timer || wake->event == NULL || r->upstream == NULL
        || r->upstream->peer.connection == NULL || r->upstream->upgrade)
    {
        return 0;
    }

    if (wake->event == c->write) {
        return !r->header_sent;
    }

    return wake->event == c->read
           && !ngx_http_profile_reads_body(r, wake->event);
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
        return ngx_http_profile_put(p, last, "disk or thread pool");
    }

#if (NGX_HTTP_CACHE)
    if (r->cache && r->cache->waiting) {
        return ngx_http_profile_put(p, last, "cache lock");
    }
#endif

    if (u && u->resolved && u->resolved->ctx) {
        p = ngx_http_profile_put(p, last, "resolver ");
        return ngx_http_profile_put_str(p, last, &u->resolved->host);
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
        what = "limit_rate of upstream ";

    } else if (u->state->connect_time == (ngx_msec_t) -1) {

        what = "upstream connect ";

#if (NGX_HTTP_SSL)
        if (c->ssl) {
            what = "upstream TLS handshake ";
        }
#endif

    } else if (u->state->header_time == (ngx_msec_t) -1) {

        if (c->write->timer_set || u->request_body_blocked) {
            what = "sending to upstream ";

        } else if (u->buffer.start == NULL
                   || u->buffer.last == u->buffer.start)
        {
            what = "upstream first byte ";

        } else {
            what = "upstream header ";
        }

    } else {
        what = "upstream body ";
    }

    p = ngx_http_profile_put(p, last, what);
    p = ngx_http_profile_put_str(p, last, u->peer.name);

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
        return ngx_http_profile_put(p, last, "script socket connect");
    }

    len = ngx_sock_ntop(&sa.sockaddr, socklen, text, sizeof(text), 1);

    return ngx_slprintf(p, last, "script socket %*s", len, text);
}


/* each gap of each request is named, and ngx_slprintf() is slow for that */

u_char *
ngx_http_profile_put(u_char *p, u_char *last, char *text)
{
    ngx_str_t  s;

    s.data = (u_char *) text;
    s.len = ngx_strlen(text);

    return ngx_http_profile_put_str(p, last, &s);
}


u_char *
ngx_http_profile_put_str(u_char *p, u_char *last, ngx_str_t *text)
{
    size_t  len;

    len = ngx_min(text->len, (size_t) (last - p));

    return ngx_cpymem(p, text->data, len);
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
