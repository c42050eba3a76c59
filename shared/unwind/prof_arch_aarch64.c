
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * aarch64: makes rows of CFI states.
 *
 * Context: not in a signal.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_cfi.h"


#if (__aarch64__)


static int prof_arch_row_slot(const prof_cfi_state_t *state,
    const prof_cfi_rule_t *rule, int top);


prof_cfi_reg_e
prof_arch_cfi_reg(uint64_t reg)
{
    switch (reg) {

    case PROF_ARCH_DWARF_RA:
        return PROF_CFI_RA;

    case PROF_ARCH_DWARF_FP:
        return PROF_CFI_FP;

    case PROF_ARCH_DWARF_SP:
        return PROF_CFI_SP;

    default:
        return PROF_CFI_IGNORED;
    }
}


uint64_t
prof_arch_row(const prof_cfi_state_t *state, int8_t *aux)
{
    int       fp, lr;
    int64_t   off;
    uint32_t  how;

    *aux = 0;

    off = state->cfa.u.off;

    if (state->cfa.how != PROF_CFI_OFFSET
        || (state->cfa_reg != PROF_ARCH_DWARF_SP
            && state->cfa_reg != PROF_ARCH_DWARF_FP)
        || off < 0 || off % 16 || off / 16 > PROF_ROW_OFF_MAX
        || state->reg[PROF_CFI_SP].how != PROF_CFI_SAME)
    {
        return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
    }

    how = (state->cfa_reg == PROF_ARCH_DWARF_FP) ? PROF_ROW_FP : PROF_ROW_SP;

    lr = prof_arch_row_slot(state, &state->reg[PROF_CFI_RA], 0);
    fp = prof_arch_row_slot(state, &state->reg[PROF_CFI_FP], 0);

    if (lr == PROF_ROW_LOST) {
        how += PROF_ROW_TOP_SP - PROF_ROW_SP;

        lr = prof_arch_row_slot(state, &state->reg[PROF_CFI_RA], 1);
        fp = prof_arch_row_slot(state, &state->reg[PROF_CFI_FP], 1);
    }

    if (lr == PROF_ROW_LOST) {
        return prof_row(PROF_ROW_UNSUPPORTED, 0, 0);
    }

    return prof_row(how + (uint32_t) lr, off / 16, fp);
}


/*
 * returns the slot of a saved register, counted from the base, or downwards
 * from the CFA if top is set; 0 if the register is not saved
 */

static int
prof_arch_row_slot(const prof_cfi_state_t *state, const prof_cfi_rule_t *rule,
    int top)
{
    int64_t  off;

    if (rule->how == PROF_CFI_SAME) {
        return 0;
    }

    off = top ? -rule->u.off - 8 : state->cfa.u.off + rule->u.off;

    if (rule->how != PROF_CFI_OFFSET || off < 0 || off % 8
        || off / 8 >= PROF_ROW_SLOTS - 1)
    {
        return PROF_ROW_LOST;
    }

    return (int) (off / 8) + 1;
}


#endif
