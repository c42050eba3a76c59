
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_lock.h"

#include <sched.h>
#include <signal.h>


/* attempts between two looks at the process that holds the mutex */
#define NGX_HTTP_PROFILE_LOCK_TRIES  256


void
ngx_http_profile_lock(ngx_shmtx_t *mutex)
{
    ngx_pid_t   pid;
    ngx_uint_t  n;

    for (n = 1; !ngx_shmtx_trylock(mutex); n++) {

        if (n % NGX_HTTP_PROFILE_LOCK_TRIES) {
            (void) sched_yield();
            continue;
        }

#if (NGX_HAVE_ATOMIC_OPS)

        /*
         * A killed worker exists until the master has waited for it, and the
         * workers of one master see the same process ids.
         */

        pid = (ngx_pid_t) *mutex->lock;

        if (pid && kill(pid, 0) == -1 && ngx_errno == NGX_ESRCH) {
            (void) ngx_shmtx_force_unlock(mutex, pid);
            continue;
        }

#endif

        ngx_msleep(1);
    }
}
