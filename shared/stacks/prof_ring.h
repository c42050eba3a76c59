
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The sample ring.  The signal handler appends samples, and the interrupted
 * thread takes them out when no signal can come.  There is one producer and
 * one consumer.  A sample is contiguous: if it does not fit before the end of
 * the memory, a filler goes there, and the sample goes to the start.
 *
 * head and tail only grow; their difference is the fill.  The producer
 * publishes a sample by a release store of head, which pairs with the
 * consumer's acquire load.  The consumer frees samples by a release store of
 * tail.
 */


#ifndef _PROF_RING_H_INCLUDED_
#define _PROF_RING_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_trace.h"
#include "kernel/prof_kernel.h"


/* large enough for 3,500 stacks of 24 frames between two drains */
#define PROF_RING_SIZE    (1024 * 1024)

#define PROF_RING_FILLER  UINT32_MAX


/* the state of the thread when the signal came */

typedef enum {
    PROF_SAMPLE_RAN = 0,
    PROF_SAMPLE_WAITED,         /* in a system call that waits */
    PROF_SAMPLE_WOKE            /* running, for the first time after waiting */
} prof_sample_state_e;


typedef struct {
    uint32_t      size;         /* size of the sample, a multiple of 8 */
    uint32_t      nframes;      /* or PROF_RING_FILLER */
    uint32_t      end;          /* as prof_walk() sets it */
    uint16_t      state;        /* prof_sample_state_e */
    uint16_t      nkernel;      /* the first frames, which are the kernel's */
    uint64_t      elided;       /* frames of the middle that are left out */
    uint64_t      wall;         /* clocks at the sample */
    uint64_t      cpu;
    uint64_t      dropped;      /* earlier samples that were dropped */
    const char   *location;     /* as prof_process_location() set it */
    prof_trace_t  trace;        /* as prof_process_trace() set it */
    uintptr_t     pcs[];
} prof_sample_t;


#define PROF_SAMPLE_MAX                                                       \
    (sizeof(prof_sample_t)                                                    \
     + (PROF_KERNEL_DEPTH + PROF_MAX_DEPTH) * sizeof(uintptr_t))


typedef struct {
    char       *data;           /* PROF_RING_SIZE bytes */
    uint64_t    head;
    uint64_t    tail;
} prof_ring_t;


static inline size_t
prof_ring_used(const prof_ring_t *ring)
{
    return __atomic_load_n(&ring->head, __ATOMIC_RELAXED)
           - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}


/*
 * Returns memory for a sample of PROF_SAMPLE_MAX bytes, or NULL if the ring is
 * full.  Context: signal handler.
 */

static inline prof_sample_t *
prof_ring_reserve(prof_ring_t *ring)
{
    size_t          pos, rest, need;
    prof_sample_t  *sample;

    pos = ring->head % PROF_RING_SIZE;
    rest = PROF_RING_SIZE - pos;

    need = PROF_SAMPLE_MAX;
    if (rest < PROF_SAMPLE_MAX) {
        need += rest;
    }

    if (prof_ring_used(ring) + need > PROF_RING_SIZE) {
        return NULL;
    }

    sample = (prof_sample_t *) (ring->data + pos);

    if (rest < PROF_SAMPLE_MAX) {

        if (rest >= sizeof(prof_sample_t)) {
            sample->size = rest;
            sample->nframes = PROF_RING_FILLER;
        }

        __atomic_store_n(&ring->head, ring->head + rest, __ATOMIC_RELEASE);
        sample = (prof_sample_t *) ring->data;
    }

    return sample;
}


/*
 * Publishes a sample of prof_ring_reserve(), in which nframes is set.
 * Context: signal handler.
 */

static inline void
prof_ring_commit(prof_ring_t *ring, prof_sample_t *sample)
{
    sample->size = sizeof(prof_sample_t) + sample->nframes * sizeof(uintptr_t);

    __atomic_store_n(&ring->head, ring->head + sample->size, __ATOMIC_RELEASE);
}


/* returns the sample at a place between tail and head */

static inline prof_sample_t *
prof_ring_at(const prof_ring_t *ring, uint64_t pos)
{
    return (prof_sample_t *) (ring->data + pos % PROF_RING_SIZE);
}


/* returns the oldest sample, which prof_ring_pop() removes, or NULL */

static inline prof_sample_t *
prof_ring_peek(prof_ring_t *ring)
{
    size_t          rest;
    prof_sample_t  *sample;

    while (ring->tail != __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE)) {

        rest = PROF_RING_SIZE - ring->tail % PROF_RING_SIZE;
        sample = prof_ring_at(ring, ring->tail);

        if (rest >= sizeof(prof_sample_t)
            && sample->nframes != PROF_RING_FILLER)
        {
            return sample;
        }

        __atomic_store_n(&ring->tail, ring->tail + rest, __ATOMIC_RELEASE);
    }

    return NULL;
}


static inline void
prof_ring_pop(prof_ring_t *ring, const prof_sample_t *sample)
{
    __atomic_store_n(&ring->tail, ring->tail + sample->size, __ATOMIC_RELEASE);
}


#endif /* _PROF_RING_H_INCLUDED_ */
