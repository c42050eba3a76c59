
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The stack walk.  For each frame: find its row, compute its CFA, record its
 * address, load the caller's registers.  A row found is kept in the caller's
 * cache, so a stack much like the last one costs a few loads per frame.
 *
 * What is rare is in functions of its own: signal frames, frames whose CFA
 * depends on a register that the walk does not follow, and code without unwind
 * information, where the stack is scanned for a return address.
 *
 * Context: signal handler.  Reads only the tables, the context, the stack from
 * its red zone up to top, and, when it scans, code before return addresses.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_table.h"


/*
 * A stack pointer farther than this from top is not on the same stack.  The
 * default limit for a stack is 8 MiB.
 */

#define PROF_WALK_STACK_MAX  (256 * 1024 * 1024)


/* words scanned; JIT compilers keep frames small: 21 words on average */

#define PROF_WALK_SCAN_MAX   256


typedef struct {
    const prof_unwind_t  *u;
    const ucontext_t     *uc;       /* of frame "base"; NULL: none is known */
    uint32_t              base;
    uintptr_t             top;
    uintptr_t            *pcs;
    uint32_t              n;
    uint32_t              max;
    prof_stats_t         *st;
    prof_regs_t           f;
} prof_walk_t;


typedef enum {
    PROF_WALK_NEXT = 0,     /* f is a frame that is not recorded yet */
    PROF_WALK_CFA,          /* the same, and its CFA is known */
    PROF_WALK_COMPLETE,
    PROF_WALK_TRUNCATED,
    PROF_WALK_NO_UNWIND,
    PROF_WALK_BAD_STACK
} prof_walk_e;


static prof_walk_e prof_walk_start(prof_walk_t *w);
static prof_walk_e prof_walk_rare(prof_walk_t *w, uint64_t row,
    uintptr_t *cfa);
static prof_walk_e prof_walk_beyond(prof_walk_t *w, uintptr_t cfa);
static prof_walk_e prof_walk_record(prof_walk_t *w);
static prof_walk_e prof_walk_signal(prof_walk_t *w);
static int prof_walk_extra(prof_walk_t *w, uint64_t row, uintptr_t *cfa);
static int prof_walk_aux(prof_walk_t *w, uintptr_t *value);
static prof_walk_e prof_walk_scan(prof_walk_t *w);
static int prof_walk_return(prof_walk_t *w, uintptr_t at, uint64_t *row);
static uintptr_t prof_walk_scan_fp(prof_walk_t *w, uintptr_t at);
static uint32_t prof_walk_end(prof_walk_e rc, prof_stats_t *st);


uint32_t
prof_walk(const prof_unwind_t *u, prof_walk_cache_t *cache,
    const ucontext_t *uc, uintptr_t top, uintptr_t *pcs, uint32_t max,
    prof_stats_t *st, uint32_t *end)
{
    uint64_t     row;
    uintptr_t    at, cfa, slot;
    prof_walk_t  w;
    prof_walk_e  rc;

    w.u = u;
    w.uc = uc;
    w.base = 0;
    w.top = top;
    w.pcs = pcs;
    w.n = 0;
    w.max = max;
    w.st = st;

    prof_arch_regs(&w.f, uc);

    rc = prof_walk_start(&w);

    while (rc == PROF_WALK_NEXT) {

        /* the code that a return address belongs to is that of its call */

        at = w.f.pc - w.f.call;
        slot = (at ^ at >> 10) % PROF_WALK_CACHE;
        row = cache->slot[slot].row;

        if (__builtin_expect(cache->slot[slot].pc != at, 0)) {
            row = prof_table_row(u, at);
            cache->slot[slot].pc = at;
            cache->slot[slot].row = row;
        }

        if (__builtin_expect(!prof_arch_cfa(&w.f, row, top, &cfa), 0)) {
            rc = prof_walk_rare(&w, row, &cfa);

            if (rc != PROF_WALK_CFA) {
                continue;
            }
        }

        if (__builtin_expect(cfa > top || !prof_arch_moved(&w.f, cfa), 0)) {
            rc = prof_walk_beyond(&w, cfa);
            continue;
        }

        if (__builtin_expect(w.n == max, 0)) {
            rc = PROF_WALK_TRUNCATED;
            break;
        }

        pcs[w.n++] = w.f.pc;

        prof_arch_pop(&w.f, row, cfa, top);

        rc = PROF_WALK_NEXT;
    }

    *end = prof_walk_end(rc, st);

    return w.n;
}


static prof_walk_e
prof_walk_start(prof_walk_t *w)
{
    uintptr_t  sp;

    sp = w->f.sp;

    if (sp >= w->top && sp - w->top < PROF_WALK_STACK_MAX) {
        return PROF_WALK_COMPLETE;
    }

    if ((sp & 7) || w->top - sp > PROF_WALK_STACK_MAX) {
        (void) prof_walk_record(w);
        return PROF_WALK_BAD_STACK;
    }

    return PROF_WALK_NEXT;
}


/* frames whose CFA prof_arch_cfa() does not know */

static __attribute__((noinline)) prof_walk_e
prof_walk_rare(prof_walk_t *w, uint64_t row, uintptr_t *cfa)
{
    prof_walk_e  rc;

    switch (prof_row_kind(row)) {

    case PROF_ROW_END:
        rc = prof_walk_record(w);
        return (rc == PROF_WALK_NEXT) ? PROF_WALK_COMPLETE : rc;

    case PROF_ROW_SIGFRAME:
        return prof_walk_signal(w);

    case PROF_ROW_NONE:
    case PROF_ROW_UNSUPPORTED:
        break;

    default:

        if (prof_walk_extra(w, row, cfa)) {
            return PROF_WALK_CFA;
        }
    }

    /* a null return address is how outermost frames are made by hand */

    if (w->f.pc == 0 && w->f.call) {
        return PROF_WALK_COMPLETE;
    }

    return prof_walk_scan(w);
}


/* frames whose CFA is above top, or is none */

static __attribute__((noinline)) prof_walk_e
prof_walk_beyond(prof_walk_t *w, uintptr_t cfa)
{
    prof_walk_e  rc;

    if (cfa > w->top && cfa - w->top < PROF_WALK_STACK_MAX) {
        return PROF_WALK_COMPLETE;
    }

    if (w->f.fp == 0) {

        /* the frame pointer was lost, by a scan or by its row */

        return prof_walk_scan(w);
    }

    rc = prof_walk_record(w);

    return (rc == PROF_WALK_NEXT) ? PROF_WALK_BAD_STACK : rc;
}


static prof_walk_e
prof_walk_record(prof_walk_t *w)
{
    if (w->n == w->max) {
        return PROF_WALK_TRUNCATED;
    }

    /* the lowest addresses are no code, and would read as names */

    if (!prof_frame_is_name(w->f.pc)) {
        w->pcs[w->n++] = w->f.pc;
    }

    return PROF_WALK_NEXT;
}


static prof_walk_e
prof_walk_signal(prof_walk_t *w)
{
    uintptr_t          sp;
    prof_regs_t        f;
    prof_walk_e        rc;
    const ucontext_t  *uc;

    sp = w->f.sp + PROF_ARCH_SIGFRAME_UC;

    if (sp > w->top || w->top - sp < sizeof(ucontext_t)) {
        (void) prof_walk_record(w);
        return PROF_WALK_BAD_STACK;
    }

    uc = (const ucontext_t *) sp;
    prof_arch_regs(&f, uc);

    /* a handler that ran on a stack of its own */

    if ((f.sp & 7) || f.sp <= w->f.sp) {
        (void) prof_walk_record(w);
        return PROF_WALK_BAD_STACK;
    }

    if (f.sp > w->top) {
        return PROF_WALK_COMPLETE;
    }

    rc = prof_walk_record(w);

    w->f = f;
    w->uc = uc;
    w->base = w->n;

    return rc;
}


static int
prof_walk_extra(prof_walk_t *w, uint64_t row, uintptr_t *cfa)
{
    uint32_t   reg;
    uintptr_t  value;

    reg = prof_arch_extra(row);

    if (w->uc == NULL || reg == PROF_ARCH_DWARF_NONE) {
        return 0;
    }

    if (!w->f.call || !prof_arch_preserved(reg)) {

        /*
         * What a callee may overwrite no entry tells of.  A frame that has its
         * CFA there relies on a callee that does not, so it is unchanged.
         */

        value = prof_arch_context(w->uc, reg);

    } else if (reg != PROF_ARCH_DWARF_AUX || !prof_walk_aux(w, &value)) {
        return 0;
    }

    *cfa = prof_arch_extra_cfa(&w->f, row, value, w->top);

    return 1;
}


/* walks again, from the last context to this frame, following "aux" */

static int
prof_walk_aux(prof_walk_t *w, uintptr_t *value)
{
    int          saved;
    uint32_t     i, n;
    uintptr_t    at, cfa;
    prof_regs_t  f;

    prof_arch_regs(&f, w->uc);
    *value = prof_arch_context(w->uc, PROF_ARCH_DWARF_AUX);

    for (n = w->base; n < w->n; n++) {
        i = prof_table_find(w->u, f.pc - f.call);

        if (i == PROF_TABLE_NONE
            || !prof_arch_cfa(&f, w->u->rows[i], w->top, &cfa)
            || cfa > w->top || !prof_arch_moved(&f, cfa))
        {
            return 0;
        }

        saved = w->u->aux[i];

        if (saved) {
            at = prof_arch_saved(&f, saved, cfa, w->top);

            if (at == 0) {
                return 0;
            }

            *value = prof_arch_load(at);
        }

        prof_arch_pop(&f, w->u->rows[i], cfa, w->top);
    }

    return 1;
}


/*
 * Code made at run time has no unwind information.  The first word of the stack
 * that is a return address, and whose frame leads to another one, is its
 * caller's.
 */

static prof_walk_e
prof_walk_scan(prof_walk_t *w)
{
    uint32_t     i;
    uint64_t     row;
    uintptr_t    at, cfa;
    prof_regs_t  f;
    prof_walk_e  rc;

    rc = prof_walk_record(w);

    if (rc != PROF_WALK_NEXT) {
        return rc;
    }

    at = w->f.sp;

    for (i = 0; i < PROF_WALK_SCAN_MAX && w->top - at >= 8; i++, at += 8) {

        if (!prof_walk_return(w, at, &row)) {
            continue;
        }

        f.pc = prof_arch_load(at);
        f.sp = at + 8;
        f.fp = prof_walk_scan_fp(w, at);
        f.lr = 0;
        f.call = 1;

        if (prof_row_kind(row) != PROF_ROW_END) {

            if (!prof_arch_cfa(&f, row, w->top, &cfa)
                || !prof_arch_moved(&f, cfa))
            {
                continue;
            }

            if (cfa <= w->top && !prof_walk_return(w, cfa - 8, &row)) {
                continue;
            }
        }

        w->f = f;
        w->uc = NULL;
        w->st->scanned++;

        return PROF_WALK_NEXT;
    }

    return PROF_WALK_NO_UNWIND;
}


/* whether the word is an address after a call that the tables cover */

static int
prof_walk_return(prof_walk_t *w, uintptr_t at, uint64_t *row)
{
    uintptr_t  pc;

    pc = prof_arch_load(at);
    *row = prof_table_row(w->u, pc - 1);

    return prof_row_known(*row) && prof_arch_called(pc);
}


/*
 * The frame pointer of the frame whose return address is at "at": that which
 * the code without information saved there, or left alone.  Otherwise lost.
 */

static uintptr_t
prof_walk_scan_fp(prof_walk_t *w, uintptr_t at)
{
    uint64_t   row;
    uintptr_t  fp;

    fp = w->f.fp;

    if (fp & 7) {
        return 0;
    }

    if (fp == at - 8 && fp >= w->f.sp) {
        return prof_arch_load(fp);
    }

    if (fp > at && fp < w->top - 8 && prof_walk_return(w, fp + 8, &row)) {
        return fp;
    }

    return 0;
}


static uint32_t
prof_walk_end(prof_walk_e rc, prof_stats_t *st)
{
    switch (rc) {

    case PROF_WALK_TRUNCATED:
        st->truncated++;
        return PROF_FRAME_TRUNCATED;

    case PROF_WALK_NO_UNWIND:
        st->no_unwind++;
        return PROF_FRAME_NO_UNWIND;

    case PROF_WALK_BAD_STACK:
        st->bad_stack++;
        return PROF_FRAME_BAD_STACK;

    default:
        return 0;
    }
}
