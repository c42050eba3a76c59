
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: heap
 * runs: beside
 *
 * Hooks: which imports are hooked, and that all words are restored afterwards,
 * also with threads that allocate and with objects that are loaded and
 * unloaded meanwhile.
 */


#include "heap/prof_heap_state.h"
#include "heap/prof_hooks.h"
#include "prof.h"
#include "tap.h"
#include "heap/prof_import.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>


#define TEST_ROUNDS   50
#define TEST_THREADS  3


/* a copy of the data of an object as the loader left it, before any hook */

typedef struct {
    const char   *at;
    char         *copy;
    size_t        len;
} test_range_t;


typedef struct {
    test_range_t  ranges[256];
    uint32_t      n;
    uint32_t      imports;
    uint32_t      hooked;
} test_memory_t;


static int test_ranges(struct dl_phdr_info *info, size_t size, void *data);
static uint32_t test_compare(const test_range_t *range, int copy);
static uint32_t test_differences(void);
static void test_import_words(void *data, const prof_import_batch_t *batch);
static void test_count_imports(void);
static char *test_maps(void);
static void *test_thread(void *data);
static void *test_library(void);
static void test_build_library(void);
static void test_release(prof_heap_t *h);
static prof_heap_t *test_hold(void);
static void test_once(void);
static void test_rounds(void);
static void test_loaded(void);
static void test_unloaded(void);
static void test_copied(void);
static void test_owner(void);
static void *test_owner_thread(void *data);


static test_memory_t      test_memory;
static volatile int       test_stop;
static char               test_dir[] = "/tmp/prof_hooks.XXXXXX";
static char               test_so[64];
static volatile uint64_t  test_blocks;

static const char *const  test_names[] = {
    "malloc", "calloc", "realloc", "free", "posix_memalign", NULL
};


int
main(void)
{
    if (prof_process_init() != PROF_OK || mkdtemp(test_dir) == NULL) {
        ok(0, "the test is set up");
        return done_testing();
    }

    snprintf(test_so, sizeof(test_so), "%s/test.so", test_dir);
    test_build_library();

    /* all lazily bound functions are bound now */

    test_release(test_hold());
    free(test_maps());

    (void) dl_iterate_phdr(test_ranges, &test_memory);

    ok(test_memory.n > 2, "%u ranges of words that are the loader's",
       test_memory.n);

    test_once();
    test_rounds();
    test_loaded();
    test_unloaded();
    test_copied();
    test_owner();

    prof_process_done();

    (void) unlink(test_so);
    (void) rmdir(test_dir);

    return done_testing();
}


/*
 * RELRO: addresses of functions and of data, which stay constant after
 * loading.
 */

static int
test_ranges(struct dl_phdr_info *info, size_t size, void *data)
{
    test_memory_t *m = data;

    uint16_t           i;
    uintptr_t          start, end;
    test_range_t      *range;
    const ElfW(Phdr)  *ph;

    for (i = 0; i < info->dlpi_phnum; i++) {
        ph = &info->dlpi_phdr[i];

        if (ph->p_type != PT_GNU_RELRO) {
            continue;
        }

        start = (info->dlpi_addr + ph->p_vaddr) & ~(uintptr_t) 4095;
        end = (info->dlpi_addr + ph->p_vaddr + ph->p_memsz)
              & ~(uintptr_t) 4095;

        if (start == end || m->n == 256) {
            continue;
        }

        range = &m->ranges[m->n++];

        range->at = (char *) start;
        range->len = end - start;
        range->copy = mmap(NULL, range->len, PROT_READ|PROT_WRITE,
                           MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

        (void) test_compare(range, 1);
    }

    return 0;
}


/* this reads the gaps between variables, which a sanitizer reports */

__attribute__((no_sanitize_address)) static uint32_t
test_compare(const test_range_t *range, int copy)
{
    size_t                i;
    uint32_t              n;
    const volatile char  *at;

    n = 0;
    at = range->at;

    for (i = 0; i < range->len; i++) {

        if (copy) {
            range->copy[i] = at[i];
        }

        n += range->copy[i] != at[i];
    }

    return n;
}


static uint32_t
test_differences(void)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < test_memory.n; i++) {
        n += test_compare(&test_memory.ranges[i], 0);
    }

    return n;
}


static void
test_count_imports(void)
{
    uint64_t  adds, subs;

    test_memory.imports = 0;
    test_memory.hooked = 0;

    prof_import_each(test_names, test_import_words, &test_memory, &adds, &subs);
}


static void
test_import_words(void *data, const prof_import_batch_t *batch)
{
    test_memory_t *m = data;

    uint32_t  i, k;

    for (i = 0; i < batch->n; i++) {
        m->imports++;

        for (k = 0; k < PROF_HOOKS_N; k++) {
            m->hooked += *batch->imports[i].at
                         == (uintptr_t) prof_hooks_calls[k];
        }
    }
}


/* the process's mappings of files: addresses and permissions */

static char *
test_maps(void)
{
    char   *p, *line, *next;
    FILE   *f;
    size_t  len, n;

    static char  text[1024 * 1024];

    f = fopen("/proc/self/maps", "r");
    if (f == NULL) {
        return NULL;
    }

    len = fread(text, 1, sizeof(text) - 1, f);
    text[len] = '\0';
    fclose(f);

    p = malloc(len + 1);
    n = 0;

    for (line = text; *line; line = next) {
        next = strchr(line, '\n') + 1;

        if (memchr(line, '/', next - line)) {
            memcpy(p + n, line, next - line);
            n += next - line;
        }
    }

    p[n] = '\0';

    return p;
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


static void
test_release(prof_heap_t *h)
{
    prof_heap_destroy(h);
}


static void
test_once(void)
{
    char               *before, *after;
    prof_heap_t        *h;
    prof_hooks_info_t   info;

    before = test_maps();
    test_count_imports();

    is_int(test_memory.hooked, 0, "no import has a hook");
    ok(test_memory.imports > 5,
       "the test finds %u imports", test_memory.imports);

    h = test_hold();
    prof_hooks_info(&info);
    test_count_imports();

    diag("%u imports in %lu us, %u left, %u mprotect() calls", info.imports,
         (unsigned long) info.ns / 1000, info.left, info.protects);

    /* the C library's calloc, if it is not bound yet and not used */

    ok(info.left <= 1, "at most one import is left without a hook");
    is_int(test_memory.hooked, test_memory.imports - info.left,
           "every other import has a hook");
    ok(test_differences() > 0,
       "the loader's words differ while hooks are armed");

    test_release(h);
    test_count_imports();
    after = test_maps();

    is_int(test_memory.hooked, 0, "no import has a hook after the capture");
    is_int(test_differences(), 0, "the capture leaves all words as they were");
    is_str(after, before, "the capture leaves all mappings as they were");

    free(before);
    free(after);
}


static void *
test_thread(void *data)
{
    char      *p[16], *q;
    uint32_t   i;

    while (!test_stop) {

        for (i = 0; i < 16; i++) {
            p[i] = malloc(16 + i * 100);
            memset(p[i], i, 16);
        }

        for (i = 0; i < 16; i++) {
            q = realloc(p[i], 2000);

            if (q[0] != (char) i || q[15] != (char) i) {
                abort();
            }

            free(q);
            free(strdup("block"));
        }

        __atomic_fetch_add(&test_blocks, 32, __ATOMIC_RELAXED);
    }

    return NULL;
}


static void
test_rounds(void)
{
    int                   i, bad;
    char                 *before, *after;
    uint32_t              hooked, differences;
    uint64_t              counted, blocks;
    pthread_t             threads[TEST_THREADS];
    prof_heap_t          *h;
    prof_heap_totals_t    totals;

    bad = 0;
    counted = 0;
    hooked = 0;
    differences = 0;
    test_stop = 0;

    for (i = 0; i < TEST_THREADS; i++) {
        bad |= pthread_create(&threads[i], NULL, test_thread, NULL);
    }

    is_int(bad, 0, "the test has %d threads that allocate", TEST_THREADS);

    before = test_maps();

    for (i = 0; i < TEST_ROUNDS; i++) {
        h = test_hold();
        blocks = test_blocks;

        /*
         * Allocations that a thread has begun before are counted in part, or
         * not at all.
         */

        while (test_blocks < blocks + 32 * (TEST_THREADS + 3)) {
            (void) sched_yield();
        }

        prof_heap_totals(h, &totals);
        counted += totals.alloc_objects;

        test_release(h);
        test_count_imports();

        hooked += test_memory.hooked;
        differences += test_differences();
    }

    after = test_maps();
    test_stop = 1;

    for (i = 0; i < TEST_THREADS; i++) {
        (void) pthread_join(threads[i], NULL);
    }

    ok(counted > TEST_ROUNDS * 64, "%d rounds count %lu of their blocks",
       TEST_ROUNDS, (unsigned long) counted);
    is_int(hooked, 0, "rounds leave no hook");
    is_int(differences, 0, "rounds leave all words as they were");
    is_str(after, before, "rounds leave the mappings as they were");

    free(before);
    free(after);
}


static void
test_build_library(void)
{
    FILE  *f;
    char   command[512];

    snprintf(command, sizeof(command),
             "${CC:-cc} -O2 -shared -fPIC -x c - -o %s", test_so);

    f = popen(command, "w");

    fprintf(f, "#include <stdlib.h>\n"
               "void *test_so_alloc(size_t n) { return malloc(n); }\n"
               "void test_so_free(void *p) { free(p); }\n"
               "void *(*test_so_pointer)(size_t n) = malloc;\n"
               "void *(*const test_so_table[])(size_t n) = { malloc };\n"
               "void *test_so_call(size_t n) { return test_so_pointer(n); }\n"
               "void *test_so_look(size_t n) { return test_so_table[0](n); }"
               "\n");

    ok(pclose(f) == 0, "the test has a library to load");
}


static void *
test_library(void)
{
    void  *handle;

    handle = dlopen(test_so, RTLD_NOW);

    if (handle == NULL) {
        diag("%s", dlerror());
    }

    return handle;
}


/* loads an object while hooks are installed */

static void
test_loaded(void)
{
    void                 *handle, *p;
    prof_heap_t          *h;
    prof_heap_totals_t    before, after;

    void               *(*alloc)(size_t n);
    void                (*release)(void *p);

    h = test_hold();

    handle = test_library();

    *(void **) &alloc = dlsym(handle, "test_so_alloc");
    *(void **) &release = dlsym(handle, "test_so_free");

    prof_heap_totals(h, &before);
    p = alloc(12345);
    prof_heap_totals(h, &after);

    is_int(after.alloc_space - before.alloc_space, 12345,
           "an object that is loaded meanwhile has hooks");
    is_int(after.inuse_objects - before.inuse_objects, 1,
           "a block of this object is counted");

    release(p);
    prof_heap_totals(h, &after);

    is_int(after.inuse_space, before.inuse_space, "the object frees the block");

    /* addresses in data, and in constants */

    *(void **) &alloc = dlsym(handle, "test_so_call");
    release(alloc(100));
    *(void **) &alloc = dlsym(handle, "test_so_look");
    release(alloc(1000));

    prof_heap_totals(h, &before);

    is_int(before.alloc_space - after.alloc_space, 1100,
           "pointers to the function have hooks");

    test_release(h);
    test_count_imports();

    is_int(test_memory.hooked, 0, "the object has no hook after the capture");
    is_int(test_differences(), 0, "no other object has a hook");

    (void) dlclose(handle);
}


/* objects that are unloaded with their imports, or loaded elsewhere */

static void
test_unloaded(void)
{
    int           i;
    void         *handle;
    prof_heap_t  *h;

    for (i = 0; i < 3; i++) {
        handle = test_library();
        h = test_hold();

        (void) dlclose(handle);

        if (i == 1) {
            handle = test_library();
            (void) dlsym(handle, "test_so_alloc");
        }

        test_release(h);
        test_count_imports();

        is_int(test_memory.hooked, 0,
               "an object that was unloaded leaves no hook, %d", i);

        if (i == 1) {
            (void) dlclose(handle);
        }
    }

    is_int(test_differences(), 0,
           "the words of other objects are as they were");
}


/* a program may keep a pointer to a hook forever */

static void
test_copied(void)
{
    void          *p;
    prof_heap_t   *h;

    void        *(*alloc)(size_t n);
    void         (*release)(void *p);

    h = test_hold();

    *(void **) &alloc = prof_hooks_calls[PROF_HOOK_malloc];
    *(void **) &release = prof_hooks_calls[PROF_HOOK_free];

    test_release(h);

    p = alloc(100);
    ok(p != NULL, "a hook that was copied still allocates");
    release(p);
}


static void
test_owner(void)
{
    pthread_t     thread;
    prof_heap_t  *h, *other;

    other = NULL;
    h = test_hold();

    if (pthread_create(&thread, NULL, test_owner_thread, &other) == 0) {
        (void) pthread_join(thread, NULL);
    }

    ok(other == NULL, "heaps are made by one thread at a time");

    test_release(h);

    if (pthread_create(&thread, NULL, test_owner_thread, &other) == 0) {
        (void) pthread_join(thread, NULL);
    }

    ok(other != NULL, "another thread may make the next heap");
    is_int(test_differences(), 0, "the capture leaves all words as they were");
}


static void *
test_owner_thread(void *data)
{
    prof_heap_t **h = data;

    *h = test_hold();

    if (*h) {
        test_release(*h);
    }

    return NULL;
}
