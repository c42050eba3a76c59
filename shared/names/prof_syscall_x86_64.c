
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Decodes the code of a function from its start, because the bytes of an
 * instruction do not show where the instruction begins.  The decoder only
 * knows the lengths of instructions, and their effect on %eax, %esi and the
 * end of the stack.
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

/* registers, as instructions encode them */

#define PROF_X86_EAX       0
#define PROF_X86_ESP       4
#define PROF_X86_ESI       6

/* larger constants are not numbers of system calls */

#define PROF_X86_NUMBERS   4096

/* forward jumps whose stack depth is noted */

#define PROF_X86_JOINS     32


typedef struct {
    size_t    len;
    uint32_t  map;          /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a */
    uint32_t  vex;          /* a vector instruction with VEX or EVEX */
    uint32_t  prefixes;
    uint32_t  rex;
    uint32_t  opcode;
    uint32_t  has_modrm;
    uint32_t  modrm;
    uint32_t  reg;          /* the register operands, with REX */
    uint32_t  rm;
    uint32_t  sib;
    int64_t   displacement;
    int64_t   immediate;
} prof_x86_insn_t;


typedef struct {
    uint32_t  number;       /* as in prof_call_t */
    size_t    set;          /* the instruction that set it */
} prof_x86_value_t;


/* the state before an instruction */

typedef struct {
    prof_x86_value_t  eax;
    prof_x86_value_t  second;       /* %esi */
    prof_x86_value_t  stack;        /* the value to which %rsp points */
    int64_t           depth;        /* bytes between %rsp and the return
                                       address; -1: unknown */
    uint32_t          njoins;
    int64_t           joins[PROF_X86_JOINS];
    int64_t           depths[PROF_X86_JOINS];
} prof_x86_state_t;


/* reads past the end are 0 and set "failed" */

typedef struct {
    const uint8_t  *pos;
    const uint8_t  *end;
    uint32_t        failed;
} prof_x86_bytes_t;


static size_t prof_x86_call(const prof_syscall_code_t *code);
static uint32_t prof_x86_certain(const prof_syscall_code_t *code,
    const prof_x86_value_t *v, size_t use);
static int prof_x86_jumps(const prof_syscall_code_t *code, size_t set,
    size_t call);
static void prof_x86_step(prof_x86_state_t *st, const prof_x86_insn_t *in,
    size_t pos);
static void prof_x86_stack(prof_x86_state_t *st, const prof_x86_insn_t *in,
    size_t pos);
static void prof_x86_join(prof_x86_state_t *st, size_t pos);
static uint32_t prof_x86_constant(const prof_x86_insn_t *in);
static uint32_t prof_x86_number(int64_t constant);
static uint32_t prof_x86_argument(const prof_x86_state_t *st,
    const prof_x86_insn_t *in);
static int prof_x86_is_copy(const prof_x86_insn_t *in, uint32_t from,
    uint32_t to);
static int prof_x86_keeps(const prof_x86_insn_t *in, uint32_t reg);
static int prof_x86_keeps_0f(uint32_t opcode);
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


void
prof_syscall_x86_64(const prof_syscall_code_t *code, prof_call_t *call)
{
    size_t            end, pos;
    prof_x86_insn_t   in;
    prof_x86_state_t  st;

    end = code->returns ? code->at : prof_x86_call(code);

    if (end == 0 || end > code->len) {
        return;
    }

    memset(&st, 0, sizeof(prof_x86_state_t));

    st.depth = 0;
    st.second.number = PROF_CALL_SECOND;

    for (pos = 0; /* void */ ; pos += in.len) {

        if (!code->returns && pos == end) {
            call->number = prof_x86_certain(code, &st.eax, end);
            return;
        }

        if (pos >= end
            || prof_x86_decode(code->bytes + pos, code->len - pos, &in)
               != PROF_OK)
        {
            return;
        }

        if (code->returns && pos + in.len == end) {
            break;
        }

        prof_x86_step(&st, &in, pos);
    }

    if (in.map != 0 || in.vex || in.opcode != 0xe8) {
        return;
    }

    call->stack = prof_x86_certain(code, &st.stack, pos);
    call->second = prof_x86_certain(code, &st.second, pos);
    call->target = end + in.immediate;
}


/* returns the number if no jump leads between the number and its use */

static uint32_t
prof_x86_certain(const prof_syscall_code_t *code, const prof_x86_value_t *v,
    size_t use)
{
    return v->number && !prof_x86_jumps(code, v->set, use) ? v->number : 0;
}


/* applies the effect of one instruction */

static void
prof_x86_step(prof_x86_state_t *st, const prof_x86_insn_t *in, size_t pos)
{
    uint32_t  argument, number;

    prof_x86_join(st, pos);

    number = prof_x86_constant(in);
    argument = in->map == 0 && in->opcode == 0x8b ? prof_x86_argument(st, in)
                                                  : 0;

    if (prof_x86_is_copy(in, PROF_X86_ESI, PROF_X86_EAX)) {
        st->eax = st->second;

    } else if (number || (argument && in->reg == PROF_X86_EAX)) {
        st->eax.number = number ? number : argument;
        st->eax.set = pos;

    } else if (!prof_x86_keeps(in, PROF_X86_EAX)) {
        st->eax.number = 0;
    }

    if (argument && in->reg == PROF_X86_ESI) {
        st->second.number = argument;
        st->second.set = pos;

    } else if (!prof_x86_keeps(in, PROF_X86_ESI)) {
        st->second.number = 0;
    }

    prof_x86_stack(st, in, pos);
}


/* updates the depth of the stack, and the value at its end */

static void
prof_x86_stack(prof_x86_state_t *st, const prof_x86_insn_t *in, size_t pos)
{
    int64_t   change;
    uint32_t  reg, number, op;

    op = in->map == 0 && !in->vex ? in->opcode : UINT32_MAX;
    reg = in->modrm >> 3 & 7;

    if (op != 0xe8 && prof_x86_is_jump(in) && st->depth >= 0
        && st->njoins < PROF_X86_JOINS)
    {
        st->joins[st->njoins] = (int64_t) (pos + in->len) + in->immediate;
        st->depths[st->njoins++] = st->depth;
    }

    number = 0;
    change = 0;

    if (op == 0x6a || op == 0x68) {                     /* push $n */
        number = prof_x86_number(in->immediate);
        change = 8;

    } else if (op == 0xff && reg == 6) {                /* push memory */
        number = prof_x86_argument(st, in);
        change = 8;

    } else if (op >= 0x50 && op <= 0x57) {              /* push register */
        change = 8;

    } else if (op >= 0x58 && op <= 0x5f && op != 0x5c) {
        change = -8;

    } else if ((op == 0x81 || op == 0x83) && in->modrm >= 0xc0
               && in->rm == PROF_X86_ESP && (reg == 0 || reg == 5))
    {
        change = reg ? in->immediate : -in->immediate;  /* sub, add */

    } else if (op == 0xe8) {
        st->stack.number = 0;
        return;

    } else if (op == 0xe9 || op == 0xeb || !prof_x86_keeps(in, PROF_X86_ESP)) {
        st->depth = -1;

    } else if (in->modrm >= 0xc0 || !in->has_modrm || op == 0x8b || op == 0x8d
               || op == 0x63)
    {
        return;
    }

    st->stack.number = number;
    st->stack.set = pos;

    if (st->depth >= 0) {
        st->depth += change;
    }
}


static void
prof_x86_join(prof_x86_state_t *st, size_t pos)
{
    uint32_t  i;

    for (i = 0; i < st->njoins; i++) {

        if (st->joins[i] != (int64_t) pos) {
            continue;
        }

        if (st->depth >= 0 && st->depth != st->depths[i]) {
            st->depth = -1;
            return;
        }

        st->depth = st->depths[i];
    }
}


/* returns the offset of the instruction that enters the kernel, or 0 */

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


/* returns whether code of the function jumps between "set" and the call */

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


/* returns the constant that %eax is set to, plus 1, or 0 */

static uint32_t
prof_x86_constant(const prof_x86_insn_t *in)
{
    if (in->map != 0 || in->vex || (in->prefixes & PROF_X86_DATA16)) {
        return 0;
    }

    /* xor %eax,%eax */

    if ((in->opcode == 0x31 || in->opcode == 0x33) && in->modrm == 0xc0
        && in->reg == PROF_X86_EAX && in->rm == PROF_X86_EAX)
    {
        return 1;
    }

    /* mov $number,%eax; mov $number,%rax */

    if ((in->rex & PROF_X86_REX_B)
        || !((in->opcode == 0xb8 && !(in->rex & PROF_X86_REX_W))
             || (in->opcode == 0xc7 && in->modrm == 0xc0)))
    {
        return 0;
    }

    return prof_x86_number(in->immediate);
}


static uint32_t
prof_x86_number(int64_t constant)
{
    return constant >= 0 && constant < PROF_X86_NUMBERS ? constant + 1 : 0;
}


/*
 * Returns PROF_CALL_STACK if the instruction reads the first argument on the
 * stack, which is above the return address; otherwise 0.
 */

static uint32_t
prof_x86_argument(const prof_x86_state_t *st, const prof_x86_insn_t *in)
{
    return !in->vex && (in->rex & PROF_X86_REX_B) == 0
           && ((in->rex & PROF_X86_REX_W) || in->opcode == 0xff)
           && (in->modrm & 7) == 4 && in->modrm < 0xc0 && in->sib == 0x24
           && st->depth >= 0 && in->displacement == st->depth + 8
           ? PROF_CALL_STACK : 0;
}


static int
prof_x86_is_copy(const prof_x86_insn_t *in, uint32_t from, uint32_t to)
{
    return in->map == 0 && !in->vex && in->modrm >= 0xc0
           && !(in->prefixes & PROF_X86_DATA16)
           && ((in->opcode == 0x89 && in->reg == from && in->rm == to)
               || (in->opcode == 0x8b && in->reg == to && in->rm == from));
}


/*
 * Returns whether the instruction keeps the register.  Only instructions that
 * compilers put between the number and the call are known.  Other instructions
 * count as if they changed the register.
 */

static int
prof_x86_keeps(const prof_x86_insn_t *in, uint32_t reg)
{
    uint32_t  op;

    if (in->vex || in->map > 1) {
        return 0;
    }

    op = in->opcode;

    if (in->map == 1) {
        return prof_x86_keeps_0f(op);
    }

    switch (op) {

    /* the destination is r/m */

    case 0x01: case 0x09: case 0x21: case 0x29: case 0x31: case 0x81:
    case 0x83: case 0x89: case 0xc1: case 0xc7: case 0xd1:
        return in->modrm < 0xc0 || in->rm != reg;

    case 0x88: case 0xc6:
        return in->modrm < 0xc0;

    /* the destination is a register */

    case 0x03: case 0x0b: case 0x23: case 0x2b: case 0x33: case 0x63:
    case 0x8b: case 0x8d:
        return in->reg != reg;

    /* cmp, test, push, nop */

    case 0x38: case 0x39: case 0x3a: case 0x3b: case 0x3c: case 0x3d:
    case 0x68: case 0x6a: case 0x80: case 0x84: case 0x85: case 0xa8:
    case 0xa9:
        return op != 0x80 || (in->modrm & 0x38) == 0x38;

    case 0xf6: case 0xf7:
        return (in->modrm & 0x30) == 0;

    case 0x90:
        return in->rex == 0;
    }

    /* mov $n,%reg; pop %reg; push; a conditional jump that is not taken */

    if ((op >= 0xb8 && op <= 0xbf) || (op >= 0x58 && op <= 0x5f)) {
        return (op & 7) + ((in->rex & PROF_X86_REX_B) ? 8 : 0) != reg;
    }

    return (op >= 0x50 && op <= 0x57) || (op >= 0x70 && op <= 0x7f)
           || (op == 0xff && (in->modrm & 0x38) == 0x30);
}


/* moves of vectors, nop, conditional jumps */

static int
prof_x86_keeps_0f(uint32_t opcode)
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


/* returns PROF_OK, or PROF_ERROR if this is not a complete instruction */

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

    in->reg = (in->modrm >> 3 & 7) + ((in->rex & PROF_X86_REX_R) ? 8 : 0);
    in->rm = base + ((in->rex & PROF_X86_REX_B) ? 8 : 0);

    if (mod == 3) {
        return;
    }

    if (base == 4) {
        in->sib = prof_x86_get(b, 1);
        base = in->sib & 7;
    }

    if (mod == 1) {
        in->displacement = (int8_t) prof_x86_get(b, 1);

    } else if (mod == 2 || base == 5) {
        in->displacement = (int32_t) prof_x86_get(b, 4);
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


/* returns the number of bytes of constants after an instruction of one byte */

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
