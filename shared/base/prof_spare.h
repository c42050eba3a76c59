
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Memory of captures.  It is mapped, so that pages which are never touched
 * take no memory.  Mapping, unmapping and the first access to a page take
 * microseconds each, so a mapping of which little was used is kept for the
 * next capture.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SPARE_H_INCLUDED_
#define _PROF_SPARE_H_INCLUDED_


#include "base/prof_base.h"


/* mappings that are kept at most, and the bytes used of each */

#define PROF_SPARE_MAX   4
#define PROF_SPARE_USED  (128 * 1024)


PROF_HIDDEN_BEGIN

/* size bytes of any content, or NULL with errno set; the caller owns them */
void *prof_spare_map(size_t size);

/* ends the ownership; used: bytes that may have been written, about */
void prof_spare_unmap(void *p, size_t size, size_t used);

PROF_HIDDEN_END


#endif /* _PROF_SPARE_H_INCLUDED_ */
