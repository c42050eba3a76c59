
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Sums over groups of functions: the weight of a group itself (self), and with
 * all functions that it called (total).
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_TOTALS_H_INCLUDED_
#define _PROF_TOTALS_H_INCLUDED_


#include "base/prof_base.h"
#include "views/prof_view.h"


/* by columns of the view */

typedef struct {
    uint32_t   group;
    uint64_t   self[PROF_MEASURE_MAX];
    uint64_t   total[PROF_MEASURE_MAX];
} prof_total_t;


PROF_HIDDEN_BEGIN

/*
 * Returns the sums of n groups; group[i] is the group of function i of the
 * view.  A group below itself (recursion) is counted once.  Returns an array
 * for free(), or NULL if memory is short.
 */
prof_total_t *prof_totals_create(const prof_view_t *v, const uint32_t *group,
    uint32_t n);

/* sorts by self, then by total, in this column; the largest is first */
void prof_totals_sort(prof_total_t *totals, uint32_t n, uint32_t column);

PROF_HIDDEN_END


#endif /* _PROF_TOTALS_H_INCLUDED_ */
