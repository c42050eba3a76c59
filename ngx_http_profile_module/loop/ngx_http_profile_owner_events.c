
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Single events whose timer a turn has set, in memory that is not nginx's own:
 * of a script's sleep, of a resolver.  They are found by their addresses, and
 * are not even read but when they are dispatched: they may be freed at any time
 * without notice.
 */


#include "loop/ngx_http_profile_loop_private.h"


/* of one request */
#define NGX_HTTP_PROFILE_MAX_EVENTS  4096


typedef struct {
    ngx_rbtree_node_t          node;        /* key: its address */
    ngx_queue_t                queue;       /* in track->events */
    ngx_http_profile_track_t  *track;
} ngx_http_profile_owned_event_t;


static ngx_http_profile_owned_event_t *ngx_http_profile_lookup(ngx_event_t *ev);
static void ngx_http_profile_disown(ngx_http_profile_owned_event_t *o);


PROF_HOT_DATA ngx_uint_t    ngx_http_profile_nevents;

static ngx_rbtree_t         ngx_http_profile_owned;
static ngx_rbtree_node_t    ngx_http_profile_owned_sentinel;


void
ngx_http_profile_events_init(void)
{
    ngx_rbtree_init(&ngx_http_profile_owned, &ngx_http_profile_owned_sentinel,
                    ngx_rbtree_insert_value);
}


PROF_HOT void
ngx_http_profile_own_event(ngx_http_profile_track_t *tr, ngx_event_t *ev)
{
    ngx_connection_t                *c;
    ngx_http_profile_owned_event_t  *o;

    c = ngx_http_profile_connection(ev);

    if (c) {
        ngx_http_profile_own_connection(tr, c);
        return;
    }

    c = tr->request->connection;

    if (ev == tr->timer || ev == c->read || ev == c->write
        || ngx_http_profile_shared_event(tr->request, ev))
    {
        return;
    }

    ngx_http_profile_disown_event(ev);

    if (tr->nevents == NGX_HTTP_PROFILE_MAX_EVENTS) {
        return;
    }

    prof_heap_mute();
    o = ngx_calloc(sizeof(ngx_http_profile_owned_event_t), ngx_cycle->log);
    prof_heap_unmute();

    if (o == NULL) {
        return;
    }

    o->node.key = (ngx_rbtree_key_t) ev;
    o->track = tr;

    ngx_rbtree_insert(&ngx_http_profile_owned, &o->node);
    ngx_queue_insert_tail(&tr->events, &o->queue);
    tr->nevents++;
    ngx_http_profile_nevents++;
}


/* somebody else sets a timer in this event */

PROF_HOT void
ngx_http_profile_disown_event(ngx_event_t *ev)
{
    ngx_http_profile_owned_event_t  *o;

    o = ngx_http_profile_lookup(ev);

    if (o) {
        ngx_http_profile_disown(o);
    }
}


/* it has expired: the memory may serve another purpose from now on */

PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_take_event(ngx_event_t *ev)
{
    ngx_http_profile_track_t        *tr;
    ngx_http_profile_owned_event_t  *o;

    o = ngx_http_profile_lookup(ev);

    if (o == NULL) {
        return NULL;
    }

    tr = o->track;
    ngx_http_profile_disown(o);

    return tr;
}


PROF_HOT void
ngx_http_profile_disown_events(ngx_http_profile_track_t *tr)
{
    ngx_queue_t  *q;

    while (!ngx_queue_empty(&tr->events)) {
        q = ngx_queue_head(&tr->events);
        ngx_http_profile_disown(
                     ngx_queue_data(q, ngx_http_profile_owned_event_t, queue));
    }
}


PROF_HOT static ngx_http_profile_owned_event_t *
ngx_http_profile_lookup(ngx_event_t *ev)
{
    ngx_rbtree_key_t    key;
    ngx_rbtree_node_t  *node, *sentinel;

    key = (ngx_rbtree_key_t) ev;
    node = ngx_http_profile_owned.root;
    sentinel = ngx_http_profile_owned.sentinel;

    while (node != sentinel) {

        if (node->key == key) {
            return (ngx_http_profile_owned_event_t *) node;
        }

        node = (key < node->key) ? node->left : node->right;
    }

    return NULL;
}


static void
ngx_http_profile_disown(ngx_http_profile_owned_event_t *o)
{
    ngx_rbtree_delete(&ngx_http_profile_owned, &o->node);
    ngx_queue_remove(&o->queue);
    o->track->nevents--;
    ngx_http_profile_nevents--;
    ngx_free(o);
}
