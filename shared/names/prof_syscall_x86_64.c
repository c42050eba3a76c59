
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The code of a function is decoded from its start, because the bytes of an
 * instruction do not tell where it begins.  Only the lengths of instructions
 * are decoded, and their effect on %eax.
 *
 * Encodings: Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 2, chapter 2 and appendix A.
 */


#include "names/prof_syscall.h"

#include <string.h>


#define PROF_X86_INSN_MAX  15       /* bytes */

/* prefixes, as bits */

#define PROF_X86_DATA16    1
#define PROF_X86_ADDR32    2
#define PROF_X86_REX_B     1
#define PROF_X86_REX_R     4
#define PROF_X86_REX_W     8


typedef struct {
    size_t    len;
    uint32_t  map;          /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a */
    uint32_t  vex;          /* a vector instruction with VEX or EVEX */
    uint32_t  prefixes;
    uint32_t  rex;
    uint32_t  opcode;
    uint32_t  has_modrm;
    uint32_t  modrm;
    int64_t   immediate;
} prof_x86_insn_t;


/* reads past the end are 0 and set "failed" */

typedef struct {
    const uint8_t  *pos;
    const uint8_t  *end;
    uint32_t        failed;
} prof_x86_bytes_t;


static size_t prof_x86_call(const prof_syscall_code_t *code);
static int prof_x86_jumps(const prof_syscall_code_t *code, size_t set,
    size_t call);
static int prof_x86_sets_eax(const prof_x86_insn_t *in, uint32_t *number);
static int prof_x86_keeps_eax(const prof_x86_insn_t *in);
static int prof_x86_keeps_eax_0f(uint32_t opcode);
static int prof_x86_is_jump(const prof_x86_insn_t *in);
static int prof_x86_decode(const uint8_t *code, size_t len,
    prof_x86_insn_t *in);
static void prof_x86_opcode(prof_x86_bytes_t *b, prof_x86_insn_t *in);
static void prof_x86_vector(prof_x86_bytes_t *b, prof_x86_insn_t *in,
    uint32_t prefix);
static void prof_x86_modrm(prof_x86_bytes_t *b, prof_x86_insn_t *in);
static uint32_t prof_x86_has_modrm(const prof_x86_insn_t *in);
static uint32_t prof_x86_immediate(const prof_x86_insn_t *in);
static uint32_t prof_x86_immediate_0f(const prof_x86_insn_t *in);
static uint64_t prof_x86_get(prof_x86_bytes_t *b, uint32_t n);


/* one bit per opcode of a map: it has a ModRM byte */

static const uint32_t  prof_x86_modrm_one[8] = {
    0x0f0f0f0f, 0x0f0f0f0f, 0x00000000, 0x00000a08,
    0x0000ffff, 0x00000000, 0xff0f00c3, 0xc0c00000
};

static const uint32_t  prof_x86_modrm_0f[8] = {
    0xffffa00f, 0x0000ffff, 0xffffffff, 0xff7fffff,
    0xffff0000, 0xfffff838, 0xffff00ff, 0xffffffff
};


uint32_t
prof_syscall_x86_64(const prof_syscall_code_t *code)
{
    size_t           call, pos, set;
    uint32_t         number;
    prof_x86_insn_t  in;

    call = prof_x86_call(code);

    if (call == 0) {
        return PROF_NONE;
    }

    number = PROF_NONE;
    set = 0;

    for (pos = 0; pos < call; pos += in.len) {

        if (prof_x86_decode(code->bytes + pos, code->len - pos, &in)
            != PROF_OK)
        {
            return PROF_NONE;
        }

        if (prof_x86_sets_eax(&in, &number)) {
            set = pos;

        } else if (!prof_x86_keeps_eax(&in)) {
            number = PROF_NONE;
        }
    }

    if (pos != call || number == PROF_NONE
        || prof_x86_jumps(code, set, call))
    {
        return PROF_NONE;
    }

    return number;
}


/* the offset of the instruction that enters the kernel, or 0 */

static size_t
prof_x86_call(const prof_syscall_code_t *code)
{
    static const uint8_t  syscall[] = { 0x0f, 0x05 };

    if (code->at > 0 && code->at + 2 <= code->len
        && memcmp(code->bytes + code->at, syscall, 2) == 0)
    {
        return code->at;
    }

    if (code->at > 2 && code->at <= code->len
        && memcmp(code->bytes + code->at - 2, syscall, 2) == 0)
    {
        return code->at - 2;
    }

    return 0;
}


/* whether code of the function jumps between "set" and the call */

static int
prof_x86_jumps(const prof_syscall_code_t *code, size_t set, size_t call)
{
    size_t           pos;
    int64_t          target;
    prof_x86_insn_t  in;

    for (pos = 0; pos < code->len; pos += in.len) {

        if (prof_x86_decode(code->bytes + pos, code->len - pos, &in)
            != PROF_OK)
        {
            return 1;
        }

        target = (int64_t) (pos + in.len) + in.immediate;

        if (prof_x86_is_jump(&in)
            && target > (int64_t) set && target <= (int64_t) call)
        {
            return 1;
        }
    }

    return 0;
}


static int
prof_x86_sets_eax(const prof_x86_insn_t *in, uint32_t *number)
{
    if (in->map != 0 || in->vex || (in->prefixes & PROF_X86_DATA16)) {
        return 0;
    }

    /* xor %eax,%eax */

    if ((in->opcode == 0x31 || in->opcode == 0x33) && in->modrm == 0xc0
        && (in->rex & (PROF_X86_REX_R|PROF_X86_REX_B)) == 0)
    {
        *number = 0;
        return 1;
    }

    /* mov $number,%eax; mov $number,%rax */

    if ((in->rex & PROF_X86_REX_B)
        || !((in->opcode == 0xb8 && !(in->rex & PROF_X86_REX_W))
             || (in->opcode == 0xc7 && in->modrm == 0xc0)))
    {
        return 0;
    }

    *number = (uint32_t) in->immediate;

    return 1;
}


/*
 * The instructions that compilers put between the number and the call.  All
 * others are treated as if they changed %eax.
 */

static int
prof_x86_keeps_eax(const prof_x86_insn_t *in)
{
    uint32_t  op, reg, rm;

    if (in->vex || in->map > 1) {
        return 0;
    }

    op = in->opcode;

    if (in->map == 1) {
        return prof_x86_keeps_eax_0f(op);
    }

    reg = (in->modrm >> 3 & 7) + ((in->rex & PROF_X86_REX_R) ? 8 : 0);
    rm = (in->modrm & 7) + ((in->rex & PROF_X86_REX_B) ? 8 : 0);

    switch (op) {

    /* the destination is r/m */

    case 0x01: case 0x09: case 0x21: case 0x29: case 0x31: case 0x81:
    case 0x83: case 0x89: case 0xc1: case 0xc7: case 0xd1:
        return in->modrm < 0xc0 || rm != 0;

    case 0x88: case 0xc6:
        return in->modrm < 0xc0;

    /* the destination is a register */

    case 0x03: case 0x0b: case 0x23: case 0x2b: case 0x33: case 0x63:
    case 0x8b: case 0x8d:
        return reg != 0;

    /* cmp, test, push, nop */

    case 0x38: case 0x39: case 0x3a: case 0x3b: case 0x3c: case 0x3d:
    case 0x68: case 0x6a: case 0x80: case 0x84: case 0x85: case 0xa8:
    case 0xa9:
        return op != 0x80 || (in->modrm & 0x38) == 0x38;

    case 0x90:
        return in->rex == 0;
    }

    /* mov $n,%reg; pop %reg; push; a conditional jump that is not taken */

    if ((op >= 0xb8 && op <= 0xbf) || (op >= 0x58 && op <= 0x5f)) {
        return (op & 7) != 0 || (in->rex & PROF_X86_REX_B);
    }

    return (op >= 0x50 && op <= 0x57) || (op >= 0x70 && op <= 0x7f);
}


/* moves of vectors, nop, conditional jumps */

static int
prof_x86_keeps_eax_0f(uint32_t opcode)
{
    switch (opcode) {

    case 0x16: case 0x1e: case 0x1f: case 0x28: case 0x29: case 0x57:
    case 0x6c: case 0x6e: case 0x6f: case 0x7f: case 0xd6: case 0xef:
        return 1;
    }

    return (opcode >= 0x10 && opcode <= 0x13)
           || (opcode >= 0x80 && opcode <= 0x8f);
}


static int
prof_x86_is_jump(const prof_x86_insn_t *in)
{
    uint32_t  op;

    op = in->opcode;

    if (in->vex || in->map > 1) {
        return 0;
    }

    if (in->map == 1) {
        return op >= 0x80 && op <= 0x8f;
    }

    return (op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3)
           || op == 0xe8 || op == 0xe9 || op == 0xeb;
}


/* PROF_OK, or PROF_ERROR: not an instruction, or not all of it */

static int
prof_x86_decode(const uint8_t *code, size_t len, prof_x86_insn_t *in)
{
    uint32_t          n;
    prof_x86_bytes_t  b;

    if (len > PROF_X86_INSN_MAX) {
        len = PROF_X86_INSN_MAX;
    }

    memset(in, 0, sizeof(prof_x86_insn_t));

    b.pos = code;
    b.end = code + len;
    b.failed = 0;

    prof_x86_opcode(&b, in);

    in->has_modrm = prof_x86_has_modrm(in);

    if (in->has_modrm) {
        prof_x86_modrm(&b, in);
    }

    n = in->map == 0 ? prof_x86_immediate(in) : prof_x86_immediate_0f(in);

    if (n) {
        in->immediate = (int64_t) (prof_x86_get(&b, n) << (64 - 8 * n))
                        >> (64 - 8 * n);
    }

    /* AMD's XOP, which this decoder does not know, begins like "pop" */

    if (in->map == 0 && in->opcode == 0x8f && (in->modrm & 0x38)) {
        b.failed = 1;
    }

    in->len = b.pos - code;

    return b.failed ? PROF_ERROR : PROF_OK;
}


static void
prof_x86_opcode(prof_x86_bytes_t *b, prof_x86_insn_t *in)
{
    uint32_t  byte;

    for ( ;; ) {
        byte = prof_x86_get(b, 1);

        switch (byte) {

        case 0x66:
            in->prefixes |= PROF_X86_DATA16;
            continue;

        case 0x67:
            in->prefixes |= PROF_X86_ADDR32;
            continue;

        case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
        case 0xf0: case 0xf2: case 0xf3:
            continue;
        }

        break;
    }

    if ((byte & 0xf0) == 0x40) {
        in->rex = byte;
        byte = prof_x86_get(b, 1);
    }

    if (byte == 0x62 || byte == 0xc4 || byte == 0xc5) {
        prof_x86_vector(b, in, byte);
        return;
    }

    if (byte == 0x0f) {
        in->map = 1;
        byte = prof_x86_get(b, 1);

        if (byte == 0x38 || byte == 0x3a) {
            in->map = byte == 0x38 ? 2 : 3;
            byte = prof_x86_get(b, 1);
        }
    }

    in->opcode = byte;
}


/* the prefix EVEX has 4 bytes, VEX 2 or 3 */

static void
prof_x86_vector(prof_x86_bytes_t *b, prof_x86_insn_t *in, uint32_t prefix)
{
    in->vex = 1;
    in->map = 1;

    if (prefix != 0xc5) {
        in->map = prof_x86_get(b, 1) & (prefix == 0x62 ? 0x07 : 0x1f);
    }

    (void) prof_x86_get(b, prefix == 0x62 ? 2 : 1);

    in->opcode = prof_x86_get(b, 1);

    if (in->map == 0 || in->map > 3) {
        b->failed = 1;
    }
}


static void
prof_x86_modrm(prof_x86_bytes_t *b, prof_x86_insn_t *in)
{
    uint32_t  base, mod;

    in->modrm = prof_x86_get(b, 1);

    mod = in->modrm >> 6;
    base = in->modrm & 7;

    if (mod == 3) {
        return;
    }

    if (base == 4) {
        base = prof_x86_get(b, 1) & 7;          /* of the SIB byte */
    }

    if (mod == 1) {
        (void) prof_x86_get(b, 1);

    } else if (mod == 2 || base == 5) {
        (void) prof_x86_get(b, 4);
    }
}


static uint32_t
prof_x86_has_modrm(const prof_x86_insn_t *in)
{
    uint32_t  op;

    op = in->opcode;

    if (in->map == 0) {
        return prof_x86_modrm_one[op / 32] >> op % 32 & 1;
    }

    if (in->map == 1) {
        return in->vex ? op != 0x77
                       : prof_x86_modrm_0f[op / 32] >> op % 32 & 1;
    }

    return 1;
}


/* the number of bytes of constants after an instruction of one byte */

static uint32_t
prof_x86_immediate(const prof_x86_insn_t *in)
{
    uint32_t  op, size;

    op = in->opcode;
    size = (in->prefixes & PROF_X86_DATA16) && !(in->rex & PROF_X86_REX_W)
           ? 2 : 4;

    if (op < 0x40) {
        return (op & 7) == 4 ? 1 : (op & 7) == 5 ? size : 0;
    }

    if (op >= 0xb8 && op <= 0xbf) {
        return (in->rex & PROF_X86_REX_W) ? 8 : size;
    }

    if (op >= 0xa0 && op <= 0xa3) {
        return (in->prefixes & PROF_X86_ADDR32) ? 4 : 8;
    }

    if ((op >= 0x70 && op <= 0x7f) || (op >= 0xb0 && op <= 0xb7)
        || (op >= 0xe0 && op <= 0xe7))
    {
        return 1;
    }

    switch (op) {

    case 0x6a: case 0x6b: case 0x80: case 0x83: case 0xa8: case 0xc0:
    case 0xc1: case 0xc6: case 0xcd: case 0xeb:
        return 1;

    case 0x68: case 0x69: case 0x81: case 0xa9: case 0xc7:
        return size;

    case 0xe8: case 0xe9:
        return 4;

    case 0xc2: case 0xca:
        return 2;

    case 0xc8:
        return 3;

    /* only "test" has a constant */

    case 0xf6: case 0xf7:
        return (in->modrm & 0x30) ? 0 : op == 0xf6 ? 1 : size;
    }

    return 0;
}


static uint32_t
prof_x86_immediate_0f(const prof_x86_insn_t *in)
{
    uint32_t  op;

    op = in->opcode;

    if (in->map != 1) {
        return in->map == 3;
    }

    if (!in->vex && op >= 0x80 && op <= 0x8f) {
        return 4;
    }

    switch (op) {

    case 0x70: case 0x71: case 0x72: case 0x73: case 0xc2: case 0xc4:
    case 0xc5: case 0xc6:
        return 1;

    case 0x0f: case 0xa4: case 0xac: case 0xba:
        return !in->vex;
    }

    return 0;
}


static uint64_t
prof_x86_get(prof_x86_bytes_t *b, uint32_t n)
{
    uint32_t  i;
    uint64_t  value;

    if (b->end - b->pos < (ptrdiff_t) n) {
        b->failed = 1;
        return 0;
    }

    value = 0;

    for (i = 0; i < n; i++) {
        value |= (uint64_t) b->pos[i] << 8 * i;
    }

    b->pos += n;

    return value;
}
