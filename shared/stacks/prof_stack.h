
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The stack that a thread was started with.  Libraries may run code on stacks
 * of their own, as coroutines do, and memory between these and the thread's
 * stack need not be mapped.  A walk that begins there ends at once.
 */


#ifndef _PROF_STACK_H_INCLUDED_
#define _PROF_STACK_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    uintptr_t  low;
    uintptr_t  high;        /* 0: not known yet */
} prof_stack_t;


PROF_HIDDEN_BEGIN

/* of the calling thread.  Context: not in a signal; errno is left as it is */
void prof_stack_find(prof_stack_t *stack);

PROF_HIDDEN_END


/*
 * The top for prof_walk(): 0, if sp is on another stack, tells that nothing of
 * it is known.  Context: any.
 */

static inline uintptr_t
prof_stack_top(const prof_stack_t *stack, uintptr_t sp, uintptr_t top)
{
    return (sp >= stack->low && sp < stack->high) ? top : 0;
}


#endif /* _PROF_STACK_H_INCLUDED_ */
