
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Encodings: Arm Architecture Reference Manual for A-profile, "A64 instruction
 * set encoding".
 */


#include "names/prof_syscall.h"

#include <string.h>


#define PROF_AARCH64_SVC        0xd4000001      /* svc #0 */

/* mov x8, #n; mov w8, #n */

#define PROF_AARCH64_MOV_MASK   0x7fe0001f
#define PROF_AARCH64_MOV        0x52800008

/* branches, exceptions and system instructions */

#define PROF_AARCH64_GROUP      0x1c000000
#define PROF_AARCH64_BRANCHES   0x14000000

/* the maximum number of instructions between the number and the call */

#define PROF_AARCH64_BETWEEN    16


static uint32_t prof_aarch64_number(const prof_syscall_code_t *code);
static uint32_t prof_aarch64_word(const prof_syscall_code_t *code, size_t i);
static int prof_aarch64_keeps_x8(uint32_t word);
static int prof_aarch64_target(uint32_t word, int64_t *distance);


void
prof_syscall_aarch64(const prof_syscall_code_t *code, prof_call_t *call)
{
    uint32_t  number;

    number = code->returns ? PROF_NONE : prof_aarch64_number(code);

    if (number != PROF_NONE) {
        call->number = number + 1;
    }
}


static uint32_t
prof_aarch64_number(const prof_syscall_code_t *code)
{
    size_t    call, i, n, set;
    int64_t   distance, target;
    uint32_t  word;

    n = code->len / 4;
    call = code->at / 4;

    if (code->at % 4 || call > n) {
        return PROF_NONE;
    }

    if (call == n || prof_aarch64_word(code, call) != PROF_AARCH64_SVC) {

        if (call == 0
            || prof_aarch64_word(code, --call) != PROF_AARCH64_SVC)
        {
            return PROF_NONE;
        }
    }

    for (set = call; /* void */ ; /* void */ ) {

        if (set == 0 || call - set == PROF_AARCH64_BETWEEN) {
            return PROF_NONE;
        }

        word = prof_aarch64_word(code, --set);

        if ((word & PROF_AARCH64_MOV_MASK) == PROF_AARCH64_MOV) {
            break;
        }

        if (!prof_aarch64_keeps_x8(word)) {
            return PROF_NONE;
        }
    }

    for (i = 0; i < n; i++) {

        if (!prof_aarch64_target(prof_aarch64_word(code, i), &distance)) {
            continue;
        }

        target = (int64_t) i + distance;

        if (target > (int64_t) set && target <= (int64_t) call) {
            return PROF_NONE;
        }
    }

    return word >> 5 & 0xffff;
}


static uint32_t
prof_aarch64_word(const prof_syscall_code_t *code, size_t i)
{
    const uint8_t  *p;

    p = code->bytes + 4 * i;

    return p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16
           | (uint32_t) p[3] << 24;
}


/*
 * Returns whether the instruction keeps register 8: no field of the
 * instruction that may name a changed register has this number.
 */

static int
prof_aarch64_keeps_x8(uint32_t word)
{
    return (word & PROF_AARCH64_GROUP) != PROF_AARCH64_BRANCHES
           && (word & 0x1f) != 8
           && (word >> 5 & 0x1f) != 8
           && (word >> 10 & 0x1f) != 8
           && (word >> 16 & 0x1f) != 8;
}


/* returns whether the instruction branches; the distance is in instructions */

static int
prof_aarch64_target(uint32_t word, int64_t *distance)
{
    uint32_t  bits, shift;

    if ((word & 0x7c000000) == 0x14000000) {            /* b, bl */
        bits = 26;
        shift = 0;

    } else if ((word & 0xfe000000) == 0x54000000        /* b.cond */
               || (word & 0x7e000000) == 0x34000000)    /* cbz, cbnz */
    {
        bits = 19;
        shift = 5;

    } else if ((word & 0x7e000000) == 0x36000000) {     /* tbz, tbnz */
        bits = 14;
        shift = 5;

    } else {
        return 0;
    }

    *distance = (int64_t) ((uint64_t) word << (64 - bits - shift))
                >> (64 - bits);

    return 1;
}
