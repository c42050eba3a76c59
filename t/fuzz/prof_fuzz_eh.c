
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes unwind entries: .eh_frame_hdr with .eh_frame behind it, the entries
 * in their list and in their table, and the rows of their instructions.  The
 * first byte is the length of .eh_frame_hdr.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_cfi.h"
#include "unwind/prof_row.h"

#include <stdlib.h>
#include <string.h>


typedef struct {
    const prof_fde_t  *fde;
    uintptr_t          pc;      /* of the last row */
} fuzz_rows_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_list(const prof_eh_t *eh);
static void fuzz_entries(const prof_eh_t *eh, const uint8_t *p);
static void fuzz_emit(void *data, uintptr_t pc, const prof_cfi_state_t *state);
static void fuzz_assert(int ok);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t     i, hdr;
    uint8_t   *copy;
    prof_eh_t  eh;

    if (size < 2) {
        return 0;
    }

    data++;
    size--;

    hdr = data[-1] < size ? data[-1] : size;

    /* a copy of the exact size, so the sanitizer detects reads past the end */

    copy = malloc(size);
    fuzz_assert(copy != NULL);
    memcpy(copy, data, size);

    memset(&eh, 0, sizeof(eh));
    eh.frame_end = copy + size;

    if (prof_eh_init(&eh, copy, copy + hdr) == PROF_OK && eh.table) {

        for (i = 0; i < eh.n && i < 64; i++) {
            fuzz_entries(&eh, prof_eh_table(&eh, i));
        }
    }

    /* the same bytes as .eh_frame without a table */

    memset(&eh, 0, sizeof(eh));
    eh.frame = copy;
    eh.frame_end = copy + size;

    fuzz_entries(&eh, copy);
    fuzz_list(&eh);

    free(copy);

    return 0;
}


static void
fuzz_list(const prof_eh_t *eh)
{
    size_t          i, n, len;
    prof_eh_fde_t  *fdes;

    len = (size_t) (eh->frame_end - eh->frame);

    fdes = malloc((prof_eh_max(len) + 1) * sizeof(prof_eh_fde_t));
    fuzz_assert(fdes != NULL);

    n = prof_eh_list(eh, fdes);
    fuzz_assert(n <= prof_eh_max(len));

    for (i = 0; i < n; i++) {
        fuzz_assert(fdes[i].p >= eh->frame && fdes[i].p < eh->frame_end);
        fuzz_assert(i == 0 || fdes[i - 1].start <= fdes[i].start);
    }

    free(fdes);
}


static void
fuzz_entries(const prof_eh_t *eh, const uint8_t *p)
{
    int              rc, n;
    prof_fde_t       fde;
    fuzz_rows_t      rows;
    prof_cfi_cie_t   cie;
    const uint8_t   *last;

    memset(&cie, 0, sizeof(cie));

    for (n = 0; n < 4096; n++) {
        last = p;
        rc = prof_eh_entry(eh, &p, &cie.cie, &fde);

        if (rc == PROF_ERROR) {
            return;
        }

        fuzz_assert(p > last && p <= eh->frame_end);

        if (rc == PROF_OK && fde.start < fde.end) {
            rows.fde = &fde;
            rows.pc = fde.start;

            prof_cfi_run(&cie, &fde, fuzz_emit, &rows);
        }
    }
}


/* rows are in order, and within the entry */

static void
fuzz_emit(void *data, uintptr_t pc, const prof_cfi_state_t *state)
{
    fuzz_rows_t *rows = data;

    int8_t    aux;
    uint64_t  row;

    fuzz_assert(pc >= rows->pc && pc < rows->fde->end);
    rows->pc = pc;

    /* the others have no row */

    if (!state->unsupported && !state->signal
        && state->reg[PROF_CFI_RA].how != PROF_CFI_UNDEFINED)
    {
        row = prof_arch_row(state, &aux);
        fuzz_assert(prof_row_pc(row) == 0);
    }
}


static void
fuzz_assert(int ok)
{
    if (!ok) {
        abort();
    }
}
