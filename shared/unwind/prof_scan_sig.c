
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Scans the stack for the caller of code without unwind information.  JIT
 * compilers make such code, and some hand-written code is such code.
 *
 * A word of the stack is taken as a return address if an unwind entry covers
 * the code that it points to, a call precedes that code, and unwinding from
 * there leads to another such word, or above top.
 *
 * Frames also contain return addresses of finished calls, in places that the
 * frame has not written yet.  The target of the call often distinguishes them:
 * the code was called through a pointer, or the code is the target of the
 * call.  Such a word nearby is taken as certain.  A word below it, whose call
 * has another target, may belong to a function that jumped into the code, as
 * LuaJIT's interpreter does.  This word is preferred if unwinding from there
 * leads to the certain word.
 *
 * Context: signal handler.  Also reads code before supposed return addresses.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_table.h"
#include "unwind/prof_walk.h"


/*
 * The number of words to examine.  Frames of PCRE2's JIT code have 21 words on
 * average, and frames of LuaJIT about as many.
 */

#define PROF_SCAN_MAX   256
#define PROF_SCAN_NEAR  64


/* evidence that a word is a return address */

#define PROF_SCAN_LEADS  0x1    /* unwinding from there leads to another
                                   return address */
#define PROF_SCAN_LOST   0x2    /* unwinding needs a register that is lost */
#define PROF_SCAN_HERE   0x4    /* the target of the call may be the code */


static int prof_scan_caller(prof_walk_t *w, int known,
    prof_regs_t *caller);
static uint32_t prof_scan_frame(prof_walk_t *w, uintptr_t at,
    prof_regs_t *f);
static int prof_scan_leads(prof_walk_t *w, prof_regs_t f,
    uintptr_t certain);
static int prof_scan_return(prof_walk_t *w, uintptr_t at, uint64_t *row,
    uintptr_t *target);
static int prof_scan_look(prof_walk_t *w, uint32_t looks);
static uintptr_t prof_scan_fp(prof_walk_t *w, uintptr_t at);


prof_walk_e
prof_walk_scan(prof_walk_t *w, int known)
{
    int          found;
    prof_regs_t  caller;
    prof_walk_e  rc;

    found = prof_scan_caller(w, known, &caller);

    if (!found && known && w->looks && w->top - w->f.sp < PROF_SCAN_MAX * 8) {

        /*
         * An unwind entry covers the function, so the scan would have found a
         * caller below top.  The caller is above top.
         */

        return PROF_WALK_COMPLETE;
    }

    rc = prof_walk_add(w);

    if (rc != PROF_WALK_NEXT) {
        return rc;
    }

    if (!found) {
        return PROF_WALK_NO_UNWIND;
    }

    w->f = caller;
    w->uc = NULL;
    w->st->scanned++;

    return PROF_WALK_NEXT;
}


static int
prof_scan_caller(prof_walk_t *w, int known, prof_regs_t *caller)
{
    uint32_t     flags;
    uintptr_t    at, end, certain, near;
    prof_regs_t  f;

    end = (w->top - w->f.sp) / 8;
    near = (end < PROF_SCAN_NEAR) ? end : PROF_SCAN_NEAR;
    end = (end < PROF_SCAN_MAX) ? end : PROF_SCAN_MAX;

    near = w->f.sp + near * 8;
    end = w->f.sp + end * 8;
    certain = 0;

    for (at = w->f.sp; at < near && !known; at += 8) {
        flags = prof_scan_frame(w, at, caller);

        if ((flags & PROF_SCAN_HERE)
            && (flags & (PROF_SCAN_LEADS|PROF_SCAN_LOST)))
        {
            certain = at;

            /* the words below a frame pointer belong to the frame itself */

            end = (at == w->f.fp + 8) ? w->f.sp : at;
            break;
        }
    }

    for (at = w->f.sp; at < end; at += 8) {
        flags = prof_scan_frame(w, at, &f);

        if (certain ? (flags && prof_scan_leads(w, f, certain))
                    : ((flags & PROF_SCAN_LEADS)
                       || (known && (flags & PROF_SCAN_LOST))))
        {
            *caller = f;
            return 1;
        }
    }

    return certain != 0;
}


/*
 * Unwinds from a word into f, the frame of the caller.  Returns evidence, or 0
 * if the word is not a return address.
 */

static uint32_t
prof_scan_frame(prof_walk_t *w, uintptr_t at, prof_regs_t *f)
{
    uint32_t   flags;
    uint64_t   row, next;
    uintptr_t  cfa, target;

    if (!prof_scan_return(w, at, &row, &target)) {
        return 0;
    }

    f->pc = prof_arch_load(at);
    f->call = 1;
    f->sp = at + 8;
    f->lr = 0;
    f->fp = prof_scan_fp(w, at);

    flags = 0;

    if (target == 0 || !prof_row_known(prof_table_row(w->u, target))) {
        flags |= PROF_SCAN_HERE;
    }

    if (prof_row_how(row) == PROF_ROW_END) {
        return flags | PROF_SCAN_LEADS;
    }

    if (!prof_arch_cfa(f, row, w->top, &cfa) || !prof_arch_moved(f, cfa)) {
        return f->fp ? 0 : flags | PROF_SCAN_LOST;
    }

    if (cfa > w->top || prof_scan_return(w, cfa - 8, &next, &target)) {
        return flags | PROF_SCAN_LEADS;
    }

    return 0;
}


/* returns whether one of the next callers of f returns to the certain word */

static int
prof_scan_leads(prof_walk_t *w, prof_regs_t f, uintptr_t certain)
{
    uint64_t   row;
    uintptr_t  cfa;

    do {
        if (!prof_scan_look(w, 1)) {
            return 0;
        }

        row = prof_table_row(w->u, f.pc - f.call);

        if (!prof_arch_cfa(&f, row, w->top, &cfa)
            || cfa > w->top || !prof_arch_moved(&f, cfa))
        {
            return 0;
        }

        prof_arch_pop(&f, row, cfa, w->top);

    } while (cfa - 8 < certain);

    return cfa - 8 == certain;
}


static int
prof_scan_return(prof_walk_t *w, uintptr_t at, uint64_t *row,
    uintptr_t *target)
{
    uintptr_t  pc;

    if (!prof_scan_look(w, 1)) {
        return 0;
    }

    pc = prof_arch_load(at);
    *row = prof_table_row(w->u, pc - 1);

    return prof_row_known(*row) && prof_scan_look(w, PROF_WALK_LOOK_CODE)
           && prof_arch_called(pc, target);
}


/* returns whether the walk may continue to scan at this cost */

static int
prof_scan_look(prof_walk_t *w, uint32_t looks)
{
    if (w->looks < looks) {
        w->looks = 0;
        return 0;
    }

    w->looks -= looks;

    return 1;
}


/*
 * Returns the frame pointer of the frame whose return address is at "at": the
 * word below, if the scanned frame has a frame pointer itself, or else the
 * unchanged register.  Returns 0 if neither is valid.
 */

static uintptr_t
prof_scan_fp(prof_walk_t *w, uintptr_t at)
{
    uint64_t   row;
    uintptr_t  fp, target;

    fp = w->f.fp;

    if (fp == at - 8 && fp >= w->f.sp) {
        return prof_arch_load(fp);
    }

    if ((fp & 7) || fp <= at) {
        return 0;
    }

    if (fp >= w->top - 8) {
        return (fp - w->top + 8 < PROF_WALK_STACK_MAX) ? fp : 0;
    }

    return prof_scan_return(w, fp + 8, &row, &target) ? fp : 0;
}
