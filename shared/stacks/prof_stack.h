
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The stack that the kernel or the C library gave to a thread.  Libraries may
 * run code on other stacks, for example those of coroutines.  The memory
 * between such a stack and the thread's stack may be unmapped.  So a walk that
 * begins on another stack ends at its first frame.
 */


#ifndef _PROF_STACK_H_INCLUDED_
#define _PROF_STACK_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    uintptr_t  low;
    uintptr_t  high;        /* 0: not known yet */
} prof_stack_t;


PROF_HIDDEN_BEGIN

/* finds the calling thread's stack; keeps errno.  Context: not in a signal */
void prof_stack_find(prof_stack_t *stack);

PROF_HIDDEN_END


/*
 * Returns the top for prof_walk().  If sp is on another stack, returns 0, which
 * means that the bounds of the stack are unknown.  Context: any.
 */

static inline uintptr_t
prof_stack_top(const prof_stack_t *stack, uintptr_t sp, uintptr_t top)
{
    return (sp >= stack->low && sp < stack->high) ? top : 0;
}


#endif /* _PROF_STACK_H_INCLUDED_ */
