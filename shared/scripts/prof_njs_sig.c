
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The walk: pairs frames of the interpreter with active frames of the VM, from
 * the innermost one.
 *
 * The instruction that a frame runs is in a register that its callees preserve.
 * Unwind tables do not follow this register.  But its value is either still in
 * the register, or a callee has saved it on the stack.  So all values there
 * that point into the code of the function are candidates, and the value is one
 * of them.  If all candidates are on the same line, this line is exact;
 * otherwise the line is unknown.
 *
 * While njs enters a function, the function is active before the interpreter
 * runs it.  Then the candidates are in the code of the caller.
 *
 * Context: signal handler.
 */


#include "scripts/prof_njs.h"
#include "unwind/prof_table.h"


#if (__x86_64__)


/* the part of a stack that is searched, in words */
#define PROF_NJS_STACK  512

/* a callee saves at most six registers, below its return address */
#define PROF_NJS_SAVED  (7 * sizeof(uintptr_t))

/* registers that callees preserve */
#define PROF_NJS_REGS   6

/* of a VM, which begins with a value */
#define PROF_NJS_ALIGN  16

/* active frames without candidates, before one that has them */
#define PROF_NJS_APART  2


/* the places of candidates for one frame of the interpreter */

typedef struct {
    uintptr_t           low;        /* of the stack */
    uintptr_t           high;
    uintptr_t           regs[PROF_NJS_REGS];
    uint32_t            nregs;
    int                 complete;   /* no place is left out */
} prof_njs_search_t;


static void prof_njs_add(prof_walk_t *w, prof_walk_chain_t *chain,
    uint32_t line);
static void prof_njs_pair(prof_walk_t *w, prof_walk_chain_t *chain,
    const prof_njs_search_t *s, uintptr_t cfa);
static int prof_njs_is_idle(prof_walk_t *w, uintptr_t frame, uintptr_t cfa);
static prof_walk_chain_t *prof_njs_chain(prof_walk_t *w, int *begins);
static uintptr_t prof_njs_vm(prof_walk_t *w, int *begins);
static uintptr_t prof_njs_cfa(const prof_walk_t *w);
static void prof_njs_search(const prof_walk_t *w, uintptr_t inner,
    prof_njs_search_t *s);
static void prof_njs_enter(prof_walk_t *w, prof_walk_chain_t *chain,
    const prof_njs_search_t *s);
static int prof_njs_calls(const prof_njs_search_t *s,
    const prof_njs_code_t *code, const prof_njs_code_t *outer, uintptr_t call);
static int prof_njs_current(prof_walk_t *w, const prof_njs_search_t *s,
    const prof_njs_code_t *code, uintptr_t frame, uint32_t *line);
static int prof_njs_has(const prof_njs_search_t *s, uintptr_t pc);
static int prof_njs_agrees(prof_walk_t *w, const prof_njs_code_t *code,
    uintptr_t pc, uint32_t *line);
static int prof_njs_inside(const prof_njs_code_t *code, uintptr_t pc);


prof_njs_t  prof_njs;


int
prof_njs_frame(prof_walk_t *w)
{
    int                 begins;
    uintptr_t           cfa;
    prof_walk_chain_t  *chain;
    prof_njs_search_t   s;

    prof_memory_prepare(w);

    begins = 0;
    cfa = prof_njs_cfa(w);
    chain = cfa ? prof_njs_chain(w, &begins) : NULL;

    if (chain == NULL || chain->base == 0) {
        return PROF_WALK_OTHER;
    }

    if (prof_walk_room(w, PROF_NJS_APART + 2) != PROF_WALK_NEXT) {
        return PROF_WALK_TRUNCATED;
    }

    prof_njs_search(w, chain->frame, &s);

    if (begins) {
        prof_njs_add(w, chain, 0);

    } else {

        if (chain->frame == 0) {
            prof_njs_enter(w, chain, &s);
        }

        prof_njs_pair(w, chain, &s, cfa);
    }

    chain->frame = cfa;

    return PROF_WALK_OTHER;
}


/* adds the next active frame; only code outside of functions has no function */

static void
prof_njs_add(prof_walk_t *w, prof_walk_chain_t *chain, uint32_t line)
{
    uintptr_t        key, function;
    prof_njs_code_t  code;

    prof_njs_code(w, chain->state, chain->base, &code);

    function = prof_njs_load(w, chain->base + NJS_FRAME_FUNCTION);

    if (function == 0 && !prof_njs.outside) {
        line = 0;
    }

    key = code.entry ? prof_njs_place(w, &code, line) : 0;

    if (key) {
        w->pcs[w->n++] = key;

    } else if (code.entry || function) {
        w->st->lost_engine++;
    }

    chain->base = prof_njs_before(w, chain->base);
}


/*
 * Adds the active frame that this frame of the interpreter runs.  If there is
 * no candidate, njs leaves the function that the interpreter has run, so the
 * caller is active already: it belongs to the next frame of the interpreter.
 *
 * Frames without candidates that belong to inner frames of the interpreter are
 * added without their lines: njs had begun to enter a function, or unwinds the
 * function because of an exception.
 */

static void
prof_njs_pair(prof_walk_t *w, prof_walk_chain_t *chain,
    const prof_njs_search_t *s, uintptr_t cfa)
{
    uint32_t         i, n, line;
    uintptr_t        frame;
    prof_njs_code_t  code;

    line = 0;
    frame = chain->base;
    n = chain->frame ? PROF_NJS_APART : 0;

    for (i = 0; i <= n && frame; i++) {

        prof_njs_code(w, chain->state, frame, &code);

        if (prof_njs_current(w, s, &code, frame, &line)) {
            break;
        }

        frame = prof_njs_before(w, frame);
    }

    if (i > n || frame == 0) {

        if (s->complete) {
            return;
        }

        i = 0;
        frame = chain->base;

        prof_njs_code(w, chain->state, frame, &code);
        (void) prof_njs_current(w, s, &code, frame, &line);
    }

    while (i--) {
        prof_njs_add(w, chain, 0);
    }

    if (prof_njs_is_idle(w, frame, cfa)) {
        chain->base = 0;
        return;
    }

    prof_njs_add(w, chain, line);
}


/*
 * Returns whether the frame is that of the code outside of functions, which
 * has run already: njs_vm_start() has not called the interpreter.
 */

static int
prof_njs_is_idle(prof_walk_t *w, uintptr_t frame, uintptr_t cfa)
{
    return prof_njs_load(w, frame + NJS_FRAME_FUNCTION) == 0
           && prof_arch_load(cfa - sizeof(uintptr_t)) - prof_njs.main
              >= prof_njs.main_end - prof_njs.main;
}


/*
 * Returns the chain of the frame's VM; sets *begins if the interpreter has only
 * begun.
 */

static prof_walk_chain_t *
prof_njs_chain(prof_walk_t *w, int *begins)
{
    uint32_t            i;
    uintptr_t           vm;
    prof_walk_chain_t  *chain;

    vm = prof_njs_vm(w, begins);

    if (vm == 0) {
        return NULL;
    }

    for (i = 0; i < w->nchains; i++) {
        if (w->chains[i].state == vm) {
            return &w->chains[i];
        }
    }

    if (w->nchains == PROF_WALK_CHAINS) {
        return NULL;
    }

    chain = &w->chains[w->nchains++];

    chain->state = vm;
    chain->base = prof_njs_load(w, vm + prof_njs.active);
    chain->frame = 0;

    return chain;
}


static uintptr_t
prof_njs_vm(prof_walk_t *w, int *begins)
{
    uint32_t   i;
    uintptr_t  vm;

    *begins = 0;

    if (prof_njs.vm == PROF_NJS_FP) {
        vm = w->f.fp;

    } else {

        /* finding the register costs a walk, and VMs do not call each other */

        for (i = 0; i < w->nchains; i++) {
            if (prof_njs_is_vm(w, w->chains[i].state)) {
                return w->chains[i].state;
            }
        }

        if (prof_njs.vm == PROF_NJS_OTHER) {
            vm = prof_njs_find_vm(w);

        } else if (!prof_walk_aux(w, &vm)) {
            vm = 0;
        }
    }

    if (prof_njs_is_vm(w, vm)) {
        return vm;
    }

    if (w->f.call || w->uc == NULL) {
        return 0;
    }

    /* the interpreter has not moved its arguments yet */

    *begins = 1;
    vm = (uintptr_t) w->uc->uc_mcontext.gregs[REG_RDI];

    return prof_njs_is_vm(w, vm) ? vm : 0;
}


/* the value is still in its register, or a callee has saved it on the stack */

uintptr_t
prof_njs_find_vm(prof_walk_t *w)
{
    uint32_t           i;
    uintptr_t          p, vm;
    prof_njs_search_t  s;

    prof_njs_search(w, 0, &s);

    for (i = 0; i < s.nregs; i++) {
        if (prof_njs_is_vm(w, s.regs[i])) {
            return s.regs[i];
        }
    }

    /* the first callee that uses the register saves it next to the frame */

    for (p = s.high - sizeof(uintptr_t); p >= s.low; p -= sizeof(uintptr_t)) {

        vm = prof_arch_load(p);

        if (vm % PROF_NJS_ALIGN == 0 && (vm < w->f.sp || vm >= w->top)
            && prof_njs_is_vm(w, vm))
        {
            return vm;
        }
    }

    return 0;
}


/* returns 0 if the CFA is not on the stack */

static uintptr_t
prof_njs_cfa(const prof_walk_t *w)
{
    uint64_t   row;
    uintptr_t  cfa;

    row = prof_table_row(w->u, w->f.pc - w->f.call);

    return prof_arch_cfa(&w->f, row, w->top, &cfa) && cfa <= w->top
           && prof_arch_moved(&w->f, cfa)
           ? cfa : 0;
}


/* inner: the CFA of the inner frame of the interpreter, or 0 */

static void
prof_njs_search(const prof_walk_t *w, uintptr_t inner, prof_njs_search_t *s)
{
    uintptr_t         limit;
    const greg_t     *g;

    s->high = w->f.sp;
    s->low = s->high;
    s->nregs = 0;

    if (inner) {

        /* the inner frame of the interpreter has saved all registers */

        s->low = inner - PROF_NJS_SAVED;

    } else if (w->uc) {
        g = w->uc->uc_mcontext.gregs;

        s->regs[s->nregs++] = (uintptr_t) g[REG_RBX];
        s->regs[s->nregs++] = (uintptr_t) g[REG_RBP];
        s->regs[s->nregs++] = (uintptr_t) g[REG_R12];
        s->regs[s->nregs++] = (uintptr_t) g[REG_R13];
        s->regs[s->nregs++] = (uintptr_t) g[REG_R14];
        s->regs[s->nregs++] = (uintptr_t) g[REG_R15];

        s->low = (uintptr_t) g[REG_RSP];
    }

    limit = s->high - PROF_NJS_STACK * sizeof(uintptr_t);

    s->complete = (s->low >= limit && s->low < s->high) || s->nregs;

    if (s->low < limit) {
        s->low = limit;
        s->complete = 0;

    } else if (s->low > s->high) {
        s->low = s->high;
        s->complete = 0;
    }
}


/* adds a function that njs enters, and goes to its caller */

static void
prof_njs_enter(prof_walk_t *w, prof_walk_chain_t *chain,
    const prof_njs_search_t *s)
{
    uintptr_t        caller;
    prof_njs_code_t  code, outer;

    /* a function that has called another one is not being entered */

    if (prof_njs_load(w, chain->base + NJS_FRAME_PC)) {
        return;
    }

    caller = prof_njs_before(w, chain->base);

    prof_njs_code(w, chain->state, chain->base, &code);
    prof_njs_code(w, chain->state, caller, &outer);

    if (outer.entry
        && prof_njs_calls(s, &code, &outer,
                          prof_njs_load(w, caller + NJS_FRAME_PC)))
    {
        prof_njs_add(w, chain, 0);
    }
}


/* returns whether the outermost candidate is the call in the outer function */

static int
prof_njs_calls(const prof_njs_search_t *s, const prof_njs_code_t *code,
    const prof_njs_code_t *outer, uintptr_t call)
{
    int        found;
    uint32_t   i;
    uintptr_t  p, pc;

    for (p = s->high - sizeof(uintptr_t); p >= s->low; p -= sizeof(uintptr_t)) {

        pc = prof_arch_load(p);

        if (prof_njs_inside(code, pc) || prof_njs_inside(outer, pc)) {
            return pc == call;
        }
    }

    found = 0;

    for (i = 0; i < s->nregs; i++) {

        if (prof_njs_inside(code, s->regs[i])) {
            return 0;
        }

        found |= (s->regs[i] == call);
    }

    return found && call;
}


/*
 * Returns 0 if the frame has no candidate.  Sets *line to the line of all
 * candidates, or to 0 if they differ.  Where the interpreter calls functions,
 * it has stored the instruction in the frame.
 */

static int
prof_njs_current(prof_walk_t *w, const prof_njs_search_t *s,
    const prof_njs_code_t *code, uintptr_t frame, uint32_t *line)
{
    int        same, found;
    uint32_t   i;
    uintptr_t  p, pc;

    *line = 0;

    if (w->f.call && w->f.pc == prof_njs.call) {

        pc = prof_njs_load(w, frame + NJS_FRAME_PC);

        if (!prof_njs_inside(code, pc)) {
            return 0;
        }

        *line = prof_njs_line(w, code, pc);

        return prof_njs_has(s, pc);
    }

    same = 1;
    found = 0;

    for (i = 0; i < s->nregs; i++) {
        found |= prof_njs_inside(code, s->regs[i]);
        same &= prof_njs_agrees(w, code, s->regs[i], line);
    }

    for (p = s->low; p < s->high; p += sizeof(uintptr_t)) {

        pc = prof_arch_load(p);

        if (prof_njs_inside(code, pc)) {
            found = 1;
            same &= prof_njs_agrees(w, code, pc, line);
        }
    }

    if (!same) {
        *line = 0;
    }

    return found;
}


static int
prof_njs_has(const prof_njs_search_t *s, uintptr_t pc)
{
    uint32_t   i;
    uintptr_t  p;

    for (i = 0; i < s->nregs; i++) {
        if (s->regs[i] == pc) {
            return 1;
        }
    }

    for (p = s->low; p < s->high; p += sizeof(uintptr_t)) {
        if (prof_arch_load(p) == pc) {
            return 1;
        }
    }

    return 0;
}


/* returns whether a value is not a candidate, or has the line of the others */

static int
prof_njs_agrees(prof_walk_t *w, const prof_njs_code_t *code, uintptr_t pc,
    uint32_t *line)
{
    uint32_t  n;

    if (!prof_njs_inside(code, pc)) {
        return 1;
    }

    n = prof_njs_line(w, code, pc);

    if (*line == 0) {
        *line = n;
    }

    return n && n == *line;
}


static int
prof_njs_inside(const prof_njs_code_t *code, uintptr_t pc)
{
    return pc >= code->start && pc < code->end;
}


#endif
