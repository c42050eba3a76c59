
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Starts two processes.  Both share the memory of this process, which waits
 * until the program has started (CLONE_VFORK).  So the start copies no memory,
 * however large the server is.  Both processes only make system calls.
 */


#include "base/prof_fds.h"
#include "names/prof_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>


/* the stack size of each of the two processes */

#define PROF_SPAWN_STACK   32768

/* ms; a program that was told to end is killed after this time */

#define PROF_SPAWN_GRACE   200


#ifndef SYS_pidfd_open
#define SYS_pidfd_open         434
#endif

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal  424
#endif


/* sanitizers do not know the stacks of these functions */
#define PROF_SPAWN_CHILD  __attribute__((no_sanitize_address))


typedef struct {
    const char  *path;
    int          nice;
    int          fd;
    pid_t        pid;
    char        *stack;
} prof_spawn_ctx_t;


static pid_t prof_spawn_start(prof_spawn_ctx_t *ctx);
static int prof_spawn_between(void *data);
static int prof_spawn_program(void *data);


int
prof_spawn(prof_spawn_t *s, const char *path, int nice)
{
    int               fds[2];
    prof_spawn_ctx_t  ctx;

    s->fd = -1;
    s->pidfd = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, fds) == -1) {
        return PROF_ERROR;
    }

    ctx.path = path;
    ctx.nice = nice;
    ctx.fd = fds[1];
    ctx.pid = -1;
    ctx.stack = malloc(2 * PROF_SPAWN_STACK);

    if (ctx.stack == NULL || prof_spawn_start(&ctx) == -1) {
        free(ctx.stack);
        close(fds[0]);
        close(fds[1]);
        return PROF_ERROR;
    }

    free(ctx.stack);
    close(fds[1]);

    s->fd = fds[0];

    if (ctx.pid > 0) {
        s->pidfd = syscall(SYS_pidfd_open, ctx.pid, 0);
    }

    return PROF_OK;
}


void
prof_spawn_end(prof_spawn_t *s)
{
    struct pollfd  pfd;

    if (s->fd == -1) {
        return;
    }

    close(s->fd);
    s->fd = -1;

    if (s->pidfd == -1) {
        return;
    }

    pfd.fd = s->pidfd;
    pfd.events = POLLIN;

    if (poll(&pfd, 1, PROF_SPAWN_GRACE) != 1) {
        (void) syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
    }

    close(s->pidfd);
    s->pidfd = -1;
}


static pid_t
prof_spawn_start(prof_spawn_ctx_t *ctx)
{
    pid_t     pid;
    sigset_t  all, old;

    /*
     * All signals are blocked, because handlers of this process must not run
     * in the new processes, which share its memory.
     */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    pid = clone(prof_spawn_between, ctx->stack + PROF_SPAWN_STACK,
                CLONE_VM|CLONE_VFORK, ctx);

    if (pid != -1) {
        while (waitpid(pid, NULL, __WCLONE) == -1 && errno == EINTR) {
            /* void */
        }
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    return pid;
}


PROF_SPAWN_CHILD static int
prof_spawn_between(void *data)
{
    prof_spawn_ctx_t *ctx = data;

    ctx->pid = clone(prof_spawn_program, ctx->stack + 2 * PROF_SPAWN_STACK,
                     CLONE_VM|CLONE_VFORK|SIGCHLD, ctx);

    _exit(0);
}


PROF_SPAWN_CHILD static int
prof_spawn_program(void *data)
{
    prof_spawn_ctx_t *ctx = data;

    int    fd, null;
    char  *argv[2];

    /*
     * Signals of a terminal do not reach another process group.  The session
     * stays that of the worker: Linux may share processors evenly between
     * sessions (sched_autogroup), and applies priorities only within each
     * session.
     */

    (void) setpgid(0, 0);

    if (ctx->nice) {
        (void) setpriority(PRIO_PROCESS, 0, ctx->nice);
    }

    /* moves the descriptor away from 0, 1 and 2 */

    fd = fcntl(ctx->fd, F_DUPFD, 3);
    null = open("/dev/null", O_RDWR);

    if (fd == -1 || null == -1 || dup2(fd, 0) == -1 || dup2(null, 1) == -1
        || dup2(null, 2) == -1)
    {
        _exit(127);
    }

    prof_fds_close(3);

    argv[0] = (char *) (uintptr_t) ctx->path;
    argv[1] = NULL;

    (void) execve(ctx->path, argv, environ);

    _exit(127);
}
