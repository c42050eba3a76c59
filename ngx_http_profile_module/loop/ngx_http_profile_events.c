
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The event loop of an armed worker. nginx runs code for a request through
 * ev->handler(ev) in four places of its event loop: polled events, accepted
 * events, expired timers, posted events.  The loop of an armed worker runs
 * these places in nginx's order, and looks up the request of each event.  The
 * module never replaces the event handler of a connection.
 *
 * These pointers are replaced while the worker is armed, and restored when the
 * last request is untracked:
 *
 *     ngx_event_actions.process_events    the poll and the dispatch
 *     ngx_event_actions.add, .add_conn    connections that a turn opens
 *     ngx_event_timer_rbtree.insert       timers that a turn sets
 *
 * If there is ngx_lua, its calls of lua_resume() are redirected as well
 * (ngx_http_profile_resume.c).
 */


#include "loop/ngx_http_profile_polling.h"


/* a poll is short if it takes at most 1 / 64 of the time before it */
#define NGX_HTTP_PROFILE_SHORT  64


typedef ngx_int_t (*ngx_http_profile_poll_pt)(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);


typedef struct {
    ngx_http_profile_poll_pt    process_events;
    ngx_int_t                 (*add)(ngx_event_t *ev, ngx_int_t event,
                                    ngx_uint_t flags);
    ngx_int_t                 (*add_conn)(ngx_connection_t *c);
    ngx_rbtree_insert_pt        insert;
} ngx_http_profile_pointers_t;


static ngx_int_t ngx_http_profile_loop_begin(void);
static void ngx_http_profile_loop_end(void);
static void ngx_http_profile_restore(void);
static void ngx_http_profile_restore_poll(void);
static ngx_int_t ngx_http_profile_process_events(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);
static ngx_msec_t ngx_http_profile_before_poll(ngx_msec_t timer,
    ngx_uint_t flags);
PROF_GLUE_INLINE ngx_int_t ngx_http_profile_iterate(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);
PROF_GLUE_INLINE uint64_t ngx_http_profile_polled_at(void);
static ngx_int_t ngx_http_profile_other_poll(ngx_uint_t own,
    ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags);
static void ngx_http_profile_hold_time(void);
static void ngx_http_profile_release_time(void);
static ngx_int_t ngx_http_profile_add_event(ngx_event_t *ev, ngx_int_t event,
    ngx_uint_t flags);
static ngx_int_t ngx_http_profile_add_connection(ngx_connection_t *c);
static void ngx_http_profile_opened(ngx_connection_t *c);
static ngx_http_profile_track_t *ngx_http_profile_running(ngx_event_t *ev);
static void ngx_http_profile_insert_timer(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void ngx_http_profile_insert_owned(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void ngx_http_profile_idle_timer(ngx_event_t *ev);


/* nginx's own pointers */

PROF_HOT_DATA static ngx_http_profile_pointers_t  nginx;

/* 1: the module runs this iteration of the event loop, 0: nginx runs it */

PROF_HOT_DATA static ngx_uint_t                 iterating;

/* the time to which nginx's time is held back, or 0; and the real time */

PROF_HOT_DATA static ngx_msec_t                 ngx_http_profile_held_msec;
PROF_HOT_DATA static ngx_msec_t                 ngx_http_profile_real_msec;

/* a timer that stays in the tree of timers, so that the tree is not empty */

static ngx_event_t       ngx_http_profile_idle;
static ngx_connection_t  ngx_http_profile_idle_connection;


void
ngx_http_profile_loop_init(void)
{
    static ngx_http_profile_arming_t  arming = {
        ngx_http_profile_loop_begin,
        ngx_http_profile_loop_end
    };

    ngx_http_profile_arm_init(&arming);
}


/*
 * Called when the process ends, possibly in a turn that never returns.  Tracks
 * and owned connections stay valid, since nginx may destroy the pools of their
 * requests later.
 */

void
ngx_http_profile_loop_exit(void)
{
    if (ngx_http_profile_armed) {
        ngx_http_profile_restore();
    }

    ngx_http_profile_arm_exit();
    ngx_http_profile_restore_poll();
}


static ngx_int_t
ngx_http_profile_loop_begin(void)
{
    if (ngx_http_profile_poll_init((ngx_cycle_t *) ngx_cycle) != NGX_OK
        || ngx_http_profile_owner_init() != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_profile_cpu_init();

    ngx_memzero(&ngx_http_profile_loop, sizeof(ngx_http_profile_loop_t));
    ngx_http_profile_loop.since = prof_now();
    ngx_http_profile_loop.ready = ngx_http_profile_loop.since;
    ngx_http_profile_loop.earliest = ngx_current_msec;

    /* after disarming, the module's function stays until its next call */

    if (ngx_event_actions.process_events != ngx_http_profile_process_events) {
        nginx.process_events = ngx_event_actions.process_events;
        ngx_event_actions.process_events = ngx_http_profile_process_events;
    }

    nginx.add = ngx_event_actions.add;
    nginx.add_conn = ngx_event_actions.add_conn;

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

    nginx.insert = ngx_event_timer_rbtree.insert;
    ngx_event_timer_rbtree.insert = ngx_http_profile_insert_timer;

    ngx_http_profile_resume_arm(ngx_http_profile_resume);

    return NGX_OK;
}


/*
 * Restores nginx's pointers when the worker is disarmed, except for
 * process_events(), which the module's function restores in its next call.
 */

static void
ngx_http_profile_loop_end(void)
{
    ngx_http_profile_restore();

    ngx_http_profile_owner_done();
    ngx_http_profile_tracks_done();
}


static void
ngx_http_profile_restore(void)
{
    ngx_event_timer_rbtree.insert = nginx.insert;

    /* without a master, the process outlives its configuration */

    ngx_http_profile_idle.log = ngx_cycle->log;
    ngx_del_timer(&ngx_http_profile_idle);

    /* from now on the module does not see timers: it must search the tree */

    ngx_http_profile_loop.earliest = ngx_current_msec;

    ngx_event_actions.add = nginx.add;
    ngx_event_actions.add_conn = nginx.add_conn;

    ngx_http_profile_resume_disarm();
}


static void
ngx_http_profile_restore_poll(void)
{
    if (ngx_event_actions.process_events == ngx_http_profile_process_events) {
        ngx_event_actions.process_events = nginx.process_events;
    }
}


PROF_GLUE static ngx_int_t
ngx_http_profile_process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ngx_int_t  rc;

    /*
     * Without timer_resolution, nginx has looked for the next timer.  Functions
     * that are called before the poll may set other timers, and may update
     * nginx's time.
     */

    ngx_http_profile_loop.earliest = ngx_current_msec;
    ngx_http_profile_loop.earliest += (flags & NGX_UPDATE_TIME) ? timer : 0;

    if (ngx_http_profile_held_msec | ngx_http_profile_disarms
        | (uintptr_t) ngx_http_profile_observers.polling)
    {
        timer = ngx_http_profile_before_poll(timer, flags);
    }

    if (!ngx_http_profile_armed) {
        ngx_http_profile_restore_poll();

        return nginx.process_events(cycle, timer, flags);
    }

    iterating = 1;

    rc = ngx_http_profile_iterate(cycle, timer, flags);

    iterating = 0;

    return rc;
}


/* returns the timeout of the poll */

__attribute__((noinline)) static ngx_msec_t
ngx_http_profile_before_poll(ngx_msec_t timer, ngx_uint_t flags)
{
    if (ngx_http_profile_held_msec) {
        ngx_http_profile_release_time();

        /*
         * nginx has computed the timeout from the held time, unless there is
         * timer_resolution
         */

        if (flags & NGX_UPDATE_TIME) {
            timer = 0;
        }
    }

    if (ngx_http_profile_observers.polling
        && ngx_http_profile_observers.polling() && timer > 1)
    {
        timer = 1;
    }

    if (ngx_http_profile_disarms) {
        ngx_http_profile_disarm_idle();
    }

    return timer;
}


/* runs an iteration in the order of ngx_process_events_and_timers() */

PROF_GLUE_INLINE ngx_int_t
ngx_http_profile_iterate(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    uint64_t                  arrived;
    ngx_int_t                 rc;
    ngx_time_t               *tp;
    ngx_uint_t                own;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    loop->last_end = loop->poll_end;
    loop->poll_start = loop->since;

    own = (ngx_http_profile_polls && !(flags & NGX_POST_EVENTS));

    rc = (own && !prof_process_paced())
         ? ngx_http_profile_poll_events(cycle, timer, flags, NULL)
         : ngx_http_profile_other_poll(own, cycle, timer, flags);

    loop->poll_end = prof_now();
    tp = ngx_timeofday();

    loop->poll_sec = tp->sec;
    loop->poll_msec = tp->msec;
    loop->updated = loop->poll_end;
    loop->since = loop->poll_end;

    if (ngx_http_profile_logs_turns() && ngx_http_profile_slept()) {
        prof_turns_slept(&ngx_http_profile_turn_log, loop->poll_start,
                         loop->poll_end);
    }

    arrived = 0;

    if (ngx_http_profile_handlers.table) {
        arrived = ngx_http_profile_polled_at();
        loop->ready = arrived;
    }

    ngx_http_profile_process_polled();

    if (!ngx_queue_empty(&ngx_posted_accept_events)) {
        ngx_http_profile_process_posted(&ngx_posted_accept_events);
    }

    if (ngx_accept_mutex_held) {
        ngx_shmtx_unlock(&ngx_accept_mutex);
    }

    /* most iterations need not search the tree of timers */

    if ((ngx_msec_int_t) (loop->earliest - ngx_current_msec) <= 0) {
        ngx_http_profile_expire_timers();
    }

    if (!ngx_queue_empty(&ngx_posted_events)) {

        /*
         * The module's own poll posts no events, so these were posted by
         * handlers.  nginx's poll has posted the events that it reported.
         */

        loop->ready = own ? loop->since : arrived;

        ngx_http_profile_process_posted(&ngx_posted_events);
        ngx_http_profile_hold_time();
    }

    return rc;
}


/*
 * Counts the time in the poll, and returns when its events came.  If the poll
 * has not slept, its events came while the worker ran other code.  The exact
 * time is unknown, so the middle of that interval is returned.  A poll that is
 * short beside the interval counts as one that has not slept: the processor
 * may have done something else meanwhile.
 */

PROF_GLUE_INLINE uint64_t
ngx_http_profile_polled_at(void)
{
    uint64_t                  idle, busy, last, start, end;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    last = loop->last_end;
    start = loop->poll_start;
    end = loop->poll_end;

    idle = end - start;
    busy = start - last;

    *ngx_http_profile_handlers.idle += idle;

    if ((idle > NGX_HTTP_PROFILE_SLEEP_NS
         && idle > busy / NGX_HTTP_PROFILE_SHORT)
        || last == 0)
    {
        return end;
    }

    return start - busy / 2;
}


/*
 * Calls nginx's poll, or polls during paced captures.  The timer of a paced
 * capture runs only while the worker does not wait.  Stopping the timer is
 * expensive, so the first poll has no timeout, and the timer is stopped only
 * if this poll finds no event.
 */

__attribute__((noinline)) static ngx_int_t
ngx_http_profile_other_poll(ngx_uint_t own, ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags)
{
    ngx_int_t        rc;
    const sigset_t  *mask;

    if (!prof_process_paced()) {
        return nginx.process_events(cycle, timer, flags);
    }

    rc = own ? ngx_http_profile_poll(cycle, 0, flags, NULL)
             : nginx.process_events(cycle, 0, flags);

    if (rc != NGX_OK || timer == 0 || ngx_http_profile_npolled
        || !ngx_queue_empty(&ngx_posted_accept_events)
        || !ngx_queue_empty(&ngx_posted_events))
    {
        return rc;
    }

    prof_process_idle(own ? &mask : NULL);

    rc = own ? ngx_http_profile_poll(cycle, timer, flags, mask)
             : nginx.process_events(cycle, timer, flags);

    prof_process_busy();

    return rc;
}


/*
 * Sets nginx's time back to the moment before the first timer, until the next
 * poll.  The reason: nginx looks for expired timers again when
 * process_events() returns.  A handler may have set a timer that is due at
 * once, or may have updated nginx's time.  Timers that became due in this way
 * must expire after the next poll.
 */

static void
ngx_http_profile_hold_time(void)
{
    ngx_rbtree_node_t  *node;

    node = ngx_http_profile_next_timer();

    if (ngx_http_profile_is_due(node)) {
        ngx_http_profile_real_msec = ngx_current_msec;
        ngx_http_profile_held_msec = node->key - 1;
        ngx_current_msec = ngx_http_profile_held_msec;
    }
}


static void
ngx_http_profile_release_time(void)
{
    if (ngx_current_msec == ngx_http_profile_held_msec) {
        ngx_current_msec = ngx_http_profile_real_msec;
    }

    ngx_http_profile_held_msec = 0;
}


static ngx_int_t
ngx_http_profile_add_event(ngx_event_t *ev, ngx_int_t event, ngx_uint_t flags)
{
    ngx_connection_t          *c;
    ngx_http_profile_run_t    *run;
    ngx_http_profile_track_t  *tr;

    run = ngx_http_profile_current;

    if (run && !ev->accept) {

        tr = ngx_http_profile_running(ev);

        if (tr) {
            ngx_http_profile_own_event(tr, ev);

            if (tr->ctx) {
                ngx_http_profile_observers.event_added(tr);
            }

        } else {
            c = ngx_http_profile_connection(ev);

            ngx_http_profile_opened(c);

            if (run->accept) {
                run->connection = c;
            }
        }
    }

    return nginx.add(ev, event, flags);
}


static ngx_int_t
ngx_http_profile_add_connection(ngx_connection_t *c)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_running(c->read);

    if (tr) {
        ngx_http_profile_own_connection(tr, c);

    } else {
        ngx_http_profile_opened(c);
    }

    return nginx.add_conn(c);
}


/* code of no request has opened the connection, perhaps of another protocol */

static void
ngx_http_profile_opened(ngx_connection_t *c)
{
    if (ngx_http_profile_nforeign && ngx_http_profile_current && c
        && c->listening == NULL
        && ngx_http_profile_is_foreign(ngx_http_profile_current->connection))
    {
        ngx_http_profile_set_foreign(c);
    }
}


/*
 * Returns the track of the running turn if it can own connections, or NULL.  In
 * a run of no request, the log of a new event may show that the run is a turn,
 * but not with the events of a stream: the connection below sets their timers.
 */

PROF_HOT static ngx_http_profile_track_t *
ngx_http_profile_running(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_profile_run_t    *run;
    ngx_http_profile_track_t  *tr;

    run = ngx_http_profile_current;

    if (run == NULL) {
        return NULL;
    }

    if (run->track == NULL && !run->tail
        && (run->connection == NULL || ngx_http_profile_nqueries))
    {
        tr = ngx_http_profile_log_owner(ev->log);
        c = tr ? tr->request->connection : NULL;

        if (c && ev != c->read && ev != c->write) {

            if (run->connection == NULL) {
                ngx_http_profile_turn_found(tr, tr->request, NULL);

            } else if (tr->nqueries) {
                ngx_http_profile_query_ended(tr);
            }
        }
    }

    return run->track ? ngx_http_profile_lasting(run->track) : NULL;
}


PROF_HOT static void
ngx_http_profile_insert_timer(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_http_profile_run_t  *run;

    if ((ngx_msec_int_t) (node->key - ngx_http_profile_loop.earliest) < 0) {
        ngx_http_profile_loop.earliest = node->key;
    }

    run = ngx_http_profile_current;

    if (ngx_http_profile_nevents
        || (run && (run->track || (!run->connection && !run->tail))))
    {
        ngx_http_profile_insert_owned(root, node, sentinel);
        return;
    }

    nginx.insert(root, node, sentinel);
}


/* sets a timer that belongs to a request, or did so before */

__attribute__((noinline)) static void
ngx_http_profile_insert_owned(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_event_t               *ev;
    ngx_http_profile_track_t  *tr;

    ev = ngx_rbtree_data(node, ngx_event_t, timer);
    tr = ngx_http_profile_running(ev);

    if (tr) {
        ngx_http_profile_own_event(tr, ev);

        /*
         * In the iteration that arms the worker, nginx itself expires timers.
         * A timer that is due at once (a script's sleep of 0) would run
         * outside of the turns of its request.  So it waits for the next
         * iteration.
         */

        if (!iterating
            && (ngx_msec_int_t) (node->key - ngx_current_msec) <= 0)
        {
            node->key = ngx_current_msec + 1;
        }

    } else {
        ngx_http_profile_disown_event(ev);
    }

    nginx.insert(root, node, sentinel);
}


/*
 * Sets the timer that keeps the tree of timers from being empty.  Its time of
 * 12 days is less than the longest timeout of epoll_wait(), which is 24 days.
 */

static void
ngx_http_profile_idle_timer(ngx_event_t *ev)
{
    ev->log = ngx_cycle->log;
    ngx_add_timer(ev, 0x3fffffff);
}
