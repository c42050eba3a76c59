
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Source files and lines of addresses, and the functions that were inlined
 * there, from the debugging information (DWARF) of ELF files.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_LINES_H_INCLUDED_
#define _PROF_LINES_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


/* time for all objects of a profile, ns: what is not found then is left out */

#define PROF_LINES_TIME  2000000000


PROF_HIDDEN_BEGIN

/*
 * Describes the n frames, which are of one object and sorted by address:
 * their files, lines, inlines, and their names if they have no exact ones.
 * The information is in the object's file, or in its separate debug file
 * below debug_root, which must be those of the object.  Ends when the clock
 * (CLOCK_MONOTONIC, ns) is past the deadline.
 * Returns PROF_OK, also when there is no information, or PROF_ERROR when
 * memory is short.
 */
int prof_lines(prof_profile_t *p, const uint32_t *frames, uint32_t n,
    const char *debug_root, uint64_t deadline);

/* CLOCK_MONOTONIC, ns */
uint64_t prof_lines_now(void);

PROF_HIDDEN_END


#endif /* _PROF_LINES_H_INCLUDED_ */
