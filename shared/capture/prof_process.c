
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "heap/prof_heap_state.h"
#include "heap/prof_hooks.h"
#include "capture/prof_process.h"

#include <pthread.h>
#include <string.h>


static void prof_process_begin(prof_process_capture_t *slot,
    prof_capture_t *c, int paced);
static void prof_process_count(prof_process_capture_t *slot);
static prof_process_capture_t *prof_process_slot(const prof_capture_t *c);
static void prof_process_rate(void);
static void prof_process_take(void);
static void prof_process_govern(uint64_t own, uint64_t cpu);
static void prof_process_leave(prof_capture_t *c);
static void prof_process_end(prof_process_capture_t *slot);
static void prof_process_end_idle(prof_process_capture_t *slot);
static uint64_t prof_process_idle_cpu(uint64_t now);
static void prof_process_close(int max);


/*
 * A thread that uses the rings and the captures holds this: the main thread, or
 * a thread that relieves the main thread.
 */

static pthread_mutex_t  prof_process_mutex = PTHREAD_MUTEX_INITIALIZER;


int
prof_process_start(prof_capture_t *c, int paced, const char **err)
{
    int                      rc;
    struct timespec          ts;
    prof_process_capture_t  *slot;

    (void) pthread_mutex_lock(&prof_process_mutex);

    *err = "too many captures of all threads at once";

    rc = PROF_LIMIT;
    slot = prof_process_slot(NULL);

    if (slot == NULL) {
        goto done;
    }

    rc = PROF_ERROR;

    if (prof_process.ncaptures == 0) {

        prof_process_close(PROF_PROCESS_THREADS);

        *err = "cannot build the unwind tables";

        if (prof_process_refresh() == NULL) {
            goto done;
        }

        *err = "no free real-time signal";

        if (prof_signal_hold(PROF_SIGNAL_OWN) != PROF_OK) {
            goto done;
        }

        /* the coarse clock advances at ticks */

        (void) clock_getres(CLOCK_MONOTONIC_COARSE, &ts);

        prof_process.tick = ts.tv_nsec;
        prof_process.period = c->period;
    }

    *err = NULL;

    prof_process_take();
    prof_process_begin(slot, c, paced);

    if (prof_process.ncaptures == 1) {
        prof_process_scan_begin();
        (void) prof_thread_open(NULL);
    }

    prof_process_scan();

    if (prof_process.main) {
        prof_signal_mask(prof_process.main->signal, &prof_process.idle_mask);
    }

    prof_process_count(slot);
    prof_process_rate();

    rc = PROF_OK;

done:

    (void) pthread_mutex_unlock(&prof_process_mutex);

    return rc;
}


static void
prof_process_begin(prof_process_capture_t *slot, prof_capture_t *c, int paced)
{
    memset(slot, 0, sizeof(prof_process_capture_t));
    prof_process_entries(slot, c);

    slot->paced = paced;
    c->labelled = 1;
    c->forget = prof_process_forget;

    prof_process.ncaptures++;
    prof_process.paced += paced;

    slot->start = prof_clock(CLOCK_MONOTONIC);
    slot->start_cpu = prof_clock(CLOCK_PROCESS_CPUTIME_ID);
}


/* the capture counts the threads from now on */

static void
prof_process_count(prof_process_capture_t *slot)
{
    int             i;
    uint64_t        cpu;
    prof_last_t    *last;
    prof_thread_t  *t;

    for (i = 0; i < prof_process.nthreads; i++) {
        t = &prof_threads[i];

        if (t->tid == 0) {
            continue;
        }

        /* a capture that ends next ends at the same clock */

        cpu = prof_thread_cpu(t);
        t->cpu = cpu > t->cpu ? cpu : t->cpu;

        last = &t->last[slot - prof_process.slots];

        memset(last, 0, sizeof(prof_last_t));
        last->cpu = t->cpu - t->idle_cpu;
        t->first[slot - prof_process.slots] = last->cpu + t->idle_cpu;
        last->busy = slot->start - t->idle;
        last->dropped = t->stats.lost_ring;
        last->node = PROF_NONE;

        if (t->main) {
            slot->start_idle = t->idle;
            slot->start_idle_cpu = t->idle_cpu;
        }
    }
}


int
prof_process_relieve(prof_capture_t *c, prof_capture_t *next)
{
    int                      i, rc;
    prof_process_capture_t  *slot, *to;

    if (pthread_mutex_trylock(&prof_process_mutex) != 0) {
        return PROF_ERROR;
    }

    rc = PROF_ERROR;
    slot = prof_process_slot(c);
    to = prof_process_slot(NULL);

    /* a thread that waits for events runs none; its clocks stand */

    if (slot == NULL || (next && to == NULL) || prof_process.idle_since) {
        goto done;
    }

    for (i = 0; i < prof_process.nthreads; i++) {

        if (prof_threads[i].tid) {
            prof_process_fold(&prof_threads[i], 0);
        }
    }

    if (next) {
        prof_process_begin(to, next, slot->paced);
        prof_process_count(to);
        prof_process_end(slot);

        slot->capture = NULL;

        prof_process.paced -= slot->paced;
        prof_process.ncaptures--;
    }

    rc = PROF_OK;

done:

    (void) pthread_mutex_unlock(&prof_process_mutex);

    return rc;
}


static prof_process_capture_t *
prof_process_slot(const prof_capture_t *c)
{
    int  i;

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        if (prof_process.slots[i].capture == c) {
            return &prof_process.slots[i];
        }
    }

    return NULL;
}


/*
 * Sets all timers to the shortest period of all captures.  Timers that have it
 * already continue, so that a capture which begins or ends does not delay the
 * next sample of the others.
 */

static void
prof_process_rate(void)
{
    int                    i;
    uint64_t               period;
    prof_thread_t         *t;
    const prof_capture_t  *c;

    period = PROF_PERIOD_MAX;

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        c = prof_process.slots[i].capture;

        if (c && c->period < period) {
            period = c->period;
        }
    }

    prof_process.period = period;

    for (i = 0; i < prof_process.nthreads; i++) {
        t = &prof_threads[i];

        if (t->tid
            && (t->period != period
                || t->paced != (t->main && prof_process.paced)))
        {
            prof_thread_set(t);
        }
    }
}


void
prof_process_drain(void)
{
    (void) pthread_mutex_lock(&prof_process_mutex);

    prof_process_take();

    (void) pthread_mutex_unlock(&prof_process_mutex);
}


static void
prof_process_take(void)
{
    int             i;
    uint64_t        own, cpu, start;
    prof_thread_t  *t;

    prof_hooks_refresh();
    prof_heap_renew_process();

    if (prof_process.ncaptures == 0) {
        prof_process_close(PROF_CLOSE_THREADS);
        return;
    }

    start = prof_clock(CLOCK_MONOTONIC);
    own = 0;
    cpu = 0;

    for (i = 0; i < prof_process.nthreads; i++) {
        t = &prof_threads[i];

        if (t->tid) {
            own += t->stats.own_handler_ns - t->passed.own_handler_ns;
            cpu -= t->cpu;

            prof_process_fold(t, 1);
        }
    }

    prof_process_scan();

    /* the scan finds the main thread's signal */

    if (prof_process.main) {
        prof_signal_mask(prof_process.main->signal, &prof_process.idle_mask);
    }

    for (i = 0; i < prof_process.nthreads; i++) {
        cpu += prof_threads[i].tid ? prof_threads[i].cpu : 0;
    }

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {

        if (prof_process.slots[i].capture) {
            prof_process.slots[i].capture->stats.own_fold_ns +=
                                        prof_clock(CLOCK_MONOTONIC) - start;
        }
    }

    prof_process_govern(own, cpu);
}


/* reduces the frequency if samples cost too large a part of their time */

static void
prof_process_govern(uint64_t own, uint64_t cpu)
{
    int              i;
    uint64_t         samples;
    prof_capture_t  *c;

    samples = cpu / prof_process.period;
    own += samples * PROF_DELIVERY_NS;

    if ((int64_t) cpu <= 0 || samples < PROF_GOVERN_EVERY
        || own * PROF_SHARE < cpu || prof_process.period >= PROF_PERIOD_MAX / 2)
    {
        return;
    }

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        c = prof_process.slots[i].capture;

        if (c && c->period < 2 * prof_process.period) {
            c->period = 2 * prof_process.period;
            c->stats.slowdowns++;
        }
    }

    prof_process_rate();
}


int
prof_process_timed(void)
{
    return prof_process.main && prof_process.main->timers;
}


PROF_HOT int
prof_process_paced(void)
{
    return prof_process.ncaptures && prof_process.main
           && prof_process.main->paced;
}


/*
 * Signals may still arrive between this call and a wait with the mask.  The
 * handler takes no sample then: it only sets t->expired, and
 * prof_process_busy() sets the timer again.
 */

void
prof_process_idle(const sigset_t **mask)
{
    prof_thread_t  *t;

    if (mask) {
        *mask = NULL;
    }

    if (!prof_process_paced()) {
        return;
    }

    t = prof_process.main;

    t->idling = 1;
    t->expired = 0;

    if (mask) {
        *mask = &prof_process.idle_mask;

    } else {
        prof_signal_block(t->signal);
    }

    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    prof_process.idle_since = prof_clock(CLOCK_MONOTONIC);
    prof_process.idle_since_cpu =
                 (prof_process.idle_since >= prof_process.idle_measure)
                 ? prof_clock(CLOCK_THREAD_CPUTIME_ID) : 0;

    if (t->wait) {
        (void) prof_timer_set(t->tick_timer, 0, 0);

        t->wait = 0;
        t->due = prof_process.idle_since - t->idle + t->period;
        t->expired = 1;
    }
}


void
prof_process_busy(void)
{
    uint64_t        now;
    prof_thread_t  *t;

    t = prof_process.main;

    /* a capture may have ended, and another begun, during the wait */

    if (t && prof_process.idle_since) {
        now = prof_clock(CLOCK_MONOTONIC);

        t->idle_cpu += prof_process_idle_cpu(now);
        t->idle += now - prof_process.idle_since;

        prof_process.idle_since = 0;
    }

    prof_signal_unblock();

    if (t == NULL) {
        return;
    }

    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    t->idling = 0;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    if (t->expired && t->paced) {
        prof_thread_pace_due(t);
    }
}


/*
 * Returns the CPU time of the wait that ends.  A single interrupt of the
 * machine may cost a hundred times as much as a wait, so the mean takes at
 * most its double from each wait.
 */

static uint64_t
prof_process_idle_cpu(uint64_t now)
{
    uint64_t  cpu, mean, wall, most;

    mean = prof_process.idle_mean;

    if (prof_process.idle_since_cpu == 0) {
        wall = now - prof_process.idle_since;

        return mean < wall ? mean : wall;
    }

    cpu = prof_clock(CLOCK_THREAD_CPUTIME_ID) - prof_process.idle_since_cpu;

    most = cpu < 2 * mean ? cpu : 2 * mean;

    prof_process.idle_mean = mean ? (7 * mean + most) / 8 : cpu;
    prof_process.idle_measure = now + PROF_PROCESS_MEASURE;

    return cpu;
}


prof_profile_t *
prof_process_finish(prof_capture_t *c, const char *title)
{
    prof_process_cancel(c);

    return prof_capture_finish(c, title);
}


void
prof_process_waits(prof_capture_t *c, const prof_wait_t *waits, uint32_t n)
{
    prof_process_capture_t  *slot;

    slot = prof_process_slot(c);

    if (slot) {
        slot->waits = waits;
        slot->nwaits = n;
    }
}


void
prof_process_location(const char *location)
{
    if (prof_process.main) {
        prof_process.main->location = location;
    }
}


int
prof_process_traces(prof_capture_t *c, uint32_t max)
{
    c->traces = prof_traces_create(max < PROF_TRACES_MAX ? max
                                                         : PROF_TRACES_MAX);

    return c->traces ? PROF_OK : PROF_ERROR;
}


/*
 * The handler may interrupt this function at any point.  So "traced" is 0
 * while the trace is not complete.
 */

void
prof_process_trace(const prof_trace_t *trace)
{
    prof_thread_t  *t;

    t = prof_process.main;

    if (t == NULL) {
        return;
    }

    t->traced = 0;

    if (trace) {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        t->trace = *trace;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        t->traced = 1;
    }
}


void
prof_process_cancel(prof_capture_t *c)
{
    (void) pthread_mutex_lock(&prof_process_mutex);

    prof_process_leave(c);

    (void) pthread_mutex_unlock(&prof_process_mutex);
}


static void
prof_process_leave(prof_capture_t *c)
{
    prof_process_capture_t  *slot;

    slot = prof_process_slot(c);

    if (slot == NULL) {
        return;
    }

    prof_process_take();
    prof_process_end(slot);

    slot->capture = NULL;

    prof_process.paced -= slot->paced;

    if (--prof_process.ncaptures) {
        prof_process_rate();
        return;
    }

    if (prof_process.main) {
        prof_thread_close(prof_process.main);
    }

    prof_process.closing = 1;
    prof_process_close(PROF_CLOSE_THREADS);
}


static void
prof_process_end(prof_process_capture_t *slot)
{
    int              i;
    uint64_t         end, total;
    prof_capture_t  *c;

    c = slot->capture;

    /* the clock is read once, so that all threads end at the same time */

    end = prof_clock(CLOCK_MONOTONIC);
    c->wall = end - slot->start;

    for (i = 0; i < prof_process.nthreads; i++) {

        if (prof_threads[i].tid) {
            prof_process_tail(slot, &prof_threads[i], end);
        }
    }

    prof_process_end_idle(slot);

    /* the process's clock contains the time of threads that have ended */

    total = prof_clock(CLOCK_PROCESS_CPUTIME_ID) - slot->start_cpu;

    if (total > c->cpu + PROF_PROCESS_UNSEEN) {
        prof_process_named(slot, PROF_TYPE_NOTE,
                           prof_process.found ? "[threads that ended]"
                                              : PROF_PROCESS_NOT_FOUND,
                           PROF_ENTRY_TURN, PROF_NONE, total - c->cpu,
                           total - c->cpu);
    }
}


/* shows the CPU time of the main thread's waits, in all modes */

static void
prof_process_end_idle(prof_process_capture_t *slot)
{
    uint32_t        i, type, label;
    uint64_t        wall, cpu, all, part, rest, shared;
    prof_thread_t  *t;

    t = prof_process.main;

    if (t == NULL || t->idle == slot->start_idle) {
        return;
    }

    cpu = t->idle_cpu - slot->start_idle_cpu;
    wall = cpu;
    type = PROF_ENTRY_TURN;
    label = prof_process_label(slot, t, NULL);

    if (slot->capture->mode == PROF_MODE_WALL) {
        wall = t->idle - slot->start_idle;
        type = PROF_ENTRY_GAP;

        for (i = 0, all = 0; i < slot->nwaits; i++) {
            all += slot->waits[i].weight;
        }

        /* the CPU time of the polls belongs to no request */

        rest = wall > cpu ? wall - cpu : 0;
        shared = rest;

        for (i = 0; i < slot->nwaits && all; i++) {
            part = (double) shared * slot->waits[i].weight / all;
            part = part < rest ? part : rest;

            prof_process_waited_for(slot, t, &slot->waits[i], part);

            rest -= part;
            wall -= part;
        }
    }

    prof_process_named(slot, PROF_TYPE_WAITING, "[idle]", type, label, wall,
                       cpu);
}


/*
 * Closes at most max threads after the last capture.  The handlers of the
 * others may still run, so the signals are released after the last thread.
 */

static void
prof_process_close(int max)
{
    int  i;

    if (!prof_process.closing) {
        return;
    }

    for (i = 0; i < prof_process.nthreads; i++) {

        if (prof_threads[i].tid == 0) {
            continue;
        }

        if (max-- == 0) {
            return;
        }

        prof_thread_close(&prof_threads[i]);
    }

    if (prof_process.fault) {
        prof_signal_release(PROF_SIGNAL_FAULT);
    }

    prof_signal_release(PROF_SIGNAL_OWN);

    memset(&prof_process, 0, sizeof(prof_process_t));
}
