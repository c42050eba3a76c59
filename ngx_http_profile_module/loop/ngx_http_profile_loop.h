
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Which request a worker runs now, and where the time of each request goes:
 * what other rooms may use of the room "loop", and what they can observe.
 *
 * A request is tracked from the POST_READ phase until it is freed, because it
 * is captured, or because its server has profile_accounting on.  While at least
 * one request is tracked, the worker is armed: the module runs nginx's event
 * loop (ngx_http_profile_arm.c).
 *
 * All times are nanoseconds of prof_now(), and 0 means that a time is not known
 * yet.
 *
 * Context: a worker, not in a signal.
 */


#ifndef _NGX_HTTP_PROFILE_LOOP_H_INCLUDED_
#define _NGX_HTTP_PROFILE_LOOP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "prof.h"


typedef struct ngx_http_profile_owned_s  ngx_http_profile_owned_t;
typedef struct ngx_http_profile_run_s    ngx_http_profile_run_t;
typedef struct ngx_http_profile_track_s  ngx_http_profile_track_t;

typedef struct ngx_http_profile_subrequest_s  ngx_http_profile_subrequest_t;

/* other rooms' data about a request, which this room passes on unread */

typedef struct ngx_http_profile_ctx_s    ngx_http_profile_ctx_t;
typedef struct ngx_http_profile_notes_s  ngx_http_profile_notes_t;


/*
 * A subrequest of a tracked request, or the main request itself, with the
 * pointers of nginx's that the module replaces between turns.  It is in the
 * memory of the main request's pool.
 */

struct ngx_http_profile_subrequest_s {
    ngx_http_profile_subrequest_t    *next;
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
 * Where the time of a request went so far: wall = running + wait + stall.  In
 * the end wall is $request_time.
 */

typedef struct {
    uint64_t                      wall;
    uint64_t                      running;   /* in turns, wall clock */
    uint64_t                      cpu;       /* with its share of the loop */
    uint64_t                      wait;      /* for the client, for others */
    uint64_t                      stall;     /* ready, the worker was busy */
    uint64_t                      longest;   /* turn */
    ngx_uint_t                    turns;
} ngx_http_profile_times_t;


/* kinds of waits that are summed, at most */
#define NGX_HTTP_PROFILE_WAITS  24


struct ngx_http_profile_track_s {
    ngx_http_request_t           *request;   /* the main one; NULL: gone */

    /* set by the rooms that capture requests and that keep profiles */

    prof_capture_t               *capture;   /* that runs, or NULL */
    ngx_http_profile_ctx_t       *ctx;       /* of the trigger, or NULL */
    ngx_event_t                  *timer;     /* the capture's: its handler is
                                                no turn of the request */
    ngx_http_profile_notes_t     *notes;     /* of profile_keep, or NULL */
    ngx_str_t                     id;        /* of its profile, or empty */
    uint64_t                      samples;   /* in the profile */
    ngx_uint_t                    lost;      /* ngx_http_profile_loss_e: why it
                                                has no profile */

    ngx_queue_t                   staged;    /* of the room "stages" */

    unsigned                      stages:1;  /* is in that queue */
    unsigned                      spans:1;   /* the capture has spans */
    unsigned                      unnoted:1; /* no memory for notes */
    unsigned                      accounted:1;  /* also without a capture */

    /* the rest is set by this room */

    unsigned                      begun:1;   /* times are known from here */
    unsigned                      closed:1;  /* logged: times are final */
    unsigned                      wrapped:1; /* pointers are replaced */

    uint64_t                      start;     /* of $request_time */
    uint64_t                      since;     /* the turn that runs, or the gap,
                                                began then */
    uint64_t                      turn;      /* wall time of this turn */
    uint64_t                      turn_cpu;  /* CPU time of this turn */
    ngx_http_profile_times_t      times;

    /* what belongs to the request */

    ngx_http_profile_owned_t     *client;    /* its own connection */
    ngx_queue_t                   connections;
    ngx_queue_t                   events;
    ngx_uint_t                    nevents;
    ngx_http_profile_subrequest_t
                                 *subrequests;   /* the main request last */
    ngx_http_profile_subrequest_t
                                  main;      /* the main request */
    ngx_event_handler_pt          read_handler;   /* of a stream */
    ngx_event_handler_pt          write_handler;

    ngx_http_profile_track_t     *next;      /* of unused tracks */

    /* of the observer of waits: the kinds with a sum, and the sums in ns */

    uint32_t                      waited;    /* bits */
    uint64_t                      waits[NGX_HTTP_PROFILE_WAITS];
};


/*
 * What begins a turn: an event, with its connection if it has one, or another
 * way into the request or one of its subrequests.
 */

typedef struct {
    ngx_event_t                  *event;
    ngx_connection_t             *connection;
    ngx_http_request_t           *request;
    ngx_resolver_ctx_t           *resolver;
    unsigned                      timer:1;   /* the event's timer expired */
    unsigned                      body:1;    /* the request body is complete */
} ngx_http_profile_wake_t;


/*
 * Something that the worker runs: a turn of a request, or an event of no
 * request.  Runs are on the stack, and one may be within another.
 */

struct ngx_http_profile_run_s {
    ngx_http_profile_run_t       *prev;
    ngx_http_profile_track_t     *track;     /* NULL: none, or it is gone */
    ngx_connection_t             *connection;   /* the event's, or NULL */
    uint64_t                      start;
    uintptr_t                     handler;
    uintptr_t                     top;       /* stack address of its callees */
    uint64_t                      inner;     /* ns that runs within this one
                                                took for the request around
                                                it */
    unsigned                      accept:1;
    unsigned                      tail:1;    /* its request is gone */
    unsigned                      reported:1;   /* as slow */
    unsigned                      again:1;   /* within a turn of the same
                                                request */
};


/*
 * What other rooms observe: each pointer belongs to one room.  The event loop
 * calls no pointer that is NULL.  The ones of captures are called for tracks
 * with a capture or a context only, those of notes for tracks with notes.
 */

typedef struct {

    /* code of the request runs from now on; NULL: code of no request */
    void        (*running)(ngx_http_request_t *r);

    /*
     * A run has taken at least slow_ns, if that is not 0.  track is NULL if the
     * request is gone.
     */
    uint64_t      slow_ns;
    void        (*slow)(ngx_http_profile_run_t *run,
                        ngx_http_profile_track_t *tr, uint64_t ns);

    /* a poll comes next; returns 1 if it must not wait long */
    ngx_uint_t  (*polling)(void);

    /*
     * The sampler was created (on), or is going to be destroyed.  NGX_ERROR:
     * there is no sampler, and the error is logged.
     */
    ngx_int_t   (*sampling)(ngx_uint_t on);

    /*
     * A turn of a captured request begins.  wake is NULL for the first one,
     * ready is when the request could have run.  Returns the frame below which
     * the turn's samples are, mostly what.
     */
    uintptr_t   (*turn_begins)(ngx_http_profile_track_t *tr,
                               ngx_http_profile_wake_t *wake, uint64_t ready,
                               uintptr_t what);

    /* a turn has ended; the request may finalize the context */
    void        (*turn_ended)(ngx_http_profile_track_t *tr);

    /* a turn adds an event to the poll */
    void        (*event_added)(ngx_http_profile_track_t *tr);

    /* a request that is not captured has begun, its first turn at begin */
    void        (*notes_begin)(ngx_http_profile_track_t *tr, uint64_t begin);

    /* its next turn begins */
    void        (*notes_turn_begins)(ngx_http_profile_track_t *tr,
                                     ngx_http_profile_wake_t *wake,
                                     uint64_t ready);

    /* its turn has ended, and has used tr->turn_cpu */
    void        (*notes_turn_ended)(ngx_http_profile_track_t *tr,
                                    uint64_t now);

    /* the watch is about to forget its oldest samples */
    void        (*notes_age)(void);

    /*
     * The request is logged.  Its times are final if tr->closed is set,
     * otherwise ngx_http_profile_account_close() makes them final.
     */
    void        (*notes_logged)(ngx_http_profile_track_t *tr);

    /* the request is freed */
    void        (*notes_drop)(ngx_http_profile_track_t *tr);

    /*
     * The request has waited; wake is NULL for the time before its first turn.
     * The request is as it was while it waited.
     */
    void        (*waited)(ngx_http_profile_track_t *tr,
                          ngx_http_profile_wake_t *wake, uint64_t ns);

    /* the request is logged, and its times are final */
    void        (*counted)(ngx_http_profile_track_t *tr);
} ngx_http_profile_observers_t;


/* the worker runs a turn of the request now */

#define ngx_http_profile_is_running(tr)                                       \
    (ngx_http_profile_current && ngx_http_profile_current->track == (tr))


PROF_HIDDEN_BEGIN

extern ngx_http_profile_observers_t  ngx_http_profile_observers;

/* reasons to look at requests without a trigger */
extern ngx_uint_t  ngx_http_profile_all;

/* the innermost run, or NULL */
extern ngx_http_profile_run_t       *ngx_http_profile_current;

/* what was done since the run began was the profiler's, and is not charged */
void ngx_http_profile_forgive(void);

/*
 * ngx_http_profile_loop.c: once in a process; and when it ends: nothing may
 * begin any more, nginx's pointers are restored
 */
void ngx_http_profile_loop_init(void);
void ngx_http_profile_loop_exit(void);

/*
 * ngx_http_profile_arm.c: the worker is armed until the same number of calls of
 * ngx_http_profile_disarm().  NGX_ERROR: the reason is logged.
 */
ngx_int_t ngx_http_profile_arm(void);
void ngx_http_profile_disarm(void);

/*
 * Captures need the sampler, which also starts the watch with at most this
 * frequency.  It is destroyed when no turn is running.
 */
ngx_int_t ngx_http_profile_arm_sampler(ngx_uint_t frequency);
void ngx_http_profile_release_sampler(void);
prof_sampler_t *ngx_http_profile_sampler(void);

/*
 * The watch takes stacks of the worker at a low frequency.  It is NULL if no
 * directive needs it, or if it cannot be created.
 */
extern prof_watch_t       *ngx_http_profile_watch;
extern prof_watch_spot_t   ngx_http_profile_spot;

void ngx_http_profile_watch_start(ngx_uint_t frequency);
void ngx_http_profile_watch_stop(void);

/* the watch's new samples are those of this run */
void ngx_http_profile_watch_pass(ngx_http_profile_run_t *run);

/*
 * ngx_http_profile_tracks.c
 *
 * Most requests begin and end in one event, one after the other.  Until such a
 * request turns out to do more, and a lasting track is needed, its track is
 * ngx_http_profile_brief, and nothing that belongs to it is noted.  The brief
 * track's request is NULL while no request uses it.
 */
extern ngx_http_profile_track_t  ngx_http_profile_brief;

/*
 * Logs need the times of brief requests.  Otherwise the times are found when a
 * script asks.
 */
extern ngx_uint_t  ngx_http_profile_brief_asked;

/* in the POST_READ phase; NGX_DECLINED: the request needs a lasting track */
ngx_int_t ngx_http_profile_track_brief(ngx_http_request_t *r);

/*
 * The request's lasting track, which is made if necessary and arms the worker.
 * NULL: there is no memory, and the error is logged.
 */
ngx_http_profile_track_t *ngx_http_profile_track(ngx_http_request_t *r);
ngx_http_profile_track_t *ngx_http_profile_lasting(
    ngx_http_profile_track_t *tr);

/* the request is tracked no more; the track is valid until it is freed */
void ngx_http_profile_untrack(ngx_http_profile_track_t *tr);

/* the track of the request, or of its main request; NULL: it is not tracked */
ngx_http_profile_track_t *ngx_http_profile_find_track(ngx_http_request_t *r);

/* the context of a request that has a trigger header and is not tracked */
extern ngx_http_profile_track_t  ngx_http_profile_untracked;

/* of this subrequest, or main request; NULL: there is no memory */
ngx_http_profile_subrequest_t *ngx_http_profile_add_subrequest(
    ngx_http_profile_track_t *tr, ngx_http_request_t *r);

/*
 * ngx_http_profile_turn.c: in the POST_READ phase, runs the remaining phases of
 * the request as its first turn.  The request may be gone afterwards.
 */
void ngx_http_profile_run_request(ngx_http_profile_track_t *tr);

/*
 * The same, unless the run that goes on can be the first turn.  NGX_DONE: the
 * phases were run, and the request may be gone.  NGX_DECLINED: they are run by
 * the caller.
 */
ngx_int_t ngx_http_profile_account_begin(ngx_http_profile_track_t *tr);

/*
 * ngx_http_profile_account.c: the times until now; after the request was
 * logged, until then
 */
void ngx_http_profile_account_times(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times);

/* a handler of the log phase, before all others */
ngx_int_t ngx_http_profile_account_log(ngx_http_request_t *r);

/* the times are final; returns the time at which they became so */
uint64_t ngx_http_profile_account_close(ngx_http_profile_track_t *tr);

/* updates nginx's time for $request_time, but not the time of its timers */
void ngx_http_profile_update_request_time(ngx_http_request_t *r);

/* whether the event reads the request's body, as far as it has not come */
ngx_uint_t ngx_http_profile_reads_body(ngx_http_request_t *r,
    ngx_event_t *ev);

/* ngx_http_profile_turn.c: restores nginx's pointers, as before a turn */
void ngx_http_profile_unwrap(ngx_http_profile_track_t *tr);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOOP_H_INCLUDED_ */
