
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A day of the continuous profile without nginx: each slice of some workers is
 * added at its time, and old slices are merged and deleted.  After each slice
 * the store is counted block by block.  Each hour the CPU time of all slices is
 * compared with what was added.
 *
 * usage: day_test HOURS
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "store/ngx_http_profile_zone.h"

#include "tap.h"

#include <sys/mman.h>


#define TEST_ZONE     (2 * 1024 * 1024)
#define TEST_SMALL    (128 * 1024)
#define TEST_WORKERS  2
#define TEST_START    1795392000000ULL     /* a multiple of an hour */


/* the parts of nginx that the store uses, beside its own sources */

volatile ngx_cycle_t    *ngx_cycle;
volatile ngx_time_t     *ngx_cached_time;
ngx_pid_t                ngx_pid;
ngx_uint_t               ngx_pagesize = 4096;
ngx_uint_t               ngx_test_config;
volatile ngx_msec_t      ngx_current_msec;
sig_atomic_t             ngx_quit, ngx_terminate;
ngx_module_t             ngx_http_profile_module;
uint32_t                 ngx_crc32_table256[256];

static ngx_cycle_t       test_cycle;
static ngx_log_t         test_log;
static ngx_time_t        test_time;
static uint32_t          test_ids;


static void test_day(size_t size, ngx_uint_t hours, ngx_uint_t all);
static void *test_zone(ngx_http_profile_store_t *store, size_t size);
static prof_profile_t *test_slice(uint64_t start, uint32_t seed,
    uint64_t *cpu);
static int test_blocks(ngx_http_profile_store_t *store);
static uint64_t test_cpu(ngx_http_profile_continuous_t *conf, uint64_t from,
    uint64_t to, ngx_uint_t *n, ngx_uint_t *merged);


ngx_uint_t ngx_shmtx_trylock(ngx_shmtx_t *mtx) { return 1; }
ngx_uint_t ngx_shmtx_force_unlock(ngx_shmtx_t *mtx, ngx_pid_t pid) { return 1; }
void ngx_shmtx_unlock(ngx_shmtx_t *mtx) { }


void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
}


ngx_int_t
ngx_http_profile_make_id(u_char *id, ngx_log_t *log)
{
    char  text[NGX_HTTP_PROFILE_ID_LEN + 1];

    (void) snprintf(text, sizeof(text), "%08x%024x",
                    test_ids * 2654435761U, test_ids);
    memcpy(id, text, NGX_HTTP_PROFILE_ID_LEN);
    test_ids++;

    return NGX_OK;
}


/* a pool is a list of its allocations */

ngx_pool_t *
ngx_create_pool(size_t size, ngx_log_t *log)
{
    return calloc(1, sizeof(ngx_pool_t));
}


void *
ngx_pnalloc(ngx_pool_t *pool, size_t size)
{
    ngx_pool_large_t  *large;

    large = malloc(sizeof(ngx_pool_large_t) + size);
    large->next = pool->large;
    pool->large = large;

    return large + 1;
}


void
ngx_destroy_pool(ngx_pool_t *pool)
{
    ngx_pool_large_t  *large, *next;

    for (large = pool->large; large; large = next) {
        next = large->next;
        free(large);
    }

    free(pool);
}


ngx_array_t *
ngx_array_create(ngx_pool_t *pool, ngx_uint_t n, size_t size)
{
    ngx_array_t  *a;

    a = ngx_pnalloc(pool, sizeof(ngx_array_t));

    a->elts = ngx_pnalloc(pool, n * size);
    a->nelts = 0;
    a->nalloc = n;
    a->size = size;

    return a;
}


void *
ngx_array_push(ngx_array_t *a)
{
    return a->nelts < a->nalloc ? (u_char *) a->elts + a->nelts++ * a->size
                                : NULL;
}


void *
ngx_alloc(size_t size, ngx_log_t *log)
{
    return malloc(size);
}


u_char *
ngx_vslprintf(u_char *buf, u_char *last, const char *fmt, va_list args)
{
    return buf;
}


u_char * ngx_cdecl
ngx_slprintf(u_char *buf, u_char *last, const char *fmt, ...)
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
    uint32_t    i, k;
    ngx_uint_t  hours;

    hours = argc > 1 ? (ngx_uint_t) atoi(argv[1]) : 24;

    for (i = 0; i < 256; i++) {
        ngx_crc32_table256[i] = i;

        for (k = 0; k < 8; k++) {
            ngx_crc32_table256[i] = (ngx_crc32_table256[i] >> 1)
                          ^ ((ngx_crc32_table256[i] & 1) ? 0xedb88320 : 0);
        }
    }

    test_cycle.log = &test_log;
    ngx_cycle = &test_cycle;
    ngx_cached_time = &test_time;
    ngx_pid = getpid();

    test_day(TEST_ZONE, hours, 1);
    test_day(TEST_SMALL, hours, 0);

    return done_testing();
}


/* all: the store has room for all slices that are kept */

static void
test_day(size_t size, ngx_uint_t hours, ngx_uint_t all)
{
    uint64_t                        now, cpu, *added;
    ngx_uint_t                      i, w, n, merged, wrong, lost, slices;
    prof_profile_t                 *p;
    ngx_http_profile_store_t        store;
    ngx_http_profile_slice_page_t   page;
    ngx_http_profile_continuous_t   conf;
    ngx_http_profile_store_stat_t   st;

    memset(&store, 0, sizeof(store));
    memset(&page, 0, sizeof(page));
    memset(&conf, 0, sizeof(conf));

    conf.slice = 10000;
    conf.merge = 15 * 60 * 1000;
    conf.keep = 60 * 60 * 1000;
    conf.store = &store;
    conf.page = &page;

    is_int(test_zone(&store, size) != NULL, 1, "%zu bytes", size);

    now = TEST_START;
    slices = hours * 360;
    added = calloc(slices, sizeof(uint64_t));
    wrong = 0;
    lost = 0;

    for (i = 0; i < slices; i++) {
        now = TEST_START + (i + 1) * conf.slice;

        test_time.sec = now / 1000;
        test_time.msec = now % 1000;

        for (w = 0; w < TEST_WORKERS; w++) {
            p = test_slice(now - conf.slice, i * TEST_WORKERS + w, &cpu);

            lost += ngx_http_profile_slices_add(&conf, p, w, NULL) != NGX_OK;
            added[i] += cpu;

            prof_profile_destroy(p);
        }

        ngx_http_profile_slices_tend(&conf, now);

        wrong += !test_blocks(&store);
    }

    is_int(wrong, 0, "no block is lost or used twice, after each slice");
    is_int(lost, 0, "each slice is stored");

    ngx_http_profile_store_stat(&store, &st);

    cpu = 0;

    if (all) {

        /* deleted with the next minute that ends */

        for (i = slices - 360; i < slices; i++) {
            cpu += added[i];
        }

        now -= conf.keep;

        ok(test_cpu(&conf, now, UINT64_MAX, &n, &merged) == cpu,
           "the hour has all CPU time, and no time twice");
        is_int(st.evicted, 0, "no slice was evicted");
        ok(merged >= 40 * TEST_WORKERS && merged <= 46 * TEST_WORKERS,
           "older slices are merged: %d of %d", (int) merged, (int) n);
        ok(n <= (46 + 96) * TEST_WORKERS, "and slices that were merged are deleted");

    } else {
        ok(st.evicted > 0, "slices are evicted");
        ok(st.memory_used <= st.memory_size, "memory has its limit");

        /* the newest slices are there */

        for (i = slices - 3; i < slices; i++) {
            cpu += added[i];
        }

        ok(test_cpu(&conf, now - 3 * conf.slice, UINT64_MAX, &n, &merged)
           == cpu, "the newest slices are complete");
    }

    ok(test_cpu(&conf, 0, now - (all ? 120000 : 3720000), &n, &merged) == 0,
       "no slice is older than an hour");

    free(added);
}


static void *
test_zone(ngx_http_profile_store_t *store, size_t size)
{
    u_char           *p;
    ngx_slab_pool_t  *pool;
    ngx_shm_zone_t    zone;

    p = mmap(NULL, size + 4096, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        return NULL;
    }

    memset(&zone, 0, sizeof(zone));

    zone.shm.addr = p;
    zone.data = store;

    pool = (ngx_slab_pool_t *) p;
    pool->start = p + 4096;
    pool->end = p + 4096 + size;

    return ngx_http_profile_zone_init(&zone, NULL) == NGX_OK ? p : NULL;
}


/* stacks of 20 frames; some functions are in all slices */

static prof_profile_t *
test_slice(uint64_t start, uint32_t seed, uint64_t *cpu)
{
    uint32_t         i, k, parent;
    prof_entry_t    *e;
    prof_profile_t  *p;

    p = prof_profile_create("worker");

    p->mode = PROF_MODE_CPU;
    p->aggregated = 1;
    p->start_realtime = start * 1000000;
    p->duration = 10000000000;
    p->wall = p->duration;

    p->nframes = 64;
    p->frames = calloc(p->nframes, sizeof(prof_frame_t));

    for (i = 0; i < p->nframes; i++) {
        seed = seed * 1103515245 + 12345;
        p->frames[i].object = PROF_NONE;
        p->frames[i].pc = 0x1000 + (i < 32 ? i : seed >> 20) * 16;
    }

    p->nnodes = 20 * 20;
    p->nodes = calloc(p->nnodes, sizeof(prof_node_t));

    *cpu = 0;

    for (i = 0; i < 20; i++) {
        parent = PROF_NONE;

        for (k = 0; k < 20; k++) {
            seed = seed * 1103515245 + 12345;
            p->nodes[20 * i + k].parent = parent;
            p->nodes[20 * i + k].frame = (seed >> 16) % p->nframes;
            parent = 20 * i + k;
        }

        e = prof_series_add(&p->series[PROF_SERIES_TIME]);
        e->node = parent;
        e->labels = PROF_NONE;
        e->count = 1;
        e->values[PROF_VALUE_CPU] = 1000000 + seed % 1000000;
        e->values[PROF_VALUE_WALL] = e->values[PROF_VALUE_CPU];

        *cpu += e->values[PROF_VALUE_CPU];
    }

    p->cpu = *cpu;
    p->running = *cpu;
    p->stats.samples = 20;

    return p;
}


/* returns whether each block is free, or belongs to one ready entry */

static int
test_blocks(ngx_http_profile_store_t *store)
{
    uint32_t                  n, used, free;
    ngx_http_profile_node_t  *node;

    used = 0;
    free = 0;

    for (n = store->zone->ready.oldest; n != NGX_HTTP_PROFILE_NONE;
         n = node->newer)
    {
        node = ngx_http_profile_node(store, n);
        used += node->nblocks;
    }

    for (n = store->zone->free; n != NGX_HTTP_PROFILE_NONE;
         n = ngx_http_profile_next(store->links[n]))
    {
        free++;
    }

    return free == store->zone->nfree
           && used + free == store->zone->nblocks
           && store->blocks + (size_t) store->zone->nblocks
                              * NGX_HTTP_PROFILE_BLOCK
              <= store->pool->end;
}


/* the sums of facts and of archives have to be equal */

static uint64_t
test_cpu(ngx_http_profile_continuous_t *conf, uint64_t from, uint64_t to,
    ngx_uint_t *n, ngx_uint_t *merged)
{
    uint64_t                         facts, archives;
    ngx_int_t                        i, k;
    prof_profile_t                  *p;
    ngx_http_profile_slice_facts_t  *list;

    facts = 0;
    archives = 0;
    *merged = 0;

    k = ngx_http_profile_slices_list(conf, from, to, 0, &list);

    for (i = 0; i < k; i++) {
        facts += list[i].cpu;
        *merged += list[i].merged;

        p = ngx_http_profile_slices_read(conf, list[i].id);
        archives += p ? prof_measure_total(p, PROF_MEASURE_CPU) : 0;
        prof_profile_destroy(p);
    }

    free(list);

    *n = k;

    return facts == archives ? facts : UINT64_MAX;
}
