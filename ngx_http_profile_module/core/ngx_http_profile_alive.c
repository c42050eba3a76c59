
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * /proc has the start of a process in ticks since the start of the system.  No
 * process id is used again within one tick.
 */


#include "core/ngx_http_profile_alive.h"

#include <signal.h>


/* the field of /proc/PID/stat, counted from the field after the name */
#define NGX_HTTP_PROFILE_ALIVE_START  20


static uint32_t ngx_http_profile_alive_start(ngx_pid_t pid);


uint64_t
ngx_http_profile_alive_self(void)
{
    static uint64_t  self;

    if (ngx_http_profile_alive_pid(self) != (uint32_t) ngx_pid) {
        self = (uint64_t) ngx_http_profile_alive_start(ngx_pid) << 32
               | (uint32_t) ngx_pid;
    }

    return self;
}


ngx_uint_t
ngx_http_profile_alive(uint64_t process)
{
    uint32_t   start, now;
    ngx_pid_t  pid;

    if (process == 0) {
        return 0;
    }

    if (process == ngx_http_profile_alive_self()) {
        return 1;
    }

    pid = (ngx_pid_t) ngx_http_profile_alive_pid(process);
    start = (uint32_t) (process >> 32);

    if (kill(pid, 0) == -1 && ngx_errno == NGX_ESRCH) {
        return 0;
    }

    now = ngx_http_profile_alive_start(pid);

    return start == 0 || now == 0 || start == now;
}


/*
 * Returns the start time of the process in ticks, or 0 if it is unknown.  The
 * name of the process in /proc/PID/stat may contain any bytes, so the fields
 * are counted from the last parenthesis.
 */

static uint32_t
ngx_http_profile_alive_start(ngx_pid_t pid)
{
    u_char      *p, *last;
    ssize_t      n;
    ngx_fd_t     fd;
    uint64_t     start;
    ngx_uint_t   field;
    u_char       buf[1024];

    (void) snprintf((char *) buf, sizeof(buf), "/proc/%d/stat", (int) pid);

    fd = open((char *) buf, O_RDONLY|O_CLOEXEC);

    if (fd == NGX_INVALID_FILE) {
        return 0;
    }

    n = read(fd, buf, sizeof(buf));

    (void) ngx_close_file(fd);

    if (n <= 0) {
        return 0;
    }

    last = buf + n;

    for (p = last; p > buf && p[-1] != ')'; p--) { /* void */ }

    for (field = 0; p < last && field < NGX_HTTP_PROFILE_ALIVE_START; p++) {
        field += (*p == ' ');
    }

    for (start = 0; p < last && *p >= '0' && *p <= '9'; p++) {
        start = start * 10 + (*p - '0');
    }

    return (uint32_t) start;
}
