
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The waits of a capture, some of which overlap.  The timeline has one wait at
 * a time: a gap has the cause of the event that ended it.  When the capture has
 * ended, it is known how long each event was awaited.  Then the gaps are
 * divided again:
 *
 *     the last wait of all is critical, from its begin to its end; before it,
 *     the wait that ended when this one began, and so on
 *     a gap belongs to the critical wait
 *     the other waits of this time are shown below it, as "beside" it
 *
 * The sum of the gaps stays.
 *
 * Context: the capture's thread, and any thread when the capture has ended.
 */


#ifndef _PROF_BESIDE_H_INCLUDED_
#define _PROF_BESIDE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "capture/prof_capture.h"
#include "capture/prof_entries.h"
#include "stacks/prof_tree.h"


/* a wait, and the node of its cause */

typedef struct {
    prof_await_t   time;
    uint32_t       node;
    unsigned       known:1;         /* its begin is known */
    unsigned       critical:1;
    unsigned       shown:1;
} prof_beside_wait_t;


typedef struct {
    prof_beside_wait_t  *waits;     /* in the order of their ends */
    uint32_t             n;
    uint32_t             max;
} prof_beside_t;


PROF_HIDDEN_BEGIN

/* adds a wait; "counted" is the end of the last turn */
void prof_beside_add(prof_beside_t *b, const prof_await_t *time,
    uint64_t counted, uint32_t node);

/*
 * Divides the gaps of the timeline, which ends at "end", among the waits.
 * Frees the waits.
 */
void prof_beside_divide(prof_beside_t *b, prof_tree_t *tree,
    prof_entries_t *timeline, uint64_t end, prof_stats_t *st);

PROF_HIDDEN_END


#endif /* _PROF_BESIDE_H_INCLUDED_ */
