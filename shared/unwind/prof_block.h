
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Builds the block of one object.
 *
 * Context: not in a signal.
 */


#ifndef _PROF_BLOCK_H_INCLUDED_
#define _PROF_BLOCK_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_object.h"
#include "unwind/prof_table.h"


PROF_HIDDEN_BEGIN

/*
 * The object must stay loaded until the function returns.  Nothing is
 * allocated from the heap.  NULL: no memory.
 */
const prof_block_t *prof_block_build(const prof_object_info_t *object);
void prof_block_free(const prof_block_t *block);

/* whether the block was built from this object, loaded at the same place */
int prof_block_of(const prof_block_t *block, const prof_object_info_t *object);

PROF_HIDDEN_END


#endif /* _PROF_BLOCK_H_INCLUDED_ */
