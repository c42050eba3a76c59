
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Builds a snapshot: prof_unwind_create().
 *
 * Room for all rows is reserved first, far more than needed (address space,
 * not memory), then they are written in place, and what was not used is given
 * back.  The aux bytes grow in a reservation of their own meanwhile.
 *
 * Context: not in a signal.
 */


#include "unwind/prof_cfi.h"
#include "unwind/prof_object.h"
#include "unwind/prof_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>


/* times to start again because another thread loaded an object meanwhile */

#define PROF_BUILD_TRIES  16


typedef struct {
    prof_object_list_t   list;

    uint8_t             *map;       /* the snapshot to be */
    size_t               size;
    prof_unwind_t       *u;
    prof_range_t        *ranges;
    prof_object_t       *objects;
    prof_eh_t           *eh;
    char                *paths;
    uint32_t            *index;
    uint64_t            *rows;

    uint8_t             *scratch;
    size_t               scratch_size;
    int8_t              *aux;
    prof_eh_fde_t       *fdes;

    size_t               nindex;
    size_t               nrows;
    size_t               first;     /* row of the current object */
    size_t               max;       /* rows that were reserved */
    uintptr_t            start;     /* code of the current object */
    uintptr_t            end;
    uintptr_t            covered;   /* by rows, up to here */
    prof_cfi_cie_t       cie;
} prof_build_t;


static prof_unwind_t *prof_build_snapshot(prof_build_t *b);
static int prof_build_reserve(prof_build_t *b);
static void *prof_build_map(size_t size);
static void prof_build_fill(void *data);
static void prof_build_object_rows(prof_build_t *b, const prof_eh_t *eh);
static void prof_build_entry(prof_build_t *b, const prof_eh_t *eh,
    const uint8_t *p);
static void prof_build_emit(void *data, uintptr_t pc,
    const prof_cfi_state_t *state);
static void prof_build_row(prof_build_t *b, uintptr_t pc, uint64_t rule,
    int8_t aux);
static void prof_build_index(prof_build_t *b, uint32_t *index);
static prof_unwind_t *prof_build_finish(prof_build_t *b);
static size_t prof_build_pages(const prof_object_t *object);
static size_t prof_build_align(size_t size);
static uint64_t prof_build_now(void);


prof_unwind_t *
prof_unwind_create(void)
{
    int             i;
    uint64_t        start;
    prof_build_t   *b;
    prof_unwind_t  *u;

    b = malloc(sizeof(prof_build_t));

    if (b == NULL) {
        return NULL;
    }

    start = prof_build_now();
    u = NULL;

    for (i = 0; i < PROF_BUILD_TRIES && u == NULL; i++) {

        memset(b, 0, sizeof(prof_build_t));

        if (prof_object_list(&b->list) == PROF_OK
            && prof_build_reserve(b) == PROF_OK)
        {
            u = prof_build_snapshot(b);

        } else {
            i = PROF_BUILD_TRIES;
        }

        if (u == NULL && b->map) {
            (void) munmap(b->map, b->size);
        }

        if (b->scratch) {
            (void) munmap(b->scratch, b->scratch_size);
        }

        prof_object_list_free(&b->list);
    }

    if (u) {
        u->info.build_ns = prof_build_now() - start;

        /* nobody writes to it from here on */

        (void) mprotect(u, u->info.bytes, PROT_READ);
    }

    free(b);

    return u;
}


static prof_unwind_t *
prof_build_snapshot(prof_build_t *b)
{
    if (prof_object_locked(b->list.adds, b->list.subs, prof_build_fill, b)
        != PROF_OK)
    {
        return NULL;
    }

    return prof_build_finish(b);
}


static int
prof_build_reserve(prof_build_t *b)
{
    size_t               len, paths, pages, fdes, head;
    uint32_t             i;
    prof_object_info_t  *object;

    paths = 0;
    pages = 0;
    fdes = 0;

    for (i = 0; i < b->list.n; i++) {
        object = &b->list.objects[i];

        paths += strlen(object->pub.path) + 1;
        pages += prof_build_pages(&object->pub) + 1;

        /*
         * An instruction that makes a row and the advance before it take two
         * bytes; an FDE has two rows without such, and a head.
         */

        len = object->eh.frame ? (size_t) (object->eh.frame_end
                                           - object->eh.frame)
                               : 0;
        b->max += len / 2 + 2;

        if (object->eh.table == NULL && prof_eh_max(len) > fdes) {
            fdes = prof_eh_max(len);
        }
    }

    head = prof_build_align(sizeof(prof_unwind_t)
                             + b->list.n * (sizeof(prof_range_t)
                                            + sizeof(prof_object_t)
                                            + sizeof(prof_eh_t))
                             + paths)
           + prof_build_align(pages * sizeof(uint32_t));

    b->size = head + b->max * (sizeof(uint64_t) + 1);
    b->scratch_size = prof_build_align(b->max)
                      + fdes * sizeof(prof_eh_fde_t);

    b->map = prof_build_map(b->size);
    b->scratch = prof_build_map(b->scratch_size);

    if (b->map == NULL || b->scratch == NULL) {
        return PROF_ERROR;
    }

    b->u = (prof_unwind_t *) b->map;
    b->ranges = (prof_range_t *) (b->u + 1);
    b->objects = (prof_object_t *) (b->ranges + b->list.n);
    b->eh = (prof_eh_t *) (b->objects + b->list.n);
    b->paths = (char *) (b->eh + b->list.n);
    b->rows = (uint64_t *) (b->map + head);
    b->index = (uint32_t *) (b->map + head
                             - prof_build_align(pages * sizeof(uint32_t)));
    b->aux = (int8_t *) b->scratch;
    b->fdes = (prof_eh_fde_t *) (b->scratch + prof_build_align(b->max));

    return PROF_OK;
}


static void *
prof_build_map(size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    return (p == MAP_FAILED) ? NULL : p;
}


/* runs with the loader locked */

static void
prof_build_fill(void *data)
{
    prof_build_t *b = data;

    size_t               len;
    uint32_t             i;
    prof_object_info_t  *object;

    for (i = 0; i < b->list.n; i++) {
        object = &b->list.objects[i];

        len = strlen(object->pub.path) + 1;
        memcpy(b->paths, object->pub.path, len);

        b->objects[i] = object->pub;
        b->objects[i].path = b->paths;
        b->eh[i] = object->eh;

        b->paths += len;

        b->start = object->pub.start;
        b->end = object->pub.end;

        prof_build_object_rows(b, &object->eh);

        b->ranges[i].start = b->start;
        b->ranges[i].end = b->end;
        b->ranges[i].index = b->index + b->nindex;

        prof_build_index(b, b->index + b->nindex);

        b->nindex += prof_build_pages(&object->pub) + 1;
    }
}


static void
prof_build_object_rows(prof_build_t *b, const prof_eh_t *eh)
{
    size_t  i, n;

    b->first = b->nrows;
    b->covered = b->start;

    prof_build_row(b, b->start, prof_row(PROF_ROW_NONE, 0, 0), 0);

    if (eh->frame == NULL) {
        return;
    }

    if (eh->table) {

        for (i = 0; i < eh->n; i++) {
            prof_build_entry(b, eh, prof_eh_table(eh, i));
        }

    } else {
        n = prof_eh_list(eh, b->fdes);

        for (i = 0; i < n; i++) {
            prof_build_entry(b, eh, b->fdes[i].p);
        }
    }

    if (b->covered < b->end) {
        prof_build_row(b, b->covered, prof_row(PROF_ROW_NONE, 0, 0), 0);
    }
}


static void
prof_build_entry(prof_build_t *b, const prof_eh_t *eh,
    const uint8_t *p)
{
    prof_fde_t  fde;

    if (prof_eh_entry(eh, &p, &b->cie.cie, &fde) != PROF_OK
        || fde.start < b->start || fde.end > b->end)
    {
        return;
    }

    if (fde.start > b->covered) {
        prof_build_row(b, b->covered, prof_row(PROF_ROW_NONE, 0, 0), 0);
    }

    prof_cfi_run(&b->cie, &fde, prof_build_emit, b);

    b->covered = fde.end;
}


static void
prof_build_emit(void *data, uintptr_t pc, const prof_cfi_state_t *state)
{
    prof_build_t *b = data;

    int8_t    aux;
    uint64_t  rule;

    aux = 0;

    if (state->unsupported) {
        rule = prof_row(PROF_ROW_UNSUPPORTED, 0, 0);

    } else if (state->signal) {
        rule = prof_row(PROF_ROW_SIGFRAME, 0, 0);

    } else if (state->reg[PROF_CFI_RA].how == PROF_CFI_UNDEFINED) {
        rule = prof_row(PROF_ROW_END, 0, 0);

    } else {
        rule = prof_arch_row(state, &aux);
    }

    prof_build_row(b, pc, rule, aux);
}


static void
prof_build_row(prof_build_t *b, uintptr_t pc, uint64_t rule,
    int8_t aux)
{
    uint32_t  rel;

    rel = (uint32_t) (pc - b->start);

    /* of two entries that overlap, the one that starts later counts */

    while (b->nrows > b->first && prof_row_pc(b->rows[b->nrows - 1]) >= rel) {
        b->nrows--;
    }

    if (b->nrows > b->first
        && prof_row_rule(b->rows[b->nrows - 1]) == rule
        && b->aux[b->nrows - 1] == aux)
    {
        return;
    }

    if (b->nrows == b->max) {
        return;
    }

    b->rows[b->nrows] = rule | rel;
    b->aux[b->nrows] = aux;
    b->nrows++;
}


static void
prof_build_index(prof_build_t *b, uint32_t *index)
{
    size_t    i, n, row;
    uint64_t  pc;

    n = (b->end - b->start + PROF_TABLE_PAGE - 1) >> PROF_TABLE_PAGE_BITS;
    row = b->first;

    for (i = 0; i <= n; i++) {
        pc = (uint64_t) i << PROF_TABLE_PAGE_BITS;

        while (row + 1 < b->nrows && prof_row_pc(b->rows[row + 1]) <= pc) {
            row++;
        }

        index[i] = (uint32_t) row;
    }
}


static prof_unwind_t *
prof_build_finish(prof_build_t *b)
{
    size_t          i, size;
    int8_t         *aux;
    prof_unwind_t  *u;

    u = b->u;
    aux = (int8_t *) (b->rows + b->nrows);

    memcpy(aux, b->aux, b->nrows);

    u->ranges = b->ranges;
    u->objects = b->objects;
    u->eh = b->eh;
    u->rows = b->rows;
    u->aux = aux;
    u->adds = b->list.adds;
    u->subs = b->list.subs;

    u->info.objects = b->list.n;
    u->info.rows = (uint32_t) b->nrows;

    for (i = 0; i < b->nrows; i++) {
        if (prof_row_kind(b->rows[i]) == PROF_ROW_UNSUPPORTED
            || prof_row_fp(b->rows[i]) == PROF_ROW_LOST)
        {
            u->info.unsupported++;
        }
    }

    size = prof_build_align((size_t) ((uint8_t *) aux + b->nrows - b->map));

    if (size < prof_build_align(b->size)) {
        (void) munmap(b->map + size, prof_build_align(b->size) - size);
    }

    u->info.bytes = size;

    return u;
}


static size_t
prof_build_pages(const prof_object_t *object)
{
    return (object->end - object->start + PROF_TABLE_PAGE - 1)
           >> PROF_TABLE_PAGE_BITS;
}


static size_t
prof_build_align(size_t size)
{
    size_t  page;

    page = (size_t) sysconf(_SC_PAGESIZE);

    return (size + page - 1) & ~(page - 1);
}


static uint64_t
prof_build_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
