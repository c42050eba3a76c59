
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Code that LuaJIT compiled.  Functions that it inlined have no frames on the
 * stack.  The snapshots of the code contain the values that an exit would
 * restore: the instruction, and the links of the frames.  A place in the code
 * belongs to the last snapshot before it.
 *
 * The number of the trace that runs is stored at its beginning.  So code that
 * goes from a trace to another one is recognized by its instructions.  A trace
 * is left through a stub, whose number is that of the snapshot.
 *
 * Context: signal handler.
 */


#include "scripts/prof_luajit.h"


#if (__x86_64__)


/* SnapShot */

#define LJ_SNAP_SIZE     12
#define LJ_SNAP_MAPOFS   0
#define LJ_SNAP_MCOFS    6
#define LJ_SNAP_NENT     10

/* entries of a snapshot: slot, flags, reference of a value */

#define prof_luajit_entry_slot(e)  ((e) >> 24)
#define prof_luajit_entry_ref(e)   ((e) & 0xffff)

/* traces to look at while the collector runs */

#define PROF_LUAJIT_TRACES  2000


/* instructions */

#define LJ_X64_ADD_RSP8     0xc48348    /* add rsp, imm8 */
#define LJ_X64_ADD_RSP32    0xc48148    /* add rsp, imm32 */
#define LJ_X64_SET_VMSTATE  0x86c741    /* mov dword [r14 + disp32], imm32 */
#define LJ_X64_SET_VMSTATE_SIZE  11
#define LJ_X64_PUSH         0x6a        /* push imm8 */
#define LJ_X64_JMP          0xe9        /* jmp rel32 */
#define LJ_X64_JMP8         0xeb        /* jmp rel8 */

/* in bytes: the longest sequence of them that is read */

#define PROF_LUAJIT_CODE  18

/*
 * In bytes: the begin of a trace in which its number is looked for.  A trace
 * that continues another one may move registers and adjust the stack pointer
 * before it stores its number.
 */

#define PROF_LUAJIT_HEAD  128


static int prof_luajit_begins(prof_walk_t *w, uintptr_t g, uintptr_t pc,
    uintptr_t *trace);
static uintptr_t prof_luajit_adjusted(uintptr_t pc);
static int prof_luajit_numbered(prof_walk_t *w, uintptr_t g, uint32_t number,
    uintptr_t *trace);
static int prof_luajit_exit(prof_walk_t *w, uintptr_t pc, uint32_t *number);
static int prof_luajit_at(prof_walk_t *w, uintptr_t trace, uint32_t number,
    prof_luajit_snap_t *s);
static uintptr_t prof_luajit_traced(prof_walk_t *w, uintptr_t g, uintptr_t pc);
static int prof_luajit_is_trace(prof_walk_t *w, uintptr_t slot,
    uintptr_t *trace);
static int prof_luajit_constant(const prof_luajit_snap_t *s, uint32_t slot,
    uintptr_t *value);
static uintptr_t prof_luajit_proto(const prof_luajit_snap_t *s, uint32_t slot,
    uintptr_t pc);


/* finds the snapshot of an address in compiled code */

int
prof_luajit_snap(prof_walk_t *w, uintptr_t g, uintptr_t pc,
    prof_luajit_snap_t *s)
{
    uint32_t   lo, hi, mid, ofs;
    uintptr_t  snap, t;

    t = prof_luajit_traced(w, g, pc);

    if (t == 0) {
        return 0;
    }

    snap = prof_arch_load(t + LJ_T_SNAP);
    ofs = (uint32_t) (pc - prof_arch_load(t + LJ_T_MCODE));

    lo = 0;
    hi = prof_luajit_u16(t + LJ_T_NSNAP);

    if (!prof_memory_readable(w, snap, (size_t) hi * LJ_SNAP_SIZE)) {
        return 0;
    }

    while (lo < hi) {
        mid = (lo + hi) / 2;

        if (ofs < prof_luajit_u16(snap + mid * LJ_SNAP_SIZE + LJ_SNAP_MCOFS)) {
            hi = mid;

        } else {
            lo = mid + 1;
        }
    }

    return lo && prof_luajit_at(w, t, lo - 1, s);
}


int
prof_luajit_snap_here(prof_walk_t *w, uintptr_t g, prof_luajit_snap_t *s)
{
    uint32_t   exit;
    uintptr_t  pc, t;

    pc = w->f.pc;

    if (prof_luajit_begins(w, g, pc, &t)) {
        return prof_luajit_at(w, t, 0, s);
    }

    if (prof_luajit_snap(w, g, pc, s)) {
        return 1;
    }

    return prof_luajit_exit(w, pc, &exit)
           && prof_memory_readable(w, g + prof_luajit.vmstate, 4)
           && prof_luajit_numbered(w, g,
                                   prof_luajit_u32(g + prof_luajit.vmstate),
                                   &t)
           && prof_luajit_at(w, t, exit, s);
}


/*
 * Returns whether a trace begins at pc, or the code at pc goes to the
 * beginning of another trace.  Sets *trace to this trace, to which the base
 * already belongs.
 */

static int
prof_luajit_begins(prof_walk_t *w, uintptr_t g, uintptr_t pc,
    uintptr_t *trace)
{
    uint32_t   i, n;
    uintptr_t  p;

    if (!prof_memory_readable(w, pc, PROF_LUAJIT_CODE)) {
        return 0;
    }

    p = prof_luajit_adjusted(pc);

    if (prof_luajit_u8(p) == LJ_X64_JMP) {
        p += 5 + (intptr_t) (int32_t) prof_luajit_u32(p + 1);

    } else {
        p = pc;
    }

    n = prof_memory_readable(w, p, PROF_LUAJIT_HEAD) ? PROF_LUAJIT_HEAD
                                                     : PROF_LUAJIT_CODE;

    if (!prof_memory_readable(w, p, n)) {
        return 0;
    }

    for (i = 0; i <= n - LJ_X64_SET_VMSTATE_SIZE; i++) {

        if ((prof_luajit_u32(p + i) & 0xffffff) == LJ_X64_SET_VMSTATE
            && prof_luajit_numbered(w, g, prof_luajit_u32(p + i + 7), trace)
            && prof_luajit_compiled(*trace, p))
        {
            return 1;
        }
    }

    return 0;
}


/* skips an instruction at pc that adjusts the stack pointer */

static uintptr_t
prof_luajit_adjusted(uintptr_t pc)
{
    uint32_t  code;

    code = prof_luajit_u32(pc) & 0xffffff;

    return (code == LJ_X64_ADD_RSP8) ? pc + 4
           : (code == LJ_X64_ADD_RSP32) ? pc + 7 : pc;
}


/* finds the trace with the number */

static int
prof_luajit_numbered(prof_walk_t *w, uintptr_t g, uint32_t number,
    uintptr_t *trace)
{
    uintptr_t  slot;

    if (!prof_memory_readable(w, g + prof_luajit.trace, 16)
        || number >= prof_luajit_u32(g + prof_luajit.sizetrace))
    {
        return 0;
    }

    slot = prof_arch_load(g + prof_luajit.trace) + 8 * (uintptr_t) number;

    return prof_luajit_is_trace(w, slot, trace);
}


/*
 * Returns whether pc is in a stub, through which a trace is left, and sets its
 * number.  Each stub pushes the low byte of its number and jumps to the code
 * of its group, which pushes the high byte and jumps to the VM.
 */

static int
prof_luajit_exit(prof_walk_t *w, uintptr_t pc, uint32_t *number)
{
    uint32_t   low, next, op;
    uintptr_t  group, target;

    if (!prof_memory_readable(w, pc, 4)) {
        return 0;
    }

    op = prof_luajit_u8(pc);
    next = prof_luajit_u8(pc + 2);

    if (op == LJ_X64_PUSH && next == LJ_X64_JMP8) {
        low = prof_luajit_u8(pc + 1);
        group = pc + 4 + (intptr_t) (int8_t) prof_luajit_u8(pc + 3);

    } else if (op == LJ_X64_JMP8) {
        low = prof_luajit_u8(w->f.sp);
        group = pc + 2 + (intptr_t) (int8_t) prof_luajit_u8(pc + 1);

    } else if (op == LJ_X64_PUSH && next == LJ_X64_JMP) {
        low = prof_luajit_u8(w->f.sp);
        group = pc;

    } else if (op == LJ_X64_JMP) {
        low = prof_luajit_u8(w->f.sp + 8);
        group = pc - 2;

    } else {
        return 0;
    }

    if (!prof_memory_readable(w, group, 7)
        || prof_luajit_u8(group) != LJ_X64_PUSH
        || prof_luajit_u8(group + 2) != LJ_X64_JMP)
    {
        return 0;
    }

    target = group + 7 + (intptr_t) (int32_t) prof_luajit_u32(group + 3);

    *number = low | (uint32_t) prof_luajit_u8(group + 1) << 8;

    return target - prof_luajit.start < prof_luajit.end - prof_luajit.start;
}


/* reads the snapshot with the number */

static int
prof_luajit_at(prof_walk_t *w, uintptr_t trace, uint32_t number,
    prof_luajit_snap_t *s)
{
    uint64_t   pcbase;
    uintptr_t  snap;

    snap = prof_arch_load(trace + LJ_T_SNAP) + LJ_SNAP_SIZE * number;

    if (number >= prof_luajit_u16(trace + LJ_T_NSNAP)
        || !prof_memory_readable(w, snap, LJ_SNAP_SIZE))
    {
        return 0;
    }

    s->w = w;
    s->trace = trace;
    s->number = number;
    s->n = prof_luajit_u8(snap + LJ_SNAP_NENT);
    s->map = prof_arch_load(trace + LJ_T_SNAPMAP)
             + 4 * (uintptr_t) prof_luajit_u32(snap + LJ_SNAP_MAPOFS);

    if (!prof_memory_readable(w, s->map, 4 * (size_t) s->n + 8)) {
        return 0;
    }

    /* behind the entries: the instruction, and the slot of its function */

    pcbase = prof_luajit_u32(s->map + 4 * s->n)
             | (uint64_t) prof_luajit_u32(s->map + 4 * s->n + 4) << 32;

    s->slot = 2 + (pcbase & 0xff);

    /*
     * A snapshot has the instruction that runs next.  s->pc is the address
     * after an instruction that runs.
     */

    s->pc = (uintptr_t) (pcbase >> 8) + 4;

    return prof_luajit_pc(s->pc);
}


int
prof_luajit_snap_next(prof_luajit_snap_t *s)
{
    return prof_luajit_at(s->w, s->trace, s->number + 1, s);
}


/* returns the trace whose code contains the address, or 0 */

static uintptr_t
prof_luajit_traced(prof_walk_t *w, uintptr_t g, uintptr_t pc)
{
    int32_t    number;
    uint32_t   i, n;
    uintptr_t  t, traces;

    if (!prof_memory_readable(w, g + prof_luajit.trace, 16)
        || !prof_memory_readable(w, g + prof_luajit.vmstate, 4))
    {
        return 0;
    }

    traces = prof_arch_load(g + prof_luajit.trace);
    n = prof_luajit_u32(g + prof_luajit.sizetrace);
    number = (int32_t) prof_luajit_u32(g + prof_luajit.vmstate);

    if (number >= 0) {
        return (prof_luajit_numbered(w, g, (uint32_t) number, &t)
                && prof_luajit_compiled(t, pc))
               ? t : 0;
    }

    for (i = 1; i < n && i < PROF_LUAJIT_TRACES && w->looks; i++) {
        if (prof_luajit_is_trace(w, traces + 8 * i, &t)
            && prof_luajit_compiled(t, pc))
        {
            return t;
        }
    }

    return 0;
}


static int
prof_luajit_is_trace(prof_walk_t *w, uintptr_t slot, uintptr_t *trace)
{
    if (!prof_memory_readable(w, slot, 8)) {
        return 0;
    }

    *trace = prof_arch_load(slot);

    return prof_luajit_pointer(*trace)
           && prof_memory_readable(w, *trace, LJ_T_TRACENO + 2)
           && prof_luajit_u8(*trace + LJ_GCT) == LJ_GCT_TRACE;
}


int
prof_luajit_compiled(uintptr_t trace, uintptr_t pc)
{
    return prof_luajit_u8(trace + LJ_GCT) == LJ_GCT_TRACE
           && pc - prof_arch_load(trace + LJ_T_MCODE)
              < prof_luajit_u32(trace + LJ_T_SZMCODE);
}


uintptr_t
prof_luajit_snap_function(const prof_luajit_snap_t *s)
{
    return prof_luajit_proto(s, s->slot - 2, s->pc);
}


static uintptr_t
prof_luajit_proto(const prof_luajit_snap_t *s, uint32_t slot, uintptr_t pc)
{
    uintptr_t  bc, fn;

    if (prof_luajit_constant(s, slot, &fn)
        && prof_luajit_runs(s->w, fn, pc))
    {
        return prof_arch_load(fn + LJ_FUNC_PC);
    }

    bc = prof_arch_load(s->trace + LJ_T_STARTPT) + LJ_PROTO_SIZE;

    return prof_luajit_is_bytecode(s->w, bc) && prof_luajit_inside(bc, pc)
           ? bc : 0;
}


int
prof_luajit_snap_caller(prof_luajit_snap_t *s, uint32_t *again)
{
    uint32_t   slots;
    uintptr_t  link, pc;

    if (!prof_luajit_constant(s, s->slot - 1, &link)) {
        return 0;
    }

    pc = s->pc;

    if ((link & 3) == LJ_FRAME_LUA) {

        if (!prof_luajit_pc(link)
            || !prof_memory_readable(s->w, link - 4, 4))
        {
            return 0;
        }

        slots = LJ_CALL_SLOTS(link);
        pc = link;

    } else {
        slots = (uint32_t) (link >> 3);

        if ((link & LJ_FRAME_MASK) == LJ_FRAME_CONT
            && !prof_luajit_constant(s, s->slot - 3, &pc))
        {
            return 0;
        }
    }

    if (slots > s->slot - 2) {
        return 0;
    }

    *again = (link & LJ_FRAME_MASK) == LJ_FRAME_VARG;

    s->slot -= slots;
    s->pc = pc;

    return 1;
}


/*
 * Finds the constant that the snapshot has for a slot: the 64 bits after the
 * header of the constant.  Returns 0 if there is no constant.
 */

static int
prof_luajit_constant(const prof_luajit_snap_t *s, uint32_t slot,
    uintptr_t *value)
{
    uint32_t   e, i, ref;
    uintptr_t  ir;

    for (i = 0; i < s->n; i++) {
        e = prof_luajit_u32(s->map + 4 * i);

        if (prof_luajit_entry_slot(e) != slot) {
            continue;
        }

        ref = prof_luajit_entry_ref(e);

        if (ref >= LJ_REF_BIAS) {
            return 0;
        }

        ir = prof_arch_load(s->trace + LJ_T_IR) + 8 * (uintptr_t) ref;

        if (!prof_memory_readable(s->w, ir, 16)) {
            return 0;
        }

        *value = prof_arch_load(ir + 8);

        return 1;
    }

    return 0;
}


#endif
