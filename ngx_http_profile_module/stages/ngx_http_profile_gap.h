
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Gaps: what a request waited for between two turns, when it could have run,
 * and why.
 *
 * Context: a worker, not in a signal.
 */


#ifndef _NGX_HTTP_PROFILE_GAP_H_INCLUDED_
#define _NGX_HTTP_PROFILE_GAP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "loop/ngx_http_profile_account.h"


/*
 * Why there was a gap, and what began the turn after it.  Texts are static, the
 * place is in memory of the request's pool or of the configuration.
 */

typedef struct {
    const char                *text;
    const char                *event;      /* NULL: the gap was the last */
    const char                *inside;     /* of the place, or NULL */
    ngx_str_t                  place;
    ngx_uint_t                 attempt;
    size_t                     len;        /* of the name behind the text */
    u_char                     name[NGX_SOCKADDR_STRLEN];
} ngx_http_profile_cause_t;


typedef struct {
    uint64_t                   ready;      /* what was waited for was there */
    uint64_t                   end;
    ngx_http_profile_cause_t   cause;
} ngx_http_profile_gap_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_gap.c: what a request waited for */

/* the one before the turn that begins now, or before the first one */
void ngx_http_profile_find_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready,
    ngx_http_profile_gap_t *gap);
void ngx_http_profile_first_gap(ngx_http_profile_track_t *tr, uint64_t begin,
    ngx_http_profile_gap_t *gap);

/* into a capture of the request */
void ngx_http_profile_add_gap(prof_capture_t *c, ngx_http_profile_gap_t *gap);

/* the capture ends in one, unless it has ended or is in a turn */
void ngx_http_profile_last_gap(ngx_http_profile_ctx_t *ctx);

/* when the request could have run */
uint64_t ngx_http_profile_ready(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t now);

/* ngx_http_profile_cause.c: why there was a gap */

/* wake is NULL while the request waits */
void ngx_http_profile_find_cause(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, ngx_http_profile_cause_t *cause);

/* frames of the capture: the cause, its place, what began the turn */
uintptr_t ngx_http_profile_cause_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause);
uintptr_t ngx_http_profile_inside_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause);
uintptr_t ngx_http_profile_event_name(prof_capture_t *c,
    ngx_http_profile_cause_t *cause);

/* what a request was redirected to, or a subrequest is for */
ngx_str_t *ngx_http_profile_place(ngx_http_request_t *r);

/* whether what has come is not what the request waits for */
ngx_uint_t ngx_http_profile_only_looks(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_GAP_H_INCLUDED_ */
