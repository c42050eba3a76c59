
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads DWARF's data forms from a bounded piece of memory.  A read beyond its
 * end returns 0 and sets "failed".  Callers check "failed" once, at their end.
 *
 * Context: not in a signal.
 */


#ifndef _PROF_READ_H_INCLUDED_
#define _PROF_READ_H_INCLUDED_


#include "base/prof_base.h"


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


PROF_HIDDEN_BEGIN

void prof_read_skip(prof_read_t *r, uint64_t n);
int64_t prof_read_sleb(prof_read_t *r);

/* reads n bytes, at most eight, at any alignment */
uint64_t prof_read_uint(prof_read_t *r, size_t n);

/*
 * Reads the stored part of a pointer, without adding a base.  The size of a
 * range has this encoding.
 */
uint64_t prof_read_form(prof_read_t *r, uint8_t encoding);

/*
 * Reads a pointer; data is the base of data-relative pointers.  Indirect
 * pointers fail: no producer encodes code addresses so, and the place to which
 * they point has no known bounds.
 */
uintptr_t prof_read_pointer(prof_read_t *r, uint8_t encoding, uintptr_t data);

PROF_HIDDEN_END


static inline void prof_read_init(prof_read_t *r, const uint8_t *p,
    const uint8_t *end);
static inline uint8_t prof_read_u8(prof_read_t *r);
static inline uint64_t prof_read_uleb(prof_read_t *r);


static inline void
prof_read_init(prof_read_t *r, const uint8_t *p, const uint8_t *end)
{
    r->p = p;
    r->end = end;
    r->failed = (p > end);
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


#endif /* _PROF_READ_H_INCLUDED_ */
