
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes walks of njs's stacks in hostile memory.  The memory has a native stack
 * and a VM with three active frames, which the walk accepts, and then the words
 * of the input replace words of it.  An access to a page behind the memory ends
 * the program.  The first two bytes choose the registers.
 */


#include "scripts/prof_njs.h"
#include "unwind/prof_table.h"
#include "unwind/prof_unwind.h"


#if (__x86_64__)


#include "prof_fuzz_memory.h"


#define FUZZ_DEPTH     64
#define FUZZ_FRAMES    3

/* places in the memory */

#define FUZZ_STACK     0x0100
#define FUZZ_STEP      0x0080
#define FUZZ_TOP       0x0800
#define FUZZ_VM        0x0800
#define FUZZ_FRAME     0x0c00
#define FUZZ_FUNCTION  0x1000
#define FUZZ_LAMBDA    0x1400
#define FUZZ_CODES     0x1800
#define FUZZ_CODE      0x1840
#define FUZZ_LINES     0x1a00
#define FUZZ_BYTECODE  0x2000
#define FUZZ_TEXT      0x3000       /* on a page of its own */
#define FUZZ_APART_BY  0x0100       /* of the three functions */


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_init(void);
static void fuzz_layout(void);
static void fuzz_function(uint32_t i);
static uint32_t fuzz_walk(uint8_t choice, uint8_t reg, uint32_t looks);
static void fuzz_names(void);


static prof_unwind_t  *fuzz_unwind;
static uintptr_t       fuzz_pcs[FUZZ_DEPTH];


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }

    if (fuzz_memory == NULL) {
        fuzz_map();
        fuzz_init();

        /* the walk finds functions, or the inputs would not reach them */

        fuzz_layout();
        fuzz_assert(fuzz_walk(0, 0, PROF_WALK_LOOKS) == FUZZ_FRAMES);
        fuzz_names();
    }

    fuzz_layout();
    fuzz_patch(data + 2, size - 2);
    (void) fuzz_walk(data[0], data[1], PROF_WALK_LOOKS);

    return 0;
}


static void
fuzz_init(void)
{
    fuzz_unwind = prof_unwind_create();
    fuzz_assert(fuzz_unwind != NULL);

    /* at the start of a function the return address is the first word */

    prof_njs.start = (uintptr_t) fuzz_init;
    prof_njs.end = prof_njs.start + 1;

    prof_njs.self = 0x10;
    prof_njs.active = 0x20;
    prof_njs.codes = 0x28;
    prof_njs.before = 0x40;
    prof_njs.native = 0x38;
    prof_njs.lambda = 0x20;
    prof_njs.code = 0x18;
    prof_njs.items = UINT32_MAX;
}


static void
fuzz_layout(void)
{
    uint32_t   i;
    uintptr_t  base;

    memset(fuzz_memory, 0, FUZZ_SIZE);
    base = (uintptr_t) fuzz_memory;

    fuzz_word(FUZZ_VM + prof_njs.self, base + FUZZ_VM);
    fuzz_word(FUZZ_VM + prof_njs.active, base + FUZZ_FRAME);
    fuzz_word(FUZZ_VM + prof_njs.codes, base + FUZZ_CODES);

    fuzz_word(FUZZ_CODES + NJS_ARR_START, base + FUZZ_CODE);
    fuzz_word(FUZZ_CODES + NJS_ARR_ITEMS, FUZZ_FRAMES);

    fuzz_word(FUZZ_LINES + NJS_ARR_START, base + FUZZ_LINES + 0x20);
    fuzz_word(FUZZ_LINES + NJS_ARR_ITEMS, 2);
    fuzz_word(FUZZ_LINES + 0x20, (uint64_t) 1 << 32);
    fuzz_word(FUZZ_LINES + 0x28, (uint64_t) 2 << 32 | 0x40);

    memcpy(fuzz_memory + FUZZ_TEXT, "main.js", 7);

    for (i = 0; i < FUZZ_FRAMES; i++) {
        fuzz_function(i);
    }
}


/* frame number i calls the one before it; its callee has saved a register */

static void
fuzz_function(uint32_t i)
{
    uint32_t   frame, function, lambda, entry, last;
    uintptr_t  base, code;

    base = (uintptr_t) fuzz_memory;

    frame = FUZZ_FRAME + i * FUZZ_APART_BY;
    function = FUZZ_FUNCTION + i * FUZZ_APART_BY;
    lambda = FUZZ_LAMBDA + i * FUZZ_APART_BY;
    entry = FUZZ_CODE + i * NJS_CODE_SIZE;
    code = base + FUZZ_BYTECODE + i * FUZZ_APART_BY;
    last = (i == FUZZ_FRAMES - 1);

    fuzz_word(frame + NJS_FRAME_PC, code + 0x48);
    fuzz_word(frame + NJS_FRAME_FUNCTION, base + function);
    fuzz_word(frame + NJS_FRAME_PREVIOUS,
              last ? 0 : base + frame + FUZZ_APART_BY);
    fuzz_word(frame + prof_njs.before, last ? 0 : base + frame + FUZZ_APART_BY);

    fuzz_word(function + prof_njs.lambda, base + lambda);
    fuzz_word(lambda + prof_njs.code, code);

    fuzz_word(entry + NJS_CODE_START, code);
    fuzz_word(entry + NJS_CODE_END, code + FUZZ_APART_BY);
    fuzz_word(entry + NJS_CODE_FILE + NJS_STR_LENGTH, 7);
    fuzz_word(entry + NJS_CODE_FILE + NJS_STR_START, base + FUZZ_TEXT);
    fuzz_word(entry + NJS_CODE_NAME + NJS_STR_LENGTH, 4);
    fuzz_word(entry + NJS_CODE_NAME + NJS_STR_START, base + FUZZ_TEXT);
    fuzz_word(entry + NJS_CODE_LINES, base + FUZZ_LINES);

    fuzz_word(FUZZ_STACK + i * FUZZ_STEP - 0x10, code + 0x48);
}


/* a walk that may not ask for the page of a name has no function without it */

static void
fuzz_names(void)
{
    uint32_t       i, n, looks;
    prof_script_t  s;

    for (looks = 0; looks < 8 * PROF_WALK_LOOK_CODE; looks++) {

        n = fuzz_walk(0, 0, looks);

        for (i = 0; i < n; i++) {
            fuzz_assert(prof_script_find(fuzz_pcs[i], &s) == PROF_OK
                        && s.function_len == 4
                        && memcmp(s.function, "main", 4) == 0);
        }
    }
}


/* returns the number of functions */

static uint32_t
fuzz_walk(uint8_t choice, uint8_t reg, uint32_t looks)
{
    int           rc;
    uint32_t      i;
    uintptr_t     base;
    ucontext_t    uc;
    prof_walk_t   w;
    prof_stats_t  stats;

    base = (uintptr_t) fuzz_memory;

    memset(&uc, 0, sizeof(uc));
    memset(&w, 0, sizeof(w));
    memset(&stats, 0, sizeof(stats));

    uc.uc_mcontext.gregs[REG_RSP] = (greg_t) base + 0x80;
    uc.uc_mcontext.gregs[REG_RBX] = (greg_t) base + FUZZ_VM;
    uc.uc_mcontext.gregs[REG_RDI] = (greg_t) base + FUZZ_VM;
    uc.uc_mcontext.gregs[REG_R12] = (greg_t) base + FUZZ_BYTECODE + reg * 4;

    prof_njs.vm = (choice & 1) ? PROF_NJS_AUX : PROF_NJS_FP;
    prof_njs.call = (choice & 2) ? prof_njs.start + 1 : 0;
    prof_njs.main = (choice & 4) ? base : 0;
    prof_njs.main_end = (choice & 4) ? base + FUZZ_SIZE : 0;

    w.u = fuzz_unwind;
    w.uc = (choice & 8) ? NULL : &uc;
    w.top = base + FUZZ_TOP;
    w.pcs = fuzz_pcs;
    w.max = (choice & 16) ? 5 : FUZZ_DEPTH;
    w.st = &stats;
    w.looks = looks;

    for (i = 0; i < FUZZ_FRAMES; i++) {

        w.f.call = i ? 1 : !(choice & 32);
        w.f.pc = prof_njs.start + w.f.call;
        w.f.sp = base + FUZZ_STACK + i * FUZZ_STEP;
        w.f.fp = (choice & 64) ? 0 : base + FUZZ_VM;

        rc = prof_njs_frame(&w);

        fuzz_assert(rc == PROF_WALK_OTHER || rc == PROF_WALK_TRUNCATED);
        fuzz_assert(w.n <= w.max);
        fuzz_assert(w.nchains <= PROF_WALK_CHAINS);
    }

    return w.n;
}


#else


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return 0;
}


#endif
