
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the request of an event.  A request owns
 *
 *     connections     with both of their events, and the timers of these
 *     single events   whose timer a turn has set, and which are not in nginx's
 *                     arrays: of a script's sleep, of a resolver
 *
 * A connection is found by its place in nginx's array, which is cheap enough
 * for every request.  A single event is found by its address, and is read only
 * when it is dispatched: its memory may be freed at any time without notice.
 *
 * The module never writes to an event.  A stale entry can at worst give one
 * turn to the wrong request.  A changed connection is detected by its number.
 *
 * A turn may use connections that also serve other requests, and does not own
 * them: the connections below the streams of HTTP/2 and HTTP/3, and those of a
 * resolver.  A stream of HTTP/3 has a connection in nginx's array, and its
 * events are posted, so it is found as other connections are.  QUIC's own
 * events do not belong to one stream: packets arrive at a listening socket,
 * and leave by an event and timers in the connection's memory.
 */


#include "loop/ngx_http_profile_loop_private.h"


/* the maximum number of single events that a request may own */
#define NGX_HTTP_PROFILE_MAX_EVENTS  4096

/* longer names are cut */
#define NGX_HTTP_PROFILE_NAME_LEN    64

/* no pointer has a lower value */
#define NGX_HTTP_PROFILE_LOWEST      65536

/* places for the addresses of logs; a power of two */
#define NGX_HTTP_PROFILE_LOGS        1024


/* the module's data about a place in nginx's array of connections */

struct ngx_http_profile_owned_s {
    ngx_http_profile_track_t  *track;       /* the owner, or NULL */
    uint64_t                   opening_cpu; /* before the request, ns */
    ngx_atomic_uint_t          number;
    void                      *data;        /* connection's, if settled */
    uint64_t                   awaited;     /* since when: begin of the last
                                               turn that used it */
    ngx_queue_t                queue;       /* in track->connections */
    unsigned                   client:1;    /* it is track->client */
    unsigned                   settled:1;
    unsigned                   foreign:1;
};


typedef struct {
    ngx_rbtree_node_t          node;        /* key: the event's address */
    ngx_queue_t                queue;       /* in track->events */
    ngx_http_profile_track_t  *track;
    uint64_t                   awaited;     /* begin of the turn that set it */
    ngx_msec_t                 due;         /* key of its timer */
    size_t                     len;         /* of the name; 0: no query */
    u_char                     name[NGX_HTTP_PROFILE_NAME_LEN];
} ngx_http_profile_owned_event_t;


static ngx_http_profile_track_t **ngx_http_profile_log_place(ngx_log_t *log);
static void ngx_http_profile_find_subrequest(ngx_http_profile_track_t *tr,
    void *data);
static ngx_uint_t ngx_http_profile_in_pool(ngx_pool_t *pool, void *data);
static ngx_http_profile_owned_t *ngx_http_profile_find_owned(
    ngx_connection_t *c);
static ngx_http_profile_owned_t *ngx_http_profile_find_opening(
    ngx_connection_t *c);
static ngx_uint_t ngx_http_profile_count_foreign(void);
static void ngx_http_profile_disown_connection(ngx_http_profile_owned_t *owned);
static ngx_http_profile_track_t *ngx_http_profile_take_event(ngx_event_t *ev);
static ngx_http_profile_owned_event_t *ngx_http_profile_find_event(
    ngx_event_t *ev);
static void ngx_http_profile_free_event(ngx_http_profile_owned_event_t *owned);
static void ngx_http_profile_forget_queries(ngx_http_profile_track_t *tr);
static ngx_uint_t ngx_http_profile_is_pending(
    ngx_http_profile_owned_event_t *owned);
static ngx_uint_t ngx_http_profile_shared(ngx_http_request_t *r,
    ngx_connection_t *c);
static ngx_uint_t ngx_http_profile_shared_event(ngx_http_request_t *r,
    ngx_event_t *ev);


/* nginx's arrays, and the module's array of the same size */

PROF_HOT_DATA static ngx_uint_t                 ngx_http_profile_nconnections;
PROF_HOT_DATA static ngx_event_t               *ngx_http_profile_read_events;
PROF_HOT_DATA static ngx_event_t               *ngx_http_profile_write_events;
PROF_HOT_DATA static ngx_http_profile_owned_t  *ngx_http_profile_owned;

PROF_HOT_DATA ngx_connection_t                 *ngx_http_profile_connections;
PROF_HOT_DATA size_t  ngx_http_profile_connections_size;

PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_nopening;
PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_nforeign;
PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_nevents;
PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_nqueries;

/*
 * Requests by the addresses of their connections' logs.  If two logs have the
 * same place, the later request is found.  Events that the other request
 * begins outside of its turns are not tracked then.
 */

PROF_HOT_DATA static ngx_http_profile_track_t **ngx_http_profile_logs;

static ngx_rbtree_t       ngx_http_profile_events;
static ngx_rbtree_node_t  ngx_http_profile_events_sentinel;


ngx_int_t
ngx_http_profile_owner_init(void)
{
    ngx_rbtree_init(&ngx_http_profile_events,
                    &ngx_http_profile_events_sentinel,
                    ngx_rbtree_insert_value);

    ngx_http_profile_nconnections = ngx_cycle->connection_n;
    ngx_http_profile_connections = ngx_cycle->connections;
    ngx_http_profile_connections_size = ngx_cycle->connection_n
                                        * sizeof(ngx_connection_t);
    ngx_http_profile_read_events = ngx_cycle->read_events;
    ngx_http_profile_write_events = ngx_cycle->write_events;
    ngx_http_profile_nforeign = ngx_http_profile_count_foreign();

    ngx_http_profile_owned = ngx_calloc(ngx_http_profile_nconnections
                                        * sizeof(ngx_http_profile_owned_t),
                                        ngx_cycle->log);

    ngx_http_profile_logs = ngx_calloc(NGX_HTTP_PROFILE_LOGS
                                       * sizeof(ngx_http_profile_track_t *),
                                       ngx_cycle->log);

    if (ngx_http_profile_owned == NULL || ngx_http_profile_logs == NULL) {
        ngx_http_profile_owner_done();
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_profile_owner_done(void)
{
    ngx_free(ngx_http_profile_owned);
    ngx_free(ngx_http_profile_logs);

    ngx_http_profile_owned = NULL;
    ngx_http_profile_logs = NULL;
    ngx_http_profile_nopening = 0;
}


/*
 * The event is handled next, so its memory may be read.  Most connections are
 * idle: the next request has not begun yet.
 */

PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_owner(ngx_event_t *ev, ngx_uint_t timer,
    ngx_connection_t **connection)
{
    ngx_connection_t          *c;
    ngx_http_profile_track_t  *tr;

    c = ngx_http_profile_connection(ev);
    *connection = c;

    if (c == NULL) {

        tr = timer ? ngx_http_profile_take_event(ev) : NULL;

        return tr ? tr : ngx_http_profile_log_owner(ev->log);
    }

    return c->idle ? NULL : ngx_http_profile_connection_owner(ev, c);
}


PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_unlisted_owner(ngx_event_t *ev)
{
    return ngx_http_profile_log_owner(ev->log);
}


PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_connection_owner(ngx_event_t *ev, ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    owned = &ngx_http_profile_owned[c - ngx_http_profile_connections];

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


/* a request without a client's connection, of HTTP/2, is found by its first */

void
ngx_http_profile_each_track(
    void (*fn)(ngx_http_profile_track_t *tr, void *data), void *data)
{
    ngx_uint_t                 i;
    ngx_http_profile_owned_t  *owned;
    ngx_http_profile_track_t  *tr;

    for (i = 0; ngx_http_profile_owned && i < ngx_http_profile_nconnections;
         i++)
    {
        owned = &ngx_http_profile_owned[i];
        tr = owned->track;

        if (tr && tr->request
            && (owned->client
                || (tr->client == NULL
                    && ngx_queue_head(&tr->connections) == &owned->queue)))
        {
            fn(tr, data);
        }
    }
}


PROF_HOT ngx_uint_t
ngx_http_profile_owns(ngx_http_profile_track_t *tr, ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    if (c == NULL) {
        return 0;
    }

    owned = &ngx_http_profile_owned[c - ngx_http_profile_connections];

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

    /* the addresses of allocations in pools are multiples of this */

    n = (uintptr_t) log / NGX_POOL_ALIGNMENT;

    return &ngx_http_profile_logs[(n ^ n / NGX_HTTP_PROFILE_LOGS)
                                  % NGX_HTTP_PROFILE_LOGS];
}


/*
 * Code of a request may run in an event of another request: when a name was
 * resolved for it, or when Lua code of the other request resumes it.  Events
 * that this code adds have the log of the request's connection, and no other
 * events have this log.  The log of an event may be freed, so only its address
 * is compared.
 */

PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_log_owner(ngx_log_t *log)
{
    ngx_http_profile_track_t  *tr;

    tr = *ngx_http_profile_log_place(log);

    return (tr && tr->request && tr->request->connection->log == log) ? tr
                                                                     : NULL;
}


/* the request owns the client's connection until it is freed */

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
    owned->awaited = tr->since;
    owned->settled = 0;
    owned->foreign = 0;

    ngx_queue_insert_tail(&tr->connections, &owned->queue);
}


/*
 * Called at the end of a turn.  The connections that the turn has opened are
 * complete now.  Connections that it has closed, kept alive for others or
 * given to another request are no longer owned.
 */

PROF_HOT void
ngx_http_profile_settle(ngx_http_profile_track_t *tr)
{
    ngx_queue_t                    *q, *next;
    ngx_connection_t               *c;
    ngx_http_profile_owned_t       *owned;
    ngx_http_profile_subrequest_t  *sr;

    for (sr = tr->subrequests; sr; sr = sr->next) {

        if (sr->request->upstream
            && sr->request->upstream->peer.connection)
        {
            c = sr->request->upstream->peer.connection;
            ngx_http_profile_own_connection(tr, c);
        }
    }

    if (tr->nqueries) {
        ngx_http_profile_forget_queries(tr);
    }

    for (q = ngx_queue_head(&tr->connections);
         q != ngx_queue_sentinel(&tr->connections);
         q = next)
    {
        next = ngx_queue_next(q);

        owned = ngx_queue_data(q, ngx_http_profile_owned_t, queue);

        c = &ngx_http_profile_connections[owned - ngx_http_profile_owned];

        if (c->fd == (ngx_socket_t) -1 || c->idle || c->number != owned->number
            || (owned->settled && c->data != owned->data))
        {
            ngx_http_profile_disown_connection(owned);
            continue;
        }

        if (!owned->settled) {
            ngx_http_profile_find_subrequest(tr, c->data);
        }

        owned->data = c->data;
        owned->settled = 1;
    }
}


/*
 * Adds the subrequest that the data of a connection refers to, if there is
 * one.  The data of an upstream's connection is its request, which may be a
 * subrequest.  The data of another module's connection may be anything, also a
 * number or freed memory.  A subrequest is in the memory of the main request,
 * which may be read, and nginx signs its requests.  nginx's list of
 * subrequests cannot be used, since it does not contain background
 * subrequests.
 */

static void
ngx_http_profile_find_subrequest(ngx_http_profile_track_t *tr, void *data)
{
    ngx_http_request_t *r = data;

    if (r != tr->request
        && ngx_http_profile_in_pool(tr->request->pool, data)
        && r->signature == NGX_HTTP_MODULE
        && r->connection == tr->request->connection
        && r->main == tr->request)
    {
        (void) ngx_http_profile_add_subrequest(tr, r);
    }
}


/* returns whether a request may be at this address, without reading it */

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

    while (!ngx_queue_empty(&tr->events)) {
        q = ngx_queue_head(&tr->events);
        ngx_http_profile_free_event(
                     ngx_queue_data(q, ngx_http_profile_owned_event_t, queue));
    }
}


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


/* returns NULL for a connection outside of nginx's array, as of a stream */

PROF_HOT static ngx_http_profile_owned_t *
ngx_http_profile_find_owned(ngx_connection_t *c)
{
    if (!ngx_http_profile_in_array(c)) {
        return NULL;
    }

    return &ngx_http_profile_owned[c - ngx_http_profile_connections];
}


void
ngx_http_profile_add_opening_cpu(ngx_connection_t *c, uint64_t ns)
{
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_find_opening(c);

    if (owned == NULL || ns == 0) {
        return;
    }

    ngx_http_profile_nopening += (owned->opening_cpu == 0);
    owned->opening_cpu += ns;
}


PROF_HOT uint64_t
ngx_http_profile_take_opening_cpu(ngx_connection_t *c)
{
    uint64_t                   ns;
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_find_opening(c);

    if (owned == NULL || owned->opening_cpu == 0) {
        return 0;
    }

    ns = owned->opening_cpu;
    owned->opening_cpu = 0;
    ngx_http_profile_nopening--;

    return ns;
}


/* returns the connection's data, without an earlier connection's CPU time */

static ngx_http_profile_owned_t *
ngx_http_profile_find_opening(ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_find_owned(c);

    if (owned && owned->number != c->number && owned->track == NULL) {
        owned->number = c->number;
        owned->foreign = 0;

        ngx_http_profile_nopening -= (owned->opening_cpu != 0);
        owned->opening_cpu = 0;
    }

    return owned;
}


static ngx_uint_t
ngx_http_profile_count_foreign(void)
{
    ngx_uint_t        i, n;
    ngx_listening_t  *ls;

    ls = ngx_cycle->listening.elts;
    n = 0;

    for (i = 0; i < ngx_cycle->listening.nelts; i++) {
        n += (ls[i].handler != ngx_http_init_connection);
    }

    return n;
}


ngx_uint_t
ngx_http_profile_is_foreign(ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    if (c == NULL) {
        return 0;
    }

    if (c->listening) {
        return c->listening->handler != ngx_http_init_connection;
    }

    owned = ngx_http_profile_find_owned(c);

    return owned && owned->foreign && owned->number == c->number;
}


void
ngx_http_profile_set_foreign(ngx_connection_t *c)
{
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_find_opening(c);

    if (owned && owned->track == NULL) {
        owned->foreign = 1;
    }
}


PROF_HOT static void
ngx_http_profile_disown_connection(ngx_http_profile_owned_t *owned)
{
    ngx_queue_remove(&owned->queue);
    owned->track = NULL;
}


/* code that waits for a connection sets a timer */

PROF_HOT uint64_t
ngx_http_profile_awaited(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    uint64_t                   since;
    ngx_connection_t          *c;
    ngx_http_profile_owned_t  *owned;

    c = wake->connection;
    owned = ngx_http_profile_find_owned(c);

    if (owned == NULL || owned->track != tr) {
        return 0;
    }

    since = (c->read->timer_set || c->write->timer_set || wake->timer)
            ? owned->awaited : 0;

    owned->awaited = wake->begin;

    return since;
}


void
ngx_http_profile_await(ngx_http_profile_track_t *tr, ngx_connection_t *c,
    uint64_t begin)
{
    ngx_http_profile_owned_t  *owned;

    owned = ngx_http_profile_find_owned(c);

    if (owned && owned->track == tr) {
        owned->awaited = begin;
    }
}


uint64_t
ngx_http_profile_query_awaited(ngx_event_t *ev)
{
    ngx_http_profile_owned_event_t  *owned;

    owned = ev ? ngx_http_profile_find_event(ev) : NULL;

    return owned ? owned->awaited : 0;
}


PROF_HOT void
ngx_http_profile_own_event(ngx_http_profile_track_t *tr, ngx_event_t *ev)
{
    ngx_connection_t                *c;
    ngx_resolver_ctx_t              *query;
    ngx_http_profile_owned_event_t  *owned;

    c = ngx_http_profile_connection(ev);

    if (c) {
        ngx_http_profile_own_connection(tr, c);
        ngx_http_profile_await(tr, c, tr->since);
        return;
    }

    c = tr->request->connection;

    if (ev == tr->timer || ev == c->read || ev == c->write) {
        return;
    }

    query = ngx_http_profile_query_of(tr->request, ev);

    if (query == NULL && ngx_http_profile_shared_event(tr->request, ev)) {
        return;
    }

    ngx_http_profile_disown_event(ev);

    if (tr->nevents == NGX_HTTP_PROFILE_MAX_EVENTS) {
        return;
    }

    prof_heap_mute();
    owned = ngx_calloc(sizeof(ngx_http_profile_owned_event_t), ngx_cycle->log);
    prof_heap_unmute();

    if (owned == NULL) {
        return;
    }

    owned->node.key = (ngx_rbtree_key_t) ev;
    owned->track = tr;
    owned->awaited = tr->since;
    owned->due = ev->timer.key;

    if (query && query->name.len) {
        owned->len = ngx_min(query->name.len, NGX_HTTP_PROFILE_NAME_LEN);
        ngx_memcpy(owned->name, query->name.data, owned->len);

        tr->nqueries++;
        ngx_http_profile_nqueries++;
    }

    ngx_rbtree_insert(&ngx_http_profile_events, &owned->node);
    ngx_queue_insert_tail(&tr->events, &owned->queue);
    tr->nevents++;
    ngx_http_profile_nevents++;
}


/* called when a timer of the event is set outside of the request's turns */

PROF_HOT void
ngx_http_profile_disown_event(ngx_event_t *ev)
{
    ngx_http_profile_owned_event_t  *owned;

    owned = ngx_http_profile_find_event(ev);

    if (owned) {
        ngx_http_profile_free_event(owned);
    }
}


/*
 * Returns the owner of an event whose timer has expired, or NULL.  The request
 * no longer owns the event, since its memory may be used otherwise now.
 */

PROF_HOT static ngx_http_profile_track_t *
ngx_http_profile_take_event(ngx_event_t *ev)
{
    ngx_http_profile_track_t        *tr;
    ngx_http_profile_owned_event_t  *owned;

    owned = ngx_http_profile_find_event(ev);

    if (owned == NULL) {
        ngx_http_profile_loop.awaited = 0;
        return NULL;
    }

    tr = owned->track;
    ngx_http_profile_loop.awaited = owned->awaited;
    ngx_http_profile_free_event(owned);

    return tr;
}


PROF_HOT static ngx_http_profile_owned_event_t *
ngx_http_profile_find_event(ngx_event_t *ev)
{
    ngx_rbtree_key_t    key;
    ngx_rbtree_node_t  *node, *sentinel;

    key = (ngx_rbtree_key_t) ev;
    node = ngx_http_profile_events.root;
    sentinel = ngx_http_profile_events.sentinel;

    while (node != sentinel) {

        if (node->key == key) {
            return (ngx_http_profile_owned_event_t *) node;
        }

        node = (key < node->key) ? node->left : node->right;
    }

    return NULL;
}


static void
ngx_http_profile_free_event(ngx_http_profile_owned_event_t *owned)
{
    ngx_rbtree_delete(&ngx_http_profile_events, &owned->node);
    ngx_queue_remove(&owned->queue);
    owned->track->nevents--;
    ngx_http_profile_nevents--;

    if (owned->len) {
        owned->track->nqueries--;
        ngx_http_profile_nqueries--;
    }

    ngx_free(owned);
}


/*
 * Any code may resolve a name for a request: nginx for an upstream, or a script
 * for a socket.  Each query has a timer for its time limit, whose data is the
 * query.  A query is read only if the log of its event is that of the resolver.
 * The handler of these timers is the same for all resolvers.
 */

PROF_HOT ngx_resolver_ctx_t *
ngx_http_profile_query_of(ngx_http_request_t *r, ngx_event_t *ev)
{
    ngx_resolver_t            *resolver;
    ngx_resolver_ctx_t        *query;
    ngx_http_core_loc_conf_t  *clcf;

    static ngx_event_handler_pt  handler;

    query = ev->data;

    if (ev->handler == handler) {
        return query;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    resolver = clcf->resolver;

    if (resolver == NULL || ev->log != resolver->log
        || (uintptr_t) query < NGX_HTTP_PROFILE_LOWEST
        || (uintptr_t) query % sizeof(void *)
        || query->resolver != resolver || query->event != ev)
    {
        return NULL;
    }

    handler = ev->handler;

    return query;
}


/* called at the end of a turn: forgets queries that have ended */

static void
ngx_http_profile_forget_queries(ngx_http_profile_track_t *tr)
{
    ngx_queue_t                     *q, *next;
    ngx_http_profile_owned_event_t  *owned;

    for (q = ngx_queue_head(&tr->events);
         q != ngx_queue_sentinel(&tr->events);
         q = next)
    {
        next = ngx_queue_next(q);

        owned = ngx_queue_data(q, ngx_http_profile_owned_event_t, queue);

        if (owned->len && !ngx_http_profile_is_pending(owned)) {
            ngx_http_profile_free_event(owned);
        }
    }
}


ngx_uint_t
ngx_http_profile_resolves(ngx_http_profile_track_t *tr, ngx_uint_t ended,
    ngx_str_t *name)
{
    ngx_queue_t                     *q;
    ngx_http_profile_owned_event_t  *owned;

    if (tr->nqueries == 0) {
        return 0;
    }

    for (q = ngx_queue_head(&tr->events);
         q != ngx_queue_sentinel(&tr->events);
         q = ngx_queue_next(q))
    {
        owned = ngx_queue_data(q, ngx_http_profile_owned_event_t, queue);

        if (owned->len && ngx_http_profile_is_pending(owned) != ended) {
            name->data = owned->name;
            name->len = owned->len;

            return 1;
        }
    }

    return 0;
}


ngx_connection_t *
ngx_http_profile_awaits(ngx_http_profile_track_t *tr, ngx_uint_t *timer)
{
    ngx_queue_t                     *q;
    ngx_connection_t                *c;
    ngx_http_profile_owned_t        *owned;
    ngx_http_profile_owned_event_t  *event;

    *timer = 0;

    for (q = ngx_queue_head(&tr->connections);
         q != ngx_queue_sentinel(&tr->connections);
         q = ngx_queue_next(q))
    {
        owned = ngx_queue_data(q, ngx_http_profile_owned_t, queue);
        c = &ngx_http_profile_connections[owned - ngx_http_profile_owned];

        if (c->fd != (ngx_socket_t) -1 && c->number == owned->number
            && (c->read->timer_set || c->write->timer_set))
        {
            return c;
        }
    }

    for (q = ngx_queue_head(&tr->events);
         q != ngx_queue_sentinel(&tr->events);
         q = ngx_queue_next(q))
    {
        event = ngx_queue_data(q, ngx_http_profile_owned_event_t, queue);

        *timer |= event->len == 0 && ngx_http_profile_is_pending(event);
    }

    return NULL;
}


/*
 * Returns whether the timer of the event is set.  The memory of an event may be
 * freed, so the timer is looked for in nginx's tree.
 */

static ngx_uint_t
ngx_http_profile_is_pending(ngx_http_profile_owned_event_t *owned)
{
    ngx_event_t        *ev;
    ngx_rbtree_node_t  *node, *first, *sentinel;

    ev = (ngx_event_t *) owned->node.key;
    node = ngx_event_timer_rbtree.root;
    sentinel = ngx_event_timer_rbtree.sentinel;
    first = NULL;

    /* the first of the timers with this key */

    while (node != sentinel) {

        if ((ngx_msec_int_t) (owned->due - node->key) <= 0) {
            first = node;
            node = node->left;

        } else {
            node = node->right;
        }
    }

    for (node = first;
         node && node->key == owned->due;
         node = ngx_rbtree_next(&ngx_event_timer_rbtree, node))
    {
        if (node == &ev->timer) {
            return 1;
        }
    }

    return 0;
}


ngx_http_profile_subrequest_t *
ngx_http_profile_add_subrequest(ngx_http_profile_track_t *tr,
    ngx_http_request_t *r)
{
    ngx_http_profile_subrequest_t  *sr;

    for (sr = tr->subrequests; sr; sr = sr->next) {
        if (sr->request == r) {
            return sr;
        }
    }

    sr = ngx_pcalloc(tr->request->pool, sizeof(ngx_http_profile_subrequest_t));
    if (sr == NULL) {
        return NULL;
    }

    sr->request = r;
    sr->next = tr->subrequests;
    tr->subrequests = sr;

    return sr;
}


ngx_connection_t *
ngx_http_profile_below(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (r->stream) {
        return r->stream->connection->connection;
    }
#endif

#if (NGX_HTTP_V3)
    if (r->connection->quic) {
        return r->connection->quic->parent;
    }
#endif

    return NULL;
}


PROF_HOT static ngx_uint_t
ngx_http_profile_shared(ngx_http_request_t *r, ngx_connection_t *c)
{
    ngx_uint_t                  i;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_resolver_connection_t  *rec;

    if (c == ngx_http_profile_below(r)) {
        return 1;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->resolver == NULL) {
        return 0;
    }

    rec = clcf->resolver->connections.elts;

    for (i = 0; i < clcf->resolver->connections.nelts; i++) {
        if (rec[i].udp == c || rec[i].tcp == c) {
            return 1;
        }
    }

    return 0;
}


/* called while the event's timer is set, so the event may be read */

static ngx_uint_t
ngx_http_profile_shared_event(ngx_http_request_t *r, ngx_event_t *ev)
{
    ngx_http_core_loc_conf_t  *clcf;

#if (NGX_HTTP_V3)
    if (r->connection->quic && ev->data == r->connection->quic->parent) {
        return 1;
    }
#endif

    /* a timer of ngx.timer.at() runs code of no request */

    if (ev->log == ngx_cycle->log
        && ngx_http_profile_resumes_in((uintptr_t) ev->handler))
    {
        return 1;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return clcf->resolver && clcf->resolver->event == ev;
}
