
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The timeline of a capture: what ran or waited, in order, without holes.
 * Neighbours with the same node become one entry.  When the memory is used
 * up, each block of four entries shrinks to at most two, one for what ran and
 * one for what waited: weights are summed, and the node that stands for the
 * sum is drawn with a probability in proportion to its wall weight, which
 * keeps every node's expected weight.
 *
 * Context: the capture's thread; not in a signal.
 */


#ifndef _PROF_ENTRIES_H_INCLUDED_
#define _PROF_ENTRIES_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "profile/prof_profile.h"


/*
 * An entry of the series "time" (prof_entry_t): the profile takes the memory of
 * its capture as it is.
 */

typedef struct {
    uint32_t   node;
    uint32_t   kind;            /* prof_entry_e */
    uint32_t   labels;
    uint32_t   count;
    uint64_t   wall;
    uint64_t   cpu;
} prof_interval_t;


typedef struct {
    prof_interval_t  *entries;
    uint32_t          n;
    uint32_t          max;
    uint64_t          random;   /* state of the generator, not 0 */
} prof_entries_t;


PROF_HIDDEN_BEGIN

void prof_entries_init(prof_entries_t *tl, void *mem, size_t size,
    uint64_t seed);

/*
 * Returns PROF_LIMIT when entries had to be merged to make room: the caller
 * should sample less often.  Otherwise PROF_OK.  The entry is added anyway.
 */
int prof_entries_add(prof_entries_t *tl, uint32_t node, uint32_t kind,
    uint64_t wall, uint64_t cpu, prof_stats_t *st);

/* adds weight to the last entry, if any */
void prof_entries_extend(prof_entries_t *tl, uint64_t wall, uint64_t cpu);

uint64_t prof_entries_random(prof_entries_t *tl);

PROF_HIDDEN_END


#endif /* _PROF_ENTRIES_H_INCLUDED_ */
