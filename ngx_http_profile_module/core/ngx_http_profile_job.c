
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Jobs.  While jobs exist, a timer of the worker checks which of them have
 * ended.  The timer notices the end of a job up to 20 ms late, but it needs no
 * descriptor.
 *
 * The time of the thread for clients is a budget, which grows by a hundredth of
 * the time that passes.  So its work takes less than a hundredth of the time
 * from other requests, and their 99th percentile is what it was.  The same
 * timer looks at the budget.  When the budget is used up, the thread gets the
 * lowest priority.  A process without privileges cannot raise a priority, so
 * this thread ends when it has no job, and the next job gets a new thread.
 */


#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_log_limit.h"
#include "core/ngx_http_profile_symbolizer.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>


#define NGX_HTTP_PROFILE_POLL_FIRST  1
#define NGX_HTTP_PROFILE_POLL_LAST   20

/*
 * The longest time that a worker which shuts down waits for jobs of no client,
 * in ms.  A disk that hangs must not keep old workers.
 */
#define NGX_HTTP_PROFILE_JOB_EXIT    5000

/* the lowest priority of setpriority() */
#define NGX_HTTP_PROFILE_JOB_NICE    19

/* ns; a worker that shuts down waits for names: of clients, and of others */
#define NGX_HTTP_PROFILE_JOB_NAMES   10000000000
#define NGX_HTTP_PROFILE_JOB_LATER   2000000000

/* the budget of the thread for clients: ns, and its growth */
#define NGX_HTTP_PROFILE_JOB_BUDGET  1000000000
#define NGX_HTTP_PROFILE_JOB_PART    100


/* smaller memory, in bytes, is freed without a job: this takes microseconds */
#define NGX_HTTP_PROFILE_JOB_SMALL  (32 * 1024)


typedef struct {
    ngx_uint_t           n;
    size_t               size;
} ngx_http_profile_job_limit_t;


/* memory that is not needed any more */

typedef struct {
    ngx_http_profile_job_t    job;
    ngx_http_profile_job_pt   free;
    void                     *data;
} ngx_http_profile_unused_t;


/* used under the mutex of the queue */

typedef struct {
    pthread_cond_t                cond;
    ngx_http_profile_job_rank_e   first;     /* it runs jobs of these ranks */
    ngx_http_profile_job_rank_e   last;
    const char                   *name;
    pthread_t                     thread;
    pid_t                         tid;       /* 0: the thread has not begun */
    unsigned                      running:1;
    unsigned                      lowered:1; /* it has the lowest priority */
} ngx_http_profile_job_thread_t;


typedef struct {

    /* shared with the threads: used under the mutex */

    pthread_mutex_t                 mutex;
    ngx_http_profile_job_thread_t   clients;
    ngx_http_profile_job_thread_t   others;
    int64_t                         budget;    /* ns, of the thread for
                                                  clients */
    uint64_t                        budgeted;  /* when it was computed last */
    uint64_t                        used;      /* CPU time of the thread
                                                  then */
    ngx_queue_t                     waiting[NGX_HTTP_PROFILE_JOB_RANKS];
    ngx_queue_t                     ended;
    ngx_queue_t                     freed;
    ngx_uint_t                      stop;
    ngx_uint_t                      trim;

    /* used by the event loop only */

    ngx_uint_t                      n;         /* jobs whose "done" was not
                                                  called */
    ngx_uint_t                      asked;     /* of them, jobs for which a
                                                  client or another worker
                                                  waits */
    ngx_msec_t                      exiting;   /* since then, if "exits" is
                                                  set */
    size_t                          size;
    ngx_event_t                     timer;
    ngx_connection_t                connection;  /* for nginx's debug
                                                    messages */
    ngx_msec_t                      wait;
    time_t                          failed;    /* to start a thread */
    unsigned                        ready:1;   /* the queues are initialized */
    unsigned                        exits:1;   /* the worker exits
                                                  gracefully */
} ngx_http_profile_job_queue_t;


static ngx_http_profile_job_thread_t *ngx_http_profile_job_thread_of(
    ngx_http_profile_job_rank_e rank);
static ngx_int_t ngx_http_profile_job_thread(
    ngx_http_profile_job_thread_t *thread);
static int ngx_http_profile_job_create(ngx_http_profile_job_thread_t *thread);
static void *ngx_http_profile_job_cycle(void *data);
static ngx_http_profile_job_t *ngx_http_profile_job_next(
    ngx_http_profile_job_thread_t *thread);
static void ngx_http_profile_job_spend(void);
static void ngx_http_profile_job_names(void);
static void ngx_http_profile_job_names_work(void *data);
static void ngx_http_profile_job_names_done(void *data);
static ngx_uint_t ngx_http_profile_job_wake(void);
static void ngx_http_profile_job_release(ngx_http_profile_job_t *job);
static void ngx_http_profile_free_unused(size_t size,
    ngx_http_profile_job_pt free, void *data);
static void ngx_http_profile_job_unused(void *data);
static void ngx_http_profile_unused_profile(void *data);
static void ngx_http_profile_unused_capture(void *data);
static void ngx_http_profile_unused_heap(void *data);
static void ngx_http_profile_job_timer(ngx_event_t *ev);
static void ngx_http_profile_job_wait(ngx_http_profile_job_queue_t *q);
static void ngx_http_profile_job_collect(void);
static void ngx_http_profile_job_leave(ngx_http_profile_job_t *job);


/*
 * A job of a rank is accepted while all ranks together have fewer jobs.  A
 * profile of profile_keep has some tens of kilobytes.
 */

static ngx_http_profile_job_limit_t
    ngx_http_profile_job_limits[NGX_HTTP_PROFILE_JOB_RANKS] =
{
    { NGX_MAX_INT_T_VALUE, NGX_MAX_SIZE_T_VALUE },
    { 288, 64 * 1024 * 1024 },
    { 256, 48 * 1024 * 1024 },
    { 32, 8 * 1024 * 1024 }
};


static ngx_http_profile_job_queue_t  ngx_http_profile_queue = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .clients = { PTHREAD_COND_INITIALIZER, NGX_HTTP_PROFILE_JOB_NEEDED,
                 NGX_HTTP_PROFILE_JOB_ASKED, "profile", 0, 0, 0, 0 },
    .others = { PTHREAD_COND_INITIALIZER, NGX_HTTP_PROFILE_JOB_RECORDED,
                NGX_HTTP_PROFILE_JOB_KEPT, "profile idle", 0, 0, 0, 0 },
    .budget = NGX_HTTP_PROFILE_JOB_BUDGET
};


ngx_int_t
ngx_http_profile_job_room(ngx_http_profile_job_rank_e rank)
{
    ngx_http_profile_job_limit_t  *limit;

    limit = &ngx_http_profile_job_limits[rank];

    if (ngx_http_profile_queue.n >= limit->n
        || ngx_http_profile_queue.size >= limit->size)
    {
        ngx_log_debug3(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                       "profile: no place for a job of rank %d, jobs: %ui, "
                       "%uz bytes", (int) rank, ngx_http_profile_queue.n,
                       ngx_http_profile_queue.size);
        return NGX_BUSY;
    }

    return ngx_http_profile_job_thread(ngx_http_profile_job_thread_of(rank));
}


ngx_int_t
ngx_http_profile_job_start(ngx_http_profile_job_t *job)
{
    ngx_int_t                       rc;
    ngx_uint_t                      running;
    ngx_http_profile_job_queue_t   *q;
    ngx_http_profile_job_thread_t  *thread;

    rc = ngx_http_profile_job_room(job->rank);

    if (rc != NGX_OK) {
        return rc;
    }

    q = &ngx_http_profile_queue;

    job->worked = 0;

    q->n++;
    q->asked += (job->rank <= NGX_HTTP_PROFILE_JOB_ASKED);
    q->size += job->size;

    ngx_log_debug4(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "profile: job %p starts, rank %d, %uz bytes, jobs: %ui",
                   job, (int) job->rank, job->size, q->n);

    (void) pthread_mutex_lock(&q->mutex);

    job->state = NGX_HTTP_PROFILE_JOB_WAITS;
    ngx_queue_insert_tail(&q->waiting[job->rank], &job->queue);

    /* the thread may have ended since ngx_http_profile_job_room() */

    thread = ngx_http_profile_job_thread_of(job->rank);

    if (thread->running) {
        (void) pthread_cond_signal(&thread->cond);
    }

    running = thread->running;

    (void) pthread_mutex_unlock(&q->mutex);

    if (!running && ngx_http_profile_job_thread(thread) != NGX_OK) {
        (void) ngx_http_profile_job_cancel(job);
        return NGX_ERROR;
    }

    q->wait = NGX_HTTP_PROFILE_POLL_FIRST;

    ngx_http_profile_job_wait(q);

    return NGX_OK;
}


static ngx_http_profile_job_thread_t *
ngx_http_profile_job_thread_of(ngx_http_profile_job_rank_e rank)
{
    return rank <= ngx_http_profile_queue.clients.last
           ? &ngx_http_profile_queue.clients : &ngx_http_profile_queue.others;
}


/* starts the thread if it does not run; after a failure not for a second */

static ngx_int_t
ngx_http_profile_job_thread(ngx_http_profile_job_thread_t *thread)
{
    int                            err;
    ngx_uint_t                     i;
    ngx_http_profile_job_queue_t  *q;

    q = &ngx_http_profile_queue;

    (void) pthread_mutex_lock(&q->mutex);

    i = thread->running;

    (void) pthread_mutex_unlock(&q->mutex);

    if (i) {
        return NGX_OK;
    }

    if (q->stop || q->failed == ngx_time()) {
        return NGX_ERROR;
    }

    if (!q->ready) {

        for (i = 0; i < NGX_HTTP_PROFILE_JOB_RANKS; i++) {
            ngx_queue_init(&q->waiting[i]);
        }

        ngx_queue_init(&q->ended);
        ngx_queue_init(&q->freed);

        q->connection.fd = (ngx_socket_t) -1;

        q->timer.handler = ngx_http_profile_job_timer;
        q->timer.data = &q->connection;
        q->timer.log = ngx_cycle->log;

        q->ready = 1;
    }

    err = ngx_http_profile_job_create(thread);

    if (err) {
        q->failed = ngx_time();

        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, err,
                             "profile: pthread_create() failed");
        return NGX_ERROR;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "profile: thread \"%s\" for jobs created", thread->name);

    return NGX_OK;
}


static int
ngx_http_profile_job_create(ngx_http_profile_job_thread_t *thread)
{
    int       err;
    sigset_t  all, old;

    thread->tid = 0;
    thread->lowered = 0;
    thread->running = 1;

    /* the worker's main thread receives all signals, as its handlers expect */

    sigfillset(&all);

    err = pthread_sigmask(SIG_BLOCK, &all, &old);

    if (err == 0) {
        err = pthread_create(&thread->thread, NULL, ngx_http_profile_job_cycle,
                             thread);

        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
    }

    if (err) {
        thread->running = 0;
    }

    return err;
}


static void *
ngx_http_profile_job_cycle(void *data)
{
    ngx_http_profile_job_thread_t *thread = data;

    ngx_http_profile_job_t        *job;
    ngx_http_profile_job_queue_t  *q;

    /* no capture counts the allocations of the profiler */

    prof_heap_mute();

    (void) prctl(PR_SET_NAME, thread->name, 0, 0, 0);

    q = &ngx_http_profile_queue;

    (void) pthread_mutex_lock(&q->mutex);

    thread->tid = (pid_t) syscall(SYS_gettid);

    if (thread == &q->clients) {
        q->used = 0;

        ngx_http_profile_job_spend();

    } else {

        /*
         * In Linux each thread has its own priority.  An error is ignored,
         * since jobs run with any priority.
         */

        (void) setpriority(PRIO_PROCESS, thread->tid,
                           NGX_HTTP_PROFILE_JOB_NICE);
        prof_profile_background();
    }

    for ( ;; ) {

        job = ngx_http_profile_job_next(thread);

        if (job == NULL) {

            if (q->stop) {
                break;
            }

            if (q->trim) {
                q->trim = 0;

                (void) pthread_mutex_unlock(&q->mutex);

                prof_spare_trim();

                (void) pthread_mutex_lock(&q->mutex);
                continue;
            }

            if (thread->lowered) {
                thread->running = 0;
                (void) pthread_detach(thread->thread);
                break;
            }

            (void) pthread_cond_wait(&thread->cond, &q->mutex);
            continue;
        }

        ngx_queue_remove(&job->queue);

        if (job->state == NGX_HTTP_PROFILE_JOB_FREED) {

            (void) pthread_mutex_unlock(&q->mutex);

            ngx_http_profile_job_release(job);

            (void) pthread_mutex_lock(&q->mutex);
            continue;
        }

        job->state = NGX_HTTP_PROFILE_JOB_RUNS;

        (void) pthread_mutex_unlock(&q->mutex);

        job->work(job->data);

        (void) pthread_mutex_lock(&q->mutex);

        job->worked = 1;
        job->state = NGX_HTTP_PROFILE_JOB_ENDED;
        ngx_queue_insert_tail(&q->ended, &job->queue);

        q->trim = 1;

        if (thread == &q->clients) {
            ngx_http_profile_job_spend();
        }
    }

    (void) pthread_mutex_unlock(&q->mutex);

    return NULL;
}


/* returns the next job, or NULL; frees memory before jobs allocate more */

static ngx_http_profile_job_t *
ngx_http_profile_job_next(ngx_http_profile_job_thread_t *thread)
{
    ngx_uint_t    i;
    ngx_queue_t  *waiting;

    waiting = &ngx_http_profile_queue.freed;

    if (!ngx_queue_empty(waiting)) {
        return ngx_queue_data(ngx_queue_head(waiting), ngx_http_profile_job_t,
                              queue);
    }

    for (i = thread->first; i <= thread->last; i++) {
        waiting = &ngx_http_profile_queue.waiting[i];

        if (!ngx_queue_empty(waiting)) {
            return ngx_queue_data(ngx_queue_head(waiting),
                                  ngx_http_profile_job_t, queue);
        }
    }

    return NULL;
}


/*
 * Takes the CPU time of the thread for clients from its budget.  Context: the
 * event loop or this thread; the mutex is locked, and the thread runs.
 */

static void
ngx_http_profile_job_spend(void)
{
    uint64_t                        now;
    clockid_t                       clock;
    struct timespec                 cpu;
    ngx_http_profile_job_queue_t   *q;
    ngx_http_profile_job_thread_t  *thread;

    q = &ngx_http_profile_queue;
    thread = &q->clients;

    if (thread->tid == 0
        || pthread_getcpuclockid(thread->thread, &clock) != 0
        || clock_gettime(clock, &cpu) == -1)
    {
        return;
    }

    now = prof_now();

    if (q->budgeted) {
        q->budget += (int64_t) (now - q->budgeted) / NGX_HTTP_PROFILE_JOB_PART;
    }

    q->budget = ngx_min(q->budget, NGX_HTTP_PROFILE_JOB_BUDGET);
    q->budgeted = now;

    now = (uint64_t) cpu.tv_sec * 1000000000 + cpu.tv_nsec;

    q->budget -= (int64_t) (now - q->used);
    q->used = now;

    if (q->budget < 0 && !thread->lowered) {
        thread->lowered = 1;

        (void) setpriority(PRIO_PROCESS, thread->tid,
                           NGX_HTTP_PROFILE_JOB_NICE);
    }
}


static void
ngx_http_profile_job_timer(ngx_event_t *ev)
{
    ngx_http_profile_job_queue_t  *q;

    ngx_http_profile_own_work();

    q = &ngx_http_profile_queue;

    ngx_http_profile_job_collect();

    (void) pthread_mutex_lock(&q->mutex);

    if (q->clients.running) {
        ngx_http_profile_job_spend();
    }

    (void) pthread_mutex_unlock(&q->mutex);

    if (q->n && !ev->timer_set) {
        q->wait = ngx_min(q->wait * 2, NGX_HTTP_PROFILE_POLL_LAST);
        ngx_http_profile_job_wait(q);
    }
}


/* nginx exits when all timers are cancelable, and then jobs are dropped */

static void
ngx_http_profile_job_wait(ngx_http_profile_job_queue_t *q)
{
    if (ngx_exiting && !q->exits) {
        q->exits = 1;
        q->exiting = ngx_current_msec;

        prof_profile_hurry(NGX_HTTP_PROFILE_JOB_NAMES,
                           NGX_HTTP_PROFILE_JOB_LATER);
    }

    q->timer.cancelable = (q->exits && q->asked == 0
                           && ngx_current_msec - q->exiting
                              >= NGX_HTTP_PROFILE_JOB_EXIT);

    /* without a master, the process outlives its configuration */

    q->timer.log = ngx_cycle->log;

    ngx_add_timer(&q->timer, q->wait);
}


static void
ngx_http_profile_job_collect(void)
{
    ngx_queue_t                    ended, *first;
    ngx_http_profile_job_t        *job;
    ngx_http_profile_job_queue_t  *q;

    q = &ngx_http_profile_queue;

    ngx_queue_init(&ended);

    (void) pthread_mutex_lock(&q->mutex);

    if (!ngx_queue_empty(&q->ended)) {
        ngx_queue_add(&ended, &q->ended);
        ngx_queue_init(&q->ended);
    }

    (void) pthread_mutex_unlock(&q->mutex);

    while (!ngx_queue_empty(&ended)) {

        first = ngx_queue_head(&ended);
        job = ngx_queue_data(first, ngx_http_profile_job_t, queue);

        ngx_queue_remove(first);
        ngx_http_profile_job_leave(job);

        ngx_log_debug2(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                       "profile: job %p done, jobs: %ui",
                       job, ngx_http_profile_queue.n);

        ngx_http_profile_symbolizer_log(ngx_cycle->log);

        job->done(job->data);
        ngx_http_profile_job_names();
    }
}


static void
ngx_http_profile_job_leave(ngx_http_profile_job_t *job)
{
    job->state = NGX_HTTP_PROFILE_JOB_IDLE;

    ngx_http_profile_queue.n--;
    ngx_http_profile_queue.asked -= (job->rank <= NGX_HTTP_PROFILE_JOB_ASKED);
    ngx_http_profile_queue.size -= job->size;
}


ngx_int_t
ngx_http_profile_job_cancel(ngx_http_profile_job_t *job)
{
    ngx_int_t                      rc;
    ngx_http_profile_job_queue_t  *q;

    q = &ngx_http_profile_queue;
    rc = NGX_DECLINED;

    (void) pthread_mutex_lock(&q->mutex);

    if (job->state == NGX_HTTP_PROFILE_JOB_WAITS) {
        ngx_queue_remove(&job->queue);
        rc = NGX_OK;
    }

    (void) pthread_mutex_unlock(&q->mutex);

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "profile: job %p cancelled: %i", job, rc);

    if (rc == NGX_OK) {
        ngx_http_profile_job_leave(job);
    }

    return rc;
}


void
ngx_http_profile_job_free(ngx_http_profile_job_t *job,
    ngx_http_profile_job_pt handler)
{
    ngx_uint_t                     queued;
    ngx_http_profile_job_queue_t  *q;

    q = &ngx_http_profile_queue;

    job->work = handler;
    job->state = NGX_HTTP_PROFILE_JOB_FREED;

    (void) pthread_mutex_lock(&q->mutex);

    queued = ngx_http_profile_job_wake();

    if (queued) {
        ngx_queue_insert_tail(&q->freed, &job->queue);
    }

    (void) pthread_mutex_unlock(&q->mutex);

    if (!queued) {
        ngx_http_profile_job_release(job);
    }
}


/*
 * Wakes a thread for work that any thread does.  Returns 0 if no thread runs.
 * The mutex is locked.
 */

static ngx_uint_t
ngx_http_profile_job_wake(void)
{
    ngx_http_profile_job_queue_t   *q;
    ngx_http_profile_job_thread_t  *thread;

    q = &ngx_http_profile_queue;
    thread = q->clients.running ? &q->clients : &q->others;

    if (thread->running) {
        (void) pthread_cond_signal(&thread->cond);
    }

    return thread->running;
}


static void
ngx_http_profile_job_release(ngx_http_profile_job_t *job)
{
    ngx_log_debug1(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "profile: job %p freed", job);

    job->work(job->data);
}


void
ngx_http_profile_free_profile(prof_profile_t *p)
{
    ngx_http_profile_free_unused(p ? prof_profile_size(p) : 0,
                                 ngx_http_profile_unused_profile, p);
}


void
ngx_http_profile_free_capture(prof_capture_t *c)
{
    prof_capture_end(c);

    ngx_http_profile_free_unused(prof_capture_size(c),
                                 ngx_http_profile_unused_capture, c);
}


void
ngx_http_profile_free_heap(prof_heap_t *h)
{
    prof_heap_end(h);

    ngx_http_profile_free_unused(prof_heap_size(h),
                                 ngx_http_profile_unused_heap, h);
}


/* frees in the thread; if memory for a job is short, in the event loop */

static void
ngx_http_profile_free_unused(size_t size, ngx_http_profile_job_pt free,
    void *data)
{
    ngx_http_profile_unused_t  *unused;

    unused = (size > NGX_HTTP_PROFILE_JOB_SMALL)
             ? ngx_calloc(sizeof(ngx_http_profile_unused_t), ngx_cycle->log)
             : NULL;

    if (unused == NULL) {
        free(data);
        return;
    }

    unused->free = free;
    unused->data = data;
    unused->job.data = unused;

    ngx_http_profile_job_free(&unused->job, ngx_http_profile_job_unused);
}


static void
ngx_http_profile_job_unused(void *data)
{
    ngx_http_profile_unused_t *unused = data;

    unused->free(unused->data);
    ngx_free(unused);
}


static void
ngx_http_profile_unused_profile(void *data)
{
    prof_profile_destroy(data);
}


static void
ngx_http_profile_unused_capture(void *data)
{
    prof_capture_free(data);
}


static void
ngx_http_profile_unused_heap(void *data)
{
    prof_heap_free(data);
}


void
ngx_http_profile_job_trim(void)
{
    ngx_uint_t                     running;
    ngx_http_profile_job_queue_t  *q;

    q = &ngx_http_profile_queue;

    if (!prof_spare_has_left()) {
        return;
    }

    (void) pthread_mutex_lock(&q->mutex);

    running = ngx_http_profile_job_wake();
    q->trim = running;

    (void) pthread_mutex_unlock(&q->mutex);

    if (!running) {
        prof_spare_trim();
    }
}


ngx_uint_t
ngx_http_profile_jobs(size_t *size)
{
    *size = ngx_http_profile_queue.size;

    return ngx_http_profile_queue.n;
}


void
ngx_http_profile_job_finish_all(void)
{
    ngx_uint_t                     i, dropped, clients, others;
    ngx_queue_t                   *waiting, *first;
    ngx_http_profile_job_queue_t  *q;

    q = &ngx_http_profile_queue;

    if (!q->ready) {
        return;
    }

    dropped = 0;

    (void) pthread_mutex_lock(&q->mutex);

    for (i = NGX_HTTP_PROFILE_JOB_ASKED; i < NGX_HTTP_PROFILE_JOB_RANKS; i++) {
        waiting = &q->waiting[i];

        for (first = ngx_queue_head(waiting);
             first != ngx_queue_sentinel(waiting);
             first = ngx_queue_next(first))
        {
            dropped++;
        }

        if (!ngx_queue_empty(waiting)) {
            ngx_queue_add(&q->ended, waiting);
            ngx_queue_init(waiting);
        }
    }

    q->stop = 1;

    prof_profile_hurry(0, 0);

    clients = q->clients.running;
    others = q->others.running;

    (void) pthread_cond_signal(&q->clients.cond);
    (void) pthread_cond_signal(&q->others.cond);
    (void) pthread_mutex_unlock(&q->mutex);

    if (dropped) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "profile: the worker exits, %ui profiles are not made or "
                      "not stored", dropped);
    }

    if (clients) {
        (void) pthread_join(q->clients.thread, NULL);
    }

    if (others) {
        (void) pthread_join(q->others.thread, NULL);
    }

    q->clients.running = 0;
    q->others.running = 0;

    if (q->timer.timer_set) {
        ngx_del_timer(&q->timer);
    }

    ngx_http_profile_job_collect();
}


/* looks up names for later profiles, if any are asked for */

static void
ngx_http_profile_job_names(void)
{
    static ngx_http_profile_job_t  job;

    if (job.state != NGX_HTTP_PROFILE_JOB_IDLE
        || ngx_http_profile_queue.stop
        || ngx_exiting
        || !prof_profile_later())
    {
        return;
    }

    job.work = ngx_http_profile_job_names_work;
    job.done = ngx_http_profile_job_names_done;
    job.rank = NGX_HTTP_PROFILE_JOB_KEPT;

    /* without a place, the next job tries again */

    (void) ngx_http_profile_job_start(&job);
}


static void
ngx_http_profile_job_names_work(void *data)
{
    prof_profile_look_later();
}


static void
ngx_http_profile_job_names_done(void *data)
{
    /* void */
}
