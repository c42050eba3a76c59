
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes a stack: first the functions of the kernel, then those of the thread.
 */


#include "stacks/prof_take.h"
#include "unwind/prof_arch.h"


void
prof_take(prof_sample_t *sample, const prof_walker_t *w, const ucontext_t *uc,
    const prof_stack_t *stack, uintptr_t top)
{
    uint64_t     elided;
    prof_regs_t  regs;

    elided = w->stats->elided;

    prof_arch_regs(&regs, uc);

    if (stack) {
        top = prof_stack_top(stack, regs.sp, top);
    }

    sample->nkernel = w->kernel
                      ? prof_kernel_take(w->kernel, regs.pc, regs.sp,
                                         sample->pcs)
                      : 0;

    sample->nframes = sample->nkernel
                      + prof_walk(w->unwind, w->cache, uc, top,
                                  sample->pcs + sample->nkernel,
                                  PROF_MAX_DEPTH, w->stats, &sample->end);

    sample->elided = w->stats->elided - elided;
}
