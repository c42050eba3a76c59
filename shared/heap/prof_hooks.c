
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Writes hooks to imports and restores imports.  An original is the address of
 * an import and the word that the import had before the hook.  Originals are in
 * a hash by address, in a mapping of fixed size.  Only imports that contain a
 * hook, and whose objects are still loaded, are restored.  A word that other
 * code has written remains.
 *
 * The lock serializes threads that write imports.  It is taken before the
 * loader's lock, and no hook waits for it.
 *
 * Another thread may be in the middle of dlopen(): the loader lists an object
 * before it writes the object's imports.  Such imports are visited again later.
 */


#include "heap/prof_hooks.h"
#include "base/prof_clock.h"
#include "unwind/prof_object.h"
#include "heap/prof_page.h"
#include "heap/prof_import.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


#define PROF_HOOKS_MAX        8192

/*
 * ns until imports that could not be replaced are visited again.  Each further
 * delay is twice as long, up to the maximum.
 */
#define PROF_HOOKS_DELAY      1000000
#define PROF_HOOKS_DELAY_MAX  1000000000


#define prof_hooks_is_map(name)                                               \
    ((name) >= PROF_HOOK_mmap && (name) <= PROF_HOOK_munmap)


typedef struct {
    uintptr_t           *at;        /* NULL: free */
    uintptr_t            old;
} prof_original_t;


typedef struct {
    volatile uint32_t     lock;
    volatile uint32_t     armed;
    prof_original_t      *originals;
    uint32_t              noriginals;
    uintptr_t             page;     /* size of the page */
    uintptr_t             open;     /* the open page, or 0 */
    volatile uint32_t     later;    /* imports must be visited again */
    uint64_t              next;     /* wall clock of this visit */
    uint64_t              delay;
    uint64_t              adds;     /* the loader's counters */
    uint64_t              subs;
    prof_hooks_info_t     info;
} prof_hooks_t;


/* returns the new word for the word "old"; called after the write */

typedef struct {
    uintptr_t           (*word)(const prof_import_batch_t *batch,
                                const prof_import_t *import, uintptr_t old);
    void                (*written)(const prof_import_t *import, uintptr_t old);
} prof_hooks_patch_t;


static int prof_hooks_find_real(void);
static void prof_hooks_write(prof_hooks_patch_t *patch);
static int prof_hooks_lock(int wait);
static void prof_hooks_unlock(void);
static void prof_hooks_put_all(void);
static void prof_hooks_patch(void *data, const prof_import_batch_t *batch);
static int prof_hooks_open(const prof_import_t *import);
static void prof_hooks_close(void);
static uintptr_t prof_hooks_hook(const prof_import_batch_t *batch,
    const prof_import_t *import, uintptr_t word);
static void prof_hooks_hooked(const prof_import_t *import, uintptr_t old);
static uintptr_t prof_hooks_old(const prof_import_batch_t *batch,
    const prof_import_t *import, uintptr_t word);
static prof_original_t *prof_hooks_find(uintptr_t *at);


#define PROF_HOOKS_NAME(name)  #name,

static const char *const  prof_hooks_names[] = {
    PROF_HOOKS(PROF_HOOKS_NAME)
    NULL
};


void  *prof_hooks_real[PROF_HOOKS_N];

static prof_hooks_t  prof_hooks;

static prof_hooks_patch_t  prof_hooks_put = {
    prof_hooks_hook, prof_hooks_hooked
};

static prof_hooks_patch_t  prof_hooks_put_back = { prof_hooks_old, NULL };


int
prof_hooks_hold(const char **err)
{
    uint64_t  start;

    if (prof_hooks.info.users) {
        prof_hooks.info.users++;
        return PROF_OK;
    }

    start = prof_clock(CLOCK_MONOTONIC);

    *err = "malloc() is no function of a shared object";

    if (prof_hooks_find_real() != PROF_OK) {
        errno = ENOSYS;
        return PROF_ERROR;
    }

    *err = "cannot allocate memory";

    prof_hooks.originals = mmap(NULL,
                                PROF_HOOKS_MAX * sizeof(prof_original_t),
                                PROT_READ|PROT_WRITE,
                                MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1,
                                0);

    if (prof_hooks.originals == MAP_FAILED) {
        prof_hooks.originals = NULL;
        return PROF_ERROR;
    }

    prof_pin();

    memset(&prof_hooks.info, 0, sizeof(prof_hooks_info_t));

    prof_hooks.info.users = 1;
    prof_hooks.noriginals = 0;
    prof_hooks.page = sysconf(_SC_PAGESIZE);

    (void) prof_hooks_lock(1);

    prof_hooks.delay = PROF_HOOKS_DELAY;
    prof_hooks_put_all();

    prof_hooks.armed = 1;

    prof_hooks_unlock();

    prof_hooks.info.ns = prof_clock(CLOCK_MONOTONIC) - start;
    *err = NULL;

    return PROF_OK;
}


void
prof_hooks_release(void)
{
    if (--prof_hooks.info.users) {
        return;
    }

    (void) prof_hooks_lock(1);

    prof_hooks.armed = 0;

    prof_hooks_write(&prof_hooks_put_back);

    (void) munmap(prof_hooks.originals,
                  PROF_HOOKS_MAX * sizeof(prof_original_t));
    prof_hooks.originals = NULL;

    prof_hooks_unlock();
}


void
prof_hooks_refresh(void)
{
    int  err, changed;

    if (!prof_hooks.armed) {
        return;
    }

    changed = prof_object_changed(prof_hooks.adds, prof_hooks.subs);

    if (!changed && (!prof_hooks.later
                     || prof_clock(CLOCK_MONOTONIC) < prof_hooks.next))
    {
        return;
    }

    err = errno;

    /*
     * If another thread has the lock, that thread finds the new object, or the
     * next call of this function does.
     */

    if (prof_hooks_lock(0)) {

        if (changed) {
            prof_hooks.delay = PROF_HOOKS_DELAY;
        }

        if (prof_hooks.armed) {
            prof_hooks_put_all();
        }

        prof_hooks_unlock();
    }

    errno = err;
}


void
prof_hooks_info(prof_hooks_info_t *info)
{
    *info = prof_hooks.info;
}


/* called once: dlsym() waits while another thread is in dlopen() */

static int
prof_hooks_find_real(void)
{
    uint32_t  i;

    static int  found;

    if (found) {
        return PROF_OK;
    }

    for (i = 0; i < PROF_HOOKS_N; i++) {
        prof_hooks_real[i] = prof_import_function(prof_hooks_names[i]);
    }

    for (i = PROF_HOOK_malloc; i <= PROF_HOOK_free; i++) {
        if (prof_hooks_real[i] == NULL) {
            return PROF_ERROR;
        }
    }

    found = 1;

    return PROF_OK;
}


static void
prof_hooks_write(prof_hooks_patch_t *patch)
{
    prof_import_each(prof_hooks_names, prof_hooks_patch, patch,
                   &prof_hooks.adds, &prof_hooks.subs);
}


static void
prof_hooks_put_all(void)
{
    prof_hooks.later = 0;
    prof_hooks.info.left = 0;

    prof_hooks_write(&prof_hooks_put);

    prof_hooks.next = prof_clock(CLOCK_MONOTONIC) + prof_hooks.delay;

    if (prof_hooks.delay < PROF_HOOKS_DELAY_MAX) {
        prof_hooks.delay *= 2;
    }
}


static int
prof_hooks_lock(int wait)
{
    while (__atomic_exchange_n(&prof_hooks.lock, 1, __ATOMIC_ACQUIRE)) {

        if (!wait) {
            return 0;
        }

        (void) sched_yield();
    }

    return 1;
}


static void
prof_hooks_unlock(void)
{
    __atomic_store_n(&prof_hooks.lock, 0, __ATOMIC_RELEASE);
}


/*
 * Writes the words of one object.  Read-only pages are made writable once for
 * all imports on them, and read-only again afterwards.  Other threads may call
 * through an import at the same time: they find the old word or the new one.
 */

static void
prof_hooks_patch(void *data, const prof_import_batch_t *batch)
{
    prof_hooks_patch_t *patch = data;

    uint32_t              i;
    uintptr_t             old, new;
    const prof_import_t  *import;

    for (i = 0; i < batch->n; i++) {
        import = &batch->imports[i];
        old = __atomic_load_n(import->at, __ATOMIC_RELAXED);
        new = patch->word(batch, import, old);

        if (new == old || (import->relro && !prof_hooks_open(import))) {
            continue;
        }

        /* another thread may be binding the import */

        if (!__atomic_compare_exchange_n(import->at, &old, new, 0,
                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        {
            prof_hooks.later = 1;
            continue;
        }

        if (patch->written) {
            patch->written(import, old);
        }
    }

    prof_hooks_close();
}


/* makes the import's page writable, unless the loader is still writing to it */

static int
prof_hooks_open(const prof_import_t *import)
{
    int        rc;
    uintptr_t  page;

    page = (uintptr_t) import->at / prof_hooks.page * prof_hooks.page;

    if (prof_hooks.open == page) {
        return 1;
    }

    prof_hooks_close();

    rc = prof_page_open(page, prof_hooks.page);

    prof_hooks.later |= (rc == 0);
    prof_hooks.info.left += (rc == PROF_ERROR);

    if (rc != 1) {
        return 0;
    }

    prof_hooks.open = page;
    prof_hooks.info.protects += 2;

    return 1;
}


static void
prof_hooks_close(void)
{
    if (prof_hooks.open) {
        prof_page_close(prof_hooks.open, prof_hooks.page);
        prof_hooks.open = 0;
    }
}


/* returns the word that the import should have while hooks are armed */

static uintptr_t
prof_hooks_hook(const prof_import_batch_t *batch, const prof_import_t *import,
    uintptr_t word)
{
    int        inside;
    uintptr_t  hook, real, allocator;

    hook = (uintptr_t) prof_hooks_calls[import->name];
    real = (uintptr_t) prof_hooks_real[import->name];
    allocator = (uintptr_t) prof_hooks_real[PROF_HOOK_malloc];

    /* the allocator maps memory for its blocks; only blocks count */

    if (word == hook || real == 0
        || (prof_hooks_is_map(import->name) && batch->start <= allocator
            && allocator < batch->end))
    {
        return word;
    }

    /* an offset in the object: the loader has not written the import yet */

    inside = (word >= batch->start && word < batch->end);

    if (!inside && word < batch->end - batch->start) {
        prof_hooks.later = 1;
        return word;
    }

    /*
     * an import that is not bound yet leads to a stub, which will bind the
     * function
     */

    if ((word != real && !(inside && (import->own == 0 || import->own == real)))
        || prof_hooks_find(import->at) == NULL)
    {
        prof_hooks.info.left++;
        return word;
    }

    return hook;
}


static void
prof_hooks_hooked(const prof_import_t *import, uintptr_t old)
{
    prof_original_t  *original;

    original = prof_hooks_find(import->at);

    if (original->at == NULL) {
        original->at = import->at;
        prof_hooks.noriginals++;
    }

    original->old = old;
    prof_hooks.info.imports++;

    /* a thread in its first call may bind the import, and overwrite the hook */

    if (old != (uintptr_t) prof_hooks_real[import->name]) {
        prof_hooks.later = 1;
    }
}


/* returns the word that the import should have without hooks */

static uintptr_t
prof_hooks_old(const prof_import_batch_t *batch, const prof_import_t *import,
    uintptr_t word)
{
    prof_original_t  *original;

    if (word != (uintptr_t) prof_hooks_calls[import->name]) {
        return word;
    }

    original = prof_hooks_find(import->at);

    /*
     * An import may contain a hook that was not written to it: the program has
     * copied the hook from another import.  Without hooks the program would
     * have copied the allocator's function.
     */

    return (original && original->at)
           ? original->old : (uintptr_t) prof_hooks_real[import->name];
}


/* returns the import's original, or a free place, or NULL if none is free */

static prof_original_t *
prof_hooks_find(uintptr_t *at)
{
    uint32_t          i;
    prof_original_t  *original;

    for (i = (uintptr_t) at / sizeof(uintptr_t); /* void */ ; i++) {

        original = &prof_hooks.originals[i % PROF_HOOKS_MAX];

        if (original->at == at) {
            return original;
        }

        if (original->at == NULL) {
            break;
        }
    }

    return (prof_hooks.noriginals < PROF_HOOKS_MAX / 2) ? original : NULL;
}
