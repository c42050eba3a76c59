
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The store: the bounded home of finished profiles, which all workers share.
 * There is one or none in a configuration, for all servers together.
 *
 * A stored profile is an entry: a few facts, which lists and pages show, and
 * the archive, which prof_archive_read() makes a profile of.  The facts are in
 * shared memory.  The archives are there as well, or in files if there is a
 * "profile_store"; both survive a reload, the latter a restart too.  When the
 * store is full the oldest entries go, but not those that are pinned.
 *
 * Context: all functions may be called by any thread of a worker.  Those that
 * say "disk" read or write files, and belong in a job
 * (ngx_http_profile_job.h) and not in the event loop; so do those that copy
 * an archive.  None waits for anything but the disk, others who write, and the
 * mutex of the zone, which is held for as long as it takes to copy facts, or
 * 64 kilobytes of an archive.
 */


#ifndef _NGX_HTTP_PROFILE_STORE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_STORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_http.h"


/* what is said of a profile that is not stored */
#define NGX_HTTP_PROFILE_STORE_FULL    "does not fit in the store"
#define NGX_HTTP_PROFILE_STORE_FAILED  "the store failed, see the error log"


/*
 * Texts are what the client sent, any bytes; longer ones are cut.  Times of
 * the capture are in nanoseconds, waited is wall without the turns.
 */

typedef struct {
    u_char       id[NGX_HTTP_PROFILE_ID_LEN];  /* lower-case hex digits */
    uint64_t     start;         /* of what was captured, ms since the Epoch */
    ngx_str_t    scope;         /* "request", "endpoint", "worker", "all" */
    ngx_str_t    method;
    ngx_str_t    host;
    ngx_str_t    uri;
    uint32_t     status;        /* of the original response, 0: none */
    uint32_t     mode;          /* prof_mode_e: what it shows first */
    uint64_t     wall;
    uint64_t     cpu;
    uint64_t     waited;
    uint64_t     samples;
    uint64_t     allocated;     /* bytes; of the mode "object", or zero */
    uint64_t     allocations;
    uint64_t     in_use;        /* bytes */
    uint32_t     worker;        /* process id */
    unsigned     pinned:1;      /* ignored by ngx_http_profile_store_add() */
    uint64_t     order;         /* in the store: newer ones have a larger one;
                                   set in lists */
    size_t       size;          /* of the archive, in bytes */
    u_char      *archive;       /* NULL in lists */
} ngx_http_profile_stored_t;


/*
 * Limits and use.  Sizes are of all that is kept of entries, in bytes:
 * memory counts whole blocks of the zone, files their length.
 */

typedef struct {
    ngx_str_t    zone;          /* name */
    ngx_str_t    path;          /* empty: archives are in memory */
    size_t       memory_size;
    size_t       memory_used;
    uint64_t     disk_max;      /* 0: no limit, or no files */
    uint64_t     disk_used;
    time_t       inactive;      /* in seconds, 0: no limit */
    ngx_uint_t   entries;       /* there now */
    ngx_uint_t   pinned;

    /* since the zone was made */

    uint64_t     added;
    uint64_t     evicted;       /* for newer ones */
    uint64_t     expired;       /* by inactive */
    uint64_t     deleted;       /* by ngx_http_profile_store_delete() */
    uint64_t     dropped;       /* did not fit */
    uint64_t     failed;        /* the disk failed */
    uint64_t     torn;          /* was damaged, and thrown away */
} ngx_http_profile_store_stat_t;


PROF_HIDDEN_BEGIN

/* the store of the configuration that the request has, or NULL: none */
ngx_http_profile_store_t *ngx_http_profile_store(ngx_http_request_t *r);

/*
 * Adds an entry with st->size bytes of st->archive; all is copied.
 * NGX_OK: it is there for all workers, and for a process that is killed now.
 * NGX_DECLINED: it does not fit, NGX_ERROR: the disk failed; both are counted
 * and logged.  An entry with an id that is there already replaces it.
 * Context: disk.
 */
ngx_int_t ngx_http_profile_store_add(ngx_http_profile_store_t *store,
    ngx_http_profile_stored_t *st, ngx_log_t *log);

/*
 * A copy of the entry of that id, all in one piece of memory, which
 * ngx_free() frees.  The id comes from clients: anything may be in it.
 * NGX_DECLINED: there is none; NGX_ABORT: it is damaged, and is removed;
 * NGX_ERROR: no memory, or the disk failed.  *st is set only on NGX_OK.
 * Context: disk.
 */
ngx_int_t ngx_http_profile_store_get(ngx_http_profile_store_t *store,
    ngx_str_t *id, ngx_http_profile_stored_t **st, ngx_log_t *log);

/* the facts only, in the same way; no disk */
ngx_int_t ngx_http_profile_store_find(ngx_http_profile_store_t *store,
    ngx_str_t *id, ngx_http_profile_stored_t **st, ngx_log_t *log);

/*
 * The facts of at most max entries, the newest first, in a new array of
 * ngx_http_profile_stored_t: of those whose order is below "before", unless
 * that is 0.  *more is set if there are others, older ones.
 * Context: no disk; the pool's thread.
 */
ngx_array_t *ngx_http_profile_store_list(ngx_http_profile_store_t *store,
    ngx_pool_t *pool, uint64_t before, ngx_uint_t max, ngx_uint_t *more);

/*
 * NGX_DECLINED: there is none of that id.  Deleted entries are gone for all at
 * once; their files are removed by the next who writes, or by the cache
 * manager, soon.
 * Context: no disk.
 */
ngx_int_t ngx_http_profile_store_delete(ngx_http_profile_store_t *store,
    ngx_str_t *id);

/*
 * Pinned entries stay until they are deleted or no longer pinned.
 * NGX_DECLINED: there is none of that id.
 * Context: no disk but four bytes that are written to its file.
 */
ngx_int_t ngx_http_profile_store_pin(ngx_http_profile_store_t *store,
    ngx_str_t *id, ngx_uint_t pinned);

/*
 * What lists say of the profile itself: all from mode to in_use but waited,
 * which depends on what was captured.
 */
void ngx_http_profile_store_measure(ngx_http_profile_stored_t *st,
    prof_profile_t *p);

void ngx_http_profile_store_stat(ngx_http_profile_store_t *store,
    ngx_http_profile_store_stat_t *stat);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_STORE_H_INCLUDED_ */
