
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stages of a request: spans of phases, of the log phase and of upstreams.
 * Gaps, which are the time between two turns, and their causes.
 *
 * Context: a worker, not in a signal.
 */


#ifndef _NGX_HTTP_PROFILE_STAGES_H_INCLUDED_
#define _NGX_HTTP_PROFILE_STAGES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "loop/ngx_http_profile_loop.h"


typedef enum {
    NGX_HTTP_PROFILE_CAUSE_UNKNOWN = 0,
    NGX_HTTP_PROFILE_CAUSE_HEADER,        /* of the client's request */
    NGX_HTTP_PROFILE_CAUSE_BODY,
    NGX_HTTP_PROFILE_CAUSE_NOT_READING,
    NGX_HTTP_PROFILE_CAUSE_CLOSING,
    NGX_HTTP_PROFILE_CAUSE_LIMIT_RATE,
    NGX_HTTP_PROFILE_CAUSE_LIMIT_REQ,
    NGX_HTTP_PROFILE_CAUSE_AUTH_DELAY,
    NGX_HTTP_PROFILE_CAUSE_RESOLVER,
    NGX_HTTP_PROFILE_CAUSE_DISK,
    NGX_HTTP_PROFILE_CAUSE_CACHE_LOCK,
    NGX_HTTP_PROFILE_CAUSE_UPSTREAM_CONNECT,
    NGX_HTTP_PROFILE_CAUSE_UPSTREAM_TLS,
    NGX_HTTP_PROFILE_CAUSE_UPSTREAM_SEND,
    NGX_HTTP_PROFILE_CAUSE_UPSTREAM_BYTE,
    NGX_HTTP_PROFILE_CAUSE_UPSTREAM_HEADER,
    NGX_HTTP_PROFILE_CAUSE_UPSTREAM_BODY,
    NGX_HTTP_PROFILE_CAUSE_UPSTREAM_RATE,
    NGX_HTTP_PROFILE_CAUSE_SOCKET,        /* of a script */
    NGX_HTTP_PROFILE_CAUSE_SCRIPT_TIMER,
    NGX_HTTP_PROFILE_CAUSE_SCRIPT_EVENT,  /* other code continues the script */
    NGX_HTTP_PROFILE_CAUSE_PROFILER,      /* the module's own pages */
    NGX_HTTP_PROFILE_CAUSES
} ngx_http_profile_cause_e;


/*
 * The cause of a gap, and the event that began the turn after it.  Texts are
 * static.  The place is in memory of the request's pool or of the
 * configuration.
 */

typedef struct {
    const char                *text;
    const char                *event;      /* NULL: the last gap */
    const char                *inside;     /* of the place, or NULL */
    ngx_str_t                  place;
    ngx_uint_t                 attempt;
    size_t                     len;        /* of the name after the text */
    u_char                     name[NGX_SOCKADDR_STRLEN];
} ngx_http_profile_cause_t;


typedef struct {
    uint64_t                   since;      /* begin of the turn that began to
                                              wait, 0: the last turn */
    uint64_t                   ready;      /* time of the awaited event */
    uint64_t                   end;
    ngx_http_profile_cause_t   cause;
} ngx_http_profile_gap_t;


/*
 * The observers of tracks between ngx_http_profile_stages_begin() and
 * ngx_http_profile_stages_end().  One room sets the first two before the first
 * track begins; the last two may be NULL.
 */

typedef struct {

    /* the location of a main request is known */
    void        (*located)(ngx_http_profile_track_t *tr);

    /*
     * The content of a main request is made next.  Returns NGX_DECLINED, or
     * the result of a checker of nginx's phase engine, to replace the content.
     */
    ngx_int_t   (*content)(ngx_http_profile_track_t *tr);

    /* a span begins, or the innermost span ends; the name is not copied */
    void        (*span_begins)(ngx_http_profile_track_t *tr, ngx_str_t *name);
    void        (*span_ends)(ngx_http_profile_track_t *tr);
} ngx_http_profile_stage_observers_t;


PROF_HIDDEN_BEGIN

extern ngx_http_profile_stage_observers_t  ngx_http_profile_stage_observers;

/* ngx_http_profile_phase.c: phases and filters */

/* tracks with stages */
extern ngx_queue_t  ngx_http_profile_staged_tracks;

/* begins and ends the stages of a track; allocates nothing */
void ngx_http_profile_stages_begin(ngx_http_profile_track_t *tr);
void ngx_http_profile_stages_end(ngx_http_profile_track_t *tr);

/* returns the track of the main request of r if it has stages, or NULL */
ngx_http_profile_track_t *ngx_http_profile_staged(ngx_http_request_t *r);

/*
 * The sampler was created (on), or will be destroyed: replaces nginx's
 * pointers, or restores them.  Returns NGX_ERROR if memory is short (logged).
 */
ngx_int_t ngx_http_profile_arm_phases(ngx_uint_t on);

/*
 * Begins a span of the capture; returns 1 if the span has to be ended.  The
 * text of its name is valid until then.  The track may be freed before the end:
 * c is the capture at the span's begin, or NULL.
 */
ngx_uint_t ngx_http_profile_begin_span(ngx_http_profile_track_t *tr,
    ngx_str_t *name);
void ngx_http_profile_end_span(ngx_http_profile_track_t *tr,
    prof_capture_t *c);

/*
 * ngx_http_profile_upstream.c: collects the roles of the functions that are
 * set for the request, and of the handler that begins the turn
 */
void ngx_http_profile_see_roles(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake);

/* ngx_http_profile_gap.c: the waits of a request */

/* finds the gap before the turn that begins now */
void ngx_http_profile_find_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready,
    ngx_http_profile_gap_t *gap);
void ngx_http_profile_first_gap(ngx_http_profile_track_t *tr, uint64_t begin,
    ngx_http_profile_gap_t *gap);

/*
 * Called when a turn of a captured request begins: adds the gap before it to
 * the capture.  Returns the frame of the turn: "what", or the event that began
 * the turn.
 */
uintptr_t ngx_http_profile_begin_turn(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready, uintptr_t what);

/*
 * Adds a gap to a capture of the request.  The script that waits has n frames,
 * innermost first.
 */
void ngx_http_profile_add_gap(prof_capture_t *c, ngx_http_profile_gap_t *gap,
    const uintptr_t *script, ngx_uint_t n);

/* adds the last gap, unless the capture has ended or is in a turn */
void ngx_http_profile_last_gap(ngx_http_profile_track_t *tr);

/* ngx_http_profile_cause.c: causes of gaps */

/* the text of each cause; before a name it ends with a space */
extern const char  *ngx_http_profile_causes[NGX_HTTP_PROFILE_CAUSES];

/*
 * Returns the cause without its name.  The function makes no system call, so it
 * does not find out whether a script's socket connects or reads.
 */
ngx_http_profile_cause_e ngx_http_profile_cause_of(
    ngx_http_profile_track_t *tr, ngx_http_profile_wake_t *wake);

/* sets *cause of a gap; wake: the event at its end, NULL while it lasts */
void ngx_http_profile_find_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_cause_t *cause);

/* finds the cause of the gap that a request is in; allocates nothing */
void ngx_http_profile_find_present_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_cause_t *cause);

/* returns a frame of the capture: the cause, its place, and the event */
uintptr_t ngx_http_profile_cause_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause);
uintptr_t ngx_http_profile_inside_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause);
uintptr_t ngx_http_profile_event_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause);

/* returns the target of a redirect, or the URI of a subrequest */
ngx_str_t *ngx_http_profile_place(ngx_http_request_t *r);

/*
 * ngx_http_profile_upstream.c: callbacks of upstreams, which are replaced
 * while their request is captured
 */

void ngx_http_profile_wrap_upstreams(ngx_http_profile_track_t *tr);
void ngx_http_profile_unwrap_upstreams(ngx_http_profile_track_t *tr);

/*
 * ngx_http_profile_lua.c: returns the stack of the waiting Lua code, innermost
 * first, as frames of the capture.  With wake, this is the code that the event
 * resumes.  Returns the number of frames, 0 if no Lua code waits.
 */
ngx_uint_t ngx_http_profile_lua_stack(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uintptr_t *frames, ngx_uint_t max);

/* returns "shown", or why stacks of Lua are not shown */
const char *ngx_http_profile_lua_state(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_STAGES_H_INCLUDED_ */
