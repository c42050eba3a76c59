
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the current statement and its function in the memory of an interpreter.
 * This memory may be freed or changed at any time, so each word is checked
 * before the handler reads the word.
 *
 * Context: signal handler.
 */


#include "scripts/prof_perl.h"
#include "scripts/prof_scripts.h"

#include <string.h>


#if (__x86_64__)


/* limits of a search for the function that contains a statement */

#define PROF_PERL_STACKS  4
#define PROF_PERL_BLOCKS  32


static int prof_perl_is_first(const prof_walk_t *w);
static int prof_perl_is_statement(uintptr_t cop);
static uintptr_t prof_perl_place(prof_walk_t *w, uintptr_t cop);
static uint32_t prof_perl_text(uintptr_t addr);
static uintptr_t prof_perl_function(void);
static void prof_perl_name(uintptr_t cv, prof_script_t *s);
static uintptr_t prof_perl_load(uintptr_t addr);
static uint32_t prof_perl_load32(uintptr_t addr);


/* the name of code outside of all functions */
static const char  prof_perl_main[] = "main program";

prof_perl_t  prof_perl;

prof_perl_layout_t  prof_perl_at = {
    208, 224, 16, 36, 48, 8, 16, 32, 104, 0, 72, 0, 12, 56, 92, 32, 4, 8
};


int
prof_perl_frame(prof_walk_t *w)
{
    uintptr_t  cop;

    /* the interpreter only knows the statement of its innermost loop */

    if (!prof_perl_is_first(w)) {
        return PROF_WALK_OTHER;
    }

    cop = prof_perl_load(prof_perl.interpreter + prof_perl_at.curcop);

    if (!prof_perl_is_statement(cop)) {
        return PROF_WALK_OTHER;
    }

    if (prof_walk_room(w, 1) != PROF_WALK_NEXT) {
        return PROF_WALK_TRUNCATED;
    }

    w->pcs[w->n++] = prof_perl_place(w, cop);

    return PROF_WALK_OTHER;
}


static int
prof_perl_is_first(const prof_walk_t *w)
{
    uint32_t  i;

    for (i = w->base; i < w->n; i++) {
        if (w->pcs[i] >= prof_perl.start && w->pcs[i] < prof_perl.end) {
            return 0;
        }
    }

    return 1;
}


/*
 * While Perl frees code, the current statement may be freed memory.  While Perl
 * compiles code, the current statement is a part of the interpreter's structure
 * and has the line that is being compiled.
 */

static int
prof_perl_is_statement(uintptr_t cop)
{
    uintptr_t  code;

    if (cop - prof_perl.interpreter < PERL_INTERPRETER) {
        return 1;
    }

    code = prof_perl_load(cop + prof_perl_at.op_ppaddr);

    return code && (code == prof_perl.nextstate || code == prof_perl.dbstate);
}


static uintptr_t
prof_perl_place(prof_walk_t *w, uintptr_t cop)
{
    uintptr_t      file;
    prof_script_t  s;

    memset(&s, 0, sizeof(prof_script_t));

    file = prof_perl_load(cop + prof_perl_at.cop_file);

    s.file = (const char *) file;
    s.file_len = prof_perl_text(file);
    s.line = prof_perl_load32(cop + prof_perl_at.cop_line);

    if (s.file_len == 0) {
        w->st->lost_engine++;
        return PROF_FRAME_SCRIPT;
    }

    s.function = prof_perl_main;
    s.function_len = sizeof(prof_perl_main) - 1;

    prof_perl_name(prof_perl_function(), &s);

    return prof_script_key(&s, w->st);
}


/* returns the length of a text, or 0 if it is too long or cannot be read */

static uint32_t
prof_perl_text(uintptr_t addr)
{
    uint32_t   i;
    uintptr_t  word, at;

    word = 0;

    for (i = 0; i <= PROF_SCRIPT_TEXT_MAX; i++) {
        at = addr + i;

        if (i == 0 || at % PROF_WALK_PAGE == 0) {

            if (!prof_arch_readable(at & ~(sizeof(uintptr_t) - 1))) {
                return 0;
            }
        }

        if (i == 0 || at % sizeof(uintptr_t) == 0) {
            word = prof_arch_load(at & ~(sizeof(uintptr_t) - 1));
        }

        if ((word >> 8 * (at % sizeof(uintptr_t)) & 0xff) == 0) {
            return i;
        }
    }

    return 0;
}


/* returns the innermost function in Perl, or 0 */

static uintptr_t
prof_perl_function(void)
{
    int32_t    i, n, stacks;
    uintptr_t  si, cx;

    si = prof_perl_load(prof_perl.interpreter + prof_perl_at.curstackinfo);

    for (stacks = 0; stacks < PROF_PERL_STACKS && si; stacks++) {

        i = (int32_t) prof_perl_load32(si + prof_perl_at.si_cxix);
        cx = prof_perl_load(si + prof_perl_at.si_cxstack)
             + (intptr_t) i * prof_perl_at.cx_size;

        for (n = 0; n < PROF_PERL_BLOCKS && i >= 0; n++, i--) {

            if ((prof_perl_load(cx + prof_perl_at.cx_type) & PERL_CX_TYPE_MASK)
                == PERL_CX_TYPE_SUB)
            {
                return prof_perl_load(cx + prof_perl_at.cx_cv);
            }

            cx -= prof_perl_at.cx_size;
        }

        si = prof_perl_load(si + prof_perl_at.si_prev);
    }

    return 0;
}


/* finds the name of a function, which is "__ANON__" if it has no name */

static void
prof_perl_name(uintptr_t cv, prof_script_t *s)
{
    uint32_t   len;
    uintptr_t  any, name;

    if ((prof_perl_load32(cv + prof_perl_at.sv_flags) & PERL_SV_TYPE_MASK)
        != PERL_SV_TYPE_CV)
    {
        return;
    }

    any = prof_perl_load(cv + prof_perl_at.sv_any);
    name = prof_perl_load(any + prof_perl_at.cv_gv);

    if (!(prof_perl_load32(any + prof_perl_at.cv_flags) & PERL_CV_NAMED)) {

        if ((prof_perl_load32(name + prof_perl_at.sv_flags) & PERL_SV_TYPE_MASK)
            != PERL_SV_TYPE_GV)
        {
            return;
        }

        name = prof_perl_load(prof_perl_load(name + prof_perl_at.sv_any)
                              + prof_perl_at.gv_name);
    }

    len = prof_perl_text(name + prof_perl_at.hek_key);

    if (len && len == prof_perl_load32(name + prof_perl_at.hek_len)) {
        s->function = (const char *) name + prof_perl_at.hek_key;
        s->function_len = len;
    }
}


/* returns the word at the address; 0 if the word cannot be read */

static uintptr_t
prof_perl_load(uintptr_t addr)
{
    return addr % sizeof(uintptr_t) == 0 && prof_arch_readable(addr)
           ? prof_arch_load(addr) : 0;
}


static uint32_t
prof_perl_load32(uintptr_t addr)
{
    uintptr_t  word;

    word = prof_perl_load(addr & ~(sizeof(uintptr_t) - 1));

    return (uint32_t) (word >> 8 * (addr % sizeof(uintptr_t)));
}


#endif
