
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Whose an event is.  Owned are connections, with both their events and the
 * timers in these, and single events whose timer a turn has set
 * (ngx_http_profile_owner_events.c).
 *
 * A connection is found by its place in nginx's array, so that every request
 * can afford it.  Nothing is ever written to an event.  The worst that a stale
 * entry can do is to give one turn to the wrong request, and a changed
 * connection is noticed by its number.
 */


#include "loop/ngx_http_profile_loop_private.h"


/* a connection */

struct ngx_http_profile_owned_s {
    ngx_http_profile_track_t  *track;       /* NULL: nobody's */
    uint64_t                   aside;       /* ns of CPU time */
    ngx_atomic_uint_t          number;
    void                      *data;        /* connection's, when known */
    ngx_queue_t                queue;       /* in track->connections */
    unsigned                   client:1;    /* it is track->client */
    unsigned                   settled:1;
};


static ngx_http_profile_track_t **ngx_http_profile_log_place(ngx_log_t *log);
static ngx_http_profile_track_t *ngx_http_profile_log_owner(ngx_log_t *log);
static void ngx_http_profile_find_part(ngx_http_profile_track_t *tr,
    void *data);
static ngx_uint_t ngx_http_profile_in_pool(ngx_pool_t *pool, void *data);
static ngx_http_profile_owned_t *ngx_http_profile_find_owned(
    ngx_connection_t *c);
static ngx_http_profile_owned_t *ngx_http_profile_aside(ngx_connection_t *c);
static void ngx_http_profile_disown_connection(ngx_http_profile_owned_t *owned);


/* nginx's arrays, and ours beside them */

PROF_HOT_DATA static ngx_uint_t          ngx_http_profile_nconnections;
PROF_HOT_DATA static ngx_event_t        *ngx_http_profile_read_events;
PROF_HOT_DATA static ngx_event_t        *ngx_http_profile_write_events;
PROF_HOT_DATA static ngx_connection_t   *ngx_http_profile_connections;
PROF_HOT_DATA static ngx_http_profile_owned_t
                                        *ngx_http_profile_table;

PROF_HOT_DATA ngx_uint_t                 ngx_http_profile_nasides;

/*
 * Requests by the addresses of their connections' logs.  Of two whose logs have
 * the same place the later one is found: what the other one begins outside of
 * its turns is nobody's.
 */

#define NGX_HTTP_PROFILE_LOGS  1024

PROF_HOT_DATA static ngx_http_profile_track_t
                                       **ngx_http_profile_logs;


ngx_int_t
ngx_http_profile_owner_init(void)
{
    ngx_http_profile_events_init();

    ngx_http_profile_nconnections = ngx_cycle->connection_n;
    ngx_http_profile_connections = ngx_cycle->connections;
    ngx_http_profile_read_events = ngx_cycle->read_events;
    ngx_http_profile_write_events = ngx_cycle->write_events;

    ngx_http_profile_table = ngx_calloc(ngx_http_profile_nconnections
                                        * sizeof(ngx_http_profile_owned_t),
                                        ngx_cycle->log);

    ngx_http_profile_logs = ngx_calloc(NGX_HTTP_PROFILE_LOGS
                                       * sizeof(ngx_http_profile_track_t *),
                                       ngx_cycle->log);

    if (ngx_http_profile_table == NULL || ngx_http_profile_logs == NULL) {
        ngx_http_profile_owner_done();
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_profile_owner_done(void)
{
    ngx_free(ngx_http_profile_table);
    ngx_free(ngx_http_profile_logs);

    ngx_http_profile_table = NULL;
    ngx_http_profile_logs = NULL;
    ngx_http_profile_nasides = 0;
}


/*
 * The request that the event belongs to, or NULL; and the event's connection.
 * The event is about to be handled, so it may be read.
 */

PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_owner(ngx_event_t *ev, ngx_uint_t timer,
    ngx_connection_t **connection)
{
    ngx_connection_t          *c;
    ngx_http_profile_owned_t  *owned;
    ngx_http_profile_track_t  *tr;

    c = ngx_http_profile_connection(ev);
    *connection = c;

    if (c == NULL) {

        tr = timer ? ngx_http_profile_take_event(ev) : NULL;

        return tr ? tr : ngx_http_profile_log_owner(ev->log);
    }

    /* as most are, and where the next request has not begun */

    if (c->idle) {
        return NULL;
    }

    owned = &ngx_http_profile_table[c - ngx_http_profile_connections];

    if (owned->track && owned->client) {
        return owned->track;
    }

    if (owned->track
        && (c->number != owned->number || c->data != owned->data))
    {
        ngx_http_profile_disown_connection(owned);
    }

    if (c->fd == (ngx_socket_t) -1 || ev->accept) {
        return NULL;
    }

    return owned->track ? owned->track : ngx_http_profile_log_owner(c->log);
}


PROF_HOT ngx_uint_t
ngx_http_profile_owns(ngx_http_profile_track_t *tr, ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    if (c == NULL) {
        return 0;
    }

    owned = &ngx_http_profile_table[c - ngx_http_profile_connections];

    return owned->track == tr
           && (owned->client
               || (owned->settled && c->number == owned->number
                   && c->data == owned->data && !c->idle
                   && c->fd != (ngx_socket_t) -1));
}


PROF_HOT static ngx_http_profile_track_t **
ngx_http_profile_log_place(ngx_log_t *log)
{
    uintptr_t  n;

    /* as pools allocate */

    n = (uintptr_t) log / NGX_POOL_ALIGNMENT;

    return &ngx_http_profile_logs[(n ^ n / NGX_HTTP_PROFILE_LOGS)
                                  % NGX_HTTP_PROFILE_LOGS];
}


/*
 * A request may be entered outside of its turns, by events of others: when a
 * name is resolved for it, or when Lua code of another request wakes it up.
 * What it begins there is known by where it logs, which is its connection's
 * log, and for nobody else.  The log of a foreign event may be gone, so its
 * address is compared and nothing is read there.
 */

PROF_HOT static ngx_http_profile_track_t *
ngx_http_profile_log_owner(ngx_log_t *log)
{
    ngx_http_profile_track_t  *tr;

    tr = *ngx_http_profile_log_place(log);

    return (tr && tr->request && tr->request->connection->log == log) ? tr
                                                                     : NULL;
}


/* until the request is freed */

PROF_HOT void
ngx_http_profile_own_client(ngx_http_profile_track_t *tr)
{
    ngx_connection_t          *c;
    ngx_http_profile_owned_t  *owned;

    c = tr->request->connection;

    *ngx_http_profile_log_place(c->log) = tr;

    owned = ngx_http_profile_find_owned(c);

    if (owned == NULL || (owned->track && owned->client)) {
        return;
    }

    if (owned->track) {
        ngx_http_profile_disown_connection(owned);
    }

    owned->track = tr;
    owned->client = 1;

    tr->client = owned;
}


PROF_HOT void
ngx_http_profile_own_connection(ngx_http_profile_track_t *tr,
    ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_find_owned(c);

    if (owned == NULL
        || (owned->track
            && (owned->client
                || (owned->track == tr && owned->number == c->number)))
        || ngx_http_profile_shared(tr->request, c))
    {
        return;
    }

    if (owned->track) {
        ngx_http_profile_disown_connection(owned);
    }

    owned->track = tr;
    owned->number = c->number;
    owned->settled = 0;

    ngx_queue_insert_tail(&tr->connections, &owned->queue);
}


/*
 * At the end of a turn: what was opened in it is complete now, and what was
 * closed, kept alive for others or given to somebody else has left.
 */

PROF_HOT void
ngx_http_profile_settle(ngx_http_profile_track_t *tr)
{
    ngx_queue_t               *q, *next;
    ngx_connection_t          *c;
    ngx_http_profile_part_t   *part;
    ngx_http_profile_owned_t  *owned;

    for (part = tr->parts; part; part = part->next) {

        if (part->request->upstream
            && part->request->upstream->peer.connection)
        {
            c = part->request->upstream->peer.connection;
            ngx_http_profile_own_connection(tr, c);
        }
    }

    for (q = ngx_queue_head(&tr->connections);
         q != ngx_queue_sentinel(&tr->connections);
         q = next)
    {
        next = ngx_queue_next(q);

        owned = ngx_queue_data(q, ngx_http_profile_owned_t, queue);

        c = &ngx_http_profile_connections[owned - ngx_http_profile_table];

        if (c->fd == (ngx_socket_t) -1 || c->idle || c->number != owned->number
            || (owned->settled && c->data != owned->data))
        {
            ngx_http_profile_disown_connection(owned);
            continue;
        }

        if (!owned->settled) {
            ngx_http_profile_find_part(tr, c->data);
        }

        owned->data = c->data;
        owned->settled = 1;
    }
}


/*
 * The data of an upstream's connection is its request, maybe a subrequest; that
 * of another module's may be anything, also a number or memory that is gone.
 * A subrequest is in the memory of the main request, which may be read, and
 * nginx signs its requests.  The list of subrequests has no background ones.
 */

static void
ngx_http_profile_find_part(ngx_http_profile_track_t *tr, void *data)
{
    ngx_http_request_t *r = data;

    if (r != tr->request
        && ngx_http_profile_in_pool(tr->request->pool, data)
        && r->signature == NGX_HTTP_MODULE
        && r->connection == tr->request->connection
        && r->main == tr->request)
    {
        (void) ngx_http_profile_add_part(tr, r);
    }
}


/* whether a request may be there: data is compared, and nothing is read */

static ngx_uint_t
ngx_http_profile_in_pool(ngx_pool_t *pool, void *data)
{
    uintptr_t          at;
    ngx_pool_t        *p;
    ngx_pool_large_t  *large;

    at = (uintptr_t) data;

    if (at == 0 || at % NGX_ALIGNMENT) {
        return 0;
    }

    for (p = pool; p; p = p->d.next) {

        if (at > (uintptr_t) p && at < (uintptr_t) p->d.last) {
            return (uintptr_t) p->d.last - at >= sizeof(ngx_http_request_t);
        }
    }

    for (large = pool->large; large; large = large->next) {

        if (large->alloc == data) {
            return 1;
        }
    }

    return 0;
}


PROF_HOT void
ngx_http_profile_disown_all(ngx_http_profile_track_t *tr)
{
    ngx_queue_t  *q;

    if (tr->client) {
        tr->client->track = NULL;
        tr->client->client = 0;
        tr->client = NULL;
    }

    while (!ngx_queue_empty(&tr->connections)) {
        q = ngx_queue_head(&tr->connections);
        ngx_http_profile_disown_connection(
                          ngx_queue_data(q, ngx_http_profile_owned_t, queue));
    }

    ngx_http_profile_disown_events(tr);
}


/* the connection that the event is part of, by its place in nginx's arrays */

PROF_HOT ngx_connection_t *
ngx_http_profile_connection(ngx_event_t *ev)
{
    if (ev >= ngx_http_profile_read_events
        && ev < ngx_http_profile_read_events + ngx_http_profile_nconnections)
    {
        return &ngx_http_profile_connections[ev
                                             - ngx_http_profile_read_events];
    }

    if (ev >= ngx_http_profile_write_events
        && ev < ngx_http_profile_write_events + ngx_http_profile_nconnections)
    {
        return &ngx_http_profile_connections[ev
                                             - ngx_http_profile_write_events];
    }

    return NULL;
}


/* NULL: it is none of nginx's array, as those of streams are not */

PROF_HOT static ngx_http_profile_owned_t *
ngx_http_profile_find_owned(ngx_connection_t *c)
{
    if (c < ngx_http_profile_connections
        || c >= ngx_http_profile_connections + ngx_http_profile_nconnections)
    {
        return NULL;
    }

    return &ngx_http_profile_table[c - ngx_http_profile_connections];
}


void
ngx_http_profile_put_aside(ngx_connection_t *c, uint64_t ns)
{
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_aside(c);

    if (owned == NULL || ns == 0) {
        return;
    }

    ngx_http_profile_nasides += (owned->aside == 0);
    owned->aside += ns;
}


PROF_HOT uint64_t
ngx_http_profile_take_aside(ngx_connection_t *c)
{
    uint64_t                   ns;
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_aside(c);

    if (owned == NULL || owned->aside == 0) {
        return 0;
    }

    ns = owned->aside;
    owned->aside = 0;
    ngx_http_profile_nasides--;

    return ns;
}


/* the connection's owned, without what is of another one before it */

static ngx_http_profile_owned_t *
ngx_http_profile_aside(ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_find_owned(c);

    if (owned && owned->number != c->number && owned->track == NULL) {
        owned->number = c->number;

        ngx_http_profile_nasides -= (owned->aside != 0);
        owned->aside = 0;
    }

    return owned;
}


PROF_HOT static void
ngx_http_profile_disown_connection(ngx_http_profile_owned_t *owned)
{
    ngx_queue_remove(&owned->queue);
    owned->track = NULL;
}
