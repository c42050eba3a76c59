
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A walk in progress.
 *
 * Context: signal handler.
 */


#ifndef _PROF_WALK_H_INCLUDED_
#define _PROF_WALK_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "unwind/prof_arch.h"
#include "unwind/prof_unwind.h"


/*
 * A stack pointer that is farther from top, in bytes, is not on the same
 * stack.  The default limit for a stack is 8 MiB.
 */

#define PROF_WALK_STACK_MAX  (256 * 1024 * 1024)


/*
 * The limit for all scans of one walk, in units of a word (some 10 ns).
 * Reading code costs several times as much, for a system call.
 */

#define PROF_WALK_LOOKS      4096
#define PROF_WALK_LOOK_CODE  8


/*
 * The stack of an interpreter.  A frame that the walk has not reached yet runs
 * its remaining functions.
 */

typedef struct {
    uintptr_t             state;    /* identifies the stack */
    uintptr_t             base;     /* the next function on it */
    uintptr_t             frame;    /* the stack pointer of the frame */
} prof_walk_chain_t;


/* a step takes some ns; typical functions need 10 to 100 steps */
#define PROF_WALK_NAMES      4096

/* coroutines that resume each other; deeper ones have no script frames */

#define PROF_WALK_CHAINS     8


/* pages that this walk has found readable; a power of two */

#define PROF_WALK_PAGES      64
#define PROF_WALK_PAGE       4096


/*
 * A stack that does not fit keeps both ends: the innermost half of the frames,
 * and this number of the outermost ones.  Frames that are left out are counted
 * up to the limit, which bounds the time of the handler.
 */

#define PROF_WALK_OUTER      64
#define PROF_WALK_ELIDED     16384


struct prof_walk_s {
    const prof_unwind_t  *u;
    const ucontext_t     *uc;       /* of frame "base"; NULL: unknown */
    uint32_t              base;
    uintptr_t             top;
    uintptr_t            *pcs;
    uint32_t              n;
    uint32_t              max;
    uint32_t              elided;   /* frames left out, or 0 */
    prof_stats_t         *st;
    uint32_t              looks;    /* the remaining units for scans */
    uint32_t              nchains;
    prof_regs_t           f;        /* the frame after pcs[n - 1] */
    uint64_t              row;      /* its row, if the row is a rare one */
    prof_walk_chain_t     chains[PROF_WALK_CHAINS];

    /* the engine's; set with the first chain */

    uint32_t              names;    /* the remaining steps for names */
    uintptr_t             pages[PROF_WALK_PAGES];
};


typedef enum {
    PROF_WALK_NEXT = 0,     /* f is a frame that is not added yet */
    PROF_WALK_CFA,          /* f is not added yet, its CFA is known */
    PROF_WALK_COMPLETE,
    PROF_WALK_TRUNCATED,
    PROF_WALK_NO_UNWIND,
    PROF_WALK_BAD_STACK,
    PROF_WALK_OTHER         /* the frame is not the engine's */
} prof_walk_e;


PROF_HIDDEN_BEGIN

/* returns PROF_WALK_NEXT, or PROF_WALK_TRUNCATED if pcs is full */
prof_walk_e prof_walk_add(prof_walk_t *w);

/*
 * Makes room for n more addresses in pcs, by leaving out frames of the middle.
 * Returns PROF_WALK_NEXT, or PROF_WALK_TRUNCATED.
 */
prof_walk_e prof_walk_room(prof_walk_t *w, uint32_t n);

/*
 * Goes to the caller of a frame that cannot be unwound, by scanning the stack
 * for a return address.  "known" means that an unwind entry covers the frame's
 * code, but needs a lost register.
 */
prof_walk_e prof_walk_scan(prof_walk_t *w, int known);

/*
 * Returns in *value the register PROF_ARCH_DWARF_AUX of the frame w->f.  Walks
 * again from the last context to find it.  Returns 0 if the register is lost.
 */
int prof_walk_aux(prof_walk_t *w, uintptr_t *value);

PROF_HIDDEN_END


#endif /* _PROF_WALK_H_INCLUDED_ */
