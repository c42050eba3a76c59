
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The common part of the tests of the walk and of the scan: a signal handler
 * that walks the stack that it interrupted, and functions to interrupt.
 */


#ifndef _PROF_WALK_FIXTURE_H_INCLUDED_
#define _PROF_WALK_FIXTURE_H_INCLUDED_


#include "prof_unwind_fixture.h"

#include "tap.h"

#include <signal.h>


static prof_unwind_t      *unwind;
static prof_walk_cache_t   cache;
static prof_stats_t        stats;
static uintptr_t           walk_top;
static uintptr_t           pcs[PROF_MAX_DEPTH];
static uint32_t            walk_max;
static uint32_t            walk_n;
static uint32_t            walk_end;
static ucontext_t          context;
static void *volatile      frame_address;


static void walk_reset(uintptr_t top);
static void walk_handler(int signo, siginfo_t *si, void *ctx);
static void install(int signo, void (*handler)(int, siginfo_t *, void *),
    int flags);
static void callback(void);
static void call_fp(fixture_pt fixture, fixture_callback_pt fn);
static int within(uintptr_t pc, void *function);


static void
walk_reset(uintptr_t top)
{
    memset(&stats, 0, sizeof(stats));
    memset(pcs, 0, sizeof(pcs));

    walk_top = top;
    walk_max = PROF_MAX_DEPTH;
    walk_n = 0;
    walk_end = UINT32_MAX;
}


static void
walk_handler(int signo, siginfo_t *si, void *ctx)
{
    context = *(ucontext_t *) ctx;

    walk_n = prof_walk(unwind, &cache, ctx, walk_top, pcs, walk_max, &stats,
                       &walk_end);
}


static void
install(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction  sa;

    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = handler;
    sa.sa_flags = SA_SIGINFO|flags;

    if (sigaction(signo, &sa, NULL) == -1) {
        perror("sigaction");
        exit(1);
    }
}


static __attribute__((noinline)) void
callback(void)
{
    raise(SIGUSR1);

    __asm__ volatile("");
}


/* a function that asks for its frame address uses rbp as the frame pointer */

static __attribute__((noinline)) void
call_fp(fixture_pt fixture, fixture_callback_pt fn)
{
    frame_address = __builtin_frame_address(0);

    fixture(fn);

    __asm__ volatile("");
}


static int
within(uintptr_t pc, void *function)
{
    size_t  len;

    return prof_unwind_function(unwind, pc - 1, &len) == (uintptr_t) function;
}


#endif /* _PROF_WALK_FIXTURE_H_INCLUDED_ */
