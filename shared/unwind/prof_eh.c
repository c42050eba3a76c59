
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "unwind/prof_eh.h"

#include <string.h>


#define PROF_EH_LENGTH64  0xffffffff    /* a 64-bit length follows */


static int prof_eh_open(const prof_eh_t *eh, const uint8_t *p,
    prof_read_t *r, const uint8_t **next);
static int prof_eh_cie(const prof_eh_t *eh, const uint8_t *p,
    prof_cie_t *cie);
static void prof_eh_augmentation(prof_cie_t *cie, const char *s,
    prof_read_t *r);
static void prof_eh_sort(prof_eh_fde_t *fdes, size_t n);


int
prof_eh_init(prof_eh_t *eh, const uint8_t *hdr, const uint8_t *hdr_end)
{
    uint8_t      frame, count, table;
    uint64_t     n;
    prof_read_t  r;

    memset(eh, 0, sizeof(prof_eh_t));
    prof_read_init(&r, hdr, hdr_end);

    /* LSB Core 5.0, 10.6.2 */

    if (prof_read_u8(&r) != 1) {
        return PROF_ERROR;
    }

    frame = prof_read_u8(&r);
    count = prof_read_u8(&r);
    table = prof_read_u8(&r);

    eh->frame = (const uint8_t *) prof_read_pointer(&r, frame,
                                                    (uintptr_t) hdr);
    if (r.failed || frame == PROF_PE_OMIT) {
        eh->frame = NULL;
        return PROF_ERROR;
    }

    eh->hdr = hdr;

    if (count == PROF_PE_OMIT || table != (PROF_PE_DATAREL | PROF_PE_SDATA4)) {
        return PROF_OK;
    }

    n = prof_read_pointer(&r, count, (uintptr_t) hdr);

    if (r.failed || n > (uint64_t) (r.end - r.p) / 8) {
        return PROF_OK;
    }

    if (n) {
        eh->table = r.p;
        eh->n = n;
    }

    return PROF_OK;
}


int
prof_eh_entry(const prof_eh_t *eh, const uint8_t **p, prof_cie_t *cie,
    prof_fde_t *fde)
{
    uint64_t        id;
    prof_read_t     r;
    const uint8_t  *at, *next;

    if (prof_eh_open(eh, *p, &r, &next) != PROF_OK) {
        return PROF_ERROR;
    }

    *p = next;
    at = r.p;
    id = prof_read_uint(&r, 4);

    if (r.failed || id == 0) {
        return PROF_LIMIT;
    }

    if (id > (uint64_t) (at - eh->frame)) {
        return PROF_LIMIT;
    }

    at -= id;

    if (cie->start != at && prof_eh_cie(eh, at, cie) != PROF_OK) {
        cie->start = NULL;
        return PROF_LIMIT;
    }

    fde->start = prof_read_pointer(&r, cie->encoding, (uintptr_t) eh->hdr);
    fde->end = fde->start
               + prof_read_form(&r, cie->encoding & PROF_PE_FORM);

    if (cie->augmented) {
        prof_read_skip(&r, prof_read_uleb(&r));
    }

    if (r.failed || fde->end <= fde->start) {
        return PROF_LIMIT;
    }

    fde->insn = r.p;
    fde->insn_end = r.end;

    return PROF_OK;
}


static int
prof_eh_open(const prof_eh_t *eh, const uint8_t *p, prof_read_t *r,
    const uint8_t **next)
{
    uint64_t  len;

    if (p < eh->frame) {
        return PROF_ERROR;
    }

    prof_read_init(r, p, eh->frame_end);

    len = prof_read_uint(r, 4);

    if (len == PROF_EH_LENGTH64) {
        len = prof_read_uint(r, 8);
    }

    if (r->failed || len == 0 || len > (uint64_t) (r->end - r->p)) {
        return PROF_ERROR;
    }

    r->end = r->p + len;
    *next = r->end;

    return PROF_OK;
}


static int
prof_eh_cie(const prof_eh_t *eh, const uint8_t *p, prof_cie_t *cie)
{
    uint8_t         version;
    const char     *s;
    prof_read_t     r;
    const uint8_t  *next, *nul;

    if (prof_eh_open(eh, p, &r, &next) != PROF_OK
        || prof_read_uint(&r, 4) != 0)
    {
        return PROF_ERROR;
    }

    memset(cie, 0, sizeof(prof_cie_t));

    version = prof_read_u8(&r);

    if (version != 1 && version != 3) {
        return PROF_ERROR;
    }

    nul = memchr(r.p, 0, r.end - r.p);

    if (nul == NULL) {
        return PROF_ERROR;
    }

    s = (const char *) r.p;
    r.p = nul + 1;

    cie->code_align = prof_read_uleb(&r);
    cie->data_align = prof_read_sleb(&r);
    cie->ra = (version == 1) ? prof_read_u8(&r) : prof_read_uleb(&r);

    prof_eh_augmentation(cie, s, &r);

    if (r.failed) {
        return PROF_ERROR;
    }

    cie->insn = r.p;
    cie->insn_end = r.end;
    cie->start = p;

    return PROF_OK;
}


static void
prof_eh_augmentation(prof_cie_t *cie, const char *s, prof_read_t *r)
{
    uint8_t         encoding;
    uint64_t        len;
    const uint8_t  *data;

    if (*s == '\0') {
        return;
    }

    /*
     * The data of an unknown letter cannot be skipped, as its length is
     * unknown.
     */

    if (*s++ != 'z') {
        r->failed = 1;
        return;
    }

    cie->augmented = 1;

    len = prof_read_uleb(r);
    data = r->p;

    for ( /* void */ ; *s; s++) {

        switch (*s) {

        case 'R':
            cie->encoding = prof_read_u8(r);
            break;

        case 'P':
            encoding = prof_read_u8(r);
            (void) prof_read_form(r, encoding);
            break;

        case 'L':
            (void) prof_read_u8(r);
            break;

        case 'S':
            cie->signal = 1;
            break;

        case 'B':

            /* aarch64: the B key signs return addresses */

            break;

        default:
            r->failed = 1;
            return;
        }
    }

    if (r->failed) {
        return;
    }

    r->p = data;
    prof_read_skip(r, len);
}


const uint8_t *
prof_eh_table(const prof_eh_t *eh, size_t i)
{
    int32_t  off;

    memcpy(&off, eh->table + i * 8 + 4, 4);

    return eh->hdr + off;
}


size_t
prof_eh_list(const prof_eh_t *eh, prof_eh_fde_t *fdes)
{
    int             rc;
    size_t          n;
    prof_cie_t      cie;
    prof_fde_t      fde;
    const uint8_t  *p, *at;

    memset(&cie, 0, sizeof(prof_cie_t));

    n = 0;
    p = eh->frame;

    do {
        at = p;
        rc = prof_eh_entry(eh, &p, &cie, &fde);

        if (rc == PROF_OK) {
            fdes[n].start = fde.start;
            fdes[n].p = at;
            n++;
        }

    } while (rc != PROF_ERROR);

    prof_eh_sort(fdes, n);

    return n;
}


/*
 * Sorts by Shell's method.  qsort() may allocate, which is forbidden while the
 * loader is locked.  Linkers write sorted data with few exceptions.
 */

static void
prof_eh_sort(prof_eh_fde_t *fdes, size_t n)
{
    size_t         i, j, gap;
    prof_eh_fde_t  t;

    for (gap = 1; gap < n / 3; gap = gap * 3 + 1) { /* void */ }

    for ( /* void */ ; gap > 0; gap /= 3) {

        for (i = gap; i < n; i++) {
            t = fdes[i];

            for (j = i; j >= gap && fdes[j - gap].start > t.start; j -= gap) {
                fdes[j] = fdes[j - gap];
            }

            fdes[j] = t;
        }
    }
}
