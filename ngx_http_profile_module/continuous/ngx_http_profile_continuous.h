
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The continuous profile: what all workers did in the last hour.
 *
 * Each worker captures itself all the time, at a low frequency.  The profile of
 * some seconds is a slice.  A job of the worker puts the archive of the slice
 * into a store of its own.  So slices never replace other stored profiles, and
 * other profiles never replace slices.  The functions in a slice get names when
 * a client asks for a range of time.
 *
 * When slices are old, a job of any worker merges several of them.  The merged
 * slice replaces the oldest of them in one step, and the others are deleted
 * afterwards.  Until then a reader ignores them, because they are in the time
 * of a merged slice of their worker.  So no time counts twice, also if a worker
 * is killed in between.
 *
 * In this store the facts of an entry have these meanings: "worker" is the
 * number of the worker, "start" is the start of the slice, "wall" is its
 * length, "waited" is the time in which the worker was idle, and "scope" is
 * "slice" or "merged".
 *
 * Units: times of slices are milliseconds since the Epoch.
 */


#ifndef _NGX_HTTP_PROFILE_CONTINUOUS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CONTINUOUS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "call/ngx_http_profile_call.h"
#include "store/ngx_http_profile_store.h"


/* the number of slices of one worker that become one merged slice */
#define NGX_HTTP_PROFILE_SLICES_MERGED  6


/* in shared memory, which a reload keeps */

typedef struct {
    ngx_atomic_t                  merging;   /* the process that merges, or 0 */
    ngx_atomic_t                  merged;    /* number of the merged slice when
                                                slices were merged last */
    ngx_atomic_t                  stored;    /* slices that were stored */
    ngx_atomic_t                  dropped;   /* slices that were not stored */
    ngx_atomic_t                  lost;      /* a killed worker's slices */
    ngx_atomic_t                  open[NGX_MAX_PROCESSES];
                                             /* processes that capture */
    ngx_atomic_t                  seen[NGX_MAX_PROCESSES];
                                             /* when their event loops ran the
                                                timer of the slice, in ms */
    ngx_atomic_t                  kept[NGX_MAX_PROCESSES];
                                             /* the same, or when another thread
                                                ended a slice */
} ngx_http_profile_slice_page_t;


struct ngx_http_profile_continuous_s {
    ngx_uint_t                      frequency;
    ngx_msec_t                      slice;   /* ms */
    ngx_msec_t                      merge;   /* older slices are merged */
    ngx_msec_t                      keep;    /* older slices are deleted */
    size_t                          size;    /* bytes of the zone of slices */
    ngx_uint_t                      wall;    /* 1: also wall time */
    ngx_http_profile_store_t       *store;   /* of slices */
    ngx_shm_zone_t                 *zone;    /* of the page */
    ngx_http_profile_slice_page_t  *page;
};


/* a slice in a list of slices */

typedef struct {
    u_char                        id[NGX_HTTP_PROFILE_ID_LEN];
    uint64_t                      start;
    uint64_t                      length;    /* ms */
    uint64_t                      cpu;       /* ns */
    uint64_t                      idle;      /* ns */
    uint64_t                      samples;
    uint32_t                      worker;    /* number */
    uint32_t                      merged;    /* made of several slices */
    uint32_t                      mode;      /* prof_mode_e */
} ngx_http_profile_slice_facts_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_slice.c: the capture of this worker */

/*
 * Starts, changes or ends the capture as the configuration says; NULL ends it.
 * Failures are logged.  Context: event loop.
 */
void ngx_http_profile_slice_configure(ngx_http_profile_continuous_t *conf);

/* ends the capture when the worker ends, and stores the last slice */
void ngx_http_profile_slice_stop(void);

/*
 * Works for an event loop that runs one event for long: empties the rings, and
 * ends and stores slices.  Returns the time in ms until the next call.
 * Context: one thread, which the caller ends before this room is stopped.
 */
ngx_msec_t ngx_http_profile_slice_attend(void);

/*
 * Writes to p the processes that run one event for long, and the time since
 * when, if it is before "to": "10318 (one event since
 * 2026-11-23T06:44:20.000Z)".  kept: 1: those whose slices are stored, 0: the
 * others.  Returns the end of the text, which is at most "last".  Context: any
 * thread.
 */
u_char *ngx_http_profile_slice_late(ngx_http_profile_continuous_t *conf,
    ngx_uint_t kept, uint64_t to, u_char *p, u_char *last);

/* returns "on", "off", or why this worker has no capture; static memory */
const char *ngx_http_profile_slice_state(void);


/*
 * ngx_http_profile_slices.c: the slices of all workers
 *
 * Context: a job's thread, since these functions wait for the store.
 */

/*
 * Stores the profile of a slice.  If id is not NULL, the profile replaces the
 * slice with this id.  Returns NGX_OK, or another value if the slice is not
 * stored.
 */
ngx_int_t ngx_http_profile_slices_add(ngx_http_profile_continuous_t *conf,
    prof_profile_t *p, ngx_uint_t worker, u_char *id);

/*
 * Returns the number of slices that begin at "from" or later, and before "to",
 * or NGX_ERROR if memory is short.  Sets *list to an array of these slices, by
 * worker and then by time; the caller frees the array by ngx_free().  If "all"
 * is set, the list also has slices that a merged slice replaces.
 */
ngx_int_t ngx_http_profile_slices_list(ngx_http_profile_continuous_t *conf,
    uint64_t from, uint64_t to, ngx_uint_t all,
    ngx_http_profile_slice_facts_t **list);

/*
 * Returns the profile of a slice, which the caller owns, or NULL if the slice
 * was removed or is damaged.
 */
prof_profile_t *ngx_http_profile_slices_read(
    ngx_http_profile_continuous_t *conf, u_char *id);

/* deletes the slices of this worker that end after this time */
void ngx_http_profile_slices_remove(ngx_http_profile_continuous_t *conf,
    ngx_uint_t worker, uint64_t since);

/*
 * Merges and deletes old slices, if it is time and no other process does this.
 * now: milliseconds since the Epoch.
 */
void ngx_http_profile_slices_tend(ngx_http_profile_continuous_t *conf,
    uint64_t now);


/* ngx_http_profile_moment.c */

/* writes a time: "2026-11-23T06:44:20.000Z" */
u_char *ngx_http_profile_moment_text(u_char *p, uint64_t ms);

/*
 * Parses a time: "now", "-10m", "1795415060" or "2026-11-23T06:44:20Z".  The
 * text is null-terminated.  Returns milliseconds since the Epoch, or 0 if the
 * text is not a time.  "now" is the present time, in the same unit.
 */
uint64_t ngx_http_profile_moment(ngx_str_t *text, uint64_t now);

/* describes the texts that ngx_http_profile_moment() takes */
#define NGX_HTTP_PROFILE_MOMENT                                               \
    "a time as in \"-10m\", \"1795415060\" or \"2026-11-23T06:44:20Z\""


/* ngx_http_profile_range.c */

/*
 * Answers a call for a range of the continuous profile in this mode.  Returns
 * NGX_DECLINED if the call has neither "from" nor "to".
 */
ngx_int_t ngx_http_profile_range(ngx_http_profile_call_t *call,
    ngx_uint_t mode);

/* answers with an error, because profile_continuous is missing */
ngx_int_t ngx_http_profile_no_continuous(ngx_http_profile_call_t *call);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_CONTINUOUS_H_INCLUDED_ */
