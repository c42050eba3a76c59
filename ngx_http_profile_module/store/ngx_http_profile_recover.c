
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Makes the parts of the zone besides its entries: in a new zone, and after a
 * worker was killed while it changed the zone.  Incomplete entries are
 * removed.
 */


#include "store/ngx_http_profile_zone.h"


static ngx_uint_t ngx_http_profile_zone_whole(ngx_http_profile_store_t *store,
    uint32_t n);
static void ngx_http_profile_zone_use(ngx_http_profile_store_t *store,
    uint32_t n);
static void ngx_http_profile_zone_free_blocks(ngx_http_profile_store_t *store);
static void ngx_http_profile_zone_sort(ngx_http_profile_store_t *store,
    uint32_t count);
static void ngx_http_profile_zone_add(ngx_http_profile_store_t *store,
    uint32_t n);
static int ngx_libc_cdecl ngx_http_profile_zone_compare(const void *one,
    const void *two);


/* an entry, and its place among the others */

typedef struct {
    uint64_t  order;
    uint32_t  n;
} ngx_http_profile_place_t;


/* a process may be killed at any point of it; the next one restarts */

void
ngx_http_profile_zone_check(ngx_http_profile_store_t *store)
{
    uint32_t                  n, count, *links;
    ngx_http_profile_zone_t  *zone;

    zone = store->zone;
    links = store->links;

    zone->changing = 1;
    ngx_memory_barrier();

    for (n = 0; n < zone->nblocks; n++) {
        links[n] &= ~NGX_HTTP_PROFILE_USED;
    }

    count = 0;

    for (n = 0; n < zone->nblocks; n++) {

        if (!(links[n] & NGX_HTTP_PROFILE_HEAD)) {
            continue;
        }

        if (ngx_http_profile_zone_whole(store, n)) {
            ngx_http_profile_zone_use(store, n);
            count++;

        } else {
            links[n] &= ~NGX_HTTP_PROFILE_HEAD;
            zone->torn++;
        }
    }

    ngx_http_profile_zone_free_blocks(store);
    ngx_http_profile_zone_sort(store, count);

    ngx_memory_barrier();
    zone->changing = 0;
}


/* the data that is read here is not trusted */

static ngx_uint_t
ngx_http_profile_zone_whole(ngx_http_profile_store_t *store, uint32_t n)
{
    size_t                      len;
    uint32_t                    k, next;
    ngx_http_profile_node_t    *node;
    ngx_http_profile_cursor_t   cursor;
    u_char                      texts[NGX_HTTP_PROFILE_MAX_TEXTS];

    node = ngx_http_profile_node(store, n);
    len = ngx_http_profile_entry_texts(&node->entry);

    if (len > NGX_HTTP_PROFILE_MAX_TEXTS
        || node->entry.size > NGX_MAX_SIZE_T_VALUE / 2)
    {
        return 0;
    }

    len += sizeof(ngx_http_profile_node_t)
           + (node->bytes ? 0 : node->entry.size);

    if (node->nblocks != ngx_http_profile_zone_blocks(len)) {
        return 0;
    }

    next = n;

    for (k = node->nblocks; k; k--) {

        if (next >= store->zone->nblocks
            || (store->links[next] & NGX_HTTP_PROFILE_USED)
            || (next != n && (store->links[next] & NGX_HTTP_PROFILE_HEAD)))
        {
            return 0;
        }

        next = ngx_http_profile_next(store->links[next]);
    }

    if (next != NGX_HTTP_PROFILE_NONE) {
        return 0;
    }

    ngx_http_profile_zone_open(store, n, &cursor);
    ngx_http_profile_zone_read(&cursor, texts,
                              ngx_http_profile_entry_texts(&node->entry));

    return ngx_http_profile_entry_valid(&node->entry, texts) == NGX_OK;
}


static void
ngx_http_profile_zone_use(ngx_http_profile_store_t *store, uint32_t n)
{
    for ( /* void */ ;
         n != NGX_HTTP_PROFILE_NONE;
         n = ngx_http_profile_next(store->links[n]))
    {
        store->links[n] |= NGX_HTTP_PROFILE_USED;
    }
}


static void
ngx_http_profile_zone_free_blocks(ngx_http_profile_store_t *store)
{
    uint32_t                  n;
    ngx_http_profile_zone_t  *zone;

    zone = store->zone;

    zone->free = NGX_HTTP_PROFILE_NONE;
    zone->nfree = 0;

    for (n = zone->nblocks; n; /* void */ ) {
        n--;

        if (!(store->links[n] & NGX_HTTP_PROFILE_USED)) {
            store->links[n] = zone->free;
            zone->free = n;
            zone->nfree++;
        }
    }
}


/*
 * Makes the lists, the hash and the sums.  Without memory to sort the entries,
 * their age is their place in the zone.
 */

static void
ngx_http_profile_zone_sort(ngx_http_profile_store_t *store, uint32_t count)
{
    uint32_t                   n, i;
    ngx_http_profile_node_t   *node;
    ngx_http_profile_zone_t   *zone;
    ngx_http_profile_place_t  *places;

    zone = store->zone;
    places = count ? ngx_alloc(count * sizeof(ngx_http_profile_place_t),
                               ngx_cycle->log)
                   : NULL;

    zone->entries = 0;
    zone->busy = 0;
    zone->pinned = 0;
    zone->pinned_blocks = 0;
    zone->pinned_bytes = 0;
    zone->bytes = 0;
    zone->ready.newest = NGX_HTTP_PROFILE_NONE;
    zone->ready.oldest = NGX_HTTP_PROFILE_NONE;
    zone->removed = zone->ready;

    for (n = 0; n < zone->nbuckets; n++) {
        store->buckets[n] = NGX_HTTP_PROFILE_NONE;
    }

    for (n = 0, i = 0; n < zone->nblocks; n++) {

        if (!(store->links[n] & NGX_HTTP_PROFILE_HEAD)) {
            continue;
        }

        if (places == NULL) {
            ngx_http_profile_zone_add(store, n);
            continue;
        }

        places[i].order = ngx_http_profile_node(store, n)->order;
        places[i++].n = n;
    }

    if (places == NULL) {
        return;
    }

    ngx_qsort(places, count, sizeof(ngx_http_profile_place_t),
              ngx_http_profile_zone_compare);

    for (i = 0; i < count; i++) {
        node = ngx_http_profile_node(store, places[i].n);

        /*
         * makes each order unique: orders from files are multiples of a
         * millisecond
         */

        if (i && places[i].order <= places[i - 1].order) {
            places[i].order = places[i - 1].order + 1;
        }

        node->order = places[i].order;
        zone->order = ngx_max(zone->order, node->order);

        ngx_http_profile_zone_add(store, places[i].n);
    }

    ngx_free(places);
}


/* an entry that was being replaced exists twice, and both are complete */

static void
ngx_http_profile_zone_add(ngx_http_profile_store_t *store, uint32_t n)
{
    uint32_t  before;

    before = ngx_http_profile_zone_find(store,
                                  ngx_http_profile_node(store, n)->entry.id);

    ngx_http_profile_zone_link(store, n);

    if (before != NGX_HTTP_PROFILE_NONE
        && ngx_http_profile_node(store, n)->state == NGX_HTTP_PROFILE_READY)
    {
        ngx_http_profile_zone_remove(store, before);
    }
}


static int ngx_libc_cdecl
ngx_http_profile_zone_compare(const void *one, const void *two)
{
    const ngx_http_profile_place_t  *first, *second;

    first = one;
    second = two;

    return (first->order > second->order) - (first->order < second->order);
}
