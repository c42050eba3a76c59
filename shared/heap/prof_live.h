
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Blocks of memory that are allocated and not freed yet, by address.  A bucket
 * is one cache line: seven addresses, and the number of addresses that belong
 * here but are in one of the next buckets.
 *
 * Most addresses that are looked up are unknown.  Each of PROF_LIVE_SEEN bits
 * tells whether a part of the address space ever had a block.  These bits are
 * few, so they stay in the processor's first cache.
 *
 * The caller provides the memory at the start; it never grows.  Blocks are not
 * moved.
 *
 * Context: prof_live_find() any thread at any time; all other functions under
 * the lock of the table's owner.  A thread that frees a block finds it if the
 * block was added before the thread got its address.
 */


#ifndef _PROF_LIVE_H_INCLUDED_
#define _PROF_LIVE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_hash.h"


#define PROF_LIVE_BUCKET  7

#define PROF_LIVE_SEEN    (64 * 1024)

/* buckets that are searched for a place, after the first one */
#define PROF_LIVE_NEXT    7


typedef struct {
    uint64_t              size;     /* bytes */
    double                weight;   /* number of blocks in the sum */
    uint32_t              node;
} prof_live_block_t;


typedef struct {
    uintptr_t             addresses[PROF_LIVE_BUCKET];
    uint64_t              away;
} prof_live_bucket_t;


typedef struct {
    prof_live_bucket_t   *buckets;
    prof_live_block_t    *blocks;   /* PROF_LIVE_BUCKET for each bucket */
    uint64_t             *seen;
    uint32_t              mask;     /* number of buckets - 1 */
    uint32_t              n;
} prof_live_t;


PROF_HIDDEN_BEGIN

/* returns the size of a table of n buckets in bytes; n is a power of 2 */
size_t prof_live_size(uint32_t n);

/* mem is zero and aligned to 64 */
void prof_live_init(prof_live_t *l, void *mem, uint32_t n);

/* returns a block by address, or NULL; hash is prof_live_hash(address) */
prof_live_block_t *prof_live_search(const prof_live_t *l, uint32_t hash,
    uintptr_t address);

/* returns a free place for a new block, or NULL if the table is full */
prof_live_block_t *prof_live_reserve(prof_live_t *l, uintptr_t address);

/* called when the block is complete: from now on it is found */
void prof_live_commit(prof_live_t *l, prof_live_block_t *block,
    uintptr_t address);

void prof_live_remove(prof_live_t *l, prof_live_block_t *block,
    uintptr_t address);

/* changes the address of a block to another address of its bucket */
void prof_live_rename(prof_live_t *l, prof_live_block_t *block,
    uintptr_t address);

PROF_HIDDEN_END


/* ignores the lowest four bits: two blocks are at least 16 bytes apart */

static inline uint32_t
prof_live_hash(uintptr_t address)
{
    return (uint32_t) (prof_hash(address >> 4) >> 32);
}


/* returns the word with the hash's bit, which is bit hash % 64 */

static inline uint64_t *
prof_live_seen(const prof_live_t *l, uint32_t hash)
{
    return &l->seen[hash / 64 % (PROF_LIVE_SEEN / 64)];
}


static inline prof_live_block_t *
prof_live_find(const prof_live_t *l, uintptr_t address)
{
    uint32_t  hash;

    hash = prof_live_hash(address);

    if (!(__atomic_load_n(prof_live_seen(l, hash), __ATOMIC_RELAXED)
          & (uint64_t) 1 << hash % 64))
    {
        return NULL;
    }

    return prof_live_search(l, hash, address);
}


#endif /* _PROF_LIVE_H_INCLUDED_ */
