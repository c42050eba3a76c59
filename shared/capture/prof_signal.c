
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "capture/prof_signal.h"
#include "capture/prof_capture.h"
#include "unwind/prof_arch.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>


/* glibc before 2.39 has no name for the field (timer_create(2)) */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id  _sigev_un._tid
#endif


typedef struct {
    int               signo;
    int               users;
    struct sigaction  old;
} prof_signal_t;


/* number of checks for running handlers before prof_expiry_retire() returns */
#define PROF_EXPIRY_TRIES  1000


static int prof_signal_begin(prof_signal_e which);
static int prof_signal_free(void);
static uintptr_t prof_expiry_word(uint32_t index);


static prof_signal_t  prof_signals[2];

/* two threads may make timers, see prof_stuck.h */

static pthread_mutex_t  prof_signal_mutex = PTHREAD_MUTEX_INITIALIZER;

/* the signal that prof_signal_block() blocked, or 0 */
static int            prof_signal_blocked;


int
prof_signal_hold(prof_signal_e which)
{
    int  rc;

    (void) pthread_mutex_lock(&prof_signal_mutex);

    rc = prof_signals[which].users ? PROF_OK : prof_signal_begin(which);

    if (rc == PROF_OK) {
        prof_signals[which].users++;
    }

    (void) pthread_mutex_unlock(&prof_signal_mutex);

    return rc;
}


static int
prof_signal_begin(prof_signal_e which)
{
    int               signo;
    prof_signal_t    *s;
    struct sigaction  sa;

    s = &prof_signals[which];

    signo = (which == PROF_SIGNAL_OWN) ? prof_signal_free() : SIGFPE;

    if (signo == PROF_ERROR || sigaction(signo, NULL, &s->old) == -1) {
        return PROF_ERROR;
    }

    prof_pin();

    if (which == PROF_SIGNAL_FAULT) {
        prof_signal_fault = s->old;
    }

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_sigaction = prof_handler;
    sa.sa_flags = SA_SIGINFO|SA_RESTART|SA_ONSTACK;
    sigfillset(&sa.sa_mask);

    if (sigaction(signo, &sa, NULL) == -1) {
        return PROF_ERROR;
    }

    s->signo = signo;

    return PROF_OK;
}


/*
 * The default action of both signals ends the process, so pending signals must
 * be discarded before the handler is removed.  The kernel discards a signal in
 * all threads when the signal becomes ignored.
 */

void
prof_signal_release(prof_signal_e which)
{
    prof_signal_t    *s;
    struct sigaction  sa;

    s = &prof_signals[which];

    (void) pthread_mutex_lock(&prof_signal_mutex);

    if (--s->users == 0) {
        memset(&sa, 0, sizeof(struct sigaction));
        sa.sa_handler = SIG_IGN;
        sigemptyset(&sa.sa_mask);

        (void) sigaction(s->signo, &sa, NULL);
        (void) sigaction(s->signo, &s->old, NULL);
    }

    (void) pthread_mutex_unlock(&prof_signal_mutex);
}


int
prof_signal_number(prof_signal_e which)
{
    return prof_signals[which].signo;
}


void
prof_signal_mask(prof_signal_e which, sigset_t *set)
{
    sigemptyset(set);

    (void) pthread_sigmask(SIG_BLOCK, NULL, set);

    sigaddset(set, prof_signals[which].signo);
}


void
prof_signal_block(prof_signal_e which)
{
    sigset_t  set;

    prof_signal_blocked = prof_signals[which].signo;

    sigemptyset(&set);
    sigaddset(&set, prof_signal_blocked);

    (void) pthread_sigmask(SIG_BLOCK, &set, NULL);
}


void
prof_signal_unblock(void)
{
    sigset_t  set;

    if (prof_signal_blocked == 0) {
        return;
    }

    sigemptyset(&set);
    sigaddset(&set, prof_signal_blocked);

    prof_signal_blocked = 0;

    (void) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}


int
prof_signal_timer(prof_signal_e which, clockid_t clock,
    const prof_expiry_t *e, timer_t *timer)
{
    struct sigevent  sev;

    memset(&sev, 0, sizeof(struct sigevent));

    sev.sigev_notify = SIGEV_THREAD_ID;
    sev.sigev_signo = prof_signals[which].signo;
    sev.sigev_value.sival_ptr = (void *) e->word;
    sev.sigev_notify_thread_id = e->tid;

    return timer_create(clock, &sev, timer) ? PROF_ERROR : PROF_OK;
}


uint64_t
prof_signal_refused(void)
{
    return __atomic_load_n(&prof_signal_forged, __ATOMIC_RELAXED);
}


/* an entry that a late handler may still read is not used again yet */

prof_expiry_t *
prof_expiry_publish(int tid, prof_expiry_pt handler, void *data)
{
    uint32_t        i;
    uintptr_t       word;
    prof_expiry_t  *e;

    (void) pthread_mutex_lock(&prof_signal_mutex);

    for (i = 0; i < PROF_EXPIRIES; i++) {
        if (prof_expiries[i].word == 0 && prof_expiry_quiet(&prof_expiries[i]))
        {
            break;
        }
    }

    if (i == PROF_EXPIRIES) {
        (void) pthread_mutex_unlock(&prof_signal_mutex);
        errno = EAGAIN;
        return NULL;
    }

    e = &prof_expiries[i];
    word = prof_expiry_word(i);

    if (word == 0) {
        (void) pthread_mutex_unlock(&prof_signal_mutex);
        return NULL;
    }

    e->tid = tid;
    e->thread = (tid == (int) syscall(SYS_gettid)) ? prof_arch_thread() : 0;
    e->handler = handler;
    e->data = data;

    __atomic_store_n(&e->word, word, __ATOMIC_SEQ_CST);

    (void) pthread_mutex_unlock(&prof_signal_mutex);

    return e;
}


/* returns 0 with errno set if random numbers are not available */

static uintptr_t
prof_expiry_word(uint32_t index)
{
    uintptr_t  word;

    do {
        if (getrandom(&word, sizeof(uintptr_t), GRND_NONBLOCK)
            != sizeof(uintptr_t))
        {
            return 0;
        }

        word = word / PROF_EXPIRIES * PROF_EXPIRIES + index;

    } while (word < PROF_EXPIRIES);

    return word;
}


void
prof_expiry_retire(prof_expiry_t *e)
{
    int              i;
    struct timespec  ts;

    __atomic_store_n(&e->word, 0, __ATOMIC_SEQ_CST);

    ts.tv_sec = 0;
    ts.tv_nsec = 20000;

    for (i = 0; i < PROF_EXPIRY_TRIES && !prof_expiry_quiet(e); i++) {
        (void) nanosleep(&ts, NULL);
    }
}


int
prof_expiry_quiet(const prof_expiry_t *e)
{
    return __atomic_load_n(&e->inside, __ATOMIC_SEQ_CST) == 0;
}


static int
prof_signal_free(void)
{
    int               signo;
    struct sigaction  sa;

    for (signo = SIGRTMIN; signo <= SIGRTMAX; signo++) {

        if (sigaction(signo, NULL, &sa) == 0
            && !(sa.sa_flags & SA_SIGINFO)
            && sa.sa_handler == SIG_DFL)
        {
            return signo;
        }
    }

    errno = EBUSY;

    return PROF_ERROR;
}
