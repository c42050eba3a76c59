
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: heap
 * runs: beside
 *
 * Hooks beside threads that load and unload objects: one load that stops in
 * the middle of the object's relocations, and many loads that do not stop.
 */


#include "heap/prof_heap_state.h"
#include "heap/prof_hooks.h"
#include "prof.h"
#include "tap.h"
#include "heap/prof_import.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define TEST_THREADS  2
#define TEST_ROUNDS   400
#define TEST_KINDS    3

/* a resolver of the library reports here that it runs, and waits */
#define TEST_SAYS     100
#define TEST_WAITS    101


typedef struct {
    uintptr_t  start;           /* of this object; 0: of all objects */
    uint32_t   imports;
    uint32_t   hooked;
} test_imports_t;


static void test_build(const char *path, const char *flags, int stop);
static void test_count(void *data, const prof_import_batch_t *batch);
static test_imports_t test_imports(void *symbol);
static prof_heap_t *test_hold(void);
static void test_drain(int ms);
static void test_stopped(void);
static void *test_load(void *data);
static void test_beside(void);
static void *test_loop(void *data);
static void test_reused(void);


static const char  *test_flags[TEST_KINDS] = {
    "-Wl,-z,relro,-z,now", "-Wl,-z,relro,-z,lazy", "-Wl,-z,norelro,-z,lazy"
};

static const char  *test_names[] = { "malloc", "free", NULL };
static char         test_dir[] = "/tmp/prof_hooks_load.XXXXXX";
static char         test_so[TEST_KINDS][64];
static char         test_stop_so[64];
static int          test_end;
static uint64_t     test_loads;


int
main(void)
{
    int  i, says[2], waits[2];

    if (prof_process_init() != PROF_OK || mkdtemp(test_dir) == NULL
        || pipe(says) == -1 || pipe(waits) == -1
        || dup2(says[1], TEST_SAYS) == -1 || dup2(waits[0], TEST_WAITS) == -1
        || dup2(says[0], TEST_SAYS + 2) == -1
        || dup2(waits[1], TEST_WAITS + 2) == -1)
    {
        ok(0, "the test is set up");
        return done_testing();
    }

    for (i = 0; i < TEST_KINDS; i++) {
        snprintf(test_so[i], sizeof(test_so[i]), "%s/%d.so", test_dir, i);
        test_build(test_so[i], test_flags[i], 0);
    }

    snprintf(test_stop_so, sizeof(test_stop_so), "%s/stop.so", test_dir);
    test_build(test_stop_so, test_flags[0], 1);

    /* the first capture looks functions up, and waits for loads */

    prof_heap_destroy(test_hold());

    test_stopped();
    test_beside();
    test_reused();

    prof_process_done();

    for (i = 0; i < TEST_KINDS; i++) {
        (void) unlink(test_so[i]);
    }

    (void) unlink(test_stop_so);
    (void) rmdir(test_dir);

    return done_testing();
}


/*
 * Builds a library with calls of malloc() and free(), with the addresses of
 * both in constants, and with relocations that take some time.  A library that
 * stops also has a function with a resolver of its own, which the loader calls
 * between two relocations.  A resolver cannot use functions and data.
 */

static void
test_build(const char *path, const char *flags, int stop)
{
    FILE  *f;
    char   command[512];

    snprintf(command, sizeof(command),
             "${CC:-cc} -O1 -shared -fPIC %s -x c - -o %s", flags, path);

    f = popen(command, "w");

    fprintf(f, "#include <stdlib.h>\n#include <sys/syscall.h>\n");

    if (stop) {
        fprintf(f, "static long call(long n, long fd, char *c) {\n"
                   "#if (__x86_64__)\n"
                   "    long rc; __asm__ volatile (\"syscall\" : \"=a\" (rc)"
                   " : \"0\" (n), \"D\" (fd), \"S\" (c), \"d\" (1L)"
                   " : \"rcx\", \"r11\", \"memory\"); return rc;\n"
                   "#else\n"
                   "    register long x0 __asm__(\"x0\") = fd;\n"
                   "    register char *x1 __asm__(\"x1\") = c;\n"
                   "    register long x2 __asm__(\"x2\") = 1;\n"
                   "    register long x8 __asm__(\"x8\") = n;\n"
                   "    __asm__ volatile (\"svc 0\" : \"+r\" (x0) : \"r\" (x1),"
                   " \"r\" (x2), \"r\" (x8) : \"memory\"); return x0;\n"
                   "#endif\n"
                   "}\n"
                   "static int real(void) { return 42; }\n"
                   "__attribute__((no_stack_protector))"
                   " static int (*choose(void))(void) {\n"
                   "    char c; c = 's'; call(SYS_write, %d, &c);\n"
                   "    call(SYS_read, %d, &c); return real; }\n"
                   "int test_so_chosen(void)"
                   " __attribute__((ifunc(\"choose\")));\n",
                TEST_SAYS, TEST_WAITS);
    }

    fprintf(f, "void *test_so_alloc(size_t n) { return malloc(n); }\n"
               "void test_so_free(void *p) { free(p); }\n"
               "void *const test_so_table[1500] = { malloc, free%s,\n"
               "    [3 ... 1499] = (void *) getenv };\n",
            stop ? ", test_so_chosen" : "");

    ok(pclose(f) == 0, "a library, %s", stop ? "whose load stops" : flags);
}


static void
test_count(void *data, const prof_import_batch_t *batch)
{
    test_imports_t *t = data;

    uint32_t  i, k;

    if (t->start && (t->start < batch->start || t->start >= batch->end)) {
        return;
    }

    for (i = 0; i < batch->n; i++) {
        t->imports++;

        for (k = 0; k < PROF_HOOKS_N; k++) {
            t->hooked += (*batch->imports[i].at
                          == (uintptr_t) prof_hooks_calls[k]);
        }
    }
}


static test_imports_t
test_imports(void *symbol)
{
    uint64_t        adds, subs;
    test_imports_t  t;

    t.start = (uintptr_t) symbol;
    t.imports = 0;
    t.hooked = 0;

    prof_import_each(test_names, test_count, &t, &adds, &subs);

    return t;
}


static prof_heap_t *
test_hold(void)
{
    const char        *err;
    prof_heap_t       *h;
    prof_heap_conf_t   conf;

    conf.memory = PROF_MEMORY_MIN;
    conf.interval = 0;
    conf.process = 1;

    h = prof_heap_create(&conf, &err);

    if (h == NULL) {
        diag("%s", err);
    }

    return h;
}


/* the work of a worker during a capture */

static void
test_drain(int ms)
{
    int              i;
    struct timespec  ts;

    ts.tv_sec = 0;
    ts.tv_nsec = 1000000;

    for (i = 0; i < ms; i++) {
        prof_process_drain();
        (void) nanosleep(&ts, NULL);
    }
}


static void *
test_load(void *data)
{
    return dlopen(data, RTLD_NOW);
}


/* hooks are installed, and removed, while an object is partly loaded */

static void
test_stopped(void)
{
    int             i;
    char            c;
    void           *handle, *at;
    pthread_t       thread;
    prof_heap_t    *h;
    test_imports_t  t;

    for (i = 0; i < 2; i++) {
        handle = NULL;

        if (pthread_create(&thread, NULL, test_load, test_stop_so) != 0
            || read(TEST_SAYS + 2, &c, 1) != 1)
        {
            ok(0, "the test has a thread that loads");
            return;
        }

        h = test_hold();
        test_drain(5);

        /* in the first round the capture ends before the load */

        if (i == 0) {
            prof_heap_destroy(h);
        }

        (void) (write(TEST_WAITS + 2, "c", 1) + 1);
        (void) pthread_join(thread, &handle);

        ok(handle != NULL, "an object is loaded, %d", i);

        at = dlsym(handle, "test_so_table");
        t = test_imports(at);

        if (i == 0) {
            is_int(t.hooked, 0, "the object has no hook after the capture");

        } else {
            while (t.hooked < t.imports) {
                test_drain(1);
                t = test_imports(at);
            }

            ok(t.imports >= 4, "all of its %u imports have hooks in the end",
               t.imports);

            prof_heap_destroy(h);
            is_int(test_imports(at).hooked, 0,
                   "no import has a hook after the capture");
        }

        (void) dlclose(handle);
    }
}


static void *
test_loop(void *data)
{
    int     i;
    void   *handle, *p;

    void *(*alloc)(size_t n);
    void  (*release)(void *p);

    for (i = 0; !__atomic_load_n(&test_end, __ATOMIC_RELAXED); i++) {
        handle = dlopen(test_so[i % TEST_KINDS], i & 1 ? RTLD_NOW : RTLD_LAZY);

        if (handle == NULL) {
            diag("%s", dlerror());
            abort();
        }

        *(void **) &alloc = dlsym(handle, "test_so_alloc");
        *(void **) &release = dlsym(handle, "test_so_free");

        p = alloc(100);

        if (p == NULL) {
            abort();
        }

        release(p);

        (void) dlclose(handle);

        __atomic_fetch_add(&test_loads, 1, __ATOMIC_RELAXED);
    }

    return NULL;
}


static void
test_beside(void)
{
    int           i, hooked;
    uint64_t      loads;
    pthread_t     threads[TEST_THREADS];
    prof_heap_t  *h;

    for (i = 0; i < TEST_THREADS; i++) {
        if (pthread_create(&threads[i], NULL, test_loop, NULL) != 0) {
            abort();
        }
    }

    hooked = 0;

    for (i = 0; i < TEST_ROUNDS; i++) {
        h = test_hold();
        loads = __atomic_load_n(&test_loads, __ATOMIC_RELAXED);

        while (__atomic_load_n(&test_loads, __ATOMIC_RELAXED) < loads + 2) {
            prof_process_drain();
        }

        prof_heap_destroy(h);
        hooked += test_imports(NULL).hooked;
    }

    __atomic_store_n(&test_end, 1, __ATOMIC_RELAXED);

    for (i = 0; i < TEST_THREADS; i++) {
        (void) pthread_join(threads[i], NULL);
    }

    is_int(hooked, 0, "%d rounds beside %lu loads leave no hook", TEST_ROUNDS,
           (unsigned long) test_loads);
}


/* another object at the address of an object that had hooks */

static void
test_reused(void)
{
    int             i, reused;
    void           *handle, *at, *before;
    prof_heap_t    *h;
    test_imports_t  t;

    reused = 0;
    before = NULL;
    h = test_hold();

    for (i = 0; i < 12; i++) {
        handle = dlopen(test_so[i / 2 % TEST_KINDS], RTLD_NOW);
        at = dlsym(handle, "test_so_table");
        reused += (at == before);
        before = at;

        do {
            test_drain(1);
            t = test_imports(at);
        } while (t.hooked < t.imports);

        if (i % 4 == 3) {
            prof_heap_destroy(h);
            t = test_imports(at);
            is_int(t.hooked, 0, "no object has a hook in the end, %d", i);

            t = test_imports(NULL);
            is_int(t.hooked, 0, "no other object has a hook");
            h = test_hold();
        }

        (void) dlclose(handle);
    }

    prof_heap_destroy(h);
    ok(reused > 0, "%d objects were at the address of the one before", reused);
}
