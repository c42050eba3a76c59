
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "unwind/prof_cfi.h"
#include "unwind/prof_arch.h"

#include <string.h>


/* nested DW_CFA_remember_state; compilers use one level */

#define PROF_CFI_DEPTH  8


/* DWARF 5, 7.24; LSB Core 5.0, 10.5.3 */

#define PROF_CFA_ADVANCE_LOC         0x40    /* the operation is in the
                                                upper two bits */
#define PROF_CFA_OFFSET              0x80
#define PROF_CFA_RESTORE             0xc0

#define PROF_CFA_NOP                 0x00
#define PROF_CFA_SET_LOC             0x01
#define PROF_CFA_ADVANCE_LOC1        0x02
#define PROF_CFA_ADVANCE_LOC2        0x03
#define PROF_CFA_ADVANCE_LOC4        0x04
#define PROF_CFA_OFFSET_EXTENDED     0x05
#define PROF_CFA_RESTORE_EXTENDED    0x06
#define PROF_CFA_UNDEFINED           0x07
#define PROF_CFA_SAME_VALUE          0x08
#define PROF_CFA_REGISTER            0x09
#define PROF_CFA_REMEMBER_STATE      0x0a
#define PROF_CFA_RESTORE_STATE       0x0b
#define PROF_CFA_DEF_CFA             0x0c
#define PROF_CFA_DEF_CFA_REGISTER    0x0d
#define PROF_CFA_DEF_CFA_OFFSET      0x0e
#define PROF_CFA_DEF_CFA_EXPRESSION  0x0f
#define PROF_CFA_EXPRESSION          0x10
#define PROF_CFA_OFFSET_EXTENDED_SF  0x11
#define PROF_CFA_DEF_CFA_SF          0x12
#define PROF_CFA_DEF_CFA_OFFSET_SF   0x13
#define PROF_CFA_VAL_OFFSET          0x14
#define PROF_CFA_VAL_OFFSET_SF       0x15
#define PROF_CFA_VAL_EXPRESSION      0x16
#define PROF_CFA_NEGATE_RA_STATE     0x2d
#define PROF_CFA_ARGS_SIZE           0x2e
#define PROF_CFA_NEGATIVE_OFFSET     0x2f


typedef struct {
    prof_read_t              r;
    const prof_cie_t        *cie;
    const prof_cfi_state_t  *initial;
    uintptr_t                pc;        /* start of the state */
    uintptr_t                end;       /* end of the code */
    prof_cfi_emit_pt         emit;
    void                    *data;
    prof_cfi_state_t         state;
    uint32_t                 depth;
    prof_cfi_state_t         saved[PROF_CFI_DEPTH];
} prof_cfi_t;


static void prof_cfi_exec(prof_cfi_t *c, const uint8_t *insn,
    const uint8_t *end);
static int64_t prof_cfi_off(prof_cfi_t *c, int64_t n, int64_t factor);
static int prof_cfi_location(prof_cfi_t *c, uint8_t op);
static int prof_cfi_cfa(prof_cfi_t *c, uint8_t op);
static int prof_cfi_register(prof_cfi_t *c, uint8_t op);
static int prof_cfi_state(prof_cfi_t *c, uint8_t op);
static void prof_cfi_advance(prof_cfi_t *c, uint64_t delta);
static void prof_cfi_set(prof_cfi_t *c, uint64_t reg, uint32_t how,
    int64_t off);
static void prof_cfi_restore(prof_cfi_t *c, uint64_t reg);
static void prof_cfi_block(prof_cfi_t *c, prof_cfi_rule_t *rule);


void
prof_cfi_run(prof_cfi_cie_t *cie, const prof_fde_t *fde,
    prof_cfi_emit_pt emit, void *data)
{
    prof_cfi_t  c;

    c.cie = &cie->cie;
    c.depth = 0;

    if (cie->start != cie->cie.start) {
        memset(&c.state, 0, sizeof(prof_cfi_state_t));

        c.state.cfa.how = PROF_CFI_OTHER;
        c.state.signal = cie->cie.signal;
        c.initial = NULL;
        c.emit = NULL;
        c.pc = 0;
        c.end = 0;

        prof_cfi_exec(&c, cie->cie.insn, cie->cie.insn_end);

        if (cie->cie.ra != PROF_ARCH_DWARF_RA) {
            c.state.unsupported = 1;
        }

        cie->initial = c.state;
        cie->start = cie->cie.start;
    }

    c.state = cie->initial;
    c.initial = &cie->initial;
    c.emit = emit;
    c.data = data;
    c.pc = fde->start;
    c.end = fde->end;
    c.depth = 0;

    prof_cfi_exec(&c, fde->insn, fde->insn_end);

    if (c.pc < c.end) {
        c.emit(c.data, c.pc, &c.state);
    }
}


static void
prof_cfi_exec(prof_cfi_t *c, const uint8_t *insn, const uint8_t *end)
{
    int      rc;
    uint8_t  op;

    prof_read_init(&c->r, insn, end);

    while (c->r.p < c->r.end) {
        op = prof_read_u8(&c->r);

        switch (op & 0xc0) {

        case PROF_CFA_ADVANCE_LOC:
            prof_cfi_advance(c, (uint64_t) (op & 0x3f) * c->cie->code_align);
            rc = PROF_OK;
            break;

        case PROF_CFA_OFFSET:
            prof_cfi_set(c, op & 0x3f, PROF_CFI_OFFSET,
                         prof_cfi_off(c, (int64_t) prof_read_uleb(&c->r),
                                      c->cie->data_align));
            rc = PROF_OK;
            break;

        case PROF_CFA_RESTORE:
            prof_cfi_restore(c, op & 0x3f);
            rc = PROF_OK;
            break;

        default:
            rc = prof_cfi_location(c, op);
        }

        if (rc != PROF_OK || c->r.failed) {
            c->state.unsupported = 1;
            return;
        }
    }
}


/*
 * Returns n * factor.  An offset that is too large for any frame makes the
 * instructions unsupported.
 */

static int64_t
prof_cfi_off(prof_cfi_t *c, int64_t n, int64_t factor)
{
    int64_t  off;

    if (__builtin_mul_overflow(n, factor, &off)
        || off > INT32_MAX || off < -INT32_MAX)
    {
        c->r.failed = 1;
        return 0;
    }

    return off;
}


static int
prof_cfi_location(prof_cfi_t *c, uint8_t op)
{
    uintptr_t  pc;

    switch (op) {

    case PROF_CFA_NOP:
    case PROF_CFA_NEGATE_RA_STATE:

        /* signature bits of return addresses are removed in any case */

        return PROF_OK;

    case PROF_CFA_ADVANCE_LOC1:
        prof_cfi_advance(c, prof_read_uint(&c->r, 1) * c->cie->code_align);
        return PROF_OK;

    case PROF_CFA_ADVANCE_LOC2:
        prof_cfi_advance(c, prof_read_uint(&c->r, 2) * c->cie->code_align);
        return PROF_OK;

    case PROF_CFA_ADVANCE_LOC4:
        prof_cfi_advance(c, prof_read_uint(&c->r, 4) * c->cie->code_align);
        return PROF_OK;

    case PROF_CFA_SET_LOC:
        pc = prof_read_pointer(&c->r, c->cie->encoding, 0);

        if (c->r.failed || pc < c->pc) {
            return PROF_ERROR;
        }

        prof_cfi_advance(c, pc - c->pc);
        return PROF_OK;

    case PROF_CFA_ARGS_SIZE:
        (void) prof_read_uleb(&c->r);
        return PROF_OK;

    default:
        return prof_cfi_cfa(c, op);
    }
}


static int
prof_cfi_cfa(prof_cfi_t *c, uint8_t op)
{
    prof_cfi_rule_t  *cfa;

    cfa = &c->state.cfa;

    switch (op) {

    case PROF_CFA_DEF_CFA:
        c->state.cfa_reg = prof_read_uleb(&c->r);
        cfa->how = PROF_CFI_OFFSET;
        cfa->u.off = prof_cfi_off(c, (int64_t) prof_read_uleb(&c->r), 1);
        return PROF_OK;

    case PROF_CFA_DEF_CFA_SF:
        c->state.cfa_reg = prof_read_uleb(&c->r);
        cfa->how = PROF_CFI_OFFSET;
        cfa->u.off = prof_cfi_off(c, prof_read_sleb(&c->r),
                                  c->cie->data_align);
        return PROF_OK;

    case PROF_CFA_DEF_CFA_REGISTER:
        c->state.cfa_reg = prof_read_uleb(&c->r);
        return (cfa->how == PROF_CFI_OFFSET) ? PROF_OK : PROF_ERROR;

    case PROF_CFA_DEF_CFA_OFFSET:
        cfa->u.off = prof_cfi_off(c, (int64_t) prof_read_uleb(&c->r), 1);
        return (cfa->how == PROF_CFI_OFFSET) ? PROF_OK : PROF_ERROR;

    case PROF_CFA_DEF_CFA_OFFSET_SF:
        cfa->u.off = prof_cfi_off(c, prof_read_sleb(&c->r),
                                  c->cie->data_align);
        return (cfa->how == PROF_CFI_OFFSET) ? PROF_OK : PROF_ERROR;

    case PROF_CFA_DEF_CFA_EXPRESSION:
        prof_cfi_block(c, cfa);
        cfa->how = PROF_CFI_EXPRESSION;
        return PROF_OK;

    default:
        return prof_cfi_register(c, op);
    }
}


static int
prof_cfi_register(prof_cfi_t *c, uint8_t op)
{
    int64_t          off;
    uint64_t         reg;
    prof_cfi_reg_e   i;
    prof_cfi_rule_t  rule;

    if (op == PROF_CFA_REMEMBER_STATE || op == PROF_CFA_RESTORE_STATE) {
        return prof_cfi_state(c, op);
    }

    reg = prof_read_uleb(&c->r);

    switch (op) {

    case PROF_CFA_OFFSET_EXTENDED:
        off = prof_cfi_off(c, (int64_t) prof_read_uleb(&c->r),
                           c->cie->data_align);
        prof_cfi_set(c, reg, PROF_CFI_OFFSET, off);
        return PROF_OK;

    case PROF_CFA_OFFSET_EXTENDED_SF:
        off = prof_cfi_off(c, prof_read_sleb(&c->r), c->cie->data_align);
        prof_cfi_set(c, reg, PROF_CFI_OFFSET, off);
        return PROF_OK;

    case PROF_CFA_NEGATIVE_OFFSET:
        off = prof_cfi_off(c, (int64_t) prof_read_uleb(&c->r),
                           c->cie->data_align);
        prof_cfi_set(c, reg, PROF_CFI_OFFSET, -off);
        return PROF_OK;

    case PROF_CFA_RESTORE_EXTENDED:
        prof_cfi_restore(c, reg);
        return PROF_OK;

    case PROF_CFA_UNDEFINED:
        prof_cfi_set(c, reg, PROF_CFI_UNDEFINED, 0);
        return PROF_OK;

    case PROF_CFA_SAME_VALUE:
        prof_cfi_set(c, reg, PROF_CFI_SAME, 0);
        return PROF_OK;

    case PROF_CFA_REGISTER:
    case PROF_CFA_VAL_OFFSET:
    case PROF_CFA_VAL_OFFSET_SF:
        (void) prof_read_uleb(&c->r);
        prof_cfi_set(c, reg, PROF_CFI_OTHER, 0);
        return PROF_OK;

    case PROF_CFA_VAL_EXPRESSION:
        prof_cfi_block(c, &rule);
        prof_cfi_set(c, reg, PROF_CFI_OTHER, 0);
        return PROF_OK;

    case PROF_CFA_EXPRESSION:
        i = prof_arch_cfi_reg(reg);
        prof_cfi_block(c, (i < PROF_CFI_REGS) ? &c->state.reg[i] : &rule);
        return PROF_OK;

    default:
        return PROF_ERROR;
    }
}


static int
prof_cfi_state(prof_cfi_t *c, uint8_t op)
{
    if (op == PROF_CFA_REMEMBER_STATE) {

        if (c->depth == PROF_CFI_DEPTH) {
            return PROF_ERROR;
        }

        c->saved[c->depth++] = c->state;

        return PROF_OK;
    }

    if (c->depth == 0) {
        return PROF_ERROR;
    }

    c->state = c->saved[--c->depth];

    return PROF_OK;
}


static void
prof_cfi_advance(prof_cfi_t *c, uint64_t delta)
{
    /* a CIE has no code, and a broken FDE must stay within its own code */

    if (delta > c->end - c->pc) {
        c->r.failed = 1;
        return;
    }

    if (delta == 0) {
        return;
    }

    c->emit(c->data, c->pc, &c->state);
    c->pc += delta;
}


static void
prof_cfi_set(prof_cfi_t *c, uint64_t reg, uint32_t how, int64_t off)
{
    prof_cfi_reg_e  i;

    i = prof_arch_cfi_reg(reg);

    if (i < PROF_CFI_REGS) {
        c->state.reg[i].how = how;
        c->state.reg[i].u.off = off;
    }
}


static void
prof_cfi_restore(prof_cfi_t *c, uint64_t reg)
{
    prof_cfi_reg_e  i;

    i = prof_arch_cfi_reg(reg);

    if (c->initial == NULL) {
        c->r.failed = 1;
        return;
    }

    if (i < PROF_CFI_REGS) {
        c->state.reg[i] = c->initial->reg[i];
    }
}


static void
prof_cfi_block(prof_cfi_t *c, prof_cfi_rule_t *rule)
{
    uint64_t  len;

    len = prof_read_uleb(&c->r);

    rule->how = PROF_CFI_EXPRESSION;
    rule->u.expr = c->r.p;

    prof_read_skip(&c->r, len);

    rule->len = (uint32_t) (c->r.p - rule->u.expr);
}
