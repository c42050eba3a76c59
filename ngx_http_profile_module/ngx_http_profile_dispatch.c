
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The dispatch of a worker that is armed: posted events and expired timers are
 * run as nginx runs them, but as turns of the requests that they belong to.
 */


#include "ngx_http_profile.h"


static void ngx_http_profile_dispatch(ngx_event_t *ev, ngx_uint_t timer);
static void ngx_http_profile_event_turn(void *data);
static void ngx_http_profile_events_turn(void *data);


PROF_GLUE void
ngx_http_profile_process_posted(ngx_queue_t *posted)
{
    ngx_queue_t  *q;
    ngx_event_t  *ev;

    while (!ngx_queue_empty(posted)) {

        q = ngx_queue_head(posted);
        ev = ngx_queue_data(q, ngx_event_t, queue);

        ngx_delete_posted_event(ev);

        ngx_http_profile_dispatch(ev, 0);
    }
}


PROF_GLUE void
ngx_http_profile_expire_timers(void)
{
    ngx_event_t        *ev;
    ngx_rbtree_node_t  *node, *root, *sentinel;

    sentinel = ngx_event_timer_rbtree.sentinel;

    for ( ;; ) {
        root = ngx_event_timer_rbtree.root;

        if (root == sentinel) {
            return;
        }

        node = ngx_rbtree_min(root, sentinel);

        if ((ngx_msec_int_t) (node->key - ngx_current_msec) > 0) {
            return;
        }

        ev = ngx_rbtree_data(node, ngx_event_t, timer);

        ngx_rbtree_delete(&ngx_event_timer_rbtree, &ev->timer);

#if (NGX_DEBUG)
        ev->timer.left = NULL;
        ev->timer.right = NULL;
        ev->timer.parent = NULL;
#endif

        ev->timer_set = 0;
        ev->timedout = 1;

        ngx_http_profile_dispatch(ev, 1);
    }
}


PROF_GLUE static void
ngx_http_profile_dispatch(ngx_event_t *ev, ngx_uint_t timer)
{
    ngx_connection_t          *c, *client;
    ngx_http_profile_wake_t    wake;
    ngx_http_profile_track_t  *tr;

    /* the last turn may have been one of this iteration */

    if (!ngx_http_profile_armed()) {
        ev->handler(ev);
        return;
    }

    c = ngx_http_profile_connection(ev);
    tr = ngx_http_profile_owner(ev, c, timer);

    if (tr == NULL) {
        ngx_http_profile_run_event(ev, c);
        return;
    }

    wake.event = ev;
    wake.connection = c;
    wake.request = NULL;
    wake.resolver = NULL;
    wake.timer = timer;
    wake.body = 0;

    /* posted for a stream, whose connection is none of nginx's array */

    client = tr->request->connection;

    if (c == NULL && (ev == client->read || ev == client->write)) {
        wake.connection = client;
    }

    ngx_http_profile_turn(tr, &wake, ngx_http_profile_event_code(tr, ev),
                          timer || (tr->ctx && tr->ctx->capture)
                          ? ngx_http_profile_event_turn
                          : ngx_http_profile_events_turn, ev);
}


PROF_GLUE static void
ngx_http_profile_event_turn(void *data)
{
    ngx_event_t *ev = data;

    ev->handler(ev);
}


PROF_GLUE static void
ngx_http_profile_events_turn(void *data)
{
    ngx_event_t *ev = data;

    ev->handler(ev);

    ngx_http_profile_run_next();
}


/*
 * What is posted next for the request whose turn it is belongs to the turn: a
 * connection is mostly readable and writable at once.  Captures have a turn for
 * each event, which is named by it.
 */

PROF_GLUE void
ngx_http_profile_run_next(void)
{
    ngx_event_t               *ev;
    ngx_queue_t               *q;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_frame->track;

    /* it may be gone after each of them */

    while (tr && tr == ngx_http_profile_frame->track
           && !ngx_queue_empty(&ngx_posted_events))
    {
        q = ngx_queue_head(&ngx_posted_events);
        ev = ngx_queue_data(q, ngx_event_t, queue);

        if (!ngx_http_profile_owns(tr, ngx_http_profile_connection(ev))) {
            return;
        }

        ngx_delete_posted_event(ev);

        ev->handler(ev);
    }
}
