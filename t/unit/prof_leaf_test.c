
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: unwind
 * runs: beside
 *
 * aarch64: an interrupted leaf without an unwind entry, whose return address
 * is in the link register; and a large frame, whose registers are saved at its
 * end.
 */


#include "unwind/prof_unwind.h"

#include "tap.h"

#include <signal.h>


#if (__aarch64__)


/* the second function has moved the stack pointer, and has made a call */

__asm__ (".text\n\t"
         ".global leaf\n"
         "leaf:\n\t"
         "brk #1\n\t"
         "ret\n\t"
         ".size leaf, . - leaf\n\t"
         ".global moved\n"
         "moved:\n\t"
         "stp x29, x30, [sp, #-32]!\n\t"
         "bl leaf\n\t"
         "brk #1\n\t"
         "ldp x29, x30, [sp], #32\n\t"
         "ret\n\t"
         ".size moved, . - moved\n\t"
         ".global large\n"
         "large:\n\t"
         ".cfi_startproc\n\t"
         "sub sp, sp, #1088\n\t"
         ".cfi_def_cfa_offset 1088\n\t"
         "str x29, [sp, #1040]\n\t"
         "str x30, [sp, #1048]\n\t"
         ".cfi_offset 29, -48\n\t"
         ".cfi_offset 30, -40\n\t"
         "mov x29, xzr\n\t"
         "mov x30, xzr\n\t"
         "brk #1\n\t"
         "ldr x29, [sp, #1040]\n\t"
         "ldr x30, [sp, #1048]\n\t"
         "add sp, sp, #1088\n\t"
         "ret\n\t"
         ".cfi_endproc\n\t"
         ".size large, . - large\n\t");

extern void leaf(void);
extern void moved(void);
extern void large(void);


static void trap(int signo, siginfo_t *si, void *ctx);
static void call(void (*fn)(void));


static prof_unwind_t      *unwind;
static prof_walk_cache_t   cache;
static prof_stats_t        stats;
static uintptr_t           top;
static uintptr_t           pcs[PROF_MAX_DEPTH];
static uint32_t            n;
static uint32_t            end;


int
main(void)
{
    size_t            len;
    struct sigaction  sa;

    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = trap;
    sa.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &sa, NULL);

    unwind = prof_unwind_create();
    top = (uintptr_t) __builtin_frame_address(0) + 16;

    call(leaf);

    is_int(end, 0, "leaf: the stack is complete");
    is_int(stats.scanned, 1, "leaf: one frame is counted as scanned");
    is_int(pcs[0], (uintptr_t) leaf,
           "leaf: the stack begins with the instruction");
    ok(n >= 2 && prof_unwind_function(unwind, pcs[1] - 1, &len)
                 == (uintptr_t) call,
       "leaf: the stack has the caller");

    memset(&stats, 0, sizeof(stats));

    call(moved);

    is_int(end, PROF_FRAME_NO_UNWIND, "after a call: the end has its reason");
    is_int(n, 1, "after a call: the caller is not guessed");

    call(large);

    is_int(end, 0, "a large frame: the stack is complete");
    ok(n >= 2 && prof_unwind_function(unwind, pcs[1] - 1, &len)
                 == (uintptr_t) call,
       "a large frame: the stack has the caller");

    prof_unwind_release(unwind);

    return done_testing();
}


static void
trap(int signo, siginfo_t *si, void *ctx)
{
    ucontext_t  *uc;

    uc = ctx;

    n = prof_walk(unwind, &cache, uc, top, pcs, PROF_MAX_DEPTH, &stats, &end);

    uc->uc_mcontext.pc += 4;
}


static __attribute__((noinline)) void
call(void (*fn)(void))
{
    fn();

    __asm__ volatile ("");
}


#else


int
main(void)
{
    return skip_all("for aarch64");
}


#endif
