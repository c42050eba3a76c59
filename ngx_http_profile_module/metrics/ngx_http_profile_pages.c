
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directory of places, and the pages of counters.
 *
 * The memory of pages is not a zone of nginx: the number of pages depends on
 * the number of workers that live at the same time.  That number changes when
 * a reload starts new workers, and old workers still serve requests.
 */


#include "core/ngx_http_profile_alive.h"
#include "metrics/ngx_http_profile_metrics_private.h"

#include <sys/mman.h>


/* bytes of the event handlers of a directory */
#define NGX_HTTP_PROFILE_KNOWN_SIZE                                           \
    (NGX_HTTP_PROFILE_HANDLERS * sizeof(ngx_http_profile_known_t))


static ngx_http_profile_directory_t *ngx_http_profile_directory_create(
    ngx_http_profile_main_conf_t *pmcf, ngx_uint_t workers);
static void ngx_http_profile_directory_keep(ngx_http_profile_directory_t *dir,
    ngx_http_profile_directory_t *old);
static void ngx_http_profile_directory_add(ngx_http_profile_directory_t *dir,
    ngx_http_profile_location_t *location);
static void ngx_http_profile_place_mark(ngx_http_profile_directory_t *dir,
    ngx_uint_t place);
static ngx_int_t ngx_http_profile_place_known(
    ngx_http_profile_directory_t *dir, ngx_http_profile_location_t *location,
    ngx_uint_t *place);
static ngx_int_t ngx_http_profile_place_new(
    ngx_http_profile_directory_t *dir, ngx_http_profile_location_t *location,
    ngx_uint_t *place);
static ngx_int_t ngx_http_profile_place_reuse(
    ngx_http_profile_directory_t *dir, ngx_uint_t *place);
static ngx_int_t ngx_http_profile_place_set(ngx_http_profile_place_t *place,
    ngx_str_t *server, ngx_str_t *location);
static ngx_http_profile_counters_t *ngx_http_profile_page_of(
    ngx_http_profile_directory_t *dir, ngx_uint_t worker);
static void *ngx_http_profile_map(size_t size);
static size_t ngx_http_profile_exemplars_size(ngx_uint_t max);
static size_t ngx_http_profile_page_size(ngx_uint_t max);


ngx_http_profile_directory_t  *ngx_http_profile_directory;


void
ngx_http_profile_metrics_init(ngx_cycle_t *cycle)
{
    size_t                         size;
    ngx_uint_t                     i, workers;
    ngx_core_conf_t               *ccf;
    ngx_http_profile_counters_t   *page;
    ngx_http_profile_directory_t  *dir;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    if (pmcf == NULL || pmcf->places == 0) {

        ngx_http_profile_metrics_close();

        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    workers = ccf->master ? (ngx_uint_t) ccf->worker_processes : 1;

    dir = ngx_http_profile_directory_create(pmcf, workers);

    if (dir == NULL) {
        goto failed;
    }

    if (dir->exemplars == NULL) {
        dir->exemplars = ngx_http_profile_map(
                                  ngx_http_profile_exemplars_size(dir->max));

        if (dir->exemplars == NULL) {
            goto failed;
        }
    }

    if (dir->known == NULL) {
        dir->known = ngx_http_profile_map(NGX_HTTP_PROFILE_KNOWN_SIZE);

        if (dir->known == NULL) {
            goto failed;
        }
    }

    if (dir->history == NULL) {
        dir->history = ngx_http_profile_history_begin(
              ngx_http_profile_map(ngx_http_profile_history_size(dir->max)));

        if (dir->history == NULL) {
            goto failed;
        }
    }

    size = ngx_http_profile_page_size(dir->max);

    for (i = 0; i < workers; i++) {

        if (ngx_http_profile_page_of(dir, i)) {
            continue;
        }

        page = ngx_http_profile_map(size);

        if (page == NULL) {
            goto failed;
        }

        page->worker = i;
        dir->pages[dir->npages++] = page;
    }

    return;

failed:

    ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                  "profile: no memory for metrics, until the next reload "
                  "requests of some workers are not counted");
}


/* the new directory has the places and pages of the one that it replaces */

static ngx_http_profile_directory_t *
ngx_http_profile_directory_create(ngx_http_profile_main_conf_t *pmcf,
    ngx_uint_t workers)
{
    ngx_uint_t                     i, n, limit, npages;
    ngx_http_profile_location_t   *location;
    ngx_http_profile_directory_t  *dir, *old;

    static ngx_str_t   other = ngx_string("other");
    static ngx_uint_t  largest;

    old = ngx_http_profile_directory;
    limit = pmcf->places;

    /*
     * A process without a master still serves requests of earlier
     * configurations, which count at the places that they had.
     */

    if (ngx_process == NGX_PROCESS_SINGLE) {
        largest = ngx_max(largest, limit);
        limit = largest;
    }

    if (old && old->limit != limit) {
        ngx_http_profile_metrics_close();
        old = NULL;
    }

    npages = old ? old->npages : 0;

    dir = ngx_calloc(sizeof(ngx_http_profile_directory_t)
                     + (2 * limit + 1) * sizeof(ngx_http_profile_place_t)
                     + (npages + workers)
                       * sizeof(ngx_http_profile_counters_t *),
                     ngx_cycle->log);
    if (dir == NULL) {
        return NULL;
    }

    dir->users = 1;
    dir->generation = old ? old->generation + 1 : 1;
    dir->limit = limit;
    dir->max = 2 * limit;
    dir->places = (ngx_http_profile_place_t *) (dir + 1);
    dir->pages = (ngx_http_profile_counters_t **) (dir->places + dir->max + 1);

    if (old) {
        ngx_http_profile_directory_keep(dir, old);

    } else if (ngx_http_profile_place_set(&dir->places[dir->nplaces++],
                                          &other, &other)
               != NGX_OK)
    {
        ngx_http_profile_directory_free(dir);
        return NULL;
    }

    location = pmcf->locations.elts;

    /* locations that have a place keep it, and new ones come after them */

    for (i = 0; i < pmcf->locations.nelts; i++) {
        if (ngx_http_profile_place_known(dir, &location[i], &n) == NGX_OK) {
            ngx_http_profile_place_mark(dir, n);
        }
    }

    for (i = 0; i < pmcf->locations.nelts; i++) {
        ngx_http_profile_directory_add(dir, &location[i]);
    }

    ngx_http_profile_directory = dir;

    if (old) {
        ngx_http_profile_directory_free(old);
    }

    return dir;
}


static void
ngx_http_profile_directory_keep(ngx_http_profile_directory_t *dir,
    ngx_http_profile_directory_t *old)
{
    ngx_uint_t                 i;
    ngx_http_profile_place_t  *place;

    for (i = 0; i < old->nplaces; i++) {

        place = &old->places[i];

        /* if memory is short, the place has no name and is not shown */

        (void) ngx_http_profile_place_set(&dir->places[i], &place->server,
                                          &place->location);
        dir->places[i].own = place->own;
        dir->places[i].generation = place->generation;
    }

    dir->nplaces = old->nplaces;
    dir->npages = old->npages;
    dir->exemplars = old->exemplars;
    dir->history = old->history;
    dir->known = old->known;

    ngx_memcpy(dir->pages, old->pages,
               old->npages * sizeof(ngx_http_profile_counters_t *));
}


/*
 * The place of a location.  Locations without a place share the first one.
 * Locations that a reload has removed keep their places until others need them.
 */

static void
ngx_http_profile_directory_add(ngx_http_profile_directory_t *dir,
    ngx_http_profile_location_t *location)
{
    ngx_uint_t                    i;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = location->conf;
    plcf->place = NGX_HTTP_PROFILE_OTHER;

    if (ngx_http_profile_place_known(dir, location, &i) != NGX_OK
        && ngx_http_profile_place_new(dir, location, &i) != NGX_OK)
    {
        return;
    }

    ngx_http_profile_place_mark(dir, i);

    if (dir->places[i].generation == dir->generation) {
        dir->places[i].own = ngx_http_profile_is_own(plcf);
        plcf->place = i;
    }
}


/* the configuration has the place, up to the limit */

static void
ngx_http_profile_place_mark(ngx_http_profile_directory_t *dir,
    ngx_uint_t place)
{
    if (dir->places[place].generation != dir->generation
        && dir->current < dir->limit)
    {
        dir->places[place].generation = dir->generation;
        dir->current++;
    }
}


static ngx_int_t
ngx_http_profile_place_known(ngx_http_profile_directory_t *dir,
    ngx_http_profile_location_t *location, ngx_uint_t *place)
{
    ngx_str_t                 *server, *name;
    ngx_uint_t                 i;
    ngx_http_profile_place_t  *p;

    server = &location->server;
    name = &location->name;

    for (i = NGX_HTTP_PROFILE_OTHER + 1; i < dir->nplaces; i++) {

        p = &dir->places[i];

        if (p->server.data
            && p->server.len == server->len
            && p->location.len == name->len
            && ngx_memcmp(p->server.data, server->data, server->len) == 0
            && ngx_memcmp(p->location.data, name->data, name->len) == 0)
        {
            *place = i;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_place_new(ngx_http_profile_directory_t *dir,
    ngx_http_profile_location_t *location, ngx_uint_t *place)
{
    ngx_uint_t  i;

    if (dir->current == dir->limit) {
        return NGX_DECLINED;
    }

    i = dir->nplaces;

    if (i > dir->max && ngx_http_profile_place_reuse(dir, &i) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_http_profile_place_set(&dir->places[i], &location->server,
                                   &location->name)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    dir->nplaces += (i == dir->nplaces);

    *place = i;

    return NGX_OK;
}


/*
 * Takes the place of a location that the configuration has not had for longest.
 * The configuration before this one did not have it either: its workers may
 * still begin, and their pages do not tell.  Workers that had the location have
 * ended, so no process writes its counters.
 */

static ngx_int_t
ngx_http_profile_place_reuse(ngx_http_profile_directory_t *dir,
    ngx_uint_t *place)
{
    ngx_uint_t                    i, n, best, oldest;
    ngx_http_profile_counters_t  *page;

    oldest = dir->generation - 1;

    for (n = 0; n < dir->npages; n++) {
        page = dir->pages[n];

        if (page->generation && page->generation < oldest
            && ngx_http_profile_alive(page->owner))
        {
            oldest = page->generation;
        }
    }

    best = NGX_HTTP_PROFILE_OTHER;

    for (i = NGX_HTTP_PROFILE_OTHER + 1; i < dir->nplaces; i++) {

        if (dir->places[i].generation < oldest
            && (best == NGX_HTTP_PROFILE_OTHER
                || dir->places[i].generation < dir->places[best].generation))
        {
            best = i;
        }
    }

    if (best == NGX_HTTP_PROFILE_OTHER
        || ngx_http_profile_history_clear(dir, best) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    for (n = 0; n < dir->npages; n++) {
        ngx_memzero(&ngx_http_profile_page_cells(dir, dir->pages[n])[best],
                    sizeof(ngx_http_profile_cell_t));
    }

    if (dir->exemplars) {
        ngx_memzero(&dir->exemplars[best * NGX_HTTP_PROFILE_BUCKETS],
                    NGX_HTTP_PROFILE_BUCKETS
                    * sizeof(ngx_http_profile_exemplar_t));
    }

    ngx_free(dir->places[best].server.data);
    dir->places[best].server.data = NULL;

    *place = best;

    return NGX_OK;
}


/* one piece of memory for both texts */

static ngx_int_t
ngx_http_profile_place_set(ngx_http_profile_place_t *place,
    ngx_str_t *server, ngx_str_t *location)
{
    u_char  *p;

    p = ngx_alloc(server->len + location->len + 1, ngx_cycle->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    place->server.data = p;
    place->server.len = server->len;
    p = ngx_cpymem(p, server->data, server->len);

    place->location.data = p;
    place->location.len = location->len;
    ngx_memcpy(p, location->data, location->len);

    return NGX_OK;
}


/* returns the page of this process, or a page that it may take, or NULL */

static ngx_http_profile_counters_t *
ngx_http_profile_page_of(ngx_http_profile_directory_t *dir, ngx_uint_t worker)
{
    ngx_uint_t                    i;
    ngx_http_profile_counters_t  *page;

    for (i = 0; i < dir->npages; i++) {
        page = dir->pages[i];

        if (page->worker == worker
            && (page->owner == ngx_http_profile_alive_self()
                || !ngx_http_profile_alive(page->owner)))
        {
            return page;
        }
    }

    return NULL;
}


void
ngx_http_profile_metrics_open(ngx_cycle_t *cycle)
{
    ngx_http_profile_counters_t   *page;
    ngx_http_profile_directory_t  *dir;
    ngx_http_profile_main_conf_t  *pmcf;

    dir = ngx_http_profile_directory;
    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    page = (dir && pmcf && pmcf->places)
           ? ngx_http_profile_page_of(dir, ngx_worker) : NULL;

    if (page) {
        page->generation = dir->generation;
    }

    ngx_http_profile_worker_in(page);
    ngx_http_profile_count_in(dir, page);
    ngx_http_profile_handled_in(dir, page);
    ngx_http_profile_history_in(page ? dir : NULL);
}


void
ngx_http_profile_metrics_close(void)
{
    size_t                         size;
    ngx_uint_t                     i;
    ngx_http_profile_directory_t  *dir;

    dir = ngx_http_profile_directory;

    if (dir == NULL) {
        return;
    }

    ngx_http_profile_worker_in(NULL);
    ngx_http_profile_count_in(NULL, NULL);
    ngx_http_profile_handled_in(NULL, NULL);
    ngx_http_profile_history_in(NULL);
    ngx_http_profile_directory = NULL;

    size = ngx_http_profile_page_size(dir->max);

    /* in a process without a master a job may still read the pages */

    for (i = 0; i < dir->npages && ngx_process == NGX_PROCESS_MASTER; i++) {
        (void) munmap(dir->pages[i], size);
    }

    if (dir->exemplars && ngx_process == NGX_PROCESS_MASTER) {
        (void) munmap(dir->exemplars,
                      ngx_http_profile_exemplars_size(dir->max));
    }

    if (dir->known && ngx_process == NGX_PROCESS_MASTER) {
        (void) munmap(dir->known, NGX_HTTP_PROFILE_KNOWN_SIZE);
    }

    if (dir->history && ngx_process == NGX_PROCESS_MASTER) {
        (void) munmap(dir->history, ngx_http_profile_history_size(dir->max));
    }

    ngx_http_profile_directory_free(dir);
}


ngx_http_profile_directory_t *
ngx_http_profile_directory_hold(void)
{
    if (!ngx_http_profile_metrics_on()) {
        return NULL;
    }

    ngx_http_profile_directory->users++;

    return ngx_http_profile_directory;
}


ngx_uint_t
ngx_http_profile_metrics_on(void)
{
    return ngx_http_profile_directory && ngx_http_profile_directory->history;
}


void
ngx_http_profile_directory_free(ngx_http_profile_directory_t *dir)
{
    ngx_uint_t  i;

    if (--dir->users) {
        return;
    }

    for (i = 0; i < dir->nplaces; i++) {
        ngx_free(dir->places[i].server.data);
    }

    ngx_free(dir);
}


/* shared memory of zeros, or NULL */

static void *
ngx_http_profile_map(size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}


static size_t
ngx_http_profile_exemplars_size(ngx_uint_t max)
{
    return (max + 1) * NGX_HTTP_PROFILE_BUCKETS
           * sizeof(ngx_http_profile_exemplar_t);
}


static size_t
ngx_http_profile_page_size(ngx_uint_t max)
{
    return sizeof(ngx_http_profile_counters_t)
           + (max / 64 + 1) * sizeof(uint64_t)
           + (max + 1) * sizeof(ngx_http_profile_cell_t);
}
