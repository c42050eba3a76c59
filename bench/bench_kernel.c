
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Measures what stacks of the kernel cost.  A thread writes to a socket and
 * reads from it.  It is sampled 1000 times per second, without and with the
 * kernel's part of the stacks.  Needs the permission to open perf events.
 * Prints over all rounds:
 *
 *     ratio    CPU time to that of the same work without a capture
 *     handler  mean time of the signal handler
 *     share    CPU time in system calls with a stack of the kernel
 */


#include "prof.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


#define BENCH_ROUNDS  20
#define BENCH_LOOPS   20000
#define BENCH_CASES   4


static void bench_work(void *data);
static void bench_run(int i, prof_sampler_t *s);
static void bench_count(int i, prof_profile_t *p);
static uint64_t bench_clock(void);


static const char *const  bench_names[BENCH_CASES] = {
    "no capture", "no capture, again", "stacks of the process",
    "stacks of the kernel"
};

static int       bench_fds[2];
static uint64_t  bench_ns[BENCH_CASES];
static uint64_t  bench_handler[BENCH_CASES];
static uint64_t  bench_samples[BENCH_CASES];
static uint64_t  bench_calls[BENCH_CASES];
static uint64_t  bench_deep[BENCH_CASES];


int
main(void)
{
    int              i, r, sock;
    const char      *err;
    prof_sampler_t  *s;

    sock = prof_kernel_opener(NULL, &err);

    if (sock == -1) {
        printf("%s\n", err);
        return 0;
    }

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, bench_fds) == -1) {
        perror("socketpair()");
        return 1;
    }

    for (r = 0; r < BENCH_ROUNDS; r++) {

        for (i = 0; i < BENCH_CASES; i++) {
            prof_kernel_use(i == BENCH_CASES - 1 ? sock : -1);

            s = prof_sampler_create(&err);
            if (s == NULL) {
                printf("%s\n", err);
                return 1;
            }

            bench_run(i, s);

            prof_sampler_destroy(s);
        }
    }

    printf("%-22s  ratio  handler   share\n", "");

    for (i = 1; i < BENCH_CASES; i++) {
        printf("%-22s %6.3f %5.2f us %5.1f %%\n", bench_names[i],
               (double) bench_ns[i] / bench_ns[0],
               bench_samples[i] ? bench_handler[i] / 1e3 / bench_samples[i] : 0,
               bench_calls[i] ? 100. * bench_deep[i] / bench_calls[i] : 0);
    }

    return 0;
}


static void
bench_run(int i, prof_sampler_t *s)
{
    uint64_t              start;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    if (i < 2) {
        start = bench_clock();
        bench_work(NULL);
        bench_ns[i] += bench_clock() - start;
        return;
    }

    conf.frequency = 1000;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_DEFAULT;

    c = prof_capture_create(&conf);
    if (c == NULL) {
        abort();
    }

    start = bench_clock();
    prof_turn_run(s, c, (uintptr_t) bench_work, bench_work, NULL);
    bench_ns[i] += bench_clock() - start;

    p = prof_capture_finish(c, "bench");
    prof_capture_destroy(c);

    if (p == NULL || prof_profile_symbolize(p) != PROF_OK) {
        abort();
    }

    bench_count(i, p);
    prof_profile_destroy(p);
}


static void
bench_work(void *data)
{
    int          i;

    static char  buf[8192];

    for (i = 0; i < BENCH_LOOPS; i++) {
        if (write(bench_fds[0], buf, sizeof(buf)) != sizeof(buf)
            || read(bench_fds[1], buf, sizeof(buf)) != sizeof(buf))
        {
            abort();
        }
    }
}


static void
bench_count(int i, prof_profile_t *p)
{
    uint32_t             j, node, depth;
    uint64_t             cpu;
    prof_entry_t        *e;
    prof_series_t       *s;
    const prof_frame_t  *f;

    bench_handler[i] += p->stats.own_handler_ns;
    bench_samples[i] += p->stats.samples;

    s = &p->series[PROF_SERIES_TIME];

    for (j = 0; j < s->n; j++) {
        e = prof_series_entry(s, j);
        cpu = e->values[PROF_VALUE_CPU];
        depth = 0;

        for (node = e->node; node != PROF_NONE; node = p->nodes[node].parent) {
            f = &p->frames[p->nodes[node].frame];
            depth += f->type == PROF_TYPE_KERNEL;
        }

        bench_calls[i] += depth ? cpu : 0;
        bench_deep[i] += depth > 1 ? cpu : 0;
    }
}


static uint64_t
bench_clock(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
