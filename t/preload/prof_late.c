
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library measures how late a worker handles data
 * that has arrived.  It reads the clock itself and uses nothing of the module.
 * For each response of an upstream it appends a line to the file that
 * PROF_LATE names:
 *
 *     id late-to-the-request late-to-the-response
 *
 * The times are in nanoseconds.  The request that is sent to the upstream has
 * a header "X-Id".  The response has this header, too, and "X-Sent": the
 * CLOCK_MONOTONIC time when it was sent.
 *
 * If data arrives while the worker sleeps in epoll_wait(), it waits from the
 * return of epoll_wait() until it is read.  If data arrives while the worker
 * runs, it waits from that moment on.  The time of a request begins with the
 * poll that reports it.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>


#define LATE_REQUESTS  1024
#define LATE_ID        32


typedef struct {
    char      id[LATE_ID + 1];
    uint64_t  late;
} late_request_t;


static void late_start(void) __attribute__((constructor));
static uint64_t late_now(void);
static void *late_next(const char *name);
static const char *late_header(const char *p, const char *last,
    const char *name);
static late_request_t *late_find(const char *id);
static void late_received(const char *p, ssize_t n);


static char             late_file[256];
static uint64_t         late_poll_start;
static uint64_t         late_poll_end;
static uint64_t         late_read;          /* the time of the last read */
static late_request_t   late_requests[LATE_REQUESTS];


static void
late_start(void)
{
    const char  *file;

    /* nginx overwrites the environment with its title */

    file = getenv("PROF_LATE");

    if (file && strlen(file) < sizeof(late_file)) {
        strcpy(late_file, file);
    }
}


static uint64_t
late_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


static void *
late_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}


int
epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    int          rc;
    static int (*next)(int, struct epoll_event *, int, int);

    if (next == NULL) {
        next = late_next("epoll_wait");
    }

    late_poll_start = late_now();

    rc = next(fd, events, n, timeout);

    late_poll_end = late_now();

    return rc;
}


ssize_t
recv(int fd, void *buf, size_t size, int flags)
{
    ssize_t          n;
    static ssize_t (*next)(int, void *, size_t, int);

    if (next == NULL) {
        next = late_next("recv");
    }

    n = next(fd, buf, size, flags);

    late_received(buf, n);

    return n;
}


/* the TLS library reads by this function */

ssize_t
read(int fd, void *buf, size_t size)
{
    ssize_t          n;
    static ssize_t (*next)(int, void *, size_t);

    if (next == NULL) {
        next = late_next("read");
    }

    n = next(fd, buf, size);

    late_received(buf, n);

    return n;
}


/* a request on its way to the upstream, in the turn that has read it */

ssize_t
writev(int fd, const struct iovec *iov, int n)
{
    const char      *p;
    late_request_t  *request;
    static ssize_t (*next)(int, const struct iovec *, int);

    if (next == NULL) {
        next = late_next("writev");
    }

    p = iov[0].iov_base;

    if (n && iov[0].iov_len > 4 && memcmp(p, "GET ", 4) == 0) {

        p = late_header(p, p + iov[0].iov_len, "X-Id: ");
        request = p ? late_find("") : NULL;

        if (request) {
            memcpy(request->id, p, LATE_ID);
            request->late = late_read > late_poll_end
                            ? late_read - late_poll_end : 0;
        }
    }

    return next(fd, iov, n);
}


static void
late_received(const char *p, ssize_t n)
{
    int              fd;
    char             line[128], id[LATE_ID + 1];
    uint64_t         sent, since;
    const char      *x;
    late_request_t  *request;

    if (n <= 0) {
        return;
    }

    late_read = late_now();

    if (n < 12 || memcmp(p, "HTTP/1.1 200", 12) != 0) {
        return;
    }

    x = late_header(p, p + n, "X-Id: ");
    if (x == NULL) {
        return;
    }

    memcpy(id, x, LATE_ID);
    id[LATE_ID] = '\0';

    x = late_header(p, p + n, "X-Sent: ");
    request = late_find(id);

    if (x == NULL || request == NULL) {
        return;
    }

    sent = strtoull(x, NULL, 10);
    since = sent;

    if (sent > late_poll_start && sent < late_poll_end) {
        since = late_poll_end;
    }

    fd = open(late_file, O_WRONLY|O_APPEND|O_CREAT, 0644);

    n = snprintf(line, sizeof(line), "%s %lu %ld\n", id,
                 (unsigned long) request->late, (long) (late_read - since));

    if (fd == -1 || write(fd, line, n) != n) {
        abort();
    }

    close(fd);

    request->id[0] = '\0';
}


static const char *
late_header(const char *p, const char *last, const char *name)
{
    p = memmem(p, last - p, name, strlen(name));

    if (p) {
        p += strlen(name);
    }

    return p && last - p > LATE_ID ? p : NULL;
}


/* an empty name marks a free element */

static late_request_t *
late_find(const char *id)
{
    int  i;

    for (i = 0; i < LATE_REQUESTS; i++) {
        if (strcmp(late_requests[i].id, id) == 0) {
            return &late_requests[i];
        }
    }

    return NULL;
}
