
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Memory of interpreters that may be gone.  A walk remembers the pages that it
 * has found readable.
 *
 * Context: signal handler.
 */


#ifndef _PROF_MEMORY_H_INCLUDED_
#define _PROF_MEMORY_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_walk.h"


PROF_HIDDEN_BEGIN

/* prepares a walk for prof_memory_readable(), before its first chain */
void prof_memory_prepare(prof_walk_t *w);

/*
 * Returns whether the memory from addr to addr + size can be read.  Asks the
 * kernel once for each page of a walk, up to the walk's limit of questions.
 * Objects of an interpreter belong to the interrupted thread, so no page goes
 * away during the walk.
 */
int prof_memory_readable(prof_walk_t *w, uintptr_t addr, size_t size);

PROF_HIDDEN_END


#endif /* _PROF_MEMORY_H_INCLUDED_ */
