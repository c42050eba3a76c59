
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: capture
 *
 * Captures of all threads: sums against the clocks, threads that start, end
 * and block signals, concurrent captures of different frequencies, and
 * restored state.
 */


#define _GNU_SOURCE

#include "tap.h"

#include "prof.h"
#include "capture/prof_process.h"
#include "capture/prof_signal.h"
#include "prof_finish.h"
#include "prof_series.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


#define MS  1000000

#define TEST_WAITS    2000
#define TEST_THREADS  64

/* more than a capture has names */
#define TEST_LOCATIONS  800

/* pages that the start of the first capture may touch for the first time */
#define TEST_PAGES      150


typedef struct {
    const char     *name;
    int             ms;             /* CPU time to use */
    sigset_t        blocked;
    uint64_t        used;           /* the CPU time of the thread at its end */
    volatile int    done;
    pthread_t       thread;
} test_thread_t;


static uint64_t test_clock(clockid_t id);
static void test_spin(int ms);
static void test_block(int ms);
static void test_leaf(void);
static void *test_run(void *data);
static void test_start(test_thread_t *t, const char *name, int ms);
static void test_drain_until_joined(test_thread_t *t);
static prof_capture_t *test_capture(uint32_t frequency, uint32_t mode);
static uint64_t test_labelled(const prof_profile_t *p, const char *name,
    const char *value);
static uint64_t test_cpu(const prof_profile_t *p, const char *thread);
static uint64_t test_sampled(const prof_profile_t *p, const char *thread);
static uint64_t test_count(const prof_profile_t *p, const char *thread);
static uint64_t test_named(const prof_profile_t *p, const char *name);
static uint64_t test_named_value(const prof_profile_t *p, const char *name,
    int value);
static void test_samples(const prof_profile_t *p, uint32_t frequency,
    uint64_t cpu);
static int test_handlers(void);

static void test_first(void);
static void test_sum(void);
static void test_delayed(void);
static void test_threads(void);
static void test_blocked(void);
static void test_overlap(void);
static void test_late(void);
static void test_wait(int masked, int us);
static void test_wall(int masked);
static void test_wall_short(int masked);
static void test_wall_blocked(void);
static void test_wall_ended(void);
static void test_traces(void);
static void test_locations(void);
static uint64_t test_traced(const prof_profile_t *p, const char *span);
static void test_idle_threads(void);
static void test_limit(void);
static void test_fault(void);
static void *test_sleep(void *data);
static prof_capture_t *test_capture_threads(int timers);
static void test_end(void);
static void test_fault_handler(int signo);
static void test_signal_handler(int signo, siginfo_t *si, void *uc);


static volatile uint64_t  test_sink;
static volatile int       test_faults;
static volatile int       test_settings;
static volatile int       test_readings;
static int                test_timers;
static int                test_deleted;
static volatile int       test_masks;
static volatile int       test_interrupted;
static uint64_t           test_waited;   /* CPU time of waits, ns */

static int  (*test_settime)(timer_t, int, const struct itimerspec *,
    struct itimerspec *);
static int  (*test_gettime)(clockid_t, struct timespec *);
static int  (*test_timer_create)(clockid_t, struct sigevent *, timer_t *);
static int  (*test_timer_delete)(timer_t);


/* counts how often a timer is set */

int
timer_settime(timer_t timer, int flags, const struct itimerspec *value,
    struct itimerspec *old)
{
    test_settings++;

    return test_settime(timer, flags, value, old);
}


/* counts the timers that exist, and those that are deleted */

int
timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    int  rc;

    rc = test_timer_create(clock, event, timer);
    test_timers += (rc == 0);

    return rc;
}


int
timer_delete(timer_t timer)
{
    test_timers--;
    test_deleted++;

    return test_timer_delete(timer);
}


/* counts changes of the signal mask */

int
pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    test_masks += (set != NULL);

    return syscall(SYS_rt_sigprocmask, how, set, old, _NSIG / 8) ? errno : 0;
}


/* counts readings of the calling thread's CPU clock, which are system calls */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    if (id == CLOCK_THREAD_CPUTIME_ID) {
        test_readings++;

        return syscall(SYS_clock_gettime, id, ts);
    }

    return test_gettime(id, ts);
}


static uint64_t
test_clock(clockid_t id)
{
    struct timespec  ts;

    if (id == CLOCK_THREAD_CPUTIME_ID) {
        (void) syscall(SYS_clock_gettime, id, &ts);

    } else {
        (void) clock_gettime(id, &ts);
    }

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


/* a sleep that signals do not end */

static void
test_block(int ms)
{
    struct timespec  ts;

    ts.tv_sec = 0;
    ts.tv_nsec = ms * MS;

    while (nanosleep(&ts, &ts) == -1) { /* void */ }
}


__attribute__((noinline)) static void
test_leaf(void)
{
    int  i;

    for (i = 0; i < 1000; i++) {
        test_sink += i;
    }
}


static void
test_spin(int ms)
{
    uint64_t  end;

    end = test_clock(CLOCK_THREAD_CPUTIME_ID) + (uint64_t) ms * MS;

    while (test_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
        test_leaf();
    }
}


static void *
test_run(void *data)
{
    test_thread_t *t = data;

    (void) pthread_sigmask(SIG_BLOCK, &t->blocked, NULL);
    (void) prctl(PR_SET_NAME, t->name);

    test_spin(t->ms);

    t->used = test_clock(CLOCK_THREAD_CPUTIME_ID);
    t->done = 1;

    return NULL;
}


static void
test_start(test_thread_t *t, const char *name, int ms)
{
    t->name = name;
    t->ms = ms;
    t->used = 0;
    t->done = 0;

    if (pthread_create(&t->thread, NULL, test_run, t) != 0) {
        abort();
    }
}


/* as an event loop does it: a drain, and some time without */

static void
test_drain_until_joined(test_thread_t *t)
{
    while (!t->done) {
        (void) usleep(20000);
        prof_process_drain();
    }

    (void) pthread_join(t->thread, NULL);
}


static prof_capture_t *
test_capture(uint32_t frequency, uint32_t mode)
{
    int                   rc;
    const char           *err;
    prof_capture_t       *c;
    prof_capture_conf_t   conf;

    conf.frequency = frequency;
    conf.mode = mode;
    conf.memory = PROF_MEMORY_DEFAULT;

    c = prof_capture_create(&conf);
    rc = prof_process_start(c, mode == PROF_MODE_WALL, &err);

    if (rc != PROF_OK) {
        diag("prof_process_start(): %s", err);
        abort();
    }

    /* as an event loop does it, until the threads are known */

    while (prof_process_pending()) {
        (void) usleep(prof_process_pending() * 1000);
        prof_process_drain();
    }

    return c;
}


/* CPU time of entries with the label; of all entries, if the value is NULL */

static uint64_t
test_labelled(const prof_profile_t *p, const char *name, const char *value)
{
    uint32_t             i;
    uint64_t             sum;
    const prof_label_t  *label;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        label = prof_profile_label_find(p, time_of(p, i)->labels, name);

        if (value == NULL || (label && strcmp(label->value, value) == 0)) {
            sum += cpu_of(p, i);
        }
    }

    return sum;
}


static uint64_t
test_cpu(const prof_profile_t *p, const char *thread)
{
    return test_labelled(p, "thread", thread);
}


/* CPU time in samples of a thread */

static uint64_t
test_sampled(const prof_profile_t *p, const char *thread)
{
    uint32_t             i;
    uint64_t             sum;
    const prof_label_t  *label;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        label = prof_profile_label_find(p, time_of(p, i)->labels, "thread");

        if (label && strcmp(label->value, thread) == 0
            && time_of(p, i)->type == PROF_ENTRY_SAMPLE
            && time_of(p, i)->count)
        {
            sum += cpu_of(p, i);
        }
    }

    return sum;
}


static uint64_t
test_traced(const prof_profile_t *p, const char *span)
{
    return test_labelled(p, "span_id", span);
}


static uint64_t
test_count(const prof_profile_t *p, const char *thread)
{
    uint32_t             i;
    uint64_t             sum;
    const prof_label_t  *label;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        label = prof_profile_label_find(p, time_of(p, i)->labels, "thread");

        if (label && strcmp(label->value, thread) == 0) {
            sum += time_of(p, i)->count;
        }
    }

    return sum;
}


/* the sum of a value of the stacks that consist of this name only */

static uint64_t
test_named_value(const prof_profile_t *p, const char *name, int value)
{
    uint32_t             i;
    uint64_t             sum;
    const prof_node_t   *node;
    const prof_frame_t  *frame;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        node = &p->nodes[time_of(p, i)->node];
        frame = &p->frames[node->frame];

        if (frame->name && strcmp(frame->name, name) == 0) {
            sum += time_of(p, i)->values[value];
        }
    }

    return sum;
}


static uint64_t
test_named(const prof_profile_t *p, const char *name)
{
    return test_named_value(p, name, PROF_VALUE_WALL);
}


/*
 * The number of samples must match the CPU time by another clock than the
 * profile's.  A signal that comes too late counts as lost.
 */

static void
test_samples(const prof_profile_t *p, uint32_t frequency, uint64_t cpu)
{
    double    due;
    uint64_t  n;

    due = (double) cpu * frequency / (1000 * MS);
    n = p->stats.samples + p->stats.lost_overrun;

    ok(n >= due * 0.95 - 2 && n <= due * 1.05 + 2,
       "%" PRIu64 " samples at %d Hz, %" PRIu64 " of them lost: %.1f are due",
       n, (int) frequency, p->stats.lost_overrun, due);
}


static int
test_handlers(void)
{
    int               signo, n;
    struct sigaction  sa;

    n = 0;

    for (signo = 1; signo <= SIGRTMAX; signo++) {

        if (sigaction(signo, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL) {
            n++;
        }
    }

    return n;
}


static void
test_first(void)
{
    long             pages;
    struct rusage    before, after;
    prof_capture_t  *c;

    (void) prof_process_init();

    (void) getrusage(RUSAGE_THREAD, &before);
    c = test_capture(99, PROF_MODE_CPU);
    (void) getrusage(RUSAGE_THREAD, &after);

    pages = after.ru_minflt - before.ru_minflt;

    ok(pages < TEST_PAGES || TAP_SANITIZED,
       "the first capture touches few pages: %ld", pages);

    prof_profile_destroy(finish_process(c, "first"));
    prof_capture_destroy(c);
}


static void
test_sum(void)
{
    uint64_t         before, after;
    prof_capture_t  *c;
    prof_profile_t  *p;

    c = test_capture(99, PROF_MODE_CPU);
    before = test_clock(CLOCK_PROCESS_CPUTIME_ID);

    test_spin(500);
    prof_process_drain();
    test_spin(500);

    after = test_clock(CLOCK_PROCESS_CPUTIME_ID);
    p = finish_process(c, "sum");
    prof_capture_destroy(c);

    ok(test_cpu(p, NULL) >= after - before
       && test_cpu(p, NULL) < after - before + 20 * MS,
       "the entries sum to the process's CPU time: %" PRIu64 " us of %" PRIu64,
       test_cpu(p, NULL) / 1000, (after - before) / 1000);
    ok(p->cpu == test_cpu(p, NULL),
       "the profile's CPU time is the sum of its entries");
    test_samples(p, 99, after - before);
    is_int(p->stats.bad_stack + p->stats.truncated + p->stats.no_unwind, 0,
           "all stacks of the process are complete");

    prof_profile_destroy(p);
}


/* signals are up to 1.4 periods late, independent of the machine's load */

static void
test_delayed(void)
{
    int              i;
    uint64_t         cpu;
    sigset_t         all, old;
    prof_capture_t  *c;
    prof_profile_t  *p;

    sigfillset(&all);

    c = test_capture(100, PROF_MODE_CPU);
    cpu = test_clock(CLOCK_PROCESS_CPUTIME_ID);

    for (i = 0; i < 40; i++) {
        (void) pthread_sigmask(SIG_BLOCK, &all, &old);
        test_spin(14);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        test_spin(3);
    }

    cpu = test_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    p = finish_process(c, "delayed");
    prof_capture_destroy(c);

    test_samples(p, 100, cpu);
    ok(p->stats.lost_overrun > 5, "late signals are counted as lost: %" PRIu64,
       p->stats.lost_overrun);
    ok(test_sampled(p, "main") > cpu * 9 / 10, "samples have all of the time");

    prof_profile_destroy(p);
}


static void
test_threads(void)
{
    test_thread_t    one, two;
    prof_capture_t  *c;
    prof_profile_t  *p;

    sigemptyset(&one.blocked);
    sigemptyset(&two.blocked);

    c = test_capture(1000, PROF_MODE_CPU);

    test_start(&one, "first", 300);
    test_start(&two, "second", 600);
    test_drain_until_joined(&one);
    test_drain_until_joined(&two);

    p = finish_process(c, "threads");
    prof_capture_destroy(c);

    ok(test_cpu(p, "first") > 100 * MS
       && test_cpu(p, "first") <= one.used + 20 * MS,
       "the CPU time of the first thread: %" PRIu64 " us of %" PRIu64,
       test_cpu(p, "first") / 1000, one.used / 1000);
    ok(test_cpu(p, "second") > 200 * MS
       && test_cpu(p, "second") <= two.used + 20 * MS,
       "the CPU time of the second thread: %" PRIu64 " us of %" PRIu64,
       test_cpu(p, "second") / 1000, two.used / 1000);
    ok(test_cpu(p, NULL) >= one.used + two.used,
       "the sum contains the time after the threads' last samples");
    ok(test_count(p, "second") + p->stats.lost_overrun
       > test_cpu(p, "second") / MS * 9 / 10,
       "samples of the second thread at 1 kHz: %" PRIu64 ", lost: %" PRIu64,
       test_count(p, "second"), p->stats.lost_overrun);
    ok(p->stats.bad_stack + p->stats.truncated + p->stats.no_unwind
       <= p->stats.samples / 100, "the stacks of both threads are complete");

    prof_profile_destroy(p);
}


static void
test_blocked(void)
{
    uint64_t         sampled;
    test_thread_t    most, all;
    prof_capture_t  *c;
    prof_profile_t  *p;

    sigfillset(&most.blocked);
    sigdelset(&most.blocked, SIGFPE);
    sigfillset(&all.blocked);

    test_start(&most, "most", 400);
    test_start(&all, "all", 400);
    (void) usleep(10000);

    c = test_capture(200, PROF_MODE_CPU);

    test_drain_until_joined(&most);
    test_drain_until_joined(&all);

    p = finish_process(c, "blocked");
    prof_capture_destroy(c);

    /*
     * Other processes may leave few samples to the thread.  Each sample still
     * has the CPU time since the one before.
     */

    sampled = test_sampled(p, "most");

    ok(test_count(p, "most") > 5, "a thread that blocks all signals but those"
       " of faults: %" PRIu64 " samples", test_count(p, "most"));
    ok(sampled > most.used * 8 / 10 && sampled <= most.used,
       "these samples have the thread's CPU time: %" PRIu64 " us of %" PRIu64,
       sampled / 1000, most.used / 1000);
    is_int(test_count(p, "all"), 0,
           "a thread that blocks all signals has no samples");
    ok(test_cpu(p, "all") > 50 * MS,
       "the profile has the CPU time of this thread");
    ok(test_named(p, "[not sampled]") >= test_cpu(p, "all"),
       "the profile notes that this thread was not sampled");

    prof_profile_destroy(p);
}


static void
test_overlap(void)
{
    uint64_t         fast_begin, slow_begin, fast_cpu, slow_cpu;
    prof_capture_t  *slow, *fast;
    prof_profile_t  *p, *q;

    slow = test_capture(99, PROF_MODE_CPU);
    slow_begin = test_clock(CLOCK_PROCESS_CPUTIME_ID);
    test_spin(500);

    fast = test_capture(1000, PROF_MODE_CPU);
    fast_begin = test_clock(CLOCK_PROCESS_CPUTIME_ID);

    test_spin(1000);
    prof_process_drain();
    test_spin(500);

    fast_cpu = test_clock(CLOCK_PROCESS_CPUTIME_ID) - fast_begin;
    q = finish_process(fast, "fast");
    prof_capture_destroy(fast);

    test_spin(500);

    slow_cpu = test_clock(CLOCK_PROCESS_CPUTIME_ID) - slow_begin;
    p = finish_process(slow, "slow");
    prof_capture_destroy(slow);

    test_samples(q, 1000, fast_cpu);
    test_samples(p, 99, slow_cpu);

    prof_profile_destroy(p);
    prof_profile_destroy(q);
}


static void
test_late(void)
{
    int              i;
    uint64_t         ended, found;
    test_thread_t    t;
    prof_capture_t  *c;
    prof_profile_t  *p;

    sigemptyset(&t.blocked);

    c = test_capture(100, PROF_MODE_CPU);

    for (i = 0; i < 20; i++) {
        test_start(&t, "short", 5);
        (void) pthread_join(t.thread, NULL);
    }

    p = finish_process(c, "late");
    prof_capture_destroy(c);

    /* a thread that is found may not have its name yet */

    ended = test_named(p, "[threads that ended]");
    found = test_labelled(p, "thread", NULL) - ended;

    ok(ended > 0 && ended + found >= 90 * MS,
       "threads that were never seen are in the sum: %" PRIu64 " us, and %"
       PRIu64 " us of those that were", ended / 1000, found / 1000);

    prof_profile_destroy(p);
}


/* two traces and a part without a trace; the second trace has no room */

static void
test_traces(void)
{
    uint64_t         mute;
    prof_trace_t     one, two;
    prof_capture_t  *c, *all;
    prof_profile_t  *p;

    (void) prof_trace_parse(&one, "00-00000000000000000000000000000001-"
                                  "000000000000000a-01", 55);
    (void) prof_trace_parse(&two, "00-00000000000000000000000000000002-"
                                  "000000000000000b-01", 55);

    c = test_capture(1000, PROF_MODE_CPU);
    all = test_capture(1000, PROF_MODE_CPU);

    is_int(prof_process_traces(c, 1), PROF_OK,
           "a capture has memory for one trace");
    is_int(prof_process_traces(all, 100), PROF_OK,
           "another capture has memory for all traces");

    prof_process_trace(&one);
    test_spin(200);
    prof_process_drain();

    prof_process_trace(&two);
    test_spin(200);
    prof_process_drain();

    prof_process_trace(NULL);
    test_spin(200);

    p = finish_process(c, "traces");
    prof_capture_destroy(c);

    ok(test_traced(p, "000000000000000a") > 150 * MS
       && test_traced(p, "000000000000000a") < 250 * MS,
       "samples of the first trace have its label");
    is_int(test_traced(p, "000000000000000b"), 0,
           "no sample has the label of a trace that does not fit");

    mute = p->cpu - test_traced(p, "000000000000000a");
    ok(mute > 350 * MS, "all other samples have no label of a trace");
    ok(p->stats.lost_traces > 20
       && p->stats.lost_traces < p->stats.samples / 2 + 10,
       "%" PRIu64 " samples lost their trace", p->stats.lost_traces);

    prof_profile_destroy(p);

    p = finish_process(all, "traces");
    prof_capture_destroy(all);

    ok(test_traced(p, "000000000000000a") > 150 * MS
       && test_traced(p, "000000000000000b") > 150 * MS
       && test_traced(p, "000000000000000b") < 250 * MS,
       "with enough memory samples of both traces have labels");
    is_int(p->stats.lost_traces, 0,
           "with enough memory no sample loses its trace");

    prof_profile_destroy(p);
}


/* of many locations, those with the most time have labels */

static void
test_locations(void)
{
    int              i, k;
    uint64_t         sum;
    prof_capture_t  *c;
    prof_profile_t  *p;

    static const int  heavy[] = { 0, TEST_LOCATIONS / 2, TEST_LOCATIONS - 1 };
    static char       names[TEST_LOCATIONS][24];

    c = test_capture(1000, PROF_MODE_CPU);

    for (i = 0, k = 0; i < TEST_LOCATIONS; i++) {
        snprintf(names[i], sizeof(names[i]), "/location/%d", i);
        prof_process_location(names[i]);

        if (i == heavy[k]) {
            test_spin(150);
            k += (k < 2);
        }

        test_spin(2);
        prof_process_drain();
    }

    prof_process_location(NULL);

    p = finish_process(c, "locations");
    prof_capture_destroy(c);

    for (k = 0; k < 3; k++) {
        sum = test_labelled(p, "location", names[heavy[k]]);
        ok(sum > 130 * MS && sum < 200 * MS,
           "location %d of %d, which uses much time, has its label: %"
           PRIu64 " ms", heavy[k], TEST_LOCATIONS, sum / MS);
    }

    ok(test_labelled(p, "location", "[other]") > 300 * MS,
       "locations without a label of their own are shown as others");
    ok(p->stats.merged_names > TEST_LOCATIONS / 4
       && p->stats.merged_names < TEST_LOCATIONS,
       "%d names are said to be left out", (int) p->stats.merged_names);
    ok(test_cpu(p, "main") > 1900 * MS, "the thread keeps its label");
    is_int(test_labelled(p, "location", NULL), p->cpu,
           "the samples sum to the whole");

    prof_profile_destroy(p);
}


/* the main thread waits, as an event loop does */

static void
test_wait(int masked, int us)
{
    const sigset_t  *mask;
    struct timespec  ts;

    ts.tv_sec = 0;
    ts.tv_nsec = us * 1000;

    mask = NULL;

    prof_process_idle(masked ? &mask : NULL);

    test_waited -= test_clock(CLOCK_THREAD_CPUTIME_ID);

    if (ppoll(NULL, 0, &ts, mask) == -1) {
        test_interrupted++;
    }

    test_waited += test_clock(CLOCK_THREAD_CPUTIME_ID);

    prof_process_busy();
}


static void
test_wall(int masked)
{
    int              i;
    uint64_t         before, after;
    prof_capture_t  *c;
    prof_profile_t  *p;

    test_interrupted = 0;

    before = test_clock(CLOCK_MONOTONIC);
    c = test_capture(1000, PROF_MODE_WALL);

    for (i = 0; i < 20; i++) {
        test_spin(5);
        test_block(3);                  /* the main thread is busy */

        test_wait(masked, 15000);

        prof_process_drain();
    }

    p = finish_process(c, "wall");
    after = test_clock(CLOCK_MONOTONIC);
    prof_capture_destroy(c);

    ok(p->wall <= after - before && p->wall > after - before - 20 * MS,
       "the wall time is that of the main thread");
    is_int(test_interrupted, 0, "waits of the main thread are not interrupted");
    ok(test_named(p, "[idle]") >= 300 * MS, "the profile shows the idle time");

    /* the thread that looks for threads runs at the same time */

    ok(p->running >= 160 * MS && p->running + test_named(p, "[idle]")
       <= p->wall + MS + test_cpu(p, "profile")
          + test_named(p, "[threads not found yet]"),
       "the rest of the time is running: %" PRIu64 " ms of %" PRIu64,
       p->running / MS, p->wall / MS);
    ok(p->cpu >= 100 * MS && p->cpu <= p->running,
       "running time includes waits without CPU time: %" PRIu64 " ms",
       p->cpu / MS);
    ok(p->stats.samples >= 80, "%" PRIu64 " samples", p->stats.samples);

    prof_profile_destroy(p);
}


/* a wait that is shorter than the period does not stop the timer */

static void
test_wall_short(int masked)
{
    int              i, settings, readings, masks;
    uint64_t         end, cpu, busy, idle_cpu;
    prof_capture_t  *c;
    prof_profile_t  *p;

    c = test_capture(99, PROF_MODE_WALL);
    settings = test_settings;
    readings = test_readings;
    masks = test_masks;
    test_interrupted = 0;
    busy = 0;
    cpu = test_waited;

    for (i = 0; i < TEST_WAITS; i++) {
        end = test_clock(CLOCK_MONOTONIC) + MS / 4;
        busy += MS / 4;

        while (test_clock(CLOCK_MONOTONIC) < end) {
            test_leaf();
        }

        test_wait(masked, 100);
    }

    settings = test_settings - settings;
    readings = test_readings - readings;
    masks = test_masks - masks;
    cpu = test_waited - cpu;

    p = finish_process(c, "short");
    prof_capture_destroy(c);

    ok(settings > 0 && settings < TEST_WAITS / 2,
       "%d waits set timers %d times", TEST_WAITS, settings);
    ok(readings > 0 && readings < TEST_WAITS,
       "%d waits read the CPU clock %d times", TEST_WAITS, readings);
    is_int(masks, masked ? 0 : 2 * TEST_WAITS,
           "system calls that change the signal mask for %d waits", TEST_WAITS);
    is_int(test_interrupted, 0, "short waits are not interrupted");

    idle_cpu = test_named_value(p, "[idle]", PROF_VALUE_CPU);

    ok(idle_cpu > cpu * 8 / 10 && idle_cpu < cpu * 16 / 10,
       "the CPU time of waits is %" PRIu64 " us, and shown as %" PRIu64 " us",
       cpu / 1000, idle_cpu / 1000);
    ok(p->running >= busy && p->running + test_named(p, "[idle]")
       <= p->wall + MS,
       "running and idle time are told apart in short waits: %" PRIu64
       " ms of %" PRIu64, p->running / MS, p->wall / MS);
    ok(p->stats.samples + p->stats.lost_overrun
       >= p->running * 99 / (1000 * MS) * 8 / 10,
       "all running time is sampled beside short waits: %" PRIu64 " samples",
       p->stats.samples);

    prof_profile_destroy(p);
}


static void
test_wall_ended(void)
{
    int              i, blocked;
    sigset_t         set;
    prof_capture_t  *c;

    c = test_capture(99, PROF_MODE_WALL);

    prof_process_idle(NULL);
    prof_process_cancel(c);
    prof_capture_destroy(c);
    prof_process_busy();

    (void) pthread_sigmask(SIG_BLOCK, NULL, &set);

    blocked = 0;

    for (i = 1; i <= SIGRTMAX; i++) {
        blocked += (sigismember(&set, i) == 1);
    }

    is_int(blocked, 0,
           "a capture that ends in a wait leaves no blocked signal");
}


/* the main thread has blocked the signal, and gets another one */

static void
test_wall_blocked(void)
{
    sigset_t         set, old;
    prof_capture_t  *c;
    const sigset_t  *mask;

    c = test_capture(1000, PROF_MODE_WALL);

    sigemptyset(&set);
    sigaddset(&set, prof_signal_number(PROF_SIGNAL_OWN));

    (void) pthread_sigmask(SIG_BLOCK, &set, &old);

    test_spin(100);
    prof_process_drain();

    prof_process_idle(&mask);
    ok(mask && sigismember(mask, SIGFPE) == 1,
       "a wait is not interrupted by the other signal");
    prof_process_busy();

    prof_process_cancel(c);
    prof_capture_destroy(c);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
}


/* an idle thread is not woken: a signal would end its sleep */

static void
test_idle_threads(void)
{
    int              rc;
    prof_capture_t  *c;
    struct timespec  ts;

    c = test_capture(1000, PROF_MODE_CPU);

    ts.tv_sec = 0;
    ts.tv_nsec = 300 * MS;

    rc = nanosleep(&ts, NULL);

    is_int(rc, 0, "a thread that sleeps is not interrupted");

    prof_process_cancel(c);
    prof_capture_destroy(c);
}


static void
test_limit(void)
{
    int                   i;
    const char           *err;
    prof_capture_t       *c[PROF_PROCESS_CAPTURES + 1];
    prof_capture_conf_t   conf;

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        c[i] = test_capture(100 + i, PROF_MODE_CPU);
    }

    conf.frequency = 99;
    conf.mode = PROF_MODE_CPU;
    conf.memory = PROF_MEMORY_MIN;

    c[i] = prof_capture_create(&conf);
    is_int(prof_process_start(c[i], 0, &err), PROF_LIMIT,
           "a capture beyond the maximum is refused");

    for (i = 0; i <= PROF_PROCESS_CAPTURES; i++) {
        prof_process_cancel(c[i]);
        prof_capture_destroy(c[i]);
    }
}


static void
test_fault_handler(int signo)
{
    test_faults++;
}


static void
test_signal_handler(int signo, siginfo_t *si, void *uc)
{
    test_faults += 100;
}


/* a SIGFPE that no timer sent goes to the handler that was installed before */

static void
test_fault(void)
{
    test_thread_t      t;
    prof_capture_t    *c;
    struct sigaction   sa, old;

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = test_fault_handler;
    (void) sigaction(SIGFPE, &sa, &old);

    sigfillset(&t.blocked);
    sigdelset(&t.blocked, SIGFPE);
    test_start(&t, "most", 100);
    (void) usleep(10000);

    c = test_capture(100, PROF_MODE_CPU);

    (void) sigaction(SIGFPE, NULL, &sa);
    ok(sa.sa_handler != test_fault_handler,
       "a capture installs its handler of SIGFPE");

    (void) raise(SIGFPE);
    is_int(test_faults, 1,
           "a SIGFPE that no timer sent reaches the handler before");

    (void) pthread_join(t.thread, NULL);
    prof_process_drain();

    (void) raise(SIGFPE);
    is_int(test_faults, 2,
           "a SIGFPE is also passed on when the thread has ended");

    prof_process_cancel(c);
    prof_capture_destroy(c);

    (void) sigaction(SIGFPE, NULL, &sa);
    ok(sa.sa_handler == test_fault_handler,
       "the end of the capture restores the handler of SIGFPE");

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_sigaction = test_signal_handler;
    sa.sa_flags = SA_SIGINFO;
    (void) sigaction(SIGFPE, &sa, NULL);

    test_start(&t, "most", 100);
    (void) usleep(10000);

    c = test_capture(100, PROF_MODE_CPU);

    (void) raise(SIGFPE);
    is_int(test_faults, 102,
           "a SIGFPE is also passed on to a handler with SA_SIGINFO");

    (void) pthread_join(t.thread, NULL);

    prof_process_cancel(c);
    prof_capture_destroy(c);

    (void) sigaction(SIGFPE, &old, NULL);
}


static void *
test_sleep(void *data)
{
    char  byte;

    (void) read(*(int *) data, &byte, 1);

    return NULL;
}


static prof_capture_t *
test_capture_threads(int timers)
{
    int              i;
    prof_capture_t  *c;

    c = test_capture(99, PROF_MODE_CPU);

    for (i = 0; i < 1000 && test_timers < timers; i++) {
        (void) poll(NULL, 0, 10);
        prof_process_drain();
    }

    return c;
}


/* the end of a capture beside many threads */

static void
test_end(void)
{
    int              i, fd[2], handlers, most;
    pthread_t        threads[TEST_THREADS];
    prof_capture_t  *c;

    handlers = test_handlers();

    if (pipe(fd) == -1) {
        abort();
    }

    for (i = 0; i < TEST_THREADS; i++) {
        if (pthread_create(&threads[i], NULL, test_sleep, &fd[0])) {
            abort();
        }
    }

    c = test_capture_threads(TEST_THREADS * (1 + PROF_FINE_TIMERS));

    ok(test_timers > TEST_THREADS * (1 + PROF_FINE_TIMERS),
       "all threads have timers: %d", test_timers);

    most = (1 + PROF_CLOSE_THREADS) * (1 + PROF_FINE_TIMERS);

    test_deleted = 0;
    prof_process_cancel(c);

    ok(test_deleted <= most, "the end deletes some of them: %d", test_deleted);
    ok(prof_process_pending() && test_handlers() > handlers,
       "and the handlers stay for the others");

    /* a capture that begins then deletes the others first */

    prof_capture_destroy(c);
    c = test_capture_threads(TEST_THREADS * (1 + PROF_FINE_TIMERS));

    ok(test_timers > TEST_THREADS * (1 + PROF_FINE_TIMERS),
       "the next capture finds all threads: %d", test_timers);

    test_deleted = 0;
    prof_process_cancel(c);
    prof_capture_destroy(c);

    for (i = 0; i < TEST_THREADS && prof_process_pending(); i++) {
        most = test_deleted > most ? test_deleted : most;
        test_deleted = 0;
        prof_process_drain();
    }

    ok(test_timers == 0 && i > 1
       && most <= (1 + PROF_CLOSE_THREADS) * (1 + PROF_FINE_TIMERS),
       "%d calls delete the others", i);
    is_int(test_handlers(), handlers, "no handler is left then");

    (void) close(fd[1]);

    for (i = 0; i < TEST_THREADS; i++) {
        (void) pthread_join(threads[i], NULL);
    }

    (void) close(fd[0]);
}


int
main(void)
{
    int  handlers;

    test_gettime = (int (*)(clockid_t, struct timespec *))
                   dlsym(RTLD_NEXT, "clock_gettime");
    test_settime = (int (*)(timer_t, int, const struct itimerspec *,
                            struct itimerspec *)) (uintptr_t)
                       dlsym(RTLD_NEXT, "timer_settime");

    test_timer_create = (int (*)(clockid_t, struct sigevent *, timer_t *))
                            (uintptr_t) dlsym(RTLD_NEXT, "timer_create");
    test_timer_delete = (int (*)(timer_t)) (uintptr_t)
                            dlsym(RTLD_NEXT, "timer_delete");

    handlers = test_handlers();

    test_first();
    test_sum();
    test_delayed();
    test_threads();
    test_blocked();
    test_overlap();
    test_late();
    test_wall(0);
    test_wall(1);
    test_wall_short(0);
    test_wall_short(1);
    test_wall_ended();
    test_wall_blocked();
    test_traces();
    test_locations();
    test_idle_threads();
    test_limit();
    test_fault();
    test_end();

    is_int(test_handlers(), handlers, "no handler is left");
    is_int(test_timers, 0, "no timer is left");

    prof_process_done();

    return done_testing();
}
