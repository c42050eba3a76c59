
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The rings of a process, and its questions to its opener.
 */


#include "kernel/prof_kernel_wire.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>


/* us, for the kernel's functions */

#define PROF_KERNEL_WAIT   20000

#define PROF_KERNEL_AGAIN  -2

/*
 * Pages of a ring.  The handler empties it each time.  All rings of a user
 * count for the kernel's limit perf_event_mlock_kb, so they are small.
 */

#define PROF_KERNEL_PAGES  2


static void prof_kernel_receive_ring(prof_kernel_ring_t *ring, int us);
static int prof_kernel_ask(const prof_kernel_question_t *q);
static int prof_kernel_await(int sock, prof_kernel_answer_t *a, int us);
static int prof_kernel_map(prof_kernel_ring_t *ring, int fd);
static size_t prof_kernel_size(void);


static int          prof_kernel_sock = -1;
static uint32_t     prof_kernel_rings;
static int          prof_kernel_late;     /* the last answer was late */
static const char  *prof_kernel_err;


void
prof_kernel_use(int sock)
{
    prof_kernel_sock = sock;
    prof_kernel_err = NULL;
}


const char *
prof_kernel_error(void)
{
    return prof_kernel_err;
}


prof_kernel_ring_t *
prof_kernel_open(int tid, int signo, int wait)
{
    prof_kernel_ring_t      *ring;
    prof_kernel_question_t   q;

    if (prof_kernel_sock == -1 || prof_kernel_rings == PROF_KERNEL_RINGS) {
        return NULL;
    }

    ring = calloc(1, sizeof(prof_kernel_ring_t));
    if (ring == NULL) {
        prof_kernel_err = "no memory";
        return NULL;
    }

    q.what = PROF_KERNEL_ASK_EVENT;
    q.tid = tid;
    q.signo = signo;

    ring->sock = prof_kernel_ask(&q);

    if (ring->sock == -1) {
        free(ring);
        return NULL;
    }

    prof_kernel_rings++;

    prof_kernel_receive_ring(ring, prof_kernel_late ? 0 : wait);

    if (ring->sock == -1 && ring->page == NULL) {
        prof_kernel_close(ring);
        return NULL;
    }

    if (wait) {
        prof_kernel_late = (ring->page == NULL);
    }

    return ring;
}


void
prof_kernel_ready(prof_kernel_ring_t *ring)
{
    if (ring && ring->sock != -1) {
        prof_kernel_receive_ring(ring, 0);
    }
}


/* an answer without a descriptor closes the socket, and the ring stays empty */

static void
prof_kernel_receive_ring(prof_kernel_ring_t *ring, int us)
{
    int                   fd;
    prof_kernel_answer_t  a;

    fd = prof_kernel_await(ring->sock, &a, us);

    if (fd == PROF_KERNEL_AGAIN) {
        return;
    }

    (void) close(ring->sock);
    ring->sock = -1;

    if (fd == -1) {
        return;
    }

    prof_kernel_err = NULL;
    prof_kernel_late = 0;

    ring->nentries = a.nentries;
    memcpy(ring->entries, a.entries, sizeof(a.entries));

    if (prof_kernel_map(ring, fd) != PROF_OK) {
        prof_kernel_err = "the limit of memory for perf events "
                          "(kernel.perf_event_mlock_kb) is reached";
    }

    (void) close(fd);
}


static int
prof_kernel_map(prof_kernel_ring_t *ring, int fd)
{
    void    *p;
    size_t   size;

    size = prof_kernel_size();

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED) {
        return PROF_ERROR;
    }

    ring->data = (char *) p + sysconf(_SC_PAGESIZE);
    ring->mask = PROF_KERNEL_PAGES * sysconf(_SC_PAGESIZE) - 1;

    __atomic_store_n(&ring->page, p, __ATOMIC_RELEASE);

    return PROF_OK;
}


static size_t
prof_kernel_size(void)
{
    return (1 + PROF_KERNEL_PAGES) * sysconf(_SC_PAGESIZE);
}


void
prof_kernel_close(prof_kernel_ring_t *ring)
{
    if (ring == NULL) {
        return;
    }

    if (ring->sock != -1) {
        (void) close(ring->sock);
    }

    if (ring->page) {
        (void) munmap(ring->page, prof_kernel_size());
    }

    free(ring);

    prof_kernel_rings--;
}


int
prof_kernel_symbols(prof_kernel_symbols_t *syms)
{
    int                      fd, rc, sock;
    prof_kernel_answer_t     a;
    prof_kernel_question_t   q;

    memset(syms, 0, sizeof(prof_kernel_symbols_t));

    if (prof_kernel_sock == -1) {
        return PROF_ERROR;
    }

    memset(&q, 0, sizeof(prof_kernel_question_t));
    q.what = PROF_KERNEL_ASK_SYMBOLS;

    sock = prof_kernel_ask(&q);

    if (sock == -1) {
        return PROF_ERROR;
    }

    fd = prof_kernel_await(sock, &a, PROF_KERNEL_WAIT);

    (void) close(sock);

    if (fd < 0) {
        return PROF_ERROR;
    }

    rc = prof_kernel_symbols_read(syms, fd);

    (void) close(fd);

    return rc;
}


/* returns the socket that receives the answer, or -1 */

static int
prof_kernel_ask(const prof_kernel_question_t *q)
{
    int  rc, fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, fds) == -1) {
        prof_kernel_err = "no descriptor for a socket";
        return -1;
    }

    rc = prof_kernel_send(prof_kernel_sock, q, sizeof(*q), fds[1]);

    if (rc != PROF_OK) {
        prof_kernel_err = errno == EAGAIN ? "the opener is busy"
                                          : "the opener has ended";
        (void) close(fds[0]);
    }

    (void) close(fds[1]);

    return rc == PROF_OK ? fds[0] : -1;
}


/* returns the requested descriptor, -1, or PROF_KERNEL_AGAIN: no answer yet */

static int
prof_kernel_await(int sock, prof_kernel_answer_t *a, int us)
{
    int              fd, rc;
    struct pollfd    pfd;
    struct timespec  ts;

    pfd.fd = sock;
    pfd.events = POLLIN;

    ts.tv_sec = 0;
    ts.tv_nsec = us * 1000;

    if (ppoll(&pfd, 1, &ts, NULL) != 1) {
        prof_kernel_err = "the opener did not answer in time";
        return PROF_KERNEL_AGAIN;
    }

    rc = prof_kernel_receive(sock, a, sizeof(*a), &fd, NULL);

    if (rc == PROF_OK && a->err == 0 && fd != -1
        && a->nentries <= PROF_KERNEL_ENTRIES)
    {
        return fd;
    }

    prof_kernel_err = rc == PROF_OK ? "the opener is not permitted to open it"
                                    : "the opener has ended";

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}
