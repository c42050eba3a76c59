
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of the room "loop" share.  Other rooms include
 * ngx_http_profile_loop.h.
 */


#ifndef _NGX_HTTP_PROFILE_LOOP_PRIVATE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_LOOP_PRIVATE_H_INCLUDED_


#include "core/ngx_http_profile_handlers.h"
#include "loop/ngx_http_profile_loop.h"

#include <pthread.h>


/* a poll of more than this time, in ns, has slept */
#define NGX_HTTP_PROFILE_SLEEP_NS  20000


typedef struct {
    uint64_t                      last_end;  /* end of the previous poll */
    uint64_t                      poll_start;
    uint64_t                      poll_end;
    time_t                        poll_sec;  /* nginx's time at the end */
    ngx_uint_t                    poll_msec;
    uint64_t                      updated;   /* nginx's updated time */
    uint64_t                      since;     /* all time before is charged */
    ngx_msec_t                    due;       /* key of the running timer */
    uint64_t                      awaited;   /* since when; 0: unknown */
    ngx_msec_t                    earliest;  /* no timer has an earlier key */
    uint64_t                      ready;     /* when the dispatched events were
                                                ready; for the counters of
                                                handlers */
    uintptr_t                     next;      /* the last handler of a run with
                                                several handlers, or 0 */
    uint64_t                      next_start;
    ngx_queue_t                  *posted;    /* whose events are dispatched;
                                                NULL: the poll's */
    ngx_http_profile_run_t       *found;     /* the run whose turn was found
                                                after its beginning, or NULL */
    uint64_t                      seen;      /* start of the last run in which
                                                code of a request was seen */
} ngx_http_profile_loop_t;


/* how ngx_lua resumes coroutines */

typedef struct {
    ngx_cycle_t                  *cycle;     /* of the members below */
    prof_lua_resume_pt            resume;    /* lua_resume() */
    prof_redirect_t               redirect;
    pthread_t                     thread;    /* the worker's */
} ngx_http_profile_resume_t;


/* functions that replace nginx's pointers, and restore them */

typedef struct {
    ngx_int_t                   (*arm)(void);
    void                        (*disarm)(void);
} ngx_http_profile_arming_t;


/*
 * Returns whether the run is not in another run, and no room observes the
 * beginning and end of each run.
 */

#define ngx_http_profile_is_plain(run)                                        \
    (((uintptr_t) (run)->prev | ngx_http_profile_observers.slow_ns            \
      | (uintptr_t) ngx_http_profile_observers.running) == 0)

PROF_HIDDEN_BEGIN

/* ngx_http_profile_arm.c: 0, or one of the values below */

#define NGX_HTTP_PROFILE_ARMED    1
#define NGX_HTTP_PROFILE_SAMPLED  2      /* there is a sampler */

extern ngx_uint_t  ngx_http_profile_armed;

/* ngx_http_profile_disarm_idle() is to be called when no turn is running */
extern ngx_uint_t  ngx_http_profile_disarms;

/* called once in a process */
void ngx_http_profile_arm_init(ngx_http_profile_arming_t *arming);

/* called when the process ends: no use may begin */
void ngx_http_profile_arm_exit(void);

/* destroys the sampler and the tracks if unused and if no turn is running */
void ngx_http_profile_disarm_idle(void);

/* ngx_http_profile_poll.c: the poll of a worker that uses epoll */

/* returns NGX_ERROR if nginx's order of events is not possible (logged) */
ngx_int_t ngx_http_profile_poll_init(ngx_cycle_t *cycle);

/* set if nginx's poll runs handlers, unless it gets NGX_POST_EVENTS */
extern ngx_uint_t  ngx_http_profile_polls;

/*
 * The module's poll, which replaces nginx's poll if ngx_http_profile_polls is
 * set.  The module's poll runs no handlers.  The mask is the signal mask of
 * the poll; NULL: the thread's own mask.
 */
ngx_int_t ngx_http_profile_poll(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags, const sigset_t *mask);

/* the number of polled descriptors that are not handled yet */
extern ngx_uint_t  ngx_http_profile_npolled;

/*
 * Returns the event that is handled next, with its flags.  Returns NULL if
 * there is no such event, or if it belongs to another request.
 */
ngx_event_t *ngx_http_profile_polled_own(ngx_http_profile_track_t *tr);

/* ngx_http_profile_dispatch.c: runs the handlers of one place of the loop */

void ngx_http_profile_process_polled(void);
void ngx_http_profile_process_posted(ngx_queue_t *posted);
void ngx_http_profile_expire_timers(void);

/* ngx_http_profile_tracks.c */

/* frees unused tracks; called when the worker is disarmed */
void ngx_http_profile_tracks_done(void);

/* ngx_http_profile_account.c: where the time of a request goes */

void ngx_http_profile_account_start(ngx_http_profile_track_t *tr,
    uint64_t begin);

/* a turn begins; the request was ready to run at "ready" */
void ngx_http_profile_account_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready, uint64_t begin);

/* a turn ends */
void ngx_http_profile_account_turn(ngx_http_profile_track_t *tr,
    uint64_t now);

/*
 * The event of the brief request ends now.  Its start is known, it is logged,
 * and it is freed.  cpu: the CPU time that is not charged yet, in ns.
 */
void ngx_http_profile_account_brief(uint64_t now, uint64_t cpu);

/*
 * Computes the start of the brief request, which has not waited: its time
 * begins at the end of the poll.  The request may be freed already.
 */
void ngx_http_profile_account_polled(void);

/*
 * Makes the times of the brief request final, and counts it, if it was logged
 * and its turn goes on.  Otherwise nothing happens.  The request was freed.
 */
void ngx_http_profile_account_freed(void);

/* ngx_http_profile_run.c: the current run, and its CPU time */

extern ngx_http_profile_loop_t  ngx_http_profile_loop;

/* an empty queue: "posted" while timers expire */
extern ngx_queue_t  ngx_http_profile_nothing;

void ngx_http_profile_cpu_init(void);

/* charges the time since the last charge to the run; returns prof_now() */
uint64_t ngx_http_profile_charge(ngx_http_profile_run_t *run);

/* begins a run for tr, or with NULL for no request */
void ngx_http_profile_enter(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uintptr_t handler);

/* sets ngx_http_profile_handlers.last to the handler and its counters */
void ngx_http_profile_find_handler(uintptr_t function);

/* reports that the run, and the runs around it, are slow */
void ngx_http_profile_report_slow(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uint64_t ns);

/* called when the request is freed, possibly in its turn */
void ngx_http_profile_turn_forget(ngx_http_profile_track_t *tr);

/* destroys the watch even if it has users */
void ngx_http_profile_watch_end(void);

/* ngx_http_profile_busy.c: notes a run, or a time between runs */

/* shorter ones are not noted, in ns */
#define NGX_HTTP_PROFILE_BUSY_NS  50000

void ngx_http_profile_note_run(ngx_http_profile_run_t *run, uint64_t now);
void ngx_http_profile_note_poll(void);

/* the end of the last note */
extern uint64_t  ngx_http_profile_noted_until;

/* adds the parts of a stall that is in tr->times.stall already */
void ngx_http_profile_split_stall(ngx_http_profile_track_t *tr, uint64_t from,
    uint64_t to);
void ngx_http_profile_note_busy(ngx_http_profile_busy_e what, uint64_t start,
    uint64_t end, uint64_t stopped);

/* ngx_http_profile_owner.c: finds the request of an event */

/* nginx's array of connections, and its size in bytes */
extern ngx_connection_t  *ngx_http_profile_connections;
extern size_t             ngx_http_profile_connections_size;

ngx_int_t ngx_http_profile_owner_init(void);
void ngx_http_profile_owner_done(void);

/*
 * Returns the track of the event's request, or NULL, and the event's
 * connection, or NULL. timer: the event's timer has expired.
 */
ngx_http_profile_track_t *ngx_http_profile_owner(ngx_event_t *ev,
    ngx_uint_t timer, ngx_connection_t **connection);

/* as ngx_http_profile_owner(), for a connection in nginx's array, not idle */
ngx_http_profile_track_t *ngx_http_profile_connection_owner(ngx_event_t *ev,
    ngx_connection_t *c);

/* returns the track of the request that has this log, or NULL */
ngx_http_profile_track_t *ngx_http_profile_log_owner(ngx_log_t *log);

/* as ngx_http_profile_owner(), for a polled event outside of the array */
ngx_http_profile_track_t *ngx_http_profile_unlisted_owner(ngx_event_t *ev);

/* returns whether the request owned the connection before its running turn */
ngx_uint_t ngx_http_profile_owns(ngx_http_profile_track_t *tr,
    ngx_connection_t *c);

/*
 * Returns since when the connection of the turn that begins was awaited, or 0:
 * unknown.  The turn may wait for it again.
 */
uint64_t ngx_http_profile_awaited(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake);

/* from the turn that began then, the request waits for its connection c */
void ngx_http_profile_await(ngx_http_profile_track_t *tr, ngx_connection_t *c,
    uint64_t begin);

/* the same for a query of a name, by the event of its time limit */
uint64_t ngx_http_profile_query_awaited(ngx_event_t *ev);

/* returns the event's connection, or NULL if the event is not in an array */
ngx_connection_t *ngx_http_profile_connection(ngx_event_t *ev);

/* the request owns the client's connection, or c, from now on */
void ngx_http_profile_own_client(ngx_http_profile_track_t *tr);
void ngx_http_profile_own_connection(ngx_http_profile_track_t *tr,
    ngx_connection_t *c);

/* called at the end of a turn: updates the owned connections */
void ngx_http_profile_settle(ngx_http_profile_track_t *tr);
void ngx_http_profile_disown_all(ngx_http_profile_track_t *tr);

/* returns the connection below an HTTP/2 or HTTP/3 stream, or NULL */
ngx_connection_t *ngx_http_profile_below(ngx_http_request_t *r);

/*
 * The CPU time in ns that was spent for a connection before it had a request,
 * and the number of connections with such time.
 */
extern ngx_uint_t  ngx_http_profile_nopening;

void ngx_http_profile_add_opening_cpu(ngx_connection_t *c, uint64_t ns);
uint64_t ngx_http_profile_take_opening_cpu(ngx_connection_t *c);

/*
 * The number of listening sockets of other protocols: of stream {}, mail {}
 * and modules that have servers of their own.  No request is charged for the
 * CPU time of their connections.
 */
extern ngx_uint_t  ngx_http_profile_nforeign;

/* returns whether the connection is of another protocol */
ngx_uint_t ngx_http_profile_is_foreign(ngx_connection_t *c);

/* notes that a connection of another protocol has opened this connection */
void ngx_http_profile_set_foreign(ngx_connection_t *c);

/* the number of owned single events of all requests, and of their queries */
extern ngx_uint_t  ngx_http_profile_nevents;
extern ngx_uint_t  ngx_http_profile_nqueries;

/*
 * Returns the query of a name to which the event belongs as the timer of its
 * time limit, or NULL.  The event is valid.
 */
ngx_resolver_ctx_t *ngx_http_profile_query_of(ngx_http_request_t *r,
    ngx_event_t *ev);

/*
 * The request owns the event from now on: the event's connection if it is in
 * nginx's array, or else the single event.
 */
void ngx_http_profile_own_event(ngx_http_profile_track_t *tr,
    ngx_event_t *ev);
void ngx_http_profile_disown_event(ngx_event_t *ev);

/* ngx_http_profile_turn_log.c: the run ends, which the turn log has */

/* the current run is a turn that could have begun at this time */
void ngx_http_profile_log_woken(ngx_http_profile_wake_t *wake, uint64_t ready);

void ngx_http_profile_log_leave(ngx_http_profile_run_t *run, uint64_t now);

/*
 * The current run goes on for another request, or with NULL for no request:
 * it gets a record of its own.  The request could have run since "ready".
 */
void ngx_http_profile_log_found(ngx_http_profile_track_t *tr, uint64_t begin,
    uint64_t ready);

/* ngx_http_profile_turn.c: turns */

/*
 * Runs fn(data) as a turn of the request.  In a capture, the frames of the
 * turn are below the frame what. wake is NULL for the first turn.  The request
 * and its data may be freed afterwards.
 */
void ngx_http_profile_turn(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn,
    void *data);

/* ends the run, and the turn of its request */
void ngx_http_profile_leave(ngx_http_profile_run_t *run);

/* a query of the request has ended: a turn without code ends the wait for it */
void ngx_http_profile_query_ended(ngx_http_profile_track_t *tr);

/* called instead of lua_resume() */
int ngx_http_profile_resume(prof_lua_state_t *co, int nargs);

/* ngx_http_profile_resume.c: the coroutines that ngx_lua resumes */

extern ngx_http_profile_resume_t  ngx_http_profile_resumes;

/* from now on ngx_lua calls fn instead of lua_resume() */
void ngx_http_profile_resume_arm(prof_lua_resume_pt fn);
void ngx_http_profile_resume_disarm(void);

/* returns nginx's handler of one of the request's events */
uintptr_t ngx_http_profile_event_code(ngx_http_profile_track_t *tr,
    ngx_event_t *ev);

PROF_HIDDEN_END


PROF_GLUE_INLINE void
ngx_http_profile_init_run(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uintptr_t handler)
{
    run->prev = ngx_http_profile_current;
    run->track = tr;
    run->connection = NULL;
    run->start = ngx_http_profile_loop.since;
    run->handler = handler;
    run->accept = 0;
    run->tail = 0;
    run->reported = 0;
    run->again = 0;
    run->inner = 0;

    ngx_http_profile_current = run;
    ngx_http_profile_spot.top = run->top;

    if (ngx_http_profile_logs_turns()) {
        prof_turns_enter(&ngx_http_profile_turn_log, run->start, handler);

        if (tr) {
            prof_turns_own(&ngx_http_profile_turn_log, tr->number);
        }
    }
}


/*
 * The worker was busy while the request could have run.  Most stalls were times
 * of other requests, of which nothing is noted.
 */

PROF_GLUE_INLINE void
ngx_http_profile_add_stall(ngx_http_profile_track_t *tr, uint64_t from,
    uint64_t to)
{
    tr->times.stall += to - from;

    if (ngx_http_profile_noted_until > from && to > from) {
        ngx_http_profile_split_stall(tr, from, to);
    }
}


/* the run ends; the turn log may be off since a part of it */

PROF_GLUE_INLINE void
ngx_http_profile_log_run(ngx_http_profile_run_t *run, uint64_t now)
{
    if (ngx_http_profile_turn_log.depth) {
        ngx_http_profile_log_leave(run, now);
    }
}


/*
 * Returns whether the request awaits events beside the one that wakes it.  An
 * expired timer is not in its events any more.
 */

PROF_GLUE_INLINE ngx_uint_t
ngx_http_profile_awaits_more(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    return tr->nevents || tr->connections.next != tr->connections.prev
           || (wake->connection == NULL
               && tr->connections.next != &tr->connections);
}


/* returns whether the worker has waited for the events of this iteration */

PROF_GLUE_INLINE ngx_uint_t
ngx_http_profile_slept(void)
{
    ngx_http_profile_loop_t  *loop;

    loop = &ngx_http_profile_loop;

    return loop->poll_end - loop->poll_start > NGX_HTTP_PROFILE_SLEEP_NS;
}


/* returns whether the connection is in nginx's array */

PROF_GLUE_INLINE ngx_uint_t
ngx_http_profile_in_array(ngx_connection_t *c)
{
    return (uintptr_t) c - (uintptr_t) ngx_http_profile_connections
           < ngx_http_profile_connections_size;
}


/* returns the timer that expires next, or NULL */

PROF_GLUE_INLINE ngx_rbtree_node_t *
ngx_http_profile_next_timer(void)
{
    ngx_rbtree_t  *tree;

    tree = &ngx_event_timer_rbtree;

    return (tree->root == tree->sentinel)
           ? NULL : ngx_rbtree_min(tree->root, tree->sentinel);
}


PROF_GLUE_INLINE ngx_uint_t
ngx_http_profile_is_due(ngx_rbtree_node_t *timer)
{
    return timer && (ngx_msec_int_t) (timer->key - ngx_current_msec) <= 0;
}


#endif /* _NGX_HTTP_PROFILE_LOOP_PRIVATE_H_INCLUDED_ */
