
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Hooks of the allocator.  While hooks are armed, they are called instead of
 * the functions that allocate and free memory.  A hook calls the real function
 * and prof_heap.c.  The addresses of hooks are written to the imports of all
 * loaded objects (heap/prof_import.h), including the C library.
 *
 * An import is replaced if it contains the function that the process uses, or
 * is not bound yet.  An import that leads to an object's own allocator is not
 * replaced.  Such an object allocates and frees its memory through its own
 * imports, so its memory is not counted.
 *
 * A program may copy the address of a hook.  So hooks remain valid until the
 * process ends, and only call the real function while no capture runs.
 *
 * Objects that are loaded while hooks are armed get hooks when a symbol is
 * looked up next (dlsym), and at the start of a turn.
 */


#ifndef _PROF_HOOKS_H_INCLUDED_
#define _PROF_HOOKS_H_INCLUDED_


#include "base/prof_base.h"


/* one line for each function, and the hook of each in prof_hooks_calls.c */

#define PROF_HOOKS(x)                                                         \
    x(malloc)                                                                 \
    x(calloc)                                                                 \
    x(realloc)                                                                \
    x(free)                                                                   \
    x(posix_memalign)                                                         \
    x(aligned_alloc)                                                          \
    x(memalign)                                                               \
    x(mmap)                                                                   \
    x(mmap64)                                                                 \
    x(mremap)                                                                 \
    x(munmap)                                                                 \
    x(dlsym)                                                                  \
    x(dlvsym)


typedef enum {
#define PROF_HOOKS_INDEX(name)  PROF_HOOK_##name,
    PROF_HOOKS(PROF_HOOKS_INDEX)
#undef PROF_HOOKS_INDEX
    PROF_HOOKS_N
} prof_hook_e;


typedef struct {
    uint32_t    users;
    uint32_t    imports;    /* imports that contain a hook */
    uint32_t    left;       /* imports that lead elsewhere, or did not fit */
    uint32_t    protects;   /* calls of mprotect() to open and close pages */
    uint64_t    ns;         /* duration of arming */
} prof_hooks_info_t;


PROF_HIDDEN_BEGIN

/* the real functions, in the order of prof_hook_e; NULL: missing */
extern void *prof_hooks_real[PROF_HOOKS_N];

/* the hooks, in the same order */
extern void *const  prof_hooks_calls[PROF_HOOKS_N];

/*
 * Arms the hooks, or counts a further user of armed hooks.  Returns PROF_OK,
 * or PROF_ERROR with *err set to a static text and errno.  Context: not in a
 * signal.  Other threads may allocate during the call.
 */
int prof_hooks_hold(const char **err);

/*
 * Removes a user of the hooks; the last one restores all imports.  Context: as
 * for prof_hooks_hold().
 */
void prof_hooks_release(void);

/*
 * Gives hooks to objects that were loaded since the last call.  Without such
 * objects the call takes well under a microsecond.  Context: any thread, not
 * in a signal.
 */
void prof_hooks_refresh(void);

void prof_hooks_info(prof_hooks_info_t *info);

PROF_HIDDEN_END


#endif /* _PROF_HOOKS_H_INCLUDED_ */
