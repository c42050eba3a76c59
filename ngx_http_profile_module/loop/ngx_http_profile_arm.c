
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Arming a worker.  nginx runs code for a request through ev->handler(ev) in
 * four places of its event loop: polled events, accepted events, expired
 * timers, posted events.  In an armed worker ngx_http_profile_loop.c runs the
 * four places, in nginx's order, and looks up which request each event belongs
 * to.  No event handler of a real connection is ever replaced.
 *
 * These pointers are replaced while the worker is armed, and restored when the
 * last request is untracked:
 *
 *     ngx_event_actions.process_events    the poll and the dispatch
 *     ngx_event_actions.add, .add_conn    connections that a turn opens
 *     ngx_event_timer_rbtree.insert       timers that a turn sets
 *
 * Captures also need the sampler, and the watch, a sampler of a low frequency
 * that profile_keep and stalls use as well.
 */


#include "loop/ngx_http_profile_loop_private.h"


/* of the watch while captures exist; the kernel's ticks are 4 ms */
#define NGX_HTTP_PROFILE_WATCH_FREQUENCY  250


typedef struct {
    ngx_uint_t                 users;        /* calls that have armed it */
    ngx_uint_t                 captures;     /* users of the sampler */
    ngx_uint_t                 ended;        /* nothing may begin */
    ngx_uint_t                 watchers;     /* users of the watch */
    prof_sampler_t            *sampler;      /* while captures exist */
    ngx_rbtree_insert_pt       insert;       /* nginx's own */
    ngx_event_actions_t        actions;      /* nginx's own */
} ngx_http_profile_worker_t;


static ngx_int_t ngx_http_profile_arm_loop(void);
static void ngx_http_profile_disarm_loop(void);
static void ngx_http_profile_disarm_sampler(void);
static ngx_int_t ngx_http_profile_add_event(ngx_event_t *ev, ngx_int_t event,
    ngx_uint_t flags);
static ngx_int_t ngx_http_profile_add_connection(ngx_connection_t *c);
static ngx_http_profile_track_t *ngx_http_profile_running(void);
static void ngx_http_profile_insert_timer(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void ngx_http_profile_idle_timer(ngx_event_t *ev);
static void ngx_http_profile_watch_end(void);


/* a worker is one process and one thread */

PROF_HOT_DATA static ngx_http_profile_worker_t  worker;

PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_armed;
PROF_HOT_DATA prof_watch_t                     *ngx_http_profile_watch;
PROF_HOT_DATA prof_watch_spot_t                 ngx_http_profile_spot;

/* a timer that keeps the tree of timers from being empty */

static ngx_event_t       ngx_http_profile_idle;
static ngx_connection_t  ngx_http_profile_idle_connection;


PROF_HOT ngx_int_t
ngx_http_profile_arm(void)
{
    if (!ngx_http_profile_armed && ngx_http_profile_arm_loop() != NGX_OK) {
        return NGX_ERROR;
    }

    worker.users++;

    return NGX_OK;
}


/* disarming waits until no turn is running */

PROF_HOT void
ngx_http_profile_disarm(void)
{
    worker.users--;
    ngx_http_profile_disarm_idle();
}


PROF_HOT void
ngx_http_profile_disarm_idle(void)
{
    if (ngx_http_profile_current) {
        return;
    }

    if (worker.sampler && worker.captures == 0) {
        ngx_http_profile_disarm_sampler();
    }

    if (worker.users || !ngx_http_profile_armed) {
        return;
    }

    /* the module's process_events() stays in place until its next call */

    ngx_http_profile_disarm_loop();

    ngx_http_profile_owner_done();
    ngx_http_profile_tracks_done();
}


static void
ngx_http_profile_disarm_loop(void)
{
    ngx_event_timer_rbtree.insert = worker.insert;
    ngx_del_timer(&ngx_http_profile_idle);

    ngx_event_actions.add = worker.actions.add;
    ngx_event_actions.add_conn = worker.actions.add_conn;

    ngx_http_profile_armed = 0;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: worker disarmed");
}


/*
 * The process ends, maybe in the middle of a turn, which never returns.  Tracks
 * and owned connections stay valid, since nginx may destroy the pools of their
 * requests later.
 */

void
ngx_http_profile_track_exit(void)
{
    worker.ended = 1;

    ngx_http_profile_current = NULL;

    if (worker.sampler) {
        ngx_http_profile_disarm_sampler();
    }

    ngx_http_profile_watch_end();

    if (ngx_http_profile_armed) {
        ngx_http_profile_disarm_loop();
    }

    ngx_http_profile_loop_end();
}


ngx_int_t
ngx_http_profile_arm_sampler(ngx_uint_t frequency)
{
    const char  *err;

    if (worker.ended) {
        return NGX_ERROR;
    }

    if (worker.sampler == NULL) {

        worker.sampler = prof_sampler_create(&err);

        if (worker.sampler == NULL) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                          "profile: %s", err);
            return NGX_ERROR;
        }

        if (ngx_http_profile_observers.sampling
            && ngx_http_profile_observers.sampling(1) != NGX_OK)
        {
            prof_sampler_destroy(worker.sampler);
            worker.sampler = NULL;
            return NGX_ERROR;
        }

        ngx_http_profile_watch_start(ngx_min(frequency,
                                         NGX_HTTP_PROFILE_WATCH_FREQUENCY));

        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "profile: sampler created");
    }

    worker.captures++;

    return NGX_OK;
}


void
ngx_http_profile_release_sampler(void)
{
    worker.captures--;
    ngx_http_profile_disarm_idle();
}


static void
ngx_http_profile_disarm_sampler(void)
{
    if (ngx_http_profile_observers.sampling) {
        (void) ngx_http_profile_observers.sampling(0);
    }

    ngx_http_profile_watch_stop();

    prof_sampler_destroy(worker.sampler);
    worker.sampler = NULL;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: sampler destroyed");
}


prof_sampler_t *
ngx_http_profile_sampler(void)
{
    return worker.sampler;
}


static ngx_int_t
ngx_http_profile_arm_loop(void)
{
    if (worker.ended
        || ngx_http_profile_poll_init((ngx_cycle_t *) ngx_cycle) != NGX_OK
        || ngx_http_profile_owner_init() != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_profile_cpu_init();
    ngx_http_profile_loop_begin();

    worker.actions = ngx_event_actions;

    ngx_event_actions.add = ngx_http_profile_add_event;

    if (ngx_event_actions.add_conn) {
        ngx_event_actions.add_conn = ngx_http_profile_add_connection;
    }

    /*
     * ngx_rbtree_insert() does not call the insert function of an empty tree,
     * so the module keeps a timer in it.  nginx's debug messages about timers
     * read the fd of the event's connection.
     */

    ngx_http_profile_idle_connection.fd = (ngx_socket_t) -1;

    ngx_http_profile_idle.handler = ngx_http_profile_idle_timer;
    ngx_http_profile_idle.data = &ngx_http_profile_idle_connection;
    ngx_http_profile_idle.log = ngx_cycle->log;
    ngx_http_profile_idle.cancelable = 1;

    ngx_http_profile_idle_timer(&ngx_http_profile_idle);

    worker.insert = ngx_event_timer_rbtree.insert;
    ngx_event_timer_rbtree.insert = ngx_http_profile_insert_timer;

    ngx_http_profile_armed = 1;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: worker armed");

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_add_event(ngx_event_t *ev, ngx_int_t event, ngx_uint_t flags)
{
    ngx_http_profile_run_t    *run;
    ngx_http_profile_track_t  *tr;

    run = ngx_http_profile_current;

    if (run && !ev->accept) {

        tr = ngx_http_profile_running();

        if (tr) {
            ngx_http_profile_own_event(tr, ev);

            if (tr->ctx) {
                ngx_http_profile_observers.event_added(tr);
            }

        } else if (run->accept) {
            run->connection = ngx_http_profile_connection(ev);
        }
    }

    return worker.actions.add(ev, event, flags);
}


static ngx_int_t
ngx_http_profile_add_connection(ngx_connection_t *c)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_running();

    if (tr) {
        ngx_http_profile_own_connection(tr, c);
    }

    return worker.actions.add_conn(c);
}


/* the request whose turn runs, with a track that can own something; or NULL */

PROF_HOT static ngx_http_profile_track_t *
ngx_http_profile_running(void)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_current ? ngx_http_profile_current->track : NULL;

    return tr ? ngx_http_profile_lasting(tr) : NULL;
}


PROF_HOT static void
ngx_http_profile_insert_timer(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_event_t               *ev;
    ngx_http_profile_track_t  *tr;

    ev = ngx_rbtree_data(node, ngx_event_t, timer);
    tr = ngx_http_profile_running();

    if (tr) {
        ngx_http_profile_own_event(tr, ev);

        /*
         * In the iteration that arms the worker nginx itself expires timers.
         * A timer that expires at once, for a script's sleep of no time, would
         * run outside of the turns of its request, so it waits for the next
         * iteration.
         */

        if (!ngx_http_profile_iterating
            && (ngx_msec_int_t) (node->key - ngx_current_msec) <= 0)
        {
            node->key = ngx_current_msec + 1;
        }

    } else if (ngx_http_profile_nevents) {
        ngx_http_profile_disown_event(ev);
    }

    worker.insert(root, node, sentinel);
}


/* about 12 days; the longest timeout of epoll_wait() is 24 days */

static void
ngx_http_profile_idle_timer(ngx_event_t *ev)
{
    ngx_add_timer(ev, 0x3fffffff);
}


void
ngx_http_profile_watch_start(ngx_uint_t frequency)
{
    const char  *err;

    if (worker.watchers++ || ngx_http_profile_watch) {
        return;
    }

    ngx_http_profile_watch = prof_watch_create(frequency,
                                               &ngx_http_profile_spot, &err);

    if (ngx_http_profile_watch == NULL) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "profile: %s", err);
    }
}


void
ngx_http_profile_watch_stop(void)
{
    if (--worker.watchers == 0) {
        ngx_http_profile_watch_end();
    }
}


static void
ngx_http_profile_watch_end(void)
{
    worker.watchers = 0;

    if (ngx_http_profile_watch) {
        prof_watch_destroy(ngx_http_profile_watch);
        ngx_http_profile_watch = NULL;
    }
}


void
ngx_http_profile_watch_pass(ngx_http_profile_run_t *run)
{
    if (ngx_http_profile_observers.notes_age) {
        ngx_http_profile_observers.notes_age();
    }

    prof_watch_pass(ngx_http_profile_watch,
                    run->track ? (uintptr_t) run->track->notes : 0);

    ngx_http_profile_forgive();
}
