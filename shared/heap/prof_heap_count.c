
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Hooks call these functions after an allocation.  They decide whether the
 * allocation is sampled, take its stack, and count it in heaps.
 *
 * Counted blocks and mappings are kept until they are freed.  A block is
 * removed before it is freed, because another thread may get its address at
 * once.  A block that is reallocated is kept under an odd address until
 * realloc() returns.
 *
 * The functions of this file, and all that they call, must not allocate and
 * must not change errno.
 */


#include "heap/prof_heap_state.h"
#include "profile/prof_profile.h"
#include "unwind/prof_arch.h"

#include <errno.h>
#include <math.h>


#define prof_heap_moved_address(p)  ((uintptr_t) (p) | 1)


static void prof_heap_missed(void);
static void prof_heap_block(prof_heap_t *h, void *p, size_t size,
    double weight, prof_heap_memory_e memory, const prof_outer_t *outer);
static uint32_t prof_heap_stack(prof_heap_t *h, const prof_outer_t *outer);
static int prof_heap_process_sample(prof_heap_thread_t *t, size_t size);
static int prof_heap_turn_sample(prof_heap_t *h, size_t size);
static double prof_heap_weight(uint64_t interval, size_t size);
static void prof_heap_add_block(prof_heap_t *h, void *p,
    const prof_live_block_t *block);
static void prof_heap_add_map(prof_heap_t *h, void *p,
    const prof_live_block_t *block);
static void prof_heap_count(prof_heap_t *h, const prof_live_block_t *block,
    double sign);
static int prof_heap_unmap(prof_heap_t *h, uintptr_t start, uintptr_t end);


PROF_GLUE void
prof_heap_allocated(void *p, size_t size, prof_heap_memory_e memory)
{
    double               weight;
    uint32_t             i;
    prof_heap_t         *h;
    prof_heap_thread_t  *t;

    t = prof_heap_thread();

    if (t == NULL) {
        prof_heap_missed();
        return;
    }

    t->inside++;

    if (t->stack.high == 0) {
        prof_stack_find(&t->stack);
    }

    h = t->heap;

    if (h && prof_heap_turn_sample(h, size)) {
        prof_heap_block(h, p, size, prof_heap_weight(h->interval, size), memory,
                         t->outer);
    }

    if (prof_heap_state.process && prof_heap_process_sample(t, size)) {

        weight = prof_heap_weight(t->interval, size);

        prof_heap_enter();

        for (i = 0; i < prof_heap_state.n; i++) {
            h = __atomic_load_n(&prof_heap_state.heaps[i], __ATOMIC_SEQ_CST);

            if (h && h->process) {
                prof_heap_block(h, p, size, weight, memory, NULL);
            }
        }

        prof_heap_leave();
    }

    t->inside--;
}


/* counts an allocation as missed, because the thread has no entry */

static void
prof_heap_missed(void)
{
    uint32_t      i;
    prof_heap_t  *h;

    prof_heap_enter();

    for (i = 0; i < prof_heap_state.n; i++) {
        h = __atomic_load_n(&prof_heap_state.heaps[i], __ATOMIC_SEQ_CST);

        if (h && h->process && h->on) {
            __atomic_fetch_add(&h->missed, 1, __ATOMIC_RELAXED);
        }
    }

    prof_heap_leave();
}


PROF_GLUE static void
prof_heap_block(prof_heap_t *h, void *p, size_t size, double weight,
    prof_heap_memory_e memory, const prof_outer_t *outer)
{
    int                 err;
    prof_live_block_t   block;
    prof_heap_count_t  *count;

    if (!h->on) {
        return;
    }

    /* turns run in the thread that renews the tables */

    if (outer) {
        err = errno;
        (void) prof_process_refresh();
        prof_heap_renew(h);
        errno = err;
    }

    if (!prof_heap_lock(h)) {
        return;
    }

    block.size = size;
    block.weight = weight;
    block.node = prof_heap_stack(h, outer);

    count = &h->counts[block.node];

    count->alloc_objects += weight;
    count->alloc_space += weight * size;

    h->sum.alloc_objects += weight;
    h->sum.alloc_space += weight * size;

    h->stats.allocations++;

    if (memory == PROF_HEAP_MAP) {
        prof_heap_add_map(h, p, &block);

    } else {
        prof_heap_add_block(h, p, &block);
    }

    prof_heap_unlock(h);
}


void
prof_heap_renew(prof_heap_t *h)
{
    const prof_unwind_t  *old, *current;

    current = prof_process_unwind();

    if (h->walker.unwind == current || !prof_heap_lock(h)) {
        return;
    }

    old = h->walker.unwind;

    prof_unwind_hold(current);
    h->walker.unwind = current;

    prof_heap_unlock(h);

    prof_heap_mute();
    prof_unwind_release(old);
    prof_heap_unmute();
}


/* returns the node of the running stack from the hook's caller outwards */

PROF_GLUE static uint32_t
prof_heap_stack(prof_heap_t *h, const prof_outer_t *outer)
{
    int                  known;
    uint32_t             i, node, interrupted;
    ucontext_t           uc;
    prof_sample_t       *sample;
    const prof_stack_t  *stack;

    prof_arch_here(&uc);

    sample = h->sample;
    stack = &prof_heap_thread()->stack;

    prof_take(sample, &h->walker, &uc, stack, outer ? outer->top : stack->high);

    known = prof_unwind_plain(h->walker.unwind);
    interrupted = prof_tree_interrupted(sample->pcs, sample->nframes);

    for (i = 0; i < sample->nframes && !known; i++) {
        (void) prof_unwind_mark(&h->walker.unwind, 1, &sample->pcs[i],
                                i > interrupted);
    }

    node = outer ? prof_fold_outer(&h->tree, outer, &h->stats) : PROF_NONE;

    return prof_fold(&h->tree, node, sample, PROF_FRAME_TURN, &h->stats);
}


/*
 * Returns whether heaps of the process take a sample of an allocation.  The
 * caller's prof_heap_wants() has counted the bytes, unless a turn is running.
 */

static int
prof_heap_process_sample(prof_heap_thread_t *t, size_t size)
{
    if (t->interval != prof_heap_state.interval || t->random == 0) {

        if (t->random == 0) {
            t->random = (uintptr_t) t ^ prof_clock(CLOCK_MONOTONIC);
        }

        t->interval = prof_heap_state.interval;
        t->rest = t->interval ? prof_heap_draw(t->interval, &t->random) : 0;
        t->rest -= (double) size;

    } else if (t->heap) {
        t->rest -= (double) size;
    }

    if (t->rest > 0) {
        return 0;
    }

    t->rest = t->interval ? prof_heap_draw(t->interval, &t->random) : 0;

    return 1;
}


static int
prof_heap_turn_sample(prof_heap_t *h, size_t size)
{
    if (h->interval == 0) {
        return 1;
    }

    h->rest -= (double) size;

    if (h->rest > 0) {
        return 0;
    }

    h->rest = prof_heap_draw(h->interval, &h->random);

    return 1;
}


double
prof_heap_draw(uint64_t interval, uint64_t *random)
{
    /* xorshift64*: Vigna, "An experimental exploration", table 3 */

    *random |= (*random == 0);
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;

    /* 53 bits, uniform in (0, 1] */

    return -log(((*random * 0x2545f4914f6cdd1d >> 11) + 1) * 0x1p-53)
           * (double) interval;
}


static double
prof_heap_weight(uint64_t interval, size_t size)
{
    if (interval == 0) {
        return 1;
    }

    return -1 / expm1(-(double) size / (double) interval);
}


/* adds counted memory until it is freed; called under the heap's lock */

static void
prof_heap_add_block(prof_heap_t *h, void *p, const prof_live_block_t *block)
{
    prof_live_block_t  *b;

    b = prof_live_find(&h->live, (uintptr_t) p);

    if (b) {

        /* code that does not call through an import has freed the block */

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


static void
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


/* counts a block; sign: 1 if it was allocated, -1 if it was freed */

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


/*
 * Counts a range as freed, and returns whether a part of it was counted.
 * Mappings may be unmapped in parts: allocators align mappings in this way.
 */

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
