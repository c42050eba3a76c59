
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Archives in memory.  They may be large, and other workers wait for the lock.
 * So the owner of the blocks writes an archive without the lock, and archives
 * are read in pieces.
 */


#include "store/ngx_http_profile_zone.h"


/* milliseconds to wait for other writers */
#define NGX_HTTP_PROFILE_MEMORY_WAIT   1000

/* bytes that are read while the lock is held */
#define NGX_HTTP_PROFILE_MEMORY_PIECE  65536


static ngx_int_t ngx_http_profile_memory_reserve(
    ngx_http_profile_store_t *store, ngx_str_t *parts, ngx_uint_t replace,
    uint32_t *n, ngx_http_profile_cursor_t *archive);


ngx_int_t
ngx_http_profile_memory_add(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_uint_t replace)
{
    uint32_t                   n, before;
    ngx_int_t                  rc;
    ngx_http_profile_entry_t  *entry;
    ngx_http_profile_cursor_t  archive;

    rc = ngx_http_profile_memory_reserve(store, parts, replace, &n, &archive);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_profile_zone_write(&archive,
                                parts[NGX_HTTP_PROFILE_PARTS - 1].data,
                                parts[NGX_HTTP_PROFILE_PARTS - 1].len);

    entry = (ngx_http_profile_entry_t *) parts[0].data;

    ngx_http_profile_zone_lock(store, 1);

    before = ngx_http_profile_zone_find(store, entry->id);

    if (!replace) {

        if (before != NGX_HTTP_PROFILE_NONE) {
            ngx_http_profile_zone_remove(store, before);
        }

        ngx_http_profile_zone_move(store, n, NGX_HTTP_PROFILE_READY, 0);
        store->zone->added++;

    } else if (before != NGX_HTTP_PROFILE_NONE) {
        ngx_http_profile_zone_replace(store, before, n);

    } else {
        ngx_http_profile_zone_remove(store, n);
        rc = NGX_DECLINED;
    }

    ngx_http_profile_zone_unlock(store);

    return rc;
}


static ngx_int_t
ngx_http_profile_memory_reserve(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_uint_t replace, uint32_t *n,
    ngx_http_profile_cursor_t *archive)
{
    size_t                     len;
    uint32_t                   blocks, keep;
    ngx_uint_t                 i, waited;
    ngx_http_profile_entry_t  *entry;

    entry = (ngx_http_profile_entry_t *) parts[0].data;
    keep = NGX_HTTP_PROFILE_NONE;

    len = offsetof(ngx_http_profile_node_t, entry);

    for (i = 0; i < NGX_HTTP_PROFILE_PARTS; i++) {
        len += parts[i].len;
    }

    blocks = ngx_http_profile_zone_blocks(len);

    for (waited = 0; waited < NGX_HTTP_PROFILE_MEMORY_WAIT; waited++) {

        ngx_http_profile_zone_lock(store, 1);

        if (replace) {
            keep = ngx_http_profile_zone_find(store, entry->id);

            if (keep == NGX_HTTP_PROFILE_NONE) {
                ngx_http_profile_zone_unlock(store);
                return NGX_DECLINED;
            }
        }

        if (ngx_http_profile_evict_none(store, blocks, 0, keep)) {
            ngx_http_profile_zone_unlock(store);
            break;
        }

        if (ngx_http_profile_evict_make(store, blocks, keep) == NGX_OK) {
            *n = ngx_http_profile_zone_insert(store, parts,
                                              NGX_HTTP_PROFILE_PARTS,
                                              NGX_HTTP_PROFILE_WRITING, 0,
                                              archive);

            ngx_http_profile_zone_unlock(store);

            return NGX_OK;
        }

        ngx_http_profile_zone_unlock(store);

        ngx_msleep(1);
    }

    if (replace) {
        return NGX_BUSY;
    }

    ngx_http_profile_zone_lock(store, 1);
    store->zone->dropped++;
    ngx_http_profile_zone_unlock(store);

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_profile_memory_read(ngx_http_profile_store_t *store, ngx_str_t *id,
    ngx_http_profile_stored_t **st, ngx_log_t *log)
{
    u_char                     *p;
    size_t                      texts, left, len;
    uint32_t                    n, now;
    uint64_t                    order;
    ngx_http_profile_node_t    *node;
    ngx_http_profile_entry_t    entry;
    ngx_http_profile_stored_t  *found;
    ngx_http_profile_cursor_t   cursor;

    ngx_http_profile_zone_lock(store, 0);

    n = ngx_http_profile_zone_touch(store, id);

    if (n == NGX_HTTP_PROFILE_NONE) {
        ngx_http_profile_zone_unlock(store);
        return NGX_DECLINED;
    }

    node = ngx_http_profile_node(store, n);

    order = node->order;
    entry = node->entry;

    ngx_http_profile_zone_unlock(store);

    texts = ngx_http_profile_entry_texts(&entry);
    left = texts + (size_t) entry.size;

    found = ngx_alloc(sizeof(ngx_http_profile_stored_t) + left, log);

    if (found == NULL) {
        return NGX_ERROR;
    }

    p = (u_char *) (found + 1);

    ngx_http_profile_zone_open(store, n, &cursor);

    for ( /* void */ ; left; left -= len, p += len) {

        len = ngx_min(left, NGX_HTTP_PROFILE_MEMORY_PIECE);

        ngx_http_profile_zone_lock(store, 0);

        /* the entry may have been replaced by another one meanwhile */

        now = ngx_http_profile_zone_lookup(store, id);

        if (now != n || node->order != order || node->entry.crc != entry.crc) {
            ngx_http_profile_zone_unlock(store);
            ngx_free(found);
            return (now == NGX_HTTP_PROFILE_NONE) ? NGX_DECLINED : NGX_AGAIN;
        }

        ngx_http_profile_zone_read(&cursor, p, len);

        ngx_http_profile_zone_unlock(store);
    }

    p = (u_char *) (found + 1);

    ngx_http_profile_entry_read(&entry, p, found);

    found->archive = p + texts;

    if (ngx_crc32_long(found->archive, found->size) != entry.archive_crc) {
        ngx_free(found);
        return NGX_ABORT;
    }

    *st = found;

    return NGX_OK;
}
