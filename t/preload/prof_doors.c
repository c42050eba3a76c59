
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library logs the effects of a capture on the
 * process in the file that PROF_DOORS names: a line "timer NS" for each timer
 * that is set to repeat, and a line "patch" for each page of a loaded object
 * that becomes writable.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


static void doors_start(void) __attribute__((constructor));
static void doors_line(const char *name, uint64_t n);


static int  doors_fd = -1;

static int  (*doors_timer_settime)(timer_t timer, int flags,
    const struct itimerspec *it, struct itimerspec *old);


static void
doors_start(void)
{
    const char  *name;

    doors_timer_settime = (int (*)(timer_t, int, const struct itimerspec *,
                                   struct itimerspec *))
                          dlsym(RTLD_NEXT, "timer_settime");

    name = getenv("PROF_DOORS");

    if (name) {
        doors_fd = open(name, O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666);
    }
}


/* this may run in a signal handler */

static void
doors_line(const char *name, uint64_t n)
{
    char    line[64], *p;
    size_t  len;

    p = line + sizeof(line);
    *--p = '\n';

    do {
        *--p = (char) ('0' + n % 10);
        n /= 10;
    } while (n);

    *--p = ' ';

    len = strlen(name);
    p -= len;
    memcpy(p, name, len);

    if (write(doors_fd, p, line + sizeof(line) - p) == -1) {
        return;
    }
}


int
timer_settime(timer_t timer, int flags, const struct itimerspec *it,
    struct itimerspec *old)
{
    uint64_t  interval;

    interval = (uint64_t) it->it_interval.tv_sec * 1000000000
               + it->it_interval.tv_nsec;

    if (interval) {
        doors_line("timer", interval);
    }

    return doors_timer_settime(timer, flags, it, old);
}


int
mprotect(void *addr, size_t len, int prot)
{
    Dl_info  info;

    if ((prot & PROT_WRITE) && dladdr(addr, &info)) {
        doors_line("patch", 1);
    }

    return (int) syscall(SYS_mprotect, addr, len, prot);
}
