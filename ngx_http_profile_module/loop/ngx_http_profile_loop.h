
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Which request a worker runs now, and where the time of each request goes.
 * This header is the interface of the room "loop" for other rooms: its
 * functions, and the events that other rooms observe.
 *
 * A request is tracked from the POST_READ phase until it is freed, if it is
 * captured, or if its server has profile_accounting on.  While at least one
 * request is tracked, the worker is armed: the module runs nginx's event loop
 * (ngx_http_profile_arm.c).
 *
 * All times are nanoseconds of prof_now(); 0 means that a time is not known
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
typedef struct ngx_http_profile_pieces_s      ngx_http_profile_pieces_t;

/* data of other rooms about a request; this room does not read it */

typedef struct ngx_http_profile_ctx_s    ngx_http_profile_ctx_t;
typedef struct ngx_http_profile_notes_s  ngx_http_profile_notes_t;


/*
 * A subrequest of a tracked request, or the main request itself, with nginx's
 * pointers that the module replaces between turns.  For a subrequest, this is
 * allocated from the main request's pool.
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
    uint64_t                          awaited;   /* since when, if "aio" */
    unsigned                          aio:1;
};


/* what the worker did while a request could have run */

typedef enum {
    NGX_HTTP_PROFILE_BUSY_REQUESTS = 0,      /* other requests */
    NGX_HTTP_PROFILE_BUSY_TIMERS,            /* handlers without a request */
    NGX_HTTP_PROFILE_BUSY_PROFILER,
    NGX_HTTP_PROFILE_BUSY_STOPPED,           /* it had no processor */
    NGX_HTTP_PROFILE_BUSY_KINDS
} ngx_http_profile_busy_e;


/*
 * Where the time of a request went so far: wall = running + wait + stall.  At
 * the end of the request, wall is $request_time.
 */

typedef struct {
    uint64_t                      wall;
    uint64_t                      running;   /* in turns, wall clock */
    uint64_t                      cpu;       /* turns, and part of the loop */
    uint64_t                      outside;   /* "cpu" that is not in turns */
    uint64_t                      no_processor;  /* in turns, ready to run */
    uint64_t                      blocked;   /* in turns, in a call */
    uint64_t                      wait;      /* client, upstreams */
    uint64_t                      stall;     /* the worker was busy */
    uint64_t                      longest;   /* longest turn */
    ngx_uint_t                    turns;
    uint64_t                      busy[NGX_HTTP_PROFILE_BUSY_KINDS];
                                             /* parts of "stall"; the rest is
                                                BUSY_REQUESTS, which is not
                                                counted here */
} ngx_http_profile_times_t;


/* the maximum number of causes of waiting, each with its sum in "waits" */
#define NGX_HTTP_PROFILE_WAITS  24


struct ngx_http_profile_track_s {
    ngx_http_request_t           *request;   /* main request; NULL: freed */

    /* the members below are set by rooms that capture or keep requests */

    prof_capture_t               *capture;   /* running capture, or NULL */
    ngx_http_profile_ctx_t       *ctx;       /* of a trigger, or NULL */
    uint64_t                      prepared;  /* when the start of its capture
                                                began */
    ngx_event_t                  *timer;     /* profile_timeout: not a turn */
    ngx_http_profile_notes_t     *notes;     /* of profile_keep, or NULL */
    ngx_str_t                     id;        /* id of its profile, or empty */
    uint64_t                      samples;   /* samples in the profile */
    ngx_uint_t                    lost;      /* ngx_http_profile_loss_e */

    ngx_queue_t                   staged;    /* of the room "stages" */

    unsigned                      stages:1;  /* in the queue "staged" */
    unsigned                      spans:1;   /* the capture has spans */
    unsigned                      unnoted:1; /* memory for notes was short */
    unsigned                      wrapped:1; /* pointers are replaced, by this
                                                room */

    uint32_t                      number;    /* in the turn log; 0: none */

    ngx_http_profile_pieces_t    *pieces;    /* waits that overlap, or NULL;
                                                of this room */

    u_char                        described; /* flag: "context" is written */
    u_char                        accounted; /* flag: also without a capture */

    /* the members below are set by this room */

    u_char                        begun;     /* flag: "start" is known, and
                                                times are since then */
    u_char                        closed;    /* flag: logged, times are final */
    u_char                        own;       /* flag: closed before it is
                                                logged, the rest is the
                                                profiler's */

    uint64_t                      start;     /* start of $request_time */
    uint64_t                      since;     /* start of the turn or gap */
    ngx_uint_t                    place;     /* in the metrics: its location */

    /* the members from here to "times" are zeroed when a request begins */

    uint32_t                      waited;    /* which sums in "waits" are not
                                                0: bits */
    uint64_t                      turn;      /* wall time of this turn */
    uint64_t                      turn_cpu;  /* CPU time of this turn */
    uint64_t                      turn_no_processor;
    uint64_t                      turn_blocked;
    ngx_http_profile_times_t      times;

    /* the connections and events of the request */

    ngx_http_profile_owned_t     *client;    /* client's connection */
    ngx_queue_t                   connections;
    ngx_queue_t                   events;
    ngx_uint_t                    nevents;
    ngx_uint_t                    nqueries;  /* events of names that are
                                                resolved */
    ngx_http_profile_subrequest_t
                                 *subrequests;   /* the main request is last */
    ngx_http_profile_subrequest_t
                                  main;      /* the main request */
    ngx_event_handler_pt          read_handler;   /* of a stream */
    ngx_event_handler_pt          write_handler;

    ngx_http_profile_track_t     *next;      /* of unused tracks */

    uint64_t                      waits[NGX_HTTP_PROFILE_WAITS];
                                             /* ns by cause of waiting, of the
                                                observer "waited" */
    prof_context_record_t         context;   /* of profile_context */
};


/*
 * The cause of a turn: an event, with its connection if it has one, or another
 * entry into the request or one of its subrequests.
 */

typedef struct {
    ngx_event_t                  *event;
    ngx_connection_t             *connection;
    ngx_http_request_t           *request;
    ngx_resolver_ctx_t           *resolver;
    void                         *script;    /* coroutine that is resumed, or
                                                NULL */
    uint64_t                      begin;     /* of the turn */
    uint64_t                      since;     /* begin of the turn that began to
                                                wait for this event, or 0: it
                                                is the last turn */
    unsigned                      timer:1;   /* the event is a timer */
    unsigned                      body:1;    /* the request body is complete */
    unsigned                      found:1;   /* the turn was found after its
                                                beginning */
    unsigned                      scripted:1;   /* it continues Lua code */
} ngx_http_profile_wake_t;


/*
 * A run of the worker: a turn of a request, or an event of no request.  Runs
 * are on the stack, and may be nested.
 */

struct ngx_http_profile_run_s {
    ngx_http_profile_run_t       *prev;
    ngx_http_profile_track_t     *track;     /* NULL: no request, or freed */
    ngx_connection_t             *connection;   /* of the event, or NULL */
    uint64_t                      start;
    uintptr_t                     handler;
    uintptr_t                     top;       /* stack address of its callees */
    uint64_t                      inner;     /* ns within this run of runs
                                                for the outer run's request */
    u_char                        accept;    /* flag: accepts connections */
    u_char                        tail;      /* flag: the request was freed */
    u_char                        reported;  /* flag: reported as slow */
    u_char                        again;     /* flag: nested in its own turn */
};


typedef void (*ngx_http_profile_running_pt)(ngx_http_request_t *r);

/*
 * The observers.  Each pointer belongs to one room.  The event loop does not
 * call pointers that are NULL.  Observers of captures are called only for
 * tracks with a capture or a context, and observers of notes only for tracks
 * with notes.
 */

typedef struct {

    /* code of the request begins to run; NULL: code of no request */
    ngx_http_profile_running_pt  running;

    /*
     * A run has taken at least slow_ns, if that is not 0. track is NULL if the
     * request was freed.
     */
    uint64_t      slow_ns;
    void        (*slow)(ngx_http_profile_run_t *run,
                        ngx_http_profile_track_t *tr, uint64_t ns);

    /* a poll follows; returns 1 if it must not wait long */
    ngx_uint_t  (*polling)(void);

    /*
     * The sampler was created (on), or will be destroyed.  Returns NGX_ERROR
     * if the sampler cannot be used; the error is logged.
     */
    ngx_int_t   (*sampling)(ngx_uint_t on);

    /*
     * A turn of a captured request begins. wake is NULL for the first turn.
     * ready is the time at which the request could have run.  Returns the
     * frame above the samples of the turn: what, or the event's name.
     */
    uintptr_t   (*turn_begins)(ngx_http_profile_track_t *tr,
                               ngx_http_profile_wake_t *wake, uint64_t ready,
                               uintptr_t what);

    /* a turn has ended; the request may finalize the context */
    void        (*turn_ended)(ngx_http_profile_track_t *tr);

    /* a turn adds an event to the poll */
    void        (*event_added)(ngx_http_profile_track_t *tr);

    /* a request without a capture has begun; begin: of its first turn */
    void        (*notes_begin)(ngx_http_profile_track_t *tr, uint64_t begin);

    /* the next turn of a request with notes begins */
    void        (*notes_turn_begins)(ngx_http_profile_track_t *tr,
                                     ngx_http_profile_wake_t *wake,
                                     uint64_t ready);

    /* a turn of a request with notes has ended and used tr->turn_cpu */
    void        (*notes_turn_ended)(ngx_http_profile_track_t *tr,
                                    uint64_t now);

    /* the watch is about to forget its oldest samples */
    void        (*notes_age)(void);

    /*
     * The request is logged.  Its times are final if tr->closed is set,
     * otherwise ngx_http_profile_account_close() makes them final.
     */
    void        (*notes_logged)(ngx_http_profile_track_t *tr);

    /* a request with notes is freed */
    void        (*notes_drop)(ngx_http_profile_track_t *tr);

    /*
     * The request has waited; wake is NULL for the time before its first turn.
     * The request is as it was while it waited.  Returns the index of the cause
     * in tr->waits, to which the time was added.
     */
    ngx_uint_t  (*waited)(ngx_http_profile_track_t *tr,
                          ngx_http_profile_wake_t *wake, uint64_t ns);

    /* times and tr->place are final; tr->id is empty for a freed request */
    void        (*counted)(ngx_http_profile_track_t *tr);

    /*
     * Set if "counted" is set.  Called instead of "counted" for a request of
     * one turn that has not waited, after the request was freed.
     */
    void        (*counted_brief)(ngx_uint_t place, uint64_t wall,
                                 uint64_t longest, uint64_t cpu,
                                 uint64_t stall);
} ngx_http_profile_observers_t;


/* returns whether the worker is running a turn of the request */

#define ngx_http_profile_is_running(tr)                                       \
    (ngx_http_profile_current && ngx_http_profile_current->track == (tr))


PROF_HIDDEN_BEGIN

/*
 * Calls fn for each tracked request that has a connection, while the worker is
 * armed.  It takes as long as nginx's array of connections is.
 */
void ngx_http_profile_each_track(
    void (*fn)(ngx_http_profile_track_t *tr, void *data), void *data);

extern ngx_http_profile_observers_t  ngx_http_profile_observers;

/* add and remove a function that observes "running"; at most two rooms do */
void ngx_http_profile_add_running(ngx_http_profile_running_pt running);
void ngx_http_profile_remove_running(ngx_http_profile_running_pt running);

/*
 * The turn log of this process.  The room "turns" owns the memory, and this
 * room writes.
 */
extern prof_turns_writer_t           ngx_http_profile_turn_log;

#define ngx_http_profile_logs_turns()  (ngx_http_profile_turn_log.log != NULL)

/* the number of reasons to look at requests without a trigger */
extern ngx_uint_t  ngx_http_profile_all;

/* the innermost run, or NULL */
extern ngx_http_profile_run_t       *ngx_http_profile_current;

/* writes the first turn of the request to the turn log, which is on */
void ngx_http_profile_log_first(ngx_http_profile_track_t *tr);

/*
 * Handlers of the rewrite phase, when the request has a location, and of the
 * log phase, before ngx_http_profile_account_log()
 */
ngx_int_t ngx_http_profile_log_located(ngx_http_request_t *r);
ngx_int_t ngx_http_profile_log_logged(ngx_http_request_t *r);

/* the turn log gets the id of the request's profile */
void ngx_http_profile_log_id(ngx_http_profile_track_t *tr);

/* takes the time since the last charge as the profiler's: it is not charged */
void ngx_http_profile_forgive(void);

/*
 * ngx_http_profile_busy.c: what the worker did at the time "from".  Sets *end
 * to the end of this work, which is not after "to", and *stopped to the time of
 * it in which the worker had no processor.
 */
ngx_http_profile_busy_e ngx_http_profile_busy_with(uint64_t from, uint64_t to,
    uint64_t *end, uint64_t *stopped);

/* what profiles, metrics and pages call each kind */
extern ngx_str_t  ngx_http_profile_busy_texts[];

/*
 * ngx_http_profile_events.c: ngx_http_profile_loop_init() is called once in a
 * process. ngx_http_profile_loop_exit() is called when the process ends: it
 * restores nginx's pointers, and no use may begin afterwards.
 */
void ngx_http_profile_loop_init(void);
void ngx_http_profile_loop_exit(void);

/*
 * ngx_http_profile_arm.c: arms the worker, until ngx_http_profile_disarm() was
 * called as many times.  Returns NGX_ERROR if the worker ends, or on a
 * failure, which is logged.
 */
ngx_int_t ngx_http_profile_arm(void);
void ngx_http_profile_disarm(void);

/*
 * Each capture holds the sampler until ngx_http_profile_release_sampler().
 * The first one makes the sampler, and starts the watch with at most this
 * frequency in Hz.  After the last release, the sampler is destroyed when no
 * turn is running.  Errors are those of ngx_http_profile_arm().
 * ngx_http_profile_sampler() returns the sampler, or NULL.
 */
ngx_int_t ngx_http_profile_arm_sampler(ngx_uint_t frequency);
void ngx_http_profile_release_sampler(void);
prof_sampler_t *ngx_http_profile_sampler(void);

/*
 * The watch takes stacks of the worker at a low frequency.  It is NULL if no
 * directive needs the watch, or if the watch cannot be created.
 */
extern prof_watch_t       *ngx_http_profile_watch;
extern prof_watch_spot_t   ngx_http_profile_spot;

void ngx_http_profile_watch_start(ngx_uint_t frequency);
void ngx_http_profile_watch_stop(void);

/* gives the watch's new samples to this run, in which they were taken */
void ngx_http_profile_watch_pass(ngx_http_profile_run_t *run);

/*
 * ngx_http_profile_tracks.c: returns the request's lasting track.  Makes the
 * track if necessary, which arms the worker.  Returns NULL if memory is short,
 * which is logged.
 */
ngx_http_profile_track_t *ngx_http_profile_track(ngx_http_request_t *r);
ngx_http_profile_track_t *ngx_http_profile_lasting(
    ngx_http_profile_track_t *tr);

/* ends the tracking of the request; the request's end frees the track */
void ngx_http_profile_untrack(ngx_http_profile_track_t *tr);

/* returns the track of the request's main request, or NULL */
ngx_http_profile_track_t *ngx_http_profile_find_track(ngx_http_request_t *r);

/* nginx's context pointer of an untracked request with a trigger header */
extern ngx_http_profile_track_t  ngx_http_profile_untracked;

/* returns data of a subrequest or main request, or NULL if memory is short */
ngx_http_profile_subrequest_t *ngx_http_profile_add_subrequest(
    ngx_http_profile_track_t *tr, ngx_http_request_t *r);

/*
 * ngx_http_profile_owner.c: returns whether the request waits for the address
 * of a name; with "ended", whether a query has ended since the last turn.  Sets
 * *name, which is valid until the next turn.
 */
ngx_uint_t ngx_http_profile_resolves(ngx_http_profile_track_t *tr,
    ngx_uint_t ended, ngx_str_t *name);

/*
 * Returns a connection, other than the client's, at which the request waits
 * with a time limit, or NULL.  Otherwise sets *timer to whether it waits for a
 * timer.  Queries of names do not count.
 */
ngx_connection_t *ngx_http_profile_awaits(ngx_http_profile_track_t *tr,
    ngx_uint_t *timer);

/*
 * ngx_http_profile_turn.c: called in the POST_READ phase.  Runs the remaining
 * phases of the request as its first turn.  The request may be freed
 * afterwards.
 */
void ngx_http_profile_run_request(ngx_http_profile_track_t *tr);

/*
 * Begins the first turn in the POST_READ phase.  Returns NGX_DECLINED if the
 * current run has become this turn: the caller has to run the phases.
 * Otherwise runs the phases as ngx_http_profile_run_request() does, and
 * returns NGX_DONE; the request may be freed.
 */
ngx_int_t ngx_http_profile_account_begin(ngx_http_profile_track_t *tr);

/*
 * ngx_http_profile_account.c: returns the times until now, or until the
 * request was logged
 */
void ngx_http_profile_account_times(ngx_http_profile_track_t *tr,
    ngx_http_profile_times_t *times);

/* a handler of the log phase, which runs before all others */
ngx_int_t ngx_http_profile_account_log(ngx_http_request_t *r);

/* makes the times final; returns their end.  A second call has no effect */
uint64_t ngx_http_profile_account_close(ngx_http_profile_track_t *tr);

/*
 * The request's own response is complete, and what follows is the profiler's
 * work: the profile is made and sent.  Makes the times final.  The request
 * counts when it is logged.  waited is set if the request waited until now;
 * otherwise its last turn has completed its response.
 */
void ngx_http_profile_account_own(ngx_http_profile_track_t *tr,
    ngx_uint_t waited);

/* returns the time of this work until now, or 0 */
uint64_t ngx_http_profile_account_rest(ngx_http_profile_track_t *tr);

/* updates nginx's time for $request_time, but not the time of its timers */
void ngx_http_profile_update_request_time(ngx_http_request_t *r);

/*
 * ngx_http_profile_turn.c: called when code of the request runs.  If the run
 * began for no request and no connection, it is a turn of this request from now
 * on; its time so far belongs to the turn, unless code of others was seen in
 * it. tr is NULL for a request without a track.  With a script, the coroutine
 * is resumed next.
 */
void ngx_http_profile_turn_found(ngx_http_profile_track_t *tr,
    ngx_http_request_t *r, void *script);

/*
 * ngx_http_profile_resume.c: returns whether the function is one of ngx_lua,
 * and the turn is found when ngx_lua resumes a coroutine
 */
ngx_uint_t ngx_http_profile_resumes_in(uintptr_t function);

/* ngx_http_profile_turn.c: restores nginx's pointers, as a turn does */
void ngx_http_profile_unwrap(ngx_http_profile_track_t *tr);

/* returns whether the event reads a part of the request's body */
ngx_uint_t ngx_http_profile_reads_body(ngx_http_request_t *r,
    ngx_event_t *ev);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOOP_H_INCLUDED_ */
