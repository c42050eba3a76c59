
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * aarch64.  The return address is in x30 until it is saved.  "how" of a row
 * includes the place where it is saved:
 *
 *     PROF_ROW_SP + lr         base = sp
 *     PROF_ROW_FP + lr         base = x29
 *     PROF_ROW_TOP_SP + lr     base = sp
 *     PROF_ROW_TOP_FP + lr     base = x29
 *
 *     CFA                = base + 16 * off
 *     slot n             = base + 8 * (n - 1), TOP: CFA - 8 * n
 *     return address     = lr ? *slot(lr) : x30
 *     caller's x29       = fp ? *slot(fp) : x29
 *
 * Functions save both registers at one end of their frame.  In a frame of more
 * than a few hundred bytes the other end is out of reach.
 *
 * Signatures of return addresses are removed without a check.
 */


#ifndef _PROF_ARCH_AARCH64_H_INCLUDED_
#define _PROF_ARCH_AARCH64_H_INCLUDED_


#define PROF_ROW_SLOTS   60
#define PROF_ROW_SP      16
#define PROF_ROW_FP      (PROF_ROW_SP + PROF_ROW_SLOTS)
#define PROF_ROW_TOP_SP  (PROF_ROW_FP + PROF_ROW_SLOTS)
#define PROF_ROW_TOP_FP  (PROF_ROW_TOP_SP + PROF_ROW_SLOTS)

#define prof_row_lr(row)                                                      \
    ((prof_row_how(row) - PROF_ROW_SP) % PROF_ROW_SLOTS)
#define prof_row_from_fp(row)                                                 \
    ((prof_row_how(row) - PROF_ROW_SP) / PROF_ROW_SLOTS & 1)
#define prof_row_from_top(row)  (prof_row_how(row) >= PROF_ROW_TOP_SP)


/* DWARF for the Arm 64-bit Architecture, 4.1 */

#define PROF_ARCH_DWARF_FP    29
#define PROF_ARCH_DWARF_RA    30
#define PROF_ARCH_DWARF_SP    31
#define PROF_ARCH_DWARF_NONE  UINT32_MAX

#define PROF_ARCH_DWARF_AUX   PROF_ARCH_DWARF_NONE

#define PROF_ARCH_RED_ZONE    0

/* stacks are not scanned: a saved x30 does not show where its frame ends */

#define PROF_ARCH_SCAN        0

/* the siginfo_t, which precedes the ucontext_t, has this size */

#define PROF_ARCH_SIGFRAME_UC  128


static inline void prof_arch_here(ucontext_t *uc);
static inline void prof_arch_regs(prof_regs_t *f, const ucontext_t *uc);
static inline uintptr_t prof_arch_context(const ucontext_t *uc, uint32_t reg);
static inline uintptr_t prof_arch_slot(const prof_regs_t *f, uint64_t row,
    uint32_t slot);
static inline int prof_arch_cfa(const prof_regs_t *f, uint64_t row,
    uintptr_t top, uintptr_t *cfa);
static inline uint32_t prof_arch_extra(uint64_t row);
static inline uintptr_t prof_arch_extra_cfa(const prof_regs_t *f, uint64_t row,
    uintptr_t value, uintptr_t top);
static inline int prof_arch_preserved(uint32_t reg);
static inline int prof_arch_moved(const prof_regs_t *f, uintptr_t cfa);
static inline uintptr_t prof_arch_saved(const prof_regs_t *f, int saved,
    uintptr_t cfa, uintptr_t top);
static inline void prof_arch_pop(prof_regs_t *f, uint64_t row, uintptr_t cfa,
    uintptr_t top);
static inline uintptr_t prof_arch_strip(uintptr_t pc);


/* the registers that callees preserve; callers do not use the others */

static inline __attribute__((always_inline)) void
prof_arch_here(ucontext_t *uc)
{
    uint32_t     i;
    mcontext_t  *m;

    m = &uc->uc_mcontext;

    for (i = 0; i < 29; i++) {
        m->regs[i] = 0;
    }

    __asm__ volatile ("adr x9, .\n\t"
                      "str x9, %0\n\t"
                      "mov x9, sp\n\t"
                      "str x9, %1\n\t"
                      "str x29, %2\n\t"
                      "str x30, %3"
                      : "=m" (m->pc), "=m" (m->sp), "=m" (m->regs[29]),
                        "=m" (m->regs[30])
                      :
                      : "x9");
}


static inline void
prof_arch_regs(prof_regs_t *f, const ucontext_t *uc)
{
    f->pc = uc->uc_mcontext.pc;
    f->sp = uc->uc_mcontext.sp;
    f->fp = uc->uc_mcontext.regs[PROF_ARCH_DWARF_FP];
    f->lr = prof_arch_strip(uc->uc_mcontext.regs[PROF_ARCH_DWARF_RA]);
    f->call = 0;
}


static inline uintptr_t
prof_arch_context(const ucontext_t *uc, uint32_t reg)
{
    return (reg < PROF_ARCH_DWARF_SP) ? uc->uc_mcontext.regs[reg] : 0;
}


/* returns the address of a slot; slots are counted from 1 */

static inline uintptr_t
prof_arch_slot(const prof_regs_t *f, uint64_t row, uint32_t slot)
{
    uintptr_t  base;

    base = prof_row_from_fp(row) ? f->fp : f->sp;

    return prof_row_from_top(row)
           ? base + prof_row_off(row) * 16 - 8 * (uintptr_t) slot
           : base + 8 * (uintptr_t) (slot - 1);
}


/* returns 0, which is not a valid CFA, if there is no return address */

static inline int
prof_arch_cfa(const prof_regs_t *f, uint64_t row, uintptr_t top,
    uintptr_t *cfa)
{
    uint32_t   lr;
    uintptr_t  at;

    if (prof_row_how(row) < PROF_ROW_SP) {
        *cfa = 0;
        return 0;
    }

    lr = prof_row_lr(row);

    *cfa = (prof_row_from_fp(row) ? f->fp : f->sp) + prof_row_off(row) * 16;

    if (lr) {
        at = prof_arch_slot(f, row, lr);

        if ((at & 7) || at < f->sp || at > *cfa - 8) {
            *cfa = 0;
        }

    } else if (f->call) {
        *cfa = 0;
    }

    return 1;
}


static inline uint32_t
prof_arch_extra(uint64_t row)
{
    return PROF_ARCH_DWARF_NONE;
}


static inline uintptr_t
prof_arch_extra_cfa(const prof_regs_t *f, uint64_t row, uintptr_t value,
    uintptr_t top)
{
    return 0;
}


static inline int
prof_arch_preserved(uint32_t reg)
{
    return 1;
}


/*
 * Returns whether the CFA is beyond the frame.  The interrupted function may
 * not have saved any register, so its frame may have the size 0.
 */

static inline int
prof_arch_moved(const prof_regs_t *f, uintptr_t cfa)
{
    return (cfa > f->sp || (cfa == f->sp && !f->call)) && (cfa & 15) == 0;
}


static inline uintptr_t
prof_arch_saved(const prof_regs_t *f, int saved, uintptr_t cfa, uintptr_t top)
{
    return 0;
}


/* the caller has checked f->sp <= cfa <= top */

static inline void
prof_arch_pop(prof_regs_t *f, uint64_t row, uintptr_t cfa, uintptr_t top)
{
    int        fp;
    uint32_t   lr;
    uintptr_t  at, pc;

    lr = prof_row_lr(row);
    pc = lr ? prof_arch_load(prof_arch_slot(f, row, lr)) : f->lr;

    fp = prof_row_fp(row);

    if (fp) {
        at = (fp == PROF_ROW_LOST) ? 0 : prof_arch_slot(f, row, fp);

        f->fp = ((at & 7) || at < f->sp || at > top - 8) ? 0
                                                         : prof_arch_load(at);
    }

    f->pc = prof_arch_strip(pc);
    f->sp = cfa;
    f->call = 1;
}


/* xpaclri, which has no effect on processors without signatures */

static inline uintptr_t
prof_arch_strip(uintptr_t pc)
{
    register uintptr_t  lr  __asm__("x30");

    lr = pc;

    __asm__("hint #7" : "+r" (lr));

    return lr;
}


static inline uintptr_t
prof_arch_thread(void)
{
    uintptr_t  thread;

    __asm__ volatile ("mrs %0, tpidr_el0" : "=r" (thread));

    return thread;
}


#endif /* _PROF_ARCH_AARCH64_H_INCLUDED_ */
