
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * System calls.  A thread that is interrupted in a system call has an address
 * directly after the instruction that entered the kernel.  If the kernel is
 * going to repeat the call (SA_RESTART), the address is that of the
 * instruction itself.  The code before the instruction has the number of the
 * call, also in stripped files.
 *
 * Only a number that is certain is used: a constant, and no jump leads between
 * it and the instruction.  glibc since 2.41 has common code for calls that can
 * be cancelled, which gets the number as an argument.  There the callers on the
 * stack are decoded in the same way.  The number of the function syscall() of
 * the C library is an argument of other objects, so its calls stay without a
 * name.
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
    size_t          at;         /* interrupted, or return address */
    uint32_t        returns;
} prof_syscall_code_t;


PROF_HIDDEN_BEGIN

/*
 * Finds the system calls at interrupted addresses.  In the C library it also
 * finds the arguments of the calls to which the other addresses return.
 * Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_syscall_find(const prof_elf_t *elf, const prof_profile_object_t *o,
    prof_symbol_t *syms, uint32_t n);

/*
 * Adds a frame such as "sys_writev" to each stack that ends in a system call.
 * calls[i] is what prof_syscall_find() has found for frame i.  Returns
 * PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_syscall_frames(prof_profile_t *p, const prof_call_t *calls);

/* decode a function: set the known fields of "call", which are 0 before */
void prof_syscall_x86_64(const prof_syscall_code_t *code, prof_call_t *call);
void prof_syscall_aarch64(const prof_syscall_code_t *code, prof_call_t *call);

PROF_HIDDEN_END


#endif /* _PROF_SYSCALL_H_INCLUDED_ */
