
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library measures how long the event loop is away
 * from epoll_wait(): the longest time since the file in SCRAPE_HOLD was last
 * filled with zeros.  bench/scrape.pl reads the file.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>


/* the content of the file, in nanoseconds */

typedef struct {
    int64_t  cpu;     /* of the thread */
    int64_t  wall;
} hold_longest_t;


static void hold_start(void) __attribute__((constructor));
static int64_t hold_now(clockid_t clock);


static int  (*hold_wait)(int fd, struct epoll_event *events, int n,
                         int timeout);

static volatile hold_longest_t  *hold_longest;
static hold_longest_t            hold_since;


static void
hold_start(void)
{
    int          fd;
    void        *p;
    const char  *name;

    hold_wait = (int (*)(int, struct epoll_event *, int, int))
                                             dlsym(RTLD_NEXT, "epoll_wait");
    name = getenv("SCRAPE_HOLD");

    if (name == NULL) {
        return;
    }

    fd = open(name, O_RDWR);
    if (fd == -1) {
        return;
    }

    p = mmap(NULL, sizeof(hold_longest_t), PROT_READ|PROT_WRITE, MAP_SHARED,
             fd, 0);
    if (p != MAP_FAILED) {
        hold_longest = p;
    }

    (void) close(fd);
}


int
epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    int             rc;
    hold_longest_t  away;

    if (hold_longest && hold_since.wall) {
        away.cpu = hold_now(CLOCK_THREAD_CPUTIME_ID) - hold_since.cpu;
        away.wall = hold_now(CLOCK_MONOTONIC) - hold_since.wall;

        if (away.cpu > hold_longest->cpu) {
            hold_longest->cpu = away.cpu;
        }

        if (away.wall > hold_longest->wall) {
            hold_longest->wall = away.wall;
        }
    }

    rc = hold_wait(fd, events, n, timeout);

    hold_since.cpu = hold_now(CLOCK_THREAD_CPUTIME_ID);
    hold_since.wall = hold_now(CLOCK_MONOTONIC);

    return rc;
}


static int64_t
hold_now(clockid_t clock)
{
    struct timespec  ts;

    (void) clock_gettime(clock, &ts);

    return (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
