
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Addresses of stacks are marked when they leave a ring (see
 * prof_unwind_mark()).  The mark identifies the object of an address.
 *
 * A handler walks with the tables of its thread.  Objects may have been loaded
 * and unloaded since these tables were made.  So addresses are looked up in
 * these tables and in the tables that are current when the ring is emptied.
 *
 * Context: the thread that empties the ring; not in a signal.
 */


#ifndef _PROF_MARKS_H_INCLUDED_
#define _PROF_MARKS_H_INCLUDED_


#include "base/prof_base.h"
#include "stacks/prof_ring.h"
#include "unwind/prof_unwind.h"


#define PROF_MARKS_MAX  3


typedef struct {
    const prof_unwind_t  *unwind[PROF_MARKS_MAX];
    uint32_t              n;
    uint32_t              plain;    /* no address needs a mark */
} prof_marks_t;


PROF_HIDDEN_BEGIN

/*
 * For a ring whose handlers run in the calling thread and walk with *u.  *u is
 * replaced by the current tables.  The marks hold the old tables.
 */
void prof_marks_begin(prof_marks_t *m, const prof_unwind_t **u);
void prof_marks_end(prof_marks_t *m);

/*
 * For rings of handlers in other threads: adds the tables of such a handler,
 * which the caller holds.  NULL is ignored.
 */
void prof_marks_add(prof_marks_t *m, const prof_unwind_t *u);

/*
 * Marks the addresses of a sample.  If the tables have different objects at an
 * address, its callers may be wrong, and the stack ends there.
 */
void prof_marks_stack(const prof_marks_t *m, prof_sample_t *sample);

PROF_HIDDEN_END


#endif /* _PROF_MARKS_H_INCLUDED_ */
