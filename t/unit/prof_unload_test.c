
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: unwind
 * runs: beside
 *
 * Objects that are loaded and unloaded: addresses have the names of the object
 * that was there, and no unmapped memory is read.
 *
 * Of each library, one half runs and the other half never runs.  The library
 * that is loaded in its place has the halves the other way round.  So an
 * address that is looked up in the wrong library is in code that never runs.
 */


#include "prof.h"
#include "prof_finish.h"
#include "prof_series.h"
#include "profile/prof_profile.h"
#include "unwind/prof_unwind.h"

#include "tap.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>


#define TEST_LIBRARIES  4
#define TEST_ROUNDS     60
#define TEST_WORK       1000000

/* more than snapshots remember */
#define TEST_RELOADS    600


typedef long (*test_work_pt)(long n);


typedef struct {
    char             path[64];
    uintptr_t        work;          /* relative to the base */
    uintptr_t        never;
    uint32_t         named;         /* the number of its frames with a name */
} test_library_t;


typedef struct {
    void            *handle;
    uintptr_t        base;
    uintptr_t        pc;            /* an address in the function that runs */
} test_loaded_t;


static void test_build(test_library_t *lib, uint32_t n);
static void test_load(test_library_t *lib, test_loaded_t *l);
static void test_run(test_library_t *lib, long n);
static void test_update(void);
static void test_replaced(void);
static int test_in(const prof_unwind_t *u, uintptr_t pc,
    const test_library_t *lib);
static void test_unseen(void);
static void test_remembered(void);
static void *test_loop(void *data);
static void test_turns(void);
static void test_turn(void *data);
static void test_call(void *handle);
static void test_watched(void);
static void test_process(void);
static void test_many(void);
static void test_busy(void *data);
static void test_spin(uint64_t until);
static void *test_flip(void *data);
static void test_complete(const prof_profile_t *p, uintptr_t caller,
    const char *what);
static uint32_t test_names_later(prof_profile_t *p);
static void *test_thread_complete(void *data);
static uint32_t test_names(const prof_profile_t *p);
static size_t test_mapped(void);


static char            test_dir[] = "/tmp/prof-unload-XXXXXX";
static test_library_t  test_libs[TEST_LIBRARIES];
static volatile int    test_stop;
static volatile long   test_loads[TEST_LIBRARIES];


int
main(void)
{
    uint32_t       i;
    pthread_t      threads[2];
    test_loaded_t  l;

    if (mkdtemp(test_dir) == NULL) {
        ok(0, "the test is set up");
        return done_testing();
    }

    for (i = 0; i < TEST_LIBRARIES; i++) {
        test_build(&test_libs[i], i);
        test_load(&test_libs[i], &l);
        dlclose(l.handle);
    }

    test_update();
    test_replaced();
    test_unseen();
    test_remembered();

    is_int(prof_process_init(), PROF_OK, "the test has unwind tables");

    for (i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, test_loop, &test_libs[2 + i]);
    }

    test_turns();
    test_watched();
    test_process();

    test_stop = 1;

    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        ok(test_loads[2 + i] > 10, "thread %u: %ld loads", i,
           test_loads[2 + i]);
    }

    test_many();

    prof_process_done();

    for (i = 0; i < TEST_LIBRARIES; i++) {
        (void) unlink(test_libs[i].path);
    }

    (void) rmdir(test_dir);

    return done_testing();
}


static void
test_build(test_library_t *lib, uint32_t n)
{
    FILE        *f;
    char         command[512];
    const char  *work, *never;

    work = "long work(long n) { volatile long i, s = 0;"
           " for (i = 0; i < n; i++) { s += i; } return s; }\n";
    never = "void never(void) { __asm__ volatile (\".skip 4096, 0x90\"); }\n";

    (void) snprintf(lib->path, sizeof(lib->path), "%s/lib%u.so", test_dir, n);
    (void) snprintf(command, sizeof(command),
                    "${CC:-cc} -O1 -fno-toplevel-reorder -shared -fPIC -x c -"
                    " -Wl,--build-id -o %s", lib->path);

    f = popen(command, "w");

    fprintf(f, "%s%s%s", n % 2 ? never : "", work, n % 2 ? "" : never);

    if (pclose(f) != 0) {
        exit(skip_all("there is no compiler"));
    }
}


static void
test_load(test_library_t *lib, test_loaded_t *l)
{
    struct link_map  *map;

    l->handle = dlopen(lib->path, RTLD_NOW);

    if (l->handle == NULL || dlinfo(l->handle, RTLD_DI_LINKMAP, &map) != 0) {
        printf("Bail out! %s\n", dlerror());
        exit(1);
    }

    l->base = map->l_addr;
    l->pc = (uintptr_t) dlsym(l->handle, "work") + 4;

    lib->work = l->pc - 4 - l->base;
    lib->never = (uintptr_t) dlsym(l->handle, "never") - l->base;
}


static void
test_run(test_library_t *lib, long n)
{
    void          *handle;
    test_work_pt   work;

    handle = dlopen(lib->path, RTLD_NOW);
    work = (test_work_pt) (uintptr_t) dlsym(handle, "work");

    (void) work(n);

    dlclose(handle);
}


/* an update reuses the unchanged parts of the old snapshot */

static void
test_update(void)
{
    prof_unwind_t       *all, *more, *less;
    test_loaded_t        l;
    prof_unwind_info_t   before, info, after;

    all = prof_unwind_create();

    test_load(&test_libs[0], &l);
    more = prof_unwind_update(all, 0);

    dlclose(l.handle);
    less = prof_unwind_update(more, 0);

    prof_unwind_info(all, &before);
    prof_unwind_info(more, &info);
    prof_unwind_info(less, &after);

    is_int(info.objects, before.objects + 1,
           "update: the tables have one more object");
    ok(prof_unwind_object(all, (uintptr_t) main)
       == prof_unwind_object(more, (uintptr_t) main),
       "update: the other objects are the same");
    ok(test_in(more, l.pc, &test_libs[0]),
       "update: the new tables contain the loaded library");
    ok(prof_unwind_object(less, l.pc) == NULL,
       "update: the newest tables do not contain the library");

    diag("all objects: %.0f us, one: %.0f us, none: %.0f us",
         (double) before.build_ns / 1e3, (double) info.build_ns / 1e3,
         (double) after.build_ns / 1e3);

    /* in any order */

    prof_unwind_release(all);
    ok(test_in(more, l.pc, &test_libs[0]),
       "update: newer tables stay when older ones are released");
    prof_unwind_release(more);
    ok(prof_unwind_object(less, (uintptr_t) main) != NULL,
       "update: the newest tables stay");
    prof_unwind_release(less);
}


static void
test_replaced(void)
{
    uintptr_t             one, two, unsure, first;
    test_loaded_t         l, m;
    const prof_unwind_t  *u[4], *set[3];

    u[0] = prof_unwind_create();

    test_load(&test_libs[0], &l);
    u[1] = prof_unwind_update(u[0], 1);

    dlclose(l.handle);
    u[2] = prof_unwind_update(u[1], 1);

    test_load(&test_libs[1], &m);
    u[3] = prof_unwind_update(u[2], 1);

    if (!ok(l.base == m.base, "both libraries were at one address")) {
        exit(done_testing());
    }

    first = (uintptr_t) main;
    is_int(prof_unwind_mark(&u[3], 1, &first, 0), PROF_OK,
           "an address of the program can be marked");
    ok(first == (uintptr_t) main,
       "an address of an object that stays is not changed");

    one = l.pc;
    is_int(prof_unwind_mark(&u[1], 1, &one, 0), PROF_OK,
           "an address of the loaded library can be marked");
    ok(test_in(u[1], one, &test_libs[0]),
       "the marked address is in the library");
    ok(test_in(u[2], one, &test_libs[0]),
       "the marked address is in the library after it is unloaded");
    ok(test_in(u[3], one, &test_libs[0]),
       "the marked address is in the library after it is replaced");

    one = l.pc;
    is_int(prof_unwind_mark(u, 2, &one, 0), PROF_OK,
           "an address can be marked if its library was loaded meanwhile");
    ok(test_in(u[3], one, &test_libs[0]),
       "such an address is in the library that was loaded");

    one = l.pc;
    is_int(prof_unwind_mark(u + 1, 2, &one, 0), PROF_OK,
           "an address can be marked if its library was unloaded meanwhile");
    ok(test_in(u[3], one, &test_libs[0]),
       "such an address is in the library that was unloaded");

    two = m.pc;
    is_int(prof_unwind_mark(&u[3], 1, &two, 0), PROF_OK,
           "an address of the second library can be marked");
    ok(test_in(u[3], two, &test_libs[1]),
       "this address is in the second library");

    two = m.pc;
    (void) prof_unwind_mark(u + 2, 2, &two, 1);
    ok(test_in(u[3], two, &test_libs[1]),
       "this address is in the second library, loaded meanwhile");

    /* the address may have been in either library */

    unsure = m.pc;
    set[0] = u[1];
    set[1] = u[3];
    is_int(prof_unwind_mark(set, 2, &unsure, 0), PROF_LIMIT,
           "an address that two libraries had is not marked");
    ok(prof_unwind_object(u[3], unsure) == NULL,
       "such an address is in no object");
    ok(prof_unwind_unmark(unsure) == m.pc, "such an address keeps its value");

    unsure = m.pc;
    set[0] = u[0];
    is_int(prof_unwind_mark(set, 2, &unsure, 0), PROF_LIMIT,
           "an address is not marked if a library came between");

    unsure = l.pc;
    is_int(prof_unwind_mark(&u[2], 1, &unsure, 0), PROF_OK,
           "an address that is in no object is accepted");
    ok(prof_unwind_object(u[3], unsure) == NULL,
       "an address without an object is in no object");

    dlclose(m.handle);

    for (int i = 0; i < 4; i++) {
        prof_unwind_release(u[i]);
    }
}


static int
test_in(const prof_unwind_t *u, uintptr_t pc, const test_library_t *lib)
{
    size_t                len;
    uintptr_t             start;
    const prof_object_t  *object;

    object = prof_unwind_object(u, pc);

    if (object == NULL || strcmp(object->path, lib->path) != 0) {
        diag("0x%lx is in %s", (unsigned long) pc,
             object ? object->path : "no object");
        return 0;
    }

    start = prof_unwind_function(u, pc, &len);

    return start - object->base == lib->work && len > 8;
}


/* objects that no snapshot contains, at the place of objects in snapshots */

static void
test_unseen(void)
{
    uintptr_t             pc;
    test_loaded_t         l, m;
    const prof_unwind_t  *u[2];

    u[0] = prof_unwind_create();
    test_load(&test_libs[0], &l);
    u[1] = prof_unwind_update(u[0], 1);
    prof_unwind_release(u[0]);
    u[0] = u[1];

    /* there was only one load, of the same object */

    dlclose(l.handle);
    test_load(&test_libs[0], &l);
    u[1] = prof_unwind_update(u[0], 1);

    pc = l.pc;
    is_int(prof_unwind_mark(u, 2, &pc, 0), PROF_OK,
           "loaded again: the address is marked");
    ok(test_in(u[1], pc, &test_libs[0]),
       "loaded again: the address has its object");
    prof_unwind_release(u[0]);
    u[0] = u[1];

    dlclose(l.handle);
    test_load(&test_libs[1], &m);
    dlclose(m.handle);
    test_load(&test_libs[0], &l);
    u[1] = prof_unwind_update(u[0], 1);

    pc = l.pc;
    is_int(prof_unwind_mark(u, 2, &pc, 0), PROF_LIMIT,
           "an address that another object used meanwhile has no object");

    pc = (uintptr_t) main;
    is_int(prof_unwind_mark(u, 2, &pc, 0), PROF_OK,
           "an address elsewhere has its object");
    ok(pc == (uintptr_t) main, "another address elsewhere has its object");

    pc = l.pc;
    is_int(prof_unwind_mark(&u[1], 1, &pc, 0), PROF_OK,
           "an address after the loads has its object");
    ok(test_in(u[1], pc, &test_libs[0]),
       "an address after the loads is named");
    prof_unwind_release(u[0]);
    u[0] = u[1];

    dlclose(l.handle);
    test_load(&test_libs[1], &m);
    dlclose(m.handle);
    u[1] = prof_unwind_update(u[0], 1);

    pc = l.pc;
    is_int(prof_unwind_mark(u, 2, &pc, 0), PROF_LIMIT,
           "an address that another object may have had is not marked");

    prof_unwind_release(u[0]);
    prof_unwind_release(u[1]);
}


/* memory is bounded, and is freed again */

static void
test_remembered(void)
{
    int                  i;
    size_t               before, after;
    uintptr_t            pc;
    prof_unwind_t       *u, *next;
    test_loaded_t        l;
    prof_unwind_info_t   info;

    u = prof_unwind_create();
    before = test_mapped();

    for (i = 0; i < TEST_RELOADS; i++) {
        test_load(&test_libs[i % 2], &l);
        test_run(&test_libs[3], 1);

        next = prof_unwind_update(u, 1);
        prof_unwind_release(u);
        u = next;

        dlclose(l.handle);
    }

    prof_unwind_info(u, &info);

    ok(info.unloaded > 1 && info.unloaded <= 256, "%u are remembered",
       info.unloaded);

    pc = l.pc;
    (void) prof_unwind_mark((const prof_unwind_t *const *) &u, 1, &pc, 0);
    ok(test_in(u, pc, &test_libs[1]), "the last one is named");

    next = prof_unwind_update(u, 0);
    prof_unwind_release(u);

    prof_unwind_info(next, &info);
    is_int(info.unloaded, 0, "a new snapshot forgets unloaded objects");
    ok(prof_unwind_object(next, pc) == NULL,
       "a forgotten object gives no name");

    after = test_mapped();
    ok(after < before + 1024 * 1024, "snapshots take %zu bytes more",
       after > before ? after - before : 0);

    prof_unwind_release(next);
}


static void *
test_loop(void *data)
{
    test_library_t *lib = data;

    while (!test_stop) {
        test_run(lib, 2000000 + random() % 20000000);
        test_loads[lib - test_libs]++;
    }

    return NULL;
}


static void
test_turns(void)
{
    uint32_t              i, k, never;
    const char           *err;
    prof_profile_t       *p, *next;
    prof_sampler_t       *s;
    prof_capture_t       *c;
    prof_capture_conf_t   conf;

    s = prof_sampler_create(&err);

    if (!ok(s != NULL, "sampler")) {
        diag("%s", err);
        return;
    }

    p = NULL;

    conf.mode = PROF_MODE_WALL;
    conf.frequency = 5000;
    conf.memory = PROF_MEMORY_MIN;

    never = 0;

    for (i = 0; i < TEST_ROUNDS; i++) {
        c = prof_capture_create(&conf);

        for (k = 0; k < 4; k++) {
            prof_turn_run(s, c, (uintptr_t) test_turn, test_turn, &i);
        }

        next = prof_capture_finish(c, "turns");
        prof_capture_destroy(c);

        /* meanwhile the capture of this round has loaded other objects */

        never += test_names_later(p);
        p = next;
    }

    never += test_names_later(p);

    prof_sampler_destroy(s);

    is_int(never, 0, "turns: no name is wrong");

    for (i = 0; i < 2; i++) {
        ok(test_libs[i].named > 0,
           "turns: %u frames have the name of library %u",
           test_libs[i].named, i);
        test_libs[i].named = 0;
    }
}


/* one library after the other at the same place, in the same turn or not */

static void
test_turn(void *data)
{
    uint32_t *round = data;

    static void      *handle;
    static uint32_t   turns;

    if (*round % 3 == 0) {
        test_run(&test_libs[turns++ % 2], TEST_WORK);
        test_run(&test_libs[turns++ % 2], TEST_WORK);
        return;
    }

    if (handle == NULL) {
        handle = dlopen(test_libs[turns++ % 2].path, RTLD_NOW);
        test_call(handle);
        return;
    }

    test_call(handle);
    dlclose(handle);
    handle = NULL;
}


static void
test_call(void *handle)
{
    test_work_pt  work;

    work = (test_work_pt) (uintptr_t) dlsym(handle, "work");

    (void) work(TEST_WORK);
}


static void
test_watched(void)
{
    void                 *handle;
    uint32_t              i, never;
    uint64_t              start, cpu;
    const char           *err;
    prof_watch_t         *w;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_watch_spot_t     spot;
    prof_capture_conf_t   conf;

    memset(&spot, 0, sizeof(prof_watch_spot_t));

    w = prof_watch_create(250, &spot, &err);

    if (!ok(w != NULL, "watch")) {
        diag("%s", err);
        return;
    }

    conf.mode = PROF_MODE_WALL;
    conf.frequency = 250;
    conf.memory = PROF_MEMORY_MIN;

    never = 0;

    for (i = 0; i < TEST_ROUNDS; i++) {
        start = prof_now();
        cpu = prof_cpu_now();

        handle = dlopen(test_libs[i % 2].path, RTLD_NOW);
        prof_watch_pass(w, 0);

        /* the CPU time of one call may be less than a tick of the kernel's */

        spot.top = (uintptr_t) __builtin_frame_address(0);

        do {
            test_call(handle);
        } while (!spot.fresh && prof_cpu_now() - cpu < 1000000000);

        dlclose(handle);
        spot.top = 0;

        prof_watch_pass(w, 1);

        /* the snapshot is made after the library was unloaded */

        c = prof_capture_create(&conf);
        prof_capture_begin(c, start);
        prof_watch_turn(w, c, 1, (uintptr_t) test_run, prof_now(),
                        prof_cpu_now() - cpu);

        p = finish_capture(c, "watched");
        never += test_names(p);

        prof_profile_destroy(p);
        prof_capture_destroy(c);
    }

    prof_watch_destroy(w);

    is_int(never, 0, "watched: no name is wrong");
    ok(test_libs[0].named + test_libs[1].named > 0,
       "watched: %u and %u frames have names of libraries",
       test_libs[0].named,
       test_libs[1].named);
}


static void
test_process(void)
{
    uint32_t              i, never;
    const char           *err;
    prof_profile_t       *p;
    prof_capture_t       *c;
    struct timespec       ts;
    prof_capture_conf_t   conf;

    conf.mode = PROF_MODE_CPU;
    conf.frequency = 1000;
    conf.memory = PROF_MEMORY_MIN;

    never = 0;
    ts.tv_sec = 0;

    for (i = 0; i < TEST_ROUNDS; i++) {
        c = prof_capture_create(&conf);

        if (prof_process_start(c, 0, &err) != PROF_OK) {
            ok(0, "process: the test has a capture: %s", err);
            return;
        }

        for (ts.tv_nsec = 1000000; ts.tv_nsec < 5000000;
             ts.tv_nsec += 1000000)
        {
            (void) nanosleep(&ts, NULL);
            prof_process_drain();
        }

        p = finish_process(c, "process");
        never += test_names(p);

        prof_profile_destroy(p);
        prof_capture_destroy(c);
    }

    is_int(never, 0, "process: no name is wrong");
    ok(test_libs[2].named + test_libs[3].named > 0,
       "process: %u and %u frames have names of libraries",
       test_libs[2].named,
       test_libs[3].named);
}


/* many more loads between two snapshots than there are objects */

static void
test_many(void)
{
    uint32_t              i;
    uint64_t              start;
    pthread_t             threads[2];
    const char           *err;
    prof_profile_t       *p;
    prof_sampler_t       *s;
    prof_capture_t       *c;
    prof_capture_conf_t   conf;

    test_stop = 0;
    test_loads[2] = 0;
    test_loads[3] = 0;

    for (i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, test_flip,
                       (void *) &test_loads[2 + i]);
    }

    conf.mode = PROF_MODE_CPU;
    conf.frequency = 1000;
    conf.memory = PROF_MEMORY_MIN;

    start = prof_now();
    c = prof_capture_create(&conf);

    if (prof_process_start(c, 0, &err) != PROF_OK) {
        printf("Bail out! %s\n", err);
        exit(1);
    }

    for (i = 0; i < 10; i++) {
        test_busy(NULL);
        prof_process_drain();
    }

    p = finish_process(c, "many");
    is_int(test_names(p), 0, "many: no name is wrong");
    test_complete(p, (uintptr_t) main, "process");
    prof_profile_destroy(p);
    prof_capture_destroy(c);

    s = prof_sampler_create(&err);
    c = prof_capture_create(&conf);

    for (i = 0; i < 10; i++) {
        prof_turn_run(s, c, (uintptr_t) test_busy, test_busy, NULL);
    }

    p = finish_capture(c, "many");
    is_int(test_names(p), 0, "many: no name is wrong in turns");
    test_complete(p, (uintptr_t) test_busy, "turns");
    prof_profile_destroy(p);
    prof_capture_destroy(c);
    prof_sampler_destroy(s);

    test_stop = 1;

    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }

    ok(test_loads[2] + test_loads[3] > 1000, "many: %.0f loads a second",
       (double) (test_loads[2] + test_loads[3]) * 1e9 / (prof_now() - start));
}


__attribute__((noinline)) static void
test_busy(void *data)
{
    test_spin(prof_cpu_now() + 50000000);

    __asm__ volatile ("");              /* prevents a tail call */
}


__attribute__((noinline)) static void
test_spin(uint64_t until)
{
    volatile long  i;

    while (prof_cpu_now() < until) {
        for (i = 0; i < 100000; i++) { /* void */ }
    }
}


/* the libraries replace each other at the same place */

static void *
test_flip(void *data)
{
    uint32_t        i;
    volatile long  *loads = data;

    for (i = 0; !test_stop; i++) {
        test_run(&test_libs[2 + i % 2], 1000);
        (*loads)++;
    }

    return NULL;
}


/* samples of the main thread, which only runs code that stays loaded */

static void
test_complete(const prof_profile_t *p, uintptr_t caller, const char *what)
{
    uint32_t              i, n, named, all;
    const prof_frame_t   *frame;
    const prof_label_t   *label;

    named = 0;
    all = 0;

    for (i = 0; i < ntimes(p); i++) {
        label = prof_profile_label_find(p, time_of(p, i)->labels, "thread");

        if (time_of(p, i)->count == 0
            || (label && strcmp(label->value, "main") != 0))
        {
            continue;
        }

        all += time_of(p, i)->count;

        for (n = time_of(p, i)->node; n != PROF_NONE; n = p->nodes[n].parent) {
            frame = &p->frames[p->nodes[n].frame];

            if (frame->object != PROF_NONE
                && frame->function + p->objects[frame->object].base == caller)
            {
                named += time_of(p, i)->count;
                break;
            }
        }
    }

    if (!ok(all > 50 && named >= 0.99 * all,
            "many: %s: %u of %u stacks are whole", what, named, all))
    {
        diag("samples %lu, overruns %lu, ring full %lu",
             (unsigned long) p->stats.samples,
             (unsigned long) p->stats.lost_overrun,
             (unsigned long) p->stats.lost_ring);
    }
}


/* completes a draft in another thread, as jobs do, and destroys it */

static uint32_t
test_names_later(prof_profile_t *p)
{
    uint32_t   never;
    pthread_t  thread;

    if (p == NULL) {
        return 0;
    }

    if (pthread_create(&thread, NULL, test_thread_complete, p) != 0) {
        abort();
    }

    (void) pthread_join(thread, NULL);

    never = test_names(p);

    prof_profile_destroy(p);

    return never;
}


static void *
test_thread_complete(void *data)
{
    if (prof_profile_complete(data) != PROF_OK) {
        abort();
    }

    return NULL;
}


/* frames of functions that never run */

static uint32_t
test_names(const prof_profile_t *p)
{
    uint32_t                      i, k, never;
    const prof_frame_t           *frame;
    const prof_profile_object_t  *object;

    never = 0;

    for (i = 0; i < p->nframes; i++) {
        frame = &p->frames[i];

        if (frame->object == PROF_NONE) {
            continue;
        }

        object = &p->objects[frame->object];

        for (k = 0; k < TEST_LIBRARIES; k++) {

            if (strcmp(object->path, test_libs[k].path) != 0) {
                continue;
            }

            test_libs[k].named += (frame->function == test_libs[k].work);
            never += (frame->function == test_libs[k].never
                      || frame->pc < object->start
                      || frame->pc > object->end);
        }
    }

    return never;
}


static size_t
test_mapped(void)
{
    FILE    *f;
    size_t   pages;

    pages = 0;
    f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%zu", &pages) != 1) {
        pages = 0;
    }

    if (f) {
        fclose(f);
    }

    return pages * (size_t) sysconf(_SC_PAGESIZE);
}
