
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The hooks.  Each hook behaves as the function that it replaces, for all
 * arguments.
 *
 * Context: any thread, at any time, also in signal handlers of programs that
 * allocate there.
 */


#include "heap/prof_heap_state.h"
#include "heap/prof_hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>


typedef void *(*prof_hook_malloc_pt)(size_t size);
typedef void *(*prof_hook_calloc_pt)(size_t n, size_t size);
typedef void *(*prof_hook_realloc_pt)(void *p, size_t size);
typedef void (*prof_hook_free_pt)(void *p);
typedef int (*prof_hook_posix_memalign_pt)(void **p, size_t align,
    size_t size);
typedef void *(*prof_hook_memalign_pt)(size_t align, size_t size);
typedef void *(*prof_hook_mmap_pt)(void *p, size_t len, int prot, int flags,
    int fd, off_t offset);
typedef void *(*prof_hook_mremap_pt)(void *p, size_t old, size_t len,
    int flags, void *to);
typedef int (*prof_hook_munmap_pt)(void *p, size_t len);


#define prof_hook_real(name, type)  ((type) prof_hooks_real[PROF_HOOK_##name])


static int prof_hook_enter(void);
static void prof_hook_leave(int entered);
static void *prof_hook_malloc(size_t size);
static void *prof_hook_calloc(size_t n, size_t size);
static void *prof_hook_realloc(void *p, size_t size);
static void prof_hook_free(void *p);
static int prof_hook_posix_memalign(void **p, size_t align, size_t size);
static void *prof_hook_aligned_alloc(size_t align, size_t size);
static void *prof_hook_memalign(size_t align, size_t size);
static void *prof_hook_mmap(void *p, size_t len, int prot, int flags, int fd,
    off_t offset);
static void *prof_hook_mmap64(void *p, size_t len, int prot, int flags, int fd,
    off_t offset);
static void *prof_hook_mremap(void *p, size_t old, size_t len, int flags,
    void *to);
static int prof_hook_munmap(void *p, size_t len);
static void prof_hook_mapped(void *p, size_t len, int prot, int flags);


/*
 * These hooks are in assembler (prof_hooks_dlsym.S) and jump to the real
 * functions, because dlsym() looks at its caller.
 */

PROF_HIDDEN_BEGIN

void *prof_hook_dlsym(void *handle, const char *name);
void *prof_hook_dlvsym(void *handle, const char *name, const char *version);

PROF_HIDDEN_END


/* prof_hooks_dlsym.S contains the numbers of both functions */

_Static_assert(PROF_HOOK_dlsym == 11 && PROF_HOOK_dlvsym == 12,
               "prof_hooks_dlsym.S has other numbers");


#define PROF_HOOKS_CALL(name)  (void *) prof_hook_##name,

void *const  prof_hooks_calls[] = {
    PROF_HOOKS(PROF_HOOKS_CALL)
};


/*
 * Functions of some C libraries, for example of musl, call malloc() by an
 * import, which is hooked as well.  Such a call is not counted a second time.
 * Returns whether to call prof_hook_leave().
 */

PROF_GLUE static int
prof_hook_enter(void)
{
    if (prof_heap_state.n == 0) {
        return 0;
    }

    prof_heap_mute();

    return 1;
}


PROF_GLUE static void
prof_hook_leave(int entered)
{
    if (entered) {
        prof_heap_unmute();
    }
}


PROF_GLUE static void *
prof_hook_malloc(size_t size)
{
    void  *p;

    p = prof_hook_real(malloc, prof_hook_malloc_pt)(size);

    if (prof_heap_wants(size) && p) {
        prof_heap_allocated(p, size, PROF_HEAP_BLOCK);
    }

    return p;
}


PROF_GLUE static void *
prof_hook_calloc(size_t n, size_t size)
{
    int    entered;
    void  *p;

    entered = prof_hook_enter();
    p = prof_hook_real(calloc, prof_hook_calloc_pt)(n, size);
    prof_hook_leave(entered);

    if (p && prof_heap_wants(n * size)) {
        prof_heap_allocated(p, n * size, PROF_HEAP_BLOCK);
    }

    return p;
}


PROF_GLUE static void *
prof_hook_realloc(void *p, size_t size)
{
    void  *new;

    if (p && prof_heap_state.n) {
        prof_heap_moving(p);
    }

    new = prof_hook_real(realloc, prof_hook_realloc_pt)(p, size);

    if (p && prof_heap_state.n) {
        prof_heap_moved(p, new || size == 0);
    }

    if (new && prof_heap_wants(size)) {
        prof_heap_allocated(new, size, PROF_HEAP_BLOCK);
    }

    return new;
}


PROF_GLUE static void
prof_hook_free(void *p)
{
    if (p && prof_heap_state.n) {
        prof_heap_freed(p);
    }

    prof_hook_real(free, prof_hook_free_pt)(p);
}


PROF_GLUE static int
prof_hook_posix_memalign(void **p, size_t align, size_t size)
{
    int  rc, entered;

    entered = prof_hook_enter();
    rc = prof_hook_real(posix_memalign, prof_hook_posix_memalign_pt)(p, align,
                                                                     size);
    prof_hook_leave(entered);

    if (rc == 0 && *p && prof_heap_wants(size)) {
        prof_heap_allocated(*p, size, PROF_HEAP_BLOCK);
    }

    return rc;
}


PROF_GLUE static void *
prof_hook_aligned_alloc(size_t align, size_t size)
{
    int    entered;
    void  *p;

    entered = prof_hook_enter();
    p = prof_hook_real(aligned_alloc, prof_hook_memalign_pt)(align, size);
    prof_hook_leave(entered);

    if (p && prof_heap_wants(size)) {
        prof_heap_allocated(p, size, PROF_HEAP_BLOCK);
    }

    return p;
}


PROF_GLUE static void *
prof_hook_memalign(size_t align, size_t size)
{
    int    entered;
    void  *p;

    entered = prof_hook_enter();
    p = prof_hook_real(memalign, prof_hook_memalign_pt)(align, size);
    prof_hook_leave(entered);

    if (p && prof_heap_wants(size)) {
        prof_heap_allocated(p, size, PROF_HEAP_BLOCK);
    }

    return p;
}


PROF_GLUE static void *
prof_hook_mmap(void *p, size_t len, int prot, int flags, int fd, off_t offset)
{
    void  *map;

    map = prof_hook_real(mmap, prof_hook_mmap_pt)(p, len, prot, flags, fd,
                                                  offset);

    if (map != MAP_FAILED) {
        prof_hook_mapped(map, len, prot, flags);
    }

    return map;
}


PROF_GLUE static void *
prof_hook_mmap64(void *p, size_t len, int prot, int flags, int fd,
    off_t offset)
{
    void  *map;

    map = prof_hook_real(mmap64, prof_hook_mmap_pt)(p, len, prot, flags, fd,
                                                    offset);

    if (map != MAP_FAILED) {
        prof_hook_mapped(map, len, prot, flags);
    }

    return map;
}


/* counts a new mapping, unless it is reserved memory or memory of a file */

PROF_GLUE static void
prof_hook_mapped(void *p, size_t len, int prot, int flags)
{
    if ((flags & MAP_ANONYMOUS) && !(flags & MAP_FIXED) && prot != PROT_NONE
        && prof_heap_wants(len))
    {
        prof_heap_allocated(p, len, PROF_HEAP_MAP);
    }
}


/* passes "to" on, whose value is undefined without MREMAP_FIXED */

PROF_GLUE static void *
prof_hook_mremap(void *p, size_t old, size_t len, int flags, void *to)
{
    void  *map;

    map = prof_hook_real(mremap, prof_hook_mremap_pt)(p, old, len, flags, to);

    if (map == MAP_FAILED || prof_heap_state.n == 0) {
        return map;
    }

    if (prof_heap_unmapped(p, old ? old : len) && prof_heap_wants(len)) {
        prof_heap_allocated(map, len, PROF_HEAP_MAP);
    }

    return map;
}


PROF_GLUE static int
prof_hook_munmap(void *p, size_t len)
{
    if (prof_heap_state.n) {
        (void) prof_heap_unmapped(p, len);
    }

    return prof_hook_real(munmap, prof_hook_munmap_pt)(p, len);
}
