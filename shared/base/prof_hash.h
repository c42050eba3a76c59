
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Hashes of numbers and texts, for tables in memory.  Hashes are not stored,
 * so they may differ between versions.  They do not resist keys that are
 * chosen to collide.
 *
 * Context: any, also a signal handler.
 */


#ifndef _PROF_HASH_H_INCLUDED_
#define _PROF_HASH_H_INCLUDED_


#include "base/prof_base.h"

#include <string.h>


/* the 64-bit golden ratio spreads the key; the upper half is mixed best */

static inline uint64_t
prof_hash(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15;
}


/* adds a number to a hash; all bits are mixed well */

static inline uint64_t
prof_hash_add(uint64_t hash, uint64_t key)
{
    hash = prof_hash(hash ^ key);

    return hash ^ (hash >> 32);
}


/* adds bytes to a hash, eight at a time, since signal handlers have no time */

static inline uint64_t
prof_hash_bytes(uint64_t hash, const void *data, size_t len)
{
    uint64_t              word;
    const unsigned char  *p;

    p = data;

    for ( /* void */ ; len >= sizeof(uint64_t); len -= sizeof(uint64_t)) {
        memcpy(&word, p, sizeof(uint64_t));
        p += sizeof(uint64_t);

        hash = prof_hash_add(hash, word);
    }

    /* the length distinguishes texts that differ in null bytes only */

    for (word = len; len; len--) {
        word = (word << 8) | *p++;
    }

    return prof_hash_add(hash, word);
}


static inline uint64_t
prof_hash_text(uint64_t hash, const char *s)
{
    return prof_hash_bytes(hash, s, strlen(s));
}


#endif /* _PROF_HASH_H_INCLUDED_ */
