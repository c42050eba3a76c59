
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The public functions of the store.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "store/ngx_http_profile_zone.h"


static ngx_int_t ngx_http_profile_store_write(ngx_http_profile_store_t *store,
    ngx_http_profile_stored_t *st, ngx_uint_t replace, ngx_log_t *log);
static void ngx_http_profile_store_damaged(ngx_http_profile_store_t *store,
    u_char *id, ngx_log_t *log);


ngx_http_profile_store_t *
ngx_http_profile_store(ngx_http_request_t *r)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    return pmcf->store;
}


ngx_int_t
ngx_http_profile_store_add(ngx_http_profile_store_t *store,
    ngx_http_profile_stored_t *st, ngx_log_t *log)
{
    ngx_int_t   rc;
    ngx_uint_t  omitted;

    static ngx_http_profile_log_limit_t  line;

    rc = ngx_http_profile_store_write(store, st, 0, log);

    if (rc == NGX_DECLINED
        && ngx_http_profile_log_limit(&line, &omitted) == NGX_OK)
    {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "profile: %*s of %uz bytes does not fit in the store, "
                      "%ui more not logged", (size_t) NGX_HTTP_PROFILE_ID_LEN,
                      st->id, st->size, omitted);
    }

    return rc;
}


ngx_int_t
ngx_http_profile_store_replace(ngx_http_profile_store_t *store,
    ngx_http_profile_stored_t *st, ngx_log_t *log)
{
    return ngx_http_profile_store_write(store, st, 1, log);
}


static ngx_int_t
ngx_http_profile_store_write(ngx_http_profile_store_t *store,
    ngx_http_profile_stored_t *st, ngx_uint_t replace, ngx_log_t *log)
{
    ngx_int_t                 rc;
    ngx_http_profile_entry_t  entry;
    ngx_str_t                 parts[NGX_HTTP_PROFILE_PARTS];

    ngx_http_profile_entry_make(&entry, st, &parts[1]);

    if (replace) {
        entry.pinned = st->pinned;
    }

    parts[0].data = (u_char *) &entry;
    parts[0].len = sizeof(ngx_http_profile_entry_t);

    parts[5].data = st->archive;
    parts[5].len = st->size;

    rc = store->path ? ngx_http_profile_files_add(store, parts, replace, log)
                     : ngx_http_profile_memory_add(store, parts, replace);

    ngx_log_debug5(NGX_LOG_DEBUG_CORE, log, 0,
                   "profile: store %s %*s, %uz bytes: %i",
                   replace ? "replace" : "add",
                   (size_t) NGX_HTTP_PROFILE_ID_LEN, st->id, st->size, rc);

    return rc;
}


ngx_int_t
ngx_http_profile_store_get(ngx_http_profile_store_t *store, ngx_str_t *id,
    ngx_http_profile_stored_t **st, ngx_log_t *log)
{
    ngx_int_t                   rc;
    ngx_http_profile_stored_t  *facts;

    if (store->path == NULL) {

        do {
            rc = ngx_http_profile_memory_read(store, id, st, log);
        } while (rc == NGX_AGAIN);

        if (rc == NGX_ABORT) {
            ngx_http_profile_store_damaged(store, id->data, log);
        }

        return rc;
    }

    rc = ngx_http_profile_store_find(store, id, &facts, log);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_profile_file_read(store, facts->id, st, log);

    if (rc == NGX_OK) {
        (*st)->pinned = facts->pinned;

        ngx_http_profile_zone_lock(store, 0);
        (void) ngx_http_profile_zone_touch(store, id);
        ngx_http_profile_zone_unlock(store);

    } else if (rc != NGX_ERROR) {
        ngx_http_profile_store_damaged(store, facts->id, log);
    }

    ngx_free(facts);

    return rc;
}


ngx_uint_t
ngx_http_profile_store_has(ngx_http_profile_store_t *store, ngx_str_t *id)
{
    uint32_t  n;

    ngx_http_profile_zone_lock(store, 0);

    n = ngx_http_profile_zone_lookup(store, id);

    ngx_http_profile_zone_unlock(store);

    return n != NGX_HTTP_PROFILE_NONE;
}


ngx_int_t
ngx_http_profile_store_find(ngx_http_profile_store_t *store, ngx_str_t *id,
    ngx_http_profile_stored_t **st, ngx_log_t *log)
{
    u_char                     *texts;
    size_t                      len;
    uint32_t                    n;
    ngx_http_profile_node_t    *node;
    ngx_http_profile_cursor_t   cursor;

    ngx_http_profile_zone_lock(store, 0);

    n = ngx_http_profile_zone_lookup(store, id);

    if (n == NGX_HTTP_PROFILE_NONE) {
        ngx_http_profile_zone_unlock(store);
        return NGX_DECLINED;
    }

    node = ngx_http_profile_node(store, n);

    len = ngx_http_profile_entry_texts(&node->entry);

    *st = ngx_alloc(sizeof(ngx_http_profile_stored_t) + len, log);

    if (*st == NULL) {
        ngx_http_profile_zone_unlock(store);
        return NGX_ERROR;
    }

    texts = (u_char *) (*st + 1);

    ngx_http_profile_zone_open(store, n, &cursor);
    ngx_http_profile_zone_read(&cursor, texts, len);

    ngx_http_profile_entry_read(&node->entry, texts, *st);

    ngx_http_profile_zone_unlock(store);

    (*st)->archive = NULL;

    return NGX_OK;
}


/* removes an entry that is damaged, or whose file is missing */

static void
ngx_http_profile_store_damaged(ngx_http_profile_store_t *store, u_char *data,
    ngx_log_t *log)
{
    uint32_t   n;
    ngx_str_t  id;

    id.data = data;
    id.len = NGX_HTTP_PROFILE_ID_LEN;

    ngx_http_profile_zone_lock(store, 1);

    n = ngx_http_profile_zone_lookup(store, &id);

    if (n != NGX_HTTP_PROFILE_NONE) {
        store->zone->torn++;

        ngx_http_profile_log(NGX_LOG_ERR, log, 0,
                             "profile: the stored profile %V is damaged", &id);

        if (store->path) {
            ngx_http_profile_zone_move(store, n, NGX_HTTP_PROFILE_REMOVING,
                                       0);

        } else {
            ngx_http_profile_zone_remove(store, n);
        }
    }

    ngx_http_profile_zone_unlock(store);
}


/*
 * The event loop takes the lock as well, so it is released after each piece.
 * If the next entry has gone meanwhile, the list continues with the entries
 * that are older than the last visited one, searched from the newest one.
 */

ngx_array_t *
ngx_http_profile_store_list(ngx_http_profile_store_t *store, ngx_pool_t *pool,
    uint64_t before, ngx_uint_t max, ngx_uint_t *more)
{
    u_char                     *texts;
    size_t                      len;
    uint32_t                    n, k;
    uint64_t                    order;
    ngx_array_t                *list;
    ngx_http_profile_node_t    *node;
    ngx_http_profile_cursor_t   cursor;
    ngx_http_profile_stored_t  *st;

    *more = 0;

    n = ngx_min(max, store->zone->entries);
    list = ngx_array_create(pool, ngx_max(n, 1),
                            sizeof(ngx_http_profile_stored_t));
    if (list == NULL) {
        return NULL;
    }

    ngx_http_profile_zone_lock(store, 0);

    n = store->zone->ready.newest;

    for (k = 1; n != NGX_HTTP_PROFILE_NONE; n = node->older, k++) {

        node = ngx_http_profile_node(store, n);

        if (k % NGX_HTTP_PROFILE_PIECE == 0) {
            order = node->order;

            ngx_http_profile_zone_unlock(store);
            ngx_http_profile_zone_lock(store, 0);

            if (!ngx_http_profile_zone_has(store, n, order)) {
                n = store->zone->ready.newest;

                if (n == NGX_HTTP_PROFILE_NONE) {
                    break;
                }

                node = ngx_http_profile_node(store, n);
            }
        }

        if (before && node->order >= before) {
            continue;
        }

        if (list->nelts == max) {
            *more = 1;
            break;
        }

        before = node->order;
        len = ngx_http_profile_entry_texts(&node->entry);

        st = ngx_array_push(list);
        texts = ngx_pnalloc(pool, len ? len : 1);

        if (st == NULL || texts == NULL) {
            list = NULL;
            break;
        }

        ngx_http_profile_zone_open(store, n, &cursor);
        ngx_http_profile_zone_read(&cursor, texts, len);

        ngx_http_profile_entry_read(&node->entry, texts, st);
        st->order = node->order;
        st->archive = NULL;
    }

    ngx_http_profile_zone_unlock(store);

    return list;
}


ngx_int_t
ngx_http_profile_store_delete(ngx_http_profile_store_t *store, ngx_str_t *id)
{
    uint32_t  n;

    ngx_http_profile_zone_lock(store, 1);

    n = ngx_http_profile_zone_lookup(store, id);

    if (n != NGX_HTTP_PROFILE_NONE) {
        store->zone->deleted++;

        if (store->path) {
            ngx_http_profile_zone_move(store, n, NGX_HTTP_PROFILE_REMOVING,
                                       0);

        } else {
            ngx_http_profile_zone_remove(store, n);
        }
    }

    ngx_http_profile_zone_unlock(store);

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "profile: store delete %V, found: %d",
                   id, n != NGX_HTTP_PROFILE_NONE);

    return (n == NGX_HTTP_PROFILE_NONE) ? NGX_DECLINED : NGX_OK;
}


ngx_int_t
ngx_http_profile_store_pin(ngx_http_profile_store_t *store, ngx_str_t *id,
    ngx_uint_t pinned, ngx_log_t *log)
{
    uint32_t  n;

    pinned = pinned ? 1 : 0;

    ngx_http_profile_zone_lock(store, 1);

    n = ngx_http_profile_zone_lookup(store, id);

    if (n != NGX_HTTP_PROFILE_NONE) {
        ngx_http_profile_zone_pin(store, n, pinned);
    }

    ngx_http_profile_zone_unlock(store);

    ngx_log_debug3(NGX_LOG_DEBUG_CORE, log, 0,
                   "profile: store pin %V: %ui, found: %d",
                   id, pinned, n != NGX_HTTP_PROFILE_NONE);

    if (n == NGX_HTTP_PROFILE_NONE) {
        return NGX_DECLINED;
    }

    return store->path ? ngx_http_profile_files_pin(store, id->data, pinned,
                                                    log)
                       : NGX_OK;
}


void
ngx_http_profile_store_measure(ngx_http_profile_stored_t *st,
    prof_profile_t *p)
{
    st->mode = p->mode;
    st->wall = p->wall;
    st->cpu = p->cpu;
    st->no_processor = p->stats.no_processor_ns;
    st->blocked = p->stats.blocked_ns;
    st->samples = p->stats.samples;
    st->allocated = prof_measure_total(p, PROF_MEASURE_ALLOC_SPACE);
    st->allocations = prof_measure_total(p, PROF_MEASURE_ALLOC_OBJECTS);
    st->in_use = prof_measure_total(p, PROF_MEASURE_INUSE_SPACE);
}


void
ngx_http_profile_store_stat(ngx_http_profile_store_t *store,
    ngx_http_profile_store_stat_t *stat)
{
    ngx_http_profile_zone_t  *zone;

    ngx_memzero(stat, sizeof(ngx_http_profile_store_stat_t));

    stat->zone = store->name;
    stat->inactive = store->inactive;

    if (store->path) {
        stat->path = store->path->name;
        stat->disk_max = store->max;
    }

    ngx_http_profile_zone_lock(store, 0);

    zone = store->zone;

    stat->memory_size = (size_t) zone->nblocks * NGX_HTTP_PROFILE_BLOCK;
    stat->memory_used = (size_t) (zone->nblocks - zone->nfree)
                        * NGX_HTTP_PROFILE_BLOCK;
    stat->disk_used = zone->bytes;
    stat->entries = zone->entries;
    stat->pinned = zone->pinned;
    stat->added = zone->added;
    stat->evicted = zone->evicted;
    stat->expired = zone->expired;
    stat->deleted = zone->deleted;
    stat->dropped = zone->dropped;
    stat->failed = zone->failed;
    stat->torn = zone->torn;

    ngx_http_profile_zone_unlock(store);
}
