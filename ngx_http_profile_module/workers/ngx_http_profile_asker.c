
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The asker's part in a capture of workers: orders, reports, time limits, and
 * the response.
 */


#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_log_limit.h"
#include "workers/ngx_http_profile_asker.h"

#include <signal.h>
#include <sys/mman.h>


/* ms after the end of a capture until silent workers are checked */
#define NGX_HTTP_PROFILE_LOOK  100

/*
 * ms, at most, until the bells of workers that have not begun are rung: longer
 * than a worker waits for a processor, and than events usually take
 */
#define NGX_HTTP_PROFILE_RING  1000


static ngx_http_profile_asker_t *ngx_http_profile_asker_create(
    ngx_http_profile_call_t *call, ngx_http_profile_wanted_t *wanted);
static void ngx_http_profile_asker_order(ngx_http_profile_asker_t *s,
    ngx_http_profile_member_t *member);
static void ngx_http_profile_asker_message(ngx_http_profile_asker_t *s,
    ngx_http_profile_message_t *m);
static void ngx_http_profile_asker_ring(ngx_http_profile_asker_t *s,
    ngx_uint_t type);
static ngx_int_t ngx_http_profile_asker_send(
    ngx_http_profile_member_t *member, ngx_http_profile_message_t *m);
static void ngx_http_profile_asker_report(ngx_http_profile_message_t *m);
static ngx_http_profile_asker_t *ngx_http_profile_asker_find(uint64_t id);
static void ngx_http_profile_asker_timer(ngx_event_t *ev);
static ngx_uint_t ngx_http_profile_asker_silent(ngx_http_profile_asker_t *s,
    ngx_uint_t last);
static void ngx_http_profile_asker_merged(void *data);
static void ngx_http_profile_asker_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_asker_free(ngx_http_profile_asker_t *s);


static ngx_queue_t  ngx_http_profile_askers = {
    &ngx_http_profile_askers, &ngx_http_profile_askers
};

void
ngx_http_profile_asker_init(void)
{
    static ngx_http_profile_receivers_t  receivers = {
        ngx_http_profile_share_order,
        ngx_http_profile_share_cancel,
        ngx_http_profile_asker_report,
        ngx_http_profile_state_write
    };

    ngx_http_profile_inbox_receive(&receivers);
}


ngx_int_t
ngx_http_profile_asker_begin(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_uint_t                 i;
    ngx_http_profile_asker_t  *s;

    if (ngx_http_profile_inbox_workers() == 0) {
        return ngx_http_profile_answer_error(call,
                            NGX_HTTP_SERVICE_UNAVAILABLE,
                            "workers cannot be captured until nginx is "
                            "reloaded, see the error log");
    }

    if (wanted->filter.enabled
        && ngx_http_profile_ticket_get(wanted->filter.requests,
                                       ngx_http_profile_asker_title(wanted),
                                       prof_now()
                                       + (uint64_t) wanted->time * 1000000,
                                       &wanted->filter.ticket)
           == NGX_BUSY)
    {
        if (ngx_http_profile_add_text_header(call->request, "Retry-After",
                                             "5")
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_profile_answer_error(call, NGX_HTTP_TOO_MANY_REQUESTS,
                                "%d captures of requests are running already, "
                                "which is the limit",
                                NGX_HTTP_PROFILE_TICKETS);
    }

    s = ngx_http_profile_asker_create(call, wanted);

    if (s == NULL) {

        if (wanted->filter.enabled) {
            ngx_http_profile_ticket_return(wanted->filter.ticket);
        }

        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_profile_call_hold(call, ngx_http_profile_asker_abort, s)
        != NGX_DONE)
    {
        ngx_http_profile_asker_free(s);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < s->nmembers; i++) {
        ngx_http_profile_asker_order(s, &s->members[i]);
    }

    /* the worker does not exit before it has sent the response */

    ngx_add_timer(&s->timer, s->pending ? ngx_min(wanted->time / 2,
                                                  NGX_HTTP_PROFILE_RING)
                                        : 0);

    return NGX_DONE;
}


static ngx_http_profile_asker_t *
ngx_http_profile_asker_create(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    ngx_uint_t                 i, n;
    ngx_http_profile_asker_t  *s;

    n = ngx_http_profile_inbox_workers();

    s = ngx_calloc(sizeof(ngx_http_profile_asker_t)
                   + n * sizeof(ngx_http_profile_member_t),
                   call->request->connection->log);
    if (s == NULL) {
        return NULL;
    }

    s->call = call;
    s->wanted = *wanted;
    s->gzip.accepted = ngx_http_profile_accept_gzip(call->request);

    /*
     * The time is the id: no process with this worker's number, now or after
     * this one was killed, has the same.
     */

    s->id = prof_now();
    s->end = s->id + (uint64_t) wanted->time * 1000000;

    for (i = 0; i < n; i++) {

        if (wanted->worker == -1 || wanted->worker == (ngx_int_t) i) {
            s->members[s->nmembers].worker = i;
            s->members[s->nmembers].fd = -1;
            s->nmembers++;
        }
    }

    prof_buf_init(&s->out);

    s->connection.fd = (ngx_socket_t) -1;
    s->connection.data = s;

    s->timer.handler = ngx_http_profile_asker_timer;
    s->timer.data = &s->connection;
    s->timer.log = ngx_cycle->log;

    ngx_queue_insert_tail(&ngx_http_profile_askers, &s->queue);

    return s;
}


static void
ngx_http_profile_asker_order(ngx_http_profile_asker_t *s,
    ngx_http_profile_member_t *member)
{
    ngx_http_profile_message_t  m;

    ngx_http_profile_asker_message(s, &m);

    member->pid = ngx_http_profile_inbox_pid(member->worker);
    member->state = NGX_HTTP_PROFILE_MEMBER_REFUSED;

    if (!ngx_http_profile_inbox_reaches(member->worker)) {
        return;
    }

    member->fd = memfd_create("profile", MFD_CLOEXEC);

    if (member->fd == -1) {
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                             "profile: memfd_create() failed");
        return;
    }

    /* this worker's own report may come before the call returns */

    member->state = NGX_HTTP_PROFILE_MEMBER_ASKED;
    s->pending++;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: order %uL to worker %ui, process %P",
                   s->id, member->worker, member->pid);

    if (ngx_http_profile_asker_send(member, &m) != NGX_OK) {
        member->state = NGX_HTTP_PROFILE_MEMBER_REFUSED;
        s->pending--;
    }
}


static void
ngx_http_profile_asker_message(ngx_http_profile_asker_t *s,
    ngx_http_profile_message_t *m)
{
    ngx_memzero(m, sizeof(ngx_http_profile_message_t));

    m->type = NGX_HTTP_PROFILE_ORDER;
    m->id = s->id;
    m->end = s->end;
    m->conf = s->wanted.conf;
    m->filter = s->wanted.filter;
    m->interval = s->wanted.interval;
    m->traces = s->wanted.traces / s->nmembers;
}


/*
 * Sends the order, or its end, to the attendants of workers whose event loops
 * have not begun their shares.
 */

static void
ngx_http_profile_asker_ring(ngx_http_profile_asker_t *s, ngx_uint_t type)
{
    ngx_uint_t                  i;
    ngx_http_profile_member_t  *member;
    ngx_http_profile_message_t  m;

    ngx_http_profile_asker_message(s, &m);
    m.type = type;

    for (i = 0; i < s->nmembers; i++) {
        member = &s->members[i];

        if (member->state == NGX_HTTP_PROFILE_MEMBER_ASKED && !member->begun) {
            (void) ngx_http_profile_inbox_ring(member->worker, &m,
                                               type == NGX_HTTP_PROFILE_ORDER
                                               ? member->fd : -1);
        }
    }
}


/*
 * Sends an order to a worker.  The asker starts its own share at once, so one
 * worker takes part even on a busy machine.
 */

static ngx_int_t
ngx_http_profile_asker_send(ngx_http_profile_member_t *member,
    ngx_http_profile_message_t *m)
{
    int  fd;

    if (member->worker != ngx_worker) {
        return ngx_http_profile_inbox_send(member->worker, m, member->fd);
    }

    fd = fcntl(member->fd, F_DUPFD_CLOEXEC, 0);

    if (fd == -1) {
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                             "profile: fcntl(F_DUPFD_CLOEXEC) failed");
        return NGX_ERROR;
    }

    m->worker = ngx_worker;
    m->pid = ngx_pid;

    ngx_http_profile_share_order(m, fd);

    return NGX_OK;
}


static void
ngx_http_profile_asker_report(ngx_http_profile_message_t *m)
{
    ngx_uint_t                  i;
    ngx_http_profile_asker_t   *s;
    ngx_http_profile_member_t  *member;

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "profile: message %uD of worker %uD for %uL, report %uD",
                   m->type, m->worker, m->id, m->report);

    s = ngx_http_profile_asker_find(m->id);

    if (s == NULL) {
        return;
    }

    for (i = 0; i < s->nmembers; i++) {
        member = &s->members[i];

        if (member->worker != m->worker
            || (member->state != NGX_HTTP_PROFILE_MEMBER_ASKED
                && member->state != NGX_HTTP_PROFILE_MEMBER_WRITING))
        {
            continue;
        }

        if (m->type == NGX_HTTP_PROFILE_BEGUN) {
            member->begun = 1;
            return;
        }

        if (m->type == NGX_HTTP_PROFILE_HELD) {
            member->held = 1;
            return;
        }

        member->pid = m->pid;
        member->report = m->report;

        if (m->type == NGX_HTTP_PROFILE_WRITING) {
            member->state = NGX_HTTP_PROFILE_MEMBER_WRITING;
            return;
        }

        member->state = NGX_HTTP_PROFILE_MEMBER_DONE;

        /* a timer ends the call, since that may close the call's connection */

        if (--s->pending == 0 && s->timer.timer_set) {
            ngx_del_timer(&s->timer);
            ngx_add_timer(&s->timer, 0);
        }
    }
}


static ngx_http_profile_asker_t *
ngx_http_profile_asker_find(uint64_t id)
{
    ngx_queue_t               *q;
    ngx_http_profile_asker_t  *s;

    for (q = ngx_queue_head(&ngx_http_profile_askers);
         q != ngx_queue_sentinel(&ngx_http_profile_askers);
         q = ngx_queue_next(q))
    {
        s = ngx_queue_data(q, ngx_http_profile_asker_t, queue);

        if (s->id == id && !s->merging) {
            return s;
        }
    }

    return NULL;
}


/* called when all workers have reported, or when their time is over */

static void
ngx_http_profile_asker_timer(ngx_event_t *ev)
{
    uint64_t                   now;
    ngx_int_t                  rc;
    ngx_uint_t                 writing;
    ngx_connection_t          *c;
    ngx_http_profile_asker_t  *s;

    ngx_http_profile_own_work();

    c = ev->data;
    s = c->data;
    now = prof_now();

    if (s->pending && !s->rung) {
        s->rung = 1;

        ngx_http_profile_asker_ring(s, NGX_HTTP_PROFILE_ORDER);

        ngx_add_timer(ev, (s->end > now ? (s->end - now) / 1000000 : 0)
                          + NGX_HTTP_PROFILE_LOOK);
        return;
    }

    if (s->pending) {
        writing = ngx_http_profile_asker_silent(s,
                      now >= s->end + NGX_HTTP_PROFILE_GRACE * 1000000ULL);

        if (s->pending
            && (!writing || now < s->end + NGX_HTTP_PROFILE_GRACE_BUSY
                                           * 1000000ULL))
        {
            ngx_add_timer(ev, NGX_HTTP_PROFILE_LOOK);
            return;
        }
    }

    s->job.work = ngx_http_profile_asker_merge;
    s->job.done = ngx_http_profile_asker_merged;
    s->job.data = s;
    s->job.rank = NGX_HTTP_PROFILE_JOB_ASKED;
    s->job.size = sizeof(ngx_http_profile_asker_t);

    rc = ngx_http_profile_job_start(&s->job);

    /* the samples exist already, so the job is tried again later */

    if (rc == NGX_BUSY) {
        ngx_add_timer(ev, NGX_HTTP_PROFILE_LOOK);
        return;
    }

    s->merging = 1;

    if (rc != NGX_OK) {
        ngx_http_profile_asker_merged(s);
    }
}


/*
 * Gives up workers that have exited, and after the end those that still run one
 * event.  With "last", also gives up workers that have sent no message.
 * Returns whether all workers that are not given up and have not reported are
 * writing their archives.
 */

static ngx_uint_t
ngx_http_profile_asker_silent(ngx_http_profile_asker_t *s, ngx_uint_t last)
{
    ngx_uint_t                  i, writing;
    ngx_http_profile_member_t  *member;

    writing = 1;

    for (i = 0; i < s->nmembers; i++) {
        member = &s->members[i];

        if (member->state != NGX_HTTP_PROFILE_MEMBER_ASKED
            && member->state != NGX_HTTP_PROFILE_MEMBER_WRITING)
        {
            continue;
        }

        if (kill(member->pid, 0) == -1 && ngx_errno == NGX_ESRCH) {

            /* the worker may have exited before its report was read */

            if (member->missed++ == 0) {
                writing = 0;
                continue;
            }

            member->state = NGX_HTTP_PROFILE_MEMBER_GONE;
            s->pending--;
            continue;
        }

        if (member->state == NGX_HTTP_PROFILE_MEMBER_ASKED) {

            if (!last && (!member->held || member->begun
                          || prof_now() < s->end))
            {
                writing = 0;
                continue;
            }

            member->state = NGX_HTTP_PROFILE_MEMBER_SILENT;
            s->pending--;
        }
    }

    return writing;
}


static void
ngx_http_profile_asker_merged(void *data)
{
    ngx_http_profile_asker_t *s = data;

    ngx_int_t                 rc;
    ngx_http_profile_call_t  *call;

    call = s->call;
    s->merged.failed |= !s->job.worked;

    if (call) {
        rc = ngx_http_profile_asker_answer(s);

        ngx_http_profile_asker_free(s);
        ngx_http_profile_call_end(call, rc);

        return;
    }

    ngx_http_profile_asker_free(s);
}


/* cancels the capture in all workers, since the client has disconnected */

static void
ngx_http_profile_asker_abort(ngx_http_profile_call_t *call)
{
    ngx_uint_t                  i;
    ngx_http_profile_asker_t   *s;
    ngx_http_profile_message_t  m;

    s = call->data;
    s->call = NULL;

    if (s->merging) {

        if (ngx_http_profile_job_cancel(&s->job) == NGX_OK) {
            ngx_http_profile_asker_free(s);
        }

        return;
    }

    if (s->rung) {
        ngx_http_profile_asker_ring(s, NGX_HTTP_PROFILE_CANCEL);
    }

    ngx_memzero(&m, sizeof(ngx_http_profile_message_t));

    m.type = NGX_HTTP_PROFILE_CANCEL;
    m.id = s->id;

    for (i = 0; i < s->nmembers; i++) {

        if (s->members[i].state == NGX_HTTP_PROFILE_MEMBER_ASKED) {
            (void) ngx_http_profile_inbox_send(s->members[i].worker, &m, -1);
        }
    }

    ngx_http_profile_asker_free(s);
}


static void
ngx_http_profile_asker_free(ngx_http_profile_asker_t *s)
{
    ngx_uint_t  i;

    for (i = 0; i < s->nmembers; i++) {

        if (s->members[i].fd != -1) {
            (void) close(s->members[i].fd);
        }
    }

    if (s->timer.timer_set) {
        ngx_del_timer(&s->timer);
    }

    if (s->wanted.filter.enabled) {
        ngx_http_profile_ticket_return(s->wanted.filter.ticket);
    }

    ngx_queue_remove(&s->queue);
    prof_buf_free(&s->out);
    free(s->merged.times);
    ngx_free(s);
}
