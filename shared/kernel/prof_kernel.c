
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


/* ms */

#define PROF_KERNEL_WAIT   20

/*
 * Pages of a ring.  The handler empties it each time.  All rings of a user
 * count for the kernel's limit perf_event_mlock_kb, so they are small.
 */

#define PROF_KERNEL_PAGES  2


static int prof_kernel_ask(const prof_kernel_question_t *q,
    prof_kernel_answer_t *a);
static int prof_kernel_await(int sock, prof_kernel_answer_t *a);
static int prof_kernel_map(prof_kernel_ring_t *ring, int fd);
static size_t prof_kernel_size(void);


static int          prof_kernel_sock = -1;
static uint32_t     prof_kernel_rings;
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
prof_kernel_open(int tid, int signo)
{
    int                      fd;
    prof_kernel_ring_t      *ring;
    prof_kernel_answer_t     a;
    prof_kernel_question_t   q;

    if (prof_kernel_sock == -1 || prof_kernel_rings == PROF_KERNEL_RINGS) {
        return NULL;
    }

    q.what = PROF_KERNEL_ASK_EVENT;
    q.tid = tid;
    q.signo = signo;

    fd = prof_kernel_ask(&q, &a);

    if (fd == -1) {
        return NULL;
    }

    ring = calloc(1, sizeof(prof_kernel_ring_t));

    if (ring == NULL || prof_kernel_map(ring, fd) != PROF_OK) {
        prof_kernel_err = ring ? "the limit of memory for perf events "
                                 "(kernel.perf_event_mlock_kb) is reached"
                               : "no memory";
        (void) close(fd);
        free(ring);
        return NULL;
    }

    (void) close(fd);

    ring->nentries = a.nentries;
    memcpy(ring->entries, a.entries, sizeof(a.entries));

    prof_kernel_rings++;
    prof_kernel_err = NULL;

    return ring;
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

    ring->page = p;
    ring->data = (char *) p + sysconf(_SC_PAGESIZE);
    ring->mask = PROF_KERNEL_PAGES * sysconf(_SC_PAGESIZE) - 1;

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

    (void) munmap(ring->page, prof_kernel_size());
    free(ring);

    prof_kernel_rings--;
}


int
prof_kernel_symbols(prof_kernel_symbols_t *syms)
{
    int                      fd, rc;
    prof_kernel_answer_t     a;
    prof_kernel_question_t   q;

    memset(syms, 0, sizeof(prof_kernel_symbols_t));

    if (prof_kernel_sock == -1) {
        return PROF_ERROR;
    }

    memset(&q, 0, sizeof(prof_kernel_question_t));
    q.what = PROF_KERNEL_ASK_SYMBOLS;

    fd = prof_kernel_ask(&q, &a);

    if (fd == -1) {
        return PROF_ERROR;
    }

    rc = prof_kernel_symbols_read(syms, fd);

    (void) close(fd);

    return rc;
}


/* returns the requested descriptor, or -1 */

static int
prof_kernel_ask(const prof_kernel_question_t *q, prof_kernel_answer_t *a)
{
    int  fd, fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, fds) == -1) {
        prof_kernel_err = "no descriptor for a socket";
        return -1;
    }

    fd = -1;

    if (prof_kernel_send(prof_kernel_sock, q, sizeof(*q), fds[1]) == PROF_OK) {
        (void) close(fds[1]);
        fd = prof_kernel_await(fds[0], a);

    } else {
        prof_kernel_err = errno == EAGAIN ? "the opener is busy"
                                          : "the opener has ended";
        (void) close(fds[1]);
    }

    (void) close(fds[0]);

    return fd;
}


static int
prof_kernel_await(int sock, prof_kernel_answer_t *a)
{
    int            fd, rc;
    struct pollfd  pfd;

    pfd.fd = sock;
    pfd.events = POLLIN;

    if (poll(&pfd, 1, PROF_KERNEL_WAIT) != 1) {
        prof_kernel_err = "the opener did not answer in time";
        return -1;
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
