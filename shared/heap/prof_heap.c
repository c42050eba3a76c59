
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The life of heaps, and the list of heaps.
 *
 * Context: the owner, which is the same thread while heaps exist; not in a
 * signal.
 */


#include "heap/prof_heap_state.h"
#include "heap/prof_hooks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>


/*
 * Bytes of conf->memory for each node and each block.  With the default size a
 * heap has 65536 nodes and twice as many places for blocks.
 */

#define PROF_HEAP_UNIT     64

/* checks until a reader must have left; a longer wait is a bug */
#define PROF_HEAP_PATIENCE  1000000

#define prof_heap_align(n)  (((n) + 63) & ~(size_t) 63)


static prof_heap_t *prof_heap_map(size_t memory, uint32_t nblocks);
static int prof_heap_add(prof_heap_t *h);
static void prof_heap_remove(prof_heap_t *h);
static void prof_heap_choose(void);
static void prof_heap_tables(int begins);


static pthread_t  prof_heap_owner;
static uint32_t   prof_heap_users;


prof_heap_t *
prof_heap_create(const prof_heap_conf_t *conf, const char **err)
{
    uint32_t      n;
    prof_heap_t  *h;

    *err = "another thread of the process counts allocations";

    if (prof_heap_users && !pthread_equal(prof_heap_owner, pthread_self())) {
        errno = EBUSY;
        return NULL;
    }

    *err = "too many threads";

    if (prof_heap_thread() == NULL) {
        errno = EAGAIN;
        return NULL;
    }

    *err = "cannot allocate memory";

    for (n = 64; n * PROF_HEAP_UNIT * 4 < conf->memory; n *= 2) { /* void */ }

    prof_heap_mute();

    h = prof_heap_map(conf->memory, n);
    if (h == NULL) {
        prof_heap_unmute();
        return NULL;
    }

    h->walker.unwind = prof_process_refresh();

    if (h->walker.unwind == NULL) {
        *err = "cannot build the unwind tables";
        goto failed;
    }

    h->process = conf->process;
    h->interval = conf->interval;
    h->start_realtime = prof_clock(CLOCK_REALTIME);
    h->start = prof_clock(CLOCK_MONOTONIC);
    h->random = h->start;
    h->rest = h->interval ? prof_heap_draw(h->interval, &h->random) : 0;

    if (prof_hooks_hold(err) != PROF_OK) {
        goto failed;
    }

    *err = "too many captures of allocations";

    if (prof_heap_add(h) != PROF_OK) {
        prof_hooks_release();
        errno = EBUSY;
        goto failed;
    }

    prof_unwind_hold(h->walker.unwind);
    prof_process_hold();

    prof_heap_unmute();
    *err = NULL;

    return h;

failed:

    (void) munmap(h, h->size);
    prof_heap_unmute();

    return NULL;
}


static prof_heap_t *
prof_heap_map(size_t memory, uint32_t nblocks)
{
    char         *p;
    size_t        size, tree, counts, live, maps, sample;
    prof_heap_t  *h;

    tree = memory / PROF_HEAP_UNIT * (sizeof(prof_tree_node_t) + 4);
    counts = memory / PROF_HEAP_UNIT * sizeof(prof_heap_count_t);
    live = prof_live_size(nblocks);
    maps = PROF_HEAP_MAPS_MAX * sizeof(prof_heap_map_t);
    sample = prof_heap_align(PROF_SAMPLE_MAX);

    size = prof_heap_align(sizeof(prof_heap_t)) + live + prof_heap_align(tree)
           + prof_heap_align(counts) + prof_heap_align(maps) + sample
           + sizeof(prof_walk_cache_t);

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        return NULL;
    }

#ifdef MADV_WIPEONFORK

    /* a child process must not count its allocations before exec() */

    (void) madvise(p, size, MADV_WIPEONFORK);

#endif

    h = (prof_heap_t *) p;
    h->size = size;

    p += prof_heap_align(sizeof(prof_heap_t));
    prof_live_init(&h->live, p, nblocks);

    p += live;
    prof_tree_init(&h->tree, p, tree);

    p += prof_heap_align(tree);
    h->counts = (prof_heap_count_t *) p;

    if (h->tree.max > memory / PROF_HEAP_UNIT) {
        h->tree.max = memory / PROF_HEAP_UNIT;
    }

    p += prof_heap_align(counts);
    h->maps = (prof_heap_map_t *) p;

    p += prof_heap_align(maps);
    h->sample = (prof_sample_t *) p;

    p += sample;
    h->walker.cache = (prof_walk_cache_t *) p;
    h->walker.stats = &h->stats;

    return h;
}


void
prof_heap_destroy(prof_heap_t *h)
{
    prof_heap_end(h);
    prof_heap_free(h);
}


void
prof_heap_end(prof_heap_t *h)
{
    uint32_t  i;

    prof_heap_remove(h);

    if (prof_heap_thread()->heap == h) {
        prof_heap_turn(NULL, NULL);
    }

    prof_hooks_release();

    /*
     * Other threads may still read the heap, for a few instructions, unless
     * they do not get a processor.
     */

    for (i = 0; i < PROF_HEAP_PATIENCE; i++) {

        if (__atomic_load_n(&prof_heap_state.readers, __ATOMIC_SEQ_CST) == 0) {
            h->left = 1;
            return;
        }

        (void) sched_yield();
    }
}


void
prof_heap_free(prof_heap_t *h)
{
    prof_process_release();

    if (h->left) {
        prof_unwind_release(h->walker.unwind);
        (void) munmap(h, h->size);
    }
}


size_t
prof_heap_size(const prof_heap_t *h)
{
    return h->tree.nnodes
           * (sizeof(prof_tree_node_t) + sizeof(prof_heap_count_t));
}


void
prof_heap_turn(prof_heap_t *h, const prof_outer_t *outer)
{
    prof_heap_thread_t  *t;

    t = prof_heap_thread();

    if (t == NULL) {
        return;
    }

    t->heap = NULL;

    if (h) {
        prof_hooks_refresh();
        prof_heap_renew(h);
    }

    t->outer = outer;

    /* a hook in a signal handler must not see only one of both values */

    __asm__ volatile ("" ::: "memory");

    t->heap = h;
}


void
prof_heap_renew_process(void)
{
    uint32_t      i;
    prof_heap_t  *h;

    if (prof_heap_state.process == 0) {
        return;
    }

    (void) prof_process_refresh();

    for (i = 0; i < prof_heap_state.n; i++) {
        h = prof_heap_state.heaps[i];

        if (h && h->process) {
            prof_heap_renew(h);
        }
    }
}


static int
prof_heap_add(prof_heap_t *h)
{
    uint32_t  i;

    for (i = 0; prof_heap_state.heaps[i]; i++) {

        if (i + 1 == PROF_HEAPS_MAX) {
            return PROF_ERROR;
        }
    }

    if (prof_heap_users++ == 0) {
        prof_heap_threads_clear();
        prof_heap_owner = pthread_self();
        prof_process_observe(prof_heap_tables);
        prof_heap_thread()->owner = 1;
    }

    h->on = 1;

    __atomic_store_n(&prof_heap_state.heaps[i], h, __ATOMIC_SEQ_CST);

    if (i >= prof_heap_state.n) {
        prof_heap_state.n = i + 1;
    }

    prof_heap_choose();

    return PROF_OK;
}


static void
prof_heap_remove(prof_heap_t *h)
{
    uint32_t  i;

    for (i = 0; i < prof_heap_state.n; i++) {

        if (prof_heap_state.heaps[i] == h) {
            __atomic_store_n(&prof_heap_state.heaps[i], NULL,
                             __ATOMIC_SEQ_CST);
        }
    }

    if (--prof_heap_users == 0) {
        prof_heap_state.n = 0;
        prof_heap_thread()->owner = 0;
    }

    prof_heap_choose();
}


/* chooses the shortest interval: heaps of the process share samples */

static void
prof_heap_choose(void)
{
    uint32_t      i, n;
    uint64_t      interval;
    prof_heap_t  *h;

    n = 0;
    interval = 0;

    for (i = 0; i < prof_heap_state.n; i++) {
        h = prof_heap_state.heaps[i];

        if (h == NULL || !h->process) {
            continue;
        }

        if (n++ == 0 || h->interval < interval) {
            interval = h->interval;
        }
    }

    prof_heap_state.interval = interval;
    prof_heap_state.process = n;
}


/* called around the making of unwind tables, whose memory is not counted */

static void
prof_heap_tables(int begins)
{
    if (begins) {
        prof_heap_mute();

    } else {
        prof_heap_unmute();
    }
}


void
prof_heap_totals(prof_heap_t *h, prof_heap_totals_t *totals)
{
    memset(totals, 0, sizeof(prof_heap_totals_t));

    if (!prof_heap_lock(h)) {
        return;
    }

    totals->alloc_objects = h->sum.alloc_objects + 0.5;
    totals->alloc_space = h->sum.alloc_space + 0.5;
    totals->inuse_objects = h->sum.inuse_objects + 0.5;
    totals->inuse_space = h->sum.inuse_space + 0.5;
    totals->peak_objects = h->peak_objects + 0.5;
    totals->peak_space = h->peak_space + 0.5;

    prof_heap_unlock(h);
}
