
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * x86-64.  The return address is always the word below the CFA.  Kinds of
 * rows, with o = 8 * off:
 *
 *     RSP          CFA = rsp + o
 *     RBP          CFA = rbp + o
 *     PLT          CFA = rsp + 8 + (rip % 16 >= off ? 8 : 0)
 *     DEREF_RSP    CFA = *(rsp + 8 * disp) + 8 * add
 *     DEREF_RBP    CFA = *(rbp + 8 * disp) + 8 * add
 *                  where off holds disp (12 bits, signed) and add (4 bits)
 *     INDEX_R9     CFA = *(rsp + 8 + 8 * r9) + o
 *     REG + n      CFA = register n + o, o signed; n is DWARF's number
 *
 * PLT is what linkers write for the lazy binding stubs; DEREF_RBP is made by
 * compilers for realigned stacks; DEREF_RSP, INDEX_R9 and REG occur in
 * hand-written code, of OpenSSL above all, and in that of the dynamic linker.
 */


#ifndef _PROF_ARCH_X86_64_H_INCLUDED_
#define _PROF_ARCH_X86_64_H_INCLUDED_


#include <errno.h>
#include <sys/syscall.h>


#define PROF_ROW_RSP        (PROF_ROW_ARCH + 0)
#define PROF_ROW_RBP        (PROF_ROW_ARCH + 1)
#define PROF_ROW_PLT        (PROF_ROW_ARCH + 2)
#define PROF_ROW_DEREF_RSP  (PROF_ROW_ARCH + 3)
#define PROF_ROW_DEREF_RBP  (PROF_ROW_ARCH + 4)
#define PROF_ROW_INDEX_R9   (PROF_ROW_ARCH + 5)
#define PROF_ROW_REG        16

#define prof_row_signed_off(row)  ((int16_t) prof_row_off(row))
#define prof_row_deref(disp, add)                                             \
    (((uint32_t) (disp) & 0xfff) << 4 | (uint32_t) (add))
#define prof_row_disp(row)  (prof_row_signed_off(row) >> 4)
#define prof_row_add(row)   (prof_row_off(row) & 0xf)


/* System V ABI, AMD64 supplement, figure 3.36 */

#define PROF_ARCH_DWARF_RBX   3
#define PROF_ARCH_DWARF_RBP   6
#define PROF_ARCH_DWARF_RSP   7
#define PROF_ARCH_DWARF_R9    9
#define PROF_ARCH_DWARF_R12   12
#define PROF_ARCH_DWARF_R15   15
#define PROF_ARCH_DWARF_RA    16
#define PROF_ARCH_DWARF_NONE  UINT32_MAX

#define PROF_ARCH_DWARF_AUX   PROF_ARCH_DWARF_RBX

#define PROF_ARCH_RED_ZONE    128

/* a handler's return has already popped the address of the trampoline */

#define PROF_ARCH_SIGFRAME_UC  0


/* DWARF 5, 7.7.1 */

#define PROF_OP_DEREF        0x06
#define PROF_OP_AND          0x1a
#define PROF_OP_MUL          0x1e
#define PROF_OP_PLUS         0x22
#define PROF_OP_PLUS_UCONST  0x23
#define PROF_OP_SHL          0x24
#define PROF_OP_GE           0x2a
#define PROF_OP_LIT0         0x30
#define PROF_OP_BREG0        0x70


static inline prof_cfi_reg_e
prof_arch_cfi_reg(uint64_t reg)
{
    switch (reg) {

    case PROF_ARCH_DWARF_RA:
        return PROF_CFI_RA;

    case PROF_ARCH_DWARF_RBP:
        return PROF_CFI_FP;

    case PROF_ARCH_DWARF_RSP:
        return PROF_CFI_SP;

    case PROF_ARCH_DWARF_AUX:
        return PROF_CFI_AUX;

    default:
        return PROF_CFI_IGNORED;
    }
}


/* "fp" or "aux" of a row */

static inline int
prof_arch_row_saved(const prof_cfi_rule_t *rule)
{
    int64_t      off;
    prof_read_t  r;

    switch (rule->how) {

    case PROF_CFI_SAME:
        return 0;

    case PROF_CFI_OFFSET:
        off = rule->u.off;

        if (off % 8 == 0 && off < 0 && off / 8 > PROF_ROW_LOST) {
            return (int) (off / 8);
        }

        return PROF_ROW_LOST;

    case PROF_CFI_EXPRESSION:
        prof_read_init(&r, rule->u.expr, rule->u.expr + rule->len);

        if (prof_read_u8(&r) != PROF_OP_BREG0 + PROF_ARCH_DWARF_RBP) {
            return PROF_ROW_LOST;
        }

        off = prof_read_sleb(&r);

        if (!r.failed && r.p == r.end
            && off % 8 == 0 && off <= 0 && 1 - off / 8 <= INT8_MAX)
        {
            return (int) (1 - off / 8);
        }

        return PROF_ROW_LOST;

    default:
        return PROF_ROW_LOST;
    }
}


/* the forms of an expression for the CFA that a row can express */

static inline int
prof_arch_row_expression(const prof_cfi_rule_t *cfa, uint32_t *kind,
    uint32_t *off)
{
    size_t         len;
    uint8_t        base, ge;
    int64_t        disp;
    uint64_t       add;
    prof_read_t    r;

    static const uint8_t  plt[] = {
        PROF_OP_BREG0 + PROF_ARCH_DWARF_RSP, 8,
        PROF_OP_BREG0 + PROF_ARCH_DWARF_RA, 0,
        PROF_OP_LIT0 + 15, PROF_OP_AND, 0, PROF_OP_GE,
        PROF_OP_LIT0 + 3, PROF_OP_SHL, PROF_OP_PLUS
    };

    static const uint8_t  index_r9[] = {
        PROF_OP_BREG0 + PROF_ARCH_DWARF_RSP, 8,
        PROF_OP_BREG0 + PROF_ARCH_DWARF_R9, 0,
        PROF_OP_LIT0 + 8, PROF_OP_MUL, PROF_OP_PLUS
    };

    /* the literal that differs among linkers is at 6 */

    if (cfa->len == sizeof(plt)
        && memcmp(cfa->u.expr, plt, 6) == 0
        && memcmp(cfa->u.expr + 7, plt + 7, sizeof(plt) - 7) == 0)
    {
        ge = cfa->u.expr[6];

        if (ge < PROF_OP_LIT0 || ge >= PROF_OP_LIT0 + 16) {
            return PROF_ERROR;
        }

        *kind = PROF_ROW_PLT;
        *off = ge - PROF_OP_LIT0;

        return PROF_OK;
    }

    prof_read_init(&r, cfa->u.expr, cfa->u.expr + cfa->len);

    disp = 0;
    len = sizeof(index_r9);

    if (cfa->len > len && memcmp(cfa->u.expr, index_r9, len) == 0) {
        *kind = PROF_ROW_INDEX_R9;
        prof_read_skip(&r, len);

    } else {
        base = prof_read_u8(&r);
        disp = prof_read_sleb(&r);

        if (base == PROF_OP_BREG0 + PROF_ARCH_DWARF_RSP) {
            *kind = PROF_ROW_DEREF_RSP;

        } else if (base == PROF_OP_BREG0 + PROF_ARCH_DWARF_RBP) {
            *kind = PROF_ROW_DEREF_RBP;

        } else {
            return PROF_ERROR;
        }
    }

    if (prof_read_u8(&r) != PROF_OP_DEREF) {
        return PROF_ERROR;
    }

    add = 0;

    if (r.p < r.end) {

        if (prof_read_u8(&r) != PROF_OP_PLUS_UCONST) {
            return PROF_ERROR;
        }

        add = prof_read_uleb(&r);
    }

    if (r.failed || r.p != r.end || disp % 8 || add % 8
        || disp / 8 < -0x800 || disp / 8 > 0x7ff || add / 8 > 0xf)
    {
        return PROF_ERROR;
    }

    *off = (*kind == PROF_ROW_INDEX_R9) ? (uint32_t) (add / 8)
                                        : prof_row_deref(disp / 8, add / 8);

    return PROF_OK;
}


/* a rule without its pc */

static inline uint64_t
prof_arch_row(const prof_cfi_state_t *state, int8_t *aux)
{
    int64_t                 n;
    uint32_t                kind, off;
    const prof_cfi_rule_t  *reg;

    reg = state->reg;
    *aux = 0;

    if (state->unsupported) {
        return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
    }

    if (state->signal) {
        return prof_row(PROF_ROW_SIGFRAME, 0, 0);
    }

    if (reg[PROF_CFI_RA].how == PROF_CFI_UNDEFINED) {
        return prof_row(PROF_ROW_END, 0, 0);
    }

    if (reg[PROF_CFI_RA].how != PROF_CFI_OFFSET
        || reg[PROF_CFI_RA].u.off != -8
        || reg[PROF_CFI_SP].how != PROF_CFI_SAME)
    {
        return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
    }

    switch (state->cfa.how) {

    case PROF_CFI_OFFSET:
        n = state->cfa.u.off / 8;

        if (state->cfa.u.off % 8 || state->cfa_reg >= PROF_ARCH_DWARF_RA) {
            return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
        }

        if (state->cfa_reg == PROF_ARCH_DWARF_RSP
            || state->cfa_reg == PROF_ARCH_DWARF_RBP)
        {
            kind = (state->cfa_reg == PROF_ARCH_DWARF_RSP) ? PROF_ROW_RSP
                                                           : PROF_ROW_RBP;
            if (n < 0 || n > PROF_ROW_OFF_MAX) {
                return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
            }

        } else {
            kind = PROF_ROW_REG + (uint32_t) state->cfa_reg;

            if (n < INT16_MIN || n > INT16_MAX) {
                return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
            }
        }

        off = (uint32_t) n & PROF_ROW_OFF_MAX;
        break;

    case PROF_CFI_EXPRESSION:

        if (prof_arch_row_expression(&state->cfa, &kind, &off) == PROF_OK) {
            break;
        }

        /* fall through */

    default:
        return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
    }

    *aux = (int8_t) prof_arch_row_saved(&reg[PROF_CFI_AUX]);

    return prof_row(kind, off, prof_arch_row_saved(&reg[PROF_CFI_FP]));
}


static inline uintptr_t
prof_arch_context(const ucontext_t *uc, uint32_t reg)
{
    /* ucontext's index of DWARF's register */

    static const uint8_t  greg[] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP,
        REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
        REG_R14, REG_R15, REG_RIP
    };

    return (uintptr_t) uc->uc_mcontext.gregs[greg[reg]];
}


static inline void
prof_arch_regs(prof_regs_t *f, const ucontext_t *uc)
{
    f->pc = (uintptr_t) uc->uc_mcontext.gregs[REG_RIP];
    f->sp = (uintptr_t) uc->uc_mcontext.gregs[REG_RSP];
    f->fp = (uintptr_t) uc->uc_mcontext.gregs[REG_RBP];
    f->lr = 0;
    f->call = 0;
}


/* a word of the stack, or 0, which is no valid CFA */

static inline uintptr_t
prof_arch_word(const prof_regs_t *f, uintptr_t addr, uintptr_t top)
{
    if ((addr & 7) || addr < f->sp - PROF_ARCH_RED_ZONE || addr > top - 8) {
        return 0;
    }

    return prof_arch_load(addr);
}


static inline int
prof_arch_cfa(const prof_regs_t *f, uint64_t row, uintptr_t top,
    uintptr_t *cfa)
{
    uint32_t   kind;
    uintptr_t  at;

    kind = prof_row_kind(row);

    if (__builtin_expect(kind == PROF_ROW_RSP, 1)) {
        *cfa = f->sp + prof_row_off(row) * 8;
        return 1;
    }

    if (__builtin_expect(kind == PROF_ROW_RBP, 1)) {
        *cfa = f->fp + prof_row_off(row) * 8;
        return 1;
    }

    if (kind == PROF_ROW_PLT) {
        *cfa = f->sp + ((f->pc & 15) >= prof_row_off(row) ? 16 : 8);
        return 1;
    }

    if (kind == PROF_ROW_DEREF_RSP || kind == PROF_ROW_DEREF_RBP) {
        at = (kind == PROF_ROW_DEREF_RSP) ? f->sp : f->fp;
        at += (intptr_t) prof_row_disp(row) * 8;
        at = prof_arch_word(f, at, top);

        *cfa = at ? at + prof_row_add(row) * 8 : 0;
        return 1;
    }

    return 0;
}


static inline uint32_t
prof_arch_extra(uint64_t row)
{
    uint32_t  kind;

    kind = prof_row_kind(row);

    if (kind >= PROF_ROW_REG) {
        return kind - PROF_ROW_REG;
    }

    return (kind == PROF_ROW_INDEX_R9) ? PROF_ARCH_DWARF_R9
                                       : PROF_ARCH_DWARF_NONE;
}


static inline uintptr_t
prof_arch_extra_cfa(const prof_regs_t *f, uint64_t row, uintptr_t value,
    uintptr_t top)
{
    uintptr_t  at;

    if (prof_row_kind(row) >= PROF_ROW_REG) {
        return value + (intptr_t) prof_row_signed_off(row) * 8;
    }

    at = prof_arch_word(f, f->sp + 8 + value * 8, top);

    return at ? at + prof_row_off(row) * 8 : 0;
}


static inline int
prof_arch_preserved(uint32_t reg)
{
    return reg == PROF_ARCH_DWARF_RBX
           || (reg >= PROF_ARCH_DWARF_R12 && reg <= PROF_ARCH_DWARF_R15);
}


static inline int
prof_arch_moved(const prof_regs_t *f, uintptr_t cfa)
{
    return cfa > f->sp && (cfa & 7) == 0;
}


/* 0: nowhere that may be read */

static inline uintptr_t
prof_arch_saved(const prof_regs_t *f, int saved, uintptr_t cfa, uintptr_t top)
{
    uintptr_t  at;

    if (saved == PROF_ROW_LOST) {
        return 0;
    }

    at = (saved < 0) ? cfa + (intptr_t) saved * 8
                     : f->fp - (uintptr_t) (saved - 1) * 8;

    if ((at & 7) || at < f->sp - PROF_ARCH_RED_ZONE || at > top - 8) {
        return 0;
    }

    return at;
}


/* the caller has seen to f->sp < cfa <= top */

static inline void
prof_arch_pop(prof_regs_t *f, uint64_t row, uintptr_t cfa, uintptr_t top)
{
    int        saved;
    uintptr_t  at;

    saved = prof_row_fp(row);

    if (saved) {
        at = prof_arch_saved(f, saved, cfa, top);
        f->fp = at ? prof_arch_load(at) : 0;
    }

    f->pc = prof_arch_load(cfa - 8);
    f->sp = cfa;
    f->call = 1;
}


/* 0: the syscall found the word unreadable; errno is not touched */

static inline int
prof_arch_readable(uintptr_t addr)
{
    long           rc;
    register long  size  __asm__("r10");

    /*
     * The kernel copies the new mask in before it looks at "how", which is
     * invalid: so this changes nothing, and faults are reported.
     */

    size = 8;

    __asm__ __volatile__("syscall"
                         : "=a" (rc)
                         : "0" ((long) SYS_rt_sigprocmask), "D" (-1L),
                           "S" (addr), "d" (0L), "r" (size)
                         : "rcx", "r11", "memory");

    return rc == -EINVAL;
}


/* call rel32, or call r/m64 in each of its lengths */

static inline __attribute__((no_sanitize_address)) int
prof_arch_called(uintptr_t pc)
{
    int             len, mod, rm;
    const uint8_t  *p;

    if (!prof_arch_readable(pc - 8)) {
        return 0;
    }

    p = (const uint8_t *) pc;

    if (p[-5] == 0xe8) {
        return 1;
    }

    for (len = 2; len <= 7; len++) {

        if (p[-len] != 0xff || (p[1 - len] & 0x38) != 0x10) {
            continue;
        }

        mod = p[1 - len] >> 6;
        rm = p[1 - len] & 7;

        if (mod == 3) {
            rm = 2;

        } else if (mod == 0 && rm == 5) {
            rm = 6;

        } else if (mod == 0 && rm == 4) {
            rm = (len > 2 && (p[2 - len] & 7) == 5) ? 7 : 3;

        } else {
            rm = 2 + (mod == 1) + 4 * (mod == 2) + (rm == 4);
        }

        if (rm == len) {
            return 1;
        }
    }

    return 0;
}


#endif /* _PROF_ARCH_X86_64_H_INCLUDED_ */
