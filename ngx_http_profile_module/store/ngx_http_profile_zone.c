
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The shared memory of the store: blocks, chains, lists.  In a new zone, and if
 * a worker was killed while it changed the zone, the parts beside the entries
 * are made from the entries.  Incomplete entries are removed.
 */


#include "core/ngx_http_profile_lock.h"
#include "store/ngx_http_profile_zone.h"


/* an entry, and its place among the others */

typedef struct {
    uint64_t  order;
    uint32_t  n;
} ngx_http_profile_sorted_t;


static void ngx_http_profile_zone_layout(ngx_http_profile_store_t *store,
    uint32_t nblocks);
static u_char *ngx_http_profile_zone_piece(ngx_http_profile_cursor_t *cursor,
    size_t *len);
static void ngx_http_profile_zone_link_at(ngx_http_profile_store_t *store,
    uint32_t n, uint32_t newer);
static ngx_http_profile_list_t *ngx_http_profile_zone_list(
    ngx_http_profile_store_t *store, ngx_http_profile_node_t *node);
static uint64_t ngx_http_profile_zone_order(ngx_http_profile_store_t *store,
    ngx_http_profile_node_t *node);
static void ngx_http_profile_zone_unlink(ngx_http_profile_store_t *store,
    uint32_t n);
static void ngx_http_profile_zone_count(ngx_http_profile_store_t *store,
    ngx_http_profile_node_t *node, int sign);
static void ngx_http_profile_zone_link(ngx_http_profile_store_t *store,
    uint32_t n);
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


ngx_int_t
ngx_http_profile_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_profile_store_t *before = data;

    size_t                     size;
    uint32_t                   n;
    ngx_http_profile_store_t  *store;

    store = shm_zone->data;
    store->pool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    store->zone = (ngx_http_profile_zone_t *)
                      ngx_align_ptr(store->pool->start, NGX_ALIGNMENT);

    if (before || shm_zone->shm.exists) {
        ngx_http_profile_zone_layout(store, store->zone->nblocks);
        return NGX_OK;
    }

    /* each block needs a word for its link, and at most one for its bucket */

    size = store->pool->end - (u_char *) store->zone
           - sizeof(ngx_http_profile_zone_t) - NGX_ALIGNMENT;

    n = ngx_min(size / (NGX_HTTP_PROFILE_BLOCK + 2 * sizeof(uint32_t)),
                NGX_HTTP_PROFILE_NONE - 1);

    ngx_memzero(store->zone, sizeof(ngx_http_profile_zone_t));

    store->zone->nblocks = n;

    for (store->zone->nbuckets = 1;
         store->zone->nbuckets <= n / 2;
         store->zone->nbuckets *= 2)
    {
        /* void */
    }

    ngx_http_profile_zone_layout(store, n);

    ngx_memzero(store->links, n * sizeof(uint32_t));

    ngx_http_profile_zone_check(store);

    return NGX_OK;
}


static void
ngx_http_profile_zone_layout(ngx_http_profile_store_t *store,
    uint32_t nblocks)
{
    store->links = (uint32_t *) (store->zone + 1);
    store->buckets = store->links + nblocks;
    store->blocks = (u_char *) (store->buckets + store->zone->nbuckets);
    store->blocks = ngx_align_ptr(store->blocks, NGX_ALIGNMENT);
}


/*
 * Locks the zone.  The master, or a process that waits, unlocks the mutex of a
 * killed worker.  The next process that locks the mutex detects that the worker
 * had not finished, and repairs the zone.
 */

void
ngx_http_profile_zone_lock(ngx_http_profile_store_t *store, ngx_uint_t change)
{
    ngx_http_profile_lock(&store->pool->mutex);

    if (store->zone->changing) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "profile: a worker was killed while it changed the "
                      "zone \"%V\", repairing it", &store->name);

        ngx_http_profile_zone_check(store);
    }

    if (change) {
        store->zone->changing = 1;
        ngx_memory_barrier();
    }
}


void
ngx_http_profile_zone_unlock(ngx_http_profile_store_t *store)
{
    ngx_memory_barrier();
    store->zone->changing = 0;

    ngx_shmtx_unlock(&store->pool->mutex);
}


uint32_t
ngx_http_profile_zone_blocks(size_t len)
{
    return (len + NGX_HTTP_PROFILE_BLOCK - 1) / NGX_HTTP_PROFILE_BLOCK;
}


uint32_t
ngx_http_profile_zone_insert(ngx_http_profile_store_t *store,
    ngx_str_t *parts, ngx_uint_t n, ngx_http_profile_state_e state,
    uint64_t bytes, ngx_http_profile_cursor_t *archive)
{
    size_t                      len;
    uint32_t                    first, last, k;
    ngx_uint_t                  i;
    ngx_http_profile_node_t    *node;
    ngx_http_profile_zone_t    *zone;
    ngx_http_profile_cursor_t   cursor;

    zone = store->zone;
    len = offsetof(ngx_http_profile_node_t, entry);

    for (i = 0; i < n; i++) {
        len += parts[i].len;
    }

    k = ngx_http_profile_zone_blocks(len);

    if (k > zone->nfree) {
        return NGX_HTTP_PROFILE_NONE;
    }

    zone->nfree -= k;

    first = zone->free;
    node = ngx_http_profile_node(store, first);
    node->nblocks = k;

    for (last = first; --k; /* void */ ) {
        store->links[last] |= NGX_HTTP_PROFILE_USED;
        last = ngx_http_profile_next(store->links[last]);
    }

    zone->free = ngx_http_profile_next(store->links[last]);
    store->links[last] = NGX_HTTP_PROFILE_USED|NGX_HTTP_PROFILE_NONE;

    cursor.store = store;
    cursor.block = first;
    cursor.offset = offsetof(ngx_http_profile_node_t, entry);

    for (i = 0; i < ngx_min(n, NGX_HTTP_PROFILE_PARTS - 1); i++) {
        ngx_http_profile_zone_write(&cursor, parts[i].data, parts[i].len);
    }

    if (archive) {
        *archive = cursor;
    }

    node->state = state;
    node->owner = (state == NGX_HTTP_PROFILE_WRITING)
                  ? ngx_http_profile_alive_self() : 0;
    node->touched = ngx_time();
    node->order = ngx_http_profile_zone_order(store, node);
    node->bytes = bytes;

    ngx_memory_barrier();
    store->links[first] |= NGX_HTTP_PROFILE_HEAD;
    ngx_memory_barrier();

    ngx_http_profile_zone_link(store, first);

    return first;
}


/*
 * Returns the order of a new entry: a number that grows with time.  It is at
 * least the time of the entry in ms, so that files of other processes fit in.
 * The time of a file is not trusted: a later one counts as now.
 */

static uint64_t
ngx_http_profile_zone_order(ngx_http_profile_store_t *store,
    ngx_http_profile_node_t *node)
{
    store->zone->order = ngx_max(store->zone->order + 1,
                                 ngx_min(node->entry.stored,
                                         ngx_http_profile_zone_now()));

    return store->zone->order;
}


void
ngx_http_profile_zone_remove(ngx_http_profile_store_t *store, uint32_t n)
{
    uint32_t                  last, next;
    ngx_http_profile_node_t  *node;

    node = ngx_http_profile_node(store, n);

    store->links[n] &= ~NGX_HTTP_PROFILE_HEAD;
    ngx_memory_barrier();

    ngx_http_profile_zone_unlink(store, n);

    store->zone->nfree += node->nblocks;

    for (last = n; /* void */ ; last = next) {
        next = ngx_http_profile_next(store->links[last]);
        store->links[last] = next;

        if (next == NGX_HTTP_PROFILE_NONE) {
            break;
        }
    }

    store->links[last] = store->zone->free;
    store->zone->free = n;
}


/* moves an entry to the other list, or to another owner */

void
ngx_http_profile_zone_move(ngx_http_profile_store_t *store, uint32_t n,
    ngx_http_profile_state_e state, uint64_t owner)
{
    ngx_http_profile_node_t  *node;

    node = ngx_http_profile_node(store, n);

    ngx_http_profile_zone_unlink(store, n);

    node->owner = owner;
    node->state = state;

    if (state == NGX_HTTP_PROFILE_READY) {
        node->order = ngx_http_profile_zone_order(store, node);
    }

    ngx_http_profile_zone_link(store, n);
}


/*
 * If this process is killed before the old entry is removed, there are two
 * ready entries with the same id, and the next process removes one of them.
 */

void
ngx_http_profile_zone_replace(ngx_http_profile_store_t *store,
    uint32_t before, uint32_t n)
{
    uint32_t                  newer;
    ngx_http_profile_node_t  *node, *old;

    old = ngx_http_profile_node(store, before);
    node = ngx_http_profile_node(store, n);

    ngx_http_profile_zone_unlink(store, n);

    node->owner = 0;
    node->order = old->order;
    node->touched = old->touched;
    node->entry.pinned = old->entry.pinned;

    ngx_memory_barrier();
    node->state = NGX_HTTP_PROFILE_READY;
    ngx_memory_barrier();

    newer = old->newer;

    ngx_http_profile_zone_remove(store, before);
    ngx_http_profile_zone_link_at(store, n, newer);
}


void
ngx_http_profile_zone_pin(ngx_http_profile_store_t *store, uint32_t n,
    ngx_uint_t pinned)
{
    ngx_http_profile_node_t  *node;

    node = ngx_http_profile_node(store, n);

    if (node->entry.pinned == pinned) {
        return;
    }

    ngx_http_profile_zone_count(store, node, -1);

    node->entry.pinned = pinned;

    ngx_http_profile_zone_count(store, node, 1);
}


uint32_t
ngx_http_profile_zone_find(ngx_http_profile_store_t *store, u_char *id)
{
    uint32_t                  n;
    ngx_http_profile_node_t  *node;

    n = store->buckets[ngx_http_profile_zone_bucket(store, id)];

    while (n != NGX_HTTP_PROFILE_NONE) {

        node = ngx_http_profile_node(store, n);

        if (ngx_memcmp(node->entry.id, id, NGX_HTTP_PROFILE_ID_LEN) == 0) {
            break;
        }

        n = node->collision;
    }

    return n;
}


uint32_t
ngx_http_profile_zone_lookup(ngx_http_profile_store_t *store, ngx_str_t *id)
{
    u_char  ch;
    size_t  i;

    if (id->len != NGX_HTTP_PROFILE_ID_LEN) {
        return NGX_HTTP_PROFILE_NONE;
    }

    for (i = 0; i < id->len; i++) {
        ch = id->data[i];

        if (!((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f'))) {
            return NGX_HTTP_PROFILE_NONE;
        }
    }

    return ngx_http_profile_zone_find(store, id->data);
}


uint32_t
ngx_http_profile_zone_touch(ngx_http_profile_store_t *store, ngx_str_t *id)
{
    uint32_t  n;

    n = ngx_http_profile_zone_lookup(store, id);

    if (n != NGX_HTTP_PROFILE_NONE) {
        ngx_http_profile_node(store, n)->touched = ngx_time();
    }

    return n;
}


ngx_uint_t
ngx_http_profile_zone_has(ngx_http_profile_store_t *store, uint32_t n,
    uint64_t order)
{
    ngx_http_profile_node_t  *node;

    node = ngx_http_profile_node(store, n);

    return (store->links[n] & NGX_HTTP_PROFILE_HEAD)
           && node->state == NGX_HTTP_PROFILE_READY && node->order == order;
}


/* returns the bucket of an id: its first digits, because ids are random */

uint32_t
ngx_http_profile_zone_bucket(ngx_http_profile_store_t *store, u_char *id)
{
    return (uint32_t) ngx_hextoi(id, 8) & (store->zone->nbuckets - 1);
}


void
ngx_http_profile_zone_open(ngx_http_profile_store_t *store, uint32_t n,
    ngx_http_profile_cursor_t *cursor)
{
    cursor->store = store;
    cursor->block = n;
    cursor->offset = sizeof(ngx_http_profile_node_t);
}


void
ngx_http_profile_zone_read(ngx_http_profile_cursor_t *cursor, u_char *data,
    size_t len)
{
    u_char  *p;
    size_t   n;

    for ( /* void */ ; len; len -= n) {
        n = len;
        p = ngx_http_profile_zone_piece(cursor, &n);
        data = ngx_cpymem(data, p, n);
    }
}


void
ngx_http_profile_zone_write(ngx_http_profile_cursor_t *cursor, u_char *data,
    size_t len)
{
    u_char  *p;
    size_t   n;

    for ( /* void */ ; len; len -= n) {
        n = len;
        p = ngx_http_profile_zone_piece(cursor, &n);
        ngx_memcpy(p, data, n);
        data += n;
    }
}


/* returns the next bytes, at most *len, and moves the cursor behind them */

static u_char *
ngx_http_profile_zone_piece(ngx_http_profile_cursor_t *cursor, size_t *len)
{
    u_char  *p;

    if (cursor->offset == NGX_HTTP_PROFILE_BLOCK) {
        cursor->block = ngx_http_profile_next(
                                        cursor->store->links[cursor->block]);
        cursor->offset = 0;
    }

    p = cursor->store->blocks
        + (size_t) cursor->block * NGX_HTTP_PROFILE_BLOCK + cursor->offset;

    *len = ngx_min(*len, NGX_HTTP_PROFILE_BLOCK - cursor->offset);
    cursor->offset += *len;

    return p;
}


static ngx_http_profile_list_t *
ngx_http_profile_zone_list(ngx_http_profile_store_t *store,
    ngx_http_profile_node_t *node)
{
    return (node->state == NGX_HTTP_PROFILE_READY) ? &store->zone->ready
                                                   : &store->zone->removed;
}


/* adds a node to its list, to the sums, and to the hash if it is ready */

static void
ngx_http_profile_zone_link(ngx_http_profile_store_t *store, uint32_t n)
{
    ngx_http_profile_zone_link_at(store, n, NGX_HTTP_PROFILE_NONE);
}


/* adds a node before "newer" in its list; _NONE: as the newest one */

static void
ngx_http_profile_zone_link_at(ngx_http_profile_store_t *store, uint32_t n,
    uint32_t newer)
{
    uint32_t                 *bucket, *older;
    ngx_http_profile_list_t  *list;
    ngx_http_profile_node_t  *node;

    node = ngx_http_profile_node(store, n);
    list = ngx_http_profile_zone_list(store, node);

    older = (newer == NGX_HTTP_PROFILE_NONE)
            ? &list->newest : &ngx_http_profile_node(store, newer)->older;

    node->newer = newer;
    node->older = *older;

    if (*older == NGX_HTTP_PROFILE_NONE) {
        list->oldest = n;

    } else {
        ngx_http_profile_node(store, *older)->newer = n;
    }

    *older = n;

    ngx_http_profile_zone_count(store, node, 1);

    if (node->state != NGX_HTTP_PROFILE_READY) {
        return;
    }

    bucket = &store->buckets[ngx_http_profile_zone_bucket(store,
                                                          node->entry.id)];
    node->collision = *bucket;
    *bucket = n;
}


static void
ngx_http_profile_zone_unlink(ngx_http_profile_store_t *store, uint32_t n)
{
    uint32_t                 *next;
    ngx_http_profile_list_t  *list;
    ngx_http_profile_node_t  *node;

    node = ngx_http_profile_node(store, n);
    list = ngx_http_profile_zone_list(store, node);

    if (node->newer == NGX_HTTP_PROFILE_NONE) {
        list->newest = node->older;

    } else {
        ngx_http_profile_node(store, node->newer)->older = node->older;
    }

    if (node->older == NGX_HTTP_PROFILE_NONE) {
        list->oldest = node->newer;

    } else {
        ngx_http_profile_node(store, node->older)->newer = node->newer;
    }

    ngx_http_profile_zone_count(store, node, -1);

    if (node->state != NGX_HTTP_PROFILE_READY) {
        return;
    }

    next = &store->buckets[ngx_http_profile_zone_bucket(store,
                                                        node->entry.id)];

    while (*next != n) {
        next = &ngx_http_profile_node(store, *next)->collision;
    }

    *next = node->collision;
}


/* updates the sums of the zone without a pass over all entries */

static void
ngx_http_profile_zone_count(ngx_http_profile_store_t *store,
    ngx_http_profile_node_t *node, int sign)
{
    ngx_http_profile_zone_t  *zone;

    zone = store->zone;
    zone->bytes += sign * (int64_t) node->bytes;

    if (node->state != NGX_HTTP_PROFILE_READY) {
        zone->busy += sign;
        return;
    }

    zone->entries += sign;

    if (node->entry.pinned) {
        zone->pinned += sign;
        zone->pinned_blocks += sign * (int32_t) node->nblocks;
        zone->pinned_bytes += sign * (int64_t) node->bytes;
    }
}


/*
 * Repairs the zone.  If the process is killed during the repair, the next
 * process begins the repair again.
 */

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


/*
 * Returns whether the entry is complete.  A process may have been killed while
 * it wrote the entry, so the data is not trusted.
 */

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
    uint32_t                    n, i;
    ngx_http_profile_node_t    *node;
    ngx_http_profile_zone_t    *zone;
    ngx_http_profile_sorted_t  *sorted;

    zone = store->zone;
    sorted = count ? ngx_alloc(count * sizeof(ngx_http_profile_sorted_t),
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

        if (sorted == NULL) {
            ngx_http_profile_zone_add(store, n);
            continue;
        }

        sorted[i].order = ngx_http_profile_node(store, n)->order;
        sorted[i++].n = n;
    }

    if (sorted == NULL) {
        return;
    }

    ngx_qsort(sorted, count, sizeof(ngx_http_profile_sorted_t),
              ngx_http_profile_zone_compare);

    for (i = 0; i < count; i++) {
        node = ngx_http_profile_node(store, sorted[i].n);

        /*
         * makes each order unique: orders from files are multiples of a
         * millisecond
         */

        if (i && sorted[i].order <= sorted[i - 1].order) {
            sorted[i].order = sorted[i - 1].order + 1;
        }

        node->order = sorted[i].order;
        zone->order = ngx_max(zone->order, node->order);

        ngx_http_profile_zone_add(store, sorted[i].n);
    }

    ngx_free(sorted);
}


/*
 * Adds a complete entry.  An entry that was being replaced exists twice, so
 * the second entry with the same id is removed.
 */

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
    const ngx_http_profile_sorted_t  *first, *second;

    first = one;
    second = two;

    return (first->order > second->order) - (first->order < second->order);
}
