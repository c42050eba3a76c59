
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Inboxes of workers: a pair of datagram sockets for each worker, made by the
 * master.  Shared memory beside them contains the process of each number, the
 * states of the workers, and counters for captures that end after a number of
 * requests of all workers.
 *
 * The process that replaces a killed worker reads the messages that the killed
 * worker has not read.  So messages contain the time until which they are
 * valid.
 */


#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_log_limit.h"
#include "workers/ngx_http_profile_inbox.h"

#include <ngx_channel.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>


/* descriptors for files that nginx opens, beside those of workers */
#define NGX_HTTP_PROFILE_INBOX_SPARE  16


/* a pair of sockets; both are -1 if descriptors were short */

typedef struct {
    int                   out;          /* all processes write to it */
    int                   in;           /* the worker reads from it */
} ngx_http_profile_pair_t;


/*
 * What all processes know of a worker.  They inherit the sockets from the
 * master.
 */

typedef struct {
    ngx_http_profile_state_t   state;
    volatile ngx_pid_t         pid;
    volatile ngx_uint_t        deaf;    /* the inbox is not read */
    ngx_http_profile_pair_t    pair;
    ngx_http_profile_pair_t    bell;    /* the attendant reads from it */
} ngx_http_profile_known_t;


/* the shared memory of the workers */

typedef struct {
    ngx_http_profile_ticket_t  tickets[NGX_HTTP_PROFILE_TICKETS];
    ngx_http_profile_known_t   known[];
} ngx_http_profile_board_t;


#define ngx_http_profile_board_size(n)                                        \
    (sizeof(ngx_http_profile_board_t)                                         \
     + (n) * sizeof(ngx_http_profile_known_t))


static void ngx_http_profile_inbox_pairs(ngx_log_t *log);
static void ngx_http_profile_inbox_bells(void);
static ngx_int_t ngx_http_profile_inbox_pair(ngx_http_profile_pair_t *pair);
static void ngx_http_profile_inbox_close_pair(ngx_http_profile_pair_t *pair,
    ngx_uint_t worker);
static ngx_uint_t ngx_http_profile_inbox_room(int fd);
static void ngx_http_profile_inbox_spare(ngx_cycle_t *cycle, ngx_uint_t use);
static void ngx_http_profile_inbox_handler(ngx_event_t *ev);
static ssize_t ngx_http_profile_inbox_write(int out,
    ngx_http_profile_message_t *m, int fd);
static void ngx_http_profile_inbox_got(ngx_http_profile_message_t *m, int fd);


/* NULL if memory was short, or if the configuration needs no inboxes */

static ngx_http_profile_board_t  *ngx_http_profile_board;
static ngx_uint_t                 ngx_http_profile_nworkers;

static ngx_http_profile_receivers_t      *ngx_http_profile_receivers;

/* 1: the workers of this configuration have one more connection */
static ngx_uint_t                 ngx_http_profile_spare;

/* 1: this process has closed the reading ends of other workers */

static ngx_uint_t                 ngx_http_profile_opened;


void
ngx_http_profile_inbox_init(ngx_cycle_t *cycle)
{
    ngx_uint_t                 i, n;
    ngx_core_conf_t           *ccf;
    ngx_http_profile_board_t  *board;

    /* without a master, the process remains the only worker */

    if (ngx_process == NGX_PROCESS_SINGLE && ngx_http_profile_board) {
        return;
    }

    ngx_http_profile_inbox_close();

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    n = ccf->master ? (ngx_uint_t) ccf->worker_processes : 1;

    board = mmap(NULL, ngx_http_profile_board_size(n), PROT_READ|PROT_WRITE,
                 MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (board == MAP_FAILED) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "profile: mmap() failed, captures of workers are not "
                      "available until the next reload");
        return;
    }

    for (i = 0; i < n; i++) {
        board->known[i].pair.out = -1;
        board->known[i].pair.in = -1;
        board->known[i].bell.out = -1;
        board->known[i].bell.in = -1;
    }

    ngx_http_profile_board = board;
    ngx_http_profile_nworkers = n;

    if (ccf->master) {
        ngx_http_profile_inbox_pairs(cycle->log);
        ngx_http_profile_inbox_bells();

        /* the inbox takes none of the worker_connections */

        cycle->connection_n++;
        ngx_http_profile_spare = 1;
    }
}


static void
ngx_http_profile_inbox_pairs(ngx_log_t *log)
{
    ngx_uint_t  i;

    for (i = 0; i < ngx_http_profile_nworkers; i++) {

        if (ngx_http_profile_inbox_pair(&ngx_http_profile_board->known[i].pair)
            != NGX_OK)
        {
            break;
        }
    }

    if (i < ngx_http_profile_nworkers) {
        ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                      "profile: socketpair() failed, until the next reload "
                      "%ui of %ui workers take part only in captures that "
                      "they are asked for themselves",
                      ngx_http_profile_nworkers - i,
                      ngx_http_profile_nworkers);
    }
}


/*
 * A single worker has no bell: the worker would have to ring it itself.
 * Without descriptors, stuck workers are not captured.
 */

static void
ngx_http_profile_inbox_bells(void)
{
    ngx_uint_t  i;

    if (ngx_http_profile_nworkers == 1
        || ngx_http_profile_board->known[ngx_http_profile_nworkers - 1].pair.in
           == -1)
    {
        return;
    }

    for (i = 0; i < ngx_http_profile_nworkers; i++) {

        if (ngx_http_profile_inbox_pair(&ngx_http_profile_board->known[i].bell)
            != NGX_OK)
        {
            return;
        }
    }
}


static ngx_int_t
ngx_http_profile_inbox_pair(ngx_http_profile_pair_t *pair)
{
    int  s[2];

    if (socketpair(AF_UNIX, SOCK_DGRAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0, s)
        == -1)
    {
        return NGX_ERROR;
    }

    if (!ngx_http_profile_inbox_room(ngx_max(s[0], s[1]))) {
        (void) close(s[0]);
        (void) close(s[1]);
        ngx_set_errno(NGX_EMFILE);
        return NGX_ERROR;
    }

    pair->out = s[0];
    pair->in = s[1];

    return NGX_OK;
}


/*
 * Returns whether nginx keeps enough free descriptors.  The kernel allocates
 * the lowest free descriptor.  The descriptors above it must suffice for files
 * that nginx opens when it starts workers.
 */

static ngx_uint_t
ngx_http_profile_inbox_room(int fd)
{
    struct rlimit  rlmt;

    return getrlimit(RLIMIT_NOFILE, &rlmt) == -1
           || rlmt.rlim_cur == RLIM_INFINITY
           || (rlim_t) fd + 2 * ngx_http_profile_nworkers
              + NGX_HTTP_PROFILE_INBOX_SPARE
              < rlmt.rlim_cur;
}


/*
 * Closes this process's descriptors of the inboxes.  Workers have descriptors
 * of their own, so the inboxes of a previous configuration remain.
 */

void
ngx_http_profile_inbox_close(void)
{
    ngx_uint_t  i;

    if (ngx_http_profile_board == NULL) {
        return;
    }

    for (i = 0; i < ngx_http_profile_nworkers; i++) {
        ngx_http_profile_inbox_close_pair(
                                 &ngx_http_profile_board->known[i].pair, i);
        ngx_http_profile_inbox_close_pair(
                                 &ngx_http_profile_board->known[i].bell, i);
    }

    (void) munmap(ngx_http_profile_board,
                  ngx_http_profile_board_size(ngx_http_profile_nworkers));

    ngx_http_profile_nworkers = 0;
    ngx_http_profile_board = NULL;
    ngx_http_profile_spare = 0;
}


static void
ngx_http_profile_inbox_close_pair(ngx_http_profile_pair_t *pair,
    ngx_uint_t worker)
{
    if (pair->out == -1) {
        return;
    }

    (void) close(pair->out);

    if (!ngx_http_profile_opened || worker == ngx_worker) {
        (void) close(pair->in);
    }
}


void
ngx_http_profile_inbox_receive(ngx_http_profile_receivers_t *receivers)
{
    ngx_http_profile_receivers = receivers;
}


void
ngx_http_profile_inbox_open(ngx_cycle_t *cycle)
{
    ngx_uint_t                 i;
    ngx_http_profile_pair_t   *pair;
    ngx_http_profile_known_t  *known;

    if (ngx_http_profile_board == NULL || ngx_process == NGX_PROCESS_HELPER) {
        return;
    }

    known = &ngx_http_profile_board->known[ngx_worker];

    if (ngx_http_profile_spare) {
        ngx_http_profile_inbox_spare(cycle, known->pair.in != -1);
    }

    for (i = 0; i < ngx_http_profile_nworkers; i++) {
        pair = &ngx_http_profile_board->known[i].pair;

        if (i != ngx_worker && pair->in != -1) {
            (void) close(pair->in);
        }

        pair = &ngx_http_profile_board->known[i].bell;

        if (i != ngx_worker && pair->in != -1) {
            (void) close(pair->in);
        }
    }

    ngx_http_profile_opened = 1;

    /* an earlier process may have died while it wrote its state */

    known->state.when = 0;
    known->state.sequence = 0;
    known->state.asked = 0;

    known->pid = ngx_pid;
    known->deaf = (known->pair.in == -1);

    /* nginx neither closes "channel" connections at exit nor logs them */

    if (!known->deaf
        && ngx_add_channel_event(cycle, known->pair.in, NGX_READ_EVENT,
                                 ngx_http_profile_inbox_handler)
           == NGX_ERROR)
    {
        known->deaf = 1;

        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "profile: no connection for the inbox, this worker "
                      "takes part only in captures that it is asked for "
                      "itself");
    }
}


/*
 * Takes the connection that inbox_init() has added out of the numbers of nginx
 * and of other modules: it is the last of the array, behind the end that they
 * see.  nginx has linked all free connections when it began the process.  If
 * the connection is for use, it becomes the next free one.
 */

static void
ngx_http_profile_inbox_spare(ngx_cycle_t *cycle, ngx_uint_t use)
{
    ngx_connection_t  *c, *last;

    last = &cycle->connections[--cycle->connection_n];

    /* ngx_get_connection() takes free connections from the other end */

    if (cycle->free_connections == last) {
        cycle->free_connections = last->data;

    } else {
        for (c = cycle->free_connections; c && c->data != last; c = c->data) {
            /* void */
        }

        if (c == NULL) {
            return;
        }

        c->data = last->data;
    }

    cycle->free_connection_n--;

    if (use) {
        last->data = cycle->free_connections;
        cycle->free_connections = last;
        cycle->free_connection_n++;
    }
}


ngx_uint_t
ngx_http_profile_inbox_reaches(ngx_uint_t worker)
{
    ngx_http_profile_known_t  *known;

    if (worker == ngx_worker) {
        return 1;
    }

    if (worker >= ngx_http_profile_nworkers) {
        return 0;
    }

    known = &ngx_http_profile_board->known[worker];

    return known->pair.out != -1 && !known->deaf;
}


ngx_uint_t
ngx_http_profile_inbox_workers(void)
{
    return ngx_http_profile_nworkers;
}


ngx_pid_t
ngx_http_profile_inbox_pid(ngx_uint_t worker)
{
    return ngx_http_profile_board->known[worker].pid;
}


ngx_http_profile_state_t *
ngx_http_profile_inbox_state(ngx_uint_t worker)
{
    return &ngx_http_profile_board->known[worker].state;
}


ngx_http_profile_ticket_t *
ngx_http_profile_inbox_tickets(void)
{
    return ngx_http_profile_board ? ngx_http_profile_board->tickets : NULL;
}


ngx_int_t
ngx_http_profile_inbox_send(ngx_uint_t worker, ngx_http_profile_message_t *m,
    int fd)
{
    ssize_t  n;

    if (worker == ngx_worker) {
        m->size = ngx_http_profile_message_size(m->type);
        m->worker = ngx_worker;
        m->pid = ngx_pid;

        ngx_http_profile_inbox_got(m, fd);
        return NGX_OK;
    }

    /* a request that is freed late may send when the inboxes are closed */

    if (!ngx_http_profile_inbox_reaches(worker)) {
        return NGX_ERROR;
    }

    n = ngx_http_profile_inbox_write(
                   ngx_http_profile_board->known[worker].pair.out, m, fd);

    ngx_log_debug4(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "profile: message %uD for %uL to worker %ui: %z",
                   m->type, m->id, worker, n);

    if (n == -1) {
        ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                             "profile: cannot reach worker %ui", worker);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_inbox_ring(ngx_uint_t worker, ngx_http_profile_message_t *m,
    int fd)
{
    int  out;

    if (worker >= ngx_http_profile_nworkers) {
        return NGX_ERROR;
    }

    out = ngx_http_profile_board->known[worker].bell.out;

    return out == -1 || ngx_http_profile_inbox_write(out, m, fd) == -1
           ? NGX_ERROR : NGX_OK;
}


int
ngx_http_profile_inbox_bell(void)
{
    return ngx_http_profile_board
           ? ngx_http_profile_board->known[ngx_worker].bell.in : -1;
}


static ssize_t
ngx_http_profile_inbox_write(int out, ngx_http_profile_message_t *m, int fd)
{
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *cmsg;

    union {
        struct cmsghdr  align;
        char            data[CMSG_SPACE(sizeof(int))];
    } control;

    m->size = ngx_http_profile_message_size(m->type);
    m->worker = ngx_worker;
    m->pid = ngx_pid;

    ngx_memzero(&msg, sizeof(struct msghdr));

    iov.iov_base = m;
    iov.iov_len = m->size;

    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;

    if (fd != -1) {
        ngx_memzero(&control, sizeof(control));

        msg.msg_control = &control;
        msg.msg_controllen = sizeof(control);

        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int));

        ngx_memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
    }

    return sendmsg(out, &msg, 0);
}


static void
ngx_http_profile_inbox_handler(ngx_event_t *ev)
{
    int                          fd;
    ngx_connection_t            *c;
    ngx_http_profile_message_t   m;

    ngx_http_profile_own_work();

    c = ev->data;

    while (ngx_http_profile_inbox_read(c->fd, &m, &fd) == NGX_OK) {
        ngx_http_profile_inbox_got(&m, fd);
    }
}


/* returns NGX_DECLINED after the last message */

ngx_int_t
ngx_http_profile_inbox_read(int in, ngx_http_profile_message_t *m, int *fd)
{
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *cmsg;

    union {
        struct cmsghdr  align;
        char            data[CMSG_SPACE(sizeof(int))];
    } control;

    ngx_memzero(&msg, sizeof(struct msghdr));

    iov.iov_base = m;
    iov.iov_len = sizeof(ngx_http_profile_message_t);

    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = &control;
    msg.msg_controllen = sizeof(control);

    n = recvmsg(in, &msg, MSG_CMSG_CLOEXEC);

    if (n == -1) {

        if (ngx_errno != NGX_EAGAIN) {
            ngx_http_profile_log(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                                 "profile: recvmsg() failed");
        }

        return NGX_DECLINED;
    }

    *fd = -1;

    cmsg = CMSG_FIRSTHDR(&msg);

    if (cmsg && cmsg->cmsg_level == SOL_SOCKET
        && cmsg->cmsg_type == SCM_RIGHTS)
    {
        ngx_memcpy(fd, CMSG_DATA(cmsg), sizeof(int));
    }

    if (n < (ssize_t) ngx_http_profile_message_size(NGX_HTTP_PROFILE_REPORT)
        || m->size != (uint32_t) n
        || m->size != ngx_http_profile_message_size(m->type))
    {
        m->type = NGX_HTTP_PROFILE_CANCEL;
        m->id = 0;
    }

    return NGX_OK;
}


static void
ngx_http_profile_inbox_got(ngx_http_profile_message_t *m, int fd)
{
    ngx_log_debug3(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "profile: message %uD for %uL from worker %uD",
                   m->type, m->id, m->worker);

    if (m->type == NGX_HTTP_PROFILE_ORDER && fd != -1) {
        ngx_http_profile_receivers->order(m, fd);
        return;
    }

    if (fd != -1) {
        (void) close(fd);
    }

    switch (m->type) {

    case NGX_HTTP_PROFILE_CANCEL:
        ngx_http_profile_receivers->cancel(m);
        break;

    case NGX_HTTP_PROFILE_BEGUN:
    case NGX_HTTP_PROFILE_HELD:
    case NGX_HTTP_PROFILE_WRITING:
    case NGX_HTTP_PROFILE_REPORT:
        ngx_http_profile_receivers->report(m);
        break;

    case NGX_HTTP_PROFILE_STATE:
        if (ngx_http_profile_board) {
            ngx_http_profile_receivers->state();
        }

        break;

    default:
        break;
    }
}
