
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_clock.h"
#include "names/prof_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>


/* ms */

#define PROF_WIRE_POLL  100


static const char *prof_wire_take(prof_wire_t *w, size_t len);
static int prof_wire_bytes(int fd, char *p, size_t len, int out,
    uint64_t deadline);
static int prof_wire_wait(int fd, int events, uint64_t deadline);


static uint64_t           prof_wire_limits[2] = { UINT64_MAX, UINT64_MAX };
static __thread uint32_t  prof_wire_is_idle;


void
prof_wire_u32(prof_buf_t *b, uint32_t n)
{
    prof_buf_append(b, &n, sizeof(uint32_t));
}


void
prof_wire_u64(prof_buf_t *b, uint64_t n)
{
    prof_buf_append(b, &n, sizeof(uint64_t));
}


void
prof_wire_text(prof_buf_t *b, const char *s)
{
    size_t  len;

    len = s ? strlen(s) : 0;

    if (len > PROF_WIRE_TEXT) {
        len = 0;
    }

    prof_wire_u32(b, len);

    prof_buf_append(b, len ? s : "", len);
    prof_buf_append(b, "", 1);
}


uint32_t
prof_wire_get_u32(prof_wire_t *w)
{
    uint32_t     n;
    const char  *p;

    n = 0;
    p = prof_wire_take(w, sizeof(uint32_t));

    if (p) {
        memcpy(&n, p, sizeof(uint32_t));
    }

    return n;
}


uint64_t
prof_wire_get_u64(prof_wire_t *w)
{
    uint64_t     n;
    const char  *p;

    n = 0;
    p = prof_wire_take(w, sizeof(uint64_t));

    if (p) {
        memcpy(&n, p, sizeof(uint64_t));
    }

    return n;
}


const char *
prof_wire_get_text(prof_wire_t *w)
{
    size_t       len;
    const char  *p;

    len = prof_wire_get_u32(w);

    if (len > PROF_WIRE_TEXT) {
        w->failed = 1;
    }

    p = prof_wire_take(w, len + 1);

    if (p && memchr(p, '\0', len + 1) != p + len) {
        w->failed = 1;
    }

    return w->failed || len == 0 ? NULL : p;
}


static const char *
prof_wire_take(prof_wire_t *w, size_t len)
{
    const char  *p;

    if (w->failed || len > (size_t) (w->end - w->pos)) {
        w->failed = 1;
        return NULL;
    }

    p = w->pos;
    w->pos += len;

    return p;
}


int
prof_wire_send(int fd, const prof_buf_t *b, uint64_t deadline)
{
    int       rc;
    uint32_t  len;

    if (prof_buf_failed(b) || b->len > PROF_WIRE_MAX) {
        return PROF_ERROR;
    }

    len = b->len;

    rc = prof_wire_bytes(fd, (char *) &len, sizeof(uint32_t), 1, deadline);

    return rc == PROF_OK ? prof_wire_bytes(fd, b->data, len, 1, deadline) : rc;
}


int
prof_wire_receive(int fd, prof_buf_t *b, uint64_t deadline)
{
    int       rc;
    char     *data;
    uint32_t  len;

    rc = prof_wire_bytes(fd, (char *) &len, sizeof(uint32_t), 0, deadline);

    if (rc != PROF_OK) {
        return rc;
    }

    if (len == 0 || len > PROF_WIRE_MAX) {
        return PROF_ERROR;
    }

    if (len > b->size) {
        data = realloc(b->data, len);
        if (data == NULL) {
            return PROF_ERROR;
        }

        b->data = data;
        b->size = len;
    }

    b->len = len;

    return prof_wire_bytes(fd, b->data, len, 0, deadline);
}


static int
prof_wire_bytes(int fd, char *p, size_t len, int out, uint64_t deadline)
{
    int      rc;
    ssize_t  n;

    while (len) {
        n = out ? send(fd, p, len, MSG_DONTWAIT|MSG_NOSIGNAL)
                : recv(fd, p, len, MSG_DONTWAIT);

        if (n > 0) {
            p += n;
            len -= n;
            continue;
        }

        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return PROF_ERROR;
        }

        rc = prof_wire_wait(fd, out ? POLLOUT : POLLIN, deadline);

        if (rc != PROF_OK) {
            return rc;
        }
    }

    return PROF_OK;
}


static int
prof_wire_wait(int fd, int events, uint64_t deadline)
{
    uint64_t       left, limit, now;
    struct pollfd  pfd;

    now = prof_clock(CLOCK_MONOTONIC);

    limit = __atomic_load_n(&prof_wire_limits[prof_wire_is_idle],
                            __ATOMIC_RELAXED);

    if (now >= deadline || now >= limit) {
        return PROF_LIMIT;
    }

    left = (deadline - now) / 1000000 + 1;

    pfd.fd = fd;
    pfd.events = events;

    /* the caller tries again: after a signal, and to see prof_wire_limit() */

    (void) poll(&pfd, 1, left < PROF_WIRE_POLL ? (int) left : PROF_WIRE_POLL);

    return PROF_OK;
}


void
prof_wire_limit(uint64_t all, uint64_t idle)
{
    __atomic_store_n(&prof_wire_limits[0], all, __ATOMIC_RELAXED);
    __atomic_store_n(&prof_wire_limits[1], idle, __ATOMIC_RELAXED);
}


int
prof_wire_late(void)
{
    return prof_clock(CLOCK_MONOTONIC)
           >= __atomic_load_n(&prof_wire_limits[prof_wire_is_idle],
                              __ATOMIC_RELAXED);
}


void
prof_wire_idle(void)
{
    prof_wire_is_idle = 1;
}
