
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The kernel writes three numbers: the thread's CPU time, the time for which it
 * waited for a processor, and how often it got one.
 */


#include "capture/prof_queue.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>


static int  prof_queue_fd = -1;


void
prof_queue_open(void)
{
    if (prof_queue_fd != -1) {
        (void) close(prof_queue_fd);
    }

    prof_queue_fd = open("/proc/thread-self/schedstat", O_RDONLY|O_CLOEXEC);
}


uint64_t
prof_queue_now(void)
{
    char      text[96], *p;
    ssize_t   n;
    uint64_t  queue;

    if (prof_queue_fd == -1) {
        return PROF_QUEUE_UNKNOWN;
    }

    n = pread(prof_queue_fd, text, sizeof(text) - 1, 0);

    if (n <= 0) {
        return PROF_QUEUE_UNKNOWN;
    }

    text[n] = '\0';

    (void) strtoull(text, &p, 10);

    if (*p != ' ') {
        return PROF_QUEUE_UNKNOWN;
    }

    queue = strtoull(p, &p, 10);

    return (*p == ' ') ? queue : PROF_QUEUE_UNKNOWN;
}
