
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "heap/prof_live.h"


static uintptr_t *prof_live_address(const prof_live_t *l,
    const prof_live_block_t *block);


size_t
prof_live_size(uint32_t n)
{
    return n * (sizeof(prof_live_bucket_t)
                + PROF_LIVE_BUCKET * sizeof(prof_live_block_t))
           + PROF_LIVE_SEEN / 8;
}


void
prof_live_init(prof_live_t *l, void *mem, uint32_t n)
{
    l->buckets = mem;
    l->blocks = (prof_live_block_t *) (l->buckets + n);
    l->seen = (uint64_t *) (l->blocks + n * PROF_LIVE_BUCKET);
    l->mask = n - 1;
    l->n = 0;
}


prof_live_block_t *
prof_live_reserve(prof_live_t *l, uintptr_t address)
{
    uint32_t              i, k, home;
    prof_live_bucket_t   *bucket;

    home = prof_live_hash(address) & l->mask;

    for (k = 0; k <= PROF_LIVE_NEXT; k++) {
        bucket = &l->buckets[(home + k) & l->mask];

        for (i = 0; i < PROF_LIVE_BUCKET; i++) {

            if (bucket->addresses[i] == 0) {
                return &l->blocks[(bucket - l->buckets) * PROF_LIVE_BUCKET
                                  + i];
            }
        }
    }

    return NULL;
}


void
prof_live_commit(prof_live_t *l, prof_live_block_t *block, uintptr_t address)
{
    uint32_t  hash, home;

    hash = prof_live_hash(address);
    home = hash & l->mask;

    *prof_live_seen(l, hash) |= (uint64_t) 1 << hash % 64;

    if ((block - l->blocks) / PROF_LIVE_BUCKET != home) {
        l->buckets[home].away++;
    }

    l->n++;

    /* pairs with the load in prof_live_search() */

    __atomic_store_n(prof_live_address(l, block), address, __ATOMIC_RELEASE);
}


void
prof_live_remove(prof_live_t *l, prof_live_block_t *block, uintptr_t address)
{
    uint32_t  home;

    home = prof_live_hash(address) & l->mask;

    __atomic_store_n(prof_live_address(l, block), 0, __ATOMIC_RELEASE);

    if ((block - l->blocks) / PROF_LIVE_BUCKET != home) {
        l->buckets[home].away--;
    }

    l->n--;
}


void
prof_live_rename(prof_live_t *l, prof_live_block_t *block, uintptr_t address)
{
    __atomic_store_n(prof_live_address(l, block), address, __ATOMIC_RELEASE);
}


prof_live_block_t *
prof_live_search(const prof_live_t *l, uint32_t hash, uintptr_t address)
{
    uint32_t             i, k, n, home;
    prof_live_bucket_t  *bucket;

    home = hash & l->mask;

    n = __atomic_load_n(&l->buckets[home].away, __ATOMIC_RELAXED)
        ? PROF_LIVE_NEXT : 0;

    for (k = 0; k <= n; k++) {
        bucket = &l->buckets[(home + k) & l->mask];

        for (i = 0; i < PROF_LIVE_BUCKET; i++) {

            if (__atomic_load_n(&bucket->addresses[i], __ATOMIC_ACQUIRE)
                == address)
            {
                return &l->blocks[(bucket - l->buckets) * PROF_LIVE_BUCKET
                                  + i];
            }
        }
    }

    return NULL;
}


static uintptr_t *
prof_live_address(const prof_live_t *l, const prof_live_block_t *block)
{
    uint32_t  i;

    i = block - l->blocks;

    return &l->buckets[i / PROF_LIVE_BUCKET].addresses[i % PROF_LIVE_BUCKET];
}
