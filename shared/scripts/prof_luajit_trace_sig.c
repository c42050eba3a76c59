
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Code that LuaJIT compiled.  Functions that it inlined have no frames on the
 * stack.  The snapshots of the code contain the values that an exit would
 * restore: the instruction, and the links of the frames.  A place in the code
 * belongs to the last snapshot before it.
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


static uintptr_t prof_luajit_traced(prof_walk_t *w, uintptr_t g, uintptr_t pc);
static int prof_luajit_is_trace(prof_walk_t *w, uintptr_t slot, uintptr_t pc,
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
    uint64_t   pcbase;
    uintptr_t  snap, t;

    t = prof_luajit_traced(w, g, pc);

    if (t == 0) {
        return 0;
    }

    snap = prof_arch_load(t + LJ_T_SNAP);
    ofs = (uint32_t) (pc - prof_arch_load(t + LJ_T_MCODE));

    lo = 0;
    hi = prof_luajit_u16(t + LJ_T_NSNAP);

    if (!prof_luajit_readable(w, snap, (size_t) hi * LJ_SNAP_SIZE)) {
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

    if (lo == 0) {
        return 0;
    }

    snap += (lo - 1) * LJ_SNAP_SIZE;

    s->w = w;
    s->trace = t;
    s->n = prof_luajit_u8(snap + LJ_SNAP_NENT);
    s->map = prof_arch_load(t + LJ_T_SNAPMAP)
             + 4 * (uintptr_t) prof_luajit_u32(snap + LJ_SNAP_MAPOFS);

    if (!prof_luajit_readable(w, s->map, 4 * (size_t) s->n + 8)) {
        return 0;
    }

    /* behind the entries: the instruction, and the slot of its function */

    pcbase = prof_luajit_u32(s->map + 4 * s->n)
             | (uint64_t) prof_luajit_u32(s->map + 4 * s->n + 4) << 32;

    s->slot = 2 + (pcbase & 0xff);

    /*
     * this instruction has not run yet; in other places the instruction before
     * pc has run
     */

    s->pc = (uintptr_t) (pcbase >> 8) + 4;

    return prof_luajit_pc(s->pc);
}


/* the trace whose code contains the address, or 0 */

static uintptr_t
prof_luajit_traced(prof_walk_t *w, uintptr_t g, uintptr_t pc)
{
    int32_t    number;
    uint32_t   i, n;
    uintptr_t  t, traces;

    if (!prof_luajit_readable(w, g + prof_luajit.trace, 16)
        || !prof_luajit_readable(w, g + prof_luajit.vmstate, 4))
    {
        return 0;
    }

    traces = prof_arch_load(g + prof_luajit.trace);
    n = prof_luajit_u32(g + prof_luajit.sizetrace);
    number = (int32_t) prof_luajit_u32(g + prof_luajit.vmstate);

    if (number >= 0) {
        return ((uint32_t) number < n
                && prof_luajit_is_trace(w, traces + 8 * (uintptr_t) number, pc,
                                        &t))
               ? t : 0;
    }

    for (i = 1; i < n && i < PROF_LUAJIT_TRACES && w->looks; i++) {
        if (prof_luajit_is_trace(w, traces + 8 * i, pc, &t)) {
            return t;
        }
    }

    return 0;
}


static int
prof_luajit_is_trace(prof_walk_t *w, uintptr_t slot, uintptr_t pc,
    uintptr_t *trace)
{
    if (!prof_luajit_readable(w, slot, 8)) {
        return 0;
    }

    *trace = prof_arch_load(slot);

    return prof_luajit_pointer(*trace)
           && prof_luajit_readable(w, *trace, LJ_T_TRACENO + 2)
           && prof_luajit_compiled(*trace, pc);
}


int
prof_luajit_compiled(uintptr_t trace, uintptr_t pc)
{
    return prof_luajit_u8(trace + LJ_GCT) == LJ_GCT_TRACE
           && pc - prof_arch_load(trace + LJ_T_MCODE)
              < prof_luajit_u32(trace + LJ_T_SZMCODE);
}


/*
 * The bytecode of the function that the snapshot is in, which runs the
 * instruction before s->pc; 0: it is not known.
 */

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


/*
 * Goes to the caller of an inlined function.  *again: the caller is the same
 * function without its variable arguments.  Returns 0 if the caller is unknown.
 */

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
            || !prof_luajit_readable(s->w, link - 4, 4))
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


/* the constant that the snapshot has for a slot: 64 bits after its header */

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

        if (!prof_luajit_readable(s->w, ir, 16)) {
            return 0;
        }

        *value = prof_arch_load(ir + 8);

        return 1;
    }

    return 0;
}


#endif
