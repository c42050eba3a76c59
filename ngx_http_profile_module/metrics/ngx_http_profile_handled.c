
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Event handlers: their counters in a page, the list of handlers that all
 * workers share, and their names.
 *
 * A process finds the counters of a handler by its address in a table of its
 * own.  Addresses differ between processes when a reload loads modules again,
 * so the shared list has objects, and addresses in them.  A process adds a
 * handler without a lock.  If two processes add the same handler at once, both
 * entries get the same name, and their sums are added up.
 */


#include "core/ngx_http_profile_alive.h"
#include "metrics/ngx_http_profile_metrics_private.h"

#include <string.h>


/* the table of a process is never full, so each search ends */
#define NGX_HTTP_PROFILE_HANDLER_TABLE  (2 * NGX_HTTP_PROFILE_HANDLERS)

/* the search of the last place may pass all functions, and ends at a 0 */
#define NGX_HTTP_PROFILE_HANDLER_ENTRIES                                      \
    (NGX_HTTP_PROFILE_HANDLER_PLACES + NGX_HTTP_PROFILE_HANDLER_TABLE)


static ngx_http_profile_handled_t *ngx_http_profile_handler_add(
    ngx_http_profile_handler_t *entry, uintptr_t function);
static ngx_uint_t ngx_http_profile_known_index(
    ngx_http_profile_known_t *known);
static ngx_uint_t ngx_http_profile_known_take(ngx_http_profile_known_t *k);
static ngx_int_t ngx_http_profile_known_describe(
    ngx_http_profile_known_t *known, uintptr_t function);
static ngx_uint_t ngx_http_profile_known_is(ngx_http_profile_known_t *known,
    ngx_http_profile_known_t *other);
static void ngx_http_profile_known_name(ngx_http_profile_known_t *known);
static prof_profile_t *ngx_http_profile_known_profile(
    ngx_http_profile_known_t *known, ngx_uint_t *frames);
static uint32_t ngx_http_profile_known_object(prof_profile_t *p,
    ngx_http_profile_known_t *known);
static void ngx_http_profile_handler_sum(ngx_http_profile_handler_sums_t *sums,
    const char *name, ngx_http_profile_handled_t *handled);


PROF_HOT_DATA static ngx_http_profile_handler_t
    ngx_http_profile_handler_table[NGX_HTTP_PROFILE_HANDLER_ENTRIES];

static ngx_uint_t                    ngx_http_profile_handler_n;
static ngx_http_profile_known_t     *ngx_http_profile_handler_known;
static ngx_http_profile_counters_t  *ngx_http_profile_handler_page;


void
ngx_http_profile_handled_in(ngx_http_profile_directory_t *dir,
    ngx_http_profile_counters_t *page)
{
    ngx_http_profile_handlers_t  *handlers;

    handlers = &ngx_http_profile_handlers;
    handlers->table = NULL;
    handlers->last.function = 0;

    if (page == NULL || dir->known == NULL) {
        return;
    }

    ngx_memzero(ngx_http_profile_handler_table,
                sizeof(ngx_http_profile_handler_table));

    ngx_http_profile_handler_n = 0;
    ngx_http_profile_handler_known = dir->known;
    ngx_http_profile_handler_page = page;

    handlers->add = ngx_http_profile_handler_add;
    handlers->idle = &page->idle;
    handlers->last.counters = &page->handled[NGX_HTTP_PROFILE_OTHER];
    handlers->table = ngx_http_profile_handler_table;
}


static ngx_http_profile_handled_t *
ngx_http_profile_handler_add(ngx_http_profile_handler_t *entry,
    uintptr_t function)
{
    ngx_uint_t                index;
    ngx_http_profile_known_t  known;

    if (ngx_http_profile_handler_n == NGX_HTTP_PROFILE_HANDLER_TABLE - 1) {
        return &ngx_http_profile_handler_page->handled[NGX_HTTP_PROFILE_OTHER];
    }

    index = ngx_http_profile_known_describe(&known, function) == NGX_OK
            ? ngx_http_profile_known_index(&known) : NGX_HTTP_PROFILE_OTHER;

    entry->function = function;
    entry->counters = &ngx_http_profile_handler_page->handled[index];

    ngx_http_profile_handler_n++;

    return entry->counters;
}


/* returns the index of the handler, which is added if there is space for it */

static ngx_uint_t
ngx_http_profile_known_index(ngx_http_profile_known_t *known)
{
    ngx_uint_t                 i, state;
    ngx_http_profile_known_t  *k;

    for (i = 1; i < NGX_HTTP_PROFILE_HANDLERS; i++) {

        k = &ngx_http_profile_handler_known[i];
        state = __atomic_load_n(&k->state, __ATOMIC_ACQUIRE);

        if (state >= NGX_HTTP_PROFILE_KNOWN_UNNAMED) {

            if (ngx_http_profile_known_is(k, known)) {
                return i;
            }

            continue;
        }

        if (!ngx_http_profile_known_take(k)) {
            continue;
        }

        /* another process may have completed the entry meanwhile */

        if (k->state != NGX_HTTP_PROFILE_KNOWN_FREE) {
            k->owner = 0;
            i--;
            continue;
        }

        known->owner = k->owner;
        *k = *known;

        __atomic_store_n(&k->state, NGX_HTTP_PROFILE_KNOWN_UNNAMED,
                         __ATOMIC_RELEASE);
        k->owner = 0;

        return i;
    }

    return NGX_HTTP_PROFILE_OTHER;
}


/*
 * Makes this process the one that writes the entry.  Returns 0 if another one
 * writes it.  A process that was killed while it wrote the entry owns it no
 * longer.
 */

static ngx_uint_t
ngx_http_profile_known_take(ngx_http_profile_known_t *k)
{
    uint64_t  owner, self;

    owner = k->owner;
    self = ngx_http_profile_alive_self();

    if (owner && (owner == self || ngx_http_profile_alive(owner))) {
        return 0;
    }

    return ngx_atomic_cmp_set(&k->owner, owner, self);
}


/* NGX_DECLINED: the address is in no object */

static ngx_int_t
ngx_http_profile_known_describe(ngx_http_profile_known_t *known,
    uintptr_t function)
{
    size_t                len;
    u_char               *last;
    const prof_object_t  *object;
    const prof_unwind_t  *u;

    u = prof_process_unwind();
    object = u ? prof_unwind_object(u, function) : NULL;

    if (object == NULL) {
        return NGX_DECLINED;
    }

    ngx_memzero(known, sizeof(ngx_http_profile_known_t));

    if (prof_unwind_function(u, function, &len) == function) {
        known->len = len;
    }

    known->function = function - object->base;
    known->start = object->start - object->base;
    known->end = object->end - object->base;
    known->offset = object->offset;
    known->base = object->base;

    (void) ngx_cpystrn((u_char *) known->path, (u_char *) object->path,
                       sizeof(known->path));

    last = ngx_hex_dump((u_char *) known->build_id,
                        (u_char *) object->build_id, object->build_id_len);
    *last = '\0';

    return NGX_OK;
}


static ngx_uint_t
ngx_http_profile_known_is(ngx_http_profile_known_t *known,
    ngx_http_profile_known_t *other)
{
    return known->function == other->function
           && strcmp(known->build_id, other->build_id) == 0
           && strcmp(known->path, other->path) == 0;
}


void
ngx_http_profile_handler_sums(ngx_http_profile_directory_t *dir,
    ngx_http_profile_handler_sums_t *sums)
{
    ngx_uint_t                   i, n;
    ngx_http_profile_known_t    *known;
    ngx_http_profile_handled_t   sum, *handled;

    sums->n = 0;

    if (dir->known == NULL) {
        return;
    }

    ngx_http_profile_known_name(dir->known);

    for (i = 0; i < NGX_HTTP_PROFILE_HANDLERS; i++) {

        ngx_memzero(&sum, sizeof(ngx_http_profile_handled_t));

        for (n = 0; n < dir->npages; n++) {
            handled = &dir->pages[n]->handled[i];

            sum.calls += ngx_http_profile_counter(&handled->calls);
            sum.time += ngx_http_profile_counter(&handled->time);
            sum.latency += ngx_http_profile_counter(&handled->latency);
        }

        if (sum.calls == 0) {
            continue;
        }

        known = &dir->known[i];

        /* a handler that was added after the naming is left out this time */

        if (i == NGX_HTTP_PROFILE_OTHER) {
            ngx_http_profile_handler_sum(sums, "other", &sum);

        } else if (__atomic_load_n(&known->state, __ATOMIC_ACQUIRE)
                   == NGX_HTTP_PROFILE_KNOWN_NAMED)
        {
            ngx_http_profile_handler_sum(sums, known->name, &sum);
        }
    }
}


static void
ngx_http_profile_handler_sum(ngx_http_profile_handler_sums_t *sums,
    const char *name, ngx_http_profile_handled_t *handled)
{
    ngx_uint_t                       i;
    ngx_http_profile_handler_sum_t  *sum;

    for (i = 0; i < sums->n; i++) {
        if (strcmp(sums->list[i].name, name) == 0) {
            break;
        }
    }

    sum = &sums->list[i];

    if (i == sums->n) {
        sums->n++;

        ngx_memzero(&sum->sums, sizeof(ngx_http_profile_handled_t));
        (void) ngx_cpystrn((u_char *) sum->name, (u_char *) name,
                           sizeof(sum->name));
    }

    sum->sums.calls += handled->calls;
    sum->sums.time += handled->time;
    sum->sums.latency += handled->latency;
}


/* names the handlers that have no name; several processes may do so at once */

static void
ngx_http_profile_known_name(ngx_http_profile_known_t *known)
{
    ngx_uint_t                 i, frames[NGX_HTTP_PROFILE_HANDLERS];
    prof_profile_t            *p;
    ngx_http_profile_known_t  *k;

    p = ngx_http_profile_known_profile(known, frames);

    if (p == NULL) {
        return;
    }

    if (prof_profile_symbolize(p) != PROF_OK) {
        prof_profile_destroy(p);
        return;
    }

    for (i = 0; i < p->nframes; i++) {

        k = &known[frames[i]];

        if (!ngx_http_profile_known_take(k)) {
            continue;
        }

        if (k->state == NGX_HTTP_PROFILE_KNOWN_UNNAMED) {
            (void) ngx_cpystrn((u_char *) k->name,
                               (u_char *) p->frames[i].name, sizeof(k->name));

            __atomic_store_n(&k->state, NGX_HTTP_PROFILE_KNOWN_NAMED,
                             __ATOMIC_RELEASE);
        }

        k->owner = 0;
    }

    prof_profile_destroy(p);
}


/* returns a profile of the handlers without a name, or NULL */

static prof_profile_t *
ngx_http_profile_known_profile(ngx_http_profile_known_t *known,
    ngx_uint_t *frames)
{
    ngx_uint_t       i, n;
    prof_frame_t    *f;
    prof_profile_t  *p;

    for (n = 0, i = 1; i < NGX_HTTP_PROFILE_HANDLERS; i++) {

        if (__atomic_load_n(&known[i].state, __ATOMIC_ACQUIRE)
            == NGX_HTTP_PROFILE_KNOWN_UNNAMED)
        {
            frames[n++] = i;
        }
    }

    p = n ? prof_profile_create("handlers") : NULL;

    if (p == NULL) {
        return NULL;
    }

    p->objects = calloc(n, sizeof(prof_profile_object_t));
    p->frames = calloc(n, sizeof(prof_frame_t));

    for (i = 0; p->objects && p->frames && i < n; i++) {

        f = &p->frames[i];

        f->type = PROF_TYPE_CODE;
        f->pc = known[frames[i]].function;
        f->function = known[frames[i]].len ? f->pc : 0;
        f->function_len = known[frames[i]].len;
        f->object = ngx_http_profile_known_object(p, &known[frames[i]]);

        if (f->object == PROF_NONE) {
            break;
        }

        p->nframes++;
    }

    if (i < n) {
        prof_profile_destroy(p);
        return NULL;
    }

    return p;
}


static uint32_t
ngx_http_profile_known_object(prof_profile_t *p,
    ngx_http_profile_known_t *known)
{
    uint32_t                i;
    prof_profile_object_t  *o;

    for (i = 0; i < p->nobjects; i++) {
        o = &p->objects[i];

        if (strcmp(o->build_id, known->build_id) == 0
            && strcmp(o->path, known->path) == 0)
        {
            return i;
        }
    }

    o = &p->objects[p->nobjects++];

    o->path = strdup(known->path);
    o->build_id = strdup(known->build_id);
    o->start = known->start;
    o->end = known->end;
    o->offset = known->offset;
    o->base = known->base;

    return o->path && o->build_id ? i : PROF_NONE;
}
