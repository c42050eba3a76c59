
/*
 * Copyright (C) The ngx_http_profile_module authors
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


typedef uint32_t (*decode_pt)(const prof_syscall_code_t *code);


static void check(decode_pt decode, const char *bytes, size_t len, size_t at,
    uint32_t number, const char *text);
static void test_x86_64(void);
static void test_x86_64_unknown(void);
static void test_x86_64_cut(void);
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
    test_aarch64();
    test_profile();
    test_others();
    test_kept();

    prof_profile_forget();

    return done_testing();
}


static void
check(decode_pt decode, const char *bytes, size_t len, size_t at,
    uint32_t number, const char *text)
{
    uint8_t              *copy;
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

    is_int(decode(&code), number, "%s", text);

    free(copy);
}


static void
test_x86_64(void)
{
    is_x86(X86_20 X86_CALL X86_RET, 7, 20, "a constant");
    is_x86(X86_20 X86_CALL X86_RET, 5, 20, "the kernel repeats the call");
    is_x86("\x31\xc0" X86_CALL X86_RET, 4, 0, "zero");
    is_x86("\x48\xc7\xc0\x0f\x00\x00\x00" X86_CALL, 9, 15, "mov to %rax");
    is_x86("\xf3\x0f\x1e\xfa\x49\x89\xca" X86_20 X86_CALL, 14, 20,
           "after other instructions");
    is_x86(X86_20 "\x48\x8b\x54\x24\x10\x8b\x7c\x24\x08\x45\x31\xc0" X86_CALL,
           19, 20, "arguments after the number");
    is_x86("\x31\xc0" X86_20 X86_CALL, 9, 20, "the last number counts");

    /* write() of glibc: one call with, and one without cancellation */

    is_x86("\x80\x3d\x00\x00\x00\x00\x00\x74\x08" X86_20 X86_CALL X86_RET
           "\xe8\x00\x00\x00\x00\x41\x89\xc0" X86_20 X86_CALL X86_RET,
           16, 20, "the first of two calls");
    is_x86("\x80\x3d\x00\x00\x00\x00\x00\x74\x08" X86_20 X86_CALL X86_RET
           "\xe8\x00\x00\x00\x00\x41\x89\xc0" X86_20 X86_CALL X86_RET,
           32, 20, "the second of two calls");
}


static void
test_x86_64_unknown(void)
{
    is_x86(X86_20 X86_CALL X86_RET, 8, PROF_NONE, "an address after the call");
    is_x86(X86_20 "\x90\x90" X86_RET, 7, PROF_NONE, "no call");
    is_x86("\x48\x89\xf8" X86_CALL X86_RET, 5, PROF_NONE, "syscall()");
    is_x86("\x41\xb8\x14\x00\x00\x00" X86_CALL, 8, PROF_NONE,
           "a constant in %r8d");
    is_x86("\x8b\xb8\x14\x00\x00\x00" X86_CALL, 8, PROF_NONE,
           "bytes of another instruction");
    is_x86(X86_20 "\xe8\x00\x00\x00\x00" X86_CALL, 12, PROF_NONE,
           "a call of a function after the number");
    is_x86(X86_20 "\x8b\x07" X86_CALL, 9, PROF_NONE,
           "%eax is loaded after the number");
    is_x86("\x75\x05" X86_20 X86_CALL X86_RET, 9, PROF_NONE,
           "a jump to the call");
    is_x86(X86_20 "\x31\xff" X86_CALL "\xeb\xfa", 9, PROF_NONE,
           "a jump back to the arguments");
    is_x86("\x48\xb8\x14\x00\x00\x00\x00\x00" X86_CALL X86_RET, 10, PROF_NONE,
           "a call instruction within a constant");
    is_x86(X86_CALL X86_RET, 2, PROF_NONE, "no number");
    is_x86("", 0, PROF_NONE, "no code");
}


/* all prefixes of a function, at all addresses */

static void
test_x86_64_cut(void)
{
    size_t               at, len;
    uint8_t             *copy;
    uint32_t             known;
    prof_syscall_code_t  code;

    static const uint8_t  whole[] =
        "\xf3\x0f\x1e\xfa\x66\x0f\x3a\x0f\xc1\x08\xc5\xf9\x6f\x07"
        "\x62\xf1\x7c\x48\x10\x47\x01\x48\x8b\x84\x24\x10\x00\x00\x00"
        "\xf7\x00\x01\x00\x00\x00\xc8\x01\x02\x03" X86_20 X86_CALL X86_RET;

    known = 0;

    for (len = 0; len < sizeof(whole); len++) {
        copy = malloc(len + 1);
        memcpy(copy, whole, len);

        for (at = 0; at <= len; at++) {
            code.bytes = copy;
            code.len = len;
            code.at = at;

            if (prof_syscall_x86_64(&code) != PROF_NONE) {
                known += prof_syscall_x86_64(&code) == 20 && len >= 46;
            }
        }

        free(copy);
    }

    is_int(known, 4, "only a complete function has a call");
}


static void
test_aarch64(void)
{
    is_arm(ARM_66 ARM_CALL ARM_RET, 8, 66, "aarch64: a constant");
    is_arm(ARM_66 ARM_CALL ARM_RET, 4, 66,
           "aarch64: the kernel repeats the call");
    is_arm("\x48\x08\x80\x52" ARM_CALL, 8, 66, "aarch64: mov to w8");
    is_arm(ARM_66 "\xe1\x03\x02\xaa" ARM_CALL, 12, 66,
           "aarch64: arguments after the number");
    is_arm("\xe8\x03\x00\xaa" ARM_CALL, 8, PROF_NONE, "aarch64: syscall()");
    is_arm(ARM_66 "\x08\x00\x40\xf9" ARM_CALL, 12, PROF_NONE,
           "aarch64: x8 is loaded after the number");
    is_arm("\x40\x00\x00\xb4" ARM_66 ARM_CALL, 12, PROF_NONE,
           "aarch64: a jump to the call");
    is_arm(ARM_66 ARM_CALL ARM_RET, 12, PROF_NONE,
           "aarch64: an address after the call");
    is_arm(ARM_66 ARM_CALL, 7, PROF_NONE, "aarch64: an odd address");
    is_arm("", 0, PROF_NONE, "aarch64: no code");
}


static void
test_profile(void)
{
    uint32_t         n;
    prof_frame_t    *f;
    prof_profile_t  *p;

    p = interrupted((uintptr_t) getppid, PROF_TYPE_CODE);
    n = p->nnodes;

    is_int(prof_profile_symbolize(p), PROF_OK, "named");
    is_str(leaf(p, 0), "sys_getppid", "the innermost frame is the call");
    is_str(leaf(p, 1), "sys_getppid", "in each stack");
    is_int(p->nnodes, n + 2, "a node for each place of the function");

    f = &p->frames[p->nodes[prof_series_entry(&p->series[PROF_SERIES_TIME],
                                              0)->node].frame];

    is_int(f->type, PROF_TYPE_KERNEL, "it is a frame of the kernel");
    is_int(f->source, PROF_SOURCE_KERNEL, "its name is the kernel's");
    ok(prof_frame_is_exact(f), "and exact");

    is_int(prof_profile_symbolize(p), PROF_OK, "named again");
    is_int(p->nnodes, n + 2, "a call is added once");

    prof_profile_destroy(p);

    p = interrupted((uintptr_t) getppid, PROF_TYPE_CODE);
    is_int(prof_profile_symbolize(p), PROF_OK, "another profile");
    is_str(leaf(p, 0), "sys_getppid", "its call is in the cache");
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
    ok(merged != NULL, "merged");

    is_str(leaf(merged, 0), "sys_getppid", "a merged profile has the call");

    for (i = k = 0; i < merged->nframes; i++) {
        k += merged->frames[i].type == PROF_TYPE_KERNEL;
    }

    is_int(k, 1, "one frame for both profiles");

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
