
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * One profile of many: of workers, threads, processes, or of one request
 * after the other.
 *
 * Objects are the same if they have the same build-id, or none and the same
 * path and addresses; frames if they have the same address in the same object,
 * or the same name where they have none; and the stacks of all become one
 * tree.  Weights, counters and times are summed: no nanosecond and no byte is
 * lost.  The sum of peaks is the most that can have been at one time.
 *
 * Facts that all have in common remain.  The mode is that of the first one,
 * the start the earliest, the frequency asked the highest, that at the end the
 * lowest.  The scope is left to the caller.
 *
 * What is added is copied, and can be destroyed.  Profiles may be symbolized
 * or not, before or after.
 *
 * Context: any thread, one at a time; not in a signal.
 */


#ifndef _PROF_MERGE_H_INCLUDED_
#define _PROF_MERGE_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


/*
 * Entries remain in their order, those of one profile after those of the one
 * before; otherwise those of one stack, kind and set of labels are summed.
 */

#define PROF_MERGE_TIMELINES  1

/*
 * Functions with names of their own are the same if the names are, in objects
 * of the same path, and remain without addresses: for profiles of different
 * builds of a program.  All of them must be symbolized.
 */

#define PROF_MERGE_NAMES      2

/*
 * Nodes of the tree, at most: a deeper stack then ends early, which the
 * counter "lost_tree" tells
 */

#define PROF_MERGE_NODES      (2 * 1024 * 1024)


typedef struct prof_merge_s  prof_merge_t;


/* a label for all that is in a profile: "worker", "1234" */

typedef struct {
    const char  *name;
    const char  *value;
    const char  *unit;          /* NULL: a text */
} prof_merge_label_t;


PROF_HIDDEN_BEGIN

/* NULL when memory is short; the title is copied */
prof_merge_t *prof_merge_create(const char *title, uint32_t flags);
void prof_merge_destroy(prof_merge_t *m);

/*
 * Adds a profile, whose entries and allocations get n labels more, in place of
 * those that they have of the same names.  Returns PROF_OK, or PROF_ERROR when
 * memory is short: then nothing is left to do but to destroy it.
 */
int prof_merge_add(prof_merge_t *m, const prof_profile_t *p,
    const prof_merge_label_t *labels, uint32_t n);

/* destroys m, and gives the profile, which the caller owns; never NULL */
prof_profile_t *prof_merge_finish(prof_merge_t *m);

/*
 * All at once: labels[i] is added to profile i; labels may be NULL.  Returns
 * NULL when memory is short.
 */
prof_profile_t *prof_profile_merge(const prof_profile_t *const *profiles,
    const prof_merge_label_t *labels, uint32_t n, const char *title,
    uint32_t flags);

PROF_HIDDEN_END


#endif /* _PROF_MERGE_H_INCLUDED_ */
