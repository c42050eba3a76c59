
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A growing hash table from pairs of numbers to numbers.
 *
 * Context: any thread, one at a time; not in a signal.
 */


#ifndef _PROF_MAP_H_INCLUDED_
#define _PROF_MAP_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    uint64_t          key1;
    uint32_t          key2;
    uint32_t          value;    /* the value plus one; 0: no key */
} prof_map_bucket_t;


typedef struct {
    prof_map_bucket_t  *buckets;   /* owned */
    size_t              size;      /* a power of two, or 0 */
    size_t              n;
} prof_map_t;


PROF_HIDDEN_BEGIN

void prof_map_init(prof_map_t *map);
void prof_map_free(prof_map_t *map);

/*
 * Returns the value of a key.  A new key is added with the given value, which
 * is below UINT32_MAX.  Returns UINT32_MAX if memory is short.
 */
uint32_t prof_map_add(prof_map_t *map, uint64_t key1, uint32_t key2,
    uint32_t value);

/* returns the value of a key, or UINT32_MAX for an unknown key */
uint32_t prof_map_find(const prof_map_t *map, uint64_t key1, uint32_t key2);

PROF_HIDDEN_END


#endif /* _PROF_MAP_H_INCLUDED_ */
