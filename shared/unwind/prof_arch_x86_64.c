
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * x86-64: makes rows of CFI states.
 *
 * Context: not in a signal.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_cfi.h"

#include <string.h>


#if (__x86_64__)


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


static int prof_arch_row_cfa(const prof_cfi_state_t *state, uint32_t *how,
    uint32_t *off);
static int prof_arch_row_plt(const prof_cfi_rule_t *cfa, uint32_t *off);
static int prof_arch_row_deref(const prof_cfi_rule_t *cfa, uint32_t *how,
    uint32_t *off);
static int prof_arch_row_saved(const prof_cfi_rule_t *rule);


prof_cfi_reg_e
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


uint64_t
prof_arch_row(const prof_cfi_state_t *state, int8_t *aux)
{
    uint32_t                how, off;
    const prof_cfi_rule_t  *reg;

    reg = state->reg;
    *aux = 0;

    if (reg[PROF_CFI_RA].how != PROF_CFI_OFFSET
        || reg[PROF_CFI_RA].u.off != -8
        || reg[PROF_CFI_SP].how != PROF_CFI_SAME
        || prof_arch_row_cfa(state, &how, &off) != PROF_OK)
    {
        return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
    }

    *aux = (int8_t) prof_arch_row_saved(&reg[PROF_CFI_AUX]);

    return prof_row(how, off, prof_arch_row_saved(&reg[PROF_CFI_FP]));
}


static int
prof_arch_row_cfa(const prof_cfi_state_t *state, uint32_t *how, uint32_t *off)
{
    int64_t  n;

    if (state->cfa.how == PROF_CFI_EXPRESSION) {

        if (prof_arch_row_plt(&state->cfa, off) == PROF_OK) {
            *how = PROF_ROW_PLT;
            return PROF_OK;
        }

        return prof_arch_row_deref(&state->cfa, how, off);
    }

    n = state->cfa.u.off / 8;

    if (state->cfa.how != PROF_CFI_OFFSET || state->cfa.u.off % 8
        || state->cfa_reg >= PROF_ARCH_DWARF_RA)
    {
        return PROF_ERROR;
    }

    *off = (uint32_t) n & PROF_ROW_OFF_MAX;

    if (state->cfa_reg == PROF_ARCH_DWARF_RSP) {
        *how = PROF_ROW_RSP;

    } else if (state->cfa_reg == PROF_ARCH_DWARF_RBP) {
        *how = PROF_ROW_RBP;

    } else {
        *how = PROF_ROW_REG + (uint32_t) state->cfa_reg;

        return (n >= INT16_MIN && n <= INT16_MAX) ? PROF_OK : PROF_ERROR;
    }

    return (n >= 0 && n <= PROF_ROW_OFF_MAX) ? PROF_OK : PROF_ERROR;
}


/* recognizes the CFA rsp + 8 + (((rip & 15) >= off) << 3) */

static int
prof_arch_row_plt(const prof_cfi_rule_t *cfa, uint32_t *off)
{
    /* linkers use different literals at 6 */

    static const uint8_t  plt[] = {
        PROF_OP_BREG0 + PROF_ARCH_DWARF_RSP, 8,
        PROF_OP_BREG0 + PROF_ARCH_DWARF_RA, 0,
        PROF_OP_LIT0 + 15, PROF_OP_AND, 0, PROF_OP_GE,
        PROF_OP_LIT0 + 3, PROF_OP_SHL, PROF_OP_PLUS
    };

    if (cfa->len != sizeof(plt)
        || memcmp(cfa->u.expr, plt, 6) != 0
        || memcmp(cfa->u.expr + 7, plt + 7, sizeof(plt) - 7) != 0
        || cfa->u.expr[6] < PROF_OP_LIT0
        || cfa->u.expr[6] > PROF_OP_LIT0 + 15)
    {
        return PROF_ERROR;
    }

    *off = cfa->u.expr[6] - PROF_OP_LIT0;

    return PROF_OK;
}


/*
 * Recognizes the CFA *(rsp + disp) + add, *(rbp + disp) + add, or
 * *(rsp + 8 + r9 * 8) + add.
 */

static int
prof_arch_row_deref(const prof_cfi_rule_t *cfa, uint32_t *how, uint32_t *off)
{
    uint8_t      base;
    int64_t      disp;
    uint64_t     add;
    prof_read_t  r;

    static const uint8_t  index_r9[] = {
        PROF_OP_BREG0 + PROF_ARCH_DWARF_RSP, 8,
        PROF_OP_BREG0 + PROF_ARCH_DWARF_R9, 0,
        PROF_OP_LIT0 + 8, PROF_OP_MUL, PROF_OP_PLUS
    };

    prof_read_init(&r, cfa->u.expr, cfa->u.expr + cfa->len);

    if (cfa->len > sizeof(index_r9)
        && memcmp(cfa->u.expr, index_r9, sizeof(index_r9)) == 0)
    {
        *how = PROF_ROW_INDEX_R9;
        disp = 0;
        prof_read_skip(&r, sizeof(index_r9));

    } else {
        base = prof_read_u8(&r);
        disp = prof_read_sleb(&r);

        if (base == PROF_OP_BREG0 + PROF_ARCH_DWARF_RSP) {
            *how = PROF_ROW_DEREF_RSP;

        } else if (base == PROF_OP_BREG0 + PROF_ARCH_DWARF_RBP) {
            *how = PROF_ROW_DEREF_RBP;

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
        || disp / 8 < PROF_ROW_DISP_MIN || disp / 8 > PROF_ROW_DISP_MAX
        || add / 8 > PROF_ROW_ADD_MAX)
    {
        return PROF_ERROR;
    }

    *off = (*how == PROF_ROW_INDEX_R9) ? (uint32_t) (add / 8)
                                        : prof_row_deref(disp / 8, add / 8);

    return PROF_OK;
}


/* returns the value for "fp" or "aux" of a row */

static int
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

        /*
         * When compilers realign the stack, the place of a saved register is
         * relative to rbp.
         */

        prof_read_init(&r, rule->u.expr, rule->u.expr + rule->len);

        if (prof_read_u8(&r) != PROF_OP_BREG0 + PROF_ARCH_DWARF_RBP) {
            return PROF_ROW_LOST;
        }

        off = prof_read_sleb(&r);

        if (!r.failed && r.p == r.end
            && off % 8 == 0 && off <= 0 && off / 8 > -INT8_MAX)
        {
            return (int) (1 - off / 8);
        }

        return PROF_ROW_LOST;

    default:
        return PROF_ROW_LOST;
    }
}


#endif
