
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library lets all clocks of the main thread go by
 * the number of their readings: 200 ns pass from one reading to the next, and
 * 100 us in a wait for events.  So what nginx and the module do at a given time
 * does not depend on the load of the machine, nor on the speed of a simulated
 * processor.  bench/accounting.pl counts instructions with it.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>


#define STILL_READING  200
#define STILL_WAIT     100000


static void still_start(void) __attribute__((constructor));


static int  (*still_epoll_wait)(int fd, struct epoll_event *events, int n,
                                int timeout);

static int64_t       still_ns;       /* since the Epoch */
static int64_t       still_waited;   /* a part of it */

static __thread int  still_main;


static void
still_start(void)
{
    still_epoll_wait = (int (*)(int, struct epoll_event *, int, int))
                                             dlsym(RTLD_NEXT, "epoll_wait");

    still_ns = (int64_t) time(NULL) * 1000000000;
    still_main = 1;
}


int
clock_gettime(clockid_t clock, struct timespec *ts)
{
    int64_t  ns;

    if (still_main) {
        still_ns += STILL_READING;
    }

    ns = still_ns;

    if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID) {
        ns -= still_waited;
    }

    ts->tv_sec = ns / 1000000000;
    ts->tv_nsec = ns % 1000000000;

    return 0;
}


int
gettimeofday(struct timeval *tv, void *zone)
{
    struct timespec  ts;

    (void) zone;
    (void) clock_gettime(CLOCK_REALTIME, &ts);

    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;

    return 0;
}


int
epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    int  rc;

    rc = still_epoll_wait(fd, events, n, timeout);

    if (still_main) {
        still_ns += STILL_WAIT;
        still_waited += STILL_WAIT;

        if (rc == 0 && timeout > 0) {
            still_ns += (int64_t) timeout * 1000000;
            still_waited += (int64_t) timeout * 1000000;
        }
    }

    return rc;
}
