
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Runs the call frame instructions of an FDE.  For each piece of the FDE's
 * code it emits how to restore the registers that the unwinder follows.
 *
 * Context: not in a signal; the object must stay loaded.
 */


#ifndef _PROF_CFI_H_INCLUDED_
#define _PROF_CFI_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_eh.h"


typedef enum {
    PROF_CFI_SAME = 0,          /* the caller's value is still in place */
    PROF_CFI_UNDEFINED,
    PROF_CFI_OFFSET,            /* saved at CFA + off; the CFA: reg + off */
    PROF_CFI_EXPRESSION,        /* saved at the result of the expression, or
                                   the CFA is this result */
    PROF_CFI_OTHER              /* any other rule */
} prof_cfi_how_e;


typedef struct {
    uint32_t            how;    /* prof_cfi_how_e */
    uint32_t            len;    /* length of expr */
    union {
        int64_t         off;
        const uint8_t  *expr;
    } u;
} prof_cfi_rule_t;


/* the registers whose rules are stored */

typedef enum {
    PROF_CFI_RA = 0,            /* return address */
    PROF_CFI_FP,                /* frame pointer */
    PROF_CFI_SP,                /* stack pointer */
    PROF_CFI_AUX,               /* see prof_row.h */
    PROF_CFI_REGS,
    PROF_CFI_IGNORED
} prof_cfi_reg_e;


typedef struct {
    uint64_t            cfa_reg;    /* DWARF number */
    prof_cfi_rule_t     cfa;
    prof_cfi_rule_t     reg[PROF_CFI_REGS];
    unsigned            signal:1;
    unsigned            unsupported:1;
} prof_cfi_state_t;


/* the result of a CIE's initial instructions, cached for the next FDE */

typedef struct {
    prof_cie_t          cie;
    const uint8_t      *start;      /* the CIE that "initial" belongs to */
    prof_cfi_state_t    initial;
} prof_cfi_cie_t;


/* the rules in "state" are valid from pc up to the pc of the next call */

typedef void (*prof_cfi_emit_pt)(void *data, uintptr_t pc,
    const prof_cfi_state_t *state);


PROF_HIDDEN_BEGIN

/*
 * Calls emit for each piece of the FDE's code, in order.  Code whose
 * instructions cannot be followed is emitted as unsupported.
 */
void prof_cfi_run(prof_cfi_cie_t *cie, const prof_fde_t *fde,
    prof_cfi_emit_pt emit, void *data);

/* returns the rule of a DWARF register; in prof_arch_*.c */
prof_cfi_reg_e prof_arch_cfi_reg(uint64_t reg);

/*
 * Returns the row, without its pc, for rules that lead to a caller, or
 * PROF_ROW_UNSUPPORTED.  In prof_arch_*.c.
 */
uint64_t prof_arch_row(const prof_cfi_state_t *state, int8_t *aux);

PROF_HIDDEN_END


#endif /* _PROF_CFI_H_INCLUDED_ */
