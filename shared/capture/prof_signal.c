
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "capture/prof_signal.h"

#include <errno.h>
#include <string.h>


/* glibc before 2.39 has no name for the field (timer_create(2)) */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id  _sigev_un._tid
#endif


typedef struct {
    int               signo;
    int               users;
    struct sigaction  old;
} prof_signal_t;


static int prof_signal_free(void);


static prof_signal_t  prof_signals[2];


int
prof_signal_hold(prof_signal_e which)
{
    int               signo;
    prof_signal_t    *s;
    struct sigaction  sa;

    s = &prof_signals[which];

    if (s->users) {
        s->users++;
        return PROF_OK;
    }

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
    s->users = 1;

    return PROF_OK;
}


/*
 * The default action of either signal ends the process, so those that are
 * pending must go before the handler does: a signal that becomes ignored is
 * discarded in all threads.
 */

void
prof_signal_release(prof_signal_e which)
{
    prof_signal_t    *s;
    struct sigaction  sa;

    s = &prof_signals[which];

    if (--s->users) {
        return;
    }

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = SIG_IGN;
    sigemptyset(&sa.sa_mask);

    (void) sigaction(s->signo, &sa, NULL);
    (void) sigaction(s->signo, &s->old, NULL);
}


int
prof_signal_users(prof_signal_e which)
{
    return prof_signals[which].users;
}


int
prof_signal_number(prof_signal_e which)
{
    return prof_signals[which].signo;
}


int
prof_signal_timer(prof_signal_e which, clockid_t clock, int tid,
    prof_expiry_t *e, timer_t *timer)
{
    struct sigevent  sev;

    memset(&sev, 0, sizeof(struct sigevent));

    sev.sigev_notify = SIGEV_THREAD_ID;
    sev.sigev_signo = prof_signals[which].signo;
    sev.sigev_value.sival_ptr = e;
    sev.sigev_notify_thread_id = tid;

    return timer_create(clock, &sev, timer) ? PROF_ERROR : PROF_OK;
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
