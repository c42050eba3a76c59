
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Compares two profiles: which functions use more than before, which use less,
 * which are new, and which are gone.
 *
 * Functions are matched as prof_merge.h matches them with PROF_MERGE_NAMES: by
 * name in objects of the same path, or else by address.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_DIFF_H_INCLUDED_
#define _PROF_DIFF_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


/* compare shares of the whole, for profiles of different lengths */

#define PROF_DIFF_NORMALIZED  1


/* columns of the view */

#define PROF_DIFF_BEFORE      0
#define PROF_DIFF_AFTER       1


typedef struct {
    const prof_profile_t  *profile[2];
    prof_profile_t        *merged;      /* owned; has the stacks of both */
    prof_view_t           *view;        /* owned */
    uint32_t               measure;     /* prof_measure_e */
    uint32_t               flags;
} prof_diff_t;


PROF_HIDDEN_BEGIN

/*
 * Compares by the measure that "after" shows first.  If "before" does not have
 * it, compares by the first common measure, and without a common measure by
 * wall time.  Both profiles must outlive d.  Returns PROF_OK, or PROF_ERROR if
 * memory is short.  The caller calls prof_diff_free() in both cases.
 */
int prof_diff_init(prof_diff_t *d, const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags);
void prof_diff_free(prof_diff_t *d);

/* returns a weight of "before", scaled if shares are compared */
uint64_t prof_diff_scale(const prof_diff_t *d, uint64_t weight);

PROF_HIDDEN_END


#endif /* _PROF_DIFF_H_INCLUDED_ */
