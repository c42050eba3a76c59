
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * System calls.  A thread that is interrupted in a system call has an address
 * directly after the instruction that entered the kernel.  If the kernel is
 * going to repeat the call (SA_RESTART), the address is that of the
 * instruction itself.  The code before the instruction has the number of the
 * call, also in stripped files.
 *
 * Only the code of the same function is decoded, and only a number that is
 * certain is used: a constant, and no jump leads between it and the
 * instruction.  The number of the function syscall() of the C library is an
 * argument, so its calls stay without a name.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_SYSCALL_H_INCLUDED_
#define _PROF_SYSCALL_H_INCLUDED_


#include "base/prof_base.h"
#include "names/prof_elf.h"
#include "names/prof_symbol.h"
#include "profile/prof_profile.h"


/* the code of one function */

typedef struct {
    const uint8_t  *bytes;
    size_t          len;
    size_t          at;         /* offset of the interrupted instruction */
} prof_syscall_code_t;


PROF_HIDDEN_BEGIN

/*
 * Finds the system calls of those of the n addresses that were interrupted.
 * PROF_OK, or PROF_ERROR if there is no memory.
 */
int prof_syscall_find(const prof_elf_t *elf, prof_symbol_t *syms, uint32_t n);

/*
 * Adds a frame to each stack that ends in a system call: "sys_writev".
 * calls[i] is the number of the call of frame i plus 1, or 0.  PROF_OK, or
 * PROF_ERROR if there is no memory.
 */
int prof_syscall_frames(prof_profile_t *p, const uint32_t *calls);

/* the number of the system call, or PROF_NONE: no call, or an unknown one */
uint32_t prof_syscall_x86_64(const prof_syscall_code_t *code);
uint32_t prof_syscall_aarch64(const prof_syscall_code_t *code);

PROF_HIDDEN_END


#endif /* _PROF_SYSCALL_H_INCLUDED_ */
