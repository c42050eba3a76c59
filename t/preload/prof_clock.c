
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library sets the clock of the day of its processes.
 * PROF_CLOCK names a file, whose content is a number of seconds.  The number is
 * added to the time that gettimeofday() returns, from which nginx makes its
 * time.  The monotonic clock is unchanged.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>


static void clock_start(void) __attribute__((constructor));


static char  clock_file[256];


/* workers have no environment */

static void
clock_start(void)
{
    const char  *name;

    name = getenv("PROF_CLOCK");

    if (name) {
        (void) snprintf(clock_file, sizeof(clock_file), "%s", name);
    }
}


int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    int      fd, rc;
    char     text[32];
    ssize_t  n;

    static int  (*real)(struct timeval *restrict, void *restrict);

    if (real == NULL) {
        *(void **) &real = dlsym(RTLD_NEXT, "gettimeofday");
    }

    rc = real(tv, tz);
    fd = open(clock_file, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return rc;
    }

    n = read(fd, text, sizeof(text) - 1);

    if (n > 0) {
        text[n] = '\0';
        tv->tv_sec += atol(text);
    }

    (void) close(fd);

    return rc;
}
