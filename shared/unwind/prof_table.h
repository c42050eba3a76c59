
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The snapshot's inside.  All of it is in one mapping, which is never written
 * after it was built, so that processes forked later share it:
 *
 *     prof_unwind_t, objects, ranges, eh, paths
 *     index     for each object and each page of PROF_TABLE_PAGE bytes of its
 *               code: number of the row in force at the page's first byte;
 *               one more entry at the object's end
 *     rows      for each object, sorted by pc; the first one is for pc 0
 *     aux       one byte for each row
 *
 * Context: any, also in a signal.
 */


#ifndef _PROF_TABLE_H_INCLUDED_
#define _PROF_TABLE_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_eh.h"
#include "unwind/prof_row.h"
#include "unwind/prof_unwind.h"


/* five rows on an average page: two or three steps of a binary search */

#define PROF_TABLE_PAGE_BITS  8
#define PROF_TABLE_PAGE       (1 << PROF_TABLE_PAGE_BITS)


/* where an object's code is; what a look-up reads of it */

typedef struct {
    uintptr_t             start;
    uintptr_t             end;
    const uint32_t       *index;
} prof_range_t;


struct prof_unwind_s {
    const prof_range_t   *ranges;       /* sorted, as objects and eh */
    const prof_object_t  *objects;
    const prof_eh_t      *eh;
    const uint64_t       *rows;
    const int8_t         *aux;
    uint64_t              adds;         /* the loader's counters */
    uint64_t              subs;
    prof_unwind_info_t    info;
};


/* the number of the object whose code holds the address, or PROF_TABLE_NONE */

#define PROF_TABLE_NONE  UINT32_MAX

static inline uint32_t
prof_table_object(const prof_unwind_t *u, uintptr_t pc)
{
    uint32_t             lo, hi, mid;
    const prof_range_t  *range;

    range = u->ranges;
    lo = 0;
    hi = u->info.objects;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;

        if (range[mid].start <= pc) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    if (lo == 0 || pc >= range[lo - 1].end) {
        return PROF_TABLE_NONE;
    }

    return lo - 1;
}


/* the number of the row in force at the address, or PROF_TABLE_NONE */

static inline uint32_t
prof_table_find(const prof_unwind_t *u, uintptr_t pc)
{
    uint32_t             i, lo, hi, mid, rel;
    const prof_range_t  *range;

    i = prof_table_object(u, pc);

    if (i == PROF_TABLE_NONE) {
        return PROF_TABLE_NONE;
    }

    range = &u->ranges[i];
    rel = (uint32_t) (pc - range->start);

    lo = range->index[rel >> PROF_TABLE_PAGE_BITS];
    hi = range->index[(rel >> PROF_TABLE_PAGE_BITS) + 1];

    while (lo < hi) {
        mid = lo + (hi - lo + 1) / 2;

        if (prof_row_pc(u->rows[mid]) <= rel) {
            lo = mid;

        } else {
            hi = mid - 1;
        }
    }

    return lo;
}


static inline uint64_t
prof_table_row(const prof_unwind_t *u, uintptr_t pc)
{
    uint32_t  i;

    i = prof_table_find(u, pc);

    return (i == PROF_TABLE_NONE) ? prof_row(PROF_ROW_NONE, 0, 0)
                                  : u->rows[i];
}


#endif /* _PROF_TABLE_H_INCLUDED_ */
