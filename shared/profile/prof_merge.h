
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Makes one profile of several profiles: of workers, threads, processes, or
 * of successive requests.
 *
 * Two objects are the same if they have the same build-id, or if both have no
 * build-id and the same path and addresses.  Two frames in objects are the
 * same if object, type and address are the same.  Two frames without an object
 * are the same if type, name, file and line are the same.  The stacks of all
 * profiles become one tree.  Values, counters and times are summed: no
 * nanosecond and no byte is lost.  The sum of peaks is an upper bound of the
 * common peak.
 *
 * The result has the facts that all profiles have in common, the mode of the
 * first profile, the earliest start, the highest requested frequency and the
 * lowest frequency at the end.  The caller sets the scope.
 *
 * Profiles are copied, so the caller may destroy them.  Profiles may be
 * symbolized before they are merged, or the result afterwards.
 *
 * Context: any thread, one at a time; not in a signal.
 */


#ifndef _PROF_MERGE_H_INCLUDED_
#define _PROF_MERGE_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


/*
 * Entries keep their order, profile after profile.  Without this flag the
 * entries of one stack, type and set of labels are summed.
 */

#define PROF_MERGE_TIMELINES  1

/*
 * For profiles of different builds of a program: two functions with exact
 * names are the same if the names and the paths of their objects are the same.
 * Such frames have no address in the result.  All profiles must be symbolized.
 */

#define PROF_MERGE_NAMES      2

/*
 * The largest number of nodes.  Stacks that need more are cut, and counted by
 * "lost_tree".
 */

#define PROF_MERGE_NODES      (2 * 1024 * 1024)


/* the frame of a thread that ran too briefly for a sample */
#define PROF_NOT_SAMPLED      "[not sampled]"


typedef struct prof_merge_s  prof_merge_t;


/* a label for all entries of a profile: "worker", "1234" */

typedef struct {
    const char  *name;
    const char  *value;
    const char  *unit;          /* NULL: a text */
} prof_merge_label_t;


PROF_HIDDEN_BEGIN

/* begins a merge; the title is copied.  Returns NULL if memory is short */
prof_merge_t *prof_merge_create(const char *title, uint32_t flags);
void prof_merge_destroy(prof_merge_t *m);

/*
 * Adds a profile.  All its entries get the n labels, which replace labels of
 * the same names.  Returns PROF_OK, or PROF_ERROR when memory is short: then
 * the caller destroys m.
 */
int prof_merge_add(prof_merge_t *m, const prof_profile_t *p,
    const prof_merge_label_t *labels, uint32_t n);

/* destroys m and returns the profile, which the caller owns; never NULL */
prof_profile_t *prof_merge_finish(prof_merge_t *m);

/*
 * Merges n profiles.  All entries of profiles[i] get labels[i]; labels may be
 * NULL.  Returns NULL when memory is short.
 */
prof_profile_t *prof_profile_merge(const prof_profile_t *const *profiles,
    const prof_merge_label_t *labels, uint32_t n, const char *title,
    uint32_t flags);

/*
 * Divides the time of "[not sampled]" among the samples that the same threads
 * of the same workers have in the profile, and counts it as "spread_ns".  A
 * thread without any sample keeps the frame.  The profile is a merge of slices.
 * Returns PROF_ERROR when memory is short; then nothing was changed.
 */
int prof_profile_spread(prof_profile_t *p);

PROF_HIDDEN_END


#endif /* _PROF_MERGE_H_INCLUDED_ */
