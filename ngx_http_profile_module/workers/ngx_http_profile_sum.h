
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The sum of the profiles of an endpoint's requests.  A job adds the profile of
 * a request, because this takes as long as the profile is large.  A request may
 * belong to several captures, so one job may add to several sums.
 *
 * All jobs of sums have the rank "needed", and jobs of one rank run in their
 * order.  So a job that ends a sum runs after all jobs that add to it.
 *
 * Context: the event loop, unless stated otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_SUM_H_INCLUDED_
#define _NGX_HTTP_PROFILE_SUM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"

#include "core/ngx_http_profile_job.h"


/* the maximum number of captures that a request belongs to */
#define NGX_HTTP_PROFILE_ENDPOINTS  8

/* locations that an answer names if a capture took no request */
#define NGX_HTTP_PROFILE_SEEN       8
#define NGX_HTTP_PROFILE_SEEN_LEN   128


/* a location, and how many requests ended in it */

typedef struct {
    ngx_uint_t               requests;
    char                     name[NGX_HTTP_PROFILE_SEEN_LEN];
} ngx_http_profile_seen_t;


typedef struct {
    prof_capture_conf_t      conf;
    uint64_t                 start_realtime;

    /* set before the sum ends */

    ngx_uint_t               requests;
    ngx_uint_t               skipped;
    ngx_uint_t               unfinished;    /* still running at the end */
    uint64_t                 lost_traces;   /* samples without a trace */
    ngx_http_profile_seen_t  seen[NGX_HTTP_PROFILE_SEEN];
    uint32_t                *times;         /* us */
    ngx_uint_t               ntimes;

    ngx_http_profile_job_t   job;

    /* the members below belong to the thread while jobs exist */

    uint64_t                 cost;          /* ns; atomic */
    prof_merge_t            *merge;         /* NULL: the sum has ended */
    ngx_uint_t               lost;          /* memory was short */
} ngx_http_profile_sum_t;


typedef struct {
    ngx_http_profile_sum_t  *sum;
    ngx_uint_t               traced;        /* with the trace as labels */
} ngx_http_profile_sum_to_t;


/* the profile of a request */

typedef struct {
    ngx_http_profile_job_t     job;
    prof_profile_t            *profile;
    char                       trace_id[PROF_TRACE_ID_LEN + 1];
    char                       span_id[PROF_SPAN_ID_LEN + 1];
    ngx_uint_t                 n;
    ngx_http_profile_sum_to_t  to[NGX_HTTP_PROFILE_ENDPOINTS];
} ngx_http_profile_part_t;


PROF_HIDDEN_BEGIN

/* returns NULL if memory is short */
ngx_http_profile_sum_t *ngx_http_profile_sum_create(prof_capture_conf_t *conf);

/*
 * Starts the job that adds the part to its sums, and that owns the part and its
 * profile.  Returns NGX_ERROR if there is no thread; the caller then owns both.
 */
ngx_int_t ngx_http_profile_sum_add(ngx_http_profile_part_t *part);

/* returns the time that the thread has used, in ns */
uint64_t ngx_http_profile_sum_cost(ngx_http_profile_sum_t *sum);

/*
 * Ends the sum.  Returns its profile, which the caller owns, or NULL if memory
 * was short.  The profile has the facts "requests", "skipped", "unfinished",
 * "times" (in microseconds), and a fact "seen" for each location of requests
 * that were not captured.  Context: a job of the rank "needed".
 */
prof_profile_t *ngx_http_profile_sum_finish(ngx_http_profile_sum_t *sum);

/* adds requests of a location to the list, which may be full */
void ngx_http_profile_see(ngx_http_profile_seen_t *seen, const char *name,
    ngx_uint_t requests);

/* frees the sum, also if jobs still add to it */
void ngx_http_profile_sum_free(ngx_http_profile_sum_t *sum);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_SUM_H_INCLUDED_ */
