
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Addresses whose names come later: the helper did not answer a client in time,
 * or may know more than before.  A thread for which no client waits looks them
 * up, and the cache has their names for the next profile.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_LATER_H_INCLUDED_
#define _PROF_LATER_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


PROF_HIDDEN_BEGIN

/* copies these frames of a profile; omits them if too many frames wait */
void prof_later_add(const prof_profile_t *p, const uint32_t *frames,
    uint32_t n, const char *debug_root);

/* returns whether frames wait */
int prof_profile_later(void);

/*
 * Looks up the names of all frames that wait.  Context: a thread that called
 * prof_profile_background().
 */
void prof_profile_look_later(void);

/* forgets all frames that wait */
void prof_later_forget(void);

PROF_HIDDEN_END


#endif /* _PROF_LATER_H_INCLUDED_ */
