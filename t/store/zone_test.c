
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Tests the memory of the store without nginx.  A process that adds, replaces,
 * pins and deletes profiles is killed again and again, at any instruction.  After each
 * kill the zone is checked completely: every block is free or belongs to one
 * entry; lists, hash and sums agree; no archive is torn; and all entries exist
 * that the process reported.
 *
 * usage: zone_test ROUNDS
 */


#include "store/ngx_http_profile_zone.h"

#include "tap.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>


#define TEST_ZONE   (192 * 1024)
#define TEST_OPS    4000000
#define TEST_PINS   5


typedef enum {
    TEST_NONE = 0,
    TEST_ADD,
    TEST_DELETE,
    TEST_PIN,
    TEST_UNPIN,
    TEST_REPLACE
} test_op_e;


/* the killed process reports here before and after each operation */

typedef struct {
    volatile uint32_t  op;
    volatile uint32_t  n;
    volatile uint32_t  rc;
    volatile uint32_t  done;
} test_entry_t;


typedef struct {
    volatile uint32_t  count;
    volatile uint32_t  n;              /* of the last entry that was added */
    uint32_t           pins[TEST_PINS];
    test_entry_t       ops[TEST_OPS];
} test_journal_t;


typedef struct {
    unsigned           added:1;
    unsigned           gone:1;
    unsigned           replaced:1;
    unsigned           pinned:1;
    unsigned           kept:1;         /* was pinned at some time */
    unsigned           doubt:1;        /* killed during the operation */
    unsigned           missing:1;
} test_known_t;


static void test_live(unsigned seed);
static void test_do(test_op_e op, uint32_t n);
static void test_replay(void);
static int test_zone(void);
static int test_blocks(void);
static int test_entries(void);
static int test_busy(void);
static int test_promises(void);
static void test_id(uint32_t n, u_char *id);
static size_t test_archive(uint32_t n, int replaced, u_char *p);
static int test_whole(uint32_t n, int *present);
static int test_is_archive(const ngx_http_profile_stored_t *st, uint32_t n,
    int replaced);
static void test_orphan(void);
static void test_reused(void);
static void test_reload(void);
static void test_twice(void);
static void test_list(void);
static void test_deletes(void);
static void test_limits(void);


static ngx_http_profile_store_t   store;
static ngx_shm_zone_t             shm_zone;
static test_journal_t            *journal;
static test_known_t              *known;
static uint32_t                   replayed;
static uint32_t                   unfinished;
static ngx_atomic_t              *mutex;
static uint32_t                   unlocked;


/* the parts of nginx that the store uses */

volatile ngx_cycle_t    *ngx_cycle;
volatile ngx_time_t     *ngx_cached_time;
ngx_pid_t                ngx_pid;
ngx_uint_t               ngx_test_config;
volatile ngx_msec_t      ngx_current_msec;
sig_atomic_t             ngx_quit, ngx_terminate;
ngx_module_t             ngx_http_profile_module;
uint32_t                 ngx_crc32_table256[256];

static ngx_cycle_t       test_cycle;
static ngx_log_t         test_log;
static ngx_time_t        test_time;
static uint32_t          test_locks;
static void            (*test_between)(void);


uint64_t
prof_measure_total(const prof_profile_t *p, uint32_t measure)
{
    return 0;
}


ngx_uint_t
ngx_shmtx_trylock(ngx_shmtx_t *mtx)
{
    if (!__sync_bool_compare_and_swap(mutex, 0, ngx_pid)) {
        return 0;
    }

    test_locks++;

    return 1;
}


ngx_uint_t
ngx_shmtx_force_unlock(ngx_shmtx_t *mtx, ngx_pid_t pid)
{
    unlocked++;

    return __sync_bool_compare_and_swap(mutex, (ngx_atomic_uint_t) pid, 0);
}


/* test_between() does what another process does while the lock is free */

void
ngx_shmtx_unlock(ngx_shmtx_t *mtx)
{
    (void) __sync_bool_compare_and_swap(mutex, ngx_pid, 0);

    if (test_between) {
        test_between();
    }
}


void *
ngx_alloc(size_t size, ngx_log_t *log)
{
    return malloc(size);
}


void *
ngx_pnalloc(ngx_pool_t *pool, size_t size)
{
    return malloc(size);
}


ngx_array_t *
ngx_array_create(ngx_pool_t *pool, ngx_uint_t n, size_t size)
{
    static ngx_array_t  list;

    list.elts = realloc(list.elts, n * size);
    list.nelts = 0;
    list.size = size;

    return &list;
}


void *
ngx_array_push(ngx_array_t *a)
{
    return (u_char *) a->elts + a->size * a->nelts++;
}


void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
}


u_char * ngx_cdecl
ngx_slprintf(u_char *buf, u_char *last, const char *fmt, ...)
{
    return buf;
}


u_char *
ngx_vslprintf(u_char *buf, u_char *last, const char *fmt, va_list args)
{
    return buf;
}


ngx_int_t
ngx_hextoi(u_char *line, size_t n)
{
    char  text[17];

    memcpy(text, line, n);
    text[n] = '\0';

    return strtoul(text, NULL, 16);
}


void
ngx_http_profile_load(ngx_http_profile_store_t *s, ngx_log_t *log)
{
}


int
main(int argc, char **argv)
{
    int        bad;
    pid_t      pid;
    uint32_t   i, k, rounds, inside;
    u_char    *p;

    rounds = argc > 1 ? (uint32_t) atoi(argv[1]) : 2000;

    for (i = 0; i < 256; i++) {
        ngx_crc32_table256[i] = i;

        for (k = 0; k < 8; k++) {
            ngx_crc32_table256[i] = (ngx_crc32_table256[i] >> 1)
                          ^ ((ngx_crc32_table256[i] & 1) ? 0xedb88320 : 0);
        }
    }

    p = mmap(NULL, TEST_ZONE + 4096 + sizeof(test_journal_t),
             PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS|MAP_NORESERVE,
             -1, 0);
    known = calloc(TEST_OPS, sizeof(test_known_t));

    if (p == MAP_FAILED || known == NULL) {
        return 1;
    }

    test_cycle.log = &test_log;
    ngx_cycle = &test_cycle;
    ngx_cached_time = &test_time;
    ngx_pid = getpid();

    mutex = (ngx_atomic_t *) p;
    journal = (test_journal_t *) (p + 4096 + TEST_ZONE);

    shm_zone.shm.addr = p + 64;
    shm_zone.data = &store;

    ((ngx_slab_pool_t *) shm_zone.shm.addr)->mutex.lock = mutex;
    ((ngx_slab_pool_t *) shm_zone.shm.addr)->start = p + 4096;
    ((ngx_slab_pool_t *) shm_zone.shm.addr)->end = p + 4096 + TEST_ZONE;

    is_int(ngx_http_profile_zone_init(&shm_zone, NULL), NGX_OK, "a zone");

    inside = 0;
    bad = 0;

    for (i = 0; i < rounds && !bad && journal->count < TEST_OPS / 2; i++) {
        pid = fork();

        if (pid == 0) {
            ngx_pid = getpid();
            test_live(i);
            _exit(0);
        }

        usleep(random() % 1500);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);

        /* the master does not know the zones of earlier configurations */

        if (i % 2 == 0) {
            (void) __sync_bool_compare_and_swap(mutex,
                                                (ngx_atomic_uint_t) pid, 0);
        }

        inside += store.zone->changing;

        test_replay();
        bad = test_zone();
    }

    is_int(bad, 0, "%u operations, killed %u times", journal->count, i);
    ok(unfinished > rounds / 100, "%u times while an archive was written",
       unfinished);
    ok(inside > rounds / 100, "%u times in the middle of a change", inside);
    is_int(store.zone->torn, 0, "no entry was torn");
    ok(store.zone->evicted > rounds, "the zone was full");
    ok(unlocked > 0, "a process that waited unlocked the mutex of a dead one");

    test_orphan();
    test_reused();
    test_reload();
    test_twice();
    test_list();
    test_limits();

    return done_testing();
}


/* runs until it is killed */

static void
test_live(unsigned seed)
{
    uint32_t  i, n;

    for ( ;; ) {

        i = rand_r(&seed) % TEST_PINS;

        switch (rand_r(&seed) % 8) {

        case 0:
            n = journal->n - rand_r(&seed) % 20;
            test_do(TEST_DELETE, n);
            break;

        case 1:
            if (journal->pins[i]) {
                n = journal->pins[i];
                test_do(TEST_UNPIN, n);
                journal->pins[i] = 0;

            } else {
                n = journal->n;
                journal->pins[i] = n;
                test_do(TEST_PIN, n);
            }

            break;

        case 2:
            n = journal->n - rand_r(&seed) % 10;
            test_do(TEST_REPLACE, n);
            break;

        default:
            test_do(TEST_ADD, journal->n + 1);
        }

        if (journal->count == TEST_OPS) {
            return;
        }
    }
}


static void
test_do(test_op_e op, uint32_t n)
{
    ngx_int_t                   rc;
    ngx_str_t                   id;
    test_entry_t               *e;
    ngx_http_profile_stored_t   st;
    u_char                      text[NGX_HTTP_PROFILE_ID_LEN];

    static u_char  archive[16384];

    e = &journal->ops[journal->count];
    e->done = 0;
    e->n = n;
    e->op = op;

    if (op == TEST_ADD) {
        journal->n = n;
    }

    journal->count++;

    test_id(n, text);

    id.data = text;
    id.len = sizeof(text);

    if (op == TEST_ADD || op == TEST_REPLACE) {
        ngx_memzero(&st, sizeof(st));
        ngx_memcpy(st.id, text, sizeof(text));

        st.uri = id;
        st.uri.len = n % 32;
        st.archive = archive;
        st.size = test_archive(n, op == TEST_REPLACE, archive);

        rc = op == TEST_ADD
             ? ngx_http_profile_store_add(&store, &st, &test_log)
             : ngx_http_profile_store_replace(&store, &st, &test_log);

    } else if (op == TEST_DELETE) {
        rc = ngx_http_profile_store_delete(&store, &id);

    } else {
        rc = ngx_http_profile_store_pin(&store, &id, op == TEST_PIN,
                                        &test_log);
    }

    e->rc = (rc == NGX_OK);
    e->done = 1;
}


/* the entries that the zone must have by the reports of the killed process */

static void
test_replay(void)
{
    test_known_t  *k;
    test_entry_t  *e;

    for ( /* void */ ; replayed < journal->count; replayed++) {

        e = &journal->ops[replayed];
        k = &known[e->n];

        /* a replacement that is not finished leaves one of the archives */

        if (!e->done && e->op != TEST_REPLACE) {
            k->doubt = 1;
        }

        if (e->op == TEST_PIN) {
            k->kept = 1;
        }

        if (!e->rc || !e->done) {
            continue;
        }

        switch (e->op) {

        case TEST_ADD:
            k->added = 1;
            break;

        case TEST_DELETE:
            k->gone = 1;
            break;

        case TEST_REPLACE:
            k->replaced = 1;
            break;

        default:
            k->pinned = (e->op == TEST_PIN);
        }
    }
}


static int
test_zone(void)
{
    int  bad;

    /* the next process repairs the zone */

    ngx_http_profile_zone_lock(&store, 1);
    bad = test_blocks() || test_entries();
    ngx_http_profile_zone_unlock(&store);

    return bad || test_promises();
}


/* each block is free, or belongs to one entry */

static int
test_blocks(void)
{
    char      *seen;
    uint32_t   n, i, used, nfree;

    seen = calloc(store.zone->nblocks, 1);
    nfree = 0;
    used = 0;

    for (n = store.zone->free; n != NGX_HTTP_PROFILE_NONE;
         n = ngx_http_profile_next(store.links[n]))
    {
        if (n >= store.zone->nblocks || seen[n]++) {
            diag("block %u is free twice, or is none", n);
            return 1;
        }

        nfree++;
    }

    for (i = 0; i < store.zone->nblocks; i++) {

        if (!(store.links[i] & NGX_HTTP_PROFILE_HEAD)) {
            continue;
        }

        for (n = i; n != NGX_HTTP_PROFILE_NONE;
             n = ngx_http_profile_next(store.links[n]))
        {
            if (n >= store.zone->nblocks || seen[n]++) {
                diag("block %u has two owners, or is none", n);
                return 1;
            }

            used++;
        }
    }

    free(seen);

    if (nfree != store.zone->nfree || nfree + used != store.zone->nblocks) {
        diag("%u blocks are free, %u are used, of %u; the zone says %u", nfree,
             used, store.zone->nblocks, store.zone->nfree);
        return 1;
    }

    return 0;
}


static int
test_entries(void)
{
    uint32_t                  n, newer, count, pinned, blocks;
    uint64_t                  order;
    ngx_http_profile_node_t  *node;

    newer = NGX_HTTP_PROFILE_NONE;
    order = UINT64_MAX;
    count = 0;
    pinned = 0;
    blocks = 0;

    for (n = store.zone->ready.newest; n != NGX_HTTP_PROFILE_NONE;
         n = node->older)
    {
        node = ngx_http_profile_node(&store, n);

        if (node->newer != newer || node->order >= order
            || !(store.links[n] & NGX_HTTP_PROFILE_HEAD)
            || ngx_http_profile_zone_find(&store, node->entry.id) != n)
        {
            diag("the entry in block %u is not where it should be", n);
            return 1;
        }

        newer = n;
        order = node->order;
        count++;

        if (node->entry.pinned) {
            pinned++;
            blocks += node->nblocks;
        }
    }

    if (store.zone->ready.oldest != newer || store.zone->entries != count
        || store.zone->pinned != pinned || store.zone->pinned_blocks != blocks
        || store.zone->bytes != 0)
    {
        diag("sums are wrong: %u entries, %u pinned", count, pinned);
        return 1;
    }

    return test_busy();
}


/*
 * At most one entry is unfinished: that of the last killed process.  The next
 * process that needs room removes it.
 */

static int
test_busy(void)
{
    uint32_t                  n, count;
    ngx_http_profile_node_t  *node;

    count = 0;

    for (n = store.zone->removed.newest; n != NGX_HTTP_PROFILE_NONE;
         n = node->older)
    {
        node = ngx_http_profile_node(&store, n);

        if (node->state != NGX_HTTP_PROFILE_WRITING
            || !(store.links[n] & NGX_HTTP_PROFILE_HEAD)
            || ngx_http_profile_alive(node->owner)
            || ngx_http_profile_zone_find(&store, node->entry.id) == n)
        {
            diag("the entry in block %u is nobody's", n);
            return 1;
        }

        count++;
    }

    unfinished += count;

    if (count > 1 || count != store.zone->busy) {
        diag("%u entries are unfinished, %u by the zone", count,
             store.zone->busy);
        return 1;
    }

    return 0;
}


/*
 * An entry that was added exists completely, unless it was deleted, or an
 * older entry was evicted: then all entries of its age or older were evicted
 * as well.
 */

static int
test_promises(void)
{
    int            present, missing;
    uint32_t       n;
    test_known_t  *k;

    missing = 0;

    for (n = journal->n; n && n + 2000 > journal->n; n--) {
        k = &known[n];

        if (test_whole(n, &present)) {
            diag("entry %u is torn", n);
            return 1;
        }

        if (present && k->gone) {
            diag("entry %u was deleted", n);
            return 1;
        }

        if (k->doubt || !k->added || k->gone) {
            continue;
        }

        if (!present && k->pinned) {
            diag("entry %u was pinned, and is gone", n);
            return 1;
        }

        if (present && k->missing) {
            diag("entry %u has come again", n);
            return 1;
        }

        if (present && missing && !k->kept) {
            diag("entry %u is there, but newer ones are gone", n);
            return 1;
        }

        if (!present) {
            k->missing = 1;
            missing = 1;
        }
    }

    return 0;
}


static int
test_whole(uint32_t n, int *present)
{
    int                         bad;
    ngx_int_t                   rc;
    ngx_str_t                   id;
    ngx_http_profile_stored_t  *st;
    u_char                      text[NGX_HTTP_PROFILE_ID_LEN];

    test_id(n, text);

    id.data = text;
    id.len = sizeof(text);

    rc = ngx_http_profile_store_get(&store, &id, &st, &test_log);

    *present = (rc == NGX_OK);

    if (rc != NGX_OK) {
        return 0;
    }

    bad = !(test_is_archive(st, n, 1)
            || (!known[n].replaced && test_is_archive(st, n, 0)))
          || st->uri.len != n % 32
          || memcmp(st->uri.data, text, st->uri.len) != 0;

    free(st);

    return bad;
}


static int
test_is_archive(const ngx_http_profile_stored_t *st, uint32_t n, int replaced)
{
    static u_char  archive[16384];

    return st->size == test_archive(n, replaced, archive)
           && memcmp(st->archive, archive, st->size) == 0;
}


static void
test_id(uint32_t n, u_char *id)
{
    char  text[NGX_HTTP_PROFILE_ID_LEN + 1];

    (void) snprintf(text, sizeof(text), "%08x%024x", n * 2654435761U, n);
    memcpy(id, text, NGX_HTTP_PROFILE_ID_LEN);
}


/* sizes near multiples of the block size, and some large ones */

static size_t
test_archive(uint32_t n, int replaced, u_char *p)
{
    size_t    size, i;
    uint32_t  x;

    size = (n % 13 == 0) ? 9000 + n % 5000 : n % 1700;
    size += replaced ? 700 : 0;
    x = n * 2246822519U + replaced;

    for (i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = x >> 24;
    }

    return size;
}


/*
 * A process was killed after it wrote its entry, before it released the entry.
 */

static void
test_orphan(void)
{
    test_do(TEST_ADD, journal->n + 1);

    ngx_http_profile_zone_lock(&store, 1);
    ngx_http_profile_zone_move(&store, store.zone->ready.newest,
                               NGX_HTTP_PROFILE_WRITING, 0);
    ngx_shmtx_unlock(&store.pool->mutex);

    is_int(test_blocks() || test_entries(), 0, "an entry of nobody");

    ngx_http_profile_zone_lock(&store, 0);
    is_int(store.zone->busy, 1, "it stays when the zone is checked");
    ngx_http_profile_zone_unlock(&store);

    test_do(TEST_ADD, journal->n + 1);

    is_int(store.zone->busy, 0, "and goes for the next one");
    is_int(test_blocks() || test_entries(), 0, "the others stay");
}


/* a process with the id of a killed process is a different process */

static void
test_reused(void)
{
    int       fds[2], status;
    char      ch;
    pid_t     pid;
    uint64_t  self, owner;

    self = ngx_http_profile_alive_self();

    ok(ngx_http_profile_alive(self), "this process is there");
    is_int(ngx_http_profile_alive_pid(self), getpid(), "by its id");
    ok(self >> 32 != 0, "and by a time");
    ok(!ngx_http_profile_alive(0), "nobody is not");
    ok(!ngx_http_profile_alive(0x7ffffff0), "nor an id that nobody has");

    /* the id of a process that is not one of nginx */

    (void) (pipe(fds) == 0);

    pid = fork();

    if (pid == 0) {
        (void) close(fds[0]);
        (void) setsid();
        _exit(write(fds[1], "", 1) == 1 && pause() == 0);
    }

    (void) close(fds[1]);

    ok(read(fds[0], &ch, 1) == 1 && !ngx_http_profile_alive(pid),
       "nor an id that a process of another session has");

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, &status, 0);
    (void) close(fds[0]);

    owner = self - ((uint64_t) 1 << 32);

    ok(!ngx_http_profile_alive(owner), "the one before with the same id");

    test_do(TEST_ADD, journal->n + 1);

    ngx_http_profile_zone_lock(&store, 1);
    ngx_http_profile_zone_move(&store, store.zone->ready.newest,
                               NGX_HTTP_PROFILE_WRITING, owner);
    ngx_http_profile_zone_unlock(&store);

    is_int(store.zone->busy, 1, "an entry of the one before");

    test_do(TEST_ADD, journal->n + 1);

    is_int(store.zone->busy, 0, "goes for the next one");
    is_int(test_blocks() || test_entries(), 0, "the others stay");
}


/*
 * Another process maps the zone at another address; damaged entries are
 * removed.
 */

static void
test_reload(void)
{
    int                        present;
    u_char                    *p;
    uint32_t                   n, entries;
    ngx_http_profile_store_t   before;

    before = store;
    entries = store.zone->entries;

    is_int(ngx_http_profile_zone_init(&shm_zone, &before), NGX_OK,
           "the zone again");
    is_int(store.zone->entries, entries, "with its entries");

    /* a zone consists of words and bytes only */

    p = malloc(TEST_ZONE);
    memcpy(p, store.pool->start, TEST_ZONE);

    store.links = (uint32_t *) (p + ((u_char *) store.links
                                     - store.pool->start));
    store.buckets = (uint32_t *) (p + ((u_char *) store.buckets
                                       - store.pool->start));
    store.blocks = p + (store.blocks - store.pool->start);
    store.zone = (ngx_http_profile_zone_t *) p;

    is_int(test_zone(), 0, "a copy of it at another address");

    n = store.zone->ready.newest;
    store.blocks[(size_t) n * NGX_HTTP_PROFILE_BLOCK
                 + offsetof(ngx_http_profile_node_t, entry) + 60]++;
    store.zone->changing = 1;

    ngx_http_profile_zone_lock(&store, 0);
    ngx_http_profile_zone_unlock(&store);

    is_int(store.zone->entries, entries - 1, "an entry that is damaged goes");
    is_int(store.zone->torn, 1, "and is counted");
    is_int(test_blocks() || test_entries(), 0, "the others are in order");

    /* no chain may lead out of the zone, or into another chain */

    for (n = 0; n < store.zone->nblocks; n++) {
        if (store.links[n] & NGX_HTTP_PROFILE_HEAD) {
            store.links[n] = NGX_HTTP_PROFILE_HEAD|NGX_HTTP_PROFILE_USED
                             |(n % 3 ? n : store.zone->nblocks + n);
        }
    }

    store.zone->changing = 1;

    ngx_http_profile_zone_lock(&store, 0);
    ngx_http_profile_zone_unlock(&store);

    is_int(test_blocks() || test_entries(), 0, "wild links");
    ok(store.zone->nfree > store.zone->nblocks / 2, "blocks are free again");

    (void) test_whole(journal->n, &present);

    free(p);

    is_int(ngx_http_profile_zone_init(&shm_zone, &before), NGX_OK,
           "and back");
}


/*
 * A process was killed while it replaced an entry: both have the id.  The age
 * and the pin stay those of the replaced entry.
 */

static void
test_twice(void)
{
    int                         present;
    uint32_t                    n, entries;
    uint64_t                    order;
    ngx_str_t                   id;
    ngx_http_profile_node_t    *node;
    ngx_http_profile_stored_t   st;
    u_char                      text[NGX_HTTP_PROFILE_ID_LEN];

    static u_char  archive[16384];

    n = journal->n + 1;

    test_do(TEST_ADD, n);
    test_do(TEST_PIN, n);

    entries = store.zone->entries;
    order = ngx_http_profile_node(&store, store.zone->ready.newest)->order;

    test_do(TEST_ADD, n + 1);
    test_do(TEST_REPLACE, n);
    test_replay();

    is_int(test_whole(n, &present), 0, "the entry has the new archive");
    ok(present, "the replaced entry is there");
    is_int(test_blocks() || test_entries(), 0, "all lists are in order");

    test_id(n, text);
    node = ngx_http_profile_node(&store,
                                 ngx_http_profile_zone_find(&store, text));

    is_int(node->order, order, "the entry has its former age");
    is_int(node->entry.pinned, 1, "the entry is pinned");

    id.data = text;
    id.len = sizeof(text);
    is_int(ngx_http_profile_store_delete(&store, &id), NGX_OK,
           "the entry is deleted");

    ngx_memzero(&st, sizeof(st));
    test_id(n, st.id);
    st.archive = archive;
    st.size = test_archive(n, 1, archive);

    is_int(ngx_http_profile_store_replace(&store, &st, &test_log),
           NGX_DECLINED, "a deleted entry is not replaced");
    is_int(test_whole(n, &present) || present, 0, "and does not come again");

    is_int(ngx_http_profile_store_add(&store, &st, &test_log), NGX_OK,
           "an entry");

    /* ngx_http_profile_store_add() does not find it */

    store.buckets[ngx_http_profile_zone_bucket(&store, text)] =
                                                        NGX_HTTP_PROFILE_NONE;

    is_int(ngx_http_profile_store_add(&store, &st, &test_log), NGX_OK,
           "a second entry of the same id");

    entries = store.zone->entries;
    store.zone->changing = 1;

    ngx_http_profile_zone_lock(&store, 0);
    ngx_http_profile_zone_unlock(&store);

    is_int(store.zone->entries, entries - 1, "one of both is removed");
    is_int(test_blocks() || test_entries(), 0, "the others are in order");
}


/*
 * A list is in the order of the entries, also if others remove the next entry
 * while the lock is free; and the lock is not held for the whole list.
 */

static void
test_list(void)
{
    uint32_t                    i, n, bad;
    uint64_t                    oldest, touched;
    ngx_uint_t                  more;
    ngx_str_t                   id;
    ngx_array_t                *list;
    ngx_http_profile_stored_t   st, *got;

    ngx_memzero(&st, sizeof(st));

    for (i = 0; i < 200; i++) {
        test_id(0x40000000 + i, st.id);
        (void) ngx_http_profile_store_add(&store, &st, &test_log);
    }

    n = store.zone->entries;
    oldest = ngx_http_profile_node(&store, store.zone->ready.oldest)->order;

    test_locks = 0;
    list = ngx_http_profile_store_list(&store, NULL, 0, n, &more);

    is_int(list->nelts, n, "a list of all %u entries", n);
    ok(!more, "has no more");
    ok(test_locks > n / 128, "others get the lock meanwhile: %u times",
       test_locks);

    got = list->elts;

    for (i = 1, bad = 0; i < list->nelts; i++) {
        bad += (got[i].order >= got[i - 1].order);
    }

    is_int(bad, 0, "the newest is first");

    test_locks = 0;
    list = ngx_http_profile_store_list(&store, NULL, oldest + 1, n, &more);

    is_int(list->nelts, 1, "the page with the oldest entry");
    ok(test_locks > n / 128, "others get the lock until it is found: %u times",
       test_locks);

    list = ngx_http_profile_store_list(&store, NULL, 0, n - 1, &more);
    ok(list->nelts == n - 1 && more, "a list without it has more");

    test_between = test_deletes;
    list = ngx_http_profile_store_list(&store, NULL, 0, n, &more);
    test_between = NULL;

    got = list->elts;

    for (i = 1, bad = 0; i < list->nelts; i++) {
        bad += (got[i].order >= got[i - 1].order);
    }

    is_int(bad, 0, "others remove entries meanwhile: none is there twice");

    for (i = 0, n = store.zone->ready.newest, bad = 0;
         n != NGX_HTTP_PROFILE_NONE;
         n = ngx_http_profile_node(&store, n)->older)
    {
        while (i < list->nelts
               && got[i].order > ngx_http_profile_node(&store, n)->order)
        {
            i++;
        }

        bad += (i == list->nelts
                || got[i].order != ngx_http_profile_node(&store, n)->order);
    }

    is_int(bad, 0, "and none that is left is missing");

    /* what counts as reading */

    id.data = st.id;
    id.len = NGX_HTTP_PROFILE_ID_LEN;

    test_time.sec += 1000;

    got = NULL;
    touched = ngx_http_profile_node(&store, store.zone->ready.newest)->touched;

    ok(ngx_http_profile_store_has(&store, &id), "an entry is there");
    is_int(ngx_http_profile_store_find(&store, &id, &got, &test_log), NGX_OK,
           "its facts are found");
    free(got);

    is_int(ngx_http_profile_node(&store, store.zone->ready.newest)->touched,
           touched, "neither counts as reading");

    is_int(ngx_http_profile_store_get(&store, &id, &got, &test_log), NGX_OK,
           "the profile is read");
    free(got);

    is_int(ngx_http_profile_node(&store, store.zone->ready.newest)->touched,
           touched + 1000, "this does");
}


/* deletes the 64th of the newest entries, which a list may visit next */

static void
test_deletes(void)
{
    uint32_t                  n, i;
    ngx_str_t                 id;
    ngx_http_profile_node_t  *node;

    n = store.zone->ready.newest;

    for (i = 1; i < NGX_HTTP_PROFILE_PIECE; i++) {
        n = ngx_http_profile_node(&store, n)->older;
    }

    node = ngx_http_profile_node(&store, n);

    id.data = node->entry.id;
    id.len = NGX_HTTP_PROFILE_ID_LEN;

    test_between = NULL;
    (void) ngx_http_profile_store_delete(&store, &id);
    test_between = test_deletes;
}


static void
test_limits(void)
{
    u_char                         *archive;
    ngx_str_t                       id;
    uint32_t                        i;
    ngx_http_profile_stored_t       st, *got;
    ngx_http_profile_store_stat_t   stat;
    u_char                          text[NGX_HTTP_PROFILE_ID_LEN];

    ngx_http_profile_store_stat(&store, &stat);

    archive = calloc(1, stat.memory_size);

    for (i = 0; i < stat.memory_size; i++) {
        archive[i] = (u_char) (i * 2654435761U >> 24);
    }

    ngx_memzero(&st, sizeof(st));

    st.archive = archive;
    st.size = stat.memory_size - sizeof(ngx_http_profile_node_t) + 1;
    test_id(1, st.id);

    ok(stat.entries > 10, "there are entries");
    is_int(ngx_http_profile_store_add(&store, &st, &test_log), NGX_DECLINED,
           "a byte too many");

    i = (uint32_t) stat.entries;
    ngx_http_profile_store_stat(&store, &stat);
    is_int(stat.entries, i, "takes nothing away");
    is_int(stat.dropped, 1, "and is counted");

    /* pinned entries reduce the room of the others */

    id.data = text;
    id.len = sizeof(text);

    for (i = journal->n; i && i + 100 > journal->n; i--) {
        test_id(i, text);
        (void) ngx_http_profile_store_pin(&store, &id, 1, &test_log);
    }

    ngx_http_profile_store_stat(&store, &stat);
    ok(stat.pinned > 0, "some are pinned");

    st.size -= 1;
    is_int(ngx_http_profile_store_add(&store, &st, &test_log), NGX_DECLINED,
           "all of the zone, but some is pinned");

    for (i = journal->n; i; i--) {
        test_id(i, text);
        (void) ngx_http_profile_store_pin(&store, &id, 0, &test_log);
    }

    is_int(ngx_http_profile_store_add(&store, &st, &test_log), NGX_OK,
           "all of it");

    ngx_http_profile_store_stat(&store, &stat);
    is_int(stat.entries, 1, "it is alone");
    is_int(stat.memory_used, stat.memory_size, "and fills the zone");

    /* the archive is read in pieces */

    memcpy(text, st.id, sizeof(text));
    is_int(ngx_http_profile_store_get(&store, &id, &got, &test_log), NGX_OK,
           "it is read");
    ok(got->size == st.size && memcmp(got->archive, archive, st.size) == 0,
       "and is what was written");
    free(got);

    text[0] = 'G';
    is_int(ngx_http_profile_store_delete(&store, &id), NGX_DECLINED,
           "an id that is none");
    id.len--;
    is_int(ngx_http_profile_store_delete(&store, &id), NGX_DECLINED,
           "one that is too short");

    memcpy(text, st.id, sizeof(text));
    id.len++;
    is_int(ngx_http_profile_store_delete(&store, &id), NGX_OK, "its own");

    ngx_http_profile_store_stat(&store, &stat);
    is_int(stat.memory_used, 0, "the zone is empty");

    free(archive);
}
