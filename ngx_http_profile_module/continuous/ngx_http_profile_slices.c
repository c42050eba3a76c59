
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The store of slices: slices are added, listed, read, merged and deleted.
 *
 * Context: a thread of jobs.
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_alive.h"


/* the number of entries that are listed while the store is locked */
#define NGX_HTTP_PROFILE_SLICES_PAGE    256

/* merged slices that one job makes, at most */
#define NGX_HTTP_PROFILE_SLICES_AT_ONCE  64


static void ngx_http_profile_slices_facts(
    ngx_http_profile_slice_facts_t *facts, ngx_http_profile_stored_t *st);
static ngx_uint_t ngx_http_profile_slices_select(
    ngx_http_profile_continuous_t *conf, ngx_http_profile_slice_facts_t *list,
    ngx_uint_t n);
static ngx_uint_t ngx_http_profile_slices_group(
    ngx_http_profile_continuous_t *conf, ngx_http_profile_slice_facts_t *list,
    ngx_uint_t n);
static int ngx_libc_cdecl ngx_http_profile_slices_compare(const void *one,
    const void *two);
static ngx_uint_t ngx_http_profile_slices_tend_all(
    ngx_http_profile_continuous_t *conf, uint64_t now);
static void ngx_http_profile_slices_merge(ngx_http_profile_continuous_t *conf,
    ngx_http_profile_slice_facts_t *list, ngx_uint_t n);
static void ngx_http_profile_slices_delete(
    ngx_http_profile_continuous_t *conf, ngx_http_profile_slice_facts_t *list,
    ngx_uint_t n);


/* the number of the merged slice that a time is in */

#define ngx_http_profile_slices_number(conf, time)                            \
    ((time) / ((conf)->slice * NGX_HTTP_PROFILE_SLICES_MERGED))


ngx_int_t
ngx_http_profile_slices_add(ngx_http_profile_continuous_t *conf,
    prof_profile_t *p, ngx_uint_t worker, u_char *id)
{
    ngx_int_t                  rc;
    prof_buf_t                 archive;
    ngx_http_profile_stored_t  st;

    ngx_memzero(&st, sizeof(ngx_http_profile_stored_t));

    if (id) {
        ngx_memcpy(st.id, id, NGX_HTTP_PROFILE_ID_LEN);
        ngx_str_set(&st.scope, "merged");

    } else {
        ngx_str_set(&st.scope, "slice");

        if (ngx_http_profile_make_id(st.id, ngx_cycle->log) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    prof_buf_init(&archive);

    if (prof_archive_write(p, &archive) != PROF_OK
        || prof_buf_failed(&archive))
    {
        prof_buf_free(&archive);
        return NGX_ERROR;
    }

    ngx_http_profile_store_measure(&st, p);

    st.start = p->start_realtime / 1000000;
    st.wall = p->duration ? p->duration : p->wall;
    st.waited = p->wall > p->running ? p->wall - p->running : 0;
    st.worker = worker;
    st.archive = (u_char *) archive.data;
    st.size = archive.len;

    rc = id ? ngx_http_profile_store_replace(conf->store, &st, ngx_cycle->log)
            : ngx_http_profile_store_add(conf->store, &st, ngx_cycle->log);

    prof_buf_free(&archive);

    return rc;
}


ngx_int_t
ngx_http_profile_slices_list(ngx_http_profile_continuous_t *conf,
    uint64_t from, uint64_t to, ngx_uint_t all,
    ngx_http_profile_slice_facts_t **list)
{
    uint64_t                    before;
    ngx_uint_t                  i, n, max, more;
    ngx_pool_t                 *pool;
    ngx_array_t                *page;
    ngx_http_profile_stored_t  *st;

    *list = NULL;
    n = 0;
    max = 0;
    before = 0;

    do {
        pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
        if (pool == NULL) {
            goto failed;
        }

        page = ngx_http_profile_store_list(conf->store, pool, before,
                                           NGX_HTTP_PROFILE_SLICES_PAGE, &more);

        if (page && n + page->nelts > max) {
            ngx_http_profile_slice_facts_t  *larger;

            max = 2 * (n + page->nelts);
            larger = realloc(*list, max
                                  * sizeof(ngx_http_profile_slice_facts_t));
            if (larger == NULL) {
                page = NULL;

            } else {
                *list = larger;
            }
        }

        if (page == NULL) {
            ngx_destroy_pool(pool);
            goto failed;
        }

        st = page->elts;

        for (i = 0; i < page->nelts; i++) {
            before = st[i].order;

            if (st[i].start >= from && st[i].start < to) {
                ngx_http_profile_slices_facts(&(*list)[n++], &st[i]);
            }
        }

        ngx_destroy_pool(pool);

    } while (more);

    if (n == 0) {
        return 0;
    }

    qsort(*list, n, sizeof(ngx_http_profile_slice_facts_t),
          ngx_http_profile_slices_compare);

    return all ? n : ngx_http_profile_slices_select(conf, *list, n);

failed:

    ngx_free(*list);
    *list = NULL;

    return NGX_ERROR;
}


static void
ngx_http_profile_slices_facts(ngx_http_profile_slice_facts_t *facts,
    ngx_http_profile_stored_t *st)
{
    ngx_memcpy(facts->id, st->id, NGX_HTTP_PROFILE_ID_LEN);

    facts->start = st->start;
    facts->length = st->wall / 1000000;
    facts->cpu = st->cpu;
    facts->idle = st->waited;
    facts->samples = st->samples;
    facts->worker = st->worker;
    facts->mode = st->mode;
    facts->merged = (st->scope.len && st->scope.data[0] == 'm');
}


/* removes from the list the slices that a merged slice has replaced */

static ngx_uint_t
ngx_http_profile_slices_select(ngx_http_profile_continuous_t *conf,
    ngx_http_profile_slice_facts_t *list, ngx_uint_t n)
{
    ngx_uint_t  i, j, k, group, merged;

    k = 0;

    for (i = 0; i < n; i += group) {
        group = ngx_http_profile_slices_group(conf, &list[i], n - i);
        merged = 0;

        for (j = i; j < i + group; j++) {
            merged |= list[j].merged;
        }

        for (j = i; j < i + group; j++) {
            if (list[j].merged == merged) {
                list[k++] = list[j];
            }
        }
    }

    return k;
}


/* returns how many slices at the start of the list make one merged slice */

static ngx_uint_t
ngx_http_profile_slices_group(ngx_http_profile_continuous_t *conf,
    ngx_http_profile_slice_facts_t *list, ngx_uint_t n)
{
    ngx_uint_t  i;

    for (i = 1; i < n; i++) {

        if (list[i].worker != list[0].worker
            || ngx_http_profile_slices_number(conf, list[i].start)
               != ngx_http_profile_slices_number(conf, list[0].start))
        {
            break;
        }
    }

    return i;
}


static int ngx_libc_cdecl
ngx_http_profile_slices_compare(const void *one, const void *two)
{
    const ngx_http_profile_slice_facts_t  *first, *second;

    first = one;
    second = two;

    if (first->worker != second->worker) {
        return first->worker < second->worker ? -1 : 1;
    }

    return (first->start > second->start) - (first->start < second->start);
}


prof_profile_t *
ngx_http_profile_slices_read(ngx_http_profile_continuous_t *conf, u_char *id)
{
    ngx_str_t                   name;
    prof_profile_t             *p;
    ngx_http_profile_stored_t  *st;

    name.data = id;
    name.len = NGX_HTTP_PROFILE_ID_LEN;

    if (ngx_http_profile_store_get(conf->store, &name, &st, ngx_cycle->log)
        != NGX_OK)
    {
        return NULL;
    }

    p = prof_archive_read(st->archive, st->size, NULL);

    ngx_free(st);

    return p;
}


void
ngx_http_profile_slices_remove(ngx_http_profile_continuous_t *conf,
    ngx_uint_t worker, uint64_t since)
{
    ngx_int_t                        i, n;
    ngx_http_profile_slice_facts_t  *list;

    n = ngx_http_profile_slices_list(conf, 0, UINT64_MAX, 1, &list);

    for (i = 0; i < n; i++) {

        if (list[i].worker == worker
            && list[i].start + list[i].length > since)
        {
            ngx_http_profile_slices_delete(conf, &list[i], 1);
        }
    }

    ngx_free(list);
}


/* if a process is killed while it merges, another process merges later */

void
ngx_http_profile_slices_tend(ngx_http_profile_continuous_t *conf,
    uint64_t now)
{
    uint64_t                        number;
    ngx_atomic_uint_t               owner;
    ngx_http_profile_slice_page_t  *page;

    page = conf->page;
    number = ngx_http_profile_slices_number(conf, now);
    owner = page->merging;

    if (page->merged == number || ngx_http_profile_alive(owner)
        || !ngx_atomic_cmp_set(&page->merging, owner,
                               ngx_http_profile_alive_self()))
    {
        return;
    }

    if (ngx_http_profile_slices_tend_all(conf, now)) {
        page->merged = number;
    }

    ngx_memory_barrier();
    page->merging = 0;
}


/* merges and deletes old slices; returns 1 if all old slices are merged */

static ngx_uint_t
ngx_http_profile_slices_tend_all(ngx_http_profile_continuous_t *conf,
    uint64_t now)
{
    ngx_int_t                        n;
    ngx_uint_t                       i, j, group, merges;
    ngx_http_profile_slice_facts_t  *list, *first;

    n = ngx_http_profile_slices_list(conf, 0, now - conf->slice, 1, &list);

    merges = 0;

    for (i = 0;
         (ngx_int_t) i < n && merges < NGX_HTTP_PROFILE_SLICES_AT_ONCE;
         i += group)
    {
        first = &list[i];
        group = ngx_http_profile_slices_group(conf, first, n - i);

        if (first[group - 1].start + conf->keep < now) {
            ngx_http_profile_slices_delete(conf, first, group);
            continue;
        }

        if (group == 1
            || (ngx_http_profile_slices_number(conf, first->start) + 1)
               * conf->slice * NGX_HTTP_PROFILE_SLICES_MERGED + conf->merge
               > now)
        {
            continue;
        }

        for (j = 0; j < group && !first[j].merged; j++) {
            /* void */
        }

        if (j < group) {

            /* the merged slice exists: the others remained or came late */

            ngx_http_profile_slices_delete(conf, first, j);
            ngx_http_profile_slices_delete(conf, first + j + 1, group - j - 1);
            continue;
        }

        ngx_http_profile_slices_merge(conf, first, group);
        merges++;
    }

    ngx_free(list);

    return n >= 0 && (ngx_int_t) i >= n;
}


/* merges n slices; the merged slice has the id and the age of the first one */

static void
ngx_http_profile_slices_merge(ngx_http_profile_continuous_t *conf,
    ngx_http_profile_slice_facts_t *list, ngx_uint_t n)
{
    int              rc;
    ngx_uint_t       i;
    prof_merge_t    *merge;
    prof_profile_t  *p;

    merge = prof_merge_create("worker", 0);
    if (merge == NULL) {
        return;
    }

    for (i = 0; i < n; i++) {
        p = ngx_http_profile_slices_read(conf, list[i].id);
        rc = p ? prof_merge_add(merge, p, NULL, 0) : PROF_ERROR;

        prof_profile_destroy(p);

        /* slices are deleted only if the merged slice contains all of them */

        if (rc != PROF_OK) {
            prof_merge_destroy(merge);
            return;
        }
    }

    p = prof_merge_finish(merge);

    if (ngx_http_profile_slices_add(conf, p, list[0].worker, list[0].id)
        == NGX_OK)
    {
        ngx_http_profile_slices_delete(conf, list + 1, n - 1);
    }

    prof_profile_destroy(p);
}


static void
ngx_http_profile_slices_delete(ngx_http_profile_continuous_t *conf,
    ngx_http_profile_slice_facts_t *list, ngx_uint_t n)
{
    ngx_str_t   id;
    ngx_uint_t  i;

    for (i = 0; i < n; i++) {
        id.data = list[i].id;
        id.len = NGX_HTTP_PROFILE_ID_LEN;

        (void) ngx_http_profile_store_delete(conf->store, &id);
    }
}
