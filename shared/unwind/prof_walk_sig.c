
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The stack walk.  For each frame it finds the row, computes the CFA, adds
 * the address and loads the caller's registers.  Rows are stored in the
 * caller's cache, so a stack that resembles the last one costs a few loads per
 * frame.
 *
 * Rare cases have their own functions: signal frames, and frames whose CFA
 * depends on a register that the walk does not follow.
 *
 * Context: signal handler.  Reads only the tables, the context, and the stack
 * from its red zone up to top.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_table.h"
#include "unwind/prof_walk.h"

#include <string.h>


static prof_walk_e prof_walk_start(prof_walk_t *w);
static const prof_engine_code_t *prof_walk_interpreter(const prof_unwind_t *u,
    uintptr_t at);
static uint64_t prof_walk_row(const prof_unwind_t *u, uintptr_t at);
static prof_walk_e prof_walk_rare(prof_walk_t *w, uintptr_t *cfa);
static int prof_walk_leaf(prof_walk_t *w);
static prof_walk_e prof_walk_beyond(prof_walk_t *w, uintptr_t cfa);
static prof_walk_e prof_walk_signal(prof_walk_t *w);
static int prof_walk_extra(prof_walk_t *w, uint64_t row, uintptr_t *cfa);
static void prof_walk_elide(prof_walk_t *w, uint32_t keep);
static uint32_t prof_walk_end(prof_walk_e rc, prof_stats_t *st);


uint32_t
prof_walk(const prof_unwind_t *u, prof_walk_cache_t *cache,
    const ucontext_t *uc, uintptr_t top, uintptr_t *pcs, uint32_t max,
    prof_stats_t *st, uint32_t *end)
{
    uint64_t     row;
    uintptr_t    at, cfa, bucket;
    prof_walk_t  w;
    prof_walk_e  rc;

    w.u = u;
    w.uc = uc;
    w.base = 0;
    w.top = top;
    w.pcs = pcs;
    w.n = 0;
    w.max = max;
    w.elided = 0;
    w.st = st;
    w.looks = PROF_WALK_LOOKS;
    w.nchains = 0;

    prof_arch_regs(&w.f, uc);

    if (__builtin_expect(cache->snapshot != u->id, 0)) {
        memset(cache, 0, sizeof(prof_walk_cache_t));
        cache->snapshot = u->id;
    }

    rc = prof_walk_start(&w);

    while (rc == PROF_WALK_NEXT) {

        /* the code of a return address is the call before it */

        at = w.f.pc - w.f.call;
        bucket = (at ^ at >> 10) % PROF_WALK_CACHE;
        row = cache->bucket[bucket].row;

        if (__builtin_expect(cache->bucket[bucket].pc != at, 0)) {
            row = prof_walk_row(u, at);
            cache->bucket[bucket].pc = at;
            cache->bucket[bucket].row = row;
        }

        if (__builtin_expect(!prof_arch_cfa(&w.f, row, top, &cfa), 0)) {
            w.row = row;
            rc = prof_walk_rare(&w, &cfa);

            if (rc != PROF_WALK_CFA) {
                continue;
            }

            row = w.row;
        }

        if (__builtin_expect(cfa > top || !prof_arch_moved(&w.f, cfa), 0)) {
            rc = prof_walk_beyond(&w, cfa);
            continue;
        }

        if (__builtin_expect(w.n == max, 0)
            && prof_walk_room(&w, 1) != PROF_WALK_NEXT)
        {
            rc = PROF_WALK_TRUNCATED;
            break;
        }

        pcs[w.n++] = w.f.pc;

        prof_arch_pop(&w.f, row, cfa, top);

        rc = PROF_WALK_NEXT;
    }

    /* the same number for all stacks, so that they have the same callers */

    if (w.elided) {
        prof_walk_elide(&w, PROF_WALK_OUTER);
        st->elided += w.elided;
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
        (void) prof_walk_add(w);
        return PROF_WALK_BAD_STACK;
    }

    return PROF_WALK_NEXT;
}


/* returns the engine whose interpreter contains the address, or NULL */

static const prof_engine_code_t *
prof_walk_interpreter(const prof_unwind_t *u, uintptr_t at)
{
    uint32_t  i;

    for (i = 0; i < PROF_ENGINES; i++) {
        if (at >= u->engines[i].start && at < u->engines[i].end) {
            return &u->engines[i];
        }
    }

    return NULL;
}


/* finds a row that is not in the walk's cache */

static uint64_t
prof_walk_row(const prof_unwind_t *u, uintptr_t at)
{
    return prof_walk_interpreter(u, at) ? prof_row(PROF_ROW_ENGINE, 0, 0)
                                        : prof_table_row(u, at);
}


/* computes the CFA of frames that prof_arch_cfa() does not know */

static __attribute__((noinline)) prof_walk_e
prof_walk_rare(prof_walk_t *w, uintptr_t *cfa)
{
    uint32_t                   i;
    uintptr_t                  at;
    prof_walk_e                rc;
    const prof_engine_code_t  *e;

    *cfa = 0;

    switch (prof_row_how(w->row)) {

    case PROF_ROW_END:
        rc = prof_walk_add(w);
        return (rc == PROF_WALK_NEXT) ? PROF_WALK_COMPLETE : rc;

    case PROF_ROW_SIGFRAME:
        return prof_walk_signal(w);

    case PROF_ROW_ENGINE:
        at = w->f.pc - w->f.call;
        e = prof_walk_interpreter(w->u, at);
        rc = e->frame(w);

        if (rc != PROF_WALK_OTHER) {
            return rc;
        }

        if (e->compiles) {
            break;
        }

        w->row = prof_table_row(w->u, at);

        return prof_arch_cfa(&w->f, w->row, w->top, cfa)
               ? PROF_WALK_CFA
               : prof_walk_rare(w, cfa);

    case PROF_ROW_NONE:
        rc = PROF_WALK_OTHER;

        for (i = 0; i < PROF_ENGINES && rc == PROF_WALK_OTHER; i++) {
            e = &w->u->engines[i];
            rc = e->compiles ? e->frame(w) : PROF_WALK_OTHER;
        }

        if (rc != PROF_WALK_OTHER) {
            return rc;
        }

        break;

    case PROF_ROW_UNSUPPORTED:
        break;

    default:

        if (prof_walk_extra(w, w->row, cfa)) {
            return PROF_WALK_CFA;
        }
    }

    /* hand-written outermost frames have a null return address */

    if (w->f.pc == 0 && w->f.call) {
        return PROF_WALK_COMPLETE;
    }

    return prof_walk_leaf(w) ? PROF_WALK_NEXT : prof_walk_scan(w, 0);
}


/*
 * Goes to the caller by the link register: the interrupted code has no unwind
 * information, and the link register may contain its return address.  If the
 * code has called a function since, the register contains an address in the
 * code itself, which no entry covers.  If the code has moved the stack
 * pointer, unwinding from there leads to no code.
 */

static int
prof_walk_leaf(prof_walk_t *w)
{
    uint64_t     row;
    uintptr_t    cfa;
    prof_regs_t  f, next;

    if (PROF_ARCH_SCAN || w->f.call || w->f.lr == 0) {
        return 0;
    }

    f = w->f;
    f.pc = f.lr;
    f.lr = 0;
    f.call = 1;

    row = prof_table_row(w->u, f.pc - 1);

    if (prof_row_how(row) != PROF_ROW_END) {

        if (!prof_arch_cfa(&f, row, w->top, &cfa)
            || !prof_arch_moved(&f, cfa))
        {
            return 0;
        }

        if (cfa <= w->top) {
            next = f;
            prof_arch_pop(&next, row, cfa, w->top);

            if (!prof_row_known(prof_table_row(w->u, next.pc - 1))) {
                return 0;
            }
        }
    }

    if (prof_walk_add(w) != PROF_WALK_NEXT) {
        return 0;
    }

    w->f = f;
    w->uc = NULL;
    w->st->scanned++;

    return 1;
}


/* handles frames whose CFA is above top, or invalid */

static __attribute__((noinline)) prof_walk_e
prof_walk_beyond(prof_walk_t *w, uintptr_t cfa)
{
    prof_walk_e  rc;

    if (cfa > w->top && cfa - w->top < PROF_WALK_STACK_MAX) {
        return PROF_WALK_COMPLETE;
    }

    if (PROF_ARCH_SCAN && w->f.fp == 0) {

        /* a scan or a row has lost the frame pointer that the CFA needs */

        return prof_walk_scan(w, 1);
    }

    rc = prof_walk_add(w);

    return (rc == PROF_WALK_NEXT) ? PROF_WALK_BAD_STACK : rc;
}


prof_walk_e
prof_walk_room(prof_walk_t *w, uint32_t n)
{
    uint32_t  middle;

    if (w->max - w->n >= n) {
        return PROF_WALK_NEXT;
    }

    middle = w->max / 2;

    if (middle < PROF_WALK_OUTER + n || w->elided >= PROF_WALK_ELIDED) {
        return PROF_WALK_TRUNCATED;
    }

    if (w->elided == 0) {
        w->pcs[middle] = PROF_FRAME_ELIDED;
        w->elided = 1;
    }

    prof_walk_elide(w, PROF_WALK_OUTER);

    /* frames since the last context are missing */

    w->uc = NULL;
    w->base = w->base < middle ? w->base : middle;

    return PROF_WALK_NEXT;
}


/* of the frames beyond the middle, keeps the outermost ones */

static void
prof_walk_elide(prof_walk_t *w, uint32_t keep)
{
    uint32_t  from, to;

    to = w->max / 2 + 1;

    if (w->n <= to + keep) {
        return;
    }

    from = w->n - keep;
    w->elided += from - to;

    while (from < w->n) {
        w->pcs[to++] = w->pcs[from++];
    }

    w->n = to;
}


prof_walk_e
prof_walk_add(prof_walk_t *w)
{
    if (prof_walk_room(w, 1) != PROF_WALK_NEXT) {
        return PROF_WALK_TRUNCATED;
    }

    /* the lowest addresses contain no code, and would read as names */

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

        /* the CFA is the former value of sp, which is above its copy */

        return PROF_WALK_COMPLETE;
    }

    uc = (const ucontext_t *) sp;
    prof_arch_regs(&f, uc);

    if (f.sp > w->top && f.sp - w->top < PROF_WALK_STACK_MAX) {
        return PROF_WALK_COMPLETE;
    }

    rc = prof_walk_add(w);

    if (rc != PROF_WALK_NEXT) {
        return rc;
    }

    /* the handler ran on an alternate stack */

    if ((f.sp & 7) || f.sp <= sp || f.sp > w->top) {
        return PROF_WALK_BAD_STACK;
    }

    w->f = f;
    w->uc = uc;
    w->base = w->n;

    return PROF_WALK_NEXT;
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
         * No entry describes registers that a callee may overwrite.  A frame
         * whose CFA is in such a register relies on a callee that does not
         * change it.
         */

        value = prof_arch_context(w->uc, reg);

    } else if (reg != PROF_ARCH_DWARF_AUX || !prof_walk_aux(w, &value)) {
        return 0;
    }

    *cfa = prof_arch_extra_cfa(&w->f, row, value, w->top);

    return 1;
}


/* walks again, from the last context to this frame, following "aux" */

int
prof_walk_aux(prof_walk_t *w, uintptr_t *value)
{
    int                  saved;
    uint32_t             i, n;
    uint64_t             row;
    uintptr_t            at, cfa;
    prof_regs_t          f;
    const prof_range_t  *range;

    if (w->uc == NULL) {
        return 0;
    }

    prof_arch_regs(&f, w->uc);
    *value = prof_arch_context(w->uc, PROF_ARCH_DWARF_AUX);

    for (n = w->base; n < w->n; n++) {
        range = prof_table_range(w->u, f.pc - f.call);

        if (range == NULL) {
            return 0;
        }

        i = prof_table_find(range, f.pc - f.call);
        row = range->rows[i];

        if (!prof_arch_cfa(&f, row, w->top, &cfa)
            || cfa > w->top || !prof_arch_moved(&f, cfa))
        {
            return 0;
        }

        saved = range->shared->block->aux[i];

        if (saved) {
            at = prof_arch_saved(&f, saved, cfa, w->top);

            if (at == 0) {
                return 0;
            }

            *value = prof_arch_load(at);
        }

        prof_arch_pop(&f, row, cfa, w->top);
    }

    return 1;
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
