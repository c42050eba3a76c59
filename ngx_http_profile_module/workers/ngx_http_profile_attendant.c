
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The attendant: a thread that takes part in captures while the worker's event
 * loop runs one event for long, or for ever.  It sleeps until an asker rings
 * the bell of the worker, which askers do only if the event loop has not begun
 * its share.  It samples the main thread by timers of its own, and touches
 * nothing that belongs to the event loop.  If the event loop runs again, it
 * finds that the order is taken.  Only the event loop captures requests and
 * allocations, so the attendant answers such an order with the reason why the
 * worker does not take part.
 *
 * It also ends the slices of the continuous profile that the event loop does
 * not end in time.
 *
 * Context: the thread, unless stated otherwise.
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_job.h"
#include "workers/ngx_http_profile_inbox.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>


/* captures at the same time */
#define NGX_HTTP_PROFILE_ATTENDED  4

/* orders that are remembered: more than there are captures at once */
#define NGX_HTTP_PROFILE_CLAIMS    64

/* ms between two emptyings of the rings */
#define NGX_HTTP_PROFILE_ATTEND    100


typedef struct {
    prof_stuck_t               *stuck;    /* NULL: free */
    ngx_http_profile_message_t  order;
    int                         fd;
} ngx_http_profile_attended_t;


typedef struct {
    pthread_t                    thread;
    int                          bell;
    int                          stop;    /* eventfd */
    unsigned                     started:1;
    ngx_http_profile_attended_t  captures[NGX_HTTP_PROFILE_ATTENDED];
} ngx_http_profile_attendant_t;


typedef struct {
    ngx_uint_t                   asker;
    uint64_t                     id;
} ngx_http_profile_claim_t;


static void *ngx_http_profile_attendant_cycle(void *data);
static void ngx_http_profile_attendant_hear(void);
static void ngx_http_profile_attendant_begin(ngx_http_profile_message_t *m,
    int fd);
static void ngx_http_profile_attendant_end(ngx_http_profile_attended_t *a,
    ngx_uint_t wanted);
static void ngx_http_profile_attendant_report(ngx_http_profile_message_t *m,
    ngx_uint_t type, ngx_uint_t report);


static ngx_http_profile_attendant_t  attendant;

static pthread_mutex_t           claims_mutex = PTHREAD_MUTEX_INITIALIZER;
static ngx_http_profile_claim_t  claims[NGX_HTTP_PROFILE_CLAIMS];
static ngx_uint_t                nclaims;


/* context: the event loop */

void
ngx_http_profile_attendant_start(ngx_log_t *log)
{
    int       err;
    sigset_t  all, old;

    attendant.bell = ngx_http_profile_inbox_bell();

    if (attendant.bell == -1
        && ngx_http_profile_slice_attend() == NGX_TIMER_INFINITE)
    {
        return;
    }

    attendant.stop = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (attendant.stop == -1) {
        err = ngx_errno;
        goto failed;
    }

    /* signals are for the main thread */

    sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    err = pthread_create(&attendant.thread, NULL,
                         ngx_http_profile_attendant_cycle, NULL);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (err == 0) {
        attendant.started = 1;
        return;
    }

    (void) close(attendant.stop);

failed:

    ngx_http_profile_log(NGX_LOG_WARN, log, err,
                         "profile: no thread for captures while this worker "
                         "runs one event for long");
}


/* context: the event loop */

void
ngx_http_profile_attendant_stop(void)
{
    uint64_t  one;

    if (!attendant.started) {
        return;
    }

    attendant.started = 0;
    one = 1;

    /* a thread that cannot be woken sleeps until the process has ended */

    if (write(attendant.stop, &one, sizeof(uint64_t)) == sizeof(uint64_t)) {
        (void) pthread_join(attendant.thread, NULL);
        (void) close(attendant.stop);
    }
}


/* context: any thread */

ngx_uint_t
ngx_http_profile_attendant_claim(ngx_uint_t asker, uint64_t id)
{
    ngx_uint_t  i, first;

    first = 1;

    (void) pthread_mutex_lock(&claims_mutex);

    for (i = 0; i < NGX_HTTP_PROFILE_CLAIMS; i++) {
        if (claims[i].id == id && claims[i].asker == asker) {
            first = 0;
        }
    }

    if (first) {
        i = nclaims++ % NGX_HTTP_PROFILE_CLAIMS;
        claims[i].asker = asker;
        claims[i].id = id;
    }

    (void) pthread_mutex_unlock(&claims_mutex);

    return first;
}


static void *
ngx_http_profile_attendant_cycle(void *data)
{
    uint64_t                      now;
    ngx_msec_t                    wait;
    ngx_uint_t                    i, n;
    struct pollfd                 fds[2];
    ngx_http_profile_attended_t  *a;

    /* no capture counts the allocations of the profiler */

    prof_heap_mute();

    (void) prctl(PR_SET_NAME, "profile", 0, 0, 0);

    fds[0].fd = attendant.bell;
    fds[0].events = POLLIN;
    fds[1].fd = attendant.stop;
    fds[1].events = POLLIN;

    n = 0;

    for ( ;; ) {

        wait = ngx_http_profile_slice_attend();

        if (n) {
            wait = ngx_min(wait, NGX_HTTP_PROFILE_ATTEND);
        }

        (void) poll(fds, 2, wait == NGX_TIMER_INFINITE ? -1 : (int) wait);

        if (fds[1].revents) {
            break;
        }

        if (fds[0].revents) {
            ngx_http_profile_attendant_hear();
        }

        now = prof_now();
        n = 0;

        for (i = 0; i < NGX_HTTP_PROFILE_ATTENDED; i++) {
            a = &attendant.captures[i];

            if (a->stuck == NULL) {
                continue;
            }

            prof_stuck_drain(a->stuck);

            if (now >= a->order.end) {
                ngx_http_profile_attendant_end(a, 1);

            } else if (kill(a->order.pid, 0) == -1 && ngx_errno == NGX_ESRCH) {
                ngx_http_profile_attendant_end(a, 0);

            } else {
                n++;
            }
        }
    }

    for (i = 0; i < NGX_HTTP_PROFILE_ATTENDED; i++) {

        if (attendant.captures[i].stuck) {
            ngx_http_profile_attendant_end(&attendant.captures[i], 1);
        }
    }

    return NULL;
}


static void
ngx_http_profile_attendant_hear(void)
{
    int                           fd;
    ngx_uint_t                    i;
    ngx_http_profile_message_t    m;
    ngx_http_profile_attended_t  *a;

    while (ngx_http_profile_inbox_read(attendant.bell, &m, &fd) == NGX_OK) {

        if (m.type == NGX_HTTP_PROFILE_ORDER && fd != -1) {
            ngx_http_profile_attendant_begin(&m, fd);
            continue;
        }

        if (fd != -1) {
            (void) close(fd);
        }

        for (i = 0; i < NGX_HTTP_PROFILE_ATTENDED; i++) {
            a = &attendant.captures[i];

            if (a->stuck && a->order.id == m.id
                && a->order.worker == m.worker)
            {
                ngx_http_profile_attendant_end(a, 0);
            }
        }
    }
}


static void
ngx_http_profile_attendant_begin(ngx_http_profile_message_t *m, int fd)
{
    ngx_uint_t                    i;
    const char                   *err;
    ngx_http_profile_attended_t  *a;

    if (m->filter.enabled || m->conf.mode == PROF_MODE_OBJECT) {
        ngx_http_profile_attendant_report(m, NGX_HTTP_PROFILE_HELD, 0);
        (void) close(fd);
        return;
    }

    if (m->end <= prof_now()
        || !ngx_http_profile_attendant_claim(m->worker, m->id))
    {
        (void) close(fd);
        return;
    }

    for (i = 0; i < NGX_HTTP_PROFILE_ATTENDED; i++) {
        a = &attendant.captures[i];

        if (a->stuck) {
            continue;
        }

        a->stuck = prof_stuck_create(&m->conf, &err);

        if (a->stuck) {
            a->order = *m;
            a->fd = fd;
            return;
        }

        ngx_http_profile_attendant_report(m, NGX_HTTP_PROFILE_REPORT,
                                          NGX_HTTP_PROFILE_FAILED);
        (void) close(fd);
        return;
    }

    ngx_http_profile_attendant_report(m, NGX_HTTP_PROFILE_REPORT,
                                      NGX_HTTP_PROFILE_BUSY);
    (void) close(fd);
}


/* wanted: the asker gets the profile */

static void
ngx_http_profile_attendant_end(ngx_http_profile_attended_t *a,
    ngx_uint_t wanted)
{
    ngx_uint_t       report;
    prof_profile_t  *p;

    p = prof_stuck_finish(a->stuck, "worker");
    a->stuck = NULL;

    if (wanted) {
        report = (p && prof_profile_complete(p) == PROF_OK
                  && ngx_http_profile_share_archive(p, a->fd) == NGX_OK)
                 ? NGX_HTTP_PROFILE_STUCK : NGX_HTTP_PROFILE_FAILED;

        ngx_http_profile_attendant_report(&a->order, NGX_HTTP_PROFILE_REPORT,
                                          report);
    }

    prof_profile_destroy(p);
    prof_spare_trim();

    (void) close(a->fd);
}


static void
ngx_http_profile_attendant_report(ngx_http_profile_message_t *m,
    ngx_uint_t type, ngx_uint_t report)
{
    ngx_http_profile_message_t  answer;

    ngx_memzero(&answer, sizeof(ngx_http_profile_message_t));

    answer.type = type;
    answer.report = report;
    answer.id = m->id;

    (void) ngx_http_profile_inbox_send(m->worker, &answer, -1);
}
