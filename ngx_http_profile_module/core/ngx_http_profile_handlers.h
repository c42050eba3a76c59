
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counters of event handlers: the functions that the event loop calls for
 * events.  The room "metrics" owns the counters, and the room "loop" counts.
 *
 * Context: the event loop of a worker.
 */


#ifndef _NGX_HTTP_PROFILE_HANDLERS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_HANDLERS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


/* in shared memory, with one writer; times are in ns */

typedef struct {
    uint64_t                      calls;
    uint64_t                      latency;   /* from the time at which the event
                                                was ready until the call */
    uint64_t                      time;      /* until the handler returned */
} ngx_http_profile_handled_t;


/* an entry of a table with open addressing */

typedef struct {
    uintptr_t                     function;  /* 0: the entry is free */
    ngx_http_profile_handled_t   *counters;
} ngx_http_profile_handler_t;


/* a search begins at one of this number of entries, and goes on behind it */

#define NGX_HTTP_PROFILE_HANDLER_PLACES     128

#define ngx_http_profile_handler_place(function)                              \
    (((function) >> 4) % NGX_HTTP_PROFILE_HANDLER_PLACES)


/* what a process counts */

typedef struct {
    ngx_http_profile_handler_t   *table;     /* NULL: nothing is counted */
    ngx_http_profile_handler_t    last;      /* the handler of the last search,
                                                and its counters */

    /*
     * Adds a function for which a search has ended at this free entry.
     * Returns its counters, never NULL.
     */
    ngx_http_profile_handled_t *(*add)(ngx_http_profile_handler_t *entry,
                                       uintptr_t function);

    uint64_t                     *idle;      /* ns that the worker was in the
                                                poll */
} ngx_http_profile_handlers_t;


PROF_HIDDEN_BEGIN

extern ngx_http_profile_handlers_t  ngx_http_profile_handlers;

/* when an event or a page of the module was handled last */
extern uint64_t  ngx_http_profile_own_at;

#define ngx_http_profile_own_work()  (ngx_http_profile_own_at = prof_now())

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_HANDLERS_H_INCLUDED_ */
