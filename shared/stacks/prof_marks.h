
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stacks leave a ring with marked addresses (see prof_unwind_mark()): whoever
 * names them later knows in which objects they were.
 *
 * A handler walks by the tables of its thread.  Objects may have been loaded
 * and unloaded since these were current, so the addresses are looked up in
 * them and in the ones that are current when the ring is emptied.
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
    uint32_t              plain;    /* nothing is to be marked */
} prof_marks_t;


PROF_HIDDEN_BEGIN

/*
 * For a ring whose handlers run in the calling thread.  *u, which they walk by,
 * is replaced by the current tables; the marks hold the old ones.
 */
void prof_marks_begin(prof_marks_t *m, const prof_unwind_t **u);
void prof_marks_end(prof_marks_t *m);

/* for other rings: the caller holds the tables; NULL and the last are left */
void prof_marks_add(prof_marks_t *m, const prof_unwind_t *u);

/*
 * Marks the addresses of a record.  If an address was in different objects, its
 * callers were found by the wrong rows, and the stack ends there.
 */
void prof_marks_stack(const prof_marks_t *m, prof_record_t *rec);

PROF_HIDDEN_END


#endif /* _PROF_MARKS_H_INCLUDED_ */
