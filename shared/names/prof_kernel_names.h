
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names of the kernel's functions in a profile.  An address of the kernel tells
 * where it is loaded, which helps attackers, so a profile contains names only.
 *
 * Context: one thread at a time; not in a signal.
 */


#ifndef _PROF_KERNEL_NAMES_H_INCLUDED_
#define _PROF_KERNEL_NAMES_H_INCLUDED_


#include "profile/prof_profile.h"


PROF_HIDDEN_BEGIN

/*
 * Names the frames of the kernel's functions and removes their addresses; sets
 * *n to their number.  Functions on the way from the entry of a system call to
 * the function of this call get the name "".  If the kernel's list of
 * functions is not known, all frames of the kernel get the name "".  Returns
 * PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_kernel_name_frames(prof_profile_t *p, uint32_t *n);

/*
 * Makes one frame of all frames of the kernel with the same name, and leaves
 * out frames with the name "".  Returns PROF_OK, or PROF_ERROR if memory is
 * short.
 */
int prof_kernel_join(prof_profile_t *p);

/* frees the names that are kept for the next profile */
void prof_kernel_forget(void);

PROF_HIDDEN_END


#endif /* _PROF_KERNEL_NAMES_H_INCLUDED_ */
