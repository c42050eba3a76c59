
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The dispatch of an armed worker.  It runs polled events, posted events and
 * expired timers in nginx's order, but as turns of the requests that they
 * belong to.
 */


#include "loop/ngx_http_profile_brief.h"
#include "loop/ngx_http_profile_charge.h"
#include "loop/ngx_http_profile_polling.h"


PROF_GLUE_INLINE void ngx_http_profile_find_and_dispatch(ngx_event_t *ev,
    ngx_uint_t timer);
static void ngx_http_profile_dispatch_other(ngx_event_t *ev,
    ngx_uint_t timer);
PROF_GLUE_INLINE void ngx_http_profile_dispatch(ngx_http_profile_track_t *tr,
    ngx_event_t *ev, ngx_connection_t *c, ngx_uint_t timer);
PROF_GLUE_INLINE void ngx_http_profile_run_event(ngx_event_t *ev,
    ngx_connection_t *c, ngx_uint_t sampled);
static void ngx_http_profile_run_sampled(ngx_event_t *ev,
    ngx_connection_t *c);
static void ngx_http_profile_leave_brief(ngx_http_profile_run_t *run);
static void ngx_http_profile_leave_long(ngx_http_profile_run_t *run,
    uint64_t now);
PROF_GLUE_INLINE void ngx_http_profile_end_brief(ngx_http_profile_run_t *run,
    uint64_t now, uint64_t cpu);
PROF_GLUE_INLINE void ngx_http_profile_leave_tail(ngx_http_profile_run_t *run,
    uint64_t now);
static void ngx_http_profile_dispatch_turn(ngx_http_profile_track_t *tr,
    ngx_event_t *ev, ngx_connection_t *c, ngx_uint_t timer);
static void ngx_http_profile_event_turn(void *data);
static void ngx_http_profile_events_turn(void *data);
static void ngx_http_profile_run_next(void);
static void ngx_http_profile_next_handler(ngx_event_t *ev);
static uint64_t ngx_http_profile_timer_ready(void);
static ngx_event_t *ngx_http_profile_posted_own(ngx_queue_t *posted,
    ngx_http_profile_track_t *tr);


PROF_GLUE void
ngx_http_profile_process_polled(void)
{
    ngx_event_t               *ev;
    ngx_connection_t          *c;
    ngx_http_profile_track_t  *tr;

    ngx_http_profile_loop.posted = NULL;

    for ( ;; ) {
        ev = ngx_http_profile_polled(NULL, &c);

        if (ev == NULL) {
            return;
        }

        /* a turn of this iteration may have disarmed the worker */

        if (ngx_http_profile_armed != NGX_HTTP_PROFILE_ARMED) {
            ngx_http_profile_dispatch_other(ev, 0);
            continue;
        }

        /*
         * Most events are those of idle connections, which belong to no
         * request.
         */

        tr = NULL;

        if (!ngx_http_profile_in_array(c)) {
            tr = ngx_http_profile_unlisted_owner(ev);
            c = NULL;

        } else if (!c->idle) {
            tr = ngx_http_profile_connection_owner(ev, c);
        }

        ngx_http_profile_dispatch(tr, ev, c, 0);
    }
}


PROF_GLUE void
ngx_http_profile_process_posted(ngx_queue_t *posted)
{
    ngx_queue_t  *q;
    ngx_event_t  *ev;

    ngx_http_profile_loop.posted = posted;

    while (!ngx_queue_empty(posted)) {

        q = ngx_queue_head(posted);
        ev = ngx_queue_data(q, ngx_event_t, queue);

        ngx_log_debug1(NGX_LOG_DEBUG_EVENT, ngx_cycle->log, 0,
                       "profile posted event %p", ev);

        ngx_delete_posted_event(ev);

        ngx_http_profile_find_and_dispatch(ev, 0);
    }
}


PROF_GLUE void
ngx_http_profile_expire_timers(void)
{
    ngx_event_t        *ev;
    ngx_rbtree_node_t  *node;

    ngx_http_profile_loop.posted = &ngx_http_profile_nothing;

    for ( ;; ) {
        node = ngx_http_profile_next_timer();

        if (!ngx_http_profile_is_due(node)) {
            return;
        }

        ev = ngx_rbtree_data(node, ngx_event_t, timer);

        ngx_log_debug2(NGX_LOG_DEBUG_EVENT, ngx_cycle->log, 0,
                       "profile event timer: %p: %M", ev, node->key);

        /* ngx_rbtree_delete() does not keep the key */

        ngx_http_profile_loop.due = node->key;

        ngx_rbtree_delete(&ngx_event_timer_rbtree, &ev->timer);

#if (NGX_DEBUG)
        ev->timer.left = NULL;
        ev->timer.right = NULL;
        ev->timer.parent = NULL;
#endif

        ev->timer_set = 0;
        ev->timedout = 1;

        if (ngx_http_profile_handlers.table) {
            ngx_http_profile_loop.ready = ngx_http_profile_timer_ready();
        }

        ngx_http_profile_find_and_dispatch(ev, 1);
    }
}


/*
 * Returns the time at which the handler of the expired timer could have run.
 * ngx_http_profile_ready() in ngx_http_profile_turn.c computes this for turns.
 */

static uint64_t
ngx_http_profile_timer_ready(void)
{
    uint64_t                  due;
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;
    due = (uint64_t) loop->due * 1000000;

    if (loop->last_end == 0
        || (ngx_http_profile_slept() && due >= loop->poll_start))
    {
        return loop->poll_end;
    }

    return ngx_min(ngx_max(due, loop->last_end), loop->poll_start);
}


PROF_GLUE_INLINE void
ngx_http_profile_find_and_dispatch(ngx_event_t *ev, ngx_uint_t timer)
{
    ngx_connection_t          *c;
    ngx_http_profile_track_t  *tr;

    if (ngx_http_profile_armed != NGX_HTTP_PROFILE_ARMED) {
        ngx_http_profile_dispatch_other(ev, timer);
        return;
    }

    tr = ngx_http_profile_owner(ev, timer, &c);

    ngx_http_profile_dispatch(tr, ev, c, timer);
}


/* dispatches an event of a worker that has a sampler, or is not armed */

PROF_GLUE static void
ngx_http_profile_dispatch_other(ngx_event_t *ev, ngx_uint_t timer)
{
    ngx_connection_t          *c;
    ngx_http_profile_track_t  *tr;

    if (!ngx_http_profile_armed) {
        ev->handler(ev);
        return;
    }

    tr = ngx_http_profile_owner(ev, timer, &c);

    if (tr) {
        ngx_http_profile_dispatch_turn(tr, ev, c, timer);

    } else {
        ngx_http_profile_run_sampled(ev, c);
    }
}


/*
 * The functions between the poll and the handlers are inlined.  After a system
 * call the processor has lost its predictions of returns, so each function
 * around the call costs some nanoseconds more.
 */

PROF_GLUE_INLINE void
ngx_http_profile_dispatch(ngx_http_profile_track_t *tr, ngx_event_t *ev,
    ngx_connection_t *c, ngx_uint_t timer)
{
    if (tr) {
        ngx_http_profile_dispatch_turn(tr, ev, c, timer);
        return;
    }

    ngx_http_profile_run_event(ev, c, 0);
}


/*
 * Runs an event that belongs to no request, unless the event begins one.  In
 * most cases only the time of its end is needed.  If there is a sampler, the
 * event may turn out to be one of a captured request.
 */

PROF_GLUE_INLINE void
ngx_http_profile_run_event(ngx_event_t *ev, ngx_connection_t *c,
    ngx_uint_t sampled)
{
    ngx_http_profile_run_t  run;

    run.top = (uintptr_t) __builtin_frame_address(0);

    if (ngx_http_profile_observers.running == NULL
        && ngx_http_profile_current == NULL)
    {
        ngx_http_profile_init_run(&run, NULL, (uintptr_t) ev->handler);

    } else {
        ngx_http_profile_enter(&run, NULL, (uintptr_t) ev->handler);
    }

    run.connection = c;
    run.accept = ev->accept;

    if (sampled) {
        prof_turn_run(ngx_http_profile_sampler(), NULL, run.handler,
                      ngx_http_profile_event_turn, ev);

    } else {
        ev->handler(ev);
    }

    /* the rest of a request that ended, or an event that no request pays for */

    if (run.track == NULL && ngx_http_profile_is_plain(&run)
        && (run.tail
            || (ngx_http_profile_nforeign == 0
                && (run.connection == NULL
                    || run.connection->listening == NULL))))
    {
        ngx_http_profile_select_handler(run.handler);
        ngx_http_profile_leave_brief(&run);

        if (ngx_http_profile_spot.fresh) {
            ngx_http_profile_watch_pass(&run);
        }

        return;
    }

    if (run.track && ngx_http_profile_loop.found != &run) {
        ngx_http_profile_run_next();
    }

    if (run.tail && ngx_http_profile_brief.request) {
        ngx_http_profile_account_freed();
    }

    ngx_http_profile_leave(&run);
    ngx_http_profile_brief.request = NULL;
}


PROF_GLUE static void
ngx_http_profile_run_sampled(ngx_event_t *ev, ngx_connection_t *c)
{
    ngx_http_profile_run_event(ev, c, 1);
}


/*
 * Ends an event in which a request ended, or an event of no request.  The CPU
 * time of a brief request is charged, although no script has read its times.
 */

__attribute__((noinline, hot)) static void
ngx_http_profile_leave_brief(ngx_http_profile_run_t *run)
{
    uint64_t  now, wall;

    now = prof_now();

    if (ngx_http_profile_brief.request == NULL
        || ngx_http_profile_brief.closed)
    {
        if (now - run->start >= NGX_HTTP_PROFILE_BUSY_NS) {
            now = ngx_http_profile_charge(run);
            ngx_http_profile_note_run(run, now);
        }

        ngx_http_profile_leave_tail(run, now);
        return;
    }

    wall = now - ngx_http_profile_loop.since;

    if (!ngx_http_profile_is_scaled(wall)) {
        ngx_http_profile_leave_long(run, now);
        return;
    }

    ngx_http_profile_end_brief(run, now, ngx_http_profile_charge_scaled(wall));
}


/* ends an event in which a brief request ended, by the CPU clock */

__attribute__((noinline)) static void
ngx_http_profile_leave_long(ngx_http_profile_run_t *run, uint64_t now)
{
    uint64_t                   cpu;
    ngx_http_profile_track_t  *tr;

    cpu = ngx_http_profile_charge_clock(now - ngx_http_profile_loop.since);

    ngx_http_profile_note_run(run, now);

    tr = &ngx_http_profile_brief;

    if (ngx_http_profile_cpu.no_processor || ngx_http_profile_cpu.blocked) {
        tr->times.no_processor += ngx_http_profile_cpu.no_processor;
        tr->times.blocked += ngx_http_profile_cpu.blocked;

        /* counted by all of its times */

        if (!tr->begun) {
            ngx_http_profile_account_polled();
        }
    }

    ngx_http_profile_end_brief(run, now, cpu);
}


PROF_GLUE_INLINE void
ngx_http_profile_end_brief(ngx_http_profile_run_t *run, uint64_t now,
    uint64_t cpu)
{
    uint64_t                   polled;
    ngx_http_profile_track_t  *tr;

    tr = &ngx_http_profile_brief;

    ngx_http_profile_leave_tail(run, now);

    if (ngx_http_profile_observers.counted == NULL) {
        return;
    }

    polled = ngx_http_profile_loop.poll_end;

    /* a stall may have parts */

    if (ngx_http_profile_noted_until > polled && !tr->begun) {
        ngx_http_profile_account_polled();
    }

    if (tr->begun) {
        ngx_http_profile_account_brief(now, cpu);
        return;
    }

    ngx_http_profile_observers.counted_brief(tr->place, now - polled,
                                             now - run->start,
                                             tr->times.cpu + cpu,
                                             tr->times.stall
                                             + run->start - polled);
}


PROF_GLUE_INLINE void
ngx_http_profile_leave_tail(ngx_http_profile_run_t *run, uint64_t now)
{
    ngx_http_profile_count_call(run->start, now);
    ngx_http_profile_log_run(run, now);

    ngx_http_profile_loop.since = now;

    ngx_http_profile_brief.request = NULL;
    ngx_http_profile_current = NULL;
    ngx_http_profile_spot.top = 0;
}


PROF_GLUE static void
ngx_http_profile_dispatch_turn(ngx_http_profile_track_t *tr, ngx_event_t *ev,
    ngx_connection_t *c, ngx_uint_t timer)
{
    ngx_connection_t        *client;
    ngx_http_profile_wake_t  wake;

    wake.event = ev;
    wake.connection = c;
    wake.request = NULL;
    wake.resolver = (timer && c == NULL)
                    ? ngx_http_profile_query_of(tr->request, ev) : NULL;
    wake.script = NULL;
    wake.since = (timer && c == NULL) ? ngx_http_profile_loop.awaited : 0;
    wake.timer = timer;
    wake.body = 0;
    wake.found = 0;
    wake.scripted = 0;

    /* a posted event of a stream, whose connection is not in nginx's array */

    client = tr->request->connection;

    if (c == NULL && (ev == client->read || ev == client->write)) {
        wake.connection = client;
    }

    ngx_http_profile_turn(tr, &wake, ngx_http_profile_event_code(tr, ev),
                          tr->capture ? ngx_http_profile_event_turn
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
 * Runs the next events in the current turn as long as they are of its request:
 * a connection is often readable and writable at once.  Captured requests have
 * a turn for each event, with the event's name.
 */

PROF_GLUE static void
ngx_http_profile_run_next(void)
{
    ngx_event_t               *ev;
    ngx_queue_t               *posted;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_current->track;
    posted = ngx_http_profile_loop.posted;

    /* each event may free the request */

    while (tr && tr == ngx_http_profile_current->track) {

        ev = posted ? ngx_http_profile_posted_own(posted, tr)
                    : ngx_http_profile_polled_own(tr);

        if (ev == NULL) {
            return;
        }

        if (ngx_http_profile_handlers.table) {
            ngx_http_profile_next_handler(ev);
        }

        ev->handler(ev);
    }
}


/*
 * Counts the handler that has returned: another event of the turn follows.  The
 * clock is read only between two handlers.
 */

PROF_HOT static void
ngx_http_profile_next_handler(ngx_event_t *ev)
{
    uint64_t                  now;
    uintptr_t                 function;
    ngx_http_profile_run_t   *run;
    ngx_http_profile_loop_t  *loop;

    run = ngx_http_profile_current;
    loop = &ngx_http_profile_loop;
    function = loop->next ? loop->next : run->handler;

    if ((uintptr_t) ev->handler == function) {
        ngx_http_profile_find_handler(function);
        ngx_http_profile_handlers.last.counters->calls++;
        return;
    }

    now = prof_now();

    ngx_http_profile_count_handler(run, now);

    loop->next = (uintptr_t) ev->handler;
    loop->next_start = now;
}


static ngx_event_t *
ngx_http_profile_posted_own(ngx_queue_t *posted, ngx_http_profile_track_t *tr)
{
    ngx_event_t  *ev;

    if (ngx_queue_empty(posted)) {
        return NULL;
    }

    ev = ngx_queue_data(ngx_queue_head(posted), ngx_event_t, queue);

    if (!ngx_http_profile_owns(tr, ngx_http_profile_connection(ev))) {
        return NULL;
    }

    ngx_delete_posted_event(ev);

    return ev;
}
