
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The current run of the worker, the CPU time of each run, and the stacks that
 * the watch took in the run.
 *
 * Reading the CPU clock is a system call, so it is read rarely.  Turns are
 * charged by their wall time, multiplied by the CPU time that a nanosecond of
 * turns has recently cost.  So the costs of polls, of logging and of freeing
 * are spread over the requests, and the sum over all requests is the worker's
 * CPU time.  A long turn is charged by the CPU clock.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "loop/ngx_http_profile_charge.h"


/* the scale is not changed by windows with less time in short turns, in ns */
#define NGX_HTTP_PROFILE_SCALE_NS   1000000

/* maximum number of ns of CPU time for each ns of turns */
#define NGX_HTTP_PROFILE_MAX_SCALE  4.0

/* maximum CPU time in ns that may be charged, or given back, later */
#define NGX_HTTP_PROFILE_MAX_DEBT   20000000.0


static ngx_connection_t *ngx_http_profile_opening(
    ngx_http_profile_run_t *run);
static void ngx_http_profile_running_both(ngx_http_request_t *r);
static ngx_uint_t ngx_http_profile_is_much(void);
static void ngx_http_profile_split_idle(uint64_t idle);
static void ngx_http_profile_next_window(uint64_t used);


PROF_HOT_DATA ngx_http_profile_loop_t           ngx_http_profile_loop;
PROF_HOT_DATA ngx_http_profile_observers_t      ngx_http_profile_observers;
PROF_HOT_DATA ngx_http_profile_run_t           *ngx_http_profile_current;

PROF_HOT_DATA prof_turns_writer_t               ngx_http_profile_turn_log;

PROF_HOT_DATA prof_watch_t                     *ngx_http_profile_watch;
PROF_HOT_DATA prof_watch_spot_t                 ngx_http_profile_spot;

static ngx_http_profile_running_pt              ngx_http_profile_runnings[2];

/* the number of users of the watch */

static ngx_uint_t                               ngx_http_profile_watchers;

PROF_HOT_DATA ngx_http_profile_cpu_t  ngx_http_profile_cpu;

/* for timers: ngx_http_profile_run_next() finds no event in this queue */

ngx_queue_t  ngx_http_profile_nothing = {
    &ngx_http_profile_nothing, &ngx_http_profile_nothing
};


void
ngx_http_profile_cpu_init(void)
{
    ngx_http_profile_cpu.clock = prof_cpu_now();
    ngx_http_profile_cpu.wall = 0;
    ngx_http_profile_cpu.charged = 0;
    ngx_http_profile_cpu.scale = NGX_HTTP_PROFILE_SCALE_ONE;
    ngx_http_profile_cpu.debt = 0;

    prof_queue_open();

    ngx_http_profile_cpu.queue = prof_queue_now();
}


PROF_HOT uint64_t
ngx_http_profile_charge(ngx_http_profile_run_t *run)
{
    uint64_t                   now, wall, cpu;
    ngx_connection_t          *c;
    ngx_http_profile_track_t  *tr;

    now = prof_now();
    wall = now - ngx_http_profile_loop.since;
    ngx_http_profile_loop.since = now;

    tr = run->track;

    /* the CPU time of other protocols must not be spread over requests */

    if (tr == NULL && ngx_http_profile_nforeign && !run->tail
        && ngx_http_profile_is_foreign(run->connection))
    {
        (void) ngx_http_profile_charge_cpu(wall);
        return now;
    }

    c = tr ? NULL : ngx_http_profile_opening(run);

    /*
     * The time of a request after it was logged, and short runs for no present
     * or coming request, are spread over all requests.
     */

    if (tr ? tr->closed
           : (c == NULL
              && (wall < NGX_HTTP_PROFILE_LONG_NS || run->tail
                  || !ngx_http_profile_is_much())))
    {
        /* the profiler's CPU time is not charged to a request */

        if (tr && tr->own) {
            (void) ngx_http_profile_charge_cpu(wall);
        }

        return now;
    }

    cpu = ngx_http_profile_charge_cpu(wall);

    if (tr) {
        tr->turn += wall;
        tr->times.cpu += cpu;

        /* the loop's part of the CPU time is not in the turn */

        if (cpu > wall) {
            tr->times.outside += cpu - wall;
            cpu = wall;
        }

        tr->turn_cpu += cpu;

        if (wall >= NGX_HTTP_PROFILE_LONG_NS) {
            tr->turn_no_processor += ngx_http_profile_cpu.no_processor;
            tr->turn_blocked += ngx_http_profile_cpu.blocked;
        }

    } else if (c) {
        ngx_http_profile_add_opening_cpu(c, cpu);
    }

    return now;
}


/*
 * Returns whether much CPU time is not charged yet.  Wall time is not enough
 * to tell: a long run may have waited without using the processor.
 */

static ngx_uint_t
ngx_http_profile_is_much(void)
{
    ngx_http_profile_cpu_t  *acc;

    acc = &ngx_http_profile_cpu;

    return prof_cpu_now() - acc->clock
           >= acc->charged + NGX_HTTP_PROFILE_LONG_NS;
}


/* returns the client's connection to charge for a run before its request */

PROF_HOT static ngx_connection_t *
ngx_http_profile_opening(ngx_http_profile_run_t *run)
{
    ngx_connection_t  *c;

    c = run->connection;

    if (c == NULL || run->tail || c->listening == NULL || c->read->accept) {
        return NULL;
    }

    if (c->fd == (ngx_socket_t) -1) {

        /* no request will take the time of a closed connection */

        ngx_http_profile_cpu.debt += ngx_http_profile_take_opening_cpu(c);

        return NULL;
    }

    return c;
}


uint64_t
ngx_http_profile_charge_clock(uint64_t wall)
{
    uint64_t                 cpu, used;
    ngx_http_profile_cpu_t  *acc;

    acc = &ngx_http_profile_cpu;

    used = prof_cpu_now() - acc->clock;

    if (wall < NGX_HTTP_PROFILE_LONG_NS) {
        cpu = ngx_http_profile_charge_scaled(wall);

        ngx_http_profile_split_idle(0);
        ngx_http_profile_next_window(used);

        return cpu;
    }

    /*
     * The long turn has what the short ones before it have not been charged.
     * It does not change the scale of short turns: it may have been blocked.
     */

    cpu = (used > acc->charged) ? used - acc->charged : 0;
    cpu = ngx_min(cpu, wall);

    acc->clock += cpu;

    ngx_http_profile_split_idle(wall - cpu);
    ngx_http_profile_next_window(used - cpu);

    return cpu;
}


/*
 * Splits the time of a long turn in which the worker did not run.  The clock of
 * the run queue is only read here, so a delay before the turn since the last
 * reading may be counted for it; there are at most ten milliseconds of turns
 * between two readings.
 */

static void
ngx_http_profile_split_idle(uint64_t idle)
{
    uint64_t                 queue, waited;
    ngx_http_profile_cpu_t  *acc;

    acc = &ngx_http_profile_cpu;

    acc->no_processor = 0;
    acc->blocked = 0;

    queue = prof_queue_now();

    if (queue == PROF_QUEUE_UNKNOWN) {
        return;
    }

    waited = (acc->queue == PROF_QUEUE_UNKNOWN) ? 0 : queue - acc->queue;

    acc->queue = queue;
    acc->no_processor = ngx_min(waited, idle);
    acc->stopped += acc->no_processor;
    acc->blocked = idle - acc->no_processor;
}


static void
ngx_http_profile_next_window(uint64_t used)
{
    double                   scale;
    ngx_http_profile_cpu_t  *acc;

    acc = &ngx_http_profile_cpu;

    acc->debt += (double) used - (double) acc->charged;
    acc->debt = ngx_min(acc->debt, NGX_HTTP_PROFILE_MAX_DEBT);
    acc->debt = ngx_max(acc->debt, -NGX_HTTP_PROFILE_MAX_DEBT);

    if (acc->wall >= NGX_HTTP_PROFILE_SCALE_NS) {

        /* half of the debt, since windows have different lengths */

        scale = ((double) used + acc->debt / 2) / acc->wall;
        scale = ngx_min(scale, NGX_HTTP_PROFILE_MAX_SCALE);
        scale = ngx_max(scale, 0);

        acc->scale = (uint64_t) (scale * NGX_HTTP_PROFILE_SCALE_ONE);
    }

    acc->clock += used;
    acc->wall = 0;
    acc->charged = 0;
}


PROF_HOT void
ngx_http_profile_enter(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uintptr_t handler)
{
    ngx_http_profile_run_t  *prev;

    prev = ngx_http_profile_current;

    /* code that ran before the first turn of a request was for the request */

    if (prev && (prev->track || (tr && tr->times.turns))) {
        (void) ngx_http_profile_charge(prev);

        if (ngx_http_profile_spot.fresh) {
            ngx_http_profile_watch_pass(prev);
        }
    }

    ngx_http_profile_init_run(run, tr, handler);

    if (ngx_http_profile_observers.running) {
        ngx_http_profile_observers.running(tr ? tr->request : NULL);
    }
}


PROF_HOT void
ngx_http_profile_find_handler(uintptr_t function)
{
    ngx_http_profile_handler_t  *entry, *last;

    last = &ngx_http_profile_handlers.last;
    entry = ngx_http_profile_handlers.table
            + ngx_http_profile_handler_place(function);

    while (entry->function && entry->function != function) {
        entry++;
    }

    last->counters = entry->function
                     ? entry->counters
                     : ngx_http_profile_handlers.add(entry, function);
    last->function = function;
}


PROF_HOT void
ngx_http_profile_turn_forget(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_run_t  *run;

    for (run = ngx_http_profile_current; run; run = run->prev) {
        if (run->track == tr) {
            run->track = NULL;
            run->tail = 1;

            if (run == ngx_http_profile_loop.found) {
                ngx_http_profile_loop.found = NULL;
            }
        }
    }
}


void
ngx_http_profile_add_running(ngx_http_profile_running_pt running)
{
    ngx_uint_t  n;

    n = ngx_http_profile_runnings[0] ? 1 : 0;
    ngx_http_profile_runnings[n] = running;

    ngx_http_profile_observers.running = n ? ngx_http_profile_running_both
                                           : running;
}


void
ngx_http_profile_remove_running(ngx_http_profile_running_pt running)
{
    if (ngx_http_profile_runnings[0] == running) {
        ngx_http_profile_runnings[0] = ngx_http_profile_runnings[1];
    }

    ngx_http_profile_runnings[1] = NULL;
    ngx_http_profile_observers.running = ngx_http_profile_runnings[0];
}


static void
ngx_http_profile_running_both(ngx_http_request_t *r)
{
    ngx_http_profile_runnings[0](r);
    ngx_http_profile_runnings[1](r);
}


void
ngx_http_profile_report_slow(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uint64_t ns)
{
    ngx_http_profile_run_t  *r;

    /* the outer runs are only slow because they contain this run */

    for (r = run; r; r = r->prev) {
        r->reported = 1;
    }

    ngx_http_profile_observers.slow(run, tr, ns);
    ngx_http_profile_forgive();
}


void
ngx_http_profile_forgive(void)
{
    uint64_t  now;

    now = prof_now();

    ngx_http_profile_note_busy(NGX_HTTP_PROFILE_BUSY_PROFILER,
                               ngx_http_profile_loop.since, now, 0);

    ngx_http_profile_loop.since = now;
}


void
ngx_http_profile_watch_start(ngx_uint_t frequency)
{
    const char  *err;

    if (ngx_http_profile_watchers++ || ngx_http_profile_watch) {
        return;
    }

    ngx_http_profile_watch = prof_watch_create(frequency,
                                               &ngx_http_profile_spot, &err);

    if (ngx_http_profile_watch == NULL) {
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                             "profile: %s", err);
    }
}


void
ngx_http_profile_watch_stop(void)
{
    if (--ngx_http_profile_watchers == 0) {
        ngx_http_profile_watch_end();
    }
}


void
ngx_http_profile_watch_end(void)
{
    ngx_http_profile_watchers = 0;

    if (ngx_http_profile_watch) {
        prof_watch_destroy(ngx_http_profile_watch);
        ngx_http_profile_watch = NULL;
    }
}


void
ngx_http_profile_watch_pass(ngx_http_profile_run_t *run)
{
    ngx_http_profile_track_t  *tr;

    if (ngx_http_profile_observers.notes_age) {
        ngx_http_profile_observers.notes_age();
    }

    tr = run->track;

    /* a request without notes may get some, and its samples with them */

    prof_watch_pass(ngx_http_profile_watch,
                    tr && tr->notes ? (uintptr_t) tr->notes : (uintptr_t) tr);

    ngx_http_profile_forgive();
}
