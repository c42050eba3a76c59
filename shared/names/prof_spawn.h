
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Starts a program that the process has no child for.
 *
 * A server reaps its children in a handler of SIGCHLD, and takes note of those
 * that it does not know.  So the program's parent is a process in between that
 * exits at once and that no signal tells of (its termination signal is 0); the
 * program becomes a child of init.  It is known by a descriptor (pidfd), which
 * never means another process.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SPAWN_H_INCLUDED_
#define _PROF_SPAWN_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    int   fd;                   /* the socket; -1: there is no program */
    int   pidfd;                /* -1: the kernel has none */
} prof_spawn_t;


PROF_HIDDEN_BEGIN

/*
 * The program gets the other end of a socket as its standard input, no other
 * descriptor, a process group of its own, the lowest priority, and all signals
 * blocked.
 * PROF_OK, or PROF_ERROR.  A program that cannot be executed is known by its
 * socket, which is closed.
 */
int prof_spawn(prof_spawn_t *s, const char *path);

/* closes the socket, and kills the program if it does not end of that */
void prof_spawn_end(prof_spawn_t *s);

PROF_HIDDEN_END


#endif /* _PROF_SPAWN_H_INCLUDED_ */
