
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes walks of LuaJIT's stacks in hostile memory.  The memory has a coroutine
 * with two functions and a trace, which the walk accepts, and then the words of
 * the input replace words of it.  An access to a page behind the memory ends
 * the program.  The first two bytes choose the registers.
 */


#include "scripts/prof_luajit.h"


#if (__x86_64__)


#include "prof_fuzz_memory.h"


#define FUZZ_DEPTH   64

/* places in the memory */

#define FUZZ_CFRAME  0x0040
#define FUZZ_TOP     0x0400
#define FUZZ_STATE   0x0400
#define FUZZ_GLOBAL  0x0800
#define FUZZ_SLOTS   0x1000
#define FUZZ_FUNC    0x2000
#define FUZZ_PROTO   0x2100
#define FUZZ_TRACE   0x2400
#define FUZZ_TRACES  0x2500
#define FUZZ_SNAPS   0x2600

/* 32 bytes of code, which goes to a trace or to an exit, before the end */

#define FUZZ_STUBS   0x3fe0

/* other code, which cannot be read */

#define FUZZ_VM      0x20000000
#define FUZZ_MCODE   0x20100000
#define FUZZ_CODE    0x10000


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_init(void);
static void fuzz_layout(void);
static void fuzz_function(uint32_t fn, uint32_t proto);
static void fuzz_trace(void);
static uint32_t fuzz_walk(uint8_t choice, uint8_t slot);


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
        fuzz_assert(fuzz_walk(1, 16) > 1);
    }

    fuzz_layout();
    fuzz_patch(data + 2, size - 2);
    (void) fuzz_walk(data[0], data[1]);

    return 0;
}


/* code that begins trace 1, jumps there, and leaves a trace by exit 1 */

static const uint8_t  fuzz_stubs[] = {
    0x48, 0x83, 0xc4, 0x10,
    0x41, 0xc7, 0x86, 0, 1, 0, 0, 1, 0, 0, 0,
    0xe9, 0xec, 0xff, 0xff, 0xff,
    0x6a, 0x01, 0xeb, 0x00,
    0x6a, 0x00, 0xe9, 0, 0, 0, 0
};


static void
fuzz_init(void)
{
    prof_luajit.start = FUZZ_VM;
    prof_luajit.end = FUZZ_VM + FUZZ_CODE;
    prof_luajit.str_len = 0x14;
    prof_luajit.vmstate = 0x100;
    prof_luajit.jit_base = 0x108;
    prof_luajit.trace = 0x110;
    prof_luajit.sizetrace = 0x118;
}


static void
fuzz_layout(void)
{
    uint8_t    type;
    uint32_t   i, slots;
    uintptr_t  base;

    memset(fuzz_memory, 0, FUZZ_SIZE);
    base = (uintptr_t) fuzz_memory;

    fuzz_word(FUZZ_CFRAME + LJ_CFRAME_L, base + FUZZ_STATE);
    fuzz_word(FUZZ_CFRAME + LJ_CFRAME_PC, base + FUZZ_PROTO + 0x70);

    type = LJ_GCT_THREAD;
    slots = 256;
    fuzz_put(FUZZ_STATE + LJ_GCT, &type, 1);
    fuzz_word(FUZZ_STATE + LJ_L_GLREF, base + FUZZ_GLOBAL);
    fuzz_word(FUZZ_STATE + LJ_L_BASE, base + FUZZ_SLOTS + 0x80);
    fuzz_word(FUZZ_STATE + LJ_L_STACK, base + FUZZ_SLOTS);
    fuzz_word(FUZZ_STATE + LJ_L_CFRAME, base + FUZZ_CFRAME);
    fuzz_put(FUZZ_STATE + LJ_L_STACKSIZE, &slots, 4);

    fuzz_function(FUZZ_FUNC, FUZZ_PROTO);
    fuzz_function(FUZZ_FUNC + 0x80, FUZZ_PROTO + 0x180);

    /* each function is called by the one below, and the first one by C */

    for (i = 0; i < 8; i++) {
        fuzz_word(FUZZ_SLOTS + 0x10 + 0x10 * i,
                  (uint64_t) LJ_TAG_FUNC << LJ_TAG_SHIFT
                  | (base + FUZZ_FUNC + 0x80 * (i % 2)));
        fuzz_word(FUZZ_SLOTS + 0x18 + 0x10 * i,
                  i ? base + FUZZ_PROTO + 0x180 * (i % 2 == 0) + 0x78
                    : LJ_FRAME_C);
    }

    fuzz_trace();
    fuzz_put(FUZZ_STUBS, fuzz_stubs, sizeof(fuzz_stubs));
}


static void
fuzz_function(uint32_t fn, uint32_t proto)
{
    uint8_t    type;
    uint32_t   bc, n;
    uintptr_t  base;

    base = (uintptr_t) fuzz_memory;
    bc = proto + LJ_PROTO_SIZE;

    type = LJ_GCT_FUNC;
    fuzz_put(fn + LJ_GCT, &type, 1);
    fuzz_word(fn + LJ_FUNC_PC, base + bc);

    type = LJ_GCT_PROTO;
    fuzz_put(bc + LJ_PT_GCT, &type, 1);

    n = 32;
    fuzz_put(bc + LJ_PT_SIZEBC, &n, 4);
    fuzz_word(bc + LJ_PT_K, base + bc + 0x80);
    fuzz_word(bc + LJ_PT_CHUNKNAME, base + FUZZ_TRACES + 0x80);
    fuzz_word(bc + LJ_PT_LINEINFO, base + bc + 0x90);
    fuzz_word(bc + LJ_PT_UVINFO, base + bc + 0xa0);
    fuzz_word(bc + LJ_PT_VARINFO, base + bc + 0xb0);
}


static void
fuzz_trace(void)
{
    uint8_t    type;
    uint16_t   one;
    uint32_t   n;
    uintptr_t  base;

    base = (uintptr_t) fuzz_memory;

    n = 1;
    fuzz_put(FUZZ_GLOBAL + 0x100, &n, 4);
    fuzz_word(FUZZ_GLOBAL + 0x108, base + FUZZ_SLOTS + 0x40);
    fuzz_word(FUZZ_GLOBAL + 0x110, base + FUZZ_TRACES);
    n = 8;
    fuzz_put(FUZZ_GLOBAL + 0x118, &n, 4);

    for (n = 0; n < 8; n++) {
        fuzz_word(FUZZ_TRACES + 8 * n, base + FUZZ_TRACE);
    }

    type = LJ_GCT_TRACE;
    fuzz_put(FUZZ_TRACE + LJ_GCT, &type, 1);
    one = 1;
    fuzz_put(FUZZ_TRACE + LJ_T_NSNAP, &one, 2);
    fuzz_put(FUZZ_TRACE + LJ_T_TRACENO, &one, 2);
    fuzz_word(FUZZ_TRACE + LJ_T_IR, base + FUZZ_SNAPS);
    fuzz_word(FUZZ_TRACE + LJ_T_SNAP, base + FUZZ_SNAPS);
    fuzz_word(FUZZ_TRACE + LJ_T_SNAPMAP, base + FUZZ_SNAPS + 0x40);
    fuzz_word(FUZZ_TRACE + LJ_T_STARTPT, base + FUZZ_PROTO);
    n = FUZZ_CODE;
    fuzz_put(FUZZ_TRACE + LJ_T_SZMCODE, &n, 4);
    fuzz_word(FUZZ_TRACE + LJ_T_MCODE, FUZZ_MCODE);
}


/* returns the number of functions */

static uint32_t
fuzz_walk(uint8_t choice, uint8_t slot)
{
    int           rc;
    uintptr_t     base, pcs[FUZZ_DEPTH];
    ucontext_t    uc;
    prof_walk_t   w;
    prof_stats_t  stats;

    base = (uintptr_t) fuzz_memory;

    memset(&uc, 0, sizeof(uc));
    memset(&w, 0, sizeof(w));
    memset(&stats, 0, sizeof(stats));

    uc.uc_mcontext.gregs[REG_RBX] = base + FUZZ_PROTO + 0x70 + slot % 32 * 4;
    uc.uc_mcontext.gregs[REG_RDX] = base + FUZZ_SLOTS + slot * 8;

    w.uc = &uc;
    w.top = base + FUZZ_TOP;
    w.pcs = pcs;
    w.max = FUZZ_DEPTH;
    w.st = &stats;
    w.looks = PROF_WALK_LOOKS;
    w.f.pc = (choice & 1) ? (uintptr_t) FUZZ_VM + 16
             : (choice & 0x80) ? base + FUZZ_STUBS + (choice >> 2 & 31)
                               : (uintptr_t) FUZZ_MCODE + choice;
    w.f.sp = base;
    w.f.fp = base + FUZZ_SLOTS + slot * 8;
    w.f.call = (choice >> 1) & 1;

    /* without calls of C the VM's entry is looked up in unwind tables */

    if (choice & 1) {
        w.f.call = 1;
    }

    rc = prof_luajit_frame(&w);

    fuzz_assert(rc >= PROF_WALK_NEXT && rc <= PROF_WALK_OTHER);
    fuzz_assert(w.n <= w.max);
    fuzz_assert(w.nchains <= PROF_WALK_CHAINS);

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
