
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * aarch64: stacks are not scanned; reads memory that may be gone, recognizes
 * system calls.
 *
 * Context: signal handler.
 */


#include "unwind/prof_arch.h"

#include <errno.h>
#include <sys/syscall.h>


#if (__aarch64__)


int
prof_arch_called(uintptr_t pc, uintptr_t *target)
{
    *target = 0;

    return 0;
}


int
prof_arch_readable(uintptr_t addr)
{
    register long  number  __asm__("x8");
    register long  rc      __asm__("x0");
    register long  set     __asm__("x1");
    register long  old     __asm__("x2");
    register long  size    __asm__("x3");

    /*
     * The kernel copies the new mask before it checks "how", which is invalid.
     * So the call changes nothing, and reports faults.
     */

    number = SYS_rt_sigprocmask;
    rc = -1;
    set = (long) addr;
    old = 0;
    size = 8;

    __asm__ __volatile__("svc #0"
                         : "+r" (rc)
                         : "r" (number), "r" (set), "r" (old), "r" (size)
                         : "memory");

    return rc == -EINVAL;
}


/* recognizes "svc #0" */

int
prof_arch_waited(const ucontext_t *uc)
{
    const uint32_t  *p;

    p = (const uint32_t *) (uintptr_t) uc->uc_mcontext.pc;

    if (*p == 0xd4000001) {
        return 1;
    }

    return ((uintptr_t) p & 0xfff) != 0
           && uc->uc_mcontext.regs[0] == (uint64_t) -EINTR
           && p[-1] == 0xd4000001;
}


#endif
