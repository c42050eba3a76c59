
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_map.h"
#include "base/prof_hash.h"

#include <stdlib.h>
#include <string.h>


#define PROF_MAP_MIN  64


static prof_map_slot_t *prof_map_slot(prof_map_slot_t *slots, size_t size,
    uint64_t key1, uint32_t key2);
static int prof_map_grow(prof_map_t *map);


void
prof_map_init(prof_map_t *map)
{
    memset(map, 0, sizeof(prof_map_t));
}


void
prof_map_free(prof_map_t *map)
{
    free(map->slots);
    prof_map_init(map);
}


uint32_t
prof_map_add(prof_map_t *map, uint64_t key1, uint32_t key2, uint32_t value)
{
    prof_map_slot_t  *slot;

    /* the table is at most half full */

    if (2 * map->n >= map->size && prof_map_grow(map) != PROF_OK) {
        return UINT32_MAX;
    }

    slot = prof_map_slot(map->slots, map->size, key1, key2);

    if (slot->value == 0) {
        slot->key1 = key1;
        slot->key2 = key2;
        slot->value = value + 1;
        map->n++;
    }

    return slot->value - 1;
}


uint32_t
prof_map_find(const prof_map_t *map, uint64_t key1, uint32_t key2)
{
    if (map->size == 0) {
        return UINT32_MAX;
    }

    /* a slot without a key has the value 0 */

    return prof_map_slot(map->slots, map->size, key1, key2)->value - 1;
}


/* returns the slot with the key, or the free slot for it */

static prof_map_slot_t *
prof_map_slot(prof_map_slot_t *slots, size_t size, uint64_t key1,
    uint32_t key2)
{
    size_t            i;
    uint64_t          hash;
    prof_map_slot_t  *slot;

    hash = prof_hash_add(prof_hash_add(0, key1), key2);

    for (i = hash; /* void */ ; i++) {
        slot = &slots[i & (size - 1)];

        if (slot->value == 0
            || (slot->key1 == key1 && slot->key2 == key2))
        {
            return slot;
        }
    }
}


static int
prof_map_grow(prof_map_t *map)
{
    size_t            i, size;
    prof_map_slot_t  *slot, *slots;

    size = map->size ? 2 * map->size : PROF_MAP_MIN;

    slots = calloc(size, sizeof(prof_map_slot_t));
    if (slots == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < map->size; i++) {

        if (map->slots[i].value) {
            slot = prof_map_slot(slots, size, map->slots[i].key1,
                                 map->slots[i].key2);
            *slot = map->slots[i];
        }
    }

    free(map->slots);

    map->slots = slots;
    map->size = size;

    return PROF_OK;
}
