
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Blocks and mappings that were counted, until they are freed.
 *
 * A block is removed before it is freed, because another thread may get its
 * address at once.  A block that is reallocated is kept under an odd address
 * until realloc() returns.
 */


#include "heap/prof_heap_state.h"


#define prof_heap_moved_address(p)  ((uintptr_t) (p) | 1)


static void prof_heap_count(prof_heap_t *h, const prof_live_block_t *block,
    double sign);
static int prof_heap_unmap(prof_heap_t *h, uintptr_t start, uintptr_t end);


void
prof_heap_add_block(prof_heap_t *h, void *p, const prof_live_block_t *block)
{
    prof_live_block_t  *b;

    b = prof_live_find(&h->live, (uintptr_t) p);

    if (b) {

        /* code that does not call through a slot has freed the block */

        prof_heap_count(h, b, -1);
        prof_live_remove(&h->live, b, (uintptr_t) p);
    }

    b = prof_live_reserve(&h->live, (uintptr_t) p);

    if (b == NULL || h->live.n >= h->live.mask * (PROF_LIVE_BUCKET - 2)) {
        h->stats.lost_live++;
        return;
    }

    *b = *block;
    prof_live_commit(&h->live, b, (uintptr_t) p);

    prof_heap_count(h, block, 1);
}


void
prof_heap_add_map(prof_heap_t *h, void *p, const prof_live_block_t *block)
{
    prof_heap_map_t  *map;

    (void) prof_heap_unmap(h, (uintptr_t) p, (uintptr_t) p + block->size);

    if (h->nmaps == PROF_HEAP_MAPS_MAX) {
        h->stats.lost_live++;
        return;
    }

    map = &h->maps[h->nmaps];

    map->address = (uintptr_t) p;
    map->block = *block;

    __atomic_store_n(&h->nmaps, h->nmaps + 1, __ATOMIC_RELEASE);

    prof_heap_count(h, block, 1);
}


/* sign: 1 for a block that was allocated, -1 for one that was freed */

static void
prof_heap_count(prof_heap_t *h, const prof_live_block_t *block, double sign)
{
    double              objects, space;
    prof_heap_count_t  *count;

    objects = sign * block->weight;
    space = objects * block->size;

    count = &h->counts[block->node];

    count->inuse_objects += objects;
    count->inuse_space += space;

    h->sum.inuse_objects += objects;
    h->sum.inuse_space += space;

    if (h->sum.inuse_objects > h->peak_objects) {
        h->peak_objects = h->sum.inuse_objects;
    }

    if (h->sum.inuse_space > h->peak_space) {
        h->peak_space = h->sum.inuse_space;
    }
}


PROF_GLUE void
prof_heap_freed(void *p)
{
    uint32_t      i;
    prof_heap_t  *h;

    prof_heap_enter();

    for (i = 0; i < prof_heap_state.n; i++) {
        h = __atomic_load_n(&prof_heap_state.heaps[i], __ATOMIC_SEQ_CST);

        if (h && h->on && prof_live_find(&h->live, (uintptr_t) p)) {
            prof_heap_forget(h, p);
        }
    }

    prof_heap_leave();
}


void
prof_heap_forget(prof_heap_t *h, void *p)
{
    prof_live_block_t  *b;

    if (!prof_heap_lock(h)) {
        return;
    }

    b = prof_live_find(&h->live, (uintptr_t) p);

    if (b) {
        prof_heap_count(h, b, -1);
        prof_live_remove(&h->live, b, (uintptr_t) p);
    }

    prof_heap_unlock(h);
}


void
prof_heap_moving(void *p)
{
    uint32_t            i;
    prof_heap_t        *h;
    prof_live_block_t  *b;

    prof_heap_enter();

    for (i = 0; i < prof_heap_state.n; i++) {
        h = __atomic_load_n(&prof_heap_state.heaps[i], __ATOMIC_SEQ_CST);

        if (h == NULL || !h->on
            || prof_live_find(&h->live, (uintptr_t) p) == NULL
            || !prof_heap_lock(h))
        {
            continue;
        }

        b = prof_live_find(&h->live, (uintptr_t) p);

        if (b) {
            prof_live_rename(&h->live, b, prof_heap_moved_address(p));
        }

        prof_heap_unlock(h);
    }

    prof_heap_leave();
}


void
prof_heap_moved(void *p, int freed)
{
    uint32_t            i;
    uintptr_t           address;
    prof_heap_t        *h;
    prof_live_block_t  *b;

    address = prof_heap_moved_address(p);

    prof_heap_enter();

    for (i = 0; i < prof_heap_state.n; i++) {
        h = __atomic_load_n(&prof_heap_state.heaps[i], __ATOMIC_SEQ_CST);

        if (h == NULL || !h->on || prof_live_find(&h->live, address) == NULL
            || !prof_heap_lock(h))
        {
            continue;
        }

        b = prof_live_find(&h->live, address);

        if (b && freed) {
            prof_heap_count(h, b, -1);
            prof_live_remove(&h->live, b, address);

        } else if (b) {
            prof_live_rename(&h->live, b, (uintptr_t) p);
        }

        prof_heap_unlock(h);
    }

    prof_heap_leave();
}


int
prof_heap_unmapped(void *p, size_t len)
{
    int           known;
    uint32_t      i;
    prof_heap_t  *h;

    known = 0;

    prof_heap_enter();

    for (i = 0; i < prof_heap_state.n; i++) {
        h = __atomic_load_n(&prof_heap_state.heaps[i], __ATOMIC_SEQ_CST);

        if (h && h->on && __atomic_load_n(&h->nmaps, __ATOMIC_ACQUIRE)
            && prof_heap_lock(h))
        {
            known |= prof_heap_unmap(h, (uintptr_t) p, (uintptr_t) p + len);
            prof_heap_unlock(h);
        }
    }

    prof_heap_leave();

    return known;
}


/* mappings may be unmapped in parts: allocators align theirs in this way */

static int
prof_heap_unmap(prof_heap_t *h, uintptr_t start, uintptr_t end)
{
    int               known;
    uint32_t          i;
    uintptr_t         from, to;
    prof_heap_map_t  *map, left;

    known = 0;

    for (i = h->nmaps; i-- > 0; /* void */ ) {
        map = &h->maps[i];

        from = map->address;
        to = from + map->block.size;

        if (end <= from || start >= to) {
            continue;
        }

        known = 1;
        left = *map;

        prof_heap_count(h, &left.block, -1);
        *map = h->maps[--h->nmaps];

        if (start > from) {
            left.block.size = start - from;
            h->maps[h->nmaps++] = left;
            prof_heap_count(h, &left.block, 1);
        }

        if (end < to && h->nmaps < PROF_HEAP_MAPS_MAX) {
            left.address = end;
            left.block.size = to - end;
            h->maps[h->nmaps++] = left;
            prof_heap_count(h, &left.block, 1);
        }
    }

    return known;
}
