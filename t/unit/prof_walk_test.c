
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: unwind
 * runs: beside
 *
 * Walks from signal handlers through frames with each way to find the CFA, to
 * every end.
 */


#include "base/prof_base.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


#if (__x86_64__)


#include "prof_walk_fixture.h"


static void test_ways(void);
static void test_way(const char *name, fixture_pt fixture, char *ret);
static void test_traps(void);
static void test_end(void);
static void test_noreturn(void);
static void test_top(void);
static void test_depth(void);
static void test_context(void);
static void test_signal_frame(void);
static void test_other_stack(void);
static void test_child(void);
static void test_cache(void);
static void nested_handler(int signo, siginfo_t *si, void *ctx);
static void nested_handler_top(int signo, siginfo_t *si, void *ctx);
static void callback_jump(void);
static void callback_signal(void);
static int recurse(int n);
static int recurse_outer(int n);


static uintptr_t   nested_top;
static sigjmp_buf  jump;


int
main(void)
{
    unwind = prof_unwind_create();

    if (!ok(unwind != NULL, "snapshot")) {
        return done_testing();
    }

    install(SIGUSR1, walk_handler, 0);
    install(SIGTRAP, walk_handler, 0);

    test_ways();
    test_traps();
    test_end();
    test_noreturn();
    test_top();
    test_depth();
    test_context();
    test_signal_frame();
    test_other_stack();
    test_child();
    test_cache();

    prof_unwind_release(unwind);

    return done_testing();
}


static void
test_ways(void)
{
    test_way("no frame pointer", fixture_nofp, fixture_nofp_ret);
    test_way("realigned stack", fixture_realign, fixture_realign_ret);
    test_way("CFA behind a pointer", fixture_deref, fixture_deref_ret);
    test_way("CFA in rbx", fixture_rbx, fixture_rbx_ret);
}


static __attribute__((noinline)) void
test_way(const char *name, fixture_pt fixture, char *ret)
{
    uint32_t  i;

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(fixture, callback);

    is_int(walk_end, 0, "%s: the stack is complete", name);

    if (!ok(walk_n >= 3, "%s: the stack has three frames", name)) {
        return;
    }

    ok(within(pcs[walk_n - 1], fixture_call),
       "%s: the stack has the caller", name);
    is_int(pcs[walk_n - 2], (uintptr_t) ret,
           "%s: the stack has the frame", name);
    ok(within(pcs[walk_n - 3], callback),
       "%s: the stack has the callee", name);
    is_int(stats.scanned, 0, "%s: no frame is scanned", name);

    /* and another walk through a frame with rbp as its base */

    walk_reset((uintptr_t) __builtin_frame_address(0));

    call_fp(fixture, callback);

    i = walk_n;

    is_int(walk_end, 0,
           "%s: the stack is complete above a frame pointer", name);
    ok(i >= 3 && within(pcs[i - 1], call_fp)
       && pcs[i - 2] == (uintptr_t) ret,
       "%s: the frame pointer is found", name);
}


static __attribute__((noinline)) void
test_traps(void)
{
    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(fixture_rax, NULL);

    is_int(walk_end, 0, "CFA in rax: the stack is complete");
    is_int(walk_n, 3, "CFA in rax: the stack has three frames");
    is_int(pcs[0], (uintptr_t) fixture_leaf_trap,
           "CFA in rax: the stack has the callee");
    is_int(pcs[1], (uintptr_t) fixture_rax_ret,
           "CFA in rax: the stack has the frame");
    ok(within(pcs[2], fixture_call), "CFA in rax: the stack has the caller");

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(fixture_r9, NULL);

    is_int(walk_end, 0, "CFA indexed by r9: the stack is complete");
    is_int(walk_n, 2, "CFA indexed by r9: the stack has two frames");
    is_int(pcs[0], (uintptr_t) fixture_r9_trap,
           "CFA indexed by r9: the stack has the frame");
    ok(within(pcs[1], fixture_call),
       "CFA indexed by r9: the stack has the caller");
}


static __attribute__((noinline)) void
test_end(void)
{
    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(fixture_end, callback);

    is_int(walk_end, 0, "outermost frame: the stack is complete");
    ok(walk_n && pcs[walk_n - 1] == (uintptr_t) fixture_end_ret,
       "outermost frame: the stack ends there");

    walk_reset((uintptr_t) __builtin_frame_address(0));

    if (sigsetjmp(jump, 1) == 0) {
        fixture_call(fixture_null, callback_jump);
    }

    is_int(walk_end, 0, "null return address: the stack is complete");
    ok(walk_n && within(pcs[walk_n - 1], callback_jump),
       "null return address: the stack ends there");
    is_int(stats.scanned, 0, "null return address: no frame is scanned");
}


static __attribute__((noinline)) void
test_noreturn(void)
{
    walk_reset((uintptr_t) __builtin_frame_address(0));

    if (sigsetjmp(jump, 1) == 0) {
        fixture_call(fixture_noreturn, callback_jump);
    }

    is_int(walk_end, 0, "last instruction is a call: complete");
    ok(walk_n > 2 && within(pcs[walk_n - 1], fixture_call)
       && pcs[walk_n - 2] == (uintptr_t) fixture_noreturn_ret,
       "last instruction is a call: frames");
}


static __attribute__((noinline)) void
test_top(void)
{
    uint32_t  i, n;

    /*
     * With top at the end of the stack, the walk continues above the test's
     * top.
     */

    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_nofp, callback);
    n = walk_n;

    walk_reset((uintptr_t) __libc_stack_end);
    fixture_call(fixture_nofp, callback);

    is_int(walk_end, 0, "top at the end of the stack: the stack is complete");
    ok(walk_n > n + 1,
       "top at the end of the stack: the stack has %u frames", walk_n);

    for (i = 0; i < walk_n && !within(pcs[i], test_top); i++) { /* void */ }

    is_int(i, n, "top at the end of the stack: the rest is the same");

    /* a frame is recorded if its CFA is not above top */

    call_fp(fixture_nofp, callback);
    walk_reset((uintptr_t) frame_address + 16);
    call_fp(fixture_nofp, callback);

    is_int(walk_end, 0, "top is a CFA: complete");
    ok(within(pcs[walk_n - 1], call_fp), "top is a CFA: recorded");

    walk_reset((uintptr_t) frame_address + 8);
    call_fp(fixture_nofp, callback);

    is_int(walk_end, 0, "top is below a CFA: complete");
    is_int(pcs[walk_n - 1], (uintptr_t) fixture_nofp_ret,
           "top is below a CFA: not recorded");

    /* interrupted above top: no frame is recorded */

    walk_reset((uintptr_t) &i - 4096);
    fixture_call(fixture_nofp, callback);

    is_int(walk_n, 0, "top below: the stack has no frames");
    is_int(walk_end, 0, "top below: the stack is complete");
}


static __attribute__((noinline)) void
test_depth(void)
{
    uint32_t   n, i;
    uintptr_t  outer;

    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_nofp, callback);
    n = walk_n;

    walk_reset((uintptr_t) __builtin_frame_address(0));
    walk_max = n;
    fixture_call(fixture_nofp, callback);

    is_int(walk_n, n, "room for all frames: the stack has all frames");
    is_int(walk_end, 0, "room for all frames: the stack is complete");

    walk_reset((uintptr_t) __builtin_frame_address(0));
    walk_max = n - 1;
    fixture_call(fixture_nofp, callback);

    is_int(walk_n, n - 1, "room for one less: the stack has one less");
    is_int(walk_end, PROF_FRAME_TRUNCATED,
           "room for one less: the stack is truncated");
    is_int(stats.truncated, 1, "room for one less: the end is counted");
    is_int(pcs[n - 1], 0,
           "room for one less: nothing is written behind the array");

    walk_reset((uintptr_t) __builtin_frame_address(0));
    walk_max = 0;
    fixture_call(fixture_nofp, callback);

    is_int(walk_n, 0, "no room: the stack has no frames");
    is_int(walk_end, PROF_FRAME_TRUNCATED, "no room: the stack is truncated");

    /* both ends of a deep stack */

    walk_reset((uintptr_t) __builtin_frame_address(0));
    (void) recurse_outer(10);
    outer = pcs[walk_n - 1];
    n = walk_n - 10;

    ok(outer != pcs[walk_n - 2], "the outermost frame is another function");

    for (i = 0; i < 3; i++) {
        walk_reset((uintptr_t) __builtin_frame_address(0));
        (void) recurse_outer(1000 + 2500 * i);

        is_int(walk_n, PROF_MAX_DEPTH / 2 + 1 + 64,
               "recursion of %d: the stack has both ends", 1000 + 2500 * i);
        is_int(walk_end, 0, "recursion: the stack is complete");
        is_int(pcs[PROF_MAX_DEPTH / 2], PROF_FRAME_ELIDED,
               "recursion: a frame stands for the middle");
        ok(pcs[walk_n - 1] == outer, "recursion: the outermost frame");
        is_int(stats.elided, 1000 + 2500 * i + n - (walk_n - 1),
               "recursion: the other frames are counted");
        is_int(stats.truncated, 0, "recursion: no stack is truncated");
    }

    walk_reset((uintptr_t) __builtin_frame_address(0));
    (void) recurse(30000);

    is_int(walk_end, PROF_FRAME_TRUNCATED,
           "recursion of 30000: the stack is truncated");
    ok(walk_n > PROF_MAX_DEPTH / 2 && walk_n <= PROF_MAX_DEPTH,
       "recursion of 30000: %u frames", walk_n);
}


/* a context with registers that no thread can have */

static __attribute__((noinline)) void
test_context(void)
{
    char        *ret[2];
    greg_t       sp, *reg;
    uint32_t     i, j;
    ucontext_t   uc;

    static const struct {
        const char  *name;
        int64_t      sp;        /* relative, or absolute if large or 0 */
        uint32_t     n;
        uint32_t     end;
    } bad[] = {
        { "null",          0,                  1, PROF_FRAME_BAD_STACK },
        { "small",         0x1008,             1, PROF_FRAME_BAD_STACK },
        { "kernel",        -4096,              1, PROF_FRAME_BAD_STACK },
        { "not canonical", (int64_t) 1 << 62,  1, PROF_FRAME_BAD_STACK },
        { "odd",           1,                  1, PROF_FRAME_BAD_STACK },
    };

    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_nofp, callback);

    reg = uc.uc_mcontext.gregs;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uc = context;
        sp = (bad[i].sp == 1) ? reg[REG_RSP] + 1 : bad[i].sp;
        reg[REG_RSP] = sp;

        memset(&stats, 0, sizeof(stats));

        walk_n = prof_walk(unwind, &cache, &uc, walk_top, pcs,
                           PROF_MAX_DEPTH, &stats, &walk_end);

        is_int(walk_n, bad[i].n,
               "stack pointer: %s: the stack has its frames", bad[i].name);
        is_int(walk_end, bad[i].end,
               "stack pointer: %s: the end has its reason", bad[i].name);
        is_int(stats.bad_stack, 1,
               "stack pointer: %s: the end is counted", bad[i].name);
    }

    /* at instructions whose frame has rbp as its base */

    walk_reset((uintptr_t) __builtin_frame_address(0));
    call_fp(fixture_nofp, callback);

    ret[0] = fixture_realign_ret;
    ret[1] = (char *) pcs[walk_n - 1];

    for (j = 0; j < 2 * sizeof(bad) / sizeof(bad[0]); j++) {
        i = j / 2;
        uc = context;
        reg[REG_RIP] = (greg_t) ret[j % 2];
        reg[REG_RBP] = (bad[i].sp == 1) ? reg[REG_RSP] + 1 : bad[i].sp;

        if (reg[REG_RBP] == 0) {

            /* 0 means a lost frame pointer, which leads to a scan */

            continue;
        }

        memset(&stats, 0, sizeof(stats));

        walk_n = prof_walk(unwind, &cache, &uc, walk_top, pcs,
                           PROF_MAX_DEPTH, &stats, &walk_end);

        is_int(walk_n, 1,
               "frame pointer: %s, %d: the stack has one frame", bad[i].name,
               (int) j % 2);
        is_int(walk_end, PROF_FRAME_BAD_STACK,
               "frame pointer: %s, %d: the end has its reason",
               bad[i].name, (int) j % 2);
    }
}


static __attribute__((noinline)) void
test_signal_frame(void)
{
    uint32_t    i, j;
    uintptr_t   trampoline;
    ucontext_t  uc, frame[2];

    install(SIGUSR2, nested_handler, 0);

    walk_reset((uintptr_t) __builtin_frame_address(0));

    raise(SIGUSR2);

    signal(SIGUSR2, SIG_DFL);

    is_int(walk_end, 0, "signal in a handler: the stack is complete");

    for (i = 0; i < walk_n && !within(pcs[i], nested_handler); i++) {
        /* void */
    }

    /* the trampoline, the interrupted system call, its callers */

    ok(walk_n > i + 3, "signal in a handler: the walk passes the handler");
    ok(within(pcs[walk_n - 1], raise),
       "signal in a handler: the walk finds the interrupted code");
    is_int(stats.scanned, 0, "signal in a handler: no frame is scanned");

    trampoline = pcs[i + 1];

    /* the signal frame contains the registers of the interrupted code */

    install(SIGUSR2, nested_handler, 0);

    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_rbx, callback_signal);

    is_int(walk_end, 0,
           "CFA in rbx above a signal frame: the stack is complete");
    ok(within(pcs[walk_n - 1], fixture_call)
       && pcs[walk_n - 2] == (uintptr_t) fixture_rbx_ret,
       "CFA in rbx above a signal frame: the stack has both frames");
    is_int(stats.scanned, 0,
           "CFA in rbx above a signal frame: no frame is scanned");

    /* top in the signal frame, and between it and the interrupted frame */

    install(SIGUSR2, nested_handler_top, 0);

    for (j = 0; j < 2; j++) {
        walk_reset(0);
        nested_top = j ? sizeof(ucontext_t) + 8 : 0;
        raise(SIGUSR2);

        is_int(walk_end, 0,
               "top in a signal frame, %d: the stack is complete", (int) j);
        ok(walk_n > 0 && within(pcs[walk_n - 1], nested_handler_top),
           "top in a signal frame, %d: the handler is the last", (int) j);
    }

    signal(SIGUSR2, SIG_DFL);

    /* a signal frame that leads downwards */

    uc = context;
    uc.uc_mcontext.gregs[REG_RIP] = (greg_t) trampoline;
    uc.uc_mcontext.gregs[REG_RSP] = (greg_t) frame;

    frame[0] = context;

    for (j = 0; j < 3; j++) {
        frame[0].uc_mcontext.gregs[REG_RSP] = (greg_t) frame - 64 + 65 * j;

        walk_reset((uintptr_t) (frame + 2));
        walk_n = prof_walk(unwind, &cache, &uc, walk_top, pcs, walk_max,
                           &stats, &walk_end);

        is_int(walk_n, 1,
               "signal frame leads downwards, %d: the stack has one frame",
               (int) j);
        is_int(walk_end, PROF_FRAME_BAD_STACK,
               "signal frame leads downwards, %d: the end has its reason",
               (int) j);
    }
}


/* the alternate stack of a handler is not the stack of top */

static __attribute__((noinline)) void
test_other_stack(void)
{
    stack_t  ss, old;

    memset(&ss, 0, sizeof(ss));
    ss.ss_size = 65536;
    ss.ss_sp = mmap(NULL, ss.ss_size, PROT_READ|PROT_WRITE,
                    MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    ok(sigaltstack(&ss, &old) == 0, "the test has an alternate stack");

    install(SIGUSR2, nested_handler, SA_ONSTACK);

    walk_reset((uintptr_t) __builtin_frame_address(0));

    raise(SIGUSR2);

    is_int(walk_end, PROF_FRAME_BAD_STACK,
           "alternate stack: the end has its reason");
    is_int(walk_n, 1, "alternate stack: the stack has one frame");

    /* the walk itself may run on such a stack */

    install(SIGUSR1, walk_handler, SA_ONSTACK);

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(fixture_nofp, callback);

    is_int(walk_end, 0,
           "handler on an alternate stack: the stack is complete");
    ok(within(pcs[walk_n - 1], fixture_call),
       "handler on an alternate stack: the stack has the caller");

    install(SIGUSR1, walk_handler, 0);
    signal(SIGUSR2, SIG_DFL);
    (void) sigaltstack(&old, NULL);

    munmap(ss.ss_sp, ss.ss_size);
}


static __attribute__((noinline)) void
test_child(void)
{
    int    status;
    pid_t  pid;

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        fixture_call(fixture_rbx, callback);
        _exit(walk_end == 0 && within(pcs[walk_n - 1], fixture_call) ? 0 : 1);
    }

    status = -1;
    (void) waitpid(pid, &status, 0);

    is_int(status, 0, "a child walks with the parent's tables");
}


/* the results must be the same with and without entries in the cache */

static __attribute__((noinline)) void
test_cache(void)
{
    uint32_t   i, n;
    uintptr_t  cold[PROF_MAX_DEPTH];

    memset(&cache, 0, sizeof(cache));

    walk_reset((uintptr_t) __libc_stack_end);
    fixture_call(fixture_realign, callback);

    n = walk_n;
    memcpy(cold, pcs, sizeof(cold));

    /* fills the cache with entries of other addresses */

    for (i = 0; i < PROF_WALK_CACHE; i++) {

        if (cache.bucket[i].pc == 0) {
            cache.bucket[i].pc = 0x1000 + i;
            cache.bucket[i].row = UINT64_MAX;
        }
    }

    walk_reset((uintptr_t) __libc_stack_end);
    fixture_call(fixture_realign, callback);

    is_int(walk_n, n, "warm cache: the stack has the same frames");

    /* except for the addresses in this function */

    for (i = 0; i < n && !within(cold[i], test_cache); i++) { /* void */ }

    is_mem(pcs, cold, i * sizeof(uintptr_t),
           "warm cache: the stack has the same addresses");
}


static void
nested_handler(int signo, siginfo_t *si, void *ctx)
{
    callback();

    __asm__ volatile("");
}


/* the CFA is in the ucontext_t of the signal frame */

static void
nested_handler_top(int signo, siginfo_t *si, void *ctx)
{
    walk_top = (uintptr_t) ctx + nested_top;

    callback();

    __asm__ volatile("");
}


static __attribute__((noinline)) void
callback_jump(void)
{
    raise(SIGUSR1);

    siglongjmp(jump, 1);
}


static __attribute__((noinline)) void
callback_signal(void)
{
    raise(SIGUSR2);

    __asm__ volatile("");
}


static __attribute__((noinline)) int
recurse(int n)
{
    volatile int  v;

    if (n == 0) {
        fixture_call(fixture_nofp, callback);
        return 0;
    }

    v = recurse(n - 1);

    return v + 1;
}


static __attribute__((noinline)) int
recurse_outer(int n)
{
    volatile int  v;

    v = recurse(n);

    return v + 1;
}


#else


#include "tap.h"


int
main(void)
{
    return skip_all("fixtures are for x86-64");
}


#endif
