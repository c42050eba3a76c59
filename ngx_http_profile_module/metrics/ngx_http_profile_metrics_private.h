
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of this room share: the directory and the pages.
 *
 * Counters are words of 64 bits, which their only writer changes and all
 * processes read.  Times are in nanoseconds.
 */


#ifndef _NGX_HTTP_PROFILE_METRICS_PRIVATE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_METRICS_PRIVATE_H_INCLUDED_


#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_loss.h"
#include "loop/ngx_http_profile_loop.h"
#include "metrics/ngx_http_profile_metrics.h"
#include "stages/ngx_http_profile_stages.h"
#include "store/ngx_http_profile_store.h"


/* the place of requests whose location has no place of its own */
#define NGX_HTTP_PROFILE_OTHER    0


/* each bucket counts only its own times, not those of lower buckets */

typedef struct {
    uint64_t                       sum;
    uint64_t                       buckets[NGX_HTTP_PROFILE_BUCKETS];
} ngx_http_profile_histogram_t;


/* the requests of a location that a process has served */

typedef struct {
    uint64_t                       turns;     /* 0: the cell is not in use */
    uint64_t                       longest;   /* turn */
    uint64_t                       outside;   /* "cpu" that is not in turns */
    uint64_t                       no_processor;
    uint64_t                       blocked;
    uint64_t                       busy[NGX_HTTP_PROFILE_BUSY_KINDS];
                                              /* as in the times */
    ngx_http_profile_histogram_t   wall;
    ngx_http_profile_histogram_t   cpu;
    ngx_http_profile_histogram_t   stall;
    ngx_http_profile_histogram_t   waits[NGX_HTTP_PROFILE_CAUSES];
} ngx_http_profile_cell_t;


typedef struct {
    ngx_atomic_t                   owner;     /* ngx_http_profile_alive_self()
                                                 of its writer, or of the last
                                                 one; 0: no writer yet */
    ngx_uint_t                     worker;    /* ngx_worker of its writers */
    ngx_uint_t                     generation;    /* of its owner's directory */
    uint64_t                       cpu;       /* CPU time of its writers at the
                                                 last reading; any process
                                                 increases it */
    uint64_t                       before;    /* "cpu" minus the owner's CPU
                                                 time, when the owner began */
    ngx_http_profile_losses_t      losses;
    uint64_t                       idle;      /* time in the poll */
    ngx_http_profile_handled_t     handled[NGX_HTTP_PROFILE_HANDLERS];
    uint64_t                       used[];    /* bits of cells, and the cells */
} ngx_http_profile_counters_t;


/* of a worker, in ns */

typedef struct {
    uint64_t                       cpu;
    uint64_t                       idle;
} ngx_http_profile_worker_times_t;


/*
 * The last request of a bucket that has a profile.  Any process writes an
 * exemplar, one process at a time.
 */

typedef struct {
    ngx_atomic_t                   sequence;  /* odd: it is being written */
    uint64_t                       time;      /* ms since the Epoch; 0: unset */
    uint64_t                       wall;
    u_char                         id[NGX_HTTP_PROFILE_ID_LEN];
    u_char                         trace[PROF_TRACE_ID_LEN];  /* or zeros */
} ngx_http_profile_exemplar_t;


/* texts of any bytes, in one piece of memory */

typedef struct {
    ngx_str_t                      server;
    ngx_str_t                      location;
    ngx_uint_t                     own;       /* flag: pages of the module */
    ngx_uint_t                     generation;    /* of the last directory whose
                                                     configuration has it */
} ngx_http_profile_place_t;


/*
 * An event handler, at the same index in all pages.  It is the same function in
 * all processes: an object, and an address in it.  An entry never changes, and
 * gets its name once, so the series of the handler keeps its name.
 */

typedef enum {
    NGX_HTTP_PROFILE_KNOWN_FREE = 0,
    NGX_HTTP_PROFILE_KNOWN_UNNAMED,
    NGX_HTTP_PROFILE_KNOWN_NAMED
} ngx_http_profile_known_e;


typedef struct {
    ngx_atomic_t                   state;     /* ngx_http_profile_known_e */
    ngx_atomic_t                   owner;     /* the process that writes the
                                                 entry or its name; 0: none */
    uint64_t                       function;  /* link-time addresses */
    uint64_t                       len;
    uint64_t                       start;     /* of the code of its object */
    uint64_t                       end;
    uint64_t                       offset;    /* file offset of start */
    uint64_t                       base;
    char                           path[256];
    char                           build_id[2 * PROF_BUILD_ID_MAX + 1];
    char                           name[NGX_HTTP_PROFILE_HANDLER_NAME];
} ngx_http_profile_known_t;


#define NGX_HTTP_PROFILE_TICK    10000000000ULL  /* ns */
#define NGX_HTTP_PROFILE_TICKS   6               /* ticks in a minute */


/* an index is the number of a tick or minute, modulo the array's length */

typedef struct {
    uint64_t                       last[NGX_HTTP_PROFILE_SUMS];
    ngx_http_profile_sums_t        recent[NGX_HTTP_PROFILE_TICKS];
    ngx_http_profile_sums_t        minutes[NGX_HTTP_PROFILE_MINUTES];
} ngx_http_profile_past_t;


/* ticks are counted from the beginning of the monotonic clock */

typedef struct {
    ngx_atomic_t                   leader;    /* the process that samples in
                                                 each tick, or 0 */
    ngx_atomic_t                   lock;      /* the process that samples now,
                                                 or 0 */
    uint64_t                       since;     /* its beginning, prof_now() */
    uint64_t                       tick;      /* of the last sample */
    ngx_http_profile_past_t        workers;   /* only their CPU time */
    ngx_http_profile_past_t        pasts[];   /* of all places */
} ngx_http_profile_history_t;


/*
 * The directory and its pages.  A job that adds up the pages refers to the
 * directory, which a process without a master may replace meanwhile.
 */

struct ngx_http_profile_directory_s {
    ngx_uint_t                     users;     /* of this process */
    ngx_uint_t                     generation;    /* 1 after the start, and
                                                     one more after a reload */
    ngx_uint_t                     max;       /* places, without the first:
                                                 twice the limit */
    ngx_uint_t                     limit;     /* places of locations of one
                                                 configuration */
    ngx_uint_t                     current;   /* places of this one */
    ngx_uint_t                     nplaces;
    ngx_uint_t                     npages;
    ngx_http_profile_place_t      *places;    /* max + 1 */
    ngx_http_profile_counters_t  **pages;
    ngx_http_profile_exemplar_t   *exemplars; /* of all buckets of all places;
                                                 NULL: no memory */
    ngx_http_profile_history_t    *history;   /* NULL: no memory */
    ngx_http_profile_known_t      *known;     /* event handlers; NULL: no
                                                 memory */
};


/* the upper bounds of histograms: of times of requests, and of CPU times */

typedef struct {
    uint64_t                       upper[NGX_HTTP_PROFILE_BUCKETS];
    u_char                         first[64]; /* bucket to begin with, by the
                                                 highest bit of a time */
} ngx_http_profile_bounds_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_pages.c */

/* NULL: requests are not counted */
extern ngx_http_profile_directory_t  *ngx_http_profile_directory;

/* ngx_http_profile_count.c */

extern ngx_http_profile_bounds_t  ngx_http_profile_wall_bounds;
extern ngx_http_profile_bounds_t  ngx_http_profile_cpu_bounds;

/* sets the page in which requests are counted; NULL: they are not counted */
void ngx_http_profile_count_in(ngx_http_profile_directory_t *dir,
    ngx_http_profile_counters_t *page);

/* returns the bucket of a time */
ngx_uint_t ngx_http_profile_bucket(ngx_http_profile_bounds_t *bounds,
    uint64_t ns);

/* ngx_http_profile_exemplar.c */

/* sets where exemplars are written; NULL: they are not written */
void ngx_http_profile_exemplars_in(ngx_http_profile_exemplar_t *exemplars);

/* called when a request with a profile is logged */
void ngx_http_profile_exemplar_set(ngx_http_profile_track_t *tr);

/*
 * Copies the exemplar of a bucket.  NGX_DECLINED: the store does not have its
 * profile, or the bucket has no exemplar.  Context: any thread.
 */
ngx_int_t ngx_http_profile_exemplar_get(ngx_http_profile_directory_t *dir,
    ngx_uint_t place, ngx_uint_t bucket, ngx_http_profile_store_t *store,
    ngx_http_profile_exemplar_t *ex);

/*
 * ngx_http_profile_exposition.c: the text of all metrics; any thread.  Only
 * OpenMetrics has exemplars, of profiles in the store, which may be NULL.
 * own: also the requests for pages of the module.
 */
void ngx_http_profile_expose(ngx_http_profile_directory_t *dir,
    ngx_http_profile_store_t *store, ngx_uint_t openmetrics, ngx_uint_t own,
    prof_buf_t *b);

/*
 * ngx_http_profile_handled.c: sets the page in which calls of event handlers
 * are counted; NULL: they are not counted
 */
void ngx_http_profile_handled_in(ngx_http_profile_directory_t *dir,
    ngx_http_profile_counters_t *page);

/* ngx_http_profile_history.c */

/* returns the size of a history of max places, in bytes */
size_t ngx_http_profile_history_size(ngx_uint_t max);

/* begins a history in zeroed memory; returns NULL for memory NULL */
ngx_http_profile_history_t *ngx_http_profile_history_begin(void *memory);

/* this process begins to take part in sampling; NULL: it stops */
void ngx_http_profile_history_in(ngx_http_profile_directory_t *dir);

/*
 * Adds the increases since the last sample, unless another process is sampling.
 * Context: any thread.
 */
void ngx_http_profile_history_sample(ngx_http_profile_directory_t *dir,
    uint64_t now);

/*
 * Clears the history of a place that another location gets.  NGX_BUSY: another
 * process is sampling.
 */
ngx_int_t ngx_http_profile_history_clear(ngx_http_profile_directory_t *dir,
    ngx_uint_t place);

/* returns whether any page has a cell in use for the place; any thread */
ngx_uint_t ngx_http_profile_history_used(ngx_http_profile_directory_t *dir,
    ngx_uint_t place);

/* ngx_http_profile_worker.c */

/*
 * This process becomes the owner of the page, and gives up an earlier page.
 * NULL: the process has no page.  No other process takes a page with this
 * worker number at the same time.
 */
void ngx_http_profile_worker_in(ngx_http_profile_counters_t *page);

/* called when the process exits: stores its CPU time */
void ngx_http_profile_worker_end(void);

/*
 * Sets *times to those of all workers that had this number.  NGX_DECLINED:
 * there was no such worker.  Context: any thread.
 */
ngx_int_t ngx_http_profile_worker_times(ngx_http_profile_directory_t *dir,
    ngx_uint_t worker, ngx_http_profile_worker_times_t *times);

/* ngx_http_profile_serve.c */
ngx_int_t ngx_http_profile_metrics_handler(ngx_http_request_t *r);

PROF_HIDDEN_END


/* reads a counter, which another process may write */

#define ngx_http_profile_counter(p)  __atomic_load_n(p, __ATOMIC_RELAXED)

/* the cells of a page, after its bits */

#define ngx_http_profile_page_cells(dir, page)                                \
    ((ngx_http_profile_cell_t *) ((page)->used + (dir)->max / 64 + 1))

#define ngx_http_profile_is_used(page, i)                                     \
    (ngx_http_profile_counter(&(page)->used[(i) / 64]) >> (i) % 64 & 1)


#endif /* _NGX_HTTP_PROFILE_METRICS_PRIVATE_H_INCLUDED_ */
