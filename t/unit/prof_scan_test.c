
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: unwind
 * runs: beside
 *
 * Scans of the stack for the callers of code without unwind information.
 */


#include "prof_walk_fixture.h"

#include <setjmp.h>
#include <sys/mman.h>


static void test_lost(void);
static void test_scan(void);
static void test_scan_over(const char *name, int nofp, uintptr_t address,
    int first, int last);
static void test_jit(void);
static void test_null(void);
static void test_unloaded(void);
static void segv_handler(int signo, siginfo_t *si, void *ctx);
static void callback_fp(void);
static void callback_low(void);
static void test_budget(void);
static void callback_fake(void);
static void callback_deep(void);
static void callback_locals(void *frame);
static void call_null(void (*fn)(void));


static uintptr_t   fake;
static int         fake_first, fake_last;
static int         deep;
static sigjmp_buf  jump;


/* a copy of fixture_nocfi at an address without an object */

#define TEST_CODE_LEN  64

#define TEST_DEEP      60


int
main(void)
{
#if !(__x86_64__)
    return skip_all("fixtures are for x86-64");
#endif

    if (fixture_valgrind()) {
        return skip_all("scans read words that were not written");
    }

    unwind = prof_unwind_create();

    if (!ok(unwind != NULL, "snapshot")) {
        return done_testing();
    }

    install(SIGUSR1, walk_handler, 0);

    test_lost();
    test_scan();
    test_jit();
    test_null();
    test_unloaded();
    test_budget();

    prof_unwind_release(unwind);

    return done_testing();
}


static __attribute__((noinline)) void
test_lost(void)
{
    uint32_t  i;

    walk_reset((uintptr_t) __builtin_frame_address(0));

    call_fp(fixture_far, callback);

    for (i = 0; i < walk_n && !within(pcs[i], callback); i++) { /* void */ }

    ok(walk_n >= i + 3 && pcs[i + 1] == (uintptr_t) fixture_far_ret,
       "rbp is lost: frame");
    ok(walk_n >= i + 3 && within(pcs[i + 2], call_fp),
       "rbp is lost: caller that needs it");
    ok(stats.scanned > 0 || walk_n == i + 3,
       "rbp is lost: scanned for the caller's caller");

    /*
     * The frame that needs rbp is above top, and no return address is below
     * top.
     */

    walk_reset((uintptr_t) frame_address + 8);

    call_fp(fixture_far, callback);

    is_int(walk_end, 0, "rbp is lost, top: complete");
    is_int(pcs[walk_n - 1], (uintptr_t) fixture_far_ret,
           "rbp is lost, top: frame");
}


static __attribute__((noinline)) void
test_scan(void)
{
    int       i;
    uint32_t  n;

    static const struct {
        const char  *name;
        fixture_pt   fixture;
        char        *ret;
    } kind[] = {
        { "no entry, with a frame pointer",
          fixture_nocfi, fixture_nocfi_ret },
        { "no entry, no frame pointer",
          fixture_nocfi_nofp, fixture_nocfi_nofp_ret }
    };

    for (i = 0; i < 2; i++) {
        walk_reset((uintptr_t) __builtin_frame_address(0));

        call_fp(kind[i].fixture, callback_fake);

        for (n = 0; n < walk_n && !within(pcs[n], callback_fake); n++) {
            /* void */
        }

        ok(stats.scanned > 0,
           "%s: the frame is found by a scan", kind[i].name);
        ok(walk_n >= n + 3 && pcs[n + 1] == (uintptr_t) kind[i].ret,
           "%s: the stack has the frame", kind[i].name);
        ok(walk_n >= n + 3 && within(pcs[n + 2], call_fp),
           "%s: the stack has the caller", kind[i].name);
    }

    /* only the first fixture stores the place of its caller's frame */

    walk_reset((uintptr_t) __builtin_frame_address(0));

    call_fp(fixture_nocfi, callback_fake);

    is_int(walk_end, 0, "no entry: the stack is complete");
    is_int(stats.scanned, 1, "no entry: one frame is found by a scan");
    ok(within(pcs[walk_n - 1], call_fp), "no entry: the stack ends at top");

    /* the frame holds addresses behind direct calls of other functions */

    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_nofp, callback);

    for (n = 0; !within(pcs[n], callback); n++) { /* void */ }

    test_scan_over("calls that are over", 1, pcs[n], 0, 2);

    /* and the address of a call whose caller is found by the frame pointer */

    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_nofp, callback_fp);

    for (n = 0; !within(pcs[n], callback_fp); n++) { /* void */ }

    test_scan_over("call with a frame pointer", 0, pcs[n], 0, 7);

    /* and the address of an indirect call, from which unwinding fails */

    test_scan_over("indirect call", 0, (uintptr_t) fixture_noreturn_ret, 0, 0);

    /* a direct call, whose target jumped into the code */

    fake = 0;

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(fixture_jump, callback_fake);

    is_int(walk_end, 0, "jump: the stack is complete");
    ok(walk_n >= 4 && within(pcs[walk_n - 1], fixture_call)
       && pcs[walk_n - 2] == (uintptr_t) fixture_jump_ret
       && pcs[walk_n - 3] == (uintptr_t) fixture_jump_code_ret,
       "jump: the stack has all frames");
}


static __attribute__((noinline)) void
test_scan_over(const char *name, int nofp, uintptr_t address, int first,
    int last)
{
    char      *ret;
    uint32_t   n;

    fake = address;
    fake_first = first;
    fake_last = last;

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(nofp ? fixture_nocfi_nofp : fixture_nocfi, callback_fake);

    ret = nofp ? fixture_nocfi_nofp_ret : fixture_nocfi_ret;

    for (n = 0; n < walk_n && pcs[n] != (uintptr_t) ret; n++) { /* void */ }

    ok(n + 1 < walk_n && within(pcs[n + 1], fixture_call),
       "%s: the scan passes the word", name);
}


static __attribute__((noinline)) void
test_jit(void)
{
    char    *code;
    size_t   offset;

    fake = 0;

    code = mmap(NULL, 4096, PROT_READ|PROT_WRITE|PROT_EXEC,
                MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    if (code == MAP_FAILED) {
        diag("no executable memory");
        return;
    }

    memcpy(code, (char *) fixture_nocfi, TEST_CODE_LEN);
    offset = fixture_nocfi_ret - (char *) fixture_nocfi;

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call((fixture_pt) code, callback_fake);

    is_int(walk_end, 0, "code made at run time: the stack is complete");
    is_int(stats.scanned, 1, "code made at run time: scanned");
    ok(walk_n >= 3 && within(pcs[walk_n - 1], fixture_call)
       && pcs[walk_n - 2] == (uintptr_t) code + offset
       && within(pcs[walk_n - 3], callback_fake),
       "code made at run time: the stack has all frames");

    /* the walk may only read a part of its frame */

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call((fixture_pt) code, callback_low);

    is_int(walk_end, PROF_FRAME_NO_UNWIND,
           "nothing to find: the end has its reason");
    is_int(stats.no_unwind, 1, "nothing to find: the end is counted");
    is_int(pcs[walk_n - 1], (uintptr_t) code + offset,
           "nothing to find: the stack has the frame");

    munmap(code, 4096);
}


static __attribute__((noinline)) void
test_null(void)
{
    install(SIGSEGV, segv_handler, SA_NODEFER);

    walk_reset((uintptr_t) __builtin_frame_address(0));

    if (sigsetjmp(jump, 1) == 0) {
        call_null(NULL);
    }

    is_int(walk_end, 0, "call of a null pointer: the stack is complete");
    is_int(walk_n, 1, "call of a null pointer: the stack has one frame");
    ok(within(pcs[0], call_null),
       "call of a null pointer: the frame is the caller");

    walk_reset((uintptr_t) __builtin_frame_address(0));

    if (sigsetjmp(jump, 1) == 0) {
        call_null((void (*)(void)) 0x123456);
    }

    is_int(walk_end, 0, "call of a wild pointer: the stack is complete");
    is_int(walk_n, 2, "call of a wild pointer: the stack has two frames");
    is_int(pcs[0], 0x123456,
           "call of a wild pointer: the stack has the address");
    ok(within(pcs[1], call_null),
       "call of a wild pointer: the stack has the caller");

    signal(SIGSEGV, SIG_DFL);
}


/*
 * A word of the stack looks like a return address in an unloaded object.  The
 * walk may not read the code of this object.
 */

static __attribute__((noinline)) void
test_unloaded(void)
{
    void                 *handle, *function;
    const char           *name;
    prof_unwind_t        *saved;
    const prof_object_t  *object;

    handle = fixture_load(&function, &name);

    if (function == NULL) {
        diag("no library to unload");
        return;
    }

    fake = (uintptr_t) function + 16;
    fake_first = 0;
    fake_last = 7;

    saved = unwind;
    unwind = prof_unwind_create();

    dlclose(handle);

    object = prof_unwind_object(unwind, fake);

    ok(object && strstr(object->path, name),
       "unloaded: the object is in the snapshot");
    ok(dlopen(name, RTLD_NOW|RTLD_NOLOAD) == NULL,
       "unloaded: the object is not in memory");

    walk_reset((uintptr_t) __builtin_frame_address(0));

    fixture_call(fixture_nocfi, callback_fake);

    is_int(walk_end, 0, "unloaded: the stack is complete");
    ok(walk_n >= 3 && within(pcs[walk_n - 1], fixture_call)
       && pcs[walk_n - 2] == (uintptr_t) fixture_nocfi_ret,
       "unloaded: the stack has the frame of the object");

    prof_unwind_release(unwind);
    unwind = saved;
}


/*
 * Scans of many frames with words that are almost return addresses: the scan
 * must read the code for each of them.
 */

static __attribute__((noinline)) void
test_budget(void)
{
    fake = (uintptr_t) callback_deep + 1;
    fake_first = 8;
    fake_last = 7;

    deep = TEST_DEEP;
    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_nocfi, callback_deep);

    is_int(walk_end, 0, "many scans: the stack is complete");
    is_int(stats.scanned, TEST_DEEP + 1,
           "many scans: each frame is found by a scan");

    fake_first = 0;
    deep = TEST_DEEP;
    walk_reset((uintptr_t) __builtin_frame_address(0));
    fixture_call(fixture_nocfi, callback_deep);

    is_int(walk_end, PROF_FRAME_NO_UNWIND,
           "many costly scans: the end has its reason");
    ok(stats.scanned > 10 && stats.scanned < TEST_DEEP,
       "many costly scans: %lu frames are found",
       (unsigned long) stats.scanned);
}


static void
segv_handler(int signo, siginfo_t *si, void *ctx)
{
    walk_handler(signo, si, ctx);
    siglongjmp(jump, 1);
}


static __attribute__((noinline)) void
callback_fp(void)
{
    frame_address = __builtin_frame_address(0);

    raise(SIGUSR1);

    __asm__ volatile("");
}


/* lets the walk see 32 bytes of its caller's frame */

static __attribute__((noinline)) void
callback_low(void)
{
    walk_top = (uintptr_t) __builtin_frame_address(0) + 16 + 32;

    callback_locals(__builtin_frame_address(0));
    raise(SIGUSR1);

    __asm__ volatile("");
}


static __attribute__((noinline)) void
callback_fake(void)
{
    callback_locals(__builtin_frame_address(0));
    raise(SIGUSR1);

    __asm__ volatile("");
}


static __attribute__((noinline)) void
callback_deep(void)
{
    callback_locals(__builtin_frame_address(0));

    if (deep-- > 0) {
        fixture_call(fixture_nocfi, callback_deep);

    } else {
        raise(SIGUSR1);
    }

    __asm__ volatile("");
}


/*
 * Overwrites the eight or more words of locals in the frame of a callback's
 * caller.  Otherwise the result of a scan would depend on earlier code: return
 * addresses of finished calls cannot always be recognized.
 */

static void
callback_locals(void *frame)
{
    int                  i;
    volatile uintptr_t  *local;

    /* above the frame pointer and the return address */

    local = (uintptr_t *) frame + 2;

    for (i = 0; i < 8; i++) {
        local[i] = (i >= fake_first && i <= fake_last) ? fake : 0;
    }
}


static __attribute__((noinline)) void
call_null(void (*fn)(void))
{
    fn();

    __asm__ volatile("");
}
