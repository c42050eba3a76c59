
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
 * Linkers write PLT for the stubs of lazy binding.  Compilers make DEREF_RBP
 * for realigned stacks.  DEREF_RSP, INDEX_R9 and REG occur in hand-written
 * code, above all of OpenSSL, and in the dynamic linker.
 */


#ifndef _PROF_ARCH_X86_64_H_INCLUDED_
#define _PROF_ARCH_X86_64_H_INCLUDED_


#define PROF_ROW_RSP        (PROF_ROW_ARCH + 0)
#define PROF_ROW_RBP        (PROF_ROW_ARCH + 1)
#define PROF_ROW_PLT        (PROF_ROW_ARCH + 2)
#define PROF_ROW_DEREF_RSP  (PROF_ROW_ARCH + 3)
#define PROF_ROW_DEREF_RBP  (PROF_ROW_ARCH + 4)
#define PROF_ROW_INDEX_R9   (PROF_ROW_ARCH + 5)
#define PROF_ROW_REG        16

#define PROF_ROW_DISP_MIN   (-0x800)
#define PROF_ROW_DISP_MAX   0x7ff
#define PROF_ROW_ADD_MAX    0xf

#define prof_row_deref(disp, add)                                             \
    (((uint32_t) (disp) & 0xfff) << 4 | (uint32_t) (add))
#define prof_row_signed_off(row)  ((int16_t) prof_row_off(row))
#define prof_row_disp(row)        (prof_row_signed_off(row) >> 4)
#define prof_row_add(row)         (prof_row_off(row) & PROF_ROW_ADD_MAX)


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
#define PROF_ARCH_SCAN        1

/* at 0: the handler's return has already popped the trampoline's address */

#define PROF_ARCH_SIGFRAME_UC  0


static inline void prof_arch_here(ucontext_t *uc);
static inline void prof_arch_regs(prof_regs_t *f, const ucontext_t *uc);
static inline uintptr_t prof_arch_context(const ucontext_t *uc, uint32_t reg);
static inline uintptr_t prof_arch_word(const prof_regs_t *f, uintptr_t addr,
    uintptr_t top);
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


/* the registers that callees preserve; callers do not use the others */

static inline __attribute__((always_inline)) void
prof_arch_here(ucontext_t *uc)
{
    greg_t  *g;

    g = uc->uc_mcontext.gregs;

    __asm__ volatile ("leaq 0(%%rip), %%rax\n\t"
                      "movq %%rax, %0\n\t"
                      "movq %%rsp, %1\n\t"
                      "movq %%rbp, %2\n\t"
                      "movq %%rbx, %3\n\t"
                      "movq %%r12, %4\n\t"
                      "movq %%r13, %5\n\t"
                      "movq %%r14, %6\n\t"
                      "movq %%r15, %7"
                      : "=m" (g[REG_RIP]), "=m" (g[REG_RSP]),
                        "=m" (g[REG_RBP]), "=m" (g[REG_RBX]),
                        "=m" (g[REG_R12]), "=m" (g[REG_R13]),
                        "=m" (g[REG_R14]), "=m" (g[REG_R15])
                      :
                      : "rax");

    g[REG_RAX] = 0;
    g[REG_RCX] = 0;
    g[REG_RDX] = 0;
    g[REG_RSI] = 0;
    g[REG_RDI] = 0;
    g[REG_R8] = 0;
    g[REG_R9] = 0;
    g[REG_R10] = 0;
    g[REG_R11] = 0;
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


static inline uintptr_t
prof_arch_context(const ucontext_t *uc, uint32_t reg)
{
    /* the index in ucontext of a DWARF register */

    static const uint8_t  greg[] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP,
        REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
        REG_R14, REG_R15, REG_RIP
    };

    return (uintptr_t) uc->uc_mcontext.gregs[greg[reg]];
}


/* returns a word of the stack, or 0, which is not a valid CFA */

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
    uint32_t   how;
    uintptr_t  at;

    how = prof_row_how(row);

    if (__builtin_expect(how == PROF_ROW_RSP, 1)) {
        *cfa = f->sp + prof_row_off(row) * 8;
        return 1;
    }

    if (__builtin_expect(how == PROF_ROW_RBP, 1)) {
        *cfa = f->fp + prof_row_off(row) * 8;
        return 1;
    }

    if (how == PROF_ROW_PLT) {
        *cfa = f->sp + ((f->pc & 15) >= prof_row_off(row) ? 16 : 8);
        return 1;
    }

    if (how == PROF_ROW_DEREF_RSP || how == PROF_ROW_DEREF_RBP) {
        at = (how == PROF_ROW_DEREF_RSP) ? f->sp : f->fp;
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
    uint32_t  how;

    how = prof_row_how(row);

    if (how >= PROF_ROW_REG) {
        return how - PROF_ROW_REG;
    }

    return (how == PROF_ROW_INDEX_R9) ? PROF_ARCH_DWARF_R9
                                       : PROF_ARCH_DWARF_NONE;
}


static inline uintptr_t
prof_arch_extra_cfa(const prof_regs_t *f, uint64_t row, uintptr_t value,
    uintptr_t top)
{
    uintptr_t  at;

    if (prof_row_how(row) >= PROF_ROW_REG) {
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


/* returns 0 if the place cannot be read */

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


/* the caller has checked f->sp < cfa <= top */

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


static inline uintptr_t
prof_arch_thread(void)
{
    uintptr_t  thread;

    __asm__ volatile ("mov %%fs:0, %0" : "=r" (thread));

    return thread;
}


#endif /* _PROF_ARCH_X86_64_H_INCLUDED_ */
