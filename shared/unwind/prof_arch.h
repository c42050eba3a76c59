
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The processor-dependent part of the unwinder.  Each architecture's header
 * defines its ways to find the CFA, and these names; prof_arch_*.c makes the
 * rows.
 *
 *     PROF_ARCH_DWARF_RA     DWARF number of the return address column
 *     PROF_ARCH_RED_ZONE     bytes below sp that the running code may use
 *     PROF_ARCH_DWARF_AUX    the register whose rule is a row's "aux"
 *     PROF_ARCH_DWARF_NONE   no register
 *     PROF_ARCH_SCAN         whether a scan of the stack can find a caller
 *     PROF_ARCH_SIGFRAME_UC  offset of the ucontext_t from sp in signal frames
 *
 * For the walk:
 *
 *     prof_arch_regs()       registers of an interrupted context
 *     prof_arch_cfa()        CFA of a frame, for rows with prof_regs_t only
 *     prof_arch_extra()      the register that any other row needs
 *     prof_arch_extra_cfa()  CFA of such a frame
 *     prof_arch_preserved()  whether that register may be saved by callees
 *     prof_arch_context()    a register of an interrupted context
 *     prof_arch_moved()      whether this CFA is beyond the frame
 *     prof_arch_pop()        goes to the caller
 *     prof_arch_saved()      address of a saved register
 *
 * For a walk of the running thread's own stack:
 *
 *     prof_arch_here()       registers of the function that uses it
 *
 * For handlers of signals:
 *
 *     prof_arch_thread()     the thread pointer, different in each thread
 */


#ifndef _PROF_ARCH_H_INCLUDED_
#define _PROF_ARCH_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_row.h"

#include <ucontext.h>


/*
 * The registers that a walk follows.  A pop does not write two neighbors: gcc
 * would write them as one vector, and stall when it reads them one by one.
 */

typedef struct {
    uintptr_t  pc;
    uint32_t   call;    /* 1: pc is a return address, 0: an instruction */
    uintptr_t  sp;
    uintptr_t  lr;      /* link register, if the processor has one */
    uintptr_t  fp;
} prof_regs_t;


PROF_HIDDEN_BEGIN

/*
 * Returns whether the instruction before pc is a call, and its target; the
 * target is 0 if the instruction does not contain it.  Reads code there, if it
 * can be read.  In prof_arch_*_sig.c.
 */
int prof_arch_called(uintptr_t pc, uintptr_t *target)
    __attribute__((no_sanitize_address));

/*
 * Returns whether the eight bytes at the address can be read.  Makes a system
 * call.  In prof_arch_*_sig.c.
 */
int prof_arch_readable(uintptr_t addr);

/*
 * Returns whether the signal interrupted a system call that waited: such a
 * call fails with EINTR, or is restarted.  In prof_arch_*_sig.c.
 */
int prof_arch_waited(const ucontext_t *uc)
    __attribute__((no_sanitize_address));

PROF_HIDDEN_END


/* no sanitizer knows which words of a stack are valid */

static inline uintptr_t prof_arch_load(uintptr_t addr)
    __attribute__((no_sanitize_address));


static inline uintptr_t
prof_arch_load(uintptr_t addr)
{
    return *(const volatile uintptr_t *) addr;
}


#if (__x86_64__)
#include "unwind/prof_arch_x86_64.h"

#elif (__aarch64__)
#include "unwind/prof_arch_aarch64.h"

#else
#error "the unwinder has no code for this architecture"
#endif


#endif /* _PROF_ARCH_H_INCLUDED_ */
