
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The parts of the end of a run that are inlined: the charge of its CPU time
 * (ngx_http_profile_run.c), and the counters of its event handler.
 */


#ifndef _NGX_HTTP_PROFILE_CHARGE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CHARGE_H_INCLUDED_


#include "loop/ngx_http_profile_loop_private.h"


/*
 * The CPU clock is read when the turns since the last reading have taken this
 * time, in ns.  A reading makes the kernel update its statistics, which may
 * cost the worker the rest of its time slice.
 */

#define NGX_HTTP_PROFILE_WINDOW_NS  10000000

/* the CPU clock is read for a turn of at least this length, in ns */
#define NGX_HTTP_PROFILE_LONG_NS    1000000

#define NGX_HTTP_PROFILE_SCALE_ONE  ((uint64_t) 1 << 32)


typedef struct {
    uint64_t                      clock;     /* last reading of the CPU clock */
    uint64_t                      wall;      /* ns of turns since then */
    uint64_t                      charged;   /* CPU time charged since then */
    uint64_t                      scale;     /* CPU time per wall time, as a
                                                part of SCALE_ONE */
    double                        debt;      /* CPU time that was used minus
                                                CPU time that was charged */
    uint64_t                      queue;     /* last reading of the clock of
                                                the run queue */
    uint64_t                      no_processor;  /* of the last long turn */
    uint64_t                      blocked;
    uint64_t                      stopped;   /* "no_processor" of the run */
} ngx_http_profile_cpu_t;


PROF_HIDDEN_BEGIN

extern ngx_http_profile_cpu_t  ngx_http_profile_cpu;

/*
 * Charges a run of this wall time by the CPU clock, and returns its CPU time,
 * in ns.
 */
uint64_t ngx_http_profile_charge_clock(uint64_t wall);

PROF_HIDDEN_END


/* if calls are counted, selects the handler whose call is counted next */

PROF_GLUE_INLINE void
ngx_http_profile_select_handler(uintptr_t function)
{
    if (function != ngx_http_profile_handlers.last.function
        && ngx_http_profile_handlers.table)
    {
        ngx_http_profile_find_handler(function);
    }
}


/* counts a call of the selected handler, which has returned */

PROF_GLUE_INLINE void
ngx_http_profile_count_call(uint64_t start, uint64_t now)
{
    ngx_http_profile_handled_t  *counters;

    if (ngx_http_profile_handlers.table == NULL) {
        return;
    }

    counters = ngx_http_profile_handlers.last.counters;

    counters->calls++;
    counters->time += now - start;
    counters->latency = counters->latency + start
                        - ngx_http_profile_loop.ready;
}


/* counts the handler of the run's last event, which has returned */

PROF_GLUE_INLINE void
ngx_http_profile_count_handler(ngx_http_profile_run_t *run, uint64_t now)
{
    uint64_t   start;
    uintptr_t  function;

    if (ngx_http_profile_handlers.table == NULL) {
        return;
    }

    function = run->handler;
    start = run->start;

    if (ngx_http_profile_loop.next) {
        function = ngx_http_profile_loop.next;
        start = ngx_http_profile_loop.next_start;
        ngx_http_profile_loop.next = 0;
    }

    ngx_http_profile_select_handler(function);
    ngx_http_profile_count_call(start, now);
}


/* returns whether a run is charged without a reading of the CPU clock */

PROF_GLUE_INLINE ngx_uint_t
ngx_http_profile_is_scaled(uint64_t wall)
{
    return wall < NGX_HTTP_PROFILE_LONG_NS
           && ngx_http_profile_cpu.wall + wall < NGX_HTTP_PROFILE_WINDOW_NS;
}


/* charges a run for which ngx_http_profile_is_scaled() returns 1 */

PROF_GLUE_INLINE uint64_t
ngx_http_profile_charge_scaled(uint64_t wall)
{
    uint64_t                 cpu;
    ngx_http_profile_cpu_t  *acc;

    acc = &ngx_http_profile_cpu;

    /* wall is less than 2^20 and scale at most 2^34, so 64 bits suffice */

    cpu = wall * acc->scale / NGX_HTTP_PROFILE_SCALE_ONE;

    acc->wall += wall;
    acc->charged += cpu;

    return cpu;
}


/* charges a run of this wall time, and returns its CPU time, in ns */

PROF_GLUE_INLINE uint64_t
ngx_http_profile_charge_cpu(uint64_t wall)
{
    return ngx_http_profile_is_scaled(wall)
           ? ngx_http_profile_charge_scaled(wall)
           : ngx_http_profile_charge_clock(wall);
}


#endif /* _NGX_HTTP_PROFILE_CHARGE_H_INCLUDED_ */
