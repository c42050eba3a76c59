
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The process's signal handlers for sampling, and the timers that call them.
 *
 * Timers send an unused real-time signal.  SIGPROF and SIGALRM have other users
 * (LuaJIT's profiler, gperftools, timers of event loops).
 *
 * Programs often block all signals in the threads that they start, except those
 * that a fault raises.  For these threads timers send SIGFPE.  A SIGFPE of a
 * fault is passed to the previous handler.
 *
 * Handlers are installed while there are users.  The last user restores the
 * previous handlers.
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
 * Any process of the same user can send either signal with any payload, and
 * may be able to read the payloads of the timers in /proc/PID/timers.  So a
 * payload is not a pointer.  It is a word: the low bits name an entry of a
 * static table, the others are the entry's random generation.  The handler
 * follows an entry only if the entry has published this word, and only in the
 * thread of the entry.  All other signals are counted and ignored.  A copied
 * payload can only call the handler in the right thread at a wrong time.
 * Therefore handlers take no sample before it is due.
 */

typedef void (*prof_expiry_pt)(void *data, const ucontext_t *uc);

typedef struct {
    uintptr_t       word;       /* the payload; 0: not published */
    uint32_t        inside;     /* handlers that are using the entry */
    int             tid;        /* of the signaled thread */
    uintptr_t       thread;     /* its prof_arch_thread(); 0: unknown */
    prof_expiry_pt  handler;
    void           *data;
} prof_expiry_t;


/*
 * A power of two: the index is the word modulo this number.  Each of 512
 * threads has two entries, and the rest is for samplers and watches.
 */
#define PROF_EXPIRIES  2048

/*
 * Returns whether an expiration is due.  Half a period early is accepted,
 * since clocks do not agree exactly.
 */
#define prof_expiry_due(now, due, period)  ((now) + (period) / 2 >= (due))


typedef enum {
    PROF_SIGNAL_OWN = 0,        /* the real-time signal */
    PROF_SIGNAL_FAULT           /* SIGFPE */
} prof_signal_e;


/*
 * Moves the time of the next expiration behind "now", by whole periods, so a
 * late expiration does not delay the following ones.  Returns the number of
 * expirations that were due before "now" and are lost, without the current
 * one.
 */

static inline uint64_t
prof_expiry_next(uint64_t *due, uint64_t now, uint64_t period)
{
    uint64_t  lost;

    lost = (now >= *due + period) ? (now - *due) / period : 0;

    *due += (lost + 1) * period;

    return lost;
}


PROF_HIDDEN_BEGIN

/* returns PROF_OK, or PROF_ERROR with errno set */
int prof_signal_hold(prof_signal_e which);

/* also discards pending signals in all threads */
void prof_signal_release(prof_signal_e which);

/* returns the signal's number; the signal must be held */
int prof_signal_number(prof_signal_e which);

/* sets *set to the signal mask of the calling thread, and the held signal */
void prof_signal_mask(prof_signal_e which, sigset_t *set);

/*
 * Blocks the held signal in the main thread.  The signals that timers send
 * meanwhile are delivered before prof_signal_unblock() returns.  Without a
 * blocked signal prof_signal_unblock() does nothing.
 */
void prof_signal_block(prof_signal_e which);
void prof_signal_unblock(void);

/*
 * Makes a timer that signals the entry's thread.  Returns PROF_OK, or
 * PROF_ERROR with errno set.  The signal must be held.
 */
int prof_signal_timer(prof_signal_e which, clockid_t clock,
    const prof_expiry_t *e, timer_t *timer);

/*
 * Publishes an entry for timers of the thread.  Returns NULL if no entry is
 * free, or if random numbers are not available.  From then on the handler may
 * be called with data in that thread, until prof_expiry_retire().
 */
prof_expiry_t *prof_expiry_publish(int tid, prof_expiry_pt handler, void *data);

/*
 * Ends the use of an entry.  The caller has deleted its timers.  Waits a short
 * time for running handlers; until prof_expiry_quiet() returns 1, a handler
 * may still use data.
 */
void prof_expiry_retire(prof_expiry_t *e);
int prof_expiry_quiet(const prof_expiry_t *e);

/* the handler of both signals; context: signal handler (prof_handler_sig.c) */
void prof_handler(int signo, siginfo_t *si, void *uc);

/*
 * Sets a timer, which expires after "first" ns, and then with the period.  A
 * "first" of 0 stops the timer.  Returns the ns that were left until the next
 * time, or 0.  Context: any, also a signal handler.
 */
uint64_t prof_timer_set(timer_t timer, uint64_t first, uint64_t period);

/*
 * The previous action of SIGFPE.  Written while the handler is not installed;
 * read by the handler.
 */
extern struct sigaction  prof_signal_fault;

/* written by prof_expiry_publish(), read by the handler */
extern prof_expiry_t  prof_expiries[PROF_EXPIRIES];

/* number of signals without a valid payload; see prof_signal_refused() */
extern uint64_t  prof_signal_forged;

PROF_HIDDEN_END


#endif /* _PROF_SIGNAL_H_INCLUDED_ */
