
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The timeline of a capture: all running and waiting intervals, in order,
 * without holes.  Neighbors with the same node become one entry.  When the
 * memory is used up, each block of four entries shrinks to at most two, one
 * for running and one for waiting.  Their weights are summed.  The node of the
 * sum is drawn with a probability in proportion to its wall weight, which
 * keeps the expected weight of every node.
 *
 * An entry without a sample may wait for one: the next sample of its group
 * claims it, so that the sample stands for all time of the group since the
 * sample before.  The entries of a group that wait are a list.
 *
 * Context: the capture's thread; not in a signal.
 */


#ifndef _PROF_ENTRIES_H_INCLUDED_
#define _PROF_ENTRIES_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "profile/prof_profile.h"


/*
 * An entry of the series "time" (prof_entry_t).  The profile takes over the
 * memory of its capture without a conversion.
 */

typedef struct {
    uint32_t   node;
    uint32_t   type;            /* prof_entry_e */
    uint32_t   labels;          /* while the entry waits: the one before it in
                                   the list; for the profile PROF_NONE */
    uint32_t   count;
    uint64_t   wall;
    uint64_t   cpu;
} prof_interval_t;


/* more groups are not used at once; without a place an entry does not wait */
#define PROF_GROUPS  64

typedef struct {
    uint64_t          group;    /* 0: a free place */
    uint32_t          last;     /* the last entry of the list, or PROF_NONE */
} prof_waiting_t;


typedef struct {
    prof_interval_t  *entries;
    uint32_t          n;
    uint32_t          max;
    uint64_t          random;   /* state of the generator, not 0 */
    prof_waiting_t    waiting[PROF_GROUPS];
} prof_entries_t;


PROF_HIDDEN_BEGIN

void prof_entries_init(prof_entries_t *tl, void *mem, size_t size,
    uint64_t seed);

/*
 * Adds an entry.  Returns PROF_OK, or PROF_LIMIT if entries were merged to free
 * memory, and samples had filled it: then the caller should sample less often.
 */
int prof_entries_add(prof_entries_t *tl, uint32_t node, uint32_t type,
    uint64_t wall, uint64_t cpu, prof_stats_t *st);

/* adds weight to the last entry, if there is one */
void prof_entries_extend(prof_entries_t *tl, uint64_t wall, uint64_t cpu);

/* the last entry waits for a sample of the group, which is not 0 */
void prof_entries_wait(prof_entries_t *tl, uint64_t group);

/* gives the entries that wait in the group to the node of a sample */
void prof_entries_claim(prof_entries_t *tl, uint64_t group, uint32_t node);

uint64_t prof_entries_random(prof_entries_t *tl);

PROF_HIDDEN_END


#endif /* _PROF_ENTRIES_H_INCLUDED_ */
