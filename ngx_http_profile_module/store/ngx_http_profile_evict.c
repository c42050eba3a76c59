
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Frees space for a new entry: removes the oldest entries, except for pinned
 * ones.
 */


#include "store/ngx_http_profile_zone.h"


/* checked first, so no entry is removed for a profile that can never fit */

ngx_uint_t
ngx_http_profile_evict_none(ngx_http_profile_store_t *store, uint32_t blocks,
    uint64_t bytes, uint32_t keep)
{
    ngx_http_profile_node_t  *node;
    ngx_http_profile_zone_t  *zone;

    zone = store->zone;

    if (keep != NGX_HTTP_PROFILE_NONE) {
        node = ngx_http_profile_node(store, keep);

        if (!node->entry.pinned) {
            blocks += node->nblocks;
            bytes += node->bytes;
        }
    }

    return blocks > zone->nblocks - zone->pinned_blocks
           || (store->path
               && bytes + zone->pinned_bytes > (uint64_t) store->max);
}


ngx_int_t
ngx_http_profile_evict_make(ngx_http_profile_store_t *store, uint32_t blocks,
    uint32_t keep)
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

    if (keep != NGX_HTTP_PROFILE_NONE) {
        node = ngx_http_profile_node(store, keep);
        busy += node->entry.pinned ? 0 : node->nblocks;
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

        if (!node->entry.pinned && n != keep) {
            ngx_http_profile_zone_remove(store, n);
            store->zone->evicted++;

            ngx_log_debug1(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                           "profile: store evict, entry %uD", n);
        }
    }

    return NGX_OK;
}


/*
 * Files are removed without the lock.  So a process claims an entry before it
 * removes the file, and the entry counts until the file is removed.  This
 * function first claims entries that are to be removed and that no process has
 * claimed.  Then it claims the oldest entries until the new blocks and bytes
 * fit.  The limit in bytes is that of the store, or the used bytes if the disk
 * is full.  Returns the number of claimed entries.
 *
 * A killed process may have left a ready entry beside the unfinished entry
 * that was to replace it.  Both have the same file, which is kept.
 */

ngx_uint_t
ngx_http_profile_evict_claim(ngx_http_profile_store_t *store, uint32_t blocks,
    uint64_t bytes, uint64_t limit, uint32_t keep,
    ngx_http_profile_claim_t *claims, ngx_uint_t max)
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
            claims[k].shared = ngx_http_profile_zone_find(store,
                                                          node->entry.id)
                               != NGX_HTTP_PROFILE_NONE;
            ngx_memcpy(claims[k].id, node->entry.id,
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

        if (node->entry.pinned || n == keep) {
            continue;
        }

        nfree += node->nblocks;
        used -= node->bytes;

        claims[k].n = n;
        claims[k].writer = 0;
        claims[k].shared = 0;
        ngx_memcpy(claims[k].id, node->entry.id, NGX_HTTP_PROFILE_ID_LEN);
        k++;

        ngx_http_profile_zone_move(store, n, NGX_HTTP_PROFILE_REMOVING,
                                   ngx_http_profile_alive_self());
        store->zone->evicted++;

        ngx_log_debug1(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                       "profile: store evict, entry %uD and its file", n);
    }

    return k;
}
