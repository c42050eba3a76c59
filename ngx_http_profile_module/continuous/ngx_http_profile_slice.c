
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The capture that this worker makes of itself all the time.
 *
 * A slice ends at the first timer after a multiple of its length, so the
 * slices of all workers begin and end at about the same time.  The capture of
 * the next slice begins before the capture of the slice ends, so the sampling
 * timers continue.
 *
 * A slice in which the worker used almost no CPU time is not stored.
 *
 * While the event loop runs one event for long, or for ever, another thread
 * ends the slices in its place and stores them.  A mutex protects the slicer.
 *
 * CPU time is sampled by timers on CPU clocks, which cost a request nothing.
 * For wall time the module runs the event loop, and the sampling timer stops
 * while the worker waits for events.
 *
 * Context: the event loop, unless stated otherwise.
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_alive.h"
#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_job.h"
#include "loop/ngx_http_profile_loop.h"

#include <pthread.h>


/*
 * Bytes for the call tree and the entries of a slice.  This is enough for a
 * minute at 100 Hz if most stacks are new.
 */
#define NGX_HTTP_PROFILE_SLICE_MEMORY  (1024 * 1024)

/* ms between two checks for samples in a worker that is not idle */
#define NGX_HTTP_PROFILE_SLICE_DRAIN   1000

/* ms after which the end of a slice is late */
#define NGX_HTTP_PROFILE_SLICE_LATE    2000

/* ms by which the clock of the day is set back at least */
#define NGX_HTTP_PROFILE_SLICE_STEP    500

/*
 * A slice with less CPU time than this, in ns, is idle: the profiler's own
 * timers and jobs use about as much.
 */
#define NGX_HTTP_PROFILE_SLICE_IDLE    5000000


typedef struct {
    ngx_http_profile_continuous_t  *conf;     /* NULL: off */
    prof_capture_t                 *capture;  /* NULL: it cannot be made */
    uint64_t                        start;    /* ms since the Epoch */
    uint64_t                        ahead;    /* ms by which the clock of the
                                                 day is ahead of prof_now() */
    uint64_t                        samples;  /* at the last check */
    const char                     *failed;   /* why there is no capture */
    uint64_t                        due;      /* prof_now(): then the event
                                                 loop is late */
    ngx_event_t                     timer;
    ngx_connection_t                connection;  /* for debug messages */
    unsigned                        armed:1;
} ngx_http_profile_slicer_t;


/* a slice that a job stores */

typedef struct {
    ngx_http_profile_continuous_t  *conf;
    prof_profile_t                 *profile;  /* NULL: slices are removed */
    uint64_t                        now;
    ngx_uint_t                      worker;
    ngx_int_t                       rc;
    ngx_http_profile_job_t          job;
} ngx_http_profile_slice_t;


static void ngx_http_profile_slice_timer(ngx_event_t *ev);
static ngx_msec_t ngx_http_profile_slice_wait(void);
static void ngx_http_profile_slice_next(
    ngx_http_profile_job_rank_e rank);
static void ngx_http_profile_slice_again(void);
static prof_capture_t *ngx_http_profile_slice_begin(void);
static prof_capture_t *ngx_http_profile_slice_capture(void);
static void ngx_http_profile_slice_end(prof_capture_t *c, uint64_t start,
    ngx_http_profile_job_rank_e rank);
static ngx_uint_t ngx_http_profile_slice_idle(prof_capture_t *c);
static void ngx_http_profile_slice_store(prof_profile_t *p,
    ngx_http_profile_job_rank_e rank);
static void ngx_http_profile_slice_work(void *data);
static void ngx_http_profile_slice_done(void *data);
static void ngx_http_profile_slice_open(ngx_http_profile_slice_page_t *page);
static uint64_t ngx_http_profile_slice_now(void);
static uint64_t ngx_http_profile_slice_clock(void);


static ngx_http_profile_slicer_t  slicer;

static pthread_mutex_t  slicer_mutex = PTHREAD_MUTEX_INITIALIZER;

/* the other thread holds this while it stores a slice */

static pthread_mutex_t  slicer_storing = PTHREAD_MUTEX_INITIALIZER;


void
ngx_http_profile_slice_configure(ngx_http_profile_continuous_t *conf)
{
    if (slicer.conf) {
        ngx_http_profile_slice_stop();
    }

    if (conf == NULL) {
        return;
    }

    ngx_http_profile_slice_open(conf->page);

    (void) pthread_mutex_lock(&slicer_mutex);

    slicer.conf = conf;
    slicer.failed = NULL;
    slicer.armed = (conf->wall && ngx_http_profile_arm() == NGX_OK);
    slicer.capture = ngx_http_profile_slice_begin();
    slicer.start = ngx_http_profile_slice_now();
    slicer.ahead = 0;
    slicer.samples = 0;

    slicer.connection.fd = (ngx_socket_t) -1;

    slicer.timer.handler = ngx_http_profile_slice_timer;
    slicer.timer.data = &slicer.connection;
    slicer.timer.log = ngx_cycle->log;
    slicer.timer.cancelable = 1;

    ngx_add_timer(&slicer.timer, ngx_http_profile_slice_wait());

    (void) pthread_mutex_unlock(&slicer_mutex);
}


/* notes that this process captures, and counts slices of killed processes */

static void
ngx_http_profile_slice_open(ngx_http_profile_slice_page_t *page)
{
    ngx_uint_t         i;
    ngx_atomic_uint_t  owner;

    for (i = 0; i < NGX_MAX_PROCESSES; i++) {
        owner = page->open[i];

        if (owner && !ngx_http_profile_alive(owner)
            && ngx_atomic_cmp_set(&page->open[i], owner, 0))
        {
            (void) ngx_atomic_fetch_add(&page->lost, 1);
        }
    }

    page->seen[ngx_process_slot] = ngx_http_profile_slice_now();
    page->kept[ngx_process_slot] = page->seen[ngx_process_slot];
    page->open[ngx_process_slot] = ngx_http_profile_alive_self();
}


u_char *
ngx_http_profile_slice_late(ngx_http_profile_continuous_t *conf,
    ngx_uint_t kept, uint64_t to, u_char *p, u_char *last)
{
    u_char                         *text;
    uint64_t                        now, seen;
    ngx_uint_t                      i, n;
    ngx_atomic_uint_t               owner;
    ngx_http_profile_slice_page_t  *page;
    u_char                          since[sizeof("2026-11-23T06:44:20.000Z")];

    /* the ends of slices at this time or earlier are late */

    now = ngx_http_profile_slice_clock() - NGX_HTTP_PROFILE_SLICE_LATE;
    now -= now % conf->slice;

    page = conf->page;
    text = p;

    for (i = 0, n = 0; i < NGX_MAX_PROCESSES; i++) {
        owner = page->open[i];
        seen = page->seen[i];

        /* an idle worker has a timer at the end of its slice */

        if (owner == 0 || seen >= to || seen >= now
            || kept != (page->kept[i] >= now)
            || !ngx_http_profile_alive(owner))
        {
            continue;
        }

        *ngx_http_profile_moment_text(since, seen) = '\0';

        p = ngx_slprintf(p, last, "%s%uD (one event since %s)",
                         n++ ? ", " : "",
                         ngx_http_profile_alive_pid(owner), since);
    }

    /* no part of an entry */

    return p == last ? text : p;
}


void
ngx_http_profile_slice_stop(void)
{
    if (slicer.conf == NULL) {
        return;
    }

    if (slicer.timer.timer_set) {
        ngx_del_timer(&slicer.timer);
    }

    (void) pthread_mutex_lock(&slicer_mutex);

    if (slicer.capture) {
        ngx_http_profile_slice_end(slicer.capture, slicer.start,
                                   NGX_HTTP_PROFILE_JOB_NEEDED);
        slicer.capture = NULL;
    }

    slicer.conf->page->open[ngx_process_slot] = 0;

    if (slicer.armed) {
        slicer.armed = 0;
        ngx_http_profile_disarm();
    }

    slicer.conf = NULL;

    (void) pthread_mutex_unlock(&slicer_mutex);

    /* the other thread uses the configuration, which may be freed */

    (void) pthread_mutex_lock(&slicer_storing);
    (void) pthread_mutex_unlock(&slicer_storing);
}


const char *
ngx_http_profile_slice_state(void)
{
    return slicer.conf == NULL ? "off"
                               : slicer.failed ? slicer.failed : "on";
}


static void
ngx_http_profile_slice_timer(ngx_event_t *ev)
{
    uint64_t  now, ahead;

    ngx_http_profile_own_work();

    (void) pthread_mutex_lock(&slicer_mutex);

    prof_process_drain();

    /* unmaps the memory of threads that have ended */

    ngx_http_profile_job_trim();

    now = ngx_http_profile_slice_now();
    slicer.conf->page->seen[ngx_process_slot] = now;
    slicer.conf->page->kept[ngx_process_slot] = now;

    ahead = ngx_http_profile_slice_clock() - prof_now() / 1000000;

    if (ahead + NGX_HTTP_PROFILE_SLICE_STEP < slicer.ahead) {
        ngx_http_profile_slice_again();

    } else if (now / slicer.conf->slice != slicer.start / slicer.conf->slice) {
        ngx_http_profile_slice_next(NGX_HTTP_PROFILE_JOB_KEPT);
    }

    slicer.ahead = ahead;

    ngx_add_timer(ev, ngx_http_profile_slice_wait());

    (void) pthread_mutex_unlock(&slicer_mutex);
}


ngx_msec_t
ngx_http_profile_slice_attend(void)
{
    uint64_t                   now, mono, start;
    ngx_msec_t                 wait;
    prof_capture_t            *c, *next;
    ngx_http_profile_slice_t   slice;

    (void) pthread_mutex_lock(&slicer_mutex);

    mono = prof_now();

    if (slicer.conf == NULL || slicer.capture == NULL || mono < slicer.due) {

        wait = slicer.conf == NULL ? NGX_TIMER_INFINITE
               : slicer.capture == NULL ? slicer.conf->slice
               : (slicer.due - mono) / 1000000 + 1;

        (void) pthread_mutex_unlock(&slicer_mutex);

        return wait;
    }

    ngx_memzero(&slice, sizeof(ngx_http_profile_slice_t));

    slice.conf = slicer.conf;
    slice.worker = ngx_worker;
    slice.rc = NGX_ERROR;

    now = ngx_http_profile_slice_clock();
    start = slicer.start;
    c = slicer.capture;
    next = NULL;

    if (now / slice.conf->slice != start / slice.conf->slice) {
        next = ngx_http_profile_slice_capture();
    }

    if (prof_process_relieve(c, next) != PROF_OK) {

        /* the event loop runs, or it waits in a call of the profiler */

        if (next) {
            prof_capture_destroy(next);
        }

        next = NULL;
    }

    if (next) {
        slicer.capture = next;
        slicer.start = now;
        slicer.samples = 0;
        slice.conf->page->kept[ngx_process_slot] = now;

        (void) pthread_mutex_lock(&slicer_storing);
    }

    (void) pthread_mutex_unlock(&slicer_mutex);

    if (next) {
        slice.now = now;
        slice.profile = ngx_http_profile_slice_idle(c)
                        ? NULL : prof_capture_finish(c, "worker");

        prof_capture_destroy(c);

        if (slice.profile) {
            slice.profile->start_realtime = start * 1000000;

            ngx_http_profile_slice_work(&slice);

            (void) ngx_atomic_fetch_add(slice.rc == NGX_OK
                                        ? &slice.conf->page->stored
                                        : &slice.conf->page->dropped, 1);
        }

        prof_spare_trim();

        (void) pthread_mutex_unlock(&slicer_storing);
    }

    wait = slice.conf->slice - ngx_http_profile_slice_clock()
                               % slice.conf->slice;

    return ngx_min(wait, NGX_HTTP_PROFILE_SLICE_DRAIN);
}


/*
 * Returns the time until the next timer event, in ms.  An idle worker has one
 * timer event in each slice.
 */

static ngx_msec_t
ngx_http_profile_slice_wait(void)
{
    ngx_msec_t    wait, pending;
    prof_stats_t  st;

    wait = slicer.conf->slice
           - ngx_http_profile_slice_now() % slicer.conf->slice;

    pending = prof_process_pending();

    if (pending) {
        wait = ngx_min(wait, pending);

    } else if (slicer.capture) {
        prof_capture_totals(slicer.capture, &st, NULL, NULL, NULL);

        if (st.samples != slicer.samples) {
            slicer.samples = st.samples;
            wait = ngx_min(wait, NGX_HTTP_PROFILE_SLICE_DRAIN);
        }
    }

    slicer.due = prof_now()
                 + (uint64_t) (wait + NGX_HTTP_PROFILE_SLICE_LATE) * 1000000;

    return wait;
}


static void
ngx_http_profile_slice_next(ngx_http_profile_job_rank_e rank)
{
    uint64_t         start;
    prof_capture_t  *c;

    c = slicer.capture;
    start = slicer.start;

    slicer.capture = ngx_http_profile_slice_begin();
    slicer.start = ngx_http_profile_slice_now();
    slicer.samples = 0;

    if (c) {
        ngx_http_profile_slice_end(c, start, rank);
    }
}


/*
 * The clock of the day was set back, so a time begins that has been already.
 * Its slices, and the current one, are removed: no range counts a time twice.
 */

static void
ngx_http_profile_slice_again(void)
{
    prof_capture_t  *c;

    c = slicer.capture;

    slicer.capture = ngx_http_profile_slice_begin();
    slicer.start = ngx_http_profile_slice_now();
    slicer.samples = 0;

    if (c) {
        prof_process_cancel(c);
        prof_capture_destroy(c);
    }

    ngx_http_profile_slice_store(NULL, NGX_HTTP_PROFILE_JOB_KEPT);
}


/*
 * Begins the capture of a slice.  A failure is logged once; the next slice
 * tries again.
 */

static prof_capture_t *
ngx_http_profile_slice_begin(void)
{
    const char      *err;
    prof_capture_t  *c;

    err = "no memory for the capture";
    c = ngx_http_profile_slice_capture();

    if (c && prof_process_start(c, slicer.armed, &err) == PROF_OK) {

        if (prof_process_timed()) {
            slicer.failed = NULL;
            return c;
        }

        err = "no timer";
        prof_process_cancel(c);
        ngx_http_profile_job_trim();
    }

    if (slicer.failed == NULL) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "profile: the continuous profile lacks this worker for "
                      "now: %s", err);
    }

    slicer.failed = err;

    if (c) {
        prof_capture_destroy(c);
    }

    return NULL;
}


/* context: any thread */

static prof_capture_t *
ngx_http_profile_slice_capture(void)
{
    prof_capture_conf_t  conf;

    conf.frequency = slicer.conf->frequency;
    conf.mode = slicer.armed ? PROF_MODE_WALL : PROF_MODE_CPU;
    conf.memory = NGX_HTTP_PROFILE_SLICE_MEMORY;

    return prof_capture_create(&conf);
}


static void
ngx_http_profile_slice_end(prof_capture_t *c, uint64_t start,
    ngx_http_profile_job_rank_e rank)
{
    ngx_uint_t       idle;
    prof_profile_t  *p;

    p = prof_process_finish(c, "worker");

    idle = ngx_http_profile_slice_idle(c);
    prof_capture_destroy(c);

    if (p && idle) {
        ngx_http_profile_free_profile(p);
        ngx_http_profile_job_trim();
        return;
    }

    if (p == NULL) {
        (void) ngx_atomic_fetch_add(&slicer.conf->page->dropped, 1);
        return;
    }

    p->start_realtime = start * 1000000;

    ngx_http_profile_slice_store(p, rank);
}


/* context: any thread */

static ngx_uint_t
ngx_http_profile_slice_idle(prof_capture_t *c)
{
    uint64_t      cpu;
    prof_stats_t  st;

    prof_capture_totals(c, &st, NULL, NULL, &cpu);

    return st.samples == 0 && cpu < NGX_HTTP_PROFILE_SLICE_IDLE;
}


static void
ngx_http_profile_slice_store(prof_profile_t *p,
    ngx_http_profile_job_rank_e rank)
{
    ngx_http_profile_slice_t  *slice;

    slice = ngx_calloc(sizeof(ngx_http_profile_slice_t), ngx_cycle->log);

    if (slice) {
        slice->conf = slicer.conf;
        slice->profile = p;
        slice->now = ngx_http_profile_slice_now();
        slice->worker = ngx_worker;
        slice->rc = p ? NGX_ERROR : NGX_DECLINED;

        slice->job.work = ngx_http_profile_slice_work;
        slice->job.done = ngx_http_profile_slice_done;
        slice->job.data = slice;
        slice->job.rank = rank;
        slice->job.size = p ? prof_profile_size(p) : 0;

        if (ngx_http_profile_job_start(&slice->job) == NGX_OK) {
            return;
        }

        ngx_free(slice);
    }

    if (p) {
        ngx_http_profile_free_profile(p);

        (void) ngx_atomic_fetch_add(&slicer.conf->page->dropped, 1);
    }
}


/* context: thread */

static void
ngx_http_profile_slice_work(void *data)
{
    ngx_http_profile_slice_t *slice = data;

    if (slice->profile == NULL) {
        ngx_http_profile_slices_remove(slice->conf, slice->worker, slice->now);
        return;
    }

    if (prof_profile_complete(slice->profile) == PROF_OK) {
        slice->rc = ngx_http_profile_slices_add(slice->conf, slice->profile,
                                                slice->worker, NULL);
    }

    prof_profile_destroy(slice->profile);
    slice->profile = NULL;

    /* when a worker exits, another worker merges its slices */

    if (slice->job.rank != NGX_HTTP_PROFILE_JOB_NEEDED) {
        ngx_http_profile_slices_tend(slice->conf, slice->now);
    }
}


static void
ngx_http_profile_slice_done(void *data)
{
    ngx_http_profile_slice_t *slice = data;

    ngx_http_profile_slice_page_t  *page;

    page = slice->conf->page;

    if (slice->rc != NGX_DECLINED) {
        (void) ngx_atomic_fetch_add(slice->rc == NGX_OK ? &page->stored
                                                        : &page->dropped, 1);
    }

    ngx_http_profile_free_profile(slice->profile);
    ngx_free(slice);
}


static uint64_t
ngx_http_profile_slice_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


/* the time without nginx's cache of it; context: any thread */

static uint64_t
ngx_http_profile_slice_clock(void)
{
    struct timeval  tv;

    ngx_gettimeofday(&tv);

    return (uint64_t) tv.tv_sec * 1000 + tv.tv_usec / 1000;
}
