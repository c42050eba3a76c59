
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The process's signal handlers for sampling, and the timers that call them.
 *
 * Timers signal with a real-time signal that nobody uses: SIGPROF and SIGALRM
 * have other users (LuaJIT's profiler, gperftools; timers of event loops).
 *
 * Programs often block all signals in the threads that they start, but for
 * those that a fault raises.  For these threads there is a second signal:
 * SIGFPE.  A real one is passed on to whom it belonged.
 *
 * Handlers are installed while there are users, and put back when the last one
 * is gone.
 *
 * Context: the program's main thread, one user at a time; not in a signal.
 */


#ifndef _PROF_SIGNAL_H_INCLUDED_
#define _PROF_SIGNAL_H_INCLUDED_


#include "base/prof_base.h"

#include <signal.h>
#include <time.h>
#include <ucontext.h>


/*
 * What a timer's signal carries: a pointer to this, the first member of what
 * the handler needs.  Its memory must be there until prof_signal_release()
 * of the last user has returned, and for timers of other threads ever after:
 * a handler may have been entered, and stopped before its first instruction.
 */

typedef struct prof_expiry_s  prof_expiry_t;

typedef void (*prof_expiry_pt)(prof_expiry_t *e, const siginfo_t *si,
    const ucontext_t *uc);

struct prof_expiry_s {
    prof_expiry_pt  handler;
};


typedef enum {
    PROF_SIGNAL_OWN = 0,        /* the real-time signal */
    PROF_SIGNAL_FAULT           /* SIGFPE */
} prof_signal_e;


PROF_HIDDEN_BEGIN

/* PROF_OK, or PROF_ERROR with errno set */
int prof_signal_hold(prof_signal_e which);

/* signals that are still pending, in any thread, are discarded */
void prof_signal_release(prof_signal_e which);

/* the number of users */
int prof_signal_users(prof_signal_e which);

/* the signal's number; it must be held */
int prof_signal_number(prof_signal_e which);

/*
 * Makes a timer that signals the thread.  PROF_OK, or PROF_ERROR with errno
 * set.  The signal must be held.
 */
int prof_signal_timer(prof_signal_e which, clockid_t clock, int tid,
    prof_expiry_t *e, timer_t *timer);

/* the handler of both; context: signal handler (prof_handler_sig.c) */
void prof_handler(int signo, siginfo_t *si, void *uc);

/*
 * What was installed for SIGFPE before.  Written while the handler is not
 * installed, read by it.
 */
extern struct sigaction  prof_signal_fault;

PROF_HIDDEN_END


#endif /* _PROF_SIGNAL_H_INCLUDED_ */
