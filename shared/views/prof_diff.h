
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Two profiles compared: what takes more than before, what takes less, what is
 * new and what is gone.
 *
 * Functions of both are the same as in a merged profile (prof_merge.h): the
 * same place of the same object, or the same name if there is no code.  For
 * functions of different builds of a program, their names decide.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_DIFF_H_INCLUDED_
#define _PROF_DIFF_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


/*
 * Shares of the whole are compared, not weights: for profiles of different
 * lengths.
 */

#define PROF_DIFF_NORMALIZED  1


/* columns of the view */

#define PROF_DIFF_BEFORE      0
#define PROF_DIFF_AFTER       1


typedef struct {
    const prof_profile_t  *profile[2];
    prof_profile_t        *merged;      /* owned; stacks of both */
    prof_view_t           *view;        /* owned */
    uint32_t               measure;     /* prof_measure_e */
    uint32_t               flags;
} prof_diff_t;


PROF_HIDDEN_BEGIN

/*
 * Compares by the measure that "after" shows first, or else by the first that
 * both have; by wall time if there is none.  Both profiles must outlive it.
 * Returns PROF_OK, or PROF_ERROR when memory is short; to be freed in any
 * case.
 */
int prof_diff_init(prof_diff_t *d, const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags);
void prof_diff_free(prof_diff_t *d);

/* a weight of "before", as it is compared: scaled, if shares are */
uint64_t prof_diff_scale(const prof_diff_t *d, uint64_t weight);

PROF_HIDDEN_END


#endif /* _PROF_DIFF_H_INCLUDED_ */
