
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Measures the cost of the signal of a timer: with an empty handler, 1000
 * times per second, from one timer, and from two and four timers that expire
 * in turn.  The work between the signals is the same in each run.  The cost is
 * the additional CPU time of the thread, against a run without signals.
 * Prints over all rounds:
 *
 *     timers   0 is the second of two runs without signals: the noise
 *     ratio    to the first run without signals
 *     signals  the number of signals
 *     us       the cost of a signal
 */


#define _GNU_SOURCE

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


#define BENCH_ROUNDS  60
#define BENCH_LOOPS   40000000
#define BENCH_TIMERS  4
#define BENCH_PERIOD  1000000
#define BENCH_CASES   5

/* glibc before 2.39 has no name for this member */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id  _sigev_un._tid
#endif


static void bench_handler(int signo);
static int bench_create(void);
static void bench_set(int n);
static double bench_work(void);
static uint64_t bench_clock(clockid_t id);


static timer_t                bench_timers[BENCH_TIMERS];
static volatile sig_atomic_t  bench_signals;


int
main(void)
{
    int     i, r;
    long    signals[BENCH_CASES];
    double  ns[BENCH_CASES];

    static const int  timers[BENCH_CASES] = { 0, 0, 1, 2, 4 };

    if (bench_create() == -1) {
        perror("timer_create()");
        return 1;
    }

    for (i = 0; i < BENCH_CASES; i++) {
        signals[i] = 0;
        ns[i] = 0;
    }

    for (r = 0; r < BENCH_ROUNDS; r++) {

        for (i = 0; i < BENCH_CASES; i++) {
            bench_signals = 0;
            bench_set(timers[i]);

            ns[i] += bench_work();
            signals[i] += bench_signals;
        }
    }

    printf("timers  ratio  signals     us\n");

    for (i = 1; i < BENCH_CASES; i++) {
        printf("%6d %6.3f %8ld %6.1f\n", timers[i], ns[i] / ns[0], signals[i],
               signals[i] ? (ns[i] - ns[0]) / signals[i] / 1000 : 0);
    }

    return 0;
}


static void
bench_handler(int signo)
{
    bench_signals++;
}


static int
bench_create(void)
{
    int               i;
    struct sigevent   sev;
    struct sigaction  sa;

    memset(&sa, 0, sizeof(struct sigaction));
    memset(&sev, 0, sizeof(struct sigevent));

    sa.sa_handler = bench_handler;
    sa.sa_flags = SA_RESTART;

    sev.sigev_notify = SIGEV_THREAD_ID;
    sev.sigev_signo = SIGRTMIN;
    sev.sigev_notify_thread_id = (int) syscall(SYS_gettid);

    if (sigaction(SIGRTMIN, &sa, NULL) == -1) {
        return -1;
    }

    for (i = 0; i < BENCH_TIMERS; i++) {
        if (timer_create(CLOCK_MONOTONIC, &sev, &bench_timers[i]) == -1) {
            return -1;
        }
    }

    return 0;
}


static void
bench_set(int n)
{
    int                i;
    struct itimerspec  it;

    memset(&it, 0, sizeof(struct itimerspec));

    for (i = 0; i < BENCH_TIMERS; i++) {
        it.it_value.tv_nsec = i < n ? (i + 1) * BENCH_PERIOD : 0;
        it.it_interval.tv_nsec = i < n ? n * BENCH_PERIOD : 0;

        (void) timer_settime(bench_timers[i], 0, &it, NULL);
    }
}


/* returns CPU time in ns */

static double
bench_work(void)
{
    uint64_t           start;
    uint32_t           i;
    volatile uint64_t  x;

    static char  data[65536];

    start = bench_clock(CLOCK_THREAD_CPUTIME_ID);
    x = 1;

    for (i = 0; i < BENCH_LOOPS; i++) {
        x = x * 31 + data[i * 64 % sizeof(data)];
    }

    return (double) (bench_clock(CLOCK_THREAD_CPUTIME_ID) - start);
}


static uint64_t
bench_clock(clockid_t id)
{
    struct timespec  ts;

    (void) clock_gettime(id, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
