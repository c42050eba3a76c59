
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The loaded ELF objects, as the dynamic loader tells them.  No file is read:
 * program headers, build-id and unwind sections are all in memory.
 *
 * The loader counts what it loads and unloads; while both counters stay the
 * same, so do the objects.
 *
 * Context: not in a signal.
 */


#ifndef _PROF_OBJECT_H_INCLUDED_
#define _PROF_OBJECT_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_eh.h"
#include "unwind/prof_unwind.h"

#include <limits.h>


typedef struct {
    prof_object_t    pub;       /* path belongs to the loader, or to the list */
    prof_eh_t        eh;
} prof_object_info_t;


typedef struct {
    prof_object_info_t  *objects;   /* owned; sorted by start */
    uint32_t             n;
    uint64_t             adds;
    uint64_t             subs;
    char                 exe[PATH_MAX];
} prof_object_list_t;


typedef void (*prof_object_pt)(void *data);


PROF_HIDDEN_BEGIN

/*
 * All objects that have code.  PROF_ERROR: memory is short.
 * The list is to be freed in either case.
 */
int prof_object_list(prof_object_list_t *list);
void prof_object_list_free(prof_object_list_t *list);

/*
 * Runs fn(data) while no thread can load or unload an object.  fn must not
 * allocate: another thread may hold the allocator's lock and wait for the
 * loader's.  PROF_ERROR: the counters have changed, fn was not called.
 */
int prof_object_locked(uint64_t adds, uint64_t subs, prof_object_pt fn,
    void *data);

/* whether the counters are other ones now */
int prof_object_changed(uint64_t adds, uint64_t subs);

PROF_HIDDEN_END


#endif /* _PROF_OBJECT_H_INCLUDED_ */
