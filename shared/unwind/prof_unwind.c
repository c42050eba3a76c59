
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Queries of a snapshot, and its release.  prof_snapshot.c makes it, and the
 * walk in prof_walk_sig.c reads it.  The counters of holders are atomic: a
 * thread that completes a profile releases the snapshot of the profile.
 *
 * Context: not in a signal.
 */


#include "unwind/prof_block.h"
#include "unwind/prof_object.h"
#include "unwind/prof_table.h"

#include <stdlib.h>


#define prof_load(pc)  ((uint32_t) ((pc) >> PROF_LOAD_SHIFT) & PROF_LOAD_MASK)


_Static_assert(prof_load(PROF_FRAME_SCRIPT) == PROF_LOAD_SCRIPT,
               "keys of script frames look like marked addresses");


static void prof_unwind_unref(const prof_range_t *ranges, uint32_t n);
static const prof_range_t *prof_unwind_range(const prof_unwind_t *u,
    uintptr_t pc);
static int prof_unwind_loads(const prof_unwind_t *const *u, uint32_t n,
    uintptr_t at, uint32_t *load);


void
prof_unwind_hold(const prof_unwind_t *u)
{
    (void) __atomic_add_fetch(&((prof_unwind_t *) u)->refs, 1,
                              __ATOMIC_RELAXED);
}


void
prof_unwind_release(const prof_unwind_t *u)
{
    if (u == NULL
        || __atomic_sub_fetch(&((prof_unwind_t *) u)->refs, 1,
                              __ATOMIC_ACQ_REL))
    {
        return;
    }

    prof_unwind_unref(u->ranges, u->info.objects);
    prof_unwind_unref(u->gone, u->info.unloaded);

    free((prof_unwind_t *) u);
}


static void
prof_unwind_unref(const prof_range_t *ranges, uint32_t n)
{
    uint32_t        i;
    prof_shared_t  *shared;

    for (i = 0; i < n; i++) {
        shared = ranges[i].shared;

        if (__atomic_sub_fetch(&shared->refs, 1, __ATOMIC_ACQ_REL) == 0) {
            prof_block_free(shared->block);
            free(shared);
        }
    }
}


int
prof_unwind_stale(const prof_unwind_t *u)
{
    return prof_object_changed(u->adds, u->subs);
}


void
prof_unwind_engine(prof_unwind_t *u, const prof_engine_code_t *code)
{
    uint32_t  i;

    for (i = 0; i < PROF_ENGINES; i++) {

        if (u->engines[i].frame == NULL) {
            u->engines[i] = *code;
            return;
        }
    }
}


int
prof_unwind_plain(const prof_unwind_t *u)
{
    return u->plain;
}


void
prof_unwind_info(const prof_unwind_t *u, prof_unwind_info_t *info)
{
    *info = u->info;
}


const prof_object_t *
prof_unwind_object_at(const prof_unwind_t *u, uint32_t i)
{
    return (i < u->info.objects) ? &u->ranges[i].shared->block->object : NULL;
}


const prof_object_t *
prof_unwind_object(const prof_unwind_t *u, uintptr_t pc)
{
    const prof_range_t  *range;

    range = prof_unwind_range(u, pc);

    return range ? &range->shared->block->object : NULL;
}


static const prof_range_t *
prof_unwind_range(const prof_unwind_t *u, uintptr_t pc)
{
    uint32_t             i, load;
    uintptr_t            at;
    const prof_range_t  *range;

    load = prof_load(pc);
    at = prof_unwind_address(pc);

    if (load >= PROF_LOAD_NONE) {
        return NULL;
    }

    range = prof_table_range(u, at);

    if (range && range->load == load) {
        return range;
    }

    for (i = 0; i < u->info.unloaded; i++) {
        range = &u->gone[i];

        if (range->load == load && at >= range->start && at < range->end) {
            return range;
        }
    }

    return NULL;
}


uintptr_t
prof_unwind_function(const prof_unwind_t *u, uintptr_t pc, size_t *len)
{
    uintptr_t  start;

    (void) prof_unwind_find(u, pc, &start, len);

    return start;
}


const prof_object_t *
prof_unwind_find(const prof_unwind_t *u, uintptr_t pc, uintptr_t *start,
    size_t *len)
{
    uint32_t                lo, hi, mid, rel;
    const prof_block_t     *block;
    const prof_range_t     *range;
    const prof_function_t  *f;

    *start = 0;
    *len = 0;

    range = prof_unwind_range(u, pc);
    if (range == NULL) {
        return NULL;
    }

    block = range->shared->block;
    rel = (uint32_t) (prof_unwind_address(pc) - range->start);

    lo = 0;
    hi = block->nfunctions;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;

        if (block->functions[mid].start <= rel) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    if (lo) {
        f = &block->functions[lo - 1];

        if (rel - f->start < f->len) {
            *start = range->start + f->start;
            *len = f->len;
        }
    }

    return &block->object;
}


int
prof_unwind_mark(const prof_unwind_t *const *u, uint32_t n, uintptr_t *pc,
    uint32_t call)
{
    int        rc;
    uint32_t   load;
    uintptr_t  at;

    /* the address is marked already, or is not an address of the process */

    if (prof_load(*pc) || prof_frame_is_name(*pc)) {
        return PROF_OK;
    }

    at = *pc - (call != 0);
    load = PROF_LOAD_NONE;

    rc = prof_unwind_loads(u, n, at, &load);

    *pc |= (uintptr_t) load << PROF_LOAD_SHIFT;

    return rc;
}


/*
 * Finds the loads of all objects that were at the address.  The result is only
 * known if there was one object.
 */

static int
prof_unwind_loads(const prof_unwind_t *const *u, uint32_t n, uintptr_t at,
    uint32_t *load)
{
    uint32_t              i, all;
    const prof_range_t   *range;
    const prof_unwind_t  *last;

    last = u[n - 1];
    all = 0;

    for (i = 0; i < n; i++) {
        range = prof_table_range(u[i], at);

        if (range && *load != PROF_LOAD_NONE && *load != range->load) {
            goto unknown;
        }

        if (range) {
            *load = range->load;
            all++;
        }
    }

    /* snapshots between the first and the last one */

    for (i = last->info.unloaded; i > 0; i--) {
        range = &last->gone[i - 1];

        if (range->gone <= u[0]->id) {
            break;
        }

        if (at < range->start || at >= range->end || *load == range->load) {
            continue;
        }

        if (*load != PROF_LOAD_NONE) {
            goto unknown;
        }

        *load = range->load;
    }

    if (*load == PROF_LOAD_NONE || all == n || u[0]->doubts == last->doubts) {
        return PROF_OK;
    }

    /* an object that no snapshot contains may have been there */

unknown:

    *load = PROF_LOAD_NONE;

    return PROF_LIMIT;
}


uintptr_t
prof_unwind_unmark(uintptr_t pc)
{
    return (prof_load(pc) == PROF_LOAD_NONE) ? prof_unwind_address(pc) : pc;
}
