
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * aarch64: stacks are not scanned.
 *
 * Context: signal handler.
 */


#include "unwind/prof_arch.h"


#if (__aarch64__)


int
prof_arch_called(uintptr_t pc, uintptr_t *target)
{
    *target = 0;

    return 0;
}


#endif
