
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The turn log: the directive, the memory of the logs, and what a dead worker
 * has run.
 *
 * Each worker has a log in shared memory that the master maps.  A log belongs
 * to the number of a worker, so the next worker with this number continues the
 * log of a dead one.  The event loop writes (loop/ngx_http_profile_turn_log.c).
 *
 * Context: the event loop of a worker, unless stated otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_TURNS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_TURNS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "loop/ngx_http_profile_loop.h"


/* bytes of runs for each worker */
#define NGX_HTTP_PROFILE_TURNS_SIZE      (4 * 1024 * 1024)
#define NGX_HTTP_PROFILE_TURNS_SIZE_MIN  (64 * 1024)
#define NGX_HTTP_PROFILE_TURNS_SIZE_MAX  (1024 * 1024 * 1024)


/* the names of the locations of one configuration; never changed, counted */

typedef struct ngx_http_profile_turn_names_s  ngx_http_profile_turn_names_t;

struct ngx_http_profile_turn_names_s {
    ngx_http_profile_turn_names_t  *next;
    ngx_uint_t                      tag;      /* of the logs that use them */
    ngx_uint_t                      n;
    ngx_http_profile_location_t     locations[];   /* by number, without 0;
                                                      conf is not valid */
};


typedef struct {
    ngx_uint_t                      worker;
    prof_turns_log_t               *log;
} ngx_http_profile_turn_ring_t;


PROF_HIDDEN_BEGIN

/*
 * Called by the master, and by a process without a master, when it has read a
 * configuration: maps the memory that is missing.
 */
void ngx_http_profile_turns_init(ngx_cycle_t *cycle);

/*
 * The worker begins to write its log, and reports what the worker before it
 * had not ended.
 */
void ngx_http_profile_turns_open(ngx_cycle_t *cycle);

/* the memory is not needed any more */
void ngx_http_profile_turns_close(void);

/* returns the logs of all workers, and sets *n; the memory stays mapped */
const ngx_http_profile_turn_ring_t *ngx_http_profile_turns_rings(
    ngx_uint_t *n);

/* returns the names that the log uses, or NULL; valid as long as the process */
const ngx_http_profile_turn_names_t *ngx_http_profile_turns_names(
    const prof_turns_log_t *log);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_TURNS_H_INCLUDED_ */
