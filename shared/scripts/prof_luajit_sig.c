
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Walks the stacks of LuaJIT.
 *
 * Each entry into the VM has a frame on the C stack, and each coroutine has a
 * chain of these frames.  The walk recognizes such a frame by two links: the
 * frame contains the address of the coroutine, and the coroutine's chain refers
 * to the frame.  So the native caller of the VM is exact, whatever the C stack
 * contains below.
 *
 * The functions that this entry runs are on the coroutine's own stack, down to
 * a frame that marks the border to C.  The walk remembers the rest for the
 * next frame of the chain.
 *
 * The innermost function is in registers while the VM's own code runs, and is
 * stored when the VM calls C.  Some calls of C store nothing.  The walk then
 * unwinds the C frames to find the registers.  A place is right if the bytecode
 * of its function contains its instruction.
 *
 * Context: signal handler.
 */


#include "scripts/prof_luajit.h"
#include "unwind/prof_table.h"

#include <string.h>


#if (__x86_64__)


/*
 * The VM's frame is this many words above the stack pointer at most: compiled
 * code spills registers below it, and its exits save all registers there.
 */
#define PROF_LUAJIT_WORDS  256

/* words that the VM's helpers push at most */
#define PROF_LUAJIT_HELPER  4

/* in place of the address of bytecode: the function is in C */
#define PROF_LUAJIT_C  1


static int prof_luajit_border(prof_walk_t *w);
static uint32_t prof_luajit_saved(uintptr_t pc);
static int prof_luajit_entered(prof_walk_t *w, uintptr_t at);
static int prof_luajit_vm(uintptr_t pc);
static prof_walk_chain_t *prof_luajit_anchor(prof_luajit_walk_t *lw);
static int prof_luajit_state(prof_luajit_walk_t *lw, uintptr_t sp);
static int prof_luajit_runs_trace(prof_luajit_walk_t *lw, uint32_t vm,
    prof_luajit_snap_t *s);
static int prof_luajit_inlined(prof_luajit_walk_t *lw, prof_luajit_snap_t *s,
    prof_luajit_place_t *p);
static int prof_luajit_leaf(prof_luajit_walk_t *lw, prof_luajit_place_t *p);
static int prof_luajit_right(prof_luajit_walk_t *lw, prof_luajit_place_t *p);
static int prof_luajit_linked(prof_luajit_walk_t *lw, uintptr_t base);
static prof_walk_e prof_luajit_pop(prof_luajit_walk_t *lw);


int
prof_luajit_frame(prof_walk_t *w)
{
    int32_t               nres;
    uint32_t              compiled, known, vm;
    prof_walk_e           rc;
    prof_walk_chain_t    *chain;
    prof_luajit_snap_t    s;
    prof_luajit_walk_t    lw;
    prof_luajit_place_t   p;

    known = w->nchains;
    lw.w = w;
    lw.bc = 0;

    prof_memory_prepare(w);

    vm = prof_luajit_vm(w->f.pc - w->f.call);

    /* compiled code calls no other compiled code */

    if (!vm && (known || prof_luajit.trace == 0)) {
        return PROF_WALK_OTHER;
    }

    if (vm && w->f.call == 0 && prof_luajit_border(w)) {
        return PROF_WALK_NEXT;
    }

    chain = prof_luajit_anchor(&lw);

    if (chain == NULL) {
        return PROF_WALK_OTHER;
    }

    compiled = (known == 0) && prof_luajit_runs_trace(&lw, vm, &s);

    if (!vm && !compiled) {
        w->nchains = 0;
        return PROF_WALK_OTHER;
    }

    /* the turn began inside of a function in Lua, so the walk is complete */

    if (lw.cframe + LJ_CFRAME_SIZE > w->top) {
        return PROF_WALK_COMPLETE;
    }

    p.base = chain->base;
    p.pc = prof_arch_load(lw.cframe + LJ_CFRAME_PC);
    p.again = 0;

    rc = PROF_WALK_NEXT;

    /* an entry for a protected call of C has no frame on the stack first */

    nres = (int32_t) prof_luajit_u32(lw.cframe + LJ_CFRAME_NRES);

    if (p.base && prof_luajit_stack(&lw, (nres < 0) ? -(intptr_t) nres : 0)
        && (known
            || (compiled ? prof_luajit_inlined(&lw, &s, &p)
                         : prof_luajit_leaf(&lw, &p))))
    {
        rc = prof_luajit_functions(&lw, &p);

    } else if (p.base) {
        w->st->lost_engine++;
    }

    prof_luajit_named(&lw, 0, 0);

    chain->base = p.base;
    chain->frame = prof_arch_load(lw.cframe + LJ_CFRAME_PREV)
                   & LJ_CFRAME_MASK;

    return (rc == PROF_WALK_NEXT) ? prof_luajit_pop(&lw) : rc;
}


/*
 * Goes to the caller and returns 1 if the VM was entered a few instructions
 * ago, or is about to return.  Its frame is in no chain then.  The caller may
 * have called a function of LuaJIT that ends with a jump to the VM, such as
 * lua_call(), so the target of the call does not tell.  The next instruction
 * tells where the return address is.  Otherwise the walk looks for a call of
 * the VM.
 */

static int
prof_luajit_border(prof_walk_t *w)
{
    uint32_t            saved;
    uintptr_t           at, end, pc, target;
    prof_luajit_walk_t  lw;

    lw.w = w;

    at = w->f.sp;
    end = at + LJ_CFRAME_SIZE;

    if (end > w->top || prof_luajit_state(&lw, at)) {
        return 0;
    }

    saved = prof_luajit_saved(w->f.pc);
    pc = prof_arch_load(at + saved);

    if (!prof_luajit_vm(pc) && prof_row_known(prof_table_row(w->u, pc - 1))
        && prof_arch_called(pc, &target))
    {
        return prof_luajit_entered(w, at + saved);
    }

    for ( /* void */ ; at < end; at += sizeof(uintptr_t)) {
        pc = prof_arch_load(at);

        if (!prof_luajit_vm(pc)
            && prof_row_known(prof_table_row(w->u, pc - 1))
            && prof_arch_called(pc, &target) && prof_luajit_vm(target))
        {
            return prof_luajit_entered(w, at);
        }
    }

    return 0;
}


/*
 * Returns the distance of the return address from the stack pointer, in bytes,
 * while the VM's frame is made or removed.  The next instruction tells which
 * registers have been saved.
 */

static uint32_t
prof_luajit_saved(uintptr_t pc)
{
    size_t                i;
    const unsigned char  *p;

    static const struct {
        unsigned char     code[4];
        unsigned char     len;
        unsigned char     saved;
    } next[] = {
        { { 0x55 }, 1, 0x00 },                      /* push rbp */
        { { 0x53 }, 1, 0x08 },                      /* push rbx */
        { { 0x41, 0x57 }, 2, 0x10 },                /* push r15 */
        { { 0x41, 0x56 }, 2, 0x18 },                /* push r14 */
        { { 0x48, 0x83, 0xec, 0x28 }, 4, 0x20 },    /* sub  rsp, 0x28 */
        { { 0x41, 0x5e }, 2, 0x20 },                /* pop  r14 */
        { { 0x41, 0x5f }, 2, 0x18 },                /* pop  r15 */
        { { 0x5b }, 1, 0x10 },                      /* pop  rbx */
        { { 0x5d }, 1, 0x08 },                      /* pop  rbp */
        { { 0xc3 }, 1, 0x00 }                       /* ret */
    };

    p = (const unsigned char *) pc;

    for (i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
        if (pc + next[i].len <= prof_luajit.end
            && memcmp(p, next[i].code, next[i].len) == 0)
        {
            return next[i].saved;
        }
    }

    return LJ_CFRAME_RETURN;
}


/* goes to the caller of the VM; the return address is at "at" */

static int
prof_luajit_entered(prof_walk_t *w, uintptr_t at)
{
    if (prof_walk_room(w, 1) != PROF_WALK_NEXT) {
        return 0;
    }

    w->pcs[w->n++] = prof_luajit.start + 1;

    w->f.pc = prof_arch_load(at);
    w->f.fp = (at == w->f.sp) ? w->f.fp : prof_arch_load(at - 8);
    w->f.sp = at + sizeof(uintptr_t);
    w->f.call = 1;
    w->uc = NULL;

    return 1;
}


/* returns whether the address is in the VM's code */

static int
prof_luajit_vm(uintptr_t pc)
{
    return pc - prof_luajit.start < prof_luajit.end - prof_luajit.start;
}


/*
 * Finds the VM's frame that is nearest to the stack pointer, and the chain that
 * it belongs to.
 */

static prof_walk_chain_t *
prof_luajit_anchor(prof_luajit_walk_t *lw)
{
    uint32_t            i, n;
    uintptr_t           sp;
    prof_walk_t        *w;
    prof_walk_chain_t  *chain;

    w = lw->w;
    sp = w->f.sp;

    for (n = 0; n < PROF_LUAJIT_WORDS; n++, sp += sizeof(uintptr_t)) {

        if (sp + LJ_CFRAME_L + sizeof(uintptr_t) > w->top) {
            return NULL;
        }

        for (i = 0; i < w->nchains; i++) {
            chain = &w->chains[i];

            if (chain->frame == sp) {
                lw->state = chain->state;
                lw->cframe = sp;
                return chain;
            }
        }

        if (!prof_luajit_state(lw, sp)) {
            continue;
        }

        if (w->nchains == PROF_WALK_CHAINS) {
            return NULL;
        }

        chain = &w->chains[w->nchains++];

        chain->state = lw->state;
        chain->base = prof_arch_load(lw->state + LJ_L_BASE);

        return chain;
    }

    return NULL;
}


/* returns whether the VM's frame of a coroutine is at sp; sets both in *lw */

static int
prof_luajit_state(prof_luajit_walk_t *lw, uintptr_t sp)
{
    uintptr_t  state;

    state = prof_arch_load(sp + LJ_CFRAME_L);

    if (!prof_luajit_pointer(state)
        || !prof_memory_readable(lw->w, state, LJ_L_STACKSIZE + 4)
        || prof_luajit_u8(state + LJ_GCT) != LJ_GCT_THREAD
        || (prof_arch_load(state + LJ_L_CFRAME) & LJ_CFRAME_MASK) != sp)
    {
        return 0;
    }

    lw->state = state;
    lw->cframe = sp;

    return 1;
}


/*
 * Returns whether the frame runs compiled code, in this code itself or in one
 * of the VM's helpers, which it calls without a frame.  Sets *s to the
 * snapshot.
 */

static int
prof_luajit_runs_trace(prof_luajit_walk_t *lw, uint32_t vm,
    prof_luajit_snap_t *s)
{
    uint32_t      i;
    uintptr_t     g;
    prof_walk_t  *w;

    w = lw->w;
    g = prof_arch_load(lw->state + LJ_L_GLREF);

    if (prof_luajit.trace == 0 || !prof_luajit_pointer(g)
        || !prof_memory_readable(w, g + prof_luajit.jit_base, 8)
        || prof_arch_load(g + prof_luajit.jit_base) == 0)
    {
        return 0;
    }

    if (!vm) {
        return w->f.call ? prof_luajit_snap(w, g, w->f.pc - 1, s)
                         : prof_luajit_snap_here(w, g, s);
    }

    if (w->f.call) {
        return 0;
    }

    for (i = 0; i < PROF_LUAJIT_HELPER; i++) {
        if (prof_luajit_snap(w, g, prof_arch_load(w->f.sp + 8 * i) - 1, s)) {
            return 1;
        }
    }

    /* compiled code is being left: only the frame where it began is known */

    s->slot = 2;
    s->pc = 0;

    return 1;
}


/* adds the inlined functions; sets *p to the function that has a frame */

static int
prof_luajit_inlined(prof_luajit_walk_t *lw, prof_luajit_snap_t *s,
    prof_luajit_place_t *p)
{
    uintptr_t            bc, fn;
    prof_walk_t         *w;
    prof_luajit_snap_t   next;

    w = lw->w;

    p->base = prof_arch_load(prof_arch_load(lw->state + LJ_L_GLREF)
                             + prof_luajit.jit_base);

    if (!prof_luajit_linked(lw, p->base)) {
        return 0;
    }

    /*
     * The code may have returned from the function in which it began.  The
     * next snapshot is that of the caller then.
     */

    fn = prof_luajit_function(p->base);

    if (s->slot == 2 && s->pc && !prof_luajit_runs(w, fn, s->pc)) {
        next = *s;

        if (prof_luajit_snap_next(&next) && next.slot == 2
            && prof_luajit_runs(w, fn, next.pc))
        {
            *s = next;
        }
    }

    while (s->slot > 2) {

        bc = prof_luajit_snap_function(s);

        if (bc && !p->again && prof_walk_room(w, 1) == PROF_WALK_NEXT) {
            prof_luajit_add(lw, bc, s->pc);
        }

        if (!prof_luajit_snap_caller(s, &p->again)) {
            return 0;
        }

        if (!p->again && s->slot > 2) {
            prof_luajit_named(lw, prof_luajit_snap_function(s), s->pc);
        }
    }

    p->pc = s->pc;

    if (!p->again) {
        prof_luajit_caller(lw, p);
    }

    return 1;
}


/*
 * Finds the innermost function.  The VM has its base in rdx, its instruction in
 * rbx, and the base also in rbp when it calls C.
 */

static int
prof_luajit_leaf(prof_luajit_walk_t *lw, prof_luajit_place_t *p)
{
    uint32_t              i;
    uintptr_t             pc, bases[4];
    prof_walk_t          *w;
    prof_luajit_place_t   stored;

    w = lw->w;
    stored = *p;

    if (!prof_walk_aux(w, &pc)) {
        return prof_luajit_slot(lw, p->base);
    }

    bases[0] = w->f.call ? w->f.fp : prof_arch_context(w->uc, LJ_DWARF_RDX);
    bases[1] = stored.base;
    bases[2] = w->f.fp;
    bases[3] = pc;

    for (i = 0; i < 3; i++) {
        p->base = bases[i];
        p->pc = pc;

        if (prof_luajit_right(lw, p)) {
            return 1;
        }
    }

    if (prof_luajit_called(lw, bases[0], pc, p)) {
        return 1;
    }

    /* a coroutine that returns writes a value in place of its caller's link */

    if (prof_luajit_slot(lw, bases[0])
        && prof_arch_load(bases[0] - 8) > LJ_ADDRESS
        && prof_luajit_called(lw, bases[0], stored.pc, p))
    {
        return 1;
    }

    /* the VM is about to store the link of a function that C calls */

    if ((pc & 3) && pc > LJ_FRAME_MASK && pc < bases[0] - lw->low) {
        p->base = bases[0] - (pc & ~(uintptr_t) LJ_FRAME_MASK);
        p->pc = 0;

        if (prof_luajit_linked(lw, p->base)
            && prof_luajit_u8(prof_luajit_function(p->base) + LJ_FUNC_FFID))
        {
            return 1;
        }
    }

    /*
     * The VM also uses the register of the instruction for other values: when
     * it returns to C, for the base of the function in C.
     */

    for (i = 0; i < 4; i++) {

        if (prof_luajit_linked(lw, bases[i])) {
            p->base = bases[i];
            p->pc = (bases[i] == stored.base) ? stored.pc : 0;
            return 1;
        }
    }

    return 0;
}


/* returns whether the function at p->base runs the instruction before p->pc */

static int
prof_luajit_right(prof_luajit_walk_t *lw, prof_luajit_place_t *p)
{
    uintptr_t  bc, fn, pc;

    if (!prof_luajit_slot(lw, p->base)) {
        return 0;
    }

    fn = prof_luajit_function(p->base);

    if (!prof_luajit_is_function(lw->w, fn)) {
        return 0;
    }

    bc = prof_arch_load(fn + LJ_FUNC_PC);
    pc = prof_arch_load(p->base - 8);

    /* the first instruction of any function is a header */

    if (p->pc == bc) {
        p->pc += 4;
    }

    if (prof_luajit_u8(fn + LJ_FUNC_FFID)) {
        return p->pc == bc + 4 || p->pc == pc;
    }

    if (!prof_luajit_is_bytecode(lw->w, bc)) {
        return 0;
    }

    if (prof_luajit_inside(bc, p->pc)) {
        return 1;
    }

    /* the function has been called, or returns */

    return p->pc == pc && prof_luajit_called(lw, p->base, pc, p);
}


/* returns whether the base has a function whose caller can be found */

static int
prof_luajit_linked(prof_luajit_walk_t *lw, uintptr_t base)
{
    uintptr_t            link;
    prof_luajit_place_t  p;

    if (!prof_luajit_slot(lw, base)
        || !prof_luajit_is_function(lw->w, prof_luajit_function(base)))
    {
        return 0;
    }

    link = prof_arch_load(base - 8);

    if ((link & 3) == LJ_FRAME_LUA) {
        return prof_luajit_called(lw, base, link, &p);
    }

    return link < base - lw->low;
}


/*
 * Adds the same address for all code of the VM.  Otherwise the call tree would
 * show one function in Lua as many.
 */

static prof_walk_e
prof_luajit_pop(prof_luajit_walk_t *lw)
{
    prof_walk_t  *w;

    w = lw->w;

    if (prof_walk_room(w, 1) != PROF_WALK_NEXT) {
        return PROF_WALK_TRUNCATED;
    }

    w->pcs[w->n++] = prof_luajit.start + 1;

    w->f.pc = prof_arch_load(lw->cframe + LJ_CFRAME_RETURN);
    w->f.sp = lw->cframe + LJ_CFRAME_SIZE;
    w->f.fp = prof_arch_load(lw->cframe + LJ_CFRAME_RBP);
    w->f.call = 1;
    w->f.lr = 0;

    /* registers of the context are not followed through the VM */

    w->uc = NULL;

    return PROF_WALK_NEXT;
}


#endif
