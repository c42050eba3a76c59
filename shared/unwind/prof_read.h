
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads DWARF's data forms from a bounded piece of memory.  A read beyond its
 * end gives 0 and is remembered: callers check "failed" once, at their end.
 *
 * Context: not in a signal.
 */


#ifndef _PROF_READ_H_INCLUDED_
#define _PROF_READ_H_INCLUDED_


#include "base/prof_base.h"

#include <string.h>


/* pointer encodings: LSB Core 5.0, 10.5.1 */

#define PROF_PE_ABSPTR    0x00
#define PROF_PE_ULEB128   0x01
#define PROF_PE_UDATA2    0x02
#define PROF_PE_UDATA4    0x03
#define PROF_PE_UDATA8    0x04
#define PROF_PE_SLEB128   0x09
#define PROF_PE_SDATA2    0x0a
#define PROF_PE_SDATA4    0x0b
#define PROF_PE_SDATA8    0x0c
#define PROF_PE_FORM      0x0f
#define PROF_PE_PCREL     0x10
#define PROF_PE_DATAREL   0x30
#define PROF_PE_BASE      0x70
#define PROF_PE_INDIRECT  0x80
#define PROF_PE_OMIT      0xff


typedef struct {
    const uint8_t  *p;
    const uint8_t  *end;
    unsigned        failed;
} prof_read_t;


static inline void
prof_read_init(prof_read_t *r, const uint8_t *p, const uint8_t *end)
{
    r->p = p;
    r->end = end;
    r->failed = (p > end);
}


static inline void
prof_read_skip(prof_read_t *r, uint64_t n)
{
    if (r->failed || n > (uint64_t) (r->end - r->p)) {
        r->p = r->end;
        r->failed = 1;
        return;
    }

    r->p += n;
}


static inline uint64_t
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

    /* n bytes of a little-endian machine, at any alignment */

    memcpy(&v, p, n);

    return v;
}


static inline uint8_t
prof_read_u8(prof_read_t *r)
{
    if (r->failed || r->p >= r->end) {
        r->failed = 1;
        return 0;
    }

    return *r->p++;
}


static inline uint64_t
prof_read_uleb(prof_read_t *r)
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

    return v;
}


static inline int64_t
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


/*
 * The part of a pointer that is stored, before any base is added; the size
 * of a range is encoded like this.
 */

static inline uint64_t
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


/*
 * A whole pointer.  Indirect ones fail: no producer encodes code addresses
 * so, and the place they refer to has no known bounds.
 */

static inline uintptr_t
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


#endif /* _PROF_READ_H_INCLUDED_ */
