
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: heap
 * runs: beside
 *
 * Heaps: counts and bytes by stack, of turns and of the process, exact and
 * sampled; frees by other threads and requests; full memory.
 */


#include "heap/prof_heap_state.h"
#include "prof_finish.h"
#include "prof_series.h"
#include "prof.h"
#include "tap.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


/*
 * With a sanitizer, strdup() does not call malloc(), and malloc() ends the
 * program if the size is too large.
 */

#define TEST_KNOWN   (15 - TAP_SANITIZED)
#define TEST_BYTES   (10 * 1000 + 300 + 700 + 128 + 192                       \
                      + 13 * !TAP_SANITIZED)

/* bytes of the frames of a profile with few stacks */
#define TEST_PROFILE_MAX  100000

#define TEST_RUNS    50
#define TEST_SIZES   3000


/* more than a capture has names */
#define TEST_NAMES  3000


/* the allocations of one stack */

typedef struct {
    uint64_t         stacks;
    uint64_t         alloc_objects;
    uint64_t         alloc_space;
    uint64_t         inuse_objects;
    uint64_t         inuse_space;
} test_sum_t;


typedef struct {
    prof_sampler_t  *sampler;
    prof_capture_t  *capture;
    prof_capture_t  *other;
} test_job_t;


static prof_capture_t *test_capture(prof_sampler_t *s, uint64_t interval);
static prof_heap_t *test_process(uint64_t interval);
static int test_below(const prof_profile_t *p, uint32_t node, void *fn);
static void test_sum(const prof_profile_t *p, void *fn, test_sum_t *sum);
static void *test_alloc(size_t n);
static void test_free(void *p);
static void test_known(void *data);
static void test_leak(void *data);
static void test_spans(void *data);
static void test_nested(void *data);
static void test_nested_other(void *data);
static void test_map(void *data);
static void test_odd(void *data);
static void test_late(void *data);
static void *test_free_thread(void *data);
static void *test_alloc_thread(void *data);
static void test_many(void *data);
static void test_sizes(void *data);

static void test_exact(prof_sampler_t *s);
static void test_kept(prof_sampler_t *s);
static void test_two(prof_sampler_t *s);
static void test_mapped(prof_sampler_t *s);
static void test_arguments(prof_sampler_t *s);
static void test_begun_late(prof_sampler_t *s);
static void test_threads(prof_sampler_t *s);
static void *test_locked_thread(void *data);
static void test_locked(void);
static void test_full(prof_sampler_t *s);
static void test_fork(prof_sampler_t *s);
static void test_names_job(void *data);
static uint64_t test_named(const prof_profile_t *p, const char *name);
static void test_names(prof_sampler_t *s);
static void test_sampled(prof_sampler_t *s);
static void test_sampled_process(prof_sampler_t *s);
static void test_without(prof_sampler_t *s);


static void  *test_kept_block;
static void  *test_blocks[200000];


int
main(void)
{
    const char      *err;
    prof_sampler_t  *s;

    if (prof_process_init() != PROF_OK) {
        ok(0, "the test has unwind tables");
        return done_testing();
    }

    s = prof_sampler_create(&err);

    if (s == NULL) {
        ok(0, "the test has a sampler: %s", err);
        return done_testing();
    }

    test_exact(s);
    test_kept(s);
    test_two(s);
    test_mapped(s);

    if (!TAP_SANITIZED) {
        test_arguments(s);
    }

    test_begun_late(s);
    test_threads(s);
    test_locked();
    test_full(s);
    test_fork(s);
    test_names(s);
    test_sampled(s);
    test_sampled_process(s);
    test_without(s);

    prof_sampler_destroy(s);
    prof_process_done();

    return done_testing();
}


static prof_capture_t *
test_capture(prof_sampler_t *s, uint64_t interval)
{
    const char           *err;
    prof_capture_t       *c;
    prof_heap_conf_t      heap;
    prof_capture_conf_t   conf;

    conf.frequency = 100;
    conf.mode = PROF_MODE_OBJECT;
    conf.memory = PROF_MEMORY_DEFAULT;

    c = prof_capture_create(&conf);

    heap.memory = PROF_MEMORY_DEFAULT;
    heap.interval = interval;
    heap.process = 0;

    if (prof_capture_heap(c, s, &heap, &err) != PROF_OK) {
        diag("%s", err);
    }

    return c;
}


static prof_heap_t *
test_process(uint64_t interval)
{
    const char        *err;
    prof_heap_t       *h;
    prof_heap_conf_t   heap;

    heap.memory = PROF_MEMORY_DEFAULT;
    heap.interval = interval;
    heap.process = 1;

    h = prof_heap_create(&heap, &err);

    if (h == NULL) {
        diag("%s", err);
    }

    return h;
}


static int
test_below(const prof_profile_t *p, uint32_t node, void *fn)
{
    uint64_t             at;
    const prof_frame_t  *frame;

    for ( /* void */ ; node != PROF_NONE; node = p->nodes[node].parent) {
        frame = &p->frames[p->nodes[node].frame];

        if (frame->object == PROF_NONE) {
            continue;
        }

        at = frame->function + p->objects[frame->object].base;

        if (at == (uintptr_t) fn) {
            return 1;
        }
    }

    return 0;
}


static void
test_sum(const prof_profile_t *p, void *fn, test_sum_t *sum)
{
    uint32_t             i;
    const prof_entry_t  *e;

    memset(sum, 0, sizeof(test_sum_t));

    for (i = 0; i < nallocs(p); i++) {
        e = alloc_of(p, i);

        if (fn && !test_below(p, e->node, fn)) {
            continue;
        }

        sum->stacks++;
        sum->alloc_objects += e->values[PROF_VALUE_ALLOC_OBJECTS];
        sum->alloc_space += e->values[PROF_VALUE_ALLOC_SPACE];
        sum->inuse_objects += e->values[PROF_VALUE_INUSE_OBJECTS];
        sum->inuse_space += e->values[PROF_VALUE_INUSE_SPACE];
    }
}


__attribute__((noinline)) static void *
test_alloc(size_t n)
{
    void  *p;

    p = malloc(n);

    /* not a tail call, so this function is part of the stack */

    __asm__ volatile ("" ::: "memory");

    return p;
}


/*
 * Compilers remove the allocation of a block that is only freed or only
 * compared with NULL.
 */

__attribute__((noinline)) static void
test_free(void *p)
{
    __asm__ volatile ("" : "+r" (p));

    free(p);
}


__attribute__((noinline)) static void
test_known(void *data)
{
    void          *p, *q;
    volatile int   i;

    /*
     * volatile: otherwise an unrolled loop has one stack for each of its
     * calls.
     */

    for (i = 0; i < 10; i++) {
        p = test_alloc(1000);
        memset(p, 0, 1000);
        free(p);
    }

    p = calloc(30, 10);
    q = realloc(p, 700);
    test_free(q);

    if (posix_memalign(&p, 64, 128) == 0) {
        free(p);
    }

    test_free(aligned_alloc(64, 192));
    test_free(strdup("twelve bytes"));
}


static void
test_exact(prof_sampler_t *s)
{
    test_sum_t            sum;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_heap_totals_t    totals;

    c = test_capture(s, 0);

    free(test_alloc(5000));
    prof_turn_run(s, c, (uintptr_t) test_known, test_known, NULL);
    free(test_alloc(5000));

    prof_heap_totals(prof_capture_get_heap(c), &totals);

    p = finish_capture(c, "exact");

    is_int(p->mode, PROF_MODE_OBJECT, "the profile has the mode of memory");

    test_sum(p, test_known, &sum);

    is_int(sum.alloc_objects, TEST_KNOWN, "blocks that a turn has allocated");
    is_int(sum.alloc_space, TEST_BYTES, "the blocks have their bytes");
    is_int(sum.inuse_objects, 0, "all blocks are freed");
    is_int(sum.inuse_space, 0, "all bytes are freed");
    is_int(sum.stacks, 6 - TAP_SANITIZED, "each stack has an entry");

    test_sum(p, test_alloc, &sum);

    is_int(sum.alloc_objects, 10, "the turn has the blocks of one function");
    is_int(sum.alloc_space, 10000,
           "the blocks of the function have their bytes");

    test_sum(p, NULL, &sum);

    is_int(sum.alloc_objects, TEST_KNOWN, "the profile has no other blocks");
    is_int(totals.alloc_objects, TEST_KNOWN,
           "totals: all blocks are counted");
    is_int(totals.alloc_space, sum.alloc_space,
           "totals: all bytes are counted");
    is_int(totals.inuse_space, 0, "totals: no bytes are in use");
    is_int(p->stats.allocations, TEST_KNOWN,
           "a counter has the number of allocations");
    is_int(p->stats.lost_live + p->stats.lost_hooks, 0, "nothing is lost");
    is_int(p->peak_objects, 1, "the peak has its blocks");
    is_int(p->peak_space, 1000, "the peak has its bytes");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


__attribute__((noinline)) static void
test_leak(void *data)
{
    test_kept_block = test_alloc(1000000);
    test_blocks[0] = test_alloc(300);
    test_blocks[1] = test_alloc(20);
}


__attribute__((noinline)) static void
test_spans(void *data)
{
    test_job_t *job = data;

    uintptr_t  name;

    name = prof_capture_name(job->capture, "span", 4);

    if (prof_span_begin(job->sampler, job->capture, name)) {
        test_leak(NULL);
        prof_span_end(job->sampler, job->capture);
    }
}


static void
test_kept(prof_sampler_t *s)
{
    uint32_t             i, node, spans;
    pthread_t            thread;
    test_job_t           job;
    test_sum_t           sum;
    prof_capture_t      *c;
    prof_profile_t      *p;
    prof_heap_totals_t   totals;

    c = test_capture(s, 0);

    job.sampler = s;
    job.capture = c;
    prof_turn_run(s, c, (uintptr_t) test_spans, test_spans, &job);

    /* frees outside of turns, by another thread, and with an unknown heap */

    free(test_blocks[0]);

    if (pthread_create(&thread, NULL, test_free_thread, test_blocks[1]) == 0) {
        (void) pthread_join(thread, NULL);
    }

    prof_heap_totals(prof_capture_get_heap(c), &totals);

    is_int(totals.inuse_objects, 1,
           "blocks that are freed during the capture are not in use");
    is_int(totals.inuse_space, 1000000, "a block that is kept is in use");

    p = prof_capture_finish(c, "kept");

    /* freed by a block of the same address that is not counted */

    test_blocks[2] = test_kept_block;
    test_kept_block = malloc(1);
    free(test_blocks[2]);

    prof_capture_settle(c, p);
    prof_capture_destroy(c);

    ok(p->nnodes == 0 && nallocs(p) == 0, "a draft has no nodes");
    ok(prof_profile_size(p) > 1000, "a draft has a size");
    is_int(prof_profile_complete(p), PROF_OK, "a draft becomes a profile");
    is_int(prof_profile_complete(p), PROF_OK, "a profile is complete");

    test_sum(p, test_leak, &sum);

    is_int(sum.alloc_objects, 3, "the span has its blocks");
    is_int(sum.inuse_objects, 0,
           "a block that is freed after the capture is not in use");
    is_int(p->peak_space, 1000320, "the peak has its bytes");

    spans = 0;

    for (i = 0; i < nallocs(p); i++) {
        node = alloc_of(p, i)->node;

        while (p->nodes[node].parent != PROF_NONE) {
            node = p->nodes[node].parent;
        }

        if (p->frames[p->nodes[node].frame].object == PROF_NONE) {
            is_str(p->frames[p->nodes[node].frame].name, "span",
                   "stacks are below the span");
            spans++;
        }
    }

    is_int(spans, nallocs(p), "all stacks are below the span");

    prof_profile_destroy(p);
    free(test_kept_block);

    c = test_capture(s, 0);

    prof_turn_run(s, c, (uintptr_t) test_leak, test_leak, NULL);

    prof_heap_forget(prof_capture_get_heap(c), test_kept_block);

    p = prof_capture_finish(c, "again");
    prof_capture_settle(c, p);

    /* the heap has ended, so the block that is freed is in use */

    free(test_blocks[0]);

    is_int(prof_profile_complete(p), PROF_OK, "the profile of a heap");

    test_sum(p, test_leak, &sum);

    is_int(sum.inuse_space, 320, "a forgotten block is no longer in use");
    is_int(sum.alloc_space, 1000320, "a block that is forgotten was allocated");

    prof_profile_destroy(p);
    prof_capture_destroy(c);

    free(test_kept_block);
    free(test_blocks[1]);
}


static void *
test_free_thread(void *data)
{
    free(data);

    return NULL;
}


__attribute__((noinline)) static void
test_nested(void *data)
{
    test_job_t *job = data;

    free(test_alloc(100));

    prof_turn_run(job->sampler, job->other, (uintptr_t) test_nested_other,
                  test_nested_other, NULL);

    prof_heap_mute();
    free(test_alloc(1));
    prof_heap_unmute();

    free(test_alloc(100));
}


__attribute__((noinline)) static void
test_nested_other(void *data)
{
    free(test_alloc(7));
}


/* turns of two captures, one inside the other */

static void
test_two(prof_sampler_t *s)
{
    test_job_t       job;
    test_sum_t       sum;
    prof_profile_t  *p;

    job.sampler = s;
    job.capture = test_capture(s, 0);
    job.other = test_capture(s, 0);

    prof_turn_run(s, job.capture, (uintptr_t) test_nested, test_nested, &job);

    p = finish_capture(job.capture, "outer");
    test_sum(p, NULL, &sum);

    is_int(sum.alloc_objects, 2, "the outer turn has its blocks");
    is_int(sum.alloc_space, 200, "the outer turn has its bytes");

    prof_profile_destroy(p);
    prof_capture_destroy(job.capture);

    p = finish_capture(job.other, "inner");
    test_sum(p, NULL, &sum);

    is_int(sum.alloc_objects, 1, "the inner turn has its blocks");
    is_int(sum.alloc_space, 7, "the inner turn has its bytes");

    prof_profile_destroy(p);
    prof_capture_destroy(job.other);
}


__attribute__((noinline)) static void
test_map(void *data)
{
    char  *p, *q;

    p = mmap(NULL, 40960, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1,
             0);

    /* unmaps a hole and the start; the rest is moved */

    (void) munmap(p + 8192, 4096);
    (void) munmap(p, 4096);

    q = mremap(p + 12288, 28672, 65536, MREMAP_MAYMOVE);

    /* only reserved, so it does not count as memory */

    (void) munmap(mmap(NULL, 409600, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS, -1,
                       0),
                  409600);

    *(void **) data = q;
    test_kept_block = p + 4096;
}


static void
test_mapped(prof_sampler_t *s)
{
    void                 *map;
    prof_capture_t       *c;
    prof_heap_totals_t    totals;

    c = test_capture(s, 0);

    prof_turn_run(s, c, (uintptr_t) test_map, test_map, &map);

    prof_heap_totals(prof_capture_get_heap(c), &totals);

    is_int(totals.alloc_space, 40960 + 65536, "mapped memory is counted");
    is_int(totals.inuse_space, 4096 + 65536, "unmapped memory is not in use");

    (void) munmap(map, 65536);
    (void) munmap(test_kept_block, 4096);

    prof_heap_totals(prof_capture_get_heap(c), &totals);

    is_int(totals.inuse_space, 0, "all mappings are unmapped");
    is_int(totals.inuse_objects, 0, "no mappings are in use");

    prof_capture_destroy(c);
}


__attribute__((noinline)) static void
test_odd(void *data)
{
    void             *p, *q;
    volatile size_t   huge;

    huge = SIZE_MAX / 2;

    errno = 0;
    p = malloc(huge);
    __asm__ volatile ("" : "+r" (p));
    ok(p == NULL && errno == ENOMEM, "an allocation of too much memory fails");

    p = calloc(huge, 3);
    __asm__ volatile ("" : "+r" (p));
    ok(p == NULL, "an allocation of too many elements fails");

    p = malloc(10);
    q = realloc(p, huge);
    ok(q == NULL, "a reallocation of too much memory fails");

    errno = 17;
    free(q ? q : p);
    free(NULL);
    is_int(errno, 17, "errno is that of the allocator");

    p = realloc(NULL, 5);
    q = realloc(p, 0);
    ok(q == NULL, "realloc() to no size frees the block");

    p = &q;
    is_int(posix_memalign(&p, 3, 10), EINVAL, "a wrong alignment fails");
    ok(p == &q, "the pointer is untouched");

    test_free(malloc(0));
}


static void
test_arguments(prof_sampler_t *s)
{
    prof_capture_t       *c;
    prof_heap_totals_t    totals;

    c = test_capture(s, 0);

    prof_turn_run(s, c, (uintptr_t) test_odd, test_odd, NULL);

    prof_heap_totals(prof_capture_get_heap(c), &totals);

    is_int(totals.inuse_objects, 0, "odd arguments: no blocks are in use");
    is_int(totals.inuse_space, 0, "odd arguments: no bytes are in use");
    ok(totals.alloc_objects >= 3, "odd arguments: %lu blocks are counted",
       (unsigned long) totals.alloc_objects);

    prof_capture_destroy(c);
}


static void
test_late(void *data)
{
    test_job_t *job = data;

    const char        *err;
    prof_heap_conf_t   heap;

    free(test_alloc(100));

    heap.memory = PROF_MEMORY_MIN;
    heap.interval = 0;
    heap.process = 0;

    is_int(prof_capture_heap(job->capture, job->sampler, &heap, &err), PROF_OK,
           "a heap may begin in a turn");

    free(test_alloc(50));
}


static void
test_begun_late(prof_sampler_t *s)
{
    test_job_t            job;
    prof_heap_totals_t    totals;
    prof_capture_conf_t   conf;

    conf.frequency = 100;
    conf.mode = PROF_MODE_OBJECT;
    conf.memory = PROF_MEMORY_MIN;

    job.sampler = s;
    job.capture = prof_capture_create(&conf);

    prof_turn_run(s, job.capture, (uintptr_t) test_late, test_late, &job);

    prof_heap_totals(prof_capture_get_heap(job.capture), &totals);

    ok(totals.alloc_space >= 50 && totals.alloc_space < 100,
       "counts from then on");

    prof_capture_destroy(job.capture);
}


__attribute__((noinline)) static void *
test_alloc_thread(void *data)
{
    int  i;

    for (i = 0; i < 1000; i++) {
        free(test_alloc(10));
    }

    test_blocks[(uintptr_t) data] = test_alloc(77);

    return NULL;
}


/* all threads of the process, beside a capture of turns */

static void
test_threads(prof_sampler_t *s)
{
    uint32_t         i;
    pthread_t        threads[4];
    test_sum_t       sum;
    prof_heap_t     *h;
    prof_capture_t  *c;
    prof_profile_t  *p;

    h = test_process(0);
    c = test_capture(s, 0);

    for (i = 0; i < 4; i++) {
        (void) pthread_create(&threads[i], NULL, test_alloc_thread,
                              (void *) (uintptr_t) i);
    }

    prof_turn_run(s, c, (uintptr_t) test_known, test_known, NULL);

    for (i = 0; i < 4; i++) {
        (void) pthread_join(threads[i], NULL);
    }

    p = finish_capture(c, "turn");
    test_sum(p, NULL, &sum);

    is_int(sum.alloc_objects, TEST_KNOWN, "threads: a turn has its own");

    prof_profile_destroy(p);
    prof_capture_destroy(c);

    p = finish_heap(h, "process");

    test_sum(p, test_alloc_thread, &sum);

    is_int(sum.alloc_objects, 4004, "threads: the blocks of all are counted");
    is_int(sum.alloc_space, 4 * 1000 * 10 + 4 * 77,
           "threads: the bytes of all are counted");
    is_int(sum.inuse_objects, 4, "threads: four blocks are in use");
    is_int(ntimes(p), 0, "threads: a heap has no timeline");

    test_sum(p, test_known, &sum);

    is_int(sum.alloc_objects, TEST_KNOWN, "threads: the turn's are among them");
    is_int(p->stats.lost_hooks, 0, "threads: nothing is lost");
    is_int(p->stats.bad_stack + p->stats.no_unwind, 0,
           "threads: stacks are whole");
    ok(malloc_usable_size(p->frames) < TEST_PROFILE_MAX,
       "threads: a small profile of the process has small arrays");

    prof_profile_destroy(p);

    for (i = 0; i < 4; i++) {
        free(test_blocks[i]);
    }
}


static void
test_many(void *data)
{
    uint32_t  i;

    for (i = 0; i < 200000; i++) {
        test_blocks[i] = malloc(1);
    }
}


/* the C library allocates here while it holds a lock of the thread */

static void *
test_locked_thread(void *data)
{
    pthread_attr_t  attr;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        (void) pthread_attr_destroy(&attr);
    }

    return NULL;
}


static void
test_locked(void)
{
    int                ended;
    pthread_t          thread;
    const char        *err;
    prof_heap_t       *h;
    struct timespec    ts;
    prof_heap_conf_t   conf;

    conf.memory = PROF_MEMORY_MIN;
    conf.interval = 1;
    conf.process = 1;

    h = prof_heap_create(&conf, &err);

    if (h == NULL) {
        ok(0, "the test has a capture: %s", err);
        return;
    }

    ended = 0;

    if (pthread_create(&thread, NULL, test_locked_thread, NULL) == 0) {
        (void) clock_gettime(CLOCK_REALTIME, &ts);
        ts.tv_sec += 10;

        ended = (pthread_timedjoin_np(thread, NULL, &ts) == 0);
    }

    ok(ended, "a thread that allocates under a lock of its own goes on");

    prof_heap_destroy(h);
}


static void
test_full(prof_sampler_t *s)
{
    uint32_t              i;
    uint64_t              followed;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_heap_totals_t    totals;

    c = test_capture(s, 0);

    prof_turn_run(s, c, (uintptr_t) test_many, test_many, NULL);

    prof_heap_totals(prof_capture_get_heap(c), &totals);

    is_int(totals.alloc_objects, 200000, "all of too many blocks are counted");
    ok(totals.inuse_objects > 65536 && totals.inuse_objects < 200000,
       "%lu of these are followed", (unsigned long) totals.inuse_objects);

    followed = totals.inuse_objects;

    for (i = 0; i < 200000; i++) {
        free(test_blocks[i]);
    }

    prof_heap_totals(prof_capture_get_heap(c), &totals);
    is_int(totals.inuse_objects, 0, "all blocks that are followed are freed");

    p = finish_capture(c, "full");
    is_int(p->stats.lost_live, 200000 - followed,
           "blocks that are not followed are counted");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


/* a child has the hooks, but does not count and does not wait */

static void
test_fork(prof_sampler_t *s)
{
    int              status;
    pid_t            pid;
    prof_heap_t     *h;

    h = test_process(0);
    h->lock = 1;

    pid = fork();

    if (pid == 0) {
        status = h->on || h->live.buckets;
        free(test_alloc(100));
        free(realloc(test_alloc(10), 10000));
        _exit(status);
    }

    h->lock = 0;

    (void) waitpid(pid, &status, 0);

    is_int(status, 0, "a child may allocate");

    prof_heap_destroy(h);
}


/* sizes from 16 bytes to a megabyte, most of them small */

__attribute__((noinline)) static void
test_sizes(void *data)
{
    uint32_t   i;
    uint64_t  *bytes, x;

    bytes = data;
    x = 12345;

    for (i = 0; i < TEST_SIZES; i++) {
        x = x * 6364136223846793005 + 1442695040888963407;
        *bytes += (size_t) 16 << (x >> 60);

        free(test_alloc((size_t) 16 << (x >> 60)));
    }
}


/* spans with a name each, some of which allocate much */

static void
test_names_job(void *data)
{
    test_job_t  *job = data;

    int         i;
    char        text[32];
    uintptr_t   name;

    for (i = 0; i < TEST_NAMES; i++) {
        snprintf(text, sizeof(text), "name %d", i);
        name = prof_capture_name(job->capture, text, strlen(text));

        (void) prof_span_begin(job->sampler, job->capture, name);

        free(test_alloc(100));

        if (i % (TEST_NAMES / 3) == 100) {
            free(test_alloc(100000));
        }

        prof_span_end(job->sampler, job->capture);
    }
}


static uint64_t
test_named(const prof_profile_t *p, const char *name)
{
    uint32_t             i, node;
    uint64_t             sum;
    const char          *text;
    const prof_entry_t  *e;

    sum = 0;

    for (i = 0; i < nallocs(p); i++) {
        e = alloc_of(p, i);

        for (node = e->node; node != PROF_NONE; node = p->nodes[node].parent) {
            text = p->frames[p->nodes[node].frame].name;

            if (text && strcmp(text, name) == 0) {
                sum += e->values[PROF_VALUE_ALLOC_SPACE];
                break;
            }
        }
    }

    return sum;
}


/* of many stages, those with the most allocations keep their names */

static void
test_names(prof_sampler_t *s)
{
    int              i;
    char             text[32];
    uint64_t         other;
    test_job_t       job;
    prof_capture_t  *c;
    prof_profile_t  *p;

    c = test_capture(s, 0);

    job.sampler = s;
    job.capture = c;

    prof_turn_run(s, c, (uintptr_t) test_names_job, test_names_job, &job);

    p = finish_capture(c, "names");

    for (i = 100; i < TEST_NAMES; i += TEST_NAMES / 3) {
        snprintf(text, sizeof(text), "name %d", i);
        is_int(test_named(p, text), 100100,
               "stage %d of %d, which allocates much, has its name", i,
               TEST_NAMES);
    }

    other = test_named(p, "[other]");

    ok(other > 100 * TEST_NAMES / 4 && other <= 100 * TEST_NAMES,
       "stages without a name of their own are shown as others");
    ok(p->stats.merged_names > TEST_NAMES / 4, "they are counted");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_sampled(prof_sampler_t *s)
{
    int               i;
    double            objects, space;
    uint64_t          bytes, sampled;
    test_sum_t        sum;
    prof_capture_t   *c;
    prof_profile_t   *p;

    bytes = 0;
    objects = 0;
    space = 0;
    sampled = 0;

    for (i = 0; i < TEST_RUNS; i++) {
        c = test_capture(s, 512);
        bytes = 0;

        prof_turn_run(s, c, (uintptr_t) test_sizes, test_sizes, &bytes);

        p = finish_capture(c, "sampled");
        test_sum(p, NULL, &sum);

        objects += sum.alloc_objects;
        space += sum.alloc_space;
        sampled += p->stats.allocations;

        is_int(p->alloc_interval, 512, "the profile has its interval");

        prof_profile_destroy(p);
        prof_capture_destroy(c);
    }

    objects /= (double) TEST_RUNS * TEST_SIZES;
    space /= (double) TEST_RUNS * bytes;

    diag("sampled %.1f %%: objects %.4f of the truth, bytes %.4f",
         100.0 * sampled / TEST_RUNS / TEST_SIZES, objects, space);

    ok(sampled < TEST_RUNS * TEST_SIZES,
       "only a part of the blocks is sampled");
    ok(space > 0.98 && space < 1.02, "bytes are within 2 %% of the truth");
    ok(objects > 0.98 && objects < 1.02,
       "blocks are within 2 %% of the truth");
}


static void
test_sampled_process(prof_sampler_t *s)
{
    int              i;
    double           space, other;
    uint64_t         bytes;
    test_sum_t       sum;
    prof_heap_t     *h, *second;
    prof_profile_t  *p;

    bytes = 0;
    space = 0;
    other = 0;

    for (i = 0; i < TEST_RUNS; i++) {
        h = test_process(16384);
        second = test_process(4096);
        bytes = 0;

        test_sizes(&bytes);

        p = finish_heap(h, "sampled");
        test_sum(p, test_sizes, &sum);
        space += sum.alloc_space;
        prof_profile_destroy(p);

        p = finish_heap(second, "sampled");
        test_sum(p, test_sizes, &sum);
        other += sum.alloc_space;
        prof_profile_destroy(p);
    }

    space /= (double) TEST_RUNS * bytes;
    other /= (double) TEST_RUNS * bytes;

    diag("process: bytes %.4f and %.4f of the truth", space, other);

    ok(space > 0.98 && space < 1.02,
       "process: bytes are within 2 %% of the truth");
    ok(other > 0.98 && other < 1.02, "process: another interval is as exact");
}


/* a capture without a heap still works */

static void
test_without(prof_sampler_t *s)
{
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    conf.frequency = 100;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_MIN;

    c = prof_capture_create(&conf);

    prof_turn_run(s, c, (uintptr_t) test_known, test_known, NULL);

    p = finish_capture(c, "without");

    is_int(nallocs(p), 0, "a capture without a heap has no allocations");
    ok(prof_capture_get_heap(c) == NULL,
       "a capture in another mode has no heap");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}
