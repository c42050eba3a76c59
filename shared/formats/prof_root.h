
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The part of a profile below one box of a flamegraph.
 *
 * A hash identifies the box: FNV-1a with 32 bits, over the names from the
 * outermost function to the box, each as the text of its title in the markup
 * and followed by ";".  prof_flame.js computes the same hash, and stores it in
 * the fragment of the URL as "zoom".
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ROOT_H_INCLUDED_
#define _PROF_ROOT_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


PROF_HIDDEN_BEGIN

/*
 * Reads a hash, up to 8 hexadecimal digits.  Returns PROF_OK, or PROF_ERROR if
 * the text is anything else.
 */
int prof_root_parse(const char *text, size_t len, uint32_t *hash);

/*
 * Removes all entries whose stacks do not pass through the box, and adds the
 * fact "root" with the name of the box.  The times and counters of the profile
 * remain those of the capture.  The profile is symbolized, and becomes
 * "aggregated".  Boxes with the same callers and the same name count as one.
 *
 * Returns PROF_OK; PROF_LIMIT if the profile has no such box, and is not
 * changed; or PROF_ERROR if memory is short.
 */
int prof_root_keep(prof_profile_t *p, uint32_t hash);

PROF_HIDDEN_END


#endif /* _PROF_ROOT_H_INCLUDED_ */
