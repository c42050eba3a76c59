
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of this room share: the shared memory of a
 * store.
 *
 * The zone is an array of blocks.  An entry is a chain of blocks.  The first
 * block begins with a node, which contains the facts of fixed size.  The texts
 * follow, and the archive unless it is in a file.  Numbers identify blocks, so
 * the zone does not depend on the address where a process maps it.  The zone
 * does not use nginx's slab allocator, whose state is unknown after a worker
 * was killed during an allocation.
 *
 * The valid data is in the links of the blocks, one word for each.  An entry
 * is published by the single store that sets NGX_HTTP_PROFILE_HEAD, and ends
 * with the store that clears it.  If a process is killed while it changes the
 * zone, the next process makes all other data (lists, hash, free blocks, sums)
 * again from these words.
 *
 * A node is in one of two lists: ready entries, by age, and entries that are
 * being written or removed.
 *
 * Context: any thread; functions other than init and lock need the lock.
 */


#ifndef _NGX_HTTP_PROFILE_ZONE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ZONE_H_INCLUDED_


#include "core/ngx_http_profile_alive.h"
#include "store/ngx_http_profile_store.h"


#define NGX_HTTP_PROFILE_BLOCK   512

/* maximum lengths of the texts: scope, method, host, uri */
#define NGX_HTTP_PROFILE_TEXTS      { 31, 31, 255, 1023 }
#define NGX_HTTP_PROFILE_MAX_TEXTS  (31 + 31 + 255 + 1023)

/* the maximum length of an archive: content that zlib cannot compress */
#define NGX_HTTP_PROFILE_MAX_ARCHIVE                                          \
    (PROF_ARCHIVE_MAX + PROF_ARCHIVE_MAX / 1024 + 4096)

/* entries that are visited before the lock is released for others */
#define NGX_HTTP_PROFILE_PIECE   64

/* the parts of an entry: head, texts, archive */
#define NGX_HTTP_PROFILE_PARTS   6

/* a link: the number of the next block, and two bits */
#define NGX_HTTP_PROFILE_HEAD    0x80000000
#define NGX_HTTP_PROFILE_USED    0x40000000
#define NGX_HTTP_PROFILE_NONE    0x3fffffff

#define ngx_http_profile_next(link)  ((link) & NGX_HTTP_PROFILE_NONE)


/* a name and the version of the layout below, which is one digit */
#define NGX_HTTP_PROFILE_MAGIC      "ngxprof2"
#define NGX_HTTP_PROFILE_MAGIC_LEN  (sizeof(NGX_HTTP_PROFILE_MAGIC) - 1)


/*
 * The beginning of an entry, in memory and in files.  The four texts and the
 * archive follow.  In files, only pinned is changed later.
 */

typedef struct {
    u_char      magic[8];
    uint32_t    pinned;
    uint32_t    crc;            /* of the rest of the head, and texts */
    uint32_t    archive_crc;
    uint32_t    status;
    uint32_t    mode;
    uint32_t    worker;
    uint16_t    texts[4];       /* lengths: scope, method, host, uri */
    uint64_t    stored;         /* ms since the Epoch; the order */
    uint64_t    start;
    uint64_t    wall;
    uint64_t    cpu;
    uint64_t    waited;
    uint64_t    samples;
    uint64_t    allocated;      /* in other modes than "object": no_processor */
    uint64_t    allocations;    /* in other modes: blocked */
    uint64_t    in_use;
    uint64_t    size;
    u_char      id[NGX_HTTP_PROFILE_ID_LEN];
} ngx_http_profile_entry_t;


typedef enum {
    NGX_HTTP_PROFILE_READY = 0,
    NGX_HTTP_PROFILE_WRITING,   /* the owner is writing the entry */
    NGX_HTTP_PROFILE_REMOVING   /* its owner or any process removes it */
} ngx_http_profile_state_e;


typedef struct {
    uint64_t                   owner;     /* process, 0: no owner */
    uint32_t                   state;
    uint32_t                   newer;
    uint32_t                   older;
    uint32_t                   collision; /* next in the bucket */
    uint32_t                   nblocks;
    uint32_t                   touched;   /* last access, in seconds */
    uint64_t                   order;
    uint64_t                   bytes;     /* of its file; 0: in memory */
    ngx_http_profile_entry_t   entry;
} ngx_http_profile_node_t;


typedef struct {
    uint32_t                   newest;
    uint32_t                   oldest;
} ngx_http_profile_list_t;


/* the beginning of the zone; links, buckets and blocks follow */

typedef struct {
    uint32_t                   changing;  /* a process changes the zone */
    uint32_t                   nblocks;
    uint32_t                   nbuckets;  /* a power of two */
    uint32_t                   free;      /* the first free block */
    uint32_t                   nfree;
    uint32_t                   entries;   /* in the list of ready entries */
    uint32_t                   busy;      /* in the list "removed" */
    uint32_t                   pinned;
    uint32_t                   pinned_blocks;
    uint64_t                   pinned_bytes;
    uint64_t                   bytes;     /* bytes of files, of both lists */
    uint64_t                   order;     /* order of the last entry */
    ngx_http_profile_list_t    ready;
    ngx_http_profile_list_t    removed;
    uint64_t                   added;
    uint64_t                   evicted;
    uint64_t                   expired;
    uint64_t                   deleted;
    uint64_t                   dropped;
    uint64_t                   failed;
    uint64_t                   torn;
} ngx_http_profile_zone_t;


/* the store in this process; made with the configuration */

struct ngx_http_profile_store_s {
    ngx_str_t                  name;      /* configured name of the zone */
    size_t                     size;
    ngx_path_t                *path;      /* NULL: no files */
    off_t                      max;
    time_t                     inactive;
    ngx_msec_t                 swept;     /* last check of inactive */
    ngx_msec_t                 searched;  /* last search for files, or 0 */
    ngx_shm_zone_t            *shm_zone;

    ngx_slab_pool_t           *pool;      /* for the mutex */
    ngx_http_profile_zone_t   *zone;
    uint32_t                  *links;
    uint32_t                  *buckets;
    u_char                    *blocks;
};


/* an entry that this process removes */

typedef struct {
    uint32_t                   n;
    uint32_t                   writer;    /* its process id, or 0 */
    uint32_t                   shared;    /* a ready entry has the same file */
    u_char                     id[NGX_HTTP_PROFILE_ID_LEN];
} ngx_http_profile_claim_t;


/* a place in a chain of blocks */

typedef struct {
    ngx_http_profile_store_t  *store;
    uint32_t                   block;
    size_t                     offset;
} ngx_http_profile_cursor_t;


/* ms since the Epoch */
#define ngx_http_profile_zone_now()                                           \
    ((uint64_t) (ngx_timeofday())->sec * 1000 + (ngx_timeofday())->msec)

#define ngx_http_profile_node(store, n)                                       \
    ((ngx_http_profile_node_t *)                                              \
         ((store)->blocks + (size_t) (n) * NGX_HTTP_PROFILE_BLOCK))


PROF_HIDDEN_BEGIN

/* ngx_http_profile_zone.c */

ngx_int_t ngx_http_profile_zone_init(ngx_shm_zone_t *shm_zone, void *data);

/* locks the zone; change: 1 if the caller may write to the zone */
void ngx_http_profile_zone_lock(ngx_http_profile_store_t *store,
    ngx_uint_t change);
void ngx_http_profile_zone_unlock(ngx_http_profile_store_t *store);

/* returns the number of blocks for an entry of len bytes, with the node */
uint32_t ngx_http_profile_zone_blocks(size_t len);

/*
 * Makes an entry of parts[0 .. n - 1]: the head and the parts after it.  If
 * the archive is one of them, its blocks are reserved, but it is not copied,
 * since that may take long.  The caller copies it without the lock, from
 * *archive on.  Returns the number of the first block, or
 * NGX_HTTP_PROFILE_NONE if there are not enough free blocks.
 */
uint32_t ngx_http_profile_zone_insert(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_uint_t n, ngx_http_profile_state_e state,
    uint64_t bytes, ngx_http_profile_cursor_t *archive);
void ngx_http_profile_zone_remove(ngx_http_profile_store_t *store,
    uint32_t n);
void ngx_http_profile_zone_move(ngx_http_profile_store_t *store, uint32_t n,
    ngx_http_profile_state_e state, uint64_t owner);
void ngx_http_profile_zone_pin(ngx_http_profile_store_t *store, uint32_t n,
    ngx_uint_t pinned);

/*
 * Replaces the ready entry "before" by the unfinished entry n, and removes
 * "before".
 */
void ngx_http_profile_zone_replace(ngx_http_profile_store_t *store,
    uint32_t before, uint32_t n);

/* returns a ready entry, or NGX_HTTP_PROFILE_NONE */
uint32_t ngx_http_profile_zone_find(ngx_http_profile_store_t *store,
    u_char *id);

/* works as ngx_http_profile_zone_find() for an id that a client sent */
uint32_t ngx_http_profile_zone_lookup(ngx_http_profile_store_t *store,
    ngx_str_t *id);

/* works as ngx_http_profile_zone_lookup(), and notes the time of this use */
uint32_t ngx_http_profile_zone_touch(ngx_http_profile_store_t *store,
    ngx_str_t *id);

/*
 * Returns whether block n is a ready entry of this order.  Without the lock the
 * entry may have been removed, and the block may have become another one.
 */
ngx_uint_t ngx_http_profile_zone_has(ngx_http_profile_store_t *store,
    uint32_t n, uint64_t order);

/* returns the place of an id in the hash */
uint32_t ngx_http_profile_zone_bucket(ngx_http_profile_store_t *store,
    u_char *id);

/* the functions of a cursor copy the data after the head of an entry */
void ngx_http_profile_zone_open(ngx_http_profile_store_t *store, uint32_t n,
    ngx_http_profile_cursor_t *cursor);
void ngx_http_profile_zone_read(ngx_http_profile_cursor_t *cursor,
    u_char *data, size_t len);
void ngx_http_profile_zone_write(ngx_http_profile_cursor_t *cursor,
    u_char *data, size_t len);

/* repairs the zone if a process was killed while it changed the zone */
void ngx_http_profile_zone_check(ngx_http_profile_store_t *store);

/* ngx_http_profile_entry.c */

/* makes the head; the texts are cut, and refer to the caller's memory */
void ngx_http_profile_entry_make(ngx_http_profile_entry_t *entry,
    ngx_http_profile_stored_t *st, ngx_str_t *texts);

/* returns NGX_ERROR if this is not a head, or if it is damaged */
ngx_int_t ngx_http_profile_entry_valid(ngx_http_profile_entry_t *entry,
    u_char *texts);

/* returns the length of all texts, at most 4 * 65535, also if damaged */
size_t ngx_http_profile_entry_texts(ngx_http_profile_entry_t *entry);

/* fills st; texts is the data after the head, and st refers to it */
void ngx_http_profile_entry_read(ngx_http_profile_entry_t *entry,
    u_char *texts, ngx_http_profile_stored_t *st);

/* ngx_http_profile_evict.c: entries that are removed for newer ones */

/*
 * In these functions, keep is an entry that must stay because the new entry
 * will replace it, or NGX_HTTP_PROFILE_NONE.
 */

/* returns whether a new entry of this size cannot fit beside pinned entries */
ngx_uint_t ngx_http_profile_evict_none(ngx_http_profile_store_t *store,
    uint32_t blocks, uint64_t bytes, uint32_t keep);

/*
 * For archives in memory: removes the oldest entries until the blocks are
 * free.  Returns NGX_AGAIN if blocks only become free when other processes
 * have written their entries; then no entry was removed.
 */
ngx_int_t ngx_http_profile_evict_make(ngx_http_profile_store_t *store,
    uint32_t blocks, uint32_t keep);

/* for archives in files: claims entries to remove, until limit bytes remain */
ngx_uint_t ngx_http_profile_evict_claim(ngx_http_profile_store_t *store,
    uint32_t blocks, uint64_t bytes, uint64_t limit, uint32_t keep,
    ngx_http_profile_claim_t *claims, ngx_uint_t max);

/*
 * ngx_http_profile_memory.c: archives in memory; these functions take the
 * lock.  replace: 1 to work as ngx_http_profile_store_replace().
 * ngx_http_profile_memory_read() returns NGX_AGAIN if the entry was replaced
 * while it was read.
 */

ngx_int_t ngx_http_profile_memory_add(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_uint_t replace);
ngx_int_t ngx_http_profile_memory_read(ngx_http_profile_store_t *store,
    ngx_str_t *id, ngx_http_profile_stored_t **st, ngx_log_t *log);

/* ngx_http_profile_files.c: archives in files; the functions take the lock */

ngx_int_t ngx_http_profile_files_add(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_uint_t replace, ngx_log_t *log);

/* writes a pin to the file; returns NGX_ERROR if it failed (logged) */
ngx_int_t ngx_http_profile_files_pin(ngx_http_profile_store_t *store,
    u_char *id, ngx_uint_t pinned, ngx_log_t *log);
ngx_msec_t ngx_http_profile_files_manager(void *data);

/* ngx_http_profile_file.c: one file */

/* name has NGX_MAX_PATH bytes; writer is 0, or the process id in the name */
void ngx_http_profile_file_path(ngx_http_profile_store_t *store, u_char *id,
    uint32_t writer, u_char *name);

/* returns NGX_DECLINED if the disk is full */
ngx_int_t ngx_http_profile_file_write(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_log_t *log);

/*
 * Opens a file and reads its head; texts has NGX_HTTP_PROFILE_MAX_TEXTS bytes.
 * The length of the file matches its head, and the next read starts at the
 * archive.  Errors are those of ngx_http_profile_file_read().
 */
ngx_int_t ngx_http_profile_file_open(ngx_http_profile_store_t *store,
    u_char *id, ngx_http_profile_entry_t *entry, u_char *texts,
    ngx_fd_t *fd);

/*
 * Reads a whole file.  Returns NGX_DECLINED if the file does not exist,
 * NGX_ABORT if it is damaged, NGX_ERROR if it cannot be read.
 */
ngx_int_t ngx_http_profile_file_read(ngx_http_profile_store_t *store,
    u_char *id, ngx_http_profile_stored_t **st, ngx_log_t *log);
ngx_int_t ngx_http_profile_file_pin(ngx_http_profile_store_t *store,
    u_char *id, ngx_uint_t pinned, ngx_log_t *log);

/* ngx_http_profile_load.c: files that are not in the zone; takes the lock */

void ngx_http_profile_load(ngx_http_profile_store_t *store, ngx_log_t *log);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ZONE_H_INCLUDED_ */
