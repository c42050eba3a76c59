
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Metrics: counters and histograms of all requests, by server and location, in
 * the formats of Prometheus and OpenMetrics.
 *
 * The names of servers and locations are in a directory.  The master keeps it
 * for as long as the module is configured, so a location has the same place in
 * it after a reload.  The place is the index of the location's cell in each
 * page of counters.
 *
 * A page is a piece of shared memory with one writer, which needs no lock.  The
 * worker that serves a request for metrics adds up all pages.  The master makes
 * the pages, and a process takes one of them when it starts.  A process takes
 * the page of a process that has ended, and counts on from there.  So counters
 * survive the ends of workers.  After a reload the old workers still count in
 * their pages while new workers have other pages.
 *
 * Context: the event loop of a worker, unless stated otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_METRICS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_METRICS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_http.h"
#include "stages/ngx_http_profile_stages.h"
#include "store/ngx_http_profile_store.h"


/* buckets of each histogram; the last one has no upper bound */
#define NGX_HTTP_PROFILE_BUCKETS  16

#define NGX_HTTP_PROFILE_MINUTES  60


/* sums of the requests of a place; times are in nanoseconds */

typedef enum {
    NGX_HTTP_PROFILE_SUM_REQUESTS = 0,
    NGX_HTTP_PROFILE_SUM_OUTSIDE,     /* CPU time that is not in turns */
    NGX_HTTP_PROFILE_SUM_WALL,
    NGX_HTTP_PROFILE_SUM_CPU,         /* in turns: the first part of the wall
                                         time */
    NGX_HTTP_PROFILE_SUM_NO_PROCESSOR,
    NGX_HTTP_PROFILE_SUM_BLOCKED,
    NGX_HTTP_PROFILE_SUM_STALL,
    NGX_HTTP_PROFILE_SUM_WAITS,       /* the first cause */
    NGX_HTTP_PROFILE_SUMS = NGX_HTTP_PROFILE_SUM_WAITS
                            + NGX_HTTP_PROFILE_CAUSES
} ngx_http_profile_sum_e;


typedef enum {
    NGX_HTTP_PROFILE_MINUTE = 0,      /* the last one */
    NGX_HTTP_PROFILE_HOUR,
    NGX_HTTP_PROFILE_PERIODS
} ngx_http_profile_period_e;


typedef float  ngx_http_profile_sums_t[NGX_HTTP_PROFILE_SUMS];


/* where the time of a location's requests went; texts have any bytes */

typedef struct {
    ngx_str_t                 server;
    ngx_str_t                 location;
    ngx_http_profile_sums_t   sums[NGX_HTTP_PROFILE_PERIODS];
    ngx_http_profile_sums_t   minutes[NGX_HTTP_PROFILE_MINUTES];
                                            /* the last minute is incomplete */
    u_char                    exemplars[NGX_HTTP_PROFILE_BUCKETS]
                                       [NGX_HTTP_PROFILE_ID_LEN];
                                            /* by bucket; "\0": no exemplar */
} ngx_http_profile_usage_t;


typedef struct ngx_http_profile_directory_s  ngx_http_profile_directory_t;


/* counters of event handlers; the first ones are of all other handlers */
#define NGX_HTTP_PROFILE_HANDLERS      65
#define NGX_HTTP_PROFILE_HANDLER_NAME  128


/* the calls of an event handler by all workers, since the counters began */

typedef struct {
    ngx_http_profile_handled_t  sums;
    char                        name[NGX_HTTP_PROFILE_HANDLER_NAME];
} ngx_http_profile_handler_sum_t;


typedef struct {
    ngx_uint_t                      n;
    ngx_http_profile_handler_sum_t  list[NGX_HTTP_PROFILE_HANDLERS];
} ngx_http_profile_handler_sums_t;


typedef struct {
    double                     seconds[NGX_HTTP_PROFILE_PERIODS];
    ngx_uint_t                 sum;         /* by which places are sorted */
    ngx_uint_t                 own;         /* flag: with pages of the module */
    ngx_uint_t                 n;           /* number of places */
    ngx_uint_t                 more;        /* locations beyond max */
    ngx_http_profile_usage_t   all;         /* of all locations */
    ngx_http_profile_usage_t   workers;     /* only their CPU time */
    ngx_http_profile_usage_t   places[];    /* most of the sum first */
} ngx_http_profile_overview_t;


PROF_HIDDEN_BEGIN

/*
 * Makes the directory and the pages that the configuration needs.  Context: the
 * master, before it starts workers; or a process without a master.  If memory
 * is short, this is logged, and requests are not counted.
 */
void ngx_http_profile_metrics_init(ngx_cycle_t *cycle);

/* frees the directory and the pages; workers have mappings of their own */
void ngx_http_profile_metrics_close(void);

/* the process takes a page, and counts requests from now on */
void ngx_http_profile_metrics_open(ngx_cycle_t *cycle);

/*
 * Returns the directory for ngx_http_profile_overview().  The caller gives the
 * directory back with ngx_http_profile_directory_free().  Returns NULL if
 * ngx_http_profile_metrics_on() returns 0.
 */
ngx_http_profile_directory_t *ngx_http_profile_directory_hold(void);
void ngx_http_profile_directory_free(ngx_http_profile_directory_t *dir);

/* returns whether requests are counted and their history is kept */
ngx_uint_t ngx_http_profile_metrics_on(void);

/*
 * Returns where the time of requests went, in at most max locations.  The sum
 * is NGX_HTTP_PROFILE_SUM_WALL, or the sum of a cause.  The sum of a cause
 * excludes locations whose requests did not wait for the cause.  Exemplars are
 * profiles in the store, which may be NULL.  The caller frees the result with
 * free().  Requests for pages of the module are included if "own" is set.
 * Returns NULL if memory is short.  Context: any thread.
 */
ngx_http_profile_overview_t *ngx_http_profile_overview(
    ngx_http_profile_directory_t *dir, ngx_http_profile_store_t *store,
    ngx_uint_t max, ngx_uint_t sum, ngx_uint_t own);

/*
 * Adds up the calls of event handlers that were called, and names the handlers
 * that have no name yet.  Handlers of the same name are one.  If memory is
 * short, handlers without a name are left out.  Context: any thread; slow
 * (files).
 */
void ngx_http_profile_handler_sums(ngx_http_profile_directory_t *dir,
    ngx_http_profile_handler_sums_t *sums);

/* the upper bound of a bucket in ns; UINT64_MAX for the last bucket */
uint64_t ngx_http_profile_bucket_upper(ngx_uint_t bucket);

/* returns the text of a cause without the space at its end */
ngx_str_t ngx_http_profile_cause_text(ngx_uint_t cause);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_METRICS_H_INCLUDED_ */
