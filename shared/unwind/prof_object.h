
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The loaded ELF objects, as the dynamic loader lists them.  No file is read:
 * program headers, build-id and unwind sections are in memory.
 *
 * The loader counts loads and unloads.  As long as both counters stay the
 * same, the objects are the same.
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
    prof_object_t    pub;       /* the loader, or the list, owns path */
    prof_eh_t        eh;
    uint64_t         print;     /* without a build-id: hash of .eh_frame_hdr */
} prof_object_info_t;


/* return PROF_OK to continue with the next object */

typedef int (*prof_object_pt)(void *data, const prof_object_info_t *object);


typedef struct {
    uint64_t         adds;
    uint64_t         subs;
    uint32_t         n;         /* objects, with or without code */
    char             exe[PATH_MAX];
} prof_object_list_t;


PROF_HIDDEN_BEGIN

/*
 * Calls fn for each object that has code, in the order in which they were
 * loaded. list->n is the object's place.  No thread can load or unload an
 * object during the call.  Data that fn does not copy may be unmapped when
 * this function returns. fn must not allocate from the heap: another thread
 * may hold the allocator's lock and wait for the loader's lock.  Returns
 * PROF_OK, or another result of fn.
 */
int prof_object_list(prof_object_list_t *list, prof_object_pt fn, void *data);

/* returns the number of all objects */
uint32_t prof_object_count(void);

/* returns whether the counters have changed */
int prof_object_changed(uint64_t adds, uint64_t subs);

PROF_HIDDEN_END


#endif /* _PROF_OBJECT_H_INCLUDED_ */
