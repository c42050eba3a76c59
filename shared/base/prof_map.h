
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A hash table from pairs of numbers to numbers, that grows.
 *
 * Context: any thread, one at a time; not in a signal.
 */


#ifndef _PROF_MAP_H_INCLUDED_
#define _PROF_MAP_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    uint64_t          key1;
    uint32_t          key2;
    uint32_t          value;    /* the one that was told, plus one; 0: empty */
} prof_map_slot_t;


typedef struct {
    prof_map_slot_t  *slots;    /* owned */
    size_t            size;     /* a power of two, or 0 */
    size_t            n;
} prof_map_t;


PROF_HIDDEN_BEGIN

void prof_map_init(prof_map_t *map);
void prof_map_free(prof_map_t *map);

/*
 * The value of a key.  A key that is not there yet gets the value that is
 * told, which is below UINT32_MAX.  Returns UINT32_MAX when memory is short.
 */
uint32_t prof_map_add(prof_map_t *map, uint64_t key1, uint32_t key2,
    uint32_t value);

/* the value of a key, or UINT32_MAX if it is not there */
uint32_t prof_map_find(const prof_map_t *map, uint64_t key1, uint32_t key2);

PROF_HIDDEN_END


#endif /* _PROF_MAP_H_INCLUDED_ */
