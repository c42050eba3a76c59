
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
 * Builds the block of an object, which must stay loaded until the function
 * returns.  Does not allocate from the heap.  Returns NULL if memory is short.
 */
const prof_block_t *prof_block_build(const prof_object_info_t *object);
void prof_block_free(const prof_block_t *block);

/* returns whether the block was built from this object at the same address */
int prof_block_of(const prof_block_t *block, const prof_object_info_t *object);

PROF_HIDDEN_END


#endif /* _PROF_BLOCK_H_INCLUDED_ */
