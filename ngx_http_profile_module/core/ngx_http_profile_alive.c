
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The event loop asks, and locks are held meanwhile.  So /proc is not used: a
 * read of it may wait, and it may show the processes of another namespace.
 */


#include "core/ngx_http_profile_alive.h"

#include <signal.h>


uint64_t
ngx_http_profile_alive_self(void)
{
    struct timespec  ts;

    static uint64_t  self;

    /*
     * A process that has ended may have had the same id.  The time of the
     * first call tells them apart, in units of 0.13 ms.
     */

    if (ngx_http_profile_alive_pid(self) != (uint32_t) ngx_pid) {
        (void) clock_gettime(CLOCK_MONOTONIC, &ts);

        self = (((uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec) >> 17) << 32
               | (uint32_t) ngx_pid;
    }

    return self;
}


ngx_uint_t
ngx_http_profile_alive(uint64_t process)
{
    ngx_pid_t  pid;

    if (process == ngx_http_profile_alive_self()) {
        return 1;
    }

    pid = (ngx_pid_t) ngx_http_profile_alive_pid(process);

    if (pid == 0 || pid == ngx_pid) {
        return 0;
    }

    if (kill(pid, 0) == -1 && ngx_errno == NGX_ESRCH) {
        return 0;
    }

    /* a master and its children are in one session */

    return getsid(pid) == getsid(0);
}
