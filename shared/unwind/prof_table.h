
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The content of a snapshot.  Each object has a block.  A block is one mapping
 * and read-only after it was built, so processes that are forked later share
 * it.  Its parts:
 *
 *     prof_block_t, with the object's description
 *     index      for each page of PROF_TABLE_PAGE bytes of code: number of the
 *                row in force at the page's first byte; one more entry at the
 *                end of the code
 *     rows       sorted by pc; the first one is for pc 0
 *     functions  starts and lengths of the unwind entries, sorted
 *     aux        one byte for each row
 *     path
 *
 * A block contains all data of its object that is needed later.  The snapshot
 * is a small index of blocks.  Snapshots share blocks and count their owners.
 *
 * Context: any, also in a signal.
 */


#ifndef _PROF_TABLE_H_INCLUDED_
#define _PROF_TABLE_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_row.h"
#include "unwind/prof_unwind.h"


/* on average five rows per page: two or three steps of a binary search */

#define PROF_TABLE_PAGE_BITS  8
#define PROF_TABLE_PAGE       (1 << PROF_TABLE_PAGE_BITS)


/* an unwind entry; relative to the object's first code byte */

typedef struct {
    uint32_t                start;
    uint32_t                len;
} prof_function_t;


typedef struct {
    prof_object_t           object;         /* the first member */
    uint64_t                print;          /* as in prof_object_info_t */
    const uint32_t         *index;
    const uint64_t         *rows;
    const prof_function_t  *functions;
    const int8_t           *aux;
    uint32_t                nrows;
    uint32_t                nfunctions;
    uint32_t                unsupported;    /* number of such rows */
    size_t                  size;           /* bytes of the mapping */
} prof_block_t;


/* the owners of a block are the snapshots that contain it */

typedef struct {
    const prof_block_t     *block;
    uint32_t                refs;
} prof_shared_t;


/* the range of an object's code, for look-ups */

typedef struct {
    uintptr_t               start;
    uintptr_t               end;
    const uint32_t         *index;
    const uint64_t         *rows;
    prof_shared_t          *shared;
    uint32_t                load;           /* see prof_unwind_mark() */
    uint32_t                age;            /* consecutive earlier snapshots
                                               with it, up to a limit */
    uint64_t                gone;           /* id of the first snapshot
                                               without it */
} prof_range_t;


struct prof_unwind_s {
    uint64_t                id;             /* unique for each snapshot */
    const prof_range_t     *ranges;         /* sorted; loaded objects */
    const prof_range_t     *gone;           /* unloaded, the oldest first */
    uint32_t                plain;          /* all loads 0, "gone" empty */
    uint32_t                refs;
    uint32_t                loads;          /* the number of the last load */
    uint32_t                doubts;         /* snapshots that missed objects */
    uint64_t                adds;           /* the loader's counters */
    uint64_t                subs;
    prof_unwind_info_t      info;
    prof_engine_code_t      engines[PROF_ENGINES];
                                            /* frame is NULL: no engine */
};


/* returns the object whose code contains the address, or NULL */

static inline const prof_range_t *
prof_table_range(const prof_unwind_t *u, uintptr_t pc)
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
        return NULL;
    }

    return &range[lo - 1];
}


/* returns the number of the row in force at an address of the object's code */

static inline uint32_t
prof_table_find(const prof_range_t *range, uintptr_t pc)
{
    uint32_t  lo, hi, mid, rel;

    rel = (uint32_t) (pc - range->start);

    lo = range->index[rel >> PROF_TABLE_PAGE_BITS];
    hi = range->index[(rel >> PROF_TABLE_PAGE_BITS) + 1];

    while (lo < hi) {
        mid = lo + (hi - lo + 1) / 2;

        if (prof_row_pc(range->rows[mid]) <= rel) {
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
    const prof_range_t  *range;

    range = prof_table_range(u, pc);

    return range ? range->rows[prof_table_find(range, pc)]
                 : prof_row(PROF_ROW_NONE, 0, 0);
}


#endif /* _PROF_TABLE_H_INCLUDED_ */
