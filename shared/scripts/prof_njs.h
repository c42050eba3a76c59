
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The engine of njs.  A call of a function of a script runs njs's interpreter
 * once more, so each frame of the interpreter's code runs one function, which
 * stands before the interpreter's frame on a stack.  The unwinder follows the
 * frames of njs by their unwind information.
 *
 * njs calls its interpreter with a VM, which has the innermost frame of the
 * script:
 *
 *     VM        codes     the code of all functions: name, file, lines
 *               active    the innermost frame that runs code of a script
 *     frame     pc        where the frame called another one, if it did
 *               function  -> lambda -> start of its code; NULL: code outside of
 *                         functions
 *               previous  also a frame of a function in C, or of a call whose
 *                         arguments are not complete
 *
 * The current instruction is in a register of the interpreter.
 */


#ifndef _PROF_NJS_H_INCLUDED_
#define _PROF_NJS_H_INCLUDED_


#include "base/prof_base.h"
#include "scripts/prof_memory.h"
#include "scripts/prof_scripts.h"
#include "unwind/prof_walk.h"


/*
 * Offsets that are the same in all known versions: njs_arr_t, njs_str_t,
 * njs_native_frame_t, njs_vm_code_t and njs_vm_line_num_t of njs.  attach()
 * verifies them.
 */

#define NJS_ARR_START       0
#define NJS_ARR_ITEMS       8

#define NJS_STR_LENGTH      0
#define NJS_STR_START       8

#define NJS_FRAME_PC        8
#define NJS_FRAME_FUNCTION  16
#define NJS_FRAME_PREVIOUS  24

#define NJS_CODE_START      0
#define NJS_CODE_END        8
#define NJS_CODE_FILE       16
#define NJS_CODE_NAME       32
#define NJS_CODE_LINES      48
#define NJS_CODE_SIZE       56

#define NJS_LINE_SIZE       8       /* the offset of an instruction, its line */


/* a register of the interpreter that callees preserve */

typedef enum {
    PROF_NJS_FP = 0,
    PROF_NJS_AUX,
    PROF_NJS_OTHER              /* the unwind tables do not follow it */
} prof_njs_register_e;


typedef struct {
    uintptr_t            start;     /* the interpreter */
    uintptr_t            end;
    uintptr_t            call;      /* the return address of calls of functions
                                       of scripts, if there is only one */
    uintptr_t            main;      /* njs_vm_start(), which runs the code that
                                       is outside of functions */
    uintptr_t            main_end;
    prof_njs_register_e  vm;        /* where the interpreter has the VM */

    /* offsets in the VM */

    uint32_t             self;      /* a word with the address of the VM */
    uint32_t             active;
    uint32_t             codes;

    /* offsets in other structures */

    uint32_t             before;    /* of the previous active frame in a frame
                                       of a function of a script */
    uint32_t             native;    /* of a byte that is set in frames of
                                       functions in C */
    uint32_t             lambda;    /* in a function */
    uint32_t             code;      /* of the start of the code in a lambda */

    uint32_t             items;     /* the bits of the number of items */
    uint32_t             outside;   /* code outside of functions has the right
                                       lines */
} prof_njs_t;


/* the code of one function */

typedef struct {
    uintptr_t            start;
    uintptr_t            end;
    uintptr_t            entry;     /* njs_vm_code_t; 0: unknown code */
} prof_njs_code_t;


PROF_HIDDEN_BEGIN

/* written by attach(), before a snapshot has the engine */
extern prof_njs_t  prof_njs;

/* of prof_engine_code_t; context: signal handler */
int prof_njs_frame(prof_walk_t *w);

/* context of the functions from here on: signal handler */

/* returns the word at the address; 0 if the word cannot be read */
uintptr_t prof_njs_load(prof_walk_t *w, uintptr_t addr);

/* returns whether the address is that of a VM */
int prof_njs_is_vm(prof_walk_t *w, uintptr_t vm);

/*
 * Returns the VM of the current frame, of the interpreter, if it is in an
 * unknown register; or 0.
 */
uintptr_t prof_njs_find_vm(prof_walk_t *w);

/* returns the active frame that called this one, or 0 */
uintptr_t prof_njs_before(prof_walk_t *w, uintptr_t frame);

/* finds the code of a frame of a script; "entry" is 0 for unknown code */
void prof_njs_code(prof_walk_t *w, uintptr_t vm, uintptr_t frame,
    prof_njs_code_t *code);

/* returns the line of an instruction of the code, or 0 if it is unknown */
uint32_t prof_njs_line(prof_walk_t *w, const prof_njs_code_t *code,
    uintptr_t pc);

/*
 * Returns the key of a line of the code, or 0 if the texts of the code cannot
 * be read.  A line of 0 is unknown.
 */
uintptr_t prof_njs_place(prof_walk_t *w, const prof_njs_code_t *code,
    uint32_t line);

PROF_HIDDEN_END


#endif /* _PROF_NJS_H_INCLUDED_ */
