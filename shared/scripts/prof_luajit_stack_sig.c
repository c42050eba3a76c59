
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The stack of a coroutine of LuaJIT: its functions from a place on it to the
 * border to C.  The stack is the same on all processors.
 *
 * Context: signal handler.
 */


#include "scripts/prof_luajit.h"


/* in place of the address of bytecode: the function is in C */

#define PROF_LUAJIT_C  1


static uintptr_t prof_luajit_code(prof_walk_t *w, uintptr_t fn);
static int prof_luajit_next(prof_luajit_walk_t *lw, prof_luajit_place_t *p,
    uint32_t *type);


prof_luajit_t  prof_luajit;


int
prof_luajit_stack(prof_luajit_walk_t *lw, uintptr_t floor)
{
    size_t  size;

    lw->low = prof_arch_load(lw->state + LJ_L_STACK);
    size = (size_t) prof_luajit_u32(lw->state + LJ_L_STACKSIZE) * 8;
    lw->high = lw->low + size;
    lw->floor = floor ? lw->low + floor : 0;

    return prof_luajit_pointer(lw->low) && size < LJ_STACK_MAX;
}


int
prof_luajit_called(prof_luajit_walk_t *lw, uintptr_t base, uintptr_t pc,
    prof_luajit_place_t *p)
{
    if (!prof_luajit_pc(pc) || !prof_memory_readable(lw->w, pc - 4, 4)) {
        return 0;
    }

    p->pc = pc;
    p->base = base - LJ_CALL_SLOTS(pc) * 8;

    return prof_luajit_slot(lw, p->base)
           && prof_luajit_runs(lw->w, prof_luajit_function(p->base), pc);
}


int
prof_luajit_slot(prof_luajit_walk_t *lw, uintptr_t base)
{
    return (base & 7) == 0 && base >= lw->low + 16 && base <= lw->high
           && prof_memory_readable(lw->w, base - 16, 16);
}


uintptr_t
prof_luajit_function(uintptr_t base)
{
    uintptr_t  value;

    value = prof_arch_load(base - 16);

    return (value >> LJ_TAG_SHIFT == LJ_TAG_FUNC) ? value & LJ_ADDRESS : 0;
}


prof_walk_e
prof_luajit_functions(prof_luajit_walk_t *lw, prof_luajit_place_t *p)
{
    uint32_t              type;
    uintptr_t             bc;
    prof_walk_t          *w;
    prof_luajit_place_t   at;

    w = lw->w;

    while (p->base > lw->low + 16 && p->base - 8 >= lw->floor) {

        at = *p;

        if (w->looks == 0
            || !prof_luajit_slot(lw, at.base)
            || !prof_luajit_next(lw, p, &type))
        {
            w->st->lost_engine++;
            break;
        }

        w->looks--;

        bc = at.again ? 0 : prof_luajit_code(w, prof_luajit_function(at.base));

        if (bc) {

            if (prof_walk_room(w, 1) != PROF_WALK_NEXT) {
                return PROF_WALK_TRUNCATED;
            }

            prof_luajit_add(lw, bc, at.pc);
        }

        /* arguments of a variable number have a frame of their own */

        p->again = (type == LJ_FRAME_VARG);

        if (type == LJ_FRAME_C) {
            return PROF_WALK_NEXT;
        }

        if (!p->again) {
            prof_luajit_caller(lw, p);
        }
    }

    if (p->base <= lw->low + 16) {
        p->base = 0;
    }

    return PROF_WALK_NEXT;
}


/* returns the bytecode of a function; PROF_LUAJIT_C: it is in C; 0: unknown */

static uintptr_t
prof_luajit_code(prof_walk_t *w, uintptr_t fn)
{
    uintptr_t  bc;

    if (!prof_luajit_is_function(w, fn)) {
        return 0;
    }

    if (prof_luajit_u8(fn + LJ_FUNC_FFID)) {
        return PROF_LUAJIT_C;
    }

    bc = prof_arch_load(fn + LJ_FUNC_PC);

    return prof_luajit_is_bytecode(w, bc) ? bc : 0;
}


void
prof_luajit_add(prof_luajit_walk_t *lw, uintptr_t bc, uintptr_t pc)
{
    lw->w->pcs[lw->w->n++] = PROF_FRAME_SCRIPT;

    lw->bc = bc;
    lw->pc = pc;
}


void
prof_luajit_caller(prof_luajit_walk_t *lw, const prof_luajit_place_t *p)
{
    uintptr_t  fn;

    if (lw->bc == 0) {
        return;
    }

    fn = prof_luajit_slot(lw, p->base) ? prof_luajit_function(p->base) : 0;

    if (fn && prof_luajit_runs(lw->w, fn, p->pc)) {
        prof_luajit_named(lw, prof_arch_load(fn + LJ_FUNC_PC), p->pc);

    } else {
        prof_luajit_named(lw, 0, 0);
    }
}


void
prof_luajit_named(prof_luajit_walk_t *lw, uintptr_t caller, uintptr_t pc)
{
    prof_walk_t  *w;

    w = lw->w;

    if (lw->bc == PROF_LUAJIT_C) {
        w->pcs[w->n - 1] = prof_luajit_key_c(w, caller, pc);

        /* without a name, the frame of the machine code is enough */

        if (w->pcs[w->n - 1] == 0) {
            w->n--;
        }

    } else if (lw->bc) {
        w->pcs[w->n - 1] = prof_luajit_key(w, lw->bc, lw->pc, caller, pc);
    }

    lw->bc = 0;
}


/* goes to the caller; *type is LJ_FRAME_C for all frames of entries from C */

static int
prof_luajit_next(prof_luajit_walk_t *lw, prof_luajit_place_t *p,
    uint32_t *type)
{
    uintptr_t  base, link;

    base = p->base;
    link = prof_arch_load(base - 8);

    if ((link & 3) == LJ_FRAME_LUA) {
        *type = LJ_FRAME_LUA;

        return prof_luajit_called(lw, base, link, p);
    }

    *type = link & LJ_FRAME_MASK;
    p->base = base - (link & ~(uintptr_t) LJ_FRAME_MASK);
    p->pc = 0;

    if (p->base >= base || p->base < lw->low + 16) {
        return 0;
    }

    switch (*type) {

    case LJ_FRAME_CP:
        *type = LJ_FRAME_C;
        break;

    case LJ_FRAME_CONT:

        if (base - 32 < lw->low
            || !prof_memory_readable(lw->w, base - 32, 16))
        {
            return 0;
        }

        p->pc = prof_arch_load(base - 24);

        if (prof_arch_load(base - 32) == LJ_CONT_FFI) {
            *type = LJ_FRAME_C;
        }

        break;
    }

    return 1;
}
