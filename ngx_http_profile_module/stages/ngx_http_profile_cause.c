
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the cause of a gap, and its name.  The cause follows from the event
 * that wakes the request and from the state of the request, which no code has
 * changed since the last turn.
 */


#include "stages/ngx_http_profile_stages.h"


static ngx_http_profile_subrequest_t *ngx_http_profile_waiting_subrequest(
    ngx_http_profile_track_t *tr, ngx_http_profile_wake_t *wake);
static void ngx_http_profile_find_text(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr,
    ngx_http_profile_cause_t *cause);
static ngx_int_t ngx_http_profile_client_cause(ngx_http_request_t *r,
    ngx_event_t *ev, ngx_http_profile_cause_t *cause);
static ngx_int_t ngx_http_profile_subrequest_cause(
    ngx_http_profile_subrequest_t *sr, ngx_http_profile_cause_t *cause);
static void ngx_http_profile_upstream_cause(ngx_http_request_t *r,
    ngx_http_profile_cause_t *cause);
static void ngx_http_profile_socket_cause(ngx_connection_t *c,
    ngx_http_profile_cause_t *cause);
static const char *ngx_http_profile_find_event(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr);
static void ngx_http_profile_copy_name(ngx_http_profile_cause_t *cause,
    ngx_str_t *name);


/* the subrequest or main request that waited for this event, or NULL */

static ngx_http_profile_subrequest_t *
ngx_http_profile_waiting_subrequest(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_http_request_t             *r;
    ngx_http_profile_subrequest_t  *sr, *any;

    any = NULL;

    for (sr = tr->subrequests; sr; sr = sr->next) {
        r = sr->request;

        if (r->done) {
            continue;
        }

        if (wake && wake->request == r) {
            return sr;
        }

        if (wake && wake->connection && r->upstream
            && r->upstream->peer.connection == wake->connection)
        {
            return sr;
        }

#if (NGX_HTTP_CACHE)
        if (wake && wake->event && r->cache
            && wake->event == &r->cache->wait_event)
        {
            return sr;
        }
#endif

        /* the main request is the last one of the list */

        if (any == NULL
            && (sr->aio || (r->upstream && r->upstream->peer.connection)))
        {
            any = sr;
        }
    }

    /* another event has come: the awaited event describes the gap better */

    if (wake && (wake->timer || (wake->connection
        && wake->connection != tr->request->connection)))
    {
        return NULL;
    }

    return any;
}


void
ngx_http_profile_find_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_cause_t *cause)
{
    ngx_http_request_t             *r;
    ngx_http_profile_subrequest_t  *sr;

    sr = ngx_http_profile_waiting_subrequest(tr, wake);

    cause->len = 0;
    cause->attempt = 1;
    cause->inside = NULL;

    ngx_http_profile_find_text(tr, wake, sr, cause);

    cause->event = wake ? ngx_http_profile_find_event(tr, wake, sr) : NULL;

    /* the URI that the client requested is not named again */

    r = sr ? sr->request : tr->request;

    if (r->internal) {
        cause->inside = (r == r->main) ? "redirect " : "subrequest ";
        cause->place = *ngx_http_profile_place(r);
    }
}


static void
ngx_http_profile_find_text(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr,
    ngx_http_profile_cause_t *cause)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tr->request;
    c = wake ? wake->connection : NULL;

    if (wake && wake->resolver) {
        cause->text = "resolver ";
        ngx_http_profile_copy_name(cause, &wake->resolver->name);

    } else if (wake && wake->body) {
        cause->text = "client sending the request body";

    } else if (c == r->connection
               && ngx_http_profile_client_cause(r, wake->event, cause)
                  == NGX_OK)
    {
        return;

    } else if (sr && ngx_http_profile_subrequest_cause(sr, cause) == NGX_OK) {
        return;

    } else if (c && c != r->connection) {
        ngx_http_profile_socket_cause(c, cause);

    } else if (wake && wake->timer && c == NULL) {
        cause->text = "script timer";

    } else if (c == r->connection && wake->event == c->write) {
        cause->text = "client not reading";

    } else {
        cause->text = "unknown";
    }
}


/* NGX_DECLINED: another cause */

static ngx_int_t
ngx_http_profile_client_cause(ngx_http_request_t *r, ngx_event_t *ev,
    ngx_http_profile_cause_t *cause)
{
    ngx_connection_t  *c;

    c = r->connection;

    /* a delayed request has not sent any data, a delayed response has */

    if (ev == c->write && c->write->delayed) {

        if (r->header_sent) {
            cause->text = "limit_rate";

        } else {
            cause->text = r->headers_out.www_authenticate ? "auth_delay"
                                                          : "limit_req";
        }

    } else if (r->lingering_time) {

        /*
         * The response was sent, and further data of the client is discarded.
         */

        cause->text = "client closing the connection";

    } else if (ngx_http_profile_reads_body(r, ev)) {
        cause->text = "client sending the request body";

    } else {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* a named location has no URI of its own */

ngx_str_t *
ngx_http_profile_place(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return clcf->named ? &clcf->name : &r->uri;
}


/* NGX_DECLINED: another cause */

static ngx_int_t
ngx_http_profile_subrequest_cause(ngx_http_profile_subrequest_t *sr,
    ngx_http_profile_cause_t *cause)
{
    ngx_http_request_t   *r;
    ngx_http_upstream_t  *u;

    r = sr->request;
    u = r->upstream;

    if (sr->aio) {
        cause->text = "disk or thread pool";
        return NGX_OK;
    }

#if (NGX_HTTP_CACHE)
    if (r->cache && r->cache->waiting) {
        cause->text = "cache lock";
        return NGX_OK;
    }
#endif

    if (u && u->resolved && u->resolved->ctx) {
        cause->text = "resolver ";
        ngx_http_profile_copy_name(cause, &u->resolved->host);
        return NGX_OK;
    }

    if (u && u->peer.connection && u->peer.name && u->state) {
        ngx_http_profile_upstream_cause(r, cause);
        return NGX_OK;
    }

    return NGX_DECLINED;
}


static void
ngx_http_profile_upstream_cause(ngx_http_request_t *r,
    ngx_http_profile_cause_t *cause)
{
    ngx_uint_t                  i, n;
    ngx_connection_t           *c;
    ngx_http_upstream_t        *u;
    ngx_http_upstream_state_t  *state;

    u = r->upstream;
    c = u->peer.connection;

    if (c->read->delayed) {
        cause->text = "limit_rate of upstream ";

    } else if (u->state->connect_time == (ngx_msec_t) -1) {

        cause->text = "upstream connect ";

#if (NGX_HTTP_SSL)
        if (c->ssl) {
            cause->text = "upstream TLS handshake ";
        }
#endif

    } else if (u->state->header_time == (ngx_msec_t) -1) {

        if (c->write->timer_set || u->request_body_blocked) {
            cause->text = "sending to upstream ";

        } else if (u->buffer.start == NULL
                   || u->buffer.last == u->buffer.start)
        {
            cause->text = "upstream first byte ";

        } else {
            cause->text = "upstream header ";
        }

    } else {
        cause->text = "upstream body ";
    }

    ngx_http_profile_copy_name(cause, u->peer.name);

    /* a redirect adds a state without a peer between those of its parts */

    state = r->upstream_states->elts;
    i = r->upstream_states->nelts;

    for (n = 0; i && state[i - 1].peer; n++, i--) { /* void */ }

    cause->attempt = n;
}


/* a connection without an upstream of nginx belongs to a script */

static void
ngx_http_profile_socket_cause(ngx_connection_t *c,
    ngx_http_profile_cause_t *cause)
{
    socklen_t       socklen;
    ngx_sockaddr_t  sa;

    socklen = sizeof(ngx_sockaddr_t);

    if (getpeername(c->fd, &sa.sockaddr, &socklen) == -1) {
        cause->text = "script socket connect";
        return;
    }

    cause->text = "script socket ";
    cause->len = ngx_sock_ntop(&sa.sockaddr, socklen, cause->name,
                               sizeof(cause->name), 1);
}


/* the event that began the turn */

static const char *
ngx_http_profile_find_event(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr)
{
    if (wake->resolver) {
        return "event: resolver";
    }

    if (sr && sr->aio) {
        return "event: disk or thread pool";
    }

    if (wake->body || wake->connection == tr->request->connection) {
        return "event: client";
    }

    if (sr && sr->request->upstream && wake->connection) {
        return "event: upstream";
    }

    if (wake->connection) {
        return "event: script socket";
    }

    return wake->timer ? "event: timer" : "event";
}


/* the memory of upstream and host names may be freed before they are used */

static void
ngx_http_profile_copy_name(ngx_http_profile_cause_t *cause, ngx_str_t *name)
{
    cause->len = ngx_min(name->len, sizeof(cause->name));
    ngx_memcpy(cause->name, name->data, cause->len);
}


uintptr_t
ngx_http_profile_cause_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause)
{
    u_char  *p;
    u_char   text[NGX_MAX_ERROR_STR / 4];

    /* ngx_slprintf() would be slow here; texts are short */

    p = ngx_cpymem(text, cause->text, ngx_strlen(cause->text));
    p = ngx_cpymem(p, cause->name, cause->len);

    if (cause->attempt > 1) {
        p = ngx_sprintf(p, " (try %ui)", cause->attempt);
    }

    return prof_capture_name(c, (char *) text, p - text);
}


uintptr_t
ngx_http_profile_inside_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause)
{
    u_char  *p;
    u_char   text[NGX_MAX_ERROR_STR / 4];

    p = ngx_slprintf(text, text + sizeof(text), "%s%V", cause->inside,
                     &cause->place);

    return prof_capture_name(c, (char *) text, p - text);
}


uintptr_t
ngx_http_profile_event_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause)
{
    return prof_capture_name(c, cause->event, ngx_strlen(cause->event));
}
