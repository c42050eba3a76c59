
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads files of the directory that are not in the zone.  When nginx starts,
 * these are all files.  Later, these are files of processes with another zone,
 * which end after a reload or an upgrade.  The heads of the files are read.
 * Files are removed if they are incomplete, do not fit, or were left
 * unfinished by a process that has ended.  Files with other names, and files
 * of another version of the module, are not touched.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "store/ngx_http_profile_zone.h"

#include <sys/file.h>


/*
 * Maximum age of an unfinished file on file systems without locks, in seconds.
 */
#define NGX_HTTP_PROFILE_WRITE_TIME  60

/*
 * The cache manager does not read a file that was written less than this number
 * of seconds ago: its writer may be about to make the entry ready.
 */
#define NGX_HTTP_PROFILE_NEW_TIME    5


typedef struct {
    uint64_t  stored;
    uint32_t  pinned;
    u_char    id[NGX_HTTP_PROFILE_ID_LEN];
} ngx_http_profile_found_t;


static void ngx_http_profile_load_dir(ngx_http_profile_store_t *store,
    ngx_array_t *found, ngx_log_t *log);
static void ngx_http_profile_load_name(ngx_http_profile_store_t *store,
    u_char *p, size_t len, ngx_array_t *found, ngx_log_t *log);
static ngx_uint_t ngx_http_profile_load_other(u_char *name);
static ngx_int_t ngx_http_profile_load_remove(u_char *name, ngx_log_t *log);
static void ngx_http_profile_load_failed(ngx_http_profile_log_limit_t *line,
    const char *what, u_char *name, ngx_log_t *log);
static ngx_uint_t ngx_http_profile_load_known(
    ngx_http_profile_store_t *store, u_char *id);
static void ngx_http_profile_load_left(ngx_http_profile_store_t *store,
    u_char *id, uint32_t writer);
static ngx_int_t ngx_http_profile_load_head(ngx_http_profile_store_t *store,
    u_char *id, ngx_http_profile_entry_t *entry, u_char *texts);
static void ngx_http_profile_load_insert(ngx_http_profile_store_t *store,
    ngx_http_profile_found_t *found, ngx_log_t *log);
static int ngx_libc_cdecl ngx_http_profile_load_compare(const void *one,
    const void *two);


void
ngx_http_profile_load(ngx_http_profile_store_t *store, ngx_log_t *log)
{
    ngx_uint_t                 i, n;
    ngx_pool_t                *pool;
    ngx_array_t               *array;
    ngx_http_profile_found_t  *found;

    n = 0;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, log);
    if (pool == NULL) {
        return;
    }

    array = ngx_array_create(pool, 64, sizeof(ngx_http_profile_found_t));

    if (array) {
        ngx_http_profile_load_dir(store, array, log);

        n = array->nelts;

        found = array->elts;

        ngx_qsort(found, array->nelts, sizeof(ngx_http_profile_found_t),
                  ngx_http_profile_load_compare);

        for (i = 0; i < n; i++) {
            ngx_http_profile_load_insert(store, &found[i], log);
        }

        if (n) {

            /* sorts entries by age, since the newest file was added first */

            ngx_http_profile_zone_lock(store, 1);
            ngx_http_profile_zone_check(store);
            ngx_http_profile_zone_unlock(store);
        }
    }

    ngx_destroy_pool(pool);

    if (n) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "profile: %ui profiles found in \"%V\"",
                      n, &store->path->name);
    }
}


static void
ngx_http_profile_load_dir(ngx_http_profile_store_t *store, ngx_array_t *found,
    ngx_log_t *log)
{
    ngx_dir_t  dir;

    if (ngx_open_dir(&store->path->name, &dir) == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                      "profile: opendir() \"%V\" failed", &store->path->name);
        return;
    }

    while (ngx_read_dir(&dir) == NGX_OK) {
        ngx_http_profile_load_name(store, ngx_de_name(&dir),
                                   ngx_de_namelen(&dir), found, log);
    }

    (void) ngx_close_dir(&dir);
}


static void
ngx_http_profile_load_name(ngx_http_profile_store_t *store, u_char *p,
    size_t len, ngx_array_t *found, ngx_log_t *log)
{
    size_t                     i;
    ngx_int_t                  rc, writer;
    ngx_file_info_t            fi;
    ngx_http_profile_found_t  *f;
    ngx_http_profile_entry_t   entry;
    u_char                     name[NGX_MAX_PATH];
    u_char                     texts[NGX_HTTP_PROFILE_MAX_TEXTS];

    static ngx_http_profile_log_limit_t  unread;

    for (i = 0; i < len; i++) {
        if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f'))) {
            break;
        }
    }

    if (i != NGX_HTTP_PROFILE_ID_LEN) {
        return;
    }

    if (len > i) {
        writer = ngx_atoi(p + i + 1, len - i - 1);

        if (p[i] == '.' && writer > 0) {
            ngx_http_profile_load_left(store, p, (uint32_t) writer);
        }

        return;
    }

    ngx_http_profile_file_path(store, p, 0, name);

    if (ngx_http_profile_load_known(store, p)
        || (ngx_process == NGX_PROCESS_HELPER
            && ngx_file_info(name, &fi) != NGX_FILE_ERROR
            && ngx_file_mtime(&fi) + NGX_HTTP_PROFILE_NEW_TIME > ngx_time()))
    {
        return;
    }

    rc = ngx_http_profile_load_head(store, p, &entry, texts);

    if (rc == NGX_ERROR) {
        ngx_http_profile_load_failed(&unread, "read", name, log);
        return;
    }

    if (rc == NGX_ABORT && ngx_http_profile_load_other(name)) {
        return;
    }

    if (rc == NGX_ABORT
        && ngx_http_profile_load_remove(name, log) == NGX_OK)
    {
        ngx_http_profile_zone_lock(store, 1);
        store->zone->torn++;
        ngx_http_profile_zone_unlock(store);

        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "profile: removed the damaged profile \"%s\"", name);
    }

    if (rc != NGX_OK) {
        return;
    }

    f = ngx_array_push(found);

    if (f) {
        f->stored = entry.stored;
        f->pinned = entry.pinned;
        ngx_memcpy(f->id, entry.id, NGX_HTTP_PROFILE_ID_LEN);
    }
}


/*
 * Returns whether a module with another layout of these files has written the
 * file.  That module may use the same directory, or come back.
 */

static ngx_uint_t
ngx_http_profile_load_other(u_char *name)
{
    size_t      len;
    ngx_fd_t    fd;
    ngx_uint_t  other;
    u_char      magic[NGX_HTTP_PROFILE_MAGIC_LEN];

    fd = open((char *) name, O_RDONLY|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC);

    if (fd == NGX_INVALID_FILE) {
        return 0;
    }

    len = sizeof(magic) - 1;

    other = read(fd, magic, sizeof(magic)) == (ssize_t) sizeof(magic)
            && ngx_memcmp(magic, NGX_HTTP_PROFILE_MAGIC, len) == 0
            && magic[len] >= '0' && magic[len] <= '9'
            && magic[len] != NGX_HTTP_PROFILE_MAGIC[len];

    (void) ngx_close_file(fd);

    return other;
}


/* a file that stays in the directory is found again by each search */

static ngx_int_t
ngx_http_profile_load_remove(u_char *name, ngx_log_t *log)
{
    static ngx_http_profile_log_limit_t  left;

    if (ngx_delete_file(name) != NGX_FILE_ERROR || ngx_errno == NGX_ENOENT) {
        return NGX_OK;
    }

    ngx_http_profile_load_failed(&left, "remove", name, log);

    return NGX_ERROR;
}


static void
ngx_http_profile_load_failed(ngx_http_profile_log_limit_t *line,
    const char *what, u_char *name, ngx_log_t *log)
{
    ngx_err_t   err;
    ngx_uint_t  omitted;

    err = ngx_errno;

    if (ngx_http_profile_log_limit(line, &omitted) == NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, log, err,
                      "profile: cannot %s \"%s\", %ui more not logged",
                      what, name, omitted);
    }
}


/* returns whether a list of the zone has the entry */

static ngx_uint_t
ngx_http_profile_load_known(ngx_http_profile_store_t *store, u_char *id)
{
    uint32_t                  n;
    ngx_http_profile_node_t  *node;

    ngx_http_profile_zone_lock(store, 0);

    n = ngx_http_profile_zone_find(store, id);

    if (n == NGX_HTTP_PROFILE_NONE) {

        for (n = store->zone->removed.oldest;
             n != NGX_HTTP_PROFILE_NONE;
             n = node->newer)
        {
            node = ngx_http_profile_node(store, n);

            if (ngx_memcmp(node->entry.id, id, NGX_HTTP_PROFILE_ID_LEN)
                == 0)
            {
                break;
            }
        }
    }

    ngx_http_profile_zone_unlock(store);

    return n != NGX_HTTP_PROFILE_NONE;
}


/*
 * Removes an unfinished file if its writer has ended.  A writer holds a lock
 * on its file, which also works between processes of different containers.
 */

static void
ngx_http_profile_load_left(ngx_http_profile_store_t *store, u_char *id,
    uint32_t writer)
{
    ngx_fd_t         fd;
    ngx_uint_t       left;
    ngx_file_info_t  fi;
    u_char           name[NGX_MAX_PATH];

    ngx_http_profile_file_path(store, id, writer, name);

    fd = open((char *) name, O_RDONLY|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC);

    if (fd == NGX_INVALID_FILE) {
        return;
    }

    if (flock(fd, LOCK_EX|LOCK_NB) == 0) {
        left = 1;

    } else {
        left = ngx_errno != EWOULDBLOCK
               && ngx_fd_info(fd, &fi) != NGX_FILE_ERROR
               && ngx_file_mtime(&fi) + NGX_HTTP_PROFILE_WRITE_TIME
                  <= ngx_time();
    }

    if (left) {
        (void) ngx_delete_file(name);
    }

    (void) ngx_close_file(fd);
}


static ngx_int_t
ngx_http_profile_load_head(ngx_http_profile_store_t *store, u_char *id,
    ngx_http_profile_entry_t *entry, u_char *texts)
{
    ngx_fd_t   fd;
    ngx_int_t  rc;

    rc = ngx_http_profile_file_open(store, id, entry, texts, &fd);

    if (rc == NGX_OK) {
        (void) ngx_close_file(fd);
    }

    return rc;
}


static void
ngx_http_profile_load_insert(ngx_http_profile_store_t *store,
    ngx_http_profile_found_t *found, ngx_log_t *log)
{
    uint32_t                  n;
    uint64_t                  bytes, stored;
    ngx_http_profile_node_t  *node;
    ngx_http_profile_entry_t  entry;
    ngx_str_t                 parts[2];
    u_char                    name[NGX_MAX_PATH];
    u_char                    texts[NGX_HTTP_PROFILE_MAX_TEXTS];

    if (ngx_http_profile_load_head(store, found->id, &entry, texts)
        != NGX_OK)
    {
        return;
    }

    parts[0].data = (u_char *) &entry;
    parts[0].len = sizeof(ngx_http_profile_entry_t);
    parts[1].data = texts;
    parts[1].len = ngx_http_profile_entry_texts(&entry);

    bytes = parts[0].len + parts[1].len + entry.size;
    n = NGX_HTTP_PROFILE_NONE;

    ngx_http_profile_zone_lock(store, 1);

    if (store->zone->bytes + bytes <= (uint64_t) store->max) {
        n = ngx_http_profile_zone_insert(store, parts, 2,
                                         NGX_HTTP_PROFILE_READY, bytes, NULL);
    }

    if (n != NGX_HTTP_PROFILE_NONE) {
        node = ngx_http_profile_node(store, n);

        /* a clock may have been wrong when the file was written */

        stored = ngx_min(entry.stored, ngx_http_profile_zone_now());

        node->order = stored;
        node->touched = (uint32_t) (stored / 1000);

        store->zone->order = ngx_max(store->zone->order, stored);
    }

    ngx_http_profile_zone_unlock(store);

    if (n != NGX_HTTP_PROFILE_NONE) {
        return;
    }

    ngx_http_profile_file_path(store, found->id, 0, name);

    if (ngx_http_profile_load_remove(name, log) == NGX_OK) {
        ngx_http_profile_zone_lock(store, 1);
        store->zone->evicted++;
        ngx_http_profile_zone_unlock(store);
    }
}


/* orders files: those that stay if the store is full come first */

static int ngx_libc_cdecl
ngx_http_profile_load_compare(const void *one, const void *two)
{
    const ngx_http_profile_found_t  *first, *second;

    first = one;
    second = two;

    if (first->pinned != second->pinned) {
        return first->pinned ? -1 : 1;
    }

    return (first->stored < second->stored) - (first->stored > second->stored);
}
