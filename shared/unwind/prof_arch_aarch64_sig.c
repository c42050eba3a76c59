
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * aarch64: stacks are not scanned; recognizes system calls.
 *
 * Context: signal handler.
 */


#include "unwind/prof_arch.h"

#include <errno.h>


#if (__aarch64__)


int
prof_arch_called(uintptr_t pc, uintptr_t *target)
{
    *target = 0;

    return 0;
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
