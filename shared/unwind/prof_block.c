
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The builder reserves more address space than all rows need, which uses no
 * memory.  It writes the rows in place, and releases the unused space.  The
 * parts behind the rows grow in a second reservation.
 */


#include "unwind/prof_block.h"
#include "unwind/prof_cfi.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


typedef struct {
    prof_block_t        *block;     /* the block in construction */
    size_t               size;
    uint32_t            *index;
    size_t               npages;
    uint64_t            *rows;

    uint8_t             *scratch;
    size_t               scratch_size;
    int8_t              *aux;
    prof_function_t     *functions;
    prof_eh_fde_t       *fdes;

    size_t               nrows;
    size_t               nfunctions;
    size_t               max;       /* the number of reserved rows */
    size_t               max_functions;
    uintptr_t            start;     /* first byte of the code */
    uintptr_t            end;
    uintptr_t            covered;   /* the code up to here has rows */
    prof_cfi_cie_t       cie;
} prof_build_t;


static int prof_build_reserve(prof_build_t *b,
    const prof_object_info_t *object);
static void *prof_build_map(size_t size);
static void prof_build_rows(prof_build_t *b, const prof_eh_t *eh);
static void prof_build_entry(prof_build_t *b, const prof_eh_t *eh,
    const uint8_t *p);
static void prof_build_emit(void *data, uintptr_t pc,
    const prof_cfi_state_t *state);
static void prof_build_row(prof_build_t *b, uintptr_t pc, uint64_t rule,
    int8_t aux);
static void prof_build_function(prof_build_t *b, const prof_fde_t *fde);
static void prof_build_index(prof_build_t *b);
static const prof_block_t *prof_build_finish(prof_build_t *b,
    const prof_object_info_t *object);
static size_t prof_build_align(size_t size);


const prof_block_t *
prof_block_build(const prof_object_info_t *object)
{
    prof_build_t         b;
    const prof_block_t  *block;

    memset(&b, 0, sizeof(prof_build_t));

    block = NULL;

    if (prof_build_reserve(&b, object) == PROF_OK) {
        prof_build_rows(&b, &object->eh);
        prof_build_index(&b);

        block = prof_build_finish(&b, object);

    } else if (b.block) {
        (void) munmap(b.block, b.size);
    }

    if (b.scratch) {
        (void) munmap(b.scratch, b.scratch_size);
    }

    return block;
}


void
prof_block_free(const prof_block_t *block)
{
    (void) munmap((void *) block, block->size);
}


int
prof_block_of(const prof_block_t *block, const prof_object_info_t *object)
{
    const prof_object_t  *a, *b;

    a = &block->object;
    b = &object->pub;

    return a->base == b->base && a->start == b->start && a->end == b->end
           && a->offset == b->offset && a->build_id_len == b->build_id_len
           && memcmp(a->build_id, b->build_id, b->build_id_len) == 0
           && block->print == object->print && strcmp(a->path, b->path) == 0;
}


static int
prof_build_reserve(prof_build_t *b, const prof_object_info_t *object)
{
    size_t            len, nfdes;
    const prof_eh_t  *eh;

    eh = &object->eh;

    b->start = object->pub.start;
    b->end = object->pub.end;
    b->npages = (b->end - b->start + PROF_TABLE_PAGE - 1)
                >> PROF_TABLE_PAGE_BITS;

    /*
     * An instruction that makes a row and the advance before it take two
     * bytes.  An FDE has a header, and two of its rows need no instructions.
     */

    len = eh->frame ? (size_t) (eh->frame_end - eh->frame) : 0;
    nfdes = (eh->frame && eh->table == NULL) ? prof_eh_max(len) : 0;

    b->max = len / 2 + 2;
    b->max_functions = eh->table ? eh->n : nfdes;

    b->scratch_size = nfdes * sizeof(prof_eh_fde_t)
                      + b->max_functions * sizeof(prof_function_t) + b->max;

    /* the rows begin at a multiple of their size */

    len = sizeof(prof_block_t) + ((b->npages + 2) & ~(size_t) 1)
                                 * sizeof(uint32_t);

    b->size = prof_build_align(len + b->max * sizeof(uint64_t)
                               + b->scratch_size
                               + strlen(object->pub.path) + 1);
    b->scratch_size = prof_build_align(b->scratch_size);

    b->block = prof_build_map(b->size);
    b->scratch = prof_build_map(b->scratch_size);

    if (b->block == NULL || b->scratch == NULL) {
        return PROF_ERROR;
    }

    b->index = (uint32_t *) (b->block + 1);
    b->rows = (uint64_t *) ((uint8_t *) b->block + len);

    b->fdes = (prof_eh_fde_t *) b->scratch;
    b->functions = (prof_function_t *) (b->fdes + nfdes);
    b->aux = (int8_t *) (b->functions + b->max_functions);

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


static void
prof_build_rows(prof_build_t *b, const prof_eh_t *eh)
{
    size_t  i, n;

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
    prof_build_function(b, &fde);

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

    /* if two entries overlap, the one that starts later counts */

    while (b->nrows && prof_row_pc(b->rows[b->nrows - 1]) >= rel) {
        b->nrows--;
    }

    if (b->nrows && prof_row_rule(b->rows[b->nrows - 1]) == rule
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
prof_build_function(prof_build_t *b, const prof_fde_t *fde)
{
    uint32_t          rel;
    prof_function_t  *f;

    rel = (uint32_t) (fde->start - b->start);

    while (b->nfunctions && b->functions[b->nfunctions - 1].start >= rel) {
        b->nfunctions--;
    }

    if (b->nfunctions == b->max_functions) {
        return;
    }

    f = &b->functions[b->nfunctions++];

    f->start = rel;
    f->len = (uint32_t) (fde->end - fde->start);
}


static void
prof_build_index(prof_build_t *b)
{
    size_t    i, row;
    uint64_t  pc;

    row = 0;

    for (i = 0; i <= b->npages; i++) {
        pc = (uint64_t) i << PROF_TABLE_PAGE_BITS;

        while (row + 1 < b->nrows && prof_row_pc(b->rows[row + 1]) <= pc) {
            row++;
        }

        b->index[i] = (uint32_t) row;
    }
}


static const prof_block_t *
prof_build_finish(prof_build_t *b, const prof_object_info_t *object)
{
    char             *path;
    int8_t           *aux;
    size_t            i, size;
    prof_block_t     *block;
    prof_function_t  *functions;

    block = b->block;

    functions = (prof_function_t *) (b->rows + b->nrows);
    aux = (int8_t *) (functions + b->nfunctions);
    path = (char *) (aux + b->nrows);

    memcpy(functions, b->functions, b->nfunctions * sizeof(prof_function_t));
    memcpy(aux, b->aux, b->nrows);
    strcpy(path, object->pub.path);

    block->object = object->pub;
    block->object.path = path;
    block->print = object->print;
    block->index = b->index;
    block->rows = b->rows;
    block->functions = functions;
    block->aux = aux;
    block->nrows = (uint32_t) b->nrows;
    block->nfunctions = (uint32_t) b->nfunctions;

    for (i = 0; i < b->nrows; i++) {
        if (prof_row_how(b->rows[i]) == PROF_ROW_UNSUPPORTED
            || prof_row_fp(b->rows[i]) == PROF_ROW_LOST)
        {
            block->unsupported++;
        }
    }

    size = prof_build_align((size_t) (path + strlen(path) + 1
                                      - (char *) block));

    if (size < b->size) {
        (void) munmap((uint8_t *) block + size, b->size - size);
    }

    block->size = size;

    /* the block is read-only from here on */

    (void) mprotect(block, size, PROT_READ);

    return block;
}


static size_t
prof_build_align(size_t size)
{
    size_t  page;

    page = (size_t) sysconf(_SC_PAGESIZE);

    return (size + page - 1) & ~(page - 1);
}
