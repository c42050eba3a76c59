
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Archives in files.  A profile is one file in a directory, named by its id
 * (ngx_http_profile_file.c).
 *
 * Files are written and removed without the lock.  The zone counts a file
 * before it exists, and until it is removed.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "store/ngx_http_profile_zone.h"


/* the maximum number of files that are removed at a time */
#define NGX_HTTP_PROFILE_CLAIMS  16

/* maximum number of bytes that are removed for each new byte on a full disk */
#define NGX_HTTP_PROFILE_FULL    8

/* milliseconds to wait for other processes that remove files */
#define NGX_HTTP_PROFILE_WAIT    5000

/* interval of the cache manager, in milliseconds */
#define NGX_HTTP_PROFILE_SWEEP   1000

/* ms between the cache manager's searches for files of other processes */
#define NGX_HTTP_PROFILE_SEARCH  10000

/* the longest time between two looks for unused profiles, in milliseconds */
#define NGX_HTTP_PROFILE_EXPIRE  10000


static ngx_int_t ngx_http_profile_files_reserve(
    ngx_http_profile_store_t *store, ngx_str_t *parts, uint64_t bytes,
    ngx_uint_t replace, uint32_t *n);
static ngx_int_t ngx_http_profile_files_replaced(
    ngx_http_profile_store_t *store, ngx_http_profile_entry_t *entry,
    uint32_t n, ngx_log_t *log);
static ngx_int_t ngx_http_profile_files_full(ngx_http_profile_store_t *store,
    ngx_str_t *parts, uint64_t bytes, ngx_log_t *log);
static void ngx_http_profile_files_remove(ngx_http_profile_store_t *store,
    ngx_http_profile_claim_t *claims, ngx_uint_t n);
static void ngx_http_profile_files_expire(ngx_http_profile_store_t *store);


ngx_int_t
ngx_http_profile_files_add(ngx_http_profile_store_t *store, ngx_str_t *parts,
    ngx_uint_t replace, ngx_log_t *log)
{
    uint32_t    n;
    uint64_t    bytes;
    ngx_int_t   rc;
    ngx_uint_t  i;

    bytes = 0;

    for (i = 0; i < NGX_HTTP_PROFILE_PARTS; i++) {
        bytes += parts[i].len;
    }

    rc = ngx_http_profile_files_reserve(store, parts, bytes, replace, &n);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_profile_file_write(store, parts, log);

    if (rc == NGX_DECLINED) {
        rc = replace ? NGX_BUSY
                     : ngx_http_profile_files_full(store, parts, bytes, log);
    }

    if (replace && rc == NGX_OK) {
        return ngx_http_profile_files_replaced(store,
                               (ngx_http_profile_entry_t *) parts[0].data, n,
                               log);
    }

    ngx_http_profile_zone_lock(store, 1);

    if (rc == NGX_OK) {
        ngx_http_profile_zone_move(store, n, NGX_HTTP_PROFILE_READY, 0);
        store->zone->added++;

    } else {
        ngx_http_profile_zone_remove(store, n);
        store->zone->failed++;
    }

    ngx_http_profile_zone_unlock(store);

    return rc;
}


/*
 * Replaces the old entry after the new file has replaced the old file.  If the
 * old entry was deleted or evicted meanwhile, this function removes the new
 * file, because no other code would.
 */

static ngx_int_t
ngx_http_profile_files_replaced(ngx_http_profile_store_t *store,
    ngx_http_profile_entry_t *entry, uint32_t n, ngx_log_t *log)
{
    uint32_t  before, pinned;
    u_char    name[NGX_MAX_PATH];

    ngx_http_profile_zone_lock(store, 1);

    before = ngx_http_profile_zone_find(store, entry->id);

    if (before == NGX_HTTP_PROFILE_NONE) {
        ngx_http_profile_zone_unlock(store);

        ngx_http_profile_file_path(store, entry->id, 0, name);
        (void) ngx_delete_file(name);

        ngx_http_profile_zone_lock(store, 1);
        ngx_http_profile_zone_remove(store, n);
        ngx_http_profile_zone_unlock(store);

        return NGX_DECLINED;
    }

    ngx_http_profile_zone_replace(store, before, n);

    pinned = ngx_http_profile_node(store, n)->entry.pinned;

    ngx_http_profile_zone_unlock(store);

    /* the entry may have been pinned or unpinned after the file was written */

    if (pinned != entry->pinned) {
        (void) ngx_http_profile_files_pin(store, entry->id, pinned, log);
    }

    return NGX_OK;
}


/*
 * Another process may pin or unpin the same entry, and its write may come
 * before this one.  So each writer looks at the entry again after its write.
 */

ngx_int_t
ngx_http_profile_files_pin(ngx_http_profile_store_t *store, u_char *id,
    ngx_uint_t pinned, ngx_log_t *log)
{
    uint32_t    n;
    ngx_uint_t  written;

    do {
        if (ngx_http_profile_file_pin(store, id, pinned, log) != NGX_OK) {
            return NGX_ERROR;
        }

        written = pinned;

        ngx_http_profile_zone_lock(store, 0);

        n = ngx_http_profile_zone_find(store, id);

        if (n != NGX_HTTP_PROFILE_NONE) {
            pinned = ngx_http_profile_node(store, n)->entry.pinned;
        }

        ngx_http_profile_zone_unlock(store);

    } while (pinned != written);

    return NGX_OK;
}


/*
 * Creates an unfinished entry if it fits.  Returns NGX_DECLINED and NGX_BUSY
 * as ngx_http_profile_store_add() and _replace() do.
 */

static ngx_int_t
ngx_http_profile_files_reserve(ngx_http_profile_store_t *store,
    ngx_str_t *parts, uint64_t bytes, ngx_uint_t replace, uint32_t *n)
{
    uint32_t                   before, blocks, keep;
    ngx_uint_t                 k, waited;
    ngx_http_profile_entry_t  *entry;
    ngx_http_profile_claim_t   claims[NGX_HTTP_PROFILE_CLAIMS];

    entry = (ngx_http_profile_entry_t *) parts[0].data;

    blocks = ngx_http_profile_zone_blocks(sizeof(ngx_http_profile_node_t)
                               + ngx_http_profile_entry_texts(entry));

    for (waited = 0; waited < NGX_HTTP_PROFILE_WAIT; /* void */ ) {

        ngx_http_profile_zone_lock(store, 1);

        before = ngx_http_profile_zone_find(store, entry->id);
        keep = replace ? before : NGX_HTTP_PROFILE_NONE;

        if (replace && keep == NGX_HTTP_PROFILE_NONE) {
            ngx_http_profile_zone_unlock(store);
            return NGX_DECLINED;
        }

        if (ngx_http_profile_evict_none(store, blocks, bytes, keep)) {
            ngx_http_profile_zone_unlock(store);
            break;
        }

        if (before != keep) {
            ngx_http_profile_zone_move(store, before,
                                       NGX_HTTP_PROFILE_REMOVING, 0);

        } else if (store->zone->bytes + bytes <= (uint64_t) store->max) {

            *n = ngx_http_profile_zone_insert(store, parts,
                                              NGX_HTTP_PROFILE_PARTS - 1,
                                              NGX_HTTP_PROFILE_WRITING, bytes,
                                              NULL);

            if (*n != NGX_HTTP_PROFILE_NONE) {
                ngx_http_profile_zone_unlock(store);
                return NGX_OK;
            }
        }

        k = ngx_http_profile_evict_claim(store, blocks, bytes, store->max,
                                        keep, claims,
                                        NGX_HTTP_PROFILE_CLAIMS);

        ngx_http_profile_zone_unlock(store);

        if (k) {
            ngx_http_profile_files_remove(store, claims, k);

        } else {
            ngx_msleep(1);
            waited++;
        }
    }

    if (replace) {
        return NGX_BUSY;
    }

    ngx_http_profile_zone_lock(store, 1);
    store->zone->dropped++;
    ngx_http_profile_zone_unlock(store);

    return NGX_DECLINED;
}


/*
 * Called when the disk is full.  The oldest profiles are removed, as for the
 * store's own limit.  No profile is removed if removing all of them would not
 * be enough.  The number of removed bytes is limited, because other programs
 * may fill the freed space.
 */

static ngx_int_t
ngx_http_profile_files_full(ngx_http_profile_store_t *store,
    ngx_str_t *parts, uint64_t bytes, ngx_log_t *log)
{
    uint64_t                  used, least;
    ngx_int_t                 rc;
    ngx_uint_t                k, gone, omitted;
    ngx_http_profile_claim_t  claims[NGX_HTTP_PROFILE_CLAIMS];

    /*
     * Messages about profiles that were stored and about profiles that were
     * not stored have limits of their own.
     */

    static ngx_http_profile_log_limit_t  lines[2];

    gone = 0;
    least = 0;

    do {
        ngx_http_profile_zone_lock(store, 1);

        used = store->zone->bytes;

        if (gone == 0) {
            least = (used > NGX_HTTP_PROFILE_FULL * bytes)
                    ? used - NGX_HTTP_PROFILE_FULL * bytes : 0;
        }

        /* the used bytes include the bytes of the new entry */

        k = (used > least && used - store->zone->pinned_bytes >= 2 * bytes)
            ? ngx_http_profile_evict_claim(store, 0, bytes, used,
                                          NGX_HTTP_PROFILE_NONE, claims,
                                          NGX_HTTP_PROFILE_CLAIMS)
            : 0;

        ngx_http_profile_zone_unlock(store);

        ngx_http_profile_files_remove(store, claims, k);

        gone += k;
        rc = k ? ngx_http_profile_file_write(store, parts, log)
               : NGX_DECLINED;

    } while (rc == NGX_DECLINED && k);

    if (ngx_http_profile_log_limit(&lines[rc == NGX_OK], &omitted) == NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, log, NGX_ENOSPC,
                      "profile: the disk of \"%V\" is full, %ui profiles were "
                      "removed, the new one was %sstored, %ui more not logged",
                      &store->path->name, gone, rc == NGX_OK ? "" : "not ",
                      omitted);
    }

    return (rc == NGX_DECLINED) ? NGX_ERROR : rc;
}


/* removes claimed files, and then their entries */

static void
ngx_http_profile_files_remove(ngx_http_profile_store_t *store,
    ngx_http_profile_claim_t *claims, ngx_uint_t n)
{
    ngx_err_t   err;
    ngx_uint_t  i, omitted;
    u_char      name[NGX_MAX_PATH];

    static ngx_http_profile_log_limit_t  line;

    for (i = 0; i < n; i++) {

        if (claims[i].writer) {
            ngx_http_profile_file_path(store, claims[i].id, claims[i].writer,
                                        name);
            (void) ngx_delete_file(name);
        }

        if (claims[i].shared) {
            continue;
        }

        ngx_http_profile_file_path(store, claims[i].id, 0, name);

        if (ngx_delete_file(name) != NGX_FILE_ERROR) {
            continue;
        }

        err = ngx_errno;

        if (err != NGX_ENOENT
            && ngx_http_profile_log_limit(&line, &omitted) == NGX_OK)
        {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, err,
                          "profile: unlink() \"%s\" failed, %ui more not "
                          "logged", name, omitted);
        }
    }

    ngx_http_profile_zone_lock(store, 1);

    for (i = 0; i < n; i++) {
        ngx_http_profile_zone_remove(store, claims[i].n);
    }

    ngx_http_profile_zone_unlock(store);
}


/* runs in nginx's cache manager */

ngx_msec_t
ngx_http_profile_files_manager(void *data)
{
    ngx_http_profile_store_t *store = data;

    ngx_uint_t                n;
    ngx_http_profile_claim_t  claims[NGX_HTTP_PROFILE_CLAIMS];

    if (store->inactive) {
        ngx_http_profile_files_expire(store);
    }

    do {
        ngx_http_profile_zone_lock(store, 1);
        n = ngx_http_profile_evict_claim(store, 0, 0, store->max,
                                        NGX_HTTP_PROFILE_NONE, claims,
                                        NGX_HTTP_PROFILE_CLAIMS);
        ngx_http_profile_zone_unlock(store);

        ngx_http_profile_files_remove(store, claims, n);

    } while (n == NGX_HTTP_PROFILE_CLAIMS && !ngx_quit && !ngx_terminate);

    if (store->searched == 0
        || ngx_current_msec - store->searched >= NGX_HTTP_PROFILE_SEARCH)
    {
        store->searched = ngx_current_msec;
        ngx_http_profile_load(store, ngx_cycle->log);
    }

    return NGX_HTTP_PROFILE_SWEEP;
}


static void
ngx_http_profile_files_expire(ngx_http_profile_store_t *store)
{
    time_t                    now;
    uint32_t                  n, newer, k;
    uint64_t                  order;
    ngx_http_profile_node_t  *node;

    if (ngx_current_msec - store->swept
        < (ngx_msec_t) ngx_min(store->inactive / 4 * 1000,
                               NGX_HTTP_PROFILE_EXPIRE))
    {
        return;
    }

    store->swept = ngx_current_msec;
    now = ngx_time();

    ngx_http_profile_zone_lock(store, 1);

    for (n = store->zone->ready.oldest, k = 1; n != NGX_HTTP_PROFILE_NONE;
         n = newer, k++)
    {
        node = ngx_http_profile_node(store, n);

        /* others get the lock; if the entry has gone, the next look goes on */

        if (k % NGX_HTTP_PROFILE_PIECE == 0) {
            order = node->order;

            ngx_http_profile_zone_unlock(store);
            ngx_http_profile_zone_lock(store, 1);

            if (!ngx_http_profile_zone_has(store, n, order)) {
                break;
            }
        }

        newer = node->newer;

        /* the clock of the day may have been ahead, and was set right */

        if ((time_t) node->touched > now) {
            node->touched = (uint32_t) now;
        }

        if (!node->entry.pinned
            && now - (time_t) node->touched >= store->inactive)
        {
            ngx_http_profile_zone_move(store, n, NGX_HTTP_PROFILE_REMOVING,
                                       0);
            store->zone->expired++;
        }
    }

    ngx_http_profile_zone_unlock(store);
}
