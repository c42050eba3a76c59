
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The scan of the stack for the caller of code without unwind information:
 * that of JIT compilers, and some written by hand.
 *
 * A word of the stack is taken for a return address if an unwind entry covers
 * what it points to, a call is before that, and unwinding from there leads to
 * another such word, or above top.
 *
 * Frames also hold return addresses of calls that are over, in places they did
 * not write to yet.  What tells these apart, often, is where the call went:
 * code that no entry covers was called through a pointer, or is the call's very
 * target.  The nearest word with such a call is the best candidate.  If there
 * is none nearby, then the code was probably jumped to, and the first
 * candidate of any kind will do.
 *
 * Context: signal handler.  Reads also code, before supposed return addresses.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_table.h"
#include "unwind/prof_walk.h"


/*
 * Words to look at.  Frames of PCRE2's JIT code have 21 words on average, of
 * LuaJIT's about as many.
 */

#define PROF_SCAN_MAX   256
#define PROF_SCAN_NEAR  64


static int prof_scan_frame(const prof_walk_t *w, int known, uintptr_t at,
    prof_regs_t *f, int *passed);
static int prof_scan_return(const prof_walk_t *w, uintptr_t at, uint64_t *row,
    uintptr_t *target);
static uintptr_t prof_scan_fp(const prof_walk_t *w, uintptr_t at);


prof_walk_e
prof_walk_scan(prof_walk_t *w, int known)
{
    int          found, passed;
    uint32_t     i;
    uintptr_t    at;
    prof_regs_t  f, caller;
    prof_walk_e  rc;

    found = 0;
    at = w->f.sp;

    for (i = 0; i < PROF_SCAN_MAX && w->top - at >= 8; i++, at += 8) {

        if (found && i >= PROF_SCAN_NEAR) {
            break;
        }

        if (!prof_scan_frame(w, known, at, &f, &passed)
            || (found && passed))
        {
            continue;
        }

        found = 1;
        caller = f;

        if (!passed) {
            break;
        }
    }

    if (!found && known && w->top - at < 8) {

        /* a known function has a known caller, which must be above top */

        return PROF_WALK_COMPLETE;
    }

    rc = prof_walk_record(w);

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


/*
 * Whether the word at "at" may be a return address: f is the frame it leads to
 * then.  passed: the call went to a function that has an unwind entry, so not
 * to the code that the scan is for.
 */

static int
prof_scan_frame(const prof_walk_t *w, int known, uintptr_t at, prof_regs_t *f,
    int *passed)
{
    uint64_t   row, next;
    uintptr_t  cfa, target;

    if (!prof_scan_return(w, at, &row, &target)) {
        return 0;
    }

    *passed = !known && target
              && prof_row_known(prof_table_row(w->u, target));

    f->pc = prof_arch_load(at);
    f->call = 1;
    f->sp = at + 8;
    f->lr = 0;
    f->fp = prof_scan_fp(w, at);

    if (prof_row_kind(row) == PROF_ROW_END) {
        return 1;
    }

    if (!prof_arch_cfa(f, row, w->top, &cfa) || !prof_arch_moved(f, cfa)) {

        /* what it leads to is to be scanned for as well */

        return f->fp == 0 && !*passed;
    }

    return cfa > w->top || prof_scan_return(w, cfa - 8, &next, &target);
}


static int
prof_scan_return(const prof_walk_t *w, uintptr_t at, uint64_t *row,
    uintptr_t *target)
{
    uintptr_t  pc;

    pc = prof_arch_load(at);
    *row = prof_table_row(w->u, pc - 1);

    return prof_row_known(*row) && prof_arch_called(pc, target);
}


/*
 * The frame pointer of the frame whose return address is at "at": what is
 * below that, if the scanned frame has a frame pointer itself, or what it left
 * alone.  0 if it is neither.
 */

static uintptr_t
prof_scan_fp(const prof_walk_t *w, uintptr_t at)
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
