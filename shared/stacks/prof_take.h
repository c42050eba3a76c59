
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes a stack into a sample, and folds a sample into a call tree.  All
 * handlers and the hooks of allocations take stacks in this way.
 */


#ifndef _PROF_TAKE_H_INCLUDED_
#define _PROF_TAKE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "stacks/prof_ring.h"
#include "stacks/prof_stack.h"
#include "stacks/prof_tree.h"
#include "unwind/prof_unwind.h"


/* spans that may be open at once; deeper spans count for the last one */
#define PROF_SPANS_MAX  16


/* the outer end of the stacks of a turn */

typedef struct {
    uintptr_t            top;       /* frames above it are not of the turn */
    uint32_t             nspans;
    uintptr_t            spans[PROF_SPANS_MAX];     /* names, outermost first */
} prof_outer_t;


/* tables and memory for walks of one thread, which may change between walks */

typedef struct {
    const prof_unwind_t  *unwind;
    prof_walk_cache_t    *cache;
    prof_stats_t         *stats;
    prof_kernel_ring_t   *kernel;   /* NULL: the kernel's stacks are not
                                       known */
} prof_walker_t;


PROF_HIDDEN_BEGIN

/*
 * Walks the stack of the context into the sample: sets its frames and "end".
 * The frames begin with those of the kernel.
 *
 * stack  the thread's stack: the bounds of other stacks are unknown; NULL:
 *        "top" is valid for the stack of the context
 * top    as for prof_walk()
 *
 * Context: signal handler (prof_take_sig.c).
 */
void prof_take(prof_sample_t *sample, const prof_walker_t *w,
    const ucontext_t *uc, const prof_stack_t *stack, uintptr_t top);

/*
 * Returns the node of the sample's stack below "node" (PROF_NONE: a root).  For
 * a stack without frames returns "node", or a root with the frame "empty".
 * Context: not in a signal; the tree's owner.
 */
uint32_t prof_fold(prof_tree_t *t, uint32_t node, const prof_sample_t *sample,
    uintptr_t empty, prof_stats_t *st);

/* returns the node of the spans, or PROF_NONE without spans */
uint32_t prof_fold_outer(prof_tree_t *t, const prof_outer_t *outer,
    prof_stats_t *st);

PROF_HIDDEN_END


#endif /* _PROF_TAKE_H_INCLUDED_ */
