
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counting what is allocated.  A heap counts for one capture: either what the
 * turns of the capture allocate, in the thread that runs them, or what all
 * threads of the process do.  For each stack it has sums of what was allocated
 * and of what is not freed yet, by whomever.
 *
 * A heap without an interval counts every block.  One with an interval samples:
 * each byte is the end of an exponentially distributed stretch of bytes with
 * the probability 1 / interval, and a block is counted if it has such a byte.
 * That happens with the probability
 *
 *     1 - exp(-size / interval)
 *
 * so a block that is counted stands for 1 / that many of its kind: sums are
 * unbiased for any sizes.
 *
 * All memory of a heap is one mapping of fixed size, made at the start: hooks
 * allocate nothing.  In a process that was forked it reads as zeros, and
 * counts nothing.
 *
 * Who writes what: a thread its prof_heap_thread_t; any thread a heap, under
 * its lock; the owner, which is the thread that makes heaps, the list of heaps.
 * Other threads say when they look at heaps ("readers"), so the owner knows
 * when nobody looks at one that it has taken out of the list.
 */


#ifndef _PROF_HEAP_STATE_H_INCLUDED_
#define _PROF_HEAP_STATE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_clock.h"
#include "base/prof_stats.h"
#include "heap/prof_heap.h"
#include "heap/prof_live.h"
#include "stacks/prof_stack.h"
#include "stacks/prof_tables.h"
#include "stacks/prof_take.h"
#include "stacks/prof_tree.h"
#include "unwind/prof_arch.h"
#include "unwind/prof_unwind.h"


#define PROF_HEAPS_MAX       64

/* mappings that are followed; they may be freed in parts */
#define PROF_HEAP_MAPS_MAX   128


typedef enum {
    PROF_HEAP_BLOCK = 0,
    PROF_HEAP_MAP
} prof_heap_kind_e;


/* sums of one stack: of its node of the tree */

typedef struct {
    double                 alloc_objects;
    double                 alloc_space;
    double                 inuse_objects;
    double                 inuse_space;
} prof_heap_count_t;


typedef struct {
    uintptr_t              address;
    prof_live_block_t      block;
} prof_heap_map_t;


struct prof_heap_s {
    volatile uint32_t      on;          /* 0 in a child of the process */
    volatile uint32_t      lock;
    uint32_t               process;     /* all threads */
    uint64_t               interval;    /* 0: every block */
    double                 rest;        /* bytes to the next sample of turns */
    uint64_t               random;

    prof_live_t            live;
    prof_tree_t            tree;
    prof_heap_count_t     *counts;      /* for each node */
    prof_heap_map_t       *maps;
    uint32_t               nmaps;
    prof_heap_count_t      sum;
    double                 peak_objects;
    double                 peak_space;
    uint64_t               missed;      /* calls that found no lock */

    prof_walker_t          walker;
    prof_record_t         *record;      /* of PROF_RECORD_MAX bytes */
    prof_stats_t           stats;
    uint64_t               start_realtime;
    uint64_t               start;

    size_t                 size;        /* of the mapping that it begins */
};


/*
 * What a hook knows of its thread.  Hooks run in threads that were there before
 * the module, also in those that are loading objects, so this is not in
 * thread-local storage.  That of the initial-exec model takes memory that the
 * process may not have left, and musl loads no module that has it.  That of
 * other models is allocated at a thread's first use, and the C library ends the
 * process if it cannot.  So entries are in a table of fixed size, by the thread
 * pointer.  A thread for which no entry is free is not counted: its calls are
 * "missed".
 */

#define PROF_HEAP_THREADS  1024

typedef struct {
    uintptr_t              thread;      /* prof_arch_thread(); 0: free */
    prof_heap_t           *heap;        /* whose turn runs in the thread */
    const prof_outer_t    *outer;       /* of that turn */
    double                 rest;        /* bytes to the next sample */
    uint64_t               interval;    /* that it was drawn for */
    uint64_t               random;
    uint32_t               inside;      /* counting, or muted code */
    uint32_t               locked;      /* it holds a heap's lock */
    uint32_t               owner;
    prof_stack_t           stack;
} prof_heap_thread_t;


typedef struct {
    prof_heap_t           *heaps[PROF_HEAPS_MAX];
    volatile uint32_t      n;           /* heaps are below this index */
    volatile uint32_t      process;     /* heaps of the process */
    volatile uint64_t      interval;    /* theirs: the shortest one */
    volatile uint32_t      readers;
} prof_heap_state_t;


PROF_HIDDEN_BEGIN

extern prof_heap_state_t  prof_heap_state;

extern prof_heap_thread_t  prof_heap_threads[PROF_HEAP_THREADS];

/* NULL: there is no entry for the thread */
prof_heap_thread_t *prof_heap_thread_find(uintptr_t self);

/* when there are no heaps: gives back the entries of all threads */
void prof_heap_threads_clear(void);

/*
 * For hooks.  prof_heap_allocated() is told of what prof_heap_wants() has
 * said yes to; prof_heap_freed() of every block that is going to be freed, and
 * does nothing when it does not know it.
 */
void prof_heap_allocated(void *p, size_t size, prof_heap_kind_e kind);
void prof_heap_freed(void *p);

/* a block that will be freed if the call succeeds, and whether it did */
void prof_heap_moving(void *p);
void prof_heap_moved(void *p, int freed);

/* whether anything of it was known */
int prof_heap_unmapped(void *p, size_t len);

/* the stretch until the next sample; never 0 */
double prof_heap_draw(uint64_t interval, uint64_t *random);

/*
 * The turn begins or ends: both are NULL then.  Objects that were loaded since
 * the last one get their hooks.  Context: its thread.
 */
void prof_heap_turn(prof_heap_t *h, const prof_outer_t *outer);

/* walks by the current tables from now on; the second: all of the process */
void prof_heap_renew(prof_heap_t *h);
void prof_heap_renew_process(void);

/* what is not freed yet.  Context: under the heap's lock */
void prof_heap_add_block(prof_heap_t *h, void *p,
    const prof_live_block_t *block);
void prof_heap_add_map(prof_heap_t *h, void *p,
    const prof_live_block_t *block);

/* whether it was taken; if not, that is counted */
int prof_heap_lock(prof_heap_t *h);
void prof_heap_unlock(prof_heap_t *h);

PROF_HIDDEN_END


static inline uint32_t
prof_heap_thread_first(uintptr_t self)
{
    /* threads' stacks are at multiples of large powers of two */

    return (uint64_t) self * 0x9e3779b97f4a7c15 >> 32 & (PROF_HEAP_THREADS - 1);
}


/* the running thread's */

static inline prof_heap_thread_t *
prof_heap_thread(void)
{
    uintptr_t            self;
    prof_heap_thread_t  *t;

    self = prof_arch_thread();
    t = &prof_heap_threads[prof_heap_thread_first(self)];

    return (t->thread == self) ? t : prof_heap_thread_find(self);
}


/* whether this allocation counts for anybody, and is to be told */

static inline int
prof_heap_wants(size_t size)
{
    prof_heap_thread_t  *t;

    if (prof_heap_state.n == 0) {
        return 0;
    }

    t = prof_heap_thread();

    if (t == NULL) {
        return prof_heap_state.process != 0;
    }

    if (t->inside) {
        return 0;
    }

    if (t->heap) {
        return 1;
    }

    if (prof_heap_state.process == 0) {
        return 0;
    }

    if (t->interval != prof_heap_state.interval) {
        return 1;
    }

    t->rest -= (double) size;

    return t->rest <= 0;
}


/*
 * Around looking at the list of heaps: the owner itself takes heaps out of it,
 * and so knows when it looks.
 */

static inline void
prof_heap_enter(void)
{
    prof_heap_thread_t  *t;

    t = prof_heap_thread();

    if (t == NULL || !t->owner) {
        __atomic_fetch_add(&prof_heap_state.readers, 1, __ATOMIC_SEQ_CST);
    }
}


static inline void
prof_heap_leave(void)
{
    prof_heap_thread_t  *t;

    t = prof_heap_thread();

    if (t == NULL || !t->owner) {
        __atomic_fetch_sub(&prof_heap_state.readers, 1, __ATOMIC_SEQ_CST);
    }
}


#endif /* _PROF_HEAP_STATE_H_INCLUDED_ */
