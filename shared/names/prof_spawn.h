
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Starts a program that does not become a child of this process.
 *
 * A server reaps its children in a handler of SIGCHLD, and logs unknown
 * children.  So an intermediate process starts the program and exits at once.
 * Its termination signal is 0, so the server gets no signal.  The program
 * becomes a child of init.  A descriptor (pidfd) identifies the program and
 * never refers to another process.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SPAWN_H_INCLUDED_
#define _PROF_SPAWN_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    int   fd;                   /* the socket; -1: no program is running */
    int   pidfd;                /* -1: the kernel does not support pidfd */
} prof_spawn_t;


PROF_HIDDEN_BEGIN

/*
 * Starts the program.  Its standard input is the other end of a socket.  It
 * has no other descriptor, a process group of its own, all signals blocked,
 * and this nice value, unless it is 0.  Returns PROF_OK or PROF_ERROR.  If the
 * program cannot be executed, its socket is closed.
 */
int prof_spawn(prof_spawn_t *s, const char *path, int nice);

/* closes the socket; kills the program if it does not exit then */
void prof_spawn_end(prof_spawn_t *s);

PROF_HIDDEN_END


#endif /* _PROF_SPAWN_H_INCLUDED_ */
