
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Tracked requests: whose code a worker runs now, and where the time of each
 * request goes.
 *
 * A request is tracked from the POST_READ phase until it is freed: because it
 * is captured, or because its server has profile_accounting on.  All times are
 * nanoseconds of prof_now(), 0 is none yet.
 *
 * Context: a worker, not in a signal.
 */


#ifndef _NGX_HTTP_PROFILE_ACCOUNT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ACCOUNT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "prof.h"


/* events in memory that is not nginx's own, of one request */

#define NGX_HTTP_PROFILE_MAX_EVENTS  4096


typedef struct ngx_http_profile_ctx_s    ngx_http_profile_ctx_t;
typedef struct ngx_http_profile_part_s   ngx_http_profile_part_t;
typedef struct ngx_http_profile_frame_s  ngx_http_profile_frame_t;
typedef struct ngx_http_profile_track_s  ngx_http_profile_track_t;
typedef struct ngx_http_profile_slot_s   ngx_http_profile_slot_t;
typedef struct ngx_http_profile_keep_s  ngx_http_profile_keep_t;


/*
 * A request (the main one, a subrequest) of a tracked one, with what is
 * wrapped between the turns: memory of the main request's pool.
 */

struct ngx_http_profile_part_s {
    ngx_http_profile_part_t          *next;
    ngx_http_request_t               *request;
    ngx_http_event_handler_pt         write_event_handler;
    ngx_resolver_ctx_t               *resolver_ctx;
    ngx_resolver_handler_pt           resolver_handler;
    ngx_http_client_body_handler_pt   post_handler;
    struct ngx_http_profile_callbacks_s
                                     *callbacks;   /* of its upstream */
    unsigned                          aio:1;
};


/*
 * Where a request's time went so far: wall = running + wait + stall, and it is
 * $request_time.
 */

typedef struct {
    uint64_t                      wall;
    uint64_t                      running;   /* in turns, wall clock */
    uint64_t                      cpu;       /* with its share of the loop */
    uint64_t                      wait;      /* for others than the worker */
    uint64_t                      stall;     /* ready, the worker was busy */
    uint64_t                      longest;   /* turn */
    ngx_uint_t                    turns;
} ngx_http_profile_times_t;


struct ngx_http_profile_track_s {
    ngx_http_request_t           *request;   /* the main one; NULL: gone */
    ngx_http_profile_ctx_t       *ctx;       /* of its capture, or NULL */
    ngx_http_profile_keep_t      *light;     /* of profile_keep, or NULL */

    unsigned                      accounted:1;  /* not only for a capture */
    unsigned                      begun:1;      /* its times are */
    unsigned                      closed:1;     /* logged: times are final */
    unsigned                      wrapped:1;    /* ngx_http_profile_wrap() */
    unsigned                      dark:1;       /* no memory for its light */

    /* its time */

    uint64_t                      start;     /* of $request_time */
    uint64_t                      mark;      /* end of the last turn */
    uint64_t                      turn;      /* that runs, until now */
    uint64_t                      turn_cpu;  /* of it */
    ngx_http_profile_times_t      times;

    ngx_str_t                     id;        /* of its profile, or empty */
    uint64_t                      samples;   /* in it */
    ngx_uint_t                    lost;      /* ngx_http_profile_loss_e: why
                                                it has none */

    /* what belongs to it */

    ngx_http_profile_slot_t      *client;    /* its own connection's */
    ngx_queue_t                   connections;
    ngx_queue_t                   events;
    ngx_uint_t                    nevents;
    ngx_http_profile_part_t      *parts;
    ngx_http_profile_part_t       part;      /* of the main request */
    ngx_event_handler_pt          read_handler;   /* of a stream */
    ngx_event_handler_pt          write_handler;

    ngx_http_profile_track_t     *next;      /* of those not in use */
};


/*
 * What begins a turn: an event, with its connection if it has one, or another
 * way into a part of the request.
 */

typedef struct {
    ngx_event_t                  *event;
    ngx_connection_t             *connection;
    ngx_http_request_t           *request;
    ngx_resolver_ctx_t           *resolver;
    unsigned                      timer:1;   /* the event's timer expired */
    unsigned                      body:1;    /* the request's body is there */
} ngx_http_profile_wake_t;


/* what the worker runs: an event of nobody, or a turn; on the stack */

struct ngx_http_profile_frame_s {
    ngx_http_profile_frame_t     *prev;
    ngx_http_profile_track_t     *track;     /* NULL: nobody's, or gone */
    ngx_connection_t             *connection;   /* the event's, or NULL */
    uint64_t                      start;
    uintptr_t                     handler;
    uintptr_t                     top;       /* of what is called from it */
    uint64_t                      inner;     /* for the request around it */
    unsigned                      accept:1;
    unsigned                      tail:1;    /* of a request that is gone */
    unsigned                      noted:1;   /* that it takes long */
    unsigned                      again:1;   /* within a turn of the same */
};


typedef struct {
    uint64_t                      last_end;  /* of the poll before */
    uint64_t                      poll_start;
    uint64_t                      poll_end;
    uint64_t                      poll_msec; /* nginx's time at its end */
    uint64_t                      updated;   /* when that was looked up */
    uint64_t                      since;     /* not charged to anybody yet */
    ngx_msec_t                    due;       /* key of the timer that runs */
} ngx_http_profile_loop_t;


/* nobody wants to know where each turn begins and ends */

#define ngx_http_profile_is_plain                                             \
    (ngx_http_profile_nlocated == 0 && ngx_http_profile_stall_ns == 0)

/* of an ngx_time_t, since the Epoch */

#define ngx_http_profile_msec(tp)                                             \
    ((uint64_t) (tp)->sec * 1000 + (tp)->msec)


PROF_HIDDEN_BEGIN

extern ngx_http_profile_loop_t  ngx_http_profile_loop;

/* the loop is watched */
extern ngx_uint_t  ngx_http_profile_armed;

/* there is one while captures, profile_keep or stalls need it, or NULL */
extern prof_watch_t  *ngx_http_profile_watch;

/* its part in each turn, which is there without one, too */
extern prof_watch_spot_t  ngx_http_profile_spot;

/* ngx_http_profile_arm.c: the worker's pointers and the event loop */

/*
 * The loop is watched while somebody needs it, and there is a sampler while
 * captures need it; both end when no turn is running.
 */
ngx_int_t ngx_http_profile_arm(void);
void ngx_http_profile_disarm(void);
ngx_int_t ngx_http_profile_arm_sampler(ngx_uint_t frequency);
void ngx_http_profile_release_sampler(void);
void ngx_http_profile_disarm_idle(void);
void ngx_http_profile_track_exit(void);
prof_sampler_t *ngx_http_profile_sampler(void);

/* ngx_http_profile_loop.c: the event loop while the worker is armed */

/* an iteration of it runs, and none of nginx's own */
extern ngx_uint_t  ngx_http_profile_iterating;

/* it takes itself out after the iteration in which the worker is disarmed */
void ngx_http_profile_loop_begin(void);
void ngx_http_profile_loop_end(void);

/* ngx_http_profile_poll.c: the poll of a worker that uses epoll */

/* NGX_ERROR: the events cannot be dispatched in nginx's order, it is logged */
ngx_int_t ngx_http_profile_poll_init(ngx_cycle_t *cycle);

/* nginx runs handlers in its poll, if it does not pass NGX_POST_EVENTS */
extern ngx_uint_t  ngx_http_profile_polls;

/* then this one is called; it runs none */
ngx_int_t ngx_http_profile_poll(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags);

/* of descriptors that it has reported: those not handled yet */
extern ngx_uint_t  ngx_http_profile_npolled;

/*
 * The event that is handled next, with its flags; or NULL.  With a request it
 * is NULL if the next event is not one of the request's own.
 */
ngx_event_t *ngx_http_profile_polled(ngx_http_profile_track_t *tr);

/* ngx_http_profile_dispatch.c: handlers, of each place of the loop */

void ngx_http_profile_process_polled(void);
void ngx_http_profile_process_posted(ngx_queue_t *posted);
void ngx_http_profile_expire_timers(void);

/* the innermost one, or NULL */
extern ngx_http_profile_frame_t  *ngx_http_profile_frame;

/* around what the worker runs for tr, or, with NULL, for nobody */
void ngx_http_profile_enter(ngx_http_profile_frame_t *frame,
    ngx_http_profile_track_t *tr, uintptr_t handler);
void ngx_http_profile_leave(ngx_http_profile_frame_t *frame);

/* what was sampled is the frame's, which runs or has run until now */
void ngx_http_profile_pass(ngx_http_profile_frame_t *frame);

/* ngx_http_profile_watch.c */

/* the watch is there while somebody needs it; without one things go on */
void ngx_http_profile_watch_start(ngx_uint_t frequency);
void ngx_http_profile_watch_stop(void);
void ngx_http_profile_watch_exit(void);

/* ngx_http_profile_tracks.c: the requests that are tracked */

/* what the module's context of a request is that has only a trigger header */
extern ngx_http_profile_track_t  ngx_http_profile_marked;

/*
 * Tracks a request: the one that is there already, or a new one, which arms
 * the worker.  NULL: no memory, said in the error log.
 */
ngx_http_profile_track_t *ngx_http_profile_track(ngx_http_request_t *r);
void ngx_http_profile_untrack(ngx_http_profile_track_t *tr);

/*
 * Most requests begin and end in one event, one after the other.  Until such a
 * one turns out to do more, and somebody asks for a lasting track, it has no
 * memory of its own but this one, and nothing that belongs to it is noted.
 * Its request is NULL when there is none.
 */
extern ngx_http_profile_track_t  ngx_http_profile_brief;

/*
 * Somebody reads its times, so they are known from its beginning and end when
 * it is logged.  Else they are found when a script asks.
 */
extern ngx_uint_t  ngx_http_profile_brief_asked;

/* NGX_DECLINED: the request needs a lasting one */
ngx_int_t ngx_http_profile_track_brief(ngx_http_request_t *r);
ngx_http_profile_track_t *ngx_http_profile_lasting(
    ngx_http_profile_track_t *tr);

/* the worker is disarmed */
void ngx_http_profile_tracked_done(void);

/* of the request or of a subrequest's main request; NULL: not tracked */
ngx_http_profile_track_t *ngx_http_profile_find_track(ngx_http_request_t *r);

/* ngx_http_profile_account.c: whose the time is */

ngx_int_t ngx_http_profile_account_begin(ngx_http_profile_track_t *tr);
void ngx_http_profile_account_start(ngx_http_profile_track_t *tr,
    uint64_t begin);
void ngx_http_profile_account_gap(ngx_http_profile_track_t *tr,
    uint64_t ready, uint64_t begin);

/* a turn of the request ends */
void ngx_http_profile_account_turn(ngx_http_profile_track_t *tr,
    uint64_t now);

/* the times until now; after the request was logged, until then */
void ngx_http_profile_account_times(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times);

/* a handler of the log phase, before all others */
ngx_int_t ngx_http_profile_account_log(ngx_http_request_t *r);

/* ngx_http_profile_cpu.c: CPU time, and whose it is */

void ngx_http_profile_cpu_init(void);

/* charges the time since the last call to what has run: the frame */
uint64_t ngx_http_profile_charge(ngx_http_profile_frame_t *frame);

/* ngx_http_profile_variables.c */

ngx_int_t ngx_http_profile_add_variables(ngx_conf_t *cf);

/* whether the configuration has a variable that tells a request's times */
ngx_uint_t ngx_http_profile_asks_times(ngx_cycle_t *cycle);

/* ngx_http_profile_owner.c: whose an event is */

ngx_int_t ngx_http_profile_owned_init(void);
void ngx_http_profile_owned_done(void);
ngx_http_profile_track_t *ngx_http_profile_owner(ngx_event_t *ev,
    ngx_uint_t timer, ngx_connection_t **connection);

/* in a turn of the request: the connection, or NULL, was its own before it */
ngx_uint_t ngx_http_profile_owns(ngx_http_profile_track_t *tr,
    ngx_connection_t *c);

/* NULL: the event is of somebody else's memory */
ngx_connection_t *ngx_http_profile_connection(ngx_event_t *ev);
void ngx_http_profile_own_client(ngx_http_profile_track_t *tr);
void ngx_http_profile_own_connection(ngx_http_profile_track_t *tr,
    ngx_connection_t *c);
void ngx_http_profile_settle(ngx_http_profile_track_t *tr);
void ngx_http_profile_disown_all(ngx_http_profile_track_t *tr);

/*
 * CPU time that is spent for a connection before it has a request, in ns; and
 * the number of connections for which there is some.
 */
extern ngx_uint_t  ngx_http_profile_nasides;

void ngx_http_profile_put_aside(ngx_connection_t *c, uint64_t ns);
uint64_t ngx_http_profile_take_aside(ngx_connection_t *c);

/* ngx_http_profile_owner_events.c: events in memory of others */

/* those that are owned, of all requests */
extern ngx_uint_t  ngx_http_profile_nevents;

void ngx_http_profile_events_init(void);

/* with its connection, if it has one of nginx's array */
void ngx_http_profile_own_event(ngx_http_profile_track_t *tr,
    ngx_event_t *ev);
void ngx_http_profile_disown_event(ngx_event_t *ev);
void ngx_http_profile_disown_events(ngx_http_profile_track_t *tr);

/* whose it was; NULL: nobody's */
ngx_http_profile_track_t *ngx_http_profile_take_event(ngx_event_t *ev);

/*
 * ngx_http_profile_shared_connections.c: what a turn may touch but what serves
 * other requests as well
 */

/* the connection below a stream; NULL: the request has its own */
ngx_connection_t *ngx_http_profile_below(ngx_http_request_t *r);
ngx_uint_t ngx_http_profile_shared(ngx_http_request_t *r,
    ngx_connection_t *c);
ngx_uint_t ngx_http_profile_shared_event(ngx_http_request_t *r,
    ngx_event_t *ev);

/* ngx_http_profile_turn.c: turns, and what is wrapped between them */

void ngx_http_profile_turn(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uintptr_t what, prof_turn_pt fn,
    void *data);
void ngx_http_profile_run_request(ngx_http_profile_track_t *tr);
ngx_int_t ngx_http_profile_adopt(ngx_http_profile_track_t *tr);
void ngx_http_profile_turn_forget(ngx_http_profile_track_t *tr);
ngx_http_profile_ctx_t *ngx_http_profile_turn_ctx(void);
ngx_http_profile_part_t *ngx_http_profile_add_part(
    ngx_http_profile_track_t *tr, ngx_http_request_t *r);

/* ngx_http_profile_wrap.c: pointers that stand there between turns */

void ngx_http_profile_wrap(ngx_http_profile_track_t *tr);
void ngx_http_profile_unwrap(ngx_http_profile_track_t *tr);

/* the handler of an event of the request's, wrapped or not */
uintptr_t ngx_http_profile_event_code(ngx_http_profile_track_t *tr,
    ngx_event_t *ev);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ACCOUNT_H_INCLUDED_ */
