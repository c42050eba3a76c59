
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The engine of Perl.  Perl interprets all functions of a script in one loop,
 * which calls one function in C for each operation.  A stack shows the current
 * statement, with the function in Perl that contains it, between the loop and
 * the function in C.
 *
 * The unwinder follows Perl's own frames by their unwind information.
 */


#ifndef _PROF_PERL_H_INCLUDED_
#define _PROF_PERL_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_walk.h"


/*
 * Offsets in structures of Perl, by the names of their members, which are in
 * intrpvar.h, op.h, cop.h, sv.h, cv.h, gv.h and hv.h of Perl 5.36 to 5.42 with
 * threads on 64-bit systems.  attach() verifies all of them.
 */

typedef struct {
    uint32_t    curcop;         /* struct interpreter: the statement */
    uint32_t    curstackinfo;
    uint32_t    op_ppaddr;      /* the function in C that runs a statement */
    uint32_t    cop_line;
    uint32_t    cop_file;
    uint32_t    si_cxstack;     /* struct stackinfo: blocks that have begun */
    uint32_t    si_prev;
    uint32_t    si_cxix;        /* the innermost block, or -1 */
    uint32_t    cx_size;        /* struct context: a block */
    uint32_t    cx_type;
    uint32_t    cx_cv;          /* the function */
    uint32_t    sv_any;         /* struct sv: the rest of a value */
    uint32_t    sv_flags;
    uint32_t    cv_gv;          /* struct xpvcv: the name, or its symbol */
    uint32_t    cv_flags;
    uint32_t    gv_name;        /* struct xpvgv */
    uint32_t    hek_len;        /* struct hek: a name */
    uint32_t    hek_key;
} prof_perl_layout_t;


/*
 * While Perl compiles code, the statement is a part of the interpreter, which
 * has about this size.
 */

#define PERL_INTERPRETER   3768

#define PERL_CX_TYPE_MASK  0xf
#define PERL_CX_TYPE_SUB   9    /* the body of a function */

#define PERL_SV_TYPE_MASK  0xff
#define PERL_SV_TYPE_GV    9
#define PERL_SV_TYPE_CV    13

#define PERL_CV_NAMED      0x8000


typedef struct {
    uintptr_t   interpreter;
    uintptr_t   nextstate;      /* the functions that run a statement */
    uintptr_t   dbstate;
    uintptr_t   start;          /* code of the loop */
    uintptr_t   end;
} prof_perl_t;


PROF_HIDDEN_BEGIN

/* written by attach(), before a snapshot has the engine */
extern prof_perl_t  prof_perl;

/* only a test changes it */
extern prof_perl_layout_t  prof_perl_at;

/* of prof_engine_code_t; context: signal handler */
int prof_perl_frame(prof_walk_t *w);

PROF_HIDDEN_END


#endif /* _PROF_PERL_H_INCLUDED_ */
