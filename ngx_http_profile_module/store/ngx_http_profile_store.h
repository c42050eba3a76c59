
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The store: bounded storage of finished profiles, which all workers share.  A
 * configuration has one store for all servers, or no store.  The slices of the
 * continuous profile are in a store of their own.
 *
 * A stored profile is an entry.  It consists of facts, which lists and pages
 * show, and of the archive, from which prof_archive_read() makes a profile.
 * The facts are in shared memory.  The archives are in shared memory as well,
 * or in files if there is a "profile_store".  Both survive a reload, and files
 * also survive a restart.  When the store is full, the oldest entries are
 * removed, except for pinned ones.
 *
 * Context: any thread of a worker may call all functions.  Functions with
 * "Context: disk" read or write files.  They belong in a job
 * (ngx_http_profile_job.h) and not in the event loop, and so do functions that
 * copy an archive.  All functions wait only for the disk, for other writers,
 * and for the mutex of the zone.  The mutex is held only while facts, or 64
 * kilobytes of an archive, are copied.
 */


#ifndef _NGX_HTTP_PROFILE_STORE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_STORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_http.h"


/* messages to clients about a profile that is not stored */
#define NGX_HTTP_PROFILE_STORE_FULL    "does not fit in the store"
#define NGX_HTTP_PROFILE_STORE_FAILED  "the store failed, see the error log"


/*
 * Facts of a profile.  Texts are bytes that the client sent; long texts are
 * cut.  Times of the capture are in nanoseconds; waited is wall without the
 * turns.
 */

typedef struct {
    u_char       id[NGX_HTTP_PROFILE_ID_LEN];  /* lower-case hex digits */
    uint64_t     stored;        /* ms since the Epoch; 0: now */
    uint64_t     start;         /* of the capture, ms since the Epoch */
    ngx_str_t    scope;         /* "request", "endpoint", "worker", "all" */
    ngx_str_t    method;
    ngx_str_t    host;
    ngx_str_t    uri;
    uint32_t     status;        /* of the original response, 0: none */
    uint32_t     mode;          /* prof_mode_e */
    uint64_t     wall;
    uint64_t     cpu;
    uint64_t     waited;
    uint64_t     no_processor;  /* of times in turns; not in "object" */
    uint64_t     blocked;
    uint64_t     samples;
    uint64_t     allocated;     /* bytes; in the mode "object", or zero */
    uint64_t     allocations;
    uint64_t     in_use;        /* bytes */
    uint32_t     worker;        /* process id */
    unsigned     pinned:1;      /* ignored by ngx_http_profile_store_add() */
    uint64_t     order;         /* larger for newer entries; set in lists */
    size_t       size;          /* length of the archive, in bytes */
    u_char      *archive;       /* NULL in lists */
} ngx_http_profile_stored_t;


/*
 * Limits and use.  Sizes are bytes of complete entries: memory counts whole
 * blocks of the zone, files count their length.
 */

typedef struct {
    ngx_str_t    zone;          /* name */
    ngx_str_t    path;          /* empty: archives are in memory */
    size_t       memory_size;
    size_t       memory_used;
    uint64_t     disk_max;      /* 0: no limit, or no files */
    uint64_t     disk_used;
    time_t       inactive;      /* in seconds, 0: no limit */
    ngx_uint_t   entries;       /* the current number */
    ngx_uint_t   pinned;

    /* counters since the zone was made */

    uint64_t     added;
    uint64_t     evicted;       /* entries removed for newer ones */
    uint64_t     expired;       /* removed because of inactive= */
    uint64_t     deleted;       /* removed by requests */
    uint64_t     dropped;       /* did not fit */
    uint64_t     failed;        /* the disk failed */
    uint64_t     torn;          /* damaged, and removed */
} ngx_http_profile_store_stat_t;


PROF_HIDDEN_BEGIN

/* returns the store of the request's configuration, or NULL */
ngx_http_profile_store_t *ngx_http_profile_store(ngx_http_request_t *r);

/*
 * ngx_http_profile_store_conf.c: makes a store beside that of the
 * configuration, in memory, with this size in bytes.  Stores do not share
 * memory.  Returns NULL on errors, which are logged.  Context: nginx reads its
 * configuration.
 */
ngx_http_profile_store_t *ngx_http_profile_store_create(ngx_conf_t *cf,
    ngx_str_t *name, size_t size);

/*
 * Adds an entry with st->size bytes of st->archive, and copies all data.
 * Returns NGX_OK when all workers can read the entry, which survives the end
 * of this process; NGX_DECLINED if the entry does not fit; NGX_ERROR if the
 * disk failed.  Both errors are counted and logged.  An entry with the same id
 * is replaced.  Context: disk.
 */
ngx_int_t ngx_http_profile_store_add(ngx_http_profile_store_t *store,
    ngx_http_profile_stored_t *st, ngx_log_t *log);

/*
 * Replaces the entry that has the same id, in one step for all readers.  The
 * new entry has the age and the pin of the old one, and the same texts, which
 * ngx_http_profile_store_get() has returned.  On any error the old entry
 * stays.  Returns NGX_DECLINED if no entry has this id, NGX_BUSY if both
 * entries together do not fit in the store, NGX_ERROR if the disk failed
 * (logged).  Context: disk.
 */
ngx_int_t ngx_http_profile_store_replace(ngx_http_profile_store_t *store,
    ngx_http_profile_stored_t *st, ngx_log_t *log);

/*
 * Returns a copy of the entry with this id in one piece of memory, which
 * ngx_free() frees.  Only this function counts as reading, for "inactive".
 * Clients send the id, so it may contain any bytes.  Returns NGX_DECLINED if no
 * entry has this id, NGX_ABORT if the entry was damaged and is removed,
 * NGX_ERROR if memory is short or the disk failed. *st is set only on NGX_OK.
 * Context: disk.
 */
ngx_int_t ngx_http_profile_store_get(ngx_http_profile_store_t *store,
    ngx_str_t *id, ngx_http_profile_stored_t **st, ngx_log_t *log);

/* returns 1 if the store has a profile with this id; does not use the disk */
ngx_uint_t ngx_http_profile_store_has(ngx_http_profile_store_t *store,
    ngx_str_t *id);

/* works as ngx_http_profile_store_get(), without the archive and the disk */
ngx_int_t ngx_http_profile_store_find(ngx_http_profile_store_t *store,
    ngx_str_t *id, ngx_http_profile_stored_t **st, ngx_log_t *log);

/*
 * Returns the facts of at most max entries, the newest first, in a new array
 * of ngx_http_profile_stored_t.  If "before" is not 0, only entries with a
 * lower order are returned. *more is set if there are older entries.  Context:
 * no disk; the pool's thread.
 */
ngx_array_t *ngx_http_profile_store_list(ngx_http_profile_store_t *store,
    ngx_pool_t *pool, uint64_t before, ngx_uint_t max, ngx_uint_t *more);

/*
 * Deletes an entry, for all workers at once.  The next writer or the cache
 * manager removes its file soon.  Returns NGX_DECLINED if no entry has this
 * id.  Context: no disk.
 */
ngx_int_t ngx_http_profile_store_delete(ngx_http_profile_store_t *store,
    ngx_str_t *id);

/*
 * Pins or unpins an entry.  A pinned entry stays until it is deleted or
 * unpinned.  Returns NGX_DECLINED if no entry has this id, NGX_ERROR if the
 * entry's file does not have the change (logged).  Context: disk.
 */
ngx_int_t ngx_http_profile_store_pin(ngx_http_profile_store_t *store,
    ngx_str_t *id, ngx_uint_t pinned, ngx_log_t *log);

/*
 * Sets the facts that come from the profile, which are the members from mode
 * to in_use.  The caller sets waited, which depends on the scope of the
 * capture.
 */
void ngx_http_profile_store_measure(ngx_http_profile_stored_t *st,
    prof_profile_t *p);

void ngx_http_profile_store_stat(ngx_http_profile_store_t *store,
    ngx_http_profile_store_stat_t *stat);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_STORE_H_INCLUDED_ */
