
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A snapshot in construction.
 *
 * Context: not in a signal.
 */


#ifndef _PROF_SNAPSHOT_H_INCLUDED_
#define _PROF_SNAPSHOT_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_object.h"
#include "unwind/prof_table.h"


typedef struct {
    const prof_block_t   *block;
    const prof_range_t   *from;         /* in the old snapshot, or NULL */
    prof_shared_t        *shared;
    uint32_t              place;        /* the place in the loader's list */
    int                   same;         /* the object was never unloaded */
} prof_found_t;


typedef struct {
    prof_object_list_t    list;
    const prof_unwind_t  *old;          /* the old snapshot, or NULL */
    prof_found_t         *found;
    uint32_t              n;
    uint32_t              size;
    int                   remember;
    uint32_t              unseen;       /* loads since the old snapshot
                                           whose objects are not found now */
} prof_snapshot_t;


PROF_HIDDEN_BEGIN

/* for a snapshot that remembers: sets "same" of all objects, and "unseen" */
void prof_snapshot_account(prof_snapshot_t *s);

/* returns the number of consecutive earlier snapshots with the object */
uint32_t prof_snapshot_age(const prof_snapshot_t *s,
    const prof_found_t *found);

PROF_HIDDEN_END


#endif /* _PROF_SNAPSHOT_H_INCLUDED_ */
