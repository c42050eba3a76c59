
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Slots: the words through which loaded objects call functions of others, and
 * pointers to functions in their data.  The dynamic loader fills them in; what
 * it was told to, the objects' relocations, is still there to be read.
 *
 * Many objects have most of their slots on pages that the loader has made
 * read-only (RELRO).
 *
 * Context: not in a signal.
 */


#ifndef _PROF_SLOT_H_INCLUDED_
#define _PROF_SLOT_H_INCLUDED_


#include "base/prof_base.h"


/* slots that are handed over at once; more of one object come in portions */

#define PROF_SLOT_BATCH  128


typedef struct {
    uintptr_t   *at;
    uintptr_t    own;       /* the object's function of that name, or 0 */
    uint32_t     name;      /* index of the function's name */
    uint32_t     relro;     /* on a page that is read-only */
} prof_slot_t;


/* slots of one object, in the order of their addresses */

typedef struct {
    prof_slot_t   slots[PROF_SLOT_BATCH];
    uint32_t      n;
    uintptr_t     start;    /* of the object, and its end: a slot that is not */
    uintptr_t     end;      /* bound yet leads back into it */
} prof_slot_batch_t;


typedef void (*prof_slot_pt)(void *data, const prof_slot_batch_t *batch);


PROF_HIDDEN_BEGIN

/*
 * Calls fn for all slots of the functions with these names (the list ends with
 * NULL) in all loaded objects, while no thread can load or unload one.
 * fn must not allocate: another thread may hold the allocator's lock and wait
 * for the loader's.
 * adds and subs receive the loader's counters.
 */
void prof_slot_each(const char *const *names, prof_slot_pt fn, void *data,
    uint64_t *adds, uint64_t *subs);

/*
 * The function of that name which the process uses, or NULL.  Never a stub that
 * calls it through a slot.
 */
void *prof_slot_function(const char *name);

PROF_HIDDEN_END


#endif /* _PROF_SLOT_H_INCLUDED_ */
