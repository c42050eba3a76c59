
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: capture
 *
 * Code that blocks in system calls while it is sampled: few of its calls are
 * interrupted, and the profile has the time that they took.
 */


#include "tap.h"

#include "prof.h"
#include "prof_finish.h"
#include "prof_series.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define MS          1000000

#define TEST_CALLS  20
#define TEST_POLL   10          /* ms that each call waits */
#define TEST_SPIN   100         /* ms of CPU time after them */


typedef struct {
    int       fd;
    int       interrupted;      /* calls that failed with EINTR at least once */
    uint64_t  waited;           /* ns, wall time */
    uint64_t  spun;             /* ns, wall time */
} test_job_t;


static uint64_t test_now(clockid_t id);
static int test_poll(int fd);
static void test_spin(int ms);
static void test_work(test_job_t *job);
static void test_turn(void *data);
static uint64_t test_below(const prof_profile_t *p, uintptr_t fn, int cpu);
static void test_profile(const prof_profile_t *p, const test_job_t *job);
static void test_request(test_job_t *job);
static void test_process(test_job_t *job);


static volatile uint64_t  test_sink;


static uint64_t
test_now(clockid_t id)
{
    struct timespec  ts;

    (void) clock_gettime(id, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


/* waits as a library does: with the time that is left.  1: was interrupted */

__attribute__((noinline)) static int
test_poll(int fd)
{
    int            interrupted;
    uint64_t       now, end;
    struct pollfd  pfd;

    pfd.fd = fd;
    pfd.events = POLLIN;
    interrupted = 0;

    end = test_now(CLOCK_MONOTONIC) + TEST_POLL * MS;

    for ( ;; ) {
        now = test_now(CLOCK_MONOTONIC);

        if (now >= end) {
            return interrupted;
        }

        if (poll(&pfd, 1, (end - now + MS - 1) / MS) == -1 && errno == EINTR) {
            interrupted = 1;
        }
    }
}


__attribute__((noinline)) static void
test_spin(int ms)
{
    uint64_t  end;

    end = test_now(CLOCK_THREAD_CPUTIME_ID) + (uint64_t) ms * MS;

    while (test_now(CLOCK_THREAD_CPUTIME_ID) < end) {
        test_sink++;
    }
}


static void
test_work(test_job_t *job)
{
    int       i;
    uint64_t  start;

    job->interrupted = 0;

    start = test_now(CLOCK_MONOTONIC);

    for (i = 0; i < TEST_CALLS; i++) {
        job->interrupted += test_poll(job->fd);
    }

    job->waited = test_now(CLOCK_MONOTONIC) - start;

    start = test_now(CLOCK_MONOTONIC);
    test_spin(TEST_SPIN);
    job->spun = test_now(CLOCK_MONOTONIC) - start;
}


static void
test_turn(void *data)
{
    test_work(data);
}


/* weight of the stacks with the function */

static uint64_t
test_below(const prof_profile_t *p, uintptr_t fn, int cpu)
{
    uint32_t             i, node;
    uint64_t             sum;
    const prof_frame_t  *f;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {

        for (node = time_of(p, i)->node;
             node != PROF_NONE;
             node = p->nodes[node].parent)
        {
            f = &p->frames[p->nodes[node].frame];

            if (f->object != PROF_NONE
                && f->function + p->objects[f->object].base == fn)
            {
                sum += cpu ? cpu_of(p, i) : wall_of(p, i);
                break;
            }
        }
    }

    return sum;
}


static void
test_profile(const prof_profile_t *p, const test_job_t *job)
{
    uint64_t  polled, spun, cpu, due, n;

    /*
     * The time between two samples doubles while the thread waits, from one
     * period on: 9 samples make 500 ms.  A machine that is busy with other
     * things adds some.
     */

    ok(job->interrupted <= TEST_CALLS * 6 / 10,
       "%d of %d calls were interrupted", job->interrupted, TEST_CALLS);

    polled = test_below(p, (uintptr_t) test_poll, 0);
    spun = test_below(p, (uintptr_t) test_spin, 0);
    cpu = test_below(p, (uintptr_t) test_spin, 1);

    ok(polled >= job->waited * 95 / 100,
       "the calls have the time that they waited: %d of %d ms",
       (int) (polled / MS), (int) (job->waited / MS));

    /* a thread that does not get the processor is sampled late */

    ok(spun <= job->spun * 105 / 100 + 2 * MS,
       "what ran after them has no time of theirs: %d of %d ms",
       (int) (spun / MS), (int) (job->spun / MS));
    ok(cpu >= TEST_SPIN * MS * 9 / 10, "but has its own CPU time: %d of %d ms",
       (int) (cpu / MS), TEST_SPIN);

    n = p->stats.samples + p->stats.lost_overrun + p->stats.postponed;
    due = (job->waited + job->spun) / MS;

    ok(p->stats.postponed > 50, "%d samples were postponed",
       (int) p->stats.postponed);
    ok(n >= due * 9 / 10 - 2 && n <= due * 11 / 10 + 2,
       "with them and lost ones there are %d, of %d at 1 kHz", (int) n,
       (int) due);
}


static void
test_request(test_job_t *job)
{
    const char           *err;
    prof_sampler_t       *s;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    conf.frequency = 1000;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_DEFAULT;

    s = prof_sampler_create(&err);
    c = prof_capture_create(&conf);

    prof_turn_run(s, c, (uintptr_t) test_turn, test_turn, job);

    p = finish_capture(c, "request");
    prof_capture_destroy(c);
    prof_sampler_destroy(s);

    test_profile(p, job);
    prof_profile_destroy(p);
}


static void
test_process(test_job_t *job)
{
    const char           *err;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    conf.frequency = 1000;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_DEFAULT;

    c = prof_capture_create(&conf);

    if (prof_process_start(c, 1, &err) != PROF_OK) {
        diag("prof_process_start(): %s", err);
        abort();
    }

    test_work(job);

    p = finish_process(c, "process");
    prof_capture_destroy(c);

    test_profile(p, job);
    prof_profile_destroy(p);
}


int
main(void)
{
    int         fds[2];
    test_job_t  job;

    if (pipe(fds) == -1) {
        return 2;
    }

    memset(&job, 0, sizeof(test_job_t));
    job.fd = fds[0];

    test_request(&job);
    test_process(&job);

    prof_process_done();

    return done_testing();
}
