
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Memory of captures.  The memory is mapped, so pages that are never touched
 * take no memory.  Mapping, unmapping and the first access to a page take
 * microseconds each.  So a mapping of which little was used is kept for the
 * next capture.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SPARE_H_INCLUDED_
#define _PROF_SPARE_H_INCLUDED_


#include "base/prof_base.h"


/* the maximum number of kept mappings, and the used bytes of each */

#define PROF_SPARE_MAX   4
#define PROF_SPARE_USED  (128 * 1024)


PROF_HIDDEN_BEGIN

/*
 * Returns size bytes of undefined content, which the caller owns, or NULL with
 * errno set.
 */
void *prof_spare_map(size_t size);

/*
 * Sets a part of a mapping to zeros.  Pages of an earlier owner are given back,
 * so that only pages that are used later are touched.
 */
void prof_spare_zero(void *p, size_t size);

/* ends the ownership; used: about how many bytes may have been written */
void prof_spare_unmap(void *p, size_t size, size_t used);

/*
 * Works as prof_spare_unmap(), but only notes a mapping that is not kept.
 * Unmapping a megabyte takes a tenth of a millisecond.  prof_spare_trim()
 * unmaps all mappings that were noted.
 */
void prof_spare_leave(void *p, size_t size, size_t used);
int prof_spare_has_left(void);
void prof_spare_trim(void);

PROF_HIDDEN_END


#endif /* _PROF_SPARE_H_INCLUDED_ */
