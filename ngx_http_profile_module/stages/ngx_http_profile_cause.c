
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
static ngx_http_profile_wake_t *ngx_http_profile_awaited_wake(
    ngx_http_profile_track_t *tr, ngx_http_profile_wake_t *wake,
    ngx_http_profile_wake_t *present);
static void ngx_http_profile_present(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *present);
static ngx_http_profile_cause_e ngx_http_profile_classify(
    ngx_http_profile_track_t *tr, ngx_http_profile_wake_t *wake,
    ngx_http_profile_subrequest_t *sr);
static ngx_http_profile_cause_e ngx_http_profile_client_cause(
    ngx_http_request_t *r, ngx_event_t *ev);
static ngx_http_profile_cause_e ngx_http_profile_subrequest_cause(
    ngx_http_profile_subrequest_t *sr);
static ngx_http_profile_cause_e ngx_http_profile_upstream_cause(
    ngx_http_request_t *r);
static void ngx_http_profile_name_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_cause_t *cause, ngx_http_profile_cause_e type,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr);
static void ngx_http_profile_name_upstream(ngx_http_profile_cause_t *cause,
    ngx_http_request_t *r);
static void ngx_http_profile_name_socket(ngx_http_profile_cause_t *cause,
    ngx_connection_t *c);
static const char *ngx_http_profile_event_text(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr);
static void ngx_http_profile_copy_name(ngx_http_profile_cause_t *cause,
    ngx_str_t *name);


/* a name follows a text that ends with a space */

const char  *ngx_http_profile_causes[NGX_HTTP_PROFILE_CAUSES] = {
    "unknown",
    "client sending the request header",
    "client sending the request body",
    "client not reading",
    "client closing the connection",
    "limit_rate",
    "limit_req",
    "auth_delay",
    "resolver ",
    "disk or thread pool",
    "cache lock",
    "upstream connect ",
    "upstream TLS handshake ",
    "sending to upstream ",
    "upstream first byte ",
    "upstream header ",
    "upstream body ",
    "limit_rate of upstream ",
    "script socket ",
    "script timer",
    "script event",
    "profiler"
};


/* returns the subrequest or main request that waited for the event, or NULL */

static ngx_http_profile_subrequest_t *
ngx_http_profile_waiting_subrequest(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_connection_t               *c;
    ngx_http_request_t             *r;
    ngx_http_profile_subrequest_t  *sr, *any;

    any = NULL;
    c = tr->request->connection;

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

        if (wake && wake->resolver && r->upstream && r->upstream->resolved
            && r->upstream->resolved->ctx == wake->resolver)
        {
            return sr;
        }

        /* the main request is the last one of the list */

#if (NGX_HTTP_CACHE)
        if (r->cache && r->cache->waiting) {

            if (wake && wake->event == &r->cache->wait_event) {
                return sr;
            }

            any = any ? any : sr;
        }
#endif

        if (any == NULL
            && (sr->aio
                || (r->upstream
                    && (r->upstream->peer.connection
                        || (r->upstream->resolved
                            && r->upstream->resolved->ctx)))))
        {
            any = sr;
        }
    }

    /*
     * A timer or another connection is the cause itself.  Other events may come
     * while the request waits, and the awaited event describes the gap better.
     * The time limit for a client that reads is such an event.
     */

    if (wake == NULL
        || (wake->connection == c
            && (!wake->timer || (wake->event == c->write && c->write->ready))))
    {
        return any;
    }

    return (wake->timer || wake->connection) ? NULL : any;
}


ngx_http_profile_cause_e
ngx_http_profile_cause_of(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_http_profile_wake_t         present;
    ngx_http_profile_subrequest_t  *sr;

    sr = ngx_http_profile_waiting_subrequest(tr, wake);

    if (sr == NULL) {
        wake = ngx_http_profile_awaited_wake(tr, wake, &present);
    }

    return ngx_http_profile_classify(tr, wake, sr);
}


/*
 * A client that leaves wakes a request that waits for something else.  What it
 * waits for is still a part of its state.
 */

static ngx_http_profile_wake_t *
ngx_http_profile_awaited_wake(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_wake_t *present)
{
    ngx_connection_t  *c;

    c = tr->request->connection;

    if (wake == NULL || wake->connection != c || wake->event != c->read
        || wake->body || wake->scripted || wake->resolver
        || ngx_http_profile_client_cause(tr->request, wake->event)
           != NGX_HTTP_PROFILE_CAUSE_UNKNOWN)
    {
        return wake;
    }

    ngx_http_profile_present(tr, present);

    return present;
}


/* the event that is going to wake the request is the one that it waits for */

static void
ngx_http_profile_present(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *present)
{
    ngx_str_t          name;
    ngx_uint_t         timer;
    ngx_connection_t  *c;

    ngx_memzero(present, sizeof(ngx_http_profile_wake_t));

    c = tr->request->connection;

    if (c->write->delayed || c->write->timer_set) {
        present->connection = c;
        present->event = c->write;

    } else if (c->read->timer_set || ngx_http_profile_resolves(tr, 0, &name)) {
        present->connection = c;
        present->event = c->read;

    } else {
        present->connection = ngx_http_profile_awaits(tr, &timer);
        present->timer = timer;
    }
}


void
ngx_http_profile_find_present_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_cause_t *cause)
{
    ngx_http_profile_wake_t  wake;

    if (ngx_http_profile_waiting_subrequest(tr, NULL)) {
        ngx_http_profile_find_cause(tr, NULL, cause);
        return;
    }

    ngx_http_profile_present(tr, &wake);
    ngx_http_profile_find_cause(tr, &wake, cause);
}


void
ngx_http_profile_find_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_cause_t *cause)
{
    ngx_http_request_t             *r;
    ngx_http_profile_wake_t        *awaited, present;
    ngx_http_profile_cause_e        type;
    ngx_http_profile_subrequest_t  *sr;

    sr = ngx_http_profile_waiting_subrequest(tr, wake);
    awaited = sr ? wake : ngx_http_profile_awaited_wake(tr, wake, &present);
    type = ngx_http_profile_classify(tr, awaited, sr);

    cause->text = ngx_http_profile_causes[type];
    cause->len = 0;
    cause->attempt = 1;
    cause->inside = NULL;

    ngx_http_profile_name_cause(tr, cause, type, awaited, sr);

    cause->event = wake ? ngx_http_profile_event_text(tr, wake, sr) : NULL;

    /* the URI that the client requested is not repeated */

    r = sr ? sr->request : tr->request;

    if (r->internal) {
        cause->inside = (r == r->main) ? "redirect " : "subrequest ";
        cause->place = *ngx_http_profile_place(r);
    }
}


static ngx_http_profile_cause_e
ngx_http_profile_classify(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr)
{
    ngx_str_t                     name;
    ngx_connection_t             *c;
    ngx_http_request_t           *r;
    ngx_http_profile_cause_e      type;
    ngx_http_profile_loc_conf_t  *plcf;

    r = tr->request;
    c = wake ? wake->connection : NULL;

    if (wake && wake->resolver) {
        return NGX_HTTP_PROFILE_CAUSE_RESOLVER;
    }

    if (wake && wake->body) {
        return NGX_HTTP_PROFILE_CAUSE_BODY;
    }

    if (wake && wake->scripted) {
        return NGX_HTTP_PROFILE_CAUSE_SCRIPT_EVENT;
    }

    if (c == r->connection) {
        type = ngx_http_profile_client_cause(r, wake->event);

        if (type != NGX_HTTP_PROFILE_CAUSE_UNKNOWN) {
            return type;
        }
    }

    /*
     * A page of the module waits for captures, for the thread and for other
     * workers.  It is sent in pieces, so the client is not what it waits for.
     */

    plcf = ngx_http_get_module_loc_conf(sr ? sr->request : r,
                                        ngx_http_profile_module);

    if (ngx_http_profile_is_own(plcf)) {
        return NGX_HTTP_PROFILE_CAUSE_PROFILER;
    }

    if (sr) {
        type = ngx_http_profile_subrequest_cause(sr);

        if (type != NGX_HTTP_PROFILE_CAUSE_UNKNOWN) {
            return type;
        }
    }

    if (c && c != r->connection) {
        return NGX_HTTP_PROFILE_CAUSE_SOCKET;
    }

    /* the query of a script has ended, or goes on while the client is seen */

    if ((wake == NULL || !wake->timer)
        && ngx_http_profile_resolves(tr, wake && wake->event == NULL, &name))
    {
        return NGX_HTTP_PROFILE_CAUSE_RESOLVER;
    }

    if (wake && wake->timer && c == NULL) {
        return NGX_HTTP_PROFILE_CAUSE_SCRIPT_TIMER;
    }

    if (c == r->connection && wake->event == c->write) {
        return NGX_HTTP_PROFILE_CAUSE_NOT_READING;
    }

    return NGX_HTTP_PROFILE_CAUSE_UNKNOWN;
}


/* returns UNKNOWN if the gap has another cause */

static ngx_http_profile_cause_e
ngx_http_profile_client_cause(ngx_http_request_t *r, ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = r->connection;

    /* a delayed request has not sent any data, a delayed response has */

    if (ev == c->write && c->write->delayed) {

        if (r->header_sent) {
            return NGX_HTTP_PROFILE_CAUSE_LIMIT_RATE;
        }

        return r->headers_out.www_authenticate
               ? NGX_HTTP_PROFILE_CAUSE_AUTH_DELAY
               : NGX_HTTP_PROFILE_CAUSE_LIMIT_REQ;
    }

    /* the response was sent, and further data of the client is discarded */

    if (r->lingering_time) {
        return NGX_HTTP_PROFILE_CAUSE_CLOSING;
    }

    return ngx_http_profile_reads_body(r, ev) ? NGX_HTTP_PROFILE_CAUSE_BODY
                                              : NGX_HTTP_PROFILE_CAUSE_UNKNOWN;
}


/* returns UNKNOWN if the gap has another cause */

static ngx_http_profile_cause_e
ngx_http_profile_subrequest_cause(ngx_http_profile_subrequest_t *sr)
{
    ngx_http_request_t   *r;
    ngx_http_upstream_t  *u;

    r = sr->request;
    u = r->upstream;

    if (sr->aio) {
        return NGX_HTTP_PROFILE_CAUSE_DISK;
    }

#if (NGX_HTTP_CACHE)
    if (r->cache && r->cache->waiting) {
        return NGX_HTTP_PROFILE_CAUSE_CACHE_LOCK;
    }
#endif

    if (u && u->resolved && u->resolved->ctx) {
        return NGX_HTTP_PROFILE_CAUSE_RESOLVER;
    }

    if (u && u->peer.connection && u->peer.name && u->state) {
        return ngx_http_profile_upstream_cause(r);
    }

    return NGX_HTTP_PROFILE_CAUSE_UNKNOWN;
}


static ngx_http_profile_cause_e
ngx_http_profile_upstream_cause(ngx_http_request_t *r)
{
    ngx_connection_t     *c;
    ngx_http_upstream_t  *u;

    u = r->upstream;
    c = u->peer.connection;

    if (c->read->delayed) {
        return NGX_HTTP_PROFILE_CAUSE_UPSTREAM_RATE;
    }

    if (u->state->connect_time == (ngx_msec_t) -1) {

#if (NGX_HTTP_SSL)
        if (c->ssl) {
            return NGX_HTTP_PROFILE_CAUSE_UPSTREAM_TLS;
        }
#endif

        return NGX_HTTP_PROFILE_CAUSE_UPSTREAM_CONNECT;
    }

    if (u->state->header_time != (ngx_msec_t) -1) {
        return NGX_HTTP_PROFILE_CAUSE_UPSTREAM_BODY;
    }

    if (c->write->timer_set || u->request_body_blocked) {
        return NGX_HTTP_PROFILE_CAUSE_UPSTREAM_SEND;
    }

    return (u->buffer.start == NULL || u->buffer.last == u->buffer.start)
           ? NGX_HTTP_PROFILE_CAUSE_UPSTREAM_BYTE
           : NGX_HTTP_PROFILE_CAUSE_UPSTREAM_HEADER;
}


/* returns the name of the cause, for texts that end with a space */

static void
ngx_http_profile_name_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_cause_t *cause, ngx_http_profile_cause_e type,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr)
{
    ngx_str_t             name;
    ngx_http_upstream_t  *u;

    switch (type) {

    case NGX_HTTP_PROFILE_CAUSE_RESOLVER:
        u = sr ? sr->request->upstream : NULL;

        if (wake && wake->resolver) {
            name = wake->resolver->name;

        } else if (u && u->resolved && u->resolved->ctx) {
            name = u->resolved->host;

        } else if (!ngx_http_profile_resolves(tr, wake && wake->event == NULL,
                                              &name))
        {
            return;
        }

        ngx_http_profile_copy_name(cause, &name);
        return;

    case NGX_HTTP_PROFILE_CAUSE_SOCKET:
        ngx_http_profile_name_socket(cause, wake->connection);
        return;

    case NGX_HTTP_PROFILE_CAUSE_UPSTREAM_RATE:
    case NGX_HTTP_PROFILE_CAUSE_UPSTREAM_CONNECT:
    case NGX_HTTP_PROFILE_CAUSE_UPSTREAM_TLS:
    case NGX_HTTP_PROFILE_CAUSE_UPSTREAM_SEND:
    case NGX_HTTP_PROFILE_CAUSE_UPSTREAM_BYTE:
    case NGX_HTTP_PROFILE_CAUSE_UPSTREAM_HEADER:
    case NGX_HTTP_PROFILE_CAUSE_UPSTREAM_BODY:
        ngx_http_profile_name_upstream(cause, sr->request);
        return;

    default:
        return;
    }
}


static void
ngx_http_profile_name_upstream(ngx_http_profile_cause_t *cause,
    ngx_http_request_t *r)
{
    ngx_uint_t                  i, n;
    ngx_http_upstream_state_t  *state;

    ngx_http_profile_copy_name(cause, r->upstream->peer.name);

    /* a redirect adds a state without a peer between those of its parts */

    state = r->upstream_states->elts;
    i = r->upstream_states->nelts;

    for (n = 0; i && state[i - 1].peer; n++, i--) { /* void */ }

    cause->attempt = n;
}


/* a connection without an upstream of nginx belongs to a script */

static void
ngx_http_profile_name_socket(ngx_http_profile_cause_t *cause,
    ngx_connection_t *c)
{
    socklen_t       socklen;
    ngx_sockaddr_t  sa;

    socklen = sizeof(ngx_sockaddr_t);

    if (getpeername(c->fd, &sa.sockaddr, &socklen) == -1) {
        cause->text = "script socket connect";
        return;
    }

    cause->len = ngx_sock_ntop(&sa.sockaddr, socklen, cause->name,
                               sizeof(cause->name), 1);
}


/* a named location has no URI of its own */

ngx_str_t *
ngx_http_profile_place(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return clcf->named ? &clcf->name : &r->uri;
}


/* returns the name of the event that began the turn */

static const char *
ngx_http_profile_event_text(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_subrequest_t *sr)
{
    if (wake->resolver) {
        return "event: resolver";
    }

    if (wake->scripted) {
        return "event: script";
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
