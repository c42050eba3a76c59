
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_fds.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>


/* these descriptors are closed if the kernel cannot close a range */

#define PROF_FDS_MAX     65536

#ifndef SYS_close_range
#define SYS_close_range  436
#endif


void
prof_fds_close(int first)
{
    int            fd, n;
    struct rlimit  rl;

    if (syscall(SYS_close_range, first, ~0U, 0) == 0) {
        return;
    }

    n = PROF_FDS_MAX;

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < (rlim_t) n) {
        n = rl.rlim_cur;
    }

    for (fd = first; fd < n; fd++) {
        close(fd);
    }
}
