
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Makes snapshots.  A new snapshot shares the blocks of objects that were
 * loaded before.  So loading an object costs the building of one block.
 *
 * With "remember", unloaded objects stay in the snapshot for addresses that
 * were sampled before.  Walks do not use them.
 *
 * Context: not in a signal.
 */


#include "base/prof_clock.h"
#include "unwind/prof_block.h"
#include "unwind/prof_object.h"
#include "unwind/prof_snapshot.h"

#include <stdlib.h>
#include <string.h>


/* retries if another thread loads an object meanwhile */
#define PROF_SNAPSHOT_TRIES  16

/* spare elements for objects that appear between counting and listing */
#define PROF_SNAPSHOT_SPARE  8

/* limits for remembered objects: their number, and their bytes */
#define PROF_SNAPSHOT_GONE   256
#define PROF_SNAPSHOT_BYTES  (8 * 1024 * 1024)


static prof_unwind_t *prof_snapshot_try(prof_snapshot_t *s, int *again);
static int prof_snapshot_object(void *data, const prof_object_info_t *object);
static const prof_range_t *prof_snapshot_known(const prof_unwind_t *old,
    const prof_object_info_t *object);
static int prof_snapshot_share(prof_snapshot_t *s);
static void prof_snapshot_drop(prof_snapshot_t *s);
static int prof_snapshot_compare(const void *one, const void *two);
static prof_unwind_t *prof_snapshot_make(prof_snapshot_t *s);
static uint32_t prof_snapshot_load(const prof_snapshot_t *s,
    const prof_found_t *found, prof_unwind_t *u);
static void prof_snapshot_gone(const prof_snapshot_t *s, prof_unwind_t *u,
    prof_range_t *to);
static int prof_snapshot_has(const prof_snapshot_t *s,
    const prof_range_t *range);
static void prof_snapshot_hold(prof_shared_t *shared);


static uint64_t  prof_snapshot_ids;


prof_unwind_t *
prof_unwind_create(void)
{
    return prof_unwind_update(NULL, 0);
}


prof_unwind_t *
prof_unwind_update(const prof_unwind_t *old, int remember)
{
    int               i, again;
    uint64_t          start;
    prof_unwind_t    *u;
    prof_snapshot_t  *s;

    s = malloc(sizeof(prof_snapshot_t));
    if (s == NULL) {
        return NULL;
    }

    start = prof_clock(CLOCK_MONOTONIC);
    again = 1;
    u = NULL;

    s->old = old;
    s->remember = remember && old;

    for (i = 0; i < PROF_SNAPSHOT_TRIES && again; i++) {
        u = prof_snapshot_try(s, &again);
    }

    free(s);

    if (u) {
        u->info.build_ns = prof_clock(CLOCK_MONOTONIC) - start;
    }

    return u;
}


static prof_unwind_t *
prof_snapshot_try(prof_snapshot_t *s, int *again)
{
    int             rc;
    prof_unwind_t  *u;

    *again = 0;

    s->n = 0;
    s->size = prof_object_count() + PROF_SNAPSHOT_SPARE;
    s->found = calloc(s->size, sizeof(prof_found_t));

    if (s->found == NULL) {
        return NULL;
    }

    u = NULL;
    rc = prof_object_list(&s->list, prof_snapshot_object, s);

    if (rc == PROF_OK && prof_snapshot_share(s) == PROF_OK) {
        u = prof_snapshot_make(s);

    } else {
        *again = (rc == PROF_LIMIT);
    }

    if (u == NULL) {
        prof_snapshot_drop(s);
    }

    free(s->found);

    return u;
}


/* called while the loader is locked */

static int
prof_snapshot_object(void *data, const prof_object_info_t *object)
{
    prof_snapshot_t *s = data;

    prof_found_t  *found;

    if (s->n == s->size) {
        return PROF_LIMIT;
    }

    found = &s->found[s->n];

    found->place = s->list.n;
    found->from = prof_snapshot_known(s->old, object);
    found->block = found->from ? found->from->shared->block
                               : prof_block_build(object);

    if (found->block == NULL) {
        return PROF_ERROR;
    }

    s->n++;

    return PROF_OK;
}


static const prof_range_t *
prof_snapshot_known(const prof_unwind_t *old, const prof_object_info_t *object)
{
    uint32_t             i;
    const prof_range_t  *range;

    if (old == NULL) {
        return NULL;
    }

    range = prof_table_range(old, object->pub.start);

    if (range && prof_block_of(range->shared->block, object)) {
        return range;
    }

    for (i = 0; i < old->info.unloaded; i++) {

        if (prof_block_of(old->gone[i].shared->block, object)) {
            return &old->gone[i];
        }
    }

    return NULL;
}


static int
prof_snapshot_share(prof_snapshot_t *s)
{
    uint32_t       i;
    prof_found_t  *found;

    for (i = 0; i < s->n; i++) {
        found = &s->found[i];

        if (found->from) {
            found->shared = found->from->shared;
            continue;
        }

        found->shared = malloc(sizeof(prof_shared_t));

        if (found->shared == NULL) {
            return PROF_ERROR;
        }

        found->shared->block = found->block;
        found->shared->refs = 0;
    }

    return PROF_OK;
}


/* frees the blocks that were built for an abandoned snapshot */

static void
prof_snapshot_drop(prof_snapshot_t *s)
{
    uint32_t  i;

    for (i = 0; i < s->n; i++) {

        if (s->found[i].from == NULL) {
            prof_block_free(s->found[i].block);
            free(s->found[i].shared);
        }
    }
}


static int
prof_snapshot_compare(const void *one, const void *two)
{
    uintptr_t            a, b;
    const prof_found_t  *first, *second;

    first = one;
    second = two;

    a = first->block->object.start;
    b = second->block->object.start;

    return (a > b) - (a < b);
}


static prof_unwind_t *
prof_snapshot_make(prof_snapshot_t *s)
{
    uint32_t             i, max;
    prof_range_t        *ranges;
    prof_unwind_t       *u;
    const prof_block_t  *block;

    qsort(s->found, s->n, sizeof(prof_found_t), prof_snapshot_compare);

    max = s->n;

    if (s->remember) {
        prof_snapshot_account(s);
        max += s->old->info.objects + s->old->info.unloaded;
    }

    u = calloc(1, sizeof(prof_unwind_t) + max * sizeof(prof_range_t));
    if (u == NULL) {
        return NULL;
    }

    ranges = (prof_range_t *) (u + 1);

    u->id = ++prof_snapshot_ids;
    u->ranges = ranges;
    u->gone = ranges + s->n;
    u->plain = 1;
    u->refs = 1;
    u->adds = s->list.adds;
    u->subs = s->list.subs;
    u->doubts = s->remember ? s->old->doubts + (s->unseen != 0) : 0;
    u->loads = s->remember ? s->old->loads : 0;
    u->info.objects = s->n;
    u->info.bytes = sizeof(prof_unwind_t) + max * sizeof(prof_range_t);

    for (i = 0; i < s->n; i++) {
        block = s->found[i].block;

        ranges[i].start = block->object.start;
        ranges[i].end = block->object.end;
        ranges[i].index = block->index;
        ranges[i].rows = block->rows;
        ranges[i].shared = s->found[i].shared;
        prof_snapshot_hold(ranges[i].shared);
        ranges[i].load = prof_snapshot_load(s, &s->found[i], u);
        ranges[i].age = prof_snapshot_age(s, &s->found[i]);

        if (ranges[i].load) {
            u->plain = 0;
        }

        u->info.rows += block->nrows;
        u->info.unsupported += block->unsupported;
        u->info.bytes += block->size;
    }

    if (s->remember) {
        prof_snapshot_gone(s, u, ranges + s->n);
    }

    return u;
}


/*
 * Returns the load of an object that was loaded while addresses are sampled.
 * Before, its place may have contained another object, or code without an
 * object.
 */

static uint32_t
prof_snapshot_load(const prof_snapshot_t *s, const prof_found_t *found,
    prof_unwind_t *u)
{
    if (!s->remember) {
        return 0;
    }

    if (found->same) {
        return found->from->load;
    }

    u->loads = u->loads % (PROF_LOAD_NONE - 1) + 1;

    return u->loads;
}


/* keeps unloaded objects; removes the oldest of them first */

static void
prof_snapshot_gone(const prof_snapshot_t *s, prof_unwind_t *u,
    prof_range_t *to)
{
    size_t                bytes;
    uint32_t              i, n;
    const prof_unwind_t  *old;

    old = s->old;
    n = 0;

    for (i = 0; i < old->info.unloaded; i++) {

        if (!prof_snapshot_has(s, &old->gone[i])) {
            to[n++] = old->gone[i];
        }
    }

    for (i = 0; i < old->info.objects; i++) {

        if (!prof_snapshot_has(s, &old->ranges[i])) {
            to[n] = old->ranges[i];
            to[n++].gone = u->id;
        }
    }

    bytes = 0;

    for (i = n; i > 0; i--) {
        bytes += to[i - 1].shared->block->size;

        if (n - i == PROF_SNAPSHOT_GONE || bytes > PROF_SNAPSHOT_BYTES) {
            break;
        }

        prof_snapshot_hold(to[i - 1].shared);
    }

    u->gone = to + i;
    u->info.unloaded = n - i;

    if (n) {
        u->plain = 0;
    }
}


static int
prof_snapshot_has(const prof_snapshot_t *s, const prof_range_t *range)
{
    uint32_t  i;

    for (i = 0; i < s->n; i++) {

        if (s->found[i].from == range && s->found[i].same) {
            return 1;
        }
    }

    return 0;
}


/* the caller holds the old snapshot, which keeps the block until this call */

static void
prof_snapshot_hold(prof_shared_t *shared)
{
    (void) __atomic_add_fetch(&shared->refs, 1, __ATOMIC_RELAXED);
}
