
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counting allocations.  A heap counts for one capture: either the allocations
 * of the capture's turns, in the thread that runs them, or the allocations of
 * all threads of the process.  Each stack has sums of the allocated memory and
 * of the memory in use.  Memory that another thread frees counts as freed.
 *
 * A heap without an interval counts every block.  A heap with an interval takes
 * samples.  The distances between sampled bytes are exponentially distributed
 * with the mean "interval".  A block is counted if it contains a sampled byte.
 * The probability of this is
 *
 *     p = 1 - exp(-size / interval)
 *
 * A counted block has the weight 1 / p, so sums are unbiased for all sizes.
 *
 * All memory of a heap is one mapping of fixed size, made at the start, because
 * hooks must not allocate.  In a child process the mapping reads as zeros, so
 * the heap counts nothing.
 *
 * Locking: a thread writes only its own prof_heap_thread_t.  A heap is written
 * under its lock.  Only the owner, the thread that makes heaps, writes the list
 * of heaps.  Other threads count as "readers" while they read the list, so the
 * owner knows when a heap that it has removed has no reader.
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

/* counted mappings of a heap; programs may free them in parts */
#define PROF_HEAP_MAPS_MAX   128


typedef enum {
    PROF_HEAP_BLOCK = 0,
    PROF_HEAP_MAP
} prof_heap_memory_e;


/* sums of one stack, by its node in the tree */

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
    volatile uint32_t      on;          /* 0 in a child process */
    volatile uint32_t      lock;
    uint32_t               process;     /* all threads */
    uint32_t               left;        /* the heap has ended, and no thread
                                           reads it */
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
    uint64_t               missed;      /* calls that did not get the lock */

    prof_walker_t          walker;
    prof_sample_t         *sample;      /* memory of PROF_SAMPLE_MAX bytes */
    prof_stats_t           stats;
    uint64_t               start_realtime;
    uint64_t               start;

    size_t                 size;        /* of the mapping of the heap */
};


/*
 * The data of a thread, for hooks.  Hooks also run in threads that are older
 * than the module, and in threads that are loading objects.  So the data is not
 * in thread-local storage.  Storage of the initial-exec model needs static TLS
 * memory, which may be used up, and musl does not load a module that needs it.
 * Storage of other models is allocated at a thread's first use, and if this
 * fails, the C library ends the process.  So the data is in a table of fixed
 * size, by the thread pointer.  If no entry is free, the thread's allocations
 * are not counted, and its calls are "missed".
 */

#define PROF_HEAP_THREADS  1024

typedef struct {
    uintptr_t              thread;      /* prof_arch_thread(); 0: free */
    prof_heap_t           *heap;        /* of the running turn */
    const prof_outer_t    *outer;       /* of that turn */
    double                 rest;        /* bytes to the next sample */
    uint64_t               interval;    /* interval of "rest" */
    uint64_t               random;
    uint32_t               inside;      /* the hook's own or muted code runs */
    uint32_t               locked;      /* the thread holds a heap's lock */
    uint32_t               owner;
    prof_stack_t           stack;
} prof_heap_thread_t;


typedef struct {
    prof_heap_t           *heaps[PROF_HEAPS_MAX];
    volatile uint32_t      n;           /* heaps are below this index */
    volatile uint32_t      process;     /* heaps of the process */
    volatile uint64_t      interval;    /* the shortest of these heaps */
    volatile uint32_t      readers;
} prof_heap_state_t;


PROF_HIDDEN_BEGIN

extern prof_heap_state_t  prof_heap_state;

extern prof_heap_thread_t  prof_heap_threads[PROF_HEAP_THREADS];

/* returns NULL if there is no entry for the thread */
prof_heap_thread_t *prof_heap_thread_find(uintptr_t self);

/* frees the entries of all threads; called when no heap exists */
void prof_heap_threads_clear(void);

/*
 * For hooks.  prof_heap_allocated() is called for allocations for which
 * prof_heap_wants() returned 1.  prof_heap_freed() is called before each block
 * is freed.  It ignores blocks that are not counted.
 */
void prof_heap_allocated(void *p, size_t size, prof_heap_memory_e memory);
void prof_heap_freed(void *p);

/* around realloc(), which frees the block if it succeeds */
void prof_heap_moving(void *p);
void prof_heap_moved(void *p, int freed);

/* returns whether a part of the range was counted */
int prof_heap_unmapped(void *p, size_t len);

/* returns the number of bytes until the next sample; never 0 */
double prof_heap_draw(uint64_t interval, uint64_t *random);

/*
 * Called when a turn begins, and with NULL for both arguments when it ends.
 * Objects that were loaded since the last turn get hooks.  Context: the thread
 * of the turn.
 */
void prof_heap_turn(prof_heap_t *h, const prof_outer_t *outer);

/* use the current tables from now on: in one heap, or in all of the process */
void prof_heap_renew(prof_heap_t *h);
void prof_heap_renew_process(void);

/* returns whether the lock was taken; counts the call as missed if not */
int prof_heap_lock(prof_heap_t *h);
void prof_heap_unlock(prof_heap_t *h);

PROF_HIDDEN_END


static inline uint32_t
prof_heap_thread_first(uintptr_t self)
{
    /* thread pointers differ by multiples of large powers of two */

    return prof_hash(self) >> 32 & (PROF_HEAP_THREADS - 1);
}


/* returns the entry of the running thread, or NULL */

static inline prof_heap_thread_t *
prof_heap_thread(void)
{
    uintptr_t            self;
    prof_heap_thread_t  *t;

    self = prof_arch_thread();
    t = &prof_heap_threads[prof_heap_thread_first(self)];

    return (t->thread == self) ? t : prof_heap_thread_find(self);
}


/* returns whether a heap needs this allocation */

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
 * Called around reads of the list of heaps.  The owner itself removes heaps
 * from the list, so its own reads are not counted.
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
