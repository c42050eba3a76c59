
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: stacks
 * runs: beside
 *
 * Code that runs on another stack than the thread's, as coroutines do.  The
 * walk stops at the end of that stack, where no memory is mapped.
 */


#include "prof.h"
#include "stacks/prof_stack.h"
#include "prof_finish.h"
#include "prof_series.h"
#include "profile/prof_profile.h"

#include "tap.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>


/*
 * The thread's stack is above the other one, with unmapped memory between
 * them.
 */

#define TEST_STACK  (1024 * 1024)
#define TEST_HOLE   (16 * 1024 * 1024)
#define TEST_FIBER  (256 * 1024)

/* CPU time of each call */
#define TEST_MS     30


static void *test_thread(void *data);
static void test_bounds(void);

#if (__x86_64__)

static void test_turns(void);
static void test_watched(void);
static void test_heap(int process);
static int test_frames(const prof_profile_t *p, const char *name);
static uint64_t test_whole(const prof_profile_t *p);
static int test_is(const prof_profile_t *p, const prof_frame_t *frame);
static void test_on_fiber(void *data);
static void test_switch(void);
static void test_work(void);


static jmp_buf                 test_back;
static volatile unsigned long  test_sum;
static void *volatile          test_block;

/* the watch takes samples on the other stack only */
static prof_watch_spot_t       test_spot;
static uintptr_t               test_top;

#endif


static char  *test_memory;


int
main(void)
{
    pthread_t       thread;
    pthread_attr_t  attr;

    if (prof_process_init() != PROF_OK) {
        ok(0, "the test has unwind tables");
        return done_testing();
    }

    test_memory = mmap(NULL, TEST_FIBER + TEST_HOLE + TEST_STACK, PROT_NONE,
                       MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (test_memory == MAP_FAILED
        || mprotect(test_memory, TEST_FIBER, PROT_READ|PROT_WRITE) == -1
        || mprotect(test_memory + TEST_FIBER + TEST_HOLE, TEST_STACK,
                    PROT_READ|PROT_WRITE) == -1)
    {
        ok(0, "the test has memory");
        return done_testing();
    }

    test_bounds();

    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, test_memory + TEST_FIBER + TEST_HOLE,
                          TEST_STACK);
    pthread_create(&thread, &attr, test_thread, NULL);
    pthread_join(thread, NULL);

    prof_process_done();

    return done_testing();
}


static void *
test_thread(void *data)
{
    prof_stack_t  stack;

    prof_stack_find(&stack);

    is_int(stack.low, (uintptr_t) test_memory + TEST_FIBER + TEST_HOLE,
           "the stack of a thread has its low end");

    /* the thread's own memory is above its frames */

    ok(stack.high > (uintptr_t) __builtin_frame_address(0)
       && stack.high <= stack.low + TEST_STACK,
       "the stack of a thread has its high end");

#if (__x86_64__)

    test_turns();
    test_watched();
    test_heap(0);
    test_heap(1);

#endif

    return NULL;
}


static void
test_bounds(void)
{
    uintptr_t     here;
    prof_stack_t  stack;

    here = (uintptr_t) __builtin_frame_address(0);

    prof_stack_find(&stack);

    ok(here > stack.low && here < stack.high,
       "the stack of the program contains a local variable");
    ok(stack.high - here < 1024 * 1024,
       "the stack ends where the program began");
    ok(stack.high - stack.low <= 128 * 1024 * 1024,
       "the stack does not reach other mappings");

    is_int(prof_stack_top(&stack, here, 5), 5,
           "a stack pointer on the stack keeps the top");
    is_int(prof_stack_top(&stack, stack.low - 8, 5), 0,
           "a stack pointer below the stack has no top");
    is_int(prof_stack_top(&stack, stack.high, 5), 0,
           "a stack pointer above the stack has no top");
}


#if (__x86_64__)


static void
test_turns(void)
{
    const char           *err;
    prof_profile_t       *p;
    prof_sampler_t       *s;
    prof_capture_t       *c;
    prof_capture_conf_t   conf;

    s = prof_sampler_create(&err);

    conf.mode = PROF_MODE_WALL;
    conf.frequency = 2000;
    conf.memory = PROF_MEMORY_MIN;

    c = prof_capture_create(&conf);

    prof_turn_run(s, c, (uintptr_t) test_on_fiber, test_on_fiber, NULL);

    p = finish_capture(c, "turns");

    ok(p->stats.samples > 3, "turn: %lu samples are taken",
       (unsigned long) p->stats.samples);
    ok(p->stats.bad_stack > 3, "turn: %lu samples have a bad stack",
       (unsigned long) p->stats.bad_stack);
    is_int(test_whole(p), 0, "turn: all of the other stack are bad");
    ok(test_frames(p, "[bad stack]"), "turn: the profile shows a bad stack");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
    prof_sampler_destroy(s);
}


static void
test_watched(void)
{
    uint64_t              start, cpu;
    const char           *err;
    prof_watch_t         *w;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    w = prof_watch_create(250, &test_spot, &err);

    start = prof_now();
    cpu = prof_cpu_now();

    /* the timer needs CPU time, and there may be little of it in TEST_MS */

    test_top = (uintptr_t) __builtin_frame_address(0);

    do {
        test_on_fiber(NULL);
    } while (!test_spot.fresh && prof_cpu_now() - cpu < 1000000000);

    test_top = 0;

    prof_watch_pass(w, 1);

    conf.mode = PROF_MODE_WALL;
    conf.frequency = 250;
    conf.memory = PROF_MEMORY_MIN;

    c = prof_capture_create(&conf);
    prof_capture_begin(c, start);
    prof_watch_turn(w, c, 1, (uintptr_t) test_on_fiber, prof_now(), 1);

    p = finish_capture(c, "watched");

    ok(p->stats.samples > 0, "watch: %lu samples are taken",
       (unsigned long) p->stats.samples);
    ok(test_frames(p, "[bad stack]"), "watch: the profile shows a bad stack");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
    prof_watch_destroy(w);
}


static void
test_heap(int process)
{
    const char        *err;
    prof_heap_t       *h;
    prof_profile_t    *p;
    prof_heap_conf_t   conf;

    prof_sampler_t       *s;
    prof_capture_t       *c;
    prof_capture_conf_t   cconf;

    conf.memory = PROF_MEMORY_MIN;
    conf.interval = 0;
    conf.process = process;

    if (process) {
        h = prof_heap_create(&conf, &err);

        if (!ok(h != NULL, "heap")) {
            diag("%s", err);
            return;
        }

        test_on_fiber(NULL);

        p = finish_heap(h, "heap");

        ok(nallocs(p) > 0, "allocations are counted");
        ok(test_frames(p, "[bad stack]"),
           "allocations: the profile shows a bad stack");

        prof_profile_destroy(p);
        return;
    }

    cconf.mode = PROF_MODE_OBJECT;
    cconf.frequency = 100;
    cconf.memory = PROF_MEMORY_MIN;

    s = prof_sampler_create(&err);
    c = prof_capture_create(&cconf);

    is_int(prof_capture_heap(c, s, &conf, &err), PROF_OK,
           "a capture has a heap of turns");

    prof_turn_run(s, c, (uintptr_t) test_on_fiber, test_on_fiber, NULL);

    p = finish_capture(c, "object");

    ok(nallocs(p) > 0, "allocations of a turn are counted");
    ok(test_frames(p, "[bad stack]"),
       "allocations of a turn: the profile shows a bad stack");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
    prof_sampler_destroy(s);
}


static int
test_frames(const prof_profile_t *p, const char *name)
{
    uint32_t  i;

    for (i = 0; i < p->nframes; i++) {

        if (p->frames[i].name && strcmp(p->frames[i].name, name) == 0) {
            return 1;
        }
    }

    return 0;
}


/*
 * Samples of the code on the other stack that are not marked as bad.  Samples
 * before and after this code, on the thread's own stack, are not counted.
 */

static uint64_t
test_whole(const prof_profile_t *p)
{
    int                  work, bad;
    uint32_t             i, n;
    uint64_t             whole;
    const prof_frame_t  *frame;

    whole = 0;

    for (i = 0; i < ntimes(p); i++) {
        work = 0;
        bad = 0;

        for (n = time_of(p, i)->node; n != PROF_NONE; n = p->nodes[n].parent) {
            frame = &p->frames[p->nodes[n].frame];

            work |= test_is(p, frame);
            bad |= (frame->name && strcmp(frame->name, "[bad stack]") == 0);
        }

        if (work && !bad) {
            whole += time_of(p, i)->count;
        }
    }

    return whole;
}


static int
test_is(const prof_profile_t *p, const prof_frame_t *frame)
{
    return frame->object != PROF_NONE
           && frame->function + p->objects[frame->object].base
              == (uintptr_t) test_work;
}


static void
test_on_fiber(void *data)
{
    if (setjmp(test_back) == 0) {
        test_switch();
    }
}


/* at the very end of the other stack, without a caller */

static void
test_switch(void)
{
    char  *end;

    end = test_memory + TEST_FIBER;

    __asm__ volatile ("movq %0, %%rsp\n\t"
                      "xorl %%ebp, %%ebp\n\t"
                      "pushq $0x12345678\n\t"
                      "jmp *%1"
                      :
                      : "r" (end), "r" (test_work)
                      : "memory");

    __builtin_unreachable();
}


static __attribute__((noinline)) void
test_work(void)
{
    int       i;
    uint64_t  end;

    test_spot.top = test_top;

    for (end = prof_cpu_now() + TEST_MS * 1000000;
         prof_cpu_now() < end;
         /* void */ )
    {

        for (i = 0; i < 20000; i++) {
            test_sum += i;
        }

        test_block = malloc(100);
        free(test_block);
    }

    test_spot.top = 0;

    longjmp(test_back, 1);
}


#endif
