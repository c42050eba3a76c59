
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
 * Offsets and flags for Perl with threads on 64-bit systems: intrpvar.h, op.h,
 * cop.h, sv.h, cv.h, gv.h and hv.h of Perl 5.36 to 5.42.
 */

#define PERL_CURCOP        208  /* struct interpreter: the statement */
#define PERL_CURSTACKINFO  224
#define PERL_INTERPRETER   3768 /* its size */

#define PERL_COP_PPADDR    16   /* struct cop: the function in C that runs it */
#define PERL_COP_LINE      36
#define PERL_COP_FILE      48

#define PERL_SI_CXSTACK    8    /* struct stackinfo: blocks that have begun */
#define PERL_SI_PREV       16
#define PERL_SI_CXIX       32   /* the innermost block, or -1 */

#define PERL_CX_SIZE       104  /* struct context: a block */
#define PERL_CX_TYPE       0
#define PERL_CX_TYPE_MASK  0xf
#define PERL_CX_TYPE_SUB   9    /* the body of a function */
#define PERL_CX_CV         72   /* the function */

#define PERL_SV_ANY        0    /* struct sv: the rest of a value */
#define PERL_SV_FLAGS      12
#define PERL_SV_TYPE_MASK  0xff
#define PERL_SV_TYPE_GV    9
#define PERL_SV_TYPE_CV    13

#define PERL_CV_GV         56   /* struct xpvcv: the name, or its symbol */
#define PERL_CV_FLAGS      92
#define PERL_CV_NAMED      0x8000

#define PERL_GV_NAME       32   /* struct xpvgv */

#define PERL_HEK_LEN       4    /* struct hek: a name */
#define PERL_HEK_KEY       8


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

/* returns whether the address is that of a statement; context: any */
int prof_perl_is_statement(uintptr_t cop);

/* of prof_engine_code_t; context: signal handler */
int prof_perl_frame(prof_walk_t *w);

PROF_HIDDEN_END


#endif /* _PROF_PERL_H_INCLUDED_ */
