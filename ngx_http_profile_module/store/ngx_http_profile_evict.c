
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Room for a new entry: the oldest ones go, but not those that are pinned.
 */


#include "store/ngx_http_profile_zone.h"


/* nothing is thrown away for what would not fit in the end */

ngx_uint_t
ngx_http_profile_evict_none(ngx_http_profile_store_t *store, uint32_t blocks,
    uint64_t bytes)
{
    ngx_http_profile_zone_t  *zone;

    zone = store->zone;

    return blocks > zone->nblocks - zone->pinned_blocks
           || (store->path
               && bytes + zone->pinned_bytes > (uint64_t) store->max);
}


ngx_int_t
ngx_http_profile_evict_make(ngx_http_profile_store_t *store, uint32_t blocks)
{
    uint32_t                  n, newer, busy;
    ngx_http_profile_node_t  *node;

    busy = 0;

    for (n = store->zone->removed.oldest; n != NGX_HTTP_PROFILE_NONE;
         n = newer)
    {
        node = ngx_http_profile_node(store, n);
        newer = node->newer;

        if (!ngx_http_profile_alive(node->owner)) {
            ngx_http_profile_zone_remove(store, n);

        } else {
            busy += node->nblocks;
        }
    }

    if (blocks > store->zone->nblocks - store->zone->pinned_blocks - busy) {
        return NGX_AGAIN;
    }

    for (n = store->zone->ready.oldest;
         n != NGX_HTTP_PROFILE_NONE && store->zone->nfree < blocks;
         n = newer)
    {
        node = ngx_http_profile_node(store, n);
        newer = node->newer;

        if (!node->record.pinned) {
            ngx_http_profile_zone_remove(store, n);
            store->zone->evicted++;
        }
    }

    return NGX_OK;
}


/*
 * Files are removed without the lock, so who removes one claims it before, and
 * it counts until it is gone.  Claims what nobody removes yet, and then, if
 * there is not room for so many blocks and bytes, the oldest ones; limit is
 * that of the store, or of a disk that is full.  Returns how many were claimed.
 */

ngx_uint_t
ngx_http_profile_evict_claim(ngx_http_profile_store_t *store, uint32_t blocks,
    uint64_t bytes, uint64_t limit, ngx_http_profile_claim_t *claims,
    ngx_uint_t max)
{
    uint32_t                  n, newer;
    uint64_t                  nfree, used;
    ngx_uint_t                k, abandoned;
    ngx_http_profile_node_t  *node;

    k = 0;
    nfree = store->zone->nfree;
    used = store->zone->bytes;

    for (n = store->zone->removed.oldest; n != NGX_HTTP_PROFILE_NONE;
         n = newer)
    {
        node = ngx_http_profile_node(store, n);
        newer = node->newer;

        abandoned = !ngx_http_profile_alive(node->owner);

        if (abandoned || node->state == NGX_HTTP_PROFILE_REMOVING) {
            nfree += node->nblocks;
            used -= node->bytes;
        }

        if (abandoned && k < max) {
            claims[k].n = n;
            claims[k].writer = ngx_http_profile_alive_pid(node->owner);
            ngx_memcpy(claims[k].id, node->record.id,
                       NGX_HTTP_PROFILE_ID_LEN);
            k++;

            node->owner = ngx_http_profile_alive_self();
            node->state = NGX_HTTP_PROFILE_REMOVING;
        }
    }

    for (n = store->zone->ready.oldest;
         n != NGX_HTTP_PROFILE_NONE && k < max
         && (nfree < blocks || used + bytes > limit);
         n = newer)
    {
        node = ngx_http_profile_node(store, n);
        newer = node->newer;

        if (node->record.pinned) {
            continue;
        }

        nfree += node->nblocks;
        used -= node->bytes;

        claims[k].n = n;
        claims[k].writer = 0;
        ngx_memcpy(claims[k].id, node->record.id, NGX_HTTP_PROFILE_ID_LEN);
        k++;

        ngx_http_profile_zone_move(store, n, NGX_HTTP_PROFILE_REMOVING,
                                   ngx_http_profile_alive_self());
        store->zone->evicted++;
    }

    return k;
}
