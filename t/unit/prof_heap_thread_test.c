
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: heap
 * runs: beside
 *
 * The data of hooks for threads: one entry per thread, also if many threads
 * start and end, and the behavior for a thread without an entry.
 */


#include "heap/prof_heap_state.h"
#include "prof_finish.h"
#include "prof.h"
#include "tap.h"

#include <pthread.h>


#define TEST_THREADS  3000


static void *test_thread(void *data);
static void *test_entry(void *data);
static void *test_allocate(void *data);
static void test_run(void *(*fn)(void *data), void *data);
static prof_heap_t *test_hold(void);
static uint32_t test_fill(void);


static void *volatile  test_block;


static void *
test_thread(void *data)
{
    int *same = data;

    *same += (prof_heap_thread() != NULL
              && prof_heap_thread() == prof_heap_thread()
              && prof_heap_thread()->thread == prof_arch_thread());

    return NULL;
}


static void *
test_entry(void *data)
{
    prof_heap_thread_t **t = data;

    *t = prof_heap_thread();

    return NULL;
}


static void *
test_allocate(void *data)
{
    int  i;

    for (i = 0; i < 10; i++) {
        test_block = malloc(100);
        free(test_block);
    }

    return NULL;
}


static void
test_run(void *(*fn)(void *data), void *data)
{
    pthread_t  thread;

    if (pthread_create(&thread, NULL, fn, data) != 0
        || pthread_join(thread, NULL) != 0)
    {
        abort();
    }
}


static prof_heap_t *
test_hold(void)
{
    const char        *err;
    prof_heap_conf_t   conf;

    conf.memory = PROF_MEMORY_MIN;
    conf.interval = 0;
    conf.process = 1;

    return prof_heap_create(&conf, &err);
}


/* takes all free entries for nonexistent threads */

static uint32_t
test_fill(void)
{
    uint32_t   n;
    uintptr_t  self;

    n = 0;

    for (self = 1; self < 200000; self++) {
        n += prof_heap_thread_find(self * 4096) != NULL;
    }

    return n;
}


int
main(void)
{
    int                    i, same;
    uint32_t               n;
    prof_heap_t           *h;
    prof_profile_t        *p;
    prof_heap_thread_t    *t;
    prof_heap_totals_t     before, after;

    if (prof_process_init() != PROF_OK) {
        ok(0, "the test is set up");
        return done_testing();
    }

    same = 0;

    for (i = 0; i < TEST_THREADS; i++) {
        test_run(test_thread, &same);
    }

    is_int(same, TEST_THREADS, "%d threads have an entry each", TEST_THREADS);

    h = test_hold();

    prof_heap_totals(h, &before);
    test_run(test_allocate, NULL);
    prof_heap_totals(h, &after);

    ok(after.alloc_objects >= before.alloc_objects + 10,
       "a thread with an entry is counted");

    n = test_fill();
    ok(n > PROF_HEAP_THREADS / 2 && n < PROF_HEAP_THREADS,
       "%u entries are taken", n);

    t = (prof_heap_thread_t *) &same;
    test_run(test_entry, &t);

    /* a thread may have the memory of an earlier thread, which had an entry */

    if (t) {
        t->thread = 1;
    }

    test_run(test_entry, &t);
    ok(t == NULL, "no entry of the table is left for a thread");

    prof_heap_totals(h, &before);
    test_run(test_allocate, NULL);
    prof_heap_totals(h, &after);

    ok(after.alloc_objects < before.alloc_objects + 10,
       "such a thread is not counted");
    ok(h->missed >= 10, "the calls of such a thread are counted as missed");

    p = finish_heap(h, "heap");
    ok(p && p->stats.lost_hooks >= 10,
       "the profile tells the number of missed calls");
    prof_profile_destroy(p);

    h = test_hold();

    test_run(test_entry, &t);
    ok(t != NULL, "the next capture has entries for all");

    prof_heap_totals(h, &before);
    test_run(test_allocate, NULL);
    prof_heap_totals(h, &after);

    ok(after.alloc_objects >= before.alloc_objects + 10,
       "a new heap counts the thread");

    prof_heap_destroy(h);

    /* a thread is stopped in a hook: it may still change the heap */

    h = test_hold();

    (void) __atomic_add_fetch(&prof_heap_state.readers, 1, __ATOMIC_SEQ_CST);
    p = prof_heap_finish(h, "stopped");
    (void) __atomic_sub_fetch(&prof_heap_state.readers, 1, __ATOMIC_SEQ_CST);

    ok(p && prof_profile_complete(p) == PROF_ERROR,
       "a heap that a thread has not left becomes no profile");
    prof_profile_destroy(p);
    prof_unwind_release(h->walker.unwind);

    prof_process_done();

    return done_testing();
}
