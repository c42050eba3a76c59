
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counts allocations of the turns of a capture, or of all threads of the
 * process.
 *
 * Sizes are bytes.  Sampled allocations are scaled up to all allocations.
 */


#ifndef _PROF_HEAP_H_INCLUDED_
#define _PROF_HEAP_H_INCLUDED_


#include "base/prof_base.h"


/* bytes between two sampled allocations; 0: all are counted */
#define PROF_INTERVAL_DEFAULT   (512 * 1024)
#define PROF_INTERVAL_MAX       (1024 * 1024 * 1024)


typedef struct prof_heap_s  prof_heap_t;


/*
 * A heap reserves up to 2.7 times conf->memory.  Pages that are not needed are
 * not touched.
 */

typedef struct {
    size_t      memory;         /* PROF_MEMORY_MIN .. _MAX */
    uint64_t    interval;       /* bytes, 0 .. PROF_INTERVAL_MAX */
    uint32_t    process;        /* 1: all threads; 0: turns of a capture */
} prof_heap_conf_t;


/* sums of the series "memory"; peaks as in prof_profile_t */

typedef struct {
    uint64_t    alloc_objects;
    uint64_t    alloc_space;
    uint64_t    inuse_objects;
    uint64_t    inuse_space;
    uint64_t    peak_objects;
    uint64_t    peak_space;
} prof_heap_totals_t;


PROF_HIDDEN_BEGIN

/*
 * Counts the allocations of all threads of the process; conf->process is 1.
 * Several heaps of the process share samples, those of the shortest interval.
 * The unwind tables must exist.  While heaps exist, one thread makes and
 * destroys all of them.  Returns NULL with *err set to a static text and errno.
 */
prof_heap_t *prof_heap_create(const prof_heap_conf_t *conf, const char **err);

/* destroys the heap; the last heap also removes the hooks */
void prof_heap_destroy(prof_heap_t *h);

/*
 * prof_heap_destroy() in two steps.  prof_heap_end() ends the counting.
 * Afterwards any thread may read the heap and free it.
 */
void prof_heap_end(prof_heap_t *h);
void prof_heap_free(prof_heap_t *h);

/* returns the bytes of the heap's call tree and counters that are in use */
size_t prof_heap_size(const prof_heap_t *h);

void prof_heap_totals(prof_heap_t *h, prof_heap_totals_t *totals);

/* counts the block as freed now, because the caller will free the block */
void prof_heap_forget(prof_heap_t *h, void *block);

/* between these calls the thread's allocations are not counted; they nest */
void prof_heap_mute(void);
void prof_heap_unmute(void);

PROF_HIDDEN_END


#endif /* _PROF_HEAP_H_INCLUDED_ */
