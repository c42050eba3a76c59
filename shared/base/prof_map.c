
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_map.h"
#include "base/prof_hash.h"

#include <stdlib.h>
#include <string.h>


#define PROF_MAP_MIN  64


static prof_map_bucket_t *prof_map_bucket(prof_map_bucket_t *buckets,
    size_t size, uint64_t key1, uint32_t key2);
static int prof_map_grow(prof_map_t *map);


void
prof_map_init(prof_map_t *map)
{
    memset(map, 0, sizeof(prof_map_t));
}


void
prof_map_free(prof_map_t *map)
{
    free(map->buckets);
    prof_map_init(map);
}


uint32_t
prof_map_add(prof_map_t *map, uint64_t key1, uint32_t key2, uint32_t value)
{
    prof_map_bucket_t  *bucket;

    /* the table is at most half full */

    if (2 * map->n >= map->size && prof_map_grow(map) != PROF_OK) {
        return UINT32_MAX;
    }

    bucket = prof_map_bucket(map->buckets, map->size, key1, key2);

    if (bucket->value == 0) {
        bucket->key1 = key1;
        bucket->key2 = key2;
        bucket->value = value + 1;
        map->n++;
    }

    return bucket->value - 1;
}


uint32_t
prof_map_find(const prof_map_t *map, uint64_t key1, uint32_t key2)
{
    if (map->size == 0) {
        return UINT32_MAX;
    }

    /* a bucket without a key has the value 0 */

    return prof_map_bucket(map->buckets, map->size, key1, key2)->value - 1;
}


/* returns the bucket with the key, or the free bucket for it */

static prof_map_bucket_t *
prof_map_bucket(prof_map_bucket_t *buckets, size_t size, uint64_t key1,
    uint32_t key2)
{
    size_t              i;
    uint64_t            hash;
    prof_map_bucket_t  *bucket;

    hash = prof_hash_add(prof_hash_add(0, key1), key2);

    for (i = hash; /* void */ ; i++) {
        bucket = &buckets[i & (size - 1)];

        if (bucket->value == 0
            || (bucket->key1 == key1 && bucket->key2 == key2))
        {
            return bucket;
        }
    }
}


static int
prof_map_grow(prof_map_t *map)
{
    size_t              i, size;
    prof_map_bucket_t  *bucket, *buckets;

    size = map->size ? 2 * map->size : PROF_MAP_MIN;

    buckets = calloc(size, sizeof(prof_map_bucket_t));
    if (buckets == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < map->size; i++) {

        if (map->buckets[i].value) {
            bucket = prof_map_bucket(buckets, size, map->buckets[i].key1,
                                     map->buckets[i].key2);
            *bucket = map->buckets[i];
        }
    }

    free(map->buckets);

    map->buckets = buckets;
    map->size = size;

    return PROF_OK;
}
