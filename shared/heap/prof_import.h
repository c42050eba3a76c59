
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Imports: the words through which loaded objects call functions of other
 * objects, and pointers to functions in their data.  The dynamic loader writes
 * them.  The objects' relocations, which describe them, remain in memory.
 *
 * Many objects have most of their imports on pages that the loader has made
 * read-only (RELRO).
 *
 * Context: not in a signal.
 */


#ifndef _PROF_IMPORT_H_INCLUDED_
#define _PROF_IMPORT_H_INCLUDED_


#include "base/prof_base.h"


/* maximum number of imports in a batch; an object may have several batches */

#define PROF_IMPORT_BATCH  128


typedef struct {
    uintptr_t   *at;
    uintptr_t    own;       /* the object's own function, or 0 */
    uint32_t     name;      /* index of the function's name */
    uint32_t     relro;     /* on a page that is read-only */
} prof_import_t;


/* imports of one object, in the order of their addresses */

typedef struct {
    prof_import_t   imports[PROF_IMPORT_BATCH];
    uint32_t        n;
    uintptr_t       start;  /* code of the object; an import that is not */
    uintptr_t       end;    /* bound yet points into it */
} prof_import_batch_t;


typedef void (*prof_import_pt)(void *data, const prof_import_batch_t *batch);


PROF_HIDDEN_BEGIN

/*
 * Calls fn for all imports of the functions with these names (NULL ends the
 * list) in all loaded objects.  No thread can load or unload an object during
 * the call. fn must not allocate: another thread may hold the allocator's lock
 * and wait for the loader's lock.  Returns the loader's counters in *adds and
 * *subs.
 */
void prof_import_each(const char *const *names, prof_import_pt fn, void *data,
    uint64_t *adds, uint64_t *subs);

/*
 * Returns the function of this name that the process uses, or NULL.  The
 * result is never a stub that calls the function through an import.
 */
void *prof_import_function(const char *name);

PROF_HIDDEN_END


#endif /* _PROF_IMPORT_H_INCLUDED_ */
