
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Hooks call these functions after an allocation.  They decide whether the
 * allocation is sampled, take its stack, and count it in heaps.
 *
 * The functions of this file and of prof_heap_block.c, and all that they call,
 * must not allocate and must not change errno.
 */


#include "heap/prof_heap_state.h"
#include "profile/prof_profile.h"
#include "unwind/prof_arch.h"

#include <errno.h>
#include <math.h>


static void prof_heap_missed(void);
static void prof_heap_record(prof_heap_t *h, void *p, size_t size,
    double weight, prof_heap_kind_e kind, const prof_outer_t *outer);
static uint32_t prof_heap_stack(prof_heap_t *h, const prof_outer_t *outer);
static int prof_heap_process_sample(prof_heap_thread_t *t, size_t size);
static int prof_heap_turn_sample(prof_heap_t *h, size_t size);
static double prof_heap_weight(uint64_t interval, size_t size);


PROF_GLUE void
prof_heap_allocated(void *p, size_t size, prof_heap_kind_e kind)
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
        prof_heap_record(h, p, size, prof_heap_weight(h->interval, size), kind,
                         t->outer);
    }

    if (prof_heap_state.process && prof_heap_process_sample(t, size)) {

        weight = prof_heap_weight(t->interval, size);

        prof_heap_enter();

        for (i = 0; i < prof_heap_state.n; i++) {
            h = __atomic_load_n(&prof_heap_state.heaps[i], __ATOMIC_SEQ_CST);

            if (h && h->process) {
                prof_heap_record(h, p, size, weight, kind, NULL);
            }
        }

        prof_heap_leave();
    }

    t->inside--;
}


/* called for an allocation in a thread without an entry */

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
prof_heap_record(prof_heap_t *h, void *p, size_t size, double weight,
    prof_heap_kind_e kind, const prof_outer_t *outer)
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

    if (kind == PROF_HEAP_MAP) {
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
    uint32_t             i, node;
    ucontext_t           uc;
    prof_record_t       *rec;
    const prof_stack_t  *stack;

    prof_arch_here(&uc);

    rec = h->record;
    stack = &prof_heap_thread()->stack;

    prof_take(rec, &h->walker, &uc, stack, outer ? outer->top : stack->high);

    known = prof_unwind_plain(h->walker.unwind);

    for (i = 0; i < rec->nframes && !known; i++) {
        (void) prof_unwind_mark(&h->walker.unwind, 1, &rec->pcs[i], i);
    }

    node = outer ? prof_fold_outer(&h->tree, outer, &h->stats) : PROF_NONE;

    return prof_fold(&h->tree, node, rec, PROF_FRAME_TURN, &h->stats);
}


/* prof_heap_wants() has counted the bytes, unless a turn is running */

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
