
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Whose an event is.  Owned are connections, with both their events and the
 * timers in these, and single events whose timer a turn has set.
 *
 * What is here is a lookup by address.  Nothing is ever written to an event,
 * and an event that is not nginx's own memory is not even read but when it is
 * dispatched: it may be freed at any time without notice.  The worst that a
 * stale entry can do is to give one turn to the wrong request, and a changed
 * connection is noticed by its number.
 */


#include "ngx_http_profile.h"


typedef struct {
    ngx_rbtree_node_t         node;         /* key: address of the connection
                                               or of the event */
    ngx_queue_t               queue;        /* in ctx->owned */
    ngx_http_profile_ctx_t   *ctx;
    ngx_connection_t         *connection;   /* NULL: a single event */
    ngx_atomic_uint_t         number;
    void                     *data;         /* connection's, when known */
    unsigned                  client:1;     /* until the request is freed */
    unsigned                  settled:1;
} ngx_http_profile_owned_t;


static ngx_http_profile_ctx_t *ngx_http_profile_log_owner(ngx_log_t *log);
static ngx_http_profile_owned_t *ngx_http_profile_lookup(void *key);
static ngx_http_profile_owned_t *ngx_http_profile_own(
    ngx_http_profile_ctx_t *ctx, void *key);
static void ngx_http_profile_disown(ngx_http_profile_owned_t *o);
static ngx_uint_t ngx_http_profile_shared(ngx_http_profile_ctx_t *ctx,
    ngx_connection_t *c);
static ngx_uint_t ngx_http_profile_resolver_event(ngx_http_profile_ctx_t *ctx,
    ngx_event_t *ev);


static ngx_rbtree_t       ngx_http_profile_owned;
static ngx_rbtree_node_t  ngx_http_profile_owned_sentinel;


void
ngx_http_profile_owned_init(void)
{
    ngx_rbtree_init(&ngx_http_profile_owned, &ngx_http_profile_owned_sentinel,
                    ngx_rbtree_insert_value);
}


/*
 * The context that the event belongs to, or NULL.  The event is about to be
 * handled, so it may be read.
 */

ngx_http_profile_ctx_t *
ngx_http_profile_owner(ngx_event_t *ev, ngx_uint_t timer)
{
    ngx_connection_t          *c;
    ngx_http_profile_ctx_t    *ctx;
    ngx_http_profile_owned_t  *o;

    c = ngx_http_profile_connection(ev);

    if (c == NULL) {

        o = timer ? ngx_http_profile_lookup(ev) : NULL;

        if (o == NULL) {
            return ngx_http_profile_log_owner(ev->log);
        }

        /* fired: the memory may serve another purpose from now on */

        ctx = o->ctx;
        ngx_http_profile_disown(o);

        return ctx;
    }

    o = ngx_http_profile_lookup(c);

    if (o && o->client) {
        return o->ctx;
    }

    if (o && (c->number != o->number || c->data != o->data)) {
        ngx_http_profile_disown(o);
        o = NULL;
    }

    if (c->fd == (ngx_socket_t) -1 || c->idle) {
        return NULL;
    }

    return o ? o->ctx : ngx_http_profile_log_owner(c->log);
}


/*
 * A request may be entered outside of its turns, by events of others: when a
 * name is resolved for it, or when Lua code of another request wakes it up.
 * What it begins there is known by where it logs, which is its connection's
 * log, and for nobody else.
 */

static ngx_http_profile_ctx_t *
ngx_http_profile_log_owner(ngx_log_t *log)
{
    ngx_queue_t             *q;
    ngx_http_profile_ctx_t  *ctx;

    for (q = ngx_queue_head(&ngx_http_profile_live);
         q != ngx_queue_sentinel(&ngx_http_profile_live);
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);

        if (ctx->tracked && ctx->request->connection->log == log) {
            return ctx;
        }
    }

    return NULL;
}


void
ngx_http_profile_own_event(ngx_http_profile_ctx_t *ctx, ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = ngx_http_profile_connection(ev);

    if (c) {
        ngx_http_profile_own_connection(ctx, c, 0);
        return;
    }

    c = ctx->request->connection;

    if (ev == &ctx->timer || ev == c->read || ev == c->write
        || ngx_http_profile_resolver_event(ctx, ev))
    {
        return;
    }

    (void) ngx_http_profile_own(ctx, ev);
}


void
ngx_http_profile_own_connection(ngx_http_profile_ctx_t *ctx,
    ngx_connection_t *c, ngx_uint_t client)
{
    ngx_http_profile_owned_t  *o;

    /* a fake connection's events are wrapped instead */

    if (c < ngx_cycle->connections
        || c >= ngx_cycle->connections + ngx_cycle->connection_n
        || (!client && ngx_http_profile_shared(ctx, c)))
    {
        return;
    }

    o = ngx_http_profile_lookup(c);

    if (o && (o->client || (o->ctx == ctx && o->number == c->number))) {
        return;
    }

    o = ngx_http_profile_own(ctx, c);

    if (o) {
        o->connection = c;
        o->number = c->number;
        o->client = client;
    }
}


/* somebody else sets a timer in this event */

void
ngx_http_profile_disown_event(ngx_event_t *ev)
{
    ngx_http_profile_owned_t  *o;

    o = ngx_http_profile_lookup(ev);

    if (o && o->connection == NULL) {
        ngx_http_profile_disown(o);
    }
}


/*
 * At the end of a turn: what was opened in it is complete now, and what was
 * closed, kept alive for others or given to somebody else has left.
 */

void
ngx_http_profile_settle(ngx_http_profile_ctx_t *ctx)
{
    ngx_queue_t               *q, *next;
    ngx_connection_t          *c;
    ngx_http_profile_part_t   *part;
    ngx_http_profile_owned_t  *o;

    for (part = ctx->parts; part; part = part->next) {

        if (part->request->upstream
            && part->request->upstream->peer.connection)
        {
            c = part->request->upstream->peer.connection;
            ngx_http_profile_own_connection(ctx, c, 0);
        }
    }

    for (q = ngx_queue_head(&ctx->owned);
         q != ngx_queue_sentinel(&ctx->owned);
         q = next)
    {
        next = ngx_queue_next(q);

        o = ngx_queue_data(q, ngx_http_profile_owned_t, queue);
        c = o->connection;

        if (c == NULL || o->client) {
            continue;
        }

        if (c->fd == (ngx_socket_t) -1 || c->idle || c->number != o->number
            || (o->settled && c->data != o->data))
        {
            ngx_http_profile_disown(o);
            continue;
        }

        o->data = c->data;
        o->settled = 1;
    }
}


void
ngx_http_profile_disown_all(ngx_http_profile_ctx_t *ctx)
{
    ngx_queue_t  *q;

    while (!ngx_queue_empty(&ctx->owned)) {
        q = ngx_queue_head(&ctx->owned);
        ngx_http_profile_disown(ngx_queue_data(q, ngx_http_profile_owned_t,
                                               queue));
    }
}


/* the connection that the event is part of, by its place in nginx's arrays */

ngx_connection_t *
ngx_http_profile_connection(ngx_event_t *ev)
{
    volatile ngx_cycle_t  *cycle;

    cycle = ngx_cycle;

    if (ev >= cycle->read_events
        && ev < cycle->read_events + cycle->connection_n)
    {
        return &cycle->connections[ev - cycle->read_events];
    }

    if (ev >= cycle->write_events
        && ev < cycle->write_events + cycle->connection_n)
    {
        return &cycle->connections[ev - cycle->write_events];
    }

    return NULL;
}


static ngx_http_profile_owned_t *
ngx_http_profile_lookup(void *key)
{
    ngx_rbtree_node_t  *node, *sentinel;

    node = ngx_http_profile_owned.root;
    sentinel = ngx_http_profile_owned.sentinel;

    while (node != sentinel) {

        if (node->key == (ngx_rbtree_key_t) key) {
            return (ngx_http_profile_owned_t *) node;
        }

        node = ((ngx_rbtree_key_t) key < node->key) ? node->left : node->right;
    }

    return NULL;
}


/* a new entry in place of the one there may be, or NULL */

static ngx_http_profile_owned_t *
ngx_http_profile_own(ngx_http_profile_ctx_t *ctx, void *key)
{
    ngx_http_profile_owned_t  *o;

    o = ngx_http_profile_lookup(key);

    if (o) {
        ngx_http_profile_disown(o);
    }

    if (ctx->nowned == NGX_HTTP_PROFILE_MAX_OWNED) {
        return NULL;
    }

    o = ngx_calloc(sizeof(ngx_http_profile_owned_t), ngx_cycle->log);
    if (o == NULL) {
        return NULL;
    }

    o->node.key = (ngx_rbtree_key_t) key;
    o->ctx = ctx;

    ngx_rbtree_insert(&ngx_http_profile_owned, &o->node);
    ngx_queue_insert_tail(&ctx->owned, &o->queue);
    ctx->nowned++;

    return o;
}


static void
ngx_http_profile_disown(ngx_http_profile_owned_t *o)
{
    ngx_rbtree_delete(&ngx_http_profile_owned, &o->node);
    ngx_queue_remove(&o->queue);
    o->ctx->nowned--;
    ngx_free(o);
}


/*
 * Connections that a turn may touch but that serve other requests as well: an
 * HTTP/2 or QUIC connection below a stream, and those of a resolver.
 */

static ngx_uint_t
ngx_http_profile_shared(ngx_http_profile_ctx_t *ctx, ngx_connection_t *c)
{
    ngx_uint_t                  i;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_resolver_connection_t  *rec;

#if (NGX_HTTP_V2)
    if (ctx->request->stream
        && c == ctx->request->stream->connection->connection)
    {
        return 1;
    }
#endif

    clcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_core_module);

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


static ngx_uint_t
ngx_http_profile_resolver_event(ngx_http_profile_ctx_t *ctx, ngx_event_t *ev)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_core_module);

    return clcf->resolver && clcf->resolver->event == ev;
}
