
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Answers questions about a snapshot.  It is built in prof_build.c, and read
 * by the walk in prof_walk_sig.c.
 *
 * Context: not in a signal.
 */


#include "unwind/prof_object.h"
#include "unwind/prof_table.h"

#include <sys/mman.h>


void
prof_unwind_destroy(prof_unwind_t *u)
{
    if (u) {
        (void) munmap(u, u->info.bytes);
    }
}


int
prof_unwind_stale(const prof_unwind_t *u)
{
    return prof_object_changed(u->adds, u->subs);
}


void
prof_unwind_info(const prof_unwind_t *u, prof_unwind_info_t *info)
{
    *info = u->info;
}


const prof_object_t *
prof_unwind_objects(const prof_unwind_t *u, uint32_t *n)
{
    *n = u->info.objects;

    return u->objects;
}


const prof_object_t *
prof_unwind_object(const prof_unwind_t *u, uintptr_t pc)
{
    uint32_t  i;

    i = prof_table_object(u, pc);

    return (i == PROF_TABLE_NONE) ? NULL : &u->objects[i];
}


uintptr_t
prof_unwind_function(const prof_unwind_t *u, uintptr_t pc, size_t *len)
{
    uint32_t    i;
    prof_fde_t  fde;

    i = prof_table_object(u, pc);

    if (i == PROF_TABLE_NONE || prof_eh_find(&u->eh[i], pc, &fde) != PROF_OK) {
        *len = 0;
        return 0;
    }

    *len = fde.end - fde.start;

    return fde.start;
}
