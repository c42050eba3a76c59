
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes walks: registers and stacks with anything in them, at any address of
 * this program's code.  A word of the input is used as such, or chooses an
 * address of code or of the stack.
 */


#include "unwind/prof_unwind.h"

#include <stdlib.h>
#include <string.h>


#define FUZZ_WORDS     512
#define FUZZ_DEPTH     64

/* below the stack pointer */
#define FUZZ_RED_ZONE  128


typedef struct {
    const uint8_t        *data;
    size_t                size;
    uintptr_t             stack;
    uintptr_t             top;
} fuzz_input_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uintptr_t fuzz_word(fuzz_input_t *in);
static uintptr_t fuzz_code(uint64_t n);
static void fuzz_registers(ucontext_t *uc, fuzz_input_t *in, uintptr_t sp);
static void fuzz_assert(int ok);


static prof_unwind_t  *fuzz_unwind;


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t             i, words;
    uint32_t           n, end;
    uintptr_t         *stack, *pcs, sp;
    ucontext_t         uc;
    fuzz_input_t       in;
    prof_stats_t       stats;
    prof_walk_cache_t  cache;

    if (fuzz_unwind == NULL) {
        fuzz_unwind = prof_unwind_create();
        fuzz_assert(fuzz_unwind != NULL);
    }

    if (size == 0) {
        return 0;
    }

    /* buffers of the exact size, so the sanitizer detects reads outside */

    words = size / 8 < FUZZ_WORDS ? size / 8 : FUZZ_WORDS;
    words += FUZZ_RED_ZONE / 8;

    stack = malloc(words * sizeof(uintptr_t));
    pcs = malloc(FUZZ_DEPTH * sizeof(uintptr_t));
    fuzz_assert(stack != NULL && pcs != NULL);

    in.data = data + 1;
    in.size = size - 1;
    in.stack = (uintptr_t) stack;
    in.top = (uintptr_t) (stack + words);

    sp = in.stack + FUZZ_RED_ZONE + data[0] % 16;

    memset(&uc, 0, sizeof(uc));
    fuzz_registers(&uc, &in, sp);

    for (i = 0; i < words; i++) {
        stack[i] = fuzz_word(&in);
    }

    memset(&stats, 0, sizeof(stats));
    memset(&cache, 0, sizeof(cache));

    n = prof_walk(fuzz_unwind, &cache, &uc, in.top, pcs, FUZZ_DEPTH, &stats,
                  &end);

    fuzz_assert(n <= FUZZ_DEPTH);
    fuzz_assert(end == 0 || end == PROF_FRAME_TRUNCATED
                || end == PROF_FRAME_NO_UNWIND || end == PROF_FRAME_BAD_STACK);
    fuzz_assert(stats.truncated == (end == PROF_FRAME_TRUNCATED));

    free(stack);
    free(pcs);

    return 0;
}


static uintptr_t
fuzz_word(fuzz_input_t *in)
{
    size_t    len;
    uint64_t  n;

    len = in->size < sizeof(n) ? in->size : sizeof(n);

    n = 0;
    memcpy(&n, in->data, len);

    in->data += len;
    in->size -= len;

    switch (n >> 62) {

    case 0:
        return n;

    case 1:
        return fuzz_code(n);

    case 2:
        return in->stack + n % (in->top - in->stack + 64);

    default:
        return in->stack + n % (in->top - in->stack) / 8 * 8;
    }
}


static uintptr_t
fuzz_code(uint64_t n)
{
    uint32_t              i;
    prof_unwind_info_t    info;
    const prof_object_t  *object;

    prof_unwind_info(fuzz_unwind, &info);

    i = (uint32_t) (n >> 32) % info.objects;
    object = prof_unwind_object_at(fuzz_unwind, i);

    return object->start + (uint32_t) n % (object->end - object->start);
}


static void
fuzz_registers(ucontext_t *uc, fuzz_input_t *in, uintptr_t sp)
{
#if (__x86_64__)

    int  i;

    for (i = 0; i < NGREG; i++) {
        uc->uc_mcontext.gregs[i] = (greg_t) fuzz_word(in);
    }

    uc->uc_mcontext.gregs[REG_RIP] = (greg_t) fuzz_code(fuzz_word(in));
    uc->uc_mcontext.gregs[REG_RSP] = (greg_t) sp;

#else

    int  i;

    for (i = 0; i < 31; i++) {
        uc->uc_mcontext.regs[i] = fuzz_word(in);
    }

    uc->uc_mcontext.pc = fuzz_code(fuzz_word(in));
    uc->uc_mcontext.sp = sp;

#endif
}


static void
fuzz_assert(int ok)
{
    if (!ok) {
        abort();
    }
}
