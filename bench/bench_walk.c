
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Compares the stack walk with glibc's backtrace(): both in alternation in one
 * run, inside one signal handler, for the same warm stack.  Prints medians
 * over the rounds:
 *
 *     frames   of the interrupted stack; backtrace() also has the frames of the
 *              handler
 *     walk     nanoseconds per stack
 *     cold     the same with an empty row cache: every frame is looked up
 *     A/A      "walk" measured a second time / the first time: the noise of the
 *              ratios
 *     ratio    backtrace() / walk
 */


#include "unwind/prof_unwind.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


#define BENCH_ROUNDS  301
#define BENCH_LOOPS   200


typedef int (*bench_backtrace_pt)(void **buf, int size);


static void bench_handler(int signo, siginfo_t *si, void *ctx);
static double bench_walk(const ucontext_t *uc);
static double bench_walk_cold(const ucontext_t *uc);
static void bench_one(const ucontext_t *uc);
static double bench_backtrace(void);
static double bench_median(double *v);
static int bench_cmp(const void *one, const void *two);
static uint64_t bench_now(void);
static int bench_f0(int n);


static prof_unwind_t       *bench_unwind;
static prof_walk_cache_t    bench_cache;
static prof_stats_t         bench_stats;
static bench_backtrace_pt   bench_libc_backtrace;
static uintptr_t            bench_top;
static uint32_t             bench_frames;
static uint32_t             bench_end;
static int                  bench_libc_frames;
static double               bench_ns[4][BENCH_ROUNDS];


/* twenty functions with frames of different sizes; each calls the next */

#define bench_f(name, callee, size)                                           \
    static __attribute__((noinline)) int                                      \
    name(int n)                                                               \
    {                                                                         \
        volatile int  v[size];                                                \
                                                                              \
        v[n % size] = n;                                                      \
        n += callee(n + 1) * 3;                                               \
                                                                              \
        return n + v[n % size];                                               \
    }

bench_f(bench_f1, bench_f0, 3)
bench_f(bench_f2, bench_f1, 16)
bench_f(bench_f3, bench_f2, 7)
bench_f(bench_f4, bench_f3, 40)
bench_f(bench_f5, bench_f4, 9)
bench_f(bench_f6, bench_f5, 2)
bench_f(bench_f7, bench_f6, 100)
bench_f(bench_f8, bench_f7, 5)
bench_f(bench_f9, bench_f8, 12)
bench_f(bench_f10, bench_f9, 33)
bench_f(bench_f11, bench_f10, 3)
bench_f(bench_f12, bench_f11, 64)
bench_f(bench_f13, bench_f12, 8)
bench_f(bench_f14, bench_f13, 27)
bench_f(bench_f15, bench_f14, 6)
bench_f(bench_f16, bench_f15, 14)
bench_f(bench_f17, bench_f16, 4)
bench_f(bench_f18, bench_f17, 51)
bench_f(bench_f19, bench_f18, 10)
bench_f(bench_f20, bench_f19, 21)


int
main(int argc, char **argv)
{
    void              *libc;
    double             walk, again, cold, libc_ns;
    struct sigaction   sa;

    /* by handle, since a library in between may define its own backtrace() */

    libc = dlopen("libc.so.6", RTLD_LAZY|RTLD_NOLOAD);

    if (libc == NULL) {
        fprintf(stderr, "no glibc\n");
        return 1;
    }

    bench_libc_backtrace = (bench_backtrace_pt) dlsym(libc, "backtrace");
    bench_unwind = prof_unwind_create();

    if (bench_libc_backtrace == NULL || bench_unwind == NULL) {
        fprintf(stderr, "nothing to compare\n");
        return 1;
    }

    (void) bench_backtrace();

    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = bench_handler;
    sa.sa_flags = SA_SIGINFO;

    if (sigaction(SIGUSR1, &sa, NULL) == -1) {
        perror("sigaction");
        return 1;
    }

    bench_top = (uintptr_t) __builtin_frame_address(0);

    (void) bench_f20(argc);

    if (bench_end != 0) {
        fprintf(stderr, "the walk did not reach its top: %u\n", bench_end);
        return 1;
    }

    walk = bench_median(bench_ns[0]);
    libc_ns = bench_median(bench_ns[1]);
    again = bench_median(bench_ns[2]);
    cold = bench_median(bench_ns[3]);

    printf("walk       %8.1f ns/stack  %5.2f ns/frame  (%u frames)\n",
           walk, walk / bench_frames, bench_frames);
    printf("walk cold  %8.1f ns/stack\n", cold);
    printf("backtrace  %8.1f ns/stack  %5.2f ns/frame  (%d frames)\n",
           libc_ns, libc_ns / bench_libc_frames, bench_libc_frames);
    printf("A/A        %8.3f\n", again / walk);
    printf("ratio      %8.1f\n", libc_ns / walk);

    prof_unwind_release(bench_unwind);

    return 0;
}


static void
bench_handler(int signo, siginfo_t *si, void *ctx)
{
    int  i;

    for (i = 0; i < BENCH_ROUNDS; i++) {
        bench_ns[0][i] = bench_walk(ctx);
        bench_ns[1][i] = bench_backtrace();
        bench_ns[2][i] = bench_walk(ctx);
        bench_ns[3][i] = bench_walk_cold(ctx);
    }
}


static double
bench_walk(const ucontext_t *uc)
{
    int       i;
    uint64_t  start;

    bench_one(uc);

    start = bench_now();

    for (i = 0; i < BENCH_LOOPS; i++) {
        bench_one(uc);
    }

    return (double) (bench_now() - start) / BENCH_LOOPS;
}


static double
bench_walk_cold(const ucontext_t *uc)
{
    uint64_t  start;

    memset(bench_cache.bucket, 0, sizeof(bench_cache.bucket));

    start = bench_now();

    bench_one(uc);

    return (double) (bench_now() - start);
}


static void
bench_one(const ucontext_t *uc)
{
    uintptr_t  pcs[PROF_MAX_DEPTH];

    bench_frames = prof_walk(bench_unwind, &bench_cache, uc, bench_top, pcs,
                             PROF_MAX_DEPTH, &bench_stats, &bench_end);
}


static double
bench_backtrace(void)
{
    int        i;
    void      *buf[PROF_MAX_DEPTH];
    uint64_t   start;

    bench_libc_frames = bench_libc_backtrace(buf, PROF_MAX_DEPTH);

    start = bench_now();

    for (i = 0; i < BENCH_LOOPS / 10; i++) {
        bench_libc_frames = bench_libc_backtrace(buf, PROF_MAX_DEPTH);
    }

    return (double) (bench_now() - start) / (BENCH_LOOPS / 10);
}


static double
bench_median(double *v)
{
    qsort(v, BENCH_ROUNDS, sizeof(double), bench_cmp);

    return v[BENCH_ROUNDS / 2];
}


static int
bench_cmp(const void *one, const void *two)
{
    const double *a = one;
    const double *b = two;

    return (*a > *b) - (*a < *b);
}


static uint64_t
bench_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


static __attribute__((noinline)) int
bench_f0(int n)
{
    raise(SIGUSR1);

    return n;
}
