
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "unwind/prof_read.h"

#include <string.h>


void
prof_read_skip(prof_read_t *r, uint64_t n)
{
    if (r->failed || n > (uint64_t) (r->end - r->p)) {
        r->p = r->end;
        r->failed = 1;
        return;
    }

    r->p += n;
}


uint64_t
prof_read_uint(prof_read_t *r, size_t n)
{
    uint64_t        v;
    const uint8_t  *p;

    p = r->p;
    v = 0;

    prof_read_skip(r, n);

    if (r->failed) {
        return 0;
    }

    /* all supported machines are little-endian */

    memcpy(&v, p, n);

    return v;
}


int64_t
prof_read_sleb(prof_read_t *r)
{
    uint8_t   byte;
    uint64_t  v;
    unsigned  shift;

    v = 0;
    shift = 0;

    do {
        byte = prof_read_u8(r);

        if (shift < 64) {
            v |= (uint64_t) (byte & 0x7f) << shift;
        }

        shift += 7;

    } while (byte & 0x80);

    if (shift < 64 && (byte & 0x40)) {
        v |= ~(uint64_t) 0 << shift;
    }

    return (int64_t) v;
}


uint64_t
prof_read_form(prof_read_t *r, uint8_t encoding)
{
    switch (encoding & PROF_PE_FORM) {

    case PROF_PE_ABSPTR:
        return prof_read_uint(r, sizeof(void *));

    case PROF_PE_ULEB128:
        return prof_read_uleb(r);

    case PROF_PE_SLEB128:
        return (uint64_t) prof_read_sleb(r);

    case PROF_PE_UDATA2:
        return prof_read_uint(r, 2);

    case PROF_PE_UDATA4:
        return prof_read_uint(r, 4);

    case PROF_PE_SDATA2:
        return (uint64_t) (int16_t) prof_read_uint(r, 2);

    case PROF_PE_SDATA4:
        return (uint64_t) (int32_t) prof_read_uint(r, 4);

    case PROF_PE_UDATA8:
    case PROF_PE_SDATA8:
        return prof_read_uint(r, 8);

    default:
        r->failed = 1;
        return 0;
    }
}


uintptr_t
prof_read_pointer(prof_read_t *r, uint8_t encoding, uintptr_t data)
{
    uintptr_t  v, at;

    at = (uintptr_t) r->p;
    v = (uintptr_t) prof_read_form(r, encoding);

    if (encoding & PROF_PE_INDIRECT) {
        r->failed = 1;
        return 0;
    }

    switch (encoding & PROF_PE_BASE) {

    case 0:
        return v;

    case PROF_PE_PCREL:
        return at + v;

    case PROF_PE_DATAREL:
        return data + v;

    default:
        r->failed = 1;
        return 0;
    }
}
