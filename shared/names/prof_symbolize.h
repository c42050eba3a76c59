
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names of the frames of a profile.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SYMBOLIZE_H_INCLUDED_
#define _PROF_SYMBOLIZE_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


PROF_HIDDEN_BEGIN

/*
 * Gives every frame a name: that of the symbol which starts exactly at the
 * frame's unwind entry, else object and offset ("nginx+0x51970").  Never that
 * of the nearest lower symbol.  Files count only when the build-id is still the
 * same.  The object's own .symtab and .dynsym are read by this process; the
 * helper, if there is one, adds what separate debug files and debugging
 * information say, and makes C++ and Rust names readable.
 * Returns PROF_OK, or PROF_ERROR when memory is short.
 * Context: any thread; slow (files); waits for other threads that do the same.
 */
int prof_profile_symbolize(prof_profile_t *p);

/*
 * Looks up the functions of a symbolized profile again, as it may come from
 * the store and be older than the files that have names.  A frame gets the new
 * name if its source is better than that of its present name.  Frames in
 * objects without a build-id keep their names, as nothing proves which file
 * the object was.  debug_root: as for prof_symbolize(); NULL: the usual place.
 * *renamed is the number of frames with a new name or new lines.
 * Returns PROF_OK, or PROF_ERROR when memory is short; the profile is valid
 * then, and may have some of the new names.
 * Context: as for prof_profile_symbolize().
 */
int prof_profile_rename(prof_profile_t *p, const char *debug_root,
    uint32_t *renamed);

/*
 * Frees the names that are kept for later profiles of the same code, and ends
 * the helper.
 * Context: any thread; waits for threads that name a profile.
 */
void prof_profile_forget(void);

/*
 * The program that is started as the helper; NULL: no helper.  The text
 * must live as long as profiles are named.
 */
void prof_profile_helper(const char *path);

/*
 * What went wrong with the helper since the last call: "the helper ...", or
 * NULL.
 * Context: any thread.
 */
const char *prof_profile_helper_error(void);

/* prof_profile_symbolize() with another place for the debug files */
int prof_symbolize(prof_profile_t *p, const char *debug_root);

/*
 * The same, but names that the cache has without debugging information are
 * looked up, however new they are.
 */
int prof_symbolize_again(prof_profile_t *p, const char *debug_root);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOLIZE_H_INCLUDED_ */
