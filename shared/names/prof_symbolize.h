
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
 * Gives every frame a name: the symbol that starts exactly at the frame's
 * unwind entry, else the object and the offset ("nginx+0x51970").  The nearest
 * lower symbol is never used.  A file is used only if its build-id is equal to
 * that of the loaded object.  This process reads the object's own .symtab and
 * .dynsym.  The helper, if configured, adds the contents of separate debug
 * files and debugging information, and makes C++ and Rust names readable.
 * Returns PROF_OK, or PROF_ERROR if memory is short.  Context: any thread;
 * slow (files); waits for other threads that name profiles.
 */
int prof_profile_symbolize(prof_profile_t *p);

/*
 * Looks up the functions of a symbolized profile again.  A profile from the
 * store may be older than the files that have its names.  A frame gets the new
 * name if its source is better than the source of its present name.  Frames in
 * objects without a build-id keep their names, since nothing identifies the
 * file of the object. debug_root: as for prof_symbolize(); NULL: the usual
 * directory.  With "again" also names that were looked up a moment ago are
 * looked up. *renamed is the number of frames with a new name or new lines.
 * Returns PROF_OK, or PROF_ERROR if memory is short; the profile is then
 * valid, and may have some of the new names.  Context: as for
 * prof_profile_symbolize().
 */
int prof_profile_rename(prof_profile_t *p, const char *debug_root, int again,
    uint32_t *renamed);

/*
 * Frees the cached names, and ends the helpers.  Names that other processes
 * share remain for them.  Context: no other thread names profiles.
 */
void prof_profile_forget(void);

/*
 * Shares the cached names with all processes that this process forks from now
 * on, by prof_names_share().  A process trusts the texts, but no number, that
 * the other processes wrote.
 */
int prof_profile_share(uint64_t key);

/*
 * Returns 1 once for all processes that share the names: the caller should name
 * the functions that all profiles have, while no client waits.
 */
int prof_profile_first(void);

/*
 * Threads wait for helpers at most for this time from now on, in ns, because
 * this process exits: threads for which clients wait, and others.
 */
void prof_profile_hurry(uint64_t clients, uint64_t others);

/*
 * Says that no client waits for the profiles that this thread names.  The
 * thread then has a helper of its own, of the lowest priority, and waits long.
 */
void prof_profile_background(void);

/*
 * Sets the program that is started as the helper; NULL: no helper.  The text
 * must live as long as profiles are named.
 */
void prof_profile_helper(const char *path);

/*
 * Returns the last error of the helper since the last call, as "the helper
 * ...", or NULL.  Context: any thread.
 */
const char *prof_profile_helper_error(void);

/* works as prof_profile_symbolize(), with another directory of debug files */
int prof_symbolize(prof_profile_t *p, const char *debug_root);

/*
 * Works as prof_symbolize(), but also looks up the cached names that lack
 * debugging information, however new they are.
 */
int prof_symbolize_again(prof_profile_t *p, const char *debug_root);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOLIZE_H_INCLUDED_ */
