
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The timeline of a profile for viewers: stacks of functions in order of time.
 * Equal neighbors are merged, and the number of stacks is limited.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_TIMELINE_H_INCLUDED_
#define _PROF_TIMELINE_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


typedef struct {
    uint32_t          node;     /* node of the view */
    uint64_t          weight;
} prof_timeline_run_t;


typedef struct {
    prof_timeline_run_t  *runs;
    uint32_t              nruns;
    uint32_t              nmerged;  /* runs before reduction, or 0 */
    uint64_t              total;
} prof_timeline_t;


/* the entries of all sets of labels */

#define PROF_TIMELINE_ALL  (PROF_NONE - 1)


PROF_HIDDEN_BEGIN

/*
 * Uses the entries that have a weight in the measure: all of them, or those
 * with this set of labels.  Entries of series without an order are sorted by
 * node.  If there are more than max runs, neighbors share a stack; the total
 * stays exact.  Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_timeline_init(prof_timeline_t *t, const prof_profile_t *p,
    const prof_view_t *v, uint32_t measure, uint32_t labels, uint32_t max);
void prof_timeline_free(prof_timeline_t *t);

PROF_HIDDEN_END


#endif /* _PROF_TIMELINE_H_INCLUDED_ */
