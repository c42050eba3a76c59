
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library disarms all timers of timer_create() when
 * the process gets the signal SIGRTMAX, and arms them again when the process
 * gets SIGRTMAX - 1.  Timers that the process sets while they are disarmed
 * stay disarmed.  So bench/continuous.pl can measure one process, with the same
 * memory layout, with its timers and without.
 *
 * The calls of the library are safe in a signal handler.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>


#define TIMERS  64


typedef struct {
    timer_t            id;
    struct itimerspec  value;   /* that the process has set */
} known_timer_t;


static void switch_timers(int signo);
static void begin(void);


static int  (*real_create)(clockid_t clock, struct sigevent *sev,
                           timer_t *timer);
static int  (*real_settime)(timer_t timer, int flags,
                            const struct itimerspec *value,
                            struct itimerspec *old);

static known_timer_t          timers[TIMERS];
static volatile int           ntimers;
static volatile sig_atomic_t  disarmed;

static const struct itimerspec  never;


static void
switch_timers(int signo)
{
    int  i;

    disarmed = (signo == SIGRTMAX);

    /* a timer that has been deleted since is not set */

    for (i = 0; i < ntimers; i++) {
        (void) real_settime(timers[i].id, 0,
                            disarmed ? &never : &timers[i].value, NULL);
    }
}


__attribute__((constructor)) static void
begin(void)
{
    struct sigaction  sa;

    real_create = dlsym(RTLD_NEXT, "timer_create");
    real_settime = dlsym(RTLD_NEXT, "timer_settime");

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = switch_timers;
    sa.sa_flags = SA_RESTART;

    (void) sigaction(SIGRTMAX, &sa, NULL);
    (void) sigaction(SIGRTMAX - 1, &sa, NULL);
}


/* the benchmark fails if there are more timers: the new one is not created */

int
timer_create(clockid_t clock, struct sigevent *sev, timer_t *timer)
{
    int  i;

    if (real_create(clock, sev, timer) == -1) {
        return -1;
    }

    /* the kernel may use the number of a deleted timer again */

    for (i = 0; i < ntimers && timers[i].id != *timer; i++) { /* void */ }

    if (i == TIMERS) {
        (void) timer_delete(*timer);
        errno = EAGAIN;
        return -1;
    }

    timers[i].id = *timer;
    timers[i].value = never;

    if (i == ntimers) {
        ntimers++;
    }

    return 0;
}


int
timer_settime(timer_t timer, int flags, const struct itimerspec *value,
    struct itimerspec *old)
{
    int  i;

    for (i = 0; i < ntimers; i++) {
        if (timers[i].id == timer) {
            timers[i].value = *value;
        }
    }

    return real_settime(timer, flags, disarmed ? &never : value, old);
}
