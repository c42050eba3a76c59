
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The event loop of an armed worker.  It does what nginx does between two
 * polls, in nginx's order.
 */


#include "loop/ngx_http_profile_loop_private.h"


typedef ngx_int_t (*ngx_http_profile_poll_pt)(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);


static ngx_int_t ngx_http_profile_process_events(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);
PROF_GLUE_INLINE ngx_int_t ngx_http_profile_iterate(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);
static ngx_int_t ngx_http_profile_paced_poll(ngx_http_profile_poll_pt poll,
    ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags);
static void ngx_http_profile_hold_time(void);
static void ngx_http_profile_release_time(void);


PROF_HOT_DATA ngx_http_profile_loop_t           ngx_http_profile_loop;
PROF_HOT_DATA ngx_uint_t                        ngx_http_profile_iterating;

/* nginx's process_events() */

PROF_HOT_DATA static ngx_http_profile_poll_pt   ngx_http_profile_original;

/* the time to which nginx's time is held back, or 0; and nginx's real time */

PROF_HOT_DATA static ngx_msec_t                 ngx_http_profile_held_msec;
PROF_HOT_DATA static ngx_msec_t                 ngx_http_profile_real_msec;


void
ngx_http_profile_loop_begin(void)
{
    ngx_memzero(&ngx_http_profile_loop, sizeof(ngx_http_profile_loop_t));
    ngx_http_profile_loop.since = prof_now();

    /* after disarming, the module's function stays until its next call */

    if (ngx_event_actions.process_events != ngx_http_profile_process_events) {
        ngx_http_profile_original = ngx_event_actions.process_events;
        ngx_event_actions.process_events = ngx_http_profile_process_events;
    }
}


void
ngx_http_profile_loop_end(void)
{
    if (ngx_event_actions.process_events == ngx_http_profile_process_events) {
        ngx_event_actions.process_events = ngx_http_profile_original;
    }
}


PROF_GLUE static ngx_int_t
ngx_http_profile_process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ngx_int_t  rc;

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

    ngx_http_profile_disarm_idle();

    if (!ngx_http_profile_armed) {
        ngx_http_profile_loop_end();

        return ngx_http_profile_original(cycle, timer, flags);
    }

    ngx_http_profile_iterating = 1;

    rc = ngx_http_profile_iterate(cycle, timer, flags);

    ngx_http_profile_iterating = 0;

    return rc;
}


/* the order is that of ngx_process_events_and_timers() */

PROF_GLUE_INLINE ngx_int_t
ngx_http_profile_iterate(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ngx_int_t                 rc;
    ngx_http_profile_loop_t  *loop;
    ngx_http_profile_poll_pt  poll;

    loop = &ngx_http_profile_loop;

    loop->last_end = loop->poll_end;
    loop->poll_start = loop->since;

    poll = (ngx_http_profile_polls && !(flags & NGX_POST_EVENTS))
           ? ngx_http_profile_poll
           : ngx_http_profile_original;

    rc = prof_process_paced()
         ? ngx_http_profile_paced_poll(poll, cycle, timer, flags)
         : poll(cycle, timer, flags);

    loop->poll_end = prof_now();
    loop->poll_msec = ngx_http_profile_msec(ngx_timeofday());
    loop->updated = loop->poll_end;
    loop->since = loop->poll_end;

    ngx_http_profile_process_polled();

    if (!ngx_queue_empty(&ngx_posted_accept_events)) {
        ngx_http_profile_process_posted(&ngx_posted_accept_events);
    }

    if (ngx_accept_mutex_held) {
        ngx_shmtx_unlock(&ngx_accept_mutex);
    }

    ngx_http_profile_expire_timers();

    if (!ngx_queue_empty(&ngx_posted_events)) {
        ngx_http_profile_process_posted(&ngx_posted_events);
        ngx_http_profile_hold_time();
    }

    return rc;
}


/*
 * The timer of paced captures runs while the worker does not wait.  Events that
 * are there already are taken without stopping the timer.
 */

static ngx_int_t
ngx_http_profile_paced_poll(ngx_http_profile_poll_pt poll, ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags)
{
    ngx_int_t  rc;

    rc = poll(cycle, 0, flags);

    if (rc != NGX_OK || timer == 0 || ngx_http_profile_npolled
        || !ngx_queue_empty(&ngx_posted_accept_events)
        || !ngx_queue_empty(&ngx_posted_events))
    {
        return rc;
    }

    prof_process_idle();

    rc = poll(cycle, timer, flags);

    prof_process_busy();

    return rc;
}


/*
 * nginx looks for expired timers once more when process_events() returns.
 * Timers that are due by now, because a handler has set one that expires at
 * once, or has moved nginx's time on, must expire after the next poll.  So
 * nginx's time is set back to the moment before the first timer until then.
 */

static void
ngx_http_profile_hold_time(void)
{
    ngx_rbtree_node_t  *node;

    if (ngx_event_timer_rbtree.root == ngx_event_timer_rbtree.sentinel) {
        return;
    }

    node = ngx_rbtree_min(ngx_event_timer_rbtree.root,
                          ngx_event_timer_rbtree.sentinel);

    if ((ngx_msec_int_t) (node->key - ngx_current_msec) <= 0) {
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
