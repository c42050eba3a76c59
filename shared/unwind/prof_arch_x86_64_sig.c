
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * x86-64: recognizes calls, and system calls.
 *
 * Context: signal handler.
 */


#include "unwind/prof_arch.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>


#if (__x86_64__)


/* recognizes "call rel32", and "call r/m64" in each of its lengths */

int
prof_arch_called(uintptr_t pc, uintptr_t *target)
{
    int             len, mod, n, rm;
    int32_t         rel;
    const uint8_t  *p;

    *target = 0;

    if (!prof_arch_readable(pc - 8)) {
        return 0;
    }

    p = (const uint8_t *) pc;

    if (p[-5] == 0xe8) {
        memcpy(&rel, p - 4, 4);
        *target = pc + (intptr_t) rel;
        return 1;
    }

    for (len = 2; len <= 7; len++) {

        if (p[-len] != 0xff || (p[1 - len] & 0x38) != 0x10) {
            continue;
        }

        mod = p[1 - len] >> 6;
        rm = p[1 - len] & 7;

        /* opcode, ModRM, SIB, displacement */

        if (mod == 3) {
            n = 2;

        } else if (mod == 0 && rm == 5) {
            n = 6;

        } else if (mod == 0 && rm == 4) {
            n = (len > 2 && (p[2 - len] & 7) == 5) ? 7 : 3;

        } else {
            n = 2 + (rm == 4) + (mod == 1) + 4 * (mod == 2);
        }

        if (n == len) {
            return 1;
        }
    }

    return 0;
}


/* returns 0 if the system call cannot read the word; keeps errno */

int
prof_arch_readable(uintptr_t addr)
{
    long           rc;
    register long  size  __asm__("r10");

    /*
     * The kernel copies the new mask before it checks "how", which is invalid.
     * So the call changes nothing, and reports faults.
     */

    size = 8;

    __asm__ __volatile__("syscall"
                         : "=a" (rc)
                         : "0" ((long) SYS_rt_sigprocmask), "D" (-1L),
                           "S" (addr), "d" (0L), "r" (size)
                         : "rcx", "r11", "memory");

    return rc == -EINVAL;
}


/*
 * Recognizes "syscall" at the address, or before it.  The page before the
 * first instruction of a page may not be mapped, and is not read.
 */

int
prof_arch_waited(const ucontext_t *uc)
{
    const uint8_t  *p;

    p = (const uint8_t *) uc->uc_mcontext.gregs[REG_RIP];

    if (p[0] == 0x0f && p[1] == 0x05) {
        return 1;
    }

    return ((uintptr_t) p & 0xfff) >= 2
           && uc->uc_mcontext.gregs[REG_RAX] == -EINTR
           && p[-2] == 0x0f && p[-1] == 0x05;
}


#endif
