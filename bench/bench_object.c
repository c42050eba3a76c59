
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Measures the cost of malloc() and free() while allocations are captured,
 * from a stack of twenty frames.  Pairs of both calls are measured in
 * alternation, in one run, with
 *
 *     plain      no capture; measured twice: the ratio A/A is the noise of
 *                the other ratios
 *     sampled    a capture of the process, a sample in each 512 KiB
 *     exact      a capture of a turn: every block with its stack
 *     after      no capture, after the last one
 *     uprobe     the kernel's uprobe on malloc() of the C library, which only
 *                counts; needs root
 *
 * If libtcmalloc.so.4 is installed, also with its heap profiler on and off, in
 * a process that uses its allocator.  Prints the medians of nanoseconds of CPU
 * time, and of the ratios to "plain" of the same round.
 */


#include "heap/prof_hooks.h"
#include "prof.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define BENCH_ROUNDS  51
#define BENCH_PAIRS   40000

/* rounds of slow variants */
#define BENCH_FEW     1000

#define BENCH_TCMALLOC  "libtcmalloc.so.4"


typedef enum {
    BENCH_PLAIN = 0,
    BENCH_AGAIN,
    BENCH_SAMPLED,
    BENCH_EXACT,
    BENCH_AFTER,
    BENCH_UPROBE,
    BENCH_GPERFTOOLS,
    BENCH_MODES
} bench_mode_e;


typedef struct {
    size_t     size;
    uint32_t   pairs;
    double     ns;
} bench_loop_t;


static void bench_size(size_t size, const char *allocator,
    const bench_mode_e *modes);
static double bench_measure(bench_mode_e mode, size_t size);
static double bench_loop(bench_loop_t *loop);
static void bench_turn(void *data);
static double bench_turn_measure(bench_loop_t *loop);
static int bench_uprobe(void);
static uint64_t bench_offset(const char *path, uintptr_t address);
static double bench_median(double *v, uint32_t n);
static int bench_cmp(const void *one, const void *two);
static uint64_t bench_now(void);
static int bench_f0(bench_loop_t *loop);


static const char  *bench_names[] = {
    "plain", "A/A", "sampled", "exact", "after", "uprobe", "gperftools"
};

/* the uprobe leaves the code of malloc() on other pages, which costs time */

static const bench_mode_e  bench_own[] = {
    BENCH_PLAIN, BENCH_AGAIN, BENCH_SAMPLED, BENCH_EXACT, BENCH_AFTER,
    BENCH_MODES
};

static const bench_mode_e  bench_kernel[] = {
    BENCH_PLAIN, BENCH_UPROBE, BENCH_MODES
};

static const bench_mode_e  bench_theirs[] = {
    BENCH_PLAIN, BENCH_AGAIN, BENCH_GPERFTOOLS, BENCH_MODES
};

static prof_sampler_t  *bench_sampler;
static double           bench_ns[BENCH_MODES][BENCH_ROUNDS];
static double           bench_ratio[BENCH_MODES][BENCH_ROUNDS];
static int            (*bench_heap_start)(const char *prefix);
static void           (*bench_heap_stop)(void);


/* twenty functions; each calls the next */

#define bench_f(name, callee, size)                                           \
    static __attribute__((noinline)) int                                      \
    name(bench_loop_t *loop)                                                  \
    {                                                                         \
        volatile int  v[size];                                                \
                                                                              \
        v[loop->pairs % size] = 1;                                            \
                                                                              \
        return callee(loop) + v[loop->pairs % size];                          \
    }

bench_f(bench_f1, bench_f0, 3)
bench_f(bench_f2, bench_f1, 16)
bench_f(bench_f3, bench_f2, 7)
bench_f(bench_f4, bench_f3, 40)
bench_f(bench_f5, bench_f4, 9)
bench_f(bench_f6, bench_f5, 2)
bench_f(bench_f7, bench_f6, 100)
bench_f(bench_f8, bench_f7, 5)
bench_f(bench_f9, bench_f8, 30)
bench_f(bench_f10, bench_f9, 4)
bench_f(bench_f11, bench_f10, 11)
bench_f(bench_f12, bench_f11, 8)
bench_f(bench_f13, bench_f12, 64)
bench_f(bench_f14, bench_f13, 2)
bench_f(bench_f15, bench_f14, 6)
bench_f(bench_f16, bench_f15, 20)
bench_f(bench_f17, bench_f16, 3)
bench_f(bench_f18, bench_f17, 12)
bench_f(bench_f19, bench_f18, 5)


int
main(int argc, char **argv)
{
    int            tcmalloc;
    uint32_t       i;
    const char    *err;

    static size_t  sizes[] = { 64, 1024, 16384 };

    tcmalloc = argc > 1;

    if (!tcmalloc) {

        if (prof_process_init() != PROF_OK) {
            return 1;
        }

        bench_sampler = prof_sampler_create(&err);

        if (bench_sampler == NULL) {
            fprintf(stderr, "%s\n", err);
            return 1;
        }

    } else {
        *(void **) &bench_heap_start = dlsym(RTLD_DEFAULT,
                                             "HeapProfilerStart");
        *(void **) &bench_heap_stop = dlsym(RTLD_DEFAULT, "HeapProfilerStop");

        if (bench_heap_start == NULL || bench_heap_stop == NULL) {
            printf("gperftools: %s is not there\n", BENCH_TCMALLOC);
            return 0;
        }
    }

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {

        if (tcmalloc) {
            bench_size(sizes[i], "tcmalloc", bench_theirs);

        } else {
            bench_size(sizes[i], "libc", bench_own);
            bench_size(sizes[i], "libc", bench_kernel);
        }
    }

    if (!tcmalloc) {
        (void) setenv("LD_PRELOAD", BENCH_TCMALLOC, 1);
        (void) setenv("HEAP_PROFILE_ALLOCATION_INTERVAL", "0", 1);
        (void) setenv("HEAP_PROFILE_INUSE_INTERVAL", "0", 1);

        fflush(stdout);
        (void) execl("/proc/self/exe", argv[0], "gperftools", NULL);
    }

    return 0;
}


static void
bench_size(size_t size, const char *allocator, const bench_mode_e *modes)
{
    double        ns;
    uint32_t      i, k;
    bench_mode_e  mode;

    for (i = 0; i < BENCH_ROUNDS; i++) {

        for (k = 0; modes[k] != BENCH_MODES; k++) {
            mode = modes[k];
            ns = bench_measure(mode, size);

            bench_ns[mode][i] = ns;
            bench_ratio[mode][i] = ns / bench_ns[BENCH_PLAIN][i];
        }
    }

    printf("%6zu bytes, %s:", size, allocator);

    for (k = 0; modes[k] != BENCH_MODES; k++) {
        mode = modes[k];
        ns = bench_median(bench_ns[mode], BENCH_ROUNDS);

        if (ns > 0) {
            printf("  %s %.1f ns (%.2f)", bench_names[mode], ns,
                   bench_median(bench_ratio[mode], BENCH_ROUNDS));
        }
    }

    printf("\n");
}


/* negative: this machine cannot measure it */

static double
bench_measure(bench_mode_e mode, size_t size)
{
    int                fd;
    double             ns;
    const char        *err;
    prof_heap_t       *h;
    bench_loop_t       loop;
    prof_heap_conf_t   conf;

    loop.size = size;
    loop.pairs = (mode == BENCH_UPROBE || mode == BENCH_GPERFTOOLS)
                 ? BENCH_FEW : BENCH_PAIRS;

    switch (mode) {

    case BENCH_SAMPLED:
        conf.memory = PROF_MEMORY_DEFAULT;
        conf.interval = PROF_INTERVAL_DEFAULT;
        conf.process = 1;

        h = prof_heap_create(&conf, &err);
        ns = bench_loop(&loop);
        prof_heap_destroy(h);

        return ns;

    case BENCH_EXACT:
        return bench_turn_measure(&loop);

    case BENCH_UPROBE:
        fd = bench_uprobe();

        if (fd == -1) {
            return -1;
        }

        ns = bench_loop(&loop);
        (void) close(fd);

        return ns;

    case BENCH_GPERFTOOLS:
        (void) bench_heap_start("/tmp/bench_object");
        ns = bench_loop(&loop);
        bench_heap_stop();

        return ns;

    default:
        return bench_loop(&loop);
    }
}


static double
bench_turn_measure(bench_loop_t *loop)
{
    const char           *err;
    prof_capture_t       *c;
    prof_heap_conf_t      heap;
    prof_capture_conf_t   conf;

    conf.frequency = 1;
    conf.mode = PROF_MODE_OBJECT;
    conf.memory = PROF_MEMORY_DEFAULT;

    heap.memory = PROF_MEMORY_DEFAULT;
    heap.interval = 0;
    heap.process = 0;

    c = prof_capture_create(&conf);

    if (c == NULL
        || prof_capture_heap(c, bench_sampler, &heap, &err) != PROF_OK)
    {
        return -1;
    }

    prof_turn_run(bench_sampler, c, (uintptr_t) bench_turn, bench_turn, loop);

    prof_capture_destroy(c);

    return loop->ns;
}


static void
bench_turn(void *data)
{
    (void) bench_loop(data);
}


static double
bench_loop(bench_loop_t *loop)
{
    (void) bench_f19(loop);

    return loop->ns;
}


static __attribute__((noinline)) int
bench_f0(bench_loop_t *loop)
{
    void      *p;
    uint32_t   i;
    uint64_t   start;

    /* work that is done once is not measured */

    for (i = 0; i < 10; i++) {
        p = malloc(loop->size);
        __asm__ volatile ("" : "+r" (p) : : "memory");
        free(p);
    }

    start = bench_now();

    for (i = 0; i < loop->pairs; i++) {
        p = malloc(loop->size);
        __asm__ volatile ("" : "+r" (p) : : "memory");
        free(p);
    }

    loop->ns = (double) (bench_now() - start) / loop->pairs;

    return 0;
}


/*
 * Opens an event that counts calls of malloc() in this process, or returns -1.
 */

static int
bench_uprobe(void)
{
    FILE                   *f;
    Dl_info                 info;
    unsigned                type;
    struct perf_event_attr  attr;

    type = 0;
    f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");

    if (f) {
        (void) fscanf(f, "%u", &type);
        fclose(f);
    }

    if (type == 0 || dladdr(prof_hooks_real[PROF_HOOK_malloc], &info) == 0) {
        return -1;
    }

    memset(&attr, 0, sizeof(struct perf_event_attr));

    attr.size = sizeof(struct perf_event_attr);
    attr.type = type;
    attr.config1 = (uintptr_t) info.dli_fname;
    attr.config2 = bench_offset(info.dli_fname,
                                (uintptr_t) prof_hooks_real[PROF_HOOK_malloc]);

    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}


/* the offset in the file that is mapped there */

static uint64_t
bench_offset(const char *path, uintptr_t address)
{
    FILE      *f;
    char       line[512];
    uint64_t   offset;
    uintptr_t  start, end;

    f = fopen("/proc/self/maps", "r");

    while (f && fgets(line, sizeof(line), f)) {

        if (strstr(line, path)
            && sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3
            && address >= start && address < end)
        {
            fclose(f);
            return address - start + offset;
        }
    }

    return 0;
}


static double
bench_median(double *v, uint32_t n)
{
    qsort(v, n, sizeof(double), bench_cmp);

    return v[n / 2];
}


static int
bench_cmp(const void *one, const void *two)
{
    double  a, b;

    a = *(const double *) one;
    b = *(const double *) two;

    return (a > b) - (a < b);
}


static uint64_t
bench_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
