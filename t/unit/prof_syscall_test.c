
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: names
 * runs: beside
 *
 * System calls: from bytes of code, and in profiles of the C library's code.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "prof_fixture.h"
#include "names/prof_symbolize.h"
#include "names/prof_syscall.h"
#include "profile/prof_merge.h"
#include "unwind/prof_unwind.h"

#include <asm/unistd.h>
#include <unistd.h>


/* bytes as a string literal, and the offset of the interrupted instruction */

#define is_x86(bytes, at, number, text)                                       \
    check(prof_syscall_x86_64, bytes, sizeof(bytes) - 1, at, number, text)
#define is_arm(bytes, at, number, text)                                       \
    check(prof_syscall_aarch64, bytes, sizeof(bytes) - 1, at, number, text)


#define X86_CALL   "\x0f\x05"
#define X86_RET    "\xc3"
#define X86_20     "\xb8\x14\x00\x00\x00"           /* mov $20,%eax */
#define ARM_66     "\x48\x08\x80\xd2"               /* mov x8, #66 */
#define ARM_CALL   "\x01\x00\x00\xd4"               /* svc #0 */
#define ARM_RET    "\xc0\x03\x5f\xd6"


typedef void (*decode_pt)(const prof_syscall_code_t *code, prof_call_t *call);


static void check(decode_pt decode, const char *bytes, size_t len, size_t at,
    uint32_t number, const char *text);
static void test_x86_64(void);
static void test_x86_64_unknown(void);
static void test_x86_64_cut(void);
static void test_x86_64_arguments(void);
static void test_chain(void);
static void test_aarch64(void);
static void test_profile(void);
static void test_others(void);
static void test_kept(void);
static prof_profile_t *interrupted(uintptr_t function, uint32_t type);
static uintptr_t find_call(uintptr_t function);
static const char *leaf(const prof_profile_t *p, uint32_t entry);


int
main(void)
{
    test_x86_64();
    test_x86_64_unknown();
    test_x86_64_cut();
    test_x86_64_arguments();
    test_aarch64();
    test_profile();
    test_others();
    test_kept();
    test_chain();

    prof_profile_forget();

    return done_testing();
}


static void
check(decode_pt decode, const char *bytes, size_t len, size_t at,
    uint32_t number, const char *text)
{
    uint8_t              *copy;
    prof_call_t           call;
    prof_syscall_code_t   code;

    /* a sanitizer sees reads past the end */

    copy = malloc(len + 1);
    if (copy == NULL) {
        abort();
    }

    memcpy(copy, bytes, len);

    code.bytes = copy;
    code.len = len;
    code.at = at;
    code.returns = 0;

    memset(&call, 0, sizeof(prof_call_t));
    decode(&code, &call);

    is_int(call.number, number == PROF_NONE ? 0 : number + 1, "%s", text);

    free(copy);
}


static void
test_x86_64(void)
{
    is_x86(X86_20 X86_CALL X86_RET, 7, 20, "a constant is the number");
    is_x86(X86_20 X86_CALL X86_RET, 5, 20, "a repeated call has its number");
    is_x86("\x31\xc0" X86_CALL X86_RET, 4, 0, "zero is a number");
    is_x86("\x48\xc7\xc0\x0f\x00\x00\x00" X86_CALL, 9, 15,
           "a constant in %rax is the number");
    is_x86("\xf3\x0f\x1e\xfa\x49\x89\xca" X86_20 X86_CALL, 14, 20,
           "other instructions may precede the number");
    is_x86(X86_20 "\x48\x8b\x54\x24\x10\x8b\x7c\x24\x08\x45\x31\xc0" X86_CALL,
           19, 20, "arguments may follow the number");
    is_x86("\x31\xc0" X86_20 X86_CALL, 9, 20,
           "the last constant is the number");

    /* write() of glibc: one call with, and one without cancellation */

    is_x86("\x80\x3d\x00\x00\x00\x00\x00\x74\x08" X86_20 X86_CALL X86_RET
           "\xe8\x00\x00\x00\x00\x41\x89\xc0" X86_20 X86_CALL X86_RET,
           16, 20, "the first of two calls has its number");
    is_x86("\x80\x3d\x00\x00\x00\x00\x00\x74\x08" X86_20 X86_CALL X86_RET
           "\xe8\x00\x00\x00\x00\x41\x89\xc0" X86_20 X86_CALL X86_RET,
           32, 20, "the second of two calls has its number");
}


static void
test_x86_64_unknown(void)
{
    is_x86(X86_20 X86_CALL X86_RET, 8, PROF_NONE,
           "an address behind the next instruction is in no call");
    is_x86(X86_20 "\x90\x90" X86_RET, 7, PROF_NONE,
           "code without a call has no number");
    is_x86("\x48\x89\xf8" X86_CALL X86_RET, 5, PROF_NONE,
           "the call in syscall() has no number");
    is_x86("\x41\xb8\x14\x00\x00\x00" X86_CALL, 8, PROF_NONE,
           "a constant in %r8d is no number");
    is_x86("\x8b\xb8\x14\x00\x00\x00" X86_CALL, 8, PROF_NONE,
           "bytes of another instruction are no number");
    is_x86(X86_20 "\xe8\x00\x00\x00\x00" X86_CALL, 12, PROF_NONE,
           "a function called after the number hides it");
    is_x86(X86_20 "\x8b\x07" X86_CALL, 9, PROF_NONE,
           "%eax is loaded after the number");
    is_x86("\x75\x05" X86_20 X86_CALL X86_RET, 9, PROF_NONE,
           "a jump to the call hides the number");
    is_x86(X86_20 "\x31\xff" X86_CALL "\xeb\xfa", 9, PROF_NONE,
           "a jump back to the arguments hides the number");
    is_x86("\x48\xb8\x14\x00\x00\x00\x00\x00" X86_CALL X86_RET, 10, PROF_NONE,
           "a call instruction within a constant is no call");
    is_x86(X86_CALL X86_RET, 2, PROF_NONE,
           "a call without a constant has no number");
    is_x86("", 0, PROF_NONE, "empty code has no number");
}


/* all prefixes of a function, at all addresses */

static void
test_x86_64_cut(void)
{
    size_t               at, len;
    uint8_t             *copy;
    uint32_t             known, wrong;
    prof_call_t          call;
    prof_syscall_code_t  code;

    static const uint8_t  whole[] =
        "\xf3\x0f\x1e\xfa\x66\x0f\x3a\x0f\xc1\x08\xc5\xf9\x6f\x07"
        "\x62\xf1\x7c\x48\x10\x47\x01\x48\x8b\x84\x24\x10\x00\x00\x00"
        "\xf7\x00\x01\x00\x00\x00\xc8\x01\x02\x03" X86_20 X86_CALL X86_RET;

    known = 0;
    wrong = 0;

    for (len = 0; len < sizeof(whole); len++) {
        copy = malloc(len + 1);
        memcpy(copy, whole, len);

        for (at = 0; at <= len; at++) {
            code.bytes = copy;
            code.len = len;
            code.at = at;
            code.returns = 0;

            memset(&call, 0, sizeof(prof_call_t));
            prof_syscall_x86_64(&code, &call);

            known += call.number == 21 && len >= 46;
            wrong += call.number && call.number != 21;
        }

        free(copy);
    }

    is_int(known, 4, "only a complete function has a call");
    is_int(wrong, 0, "no other function has a call");
}


/* the common code of glibc 2.41, and a function that calls it */

static const uint8_t  passes[] =
    "\x53\x49\x89\xca\xa8\x01\x75\x10"       /* push %rbx; mov; jne */
    "\x41\x51\x41\x50"                       /* push %r9; push %r8 */
    "\x48\x8b\x74\x24\x20"                   /* mov 0x20(%rsp),%rsi */
    "\xe8\x00\x10\x00\x00"                   /* call */
    "\x5b\xc3"                               /* pop %rbx; ret */
    "\x48\x8b\x44\x24\x10" X86_CALL X86_RET; /* mov 0x10(%rsp),%rax */

static const uint8_t  takes[] =
    "\xf6\x07\x08\x49\x89\xfb\x48\x89\xf0"   /* testb; mov; mov %rsi,%rax */
    "\x48\x89\xd7\x48\x89\xce" X86_CALL X86_RET;

static const uint8_t  forwards[] =
    "\x48\x83\xec\x10\xff\x74\x24\x18"       /* sub; push 0x18(%rsp) */
    "\xe8\xd8\xff\xff\xff\x5a\x59\xc3";      /* call */

static const uint8_t  begins[] =
    "\x48\x83\xec\x10\x48\x63\xd2\x45\x31\xc9\x6a\x14"
    "\x45\x31\xc0\x31\xc9\xe8\x00\x01\x00\x00\xc3";


static void
test_x86_64_arguments(void)
{
    prof_call_t          call;
    prof_syscall_code_t  code;

    memset(&call, 0, sizeof(prof_call_t));
    code = (prof_syscall_code_t) { passes, sizeof(passes) - 1, 31, 0 };
    prof_syscall_x86_64(&code, &call);
    is_int(call.number, PROF_CALL_STACK,
           "the number comes from an argument on the stack");

    memset(&call, 0, sizeof(prof_call_t));
    code = (prof_syscall_code_t) { passes, sizeof(passes) - 1, 22, 1 };
    prof_syscall_x86_64(&code, &call);
    is_int(call.second, PROF_CALL_STACK, "the number is passed in a register");
    is_int(call.stack, 0, "no argument is passed on the stack");
    is_int(call.target, 22 + 0x1000, "the code calls this function");

    memset(&call, 0, sizeof(prof_call_t));
    code = (prof_syscall_code_t) { takes, sizeof(takes) - 1, 17, 0 };
    prof_syscall_x86_64(&code, &call);
    is_int(call.number, PROF_CALL_SECOND,
           "the number comes from the second argument");

    memset(&call, 0, sizeof(prof_call_t));
    code = (prof_syscall_code_t) { forwards, sizeof(forwards) - 1, 13, 1 };
    prof_syscall_x86_64(&code, &call);
    is_int(call.stack, PROF_CALL_STACK, "an argument is passed on");

    memset(&call, 0, sizeof(prof_call_t));
    code = (prof_syscall_code_t) { begins, sizeof(begins) - 1, 22, 1 };
    prof_syscall_x86_64(&code, &call);
    is_int(call.stack, 21, "a constant is passed on the stack");

    memset(&call, 0, sizeof(prof_call_t));
    code = (prof_syscall_code_t) { begins, sizeof(begins) - 1, 12, 1 };
    prof_syscall_x86_64(&code, &call);
    is_int(call.stack, 0, "no call returns to this address");
}


/* three functions, as in glibc 2.41; and the same with another caller */

static void
test_chain(void)
{
    uint32_t         frames[3], i, node;
    prof_call_t      calls[3];
    prof_profile_t  *p;

    p = fixture_create("chain");
    (void) fixture_object(p, "/lib/libc.so.6", "");
    memset(calls, 0, sizeof(calls));

    node = PROF_NONE;

    for (i = 0; i < 3; i++) {
        frames[i] = fixture_frame(p, 0, 0x1000 * (i + 1) + 8, "libc");
        p->frames[frames[i]].type = PROF_TYPE_RETURN;
        p->frames[frames[i]].function = 0x1000 * (i + 1);
        calls[i].target = 0x1000;
        node = fixture_node(p, node, frames[i]);
    }

    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1000, 1000);

    calls[0].stack = 20 + 1;
    calls[1].second = PROF_CALL_STACK;
    calls[2].number = PROF_CALL_SECOND;
    calls[1].target = 0x1008;

    is_int(prof_syscall_frames(p, calls), PROF_OK,
           "the call of another function is ignored");
    is_str(leaf(p, 0), "libc", "the call of another function gives no name");

    calls[1].target = 0x1000;
    calls[0].stack = 0;

    is_int(prof_syscall_frames(p, calls), PROF_OK,
           "an unknown argument is ignored");
    is_str(leaf(p, 0), "libc", "an unknown argument gives no name");

    calls[0].stack = PROF_CALL_STACK;

    is_int(prof_syscall_frames(p, calls), PROF_OK,
           "an argument of a root is ignored");
    is_str(leaf(p, 0), "libc", "has no caller");

    calls[0].stack = __NR_writev + 1;

    is_int(prof_syscall_frames(p, calls), PROF_OK,
           "a constant is found in the caller");
    is_str(leaf(p, 0), "sys_writev", "a constant is the number of the call");

    prof_profile_destroy(p);
}


static void
test_aarch64(void)
{
    is_arm(ARM_66 ARM_CALL ARM_RET, 8, 66,
           "aarch64: a constant is the number");
    is_arm(ARM_66 ARM_CALL ARM_RET, 4, 66,
           "aarch64: a repeated call has its number");
    is_arm("\x48\x08\x80\x52" ARM_CALL, 8, 66,
           "aarch64: a constant in w8 is the number");
    is_arm(ARM_66 "\xe1\x03\x02\xaa" ARM_CALL, 12, 66,
           "aarch64: arguments may follow the number");
    is_arm("\xe8\x03\x00\xaa" ARM_CALL, 8, PROF_NONE,
           "aarch64: the call in syscall() has no number");
    is_arm(ARM_66 "\x08\x00\x40\xf9" ARM_CALL, 12, PROF_NONE,
           "aarch64: x8 is loaded after the number");
    is_arm("\x40\x00\x00\xb4" ARM_66 ARM_CALL, 12, PROF_NONE,
           "aarch64: a jump to the call hides the number");
    is_arm(ARM_66 ARM_CALL ARM_RET, 12, PROF_NONE,
           "aarch64: an address after the call has no number");
    is_arm(ARM_66 ARM_CALL, 7, PROF_NONE,
           "aarch64: an odd address has no number");
    is_arm("", 0, PROF_NONE, "aarch64: empty code has no number");
}


static void
test_profile(void)
{
    uint32_t         n;
    prof_frame_t    *f;
    prof_profile_t  *p;

    p = interrupted((uintptr_t) getppid, PROF_TYPE_CODE);
    n = p->nnodes;

    is_int(prof_profile_symbolize(p), PROF_OK, "the profile gets its names");
    is_str(leaf(p, 0), "sys_getppid", "the innermost frame is the call");
    is_str(leaf(p, 1), "sys_getppid", "each stack ends in the call");
    is_int(p->nnodes, n + 2, "each place of the function gets a node");

    f = &p->frames[p->nodes[prof_series_entry(&p->series[PROF_SERIES_TIME],
                                              0)->node].frame];

    is_int(f->type, PROF_TYPE_KERNEL, "the call is a frame of the kernel");
    is_int(f->source, PROF_SOURCE_KERNEL,
           "the name of the call is the kernel's");
    ok(prof_frame_is_exact(f), "the name of the call is exact");

    is_int(prof_profile_symbolize(p), PROF_OK,
           "the profile gets its names again");
    is_int(p->nnodes, n + 2, "a call is added once");

    prof_profile_destroy(p);

    p = interrupted((uintptr_t) getppid, PROF_TYPE_CODE);
    is_int(prof_profile_symbolize(p), PROF_OK,
           "another profile gets its names");
    is_str(leaf(p, 0), "sys_getppid",
           "the cache has the call of the other profile");
    prof_profile_destroy(p);
}


static void
test_others(void)
{
    prof_profile_t  *p;

    p = interrupted((uintptr_t) getppid, PROF_TYPE_RETURN);
    (void) prof_profile_symbolize(p);
    is_str(leaf(p, 0), "getppid", "a return address is in no call");
    prof_profile_destroy(p);

    p = interrupted((uintptr_t) syscall, PROF_TYPE_CODE);
    (void) prof_profile_symbolize(p);
    is_str(leaf(p, 0), "syscall", "the number is an argument of syscall()");
    prof_profile_destroy(p);
}


/* a stored profile, and one that is merged of two */

static void
test_kept(void)
{
    uint32_t         i, k;
    prof_profile_t  *merged, *p[2];

    for (i = 0; i < 2; i++) {
        p[i] = interrupted((uintptr_t) getppid, PROF_TYPE_CODE);
        (void) prof_profile_symbolize(p[i]);
    }

    merged = prof_profile_merge((const prof_profile_t *const *) p, NULL, 2,
                                "two", 0);
    ok(merged != NULL, "two profiles are merged");

    is_str(leaf(merged, 0), "sys_getppid", "a merged profile has the call");

    for (i = k = 0; i < merged->nframes; i++) {
        k += merged->frames[i].type == PROF_TYPE_KERNEL;
    }

    is_int(k, 1, "both profiles share the frame of the call");

    prof_profile_destroy(p[0]);
    prof_profile_destroy(p[1]);
    prof_profile_destroy(merged);
}


/* two stacks that end after the first system call of a function */

static prof_profile_t *
interrupted(uintptr_t function, uint32_t type)
{
    size_t                len;
    uint32_t              caller, frame, i;
    uintptr_t             pc, start;
    prof_frame_t         *f;
    prof_unwind_t        *u;
    prof_profile_t       *p;
    const prof_object_t  *o;

    u = prof_unwind_create();
    pc = find_call(function);
    o = u ? prof_unwind_object(u, pc) : NULL;

    if (o == NULL) {
        abort();
    }

    p = fixture_create("calls");

    (void) fixture_object(p, o->path, "");
    p->objects[0].base = o->base;
    p->objects[0].start = o->start - o->base;
    p->objects[0].end = o->end - o->base;

    frame = fixture_frame(p, 0, pc - o->base, NULL);
    f = &p->frames[frame];
    f->type = type;

    start = prof_unwind_function(u, pc - 1, &len);

    if (start) {
        f->function = start - o->base;
        f->function_len = len;
    }

    for (i = 0; i < 2; i++) {
        caller = fixture_name(p, PROF_TYPE_STAGE, i ? "read" : "write");
        fixture_entry(p, fixture_node(p, fixture_node(p, PROF_NONE, caller),
                                      frame),
                      PROF_ENTRY_SAMPLE, 1000, 1000);
    }

    prof_unwind_release(u);

    return p;
}


/* the address that the kernel returns to */

static uintptr_t
find_call(uintptr_t function)
{
    size_t       size;
    const char  *call, *code;

#if (__x86_64__)
    call = X86_CALL;
    size = sizeof(X86_CALL) - 1;
#else
    call = ARM_CALL;
    size = sizeof(ARM_CALL) - 1;
#endif

    code = memmem((const char *) function, 64, call, size);

    if (code == NULL) {
        abort();
    }

    return (uintptr_t) code + size;
}


static const char *
leaf(const prof_profile_t *p, uint32_t entry)
{
    const prof_entry_t  *e;

    e = prof_series_entry(&p->series[PROF_SERIES_TIME], entry);

    return p->frames[p->nodes[e->node].frame].name;
}
