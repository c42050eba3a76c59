
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Source files of functions that have no symbol.  The program that asks knows
 * the files of some symbols.  The files of other functions follow from the code
 * of the object, which holds for each program whose global functions are all
 * exported (-Wl,-E), and that was not optimized at link time:
 *
 * - A function that is not exported is a static function.  Code that calls it,
 *   jumps to it or takes its address is in the same source file.
 * - An exported variable with the address of a static function is in the same
 *   source file.
 * - The linker keeps the functions of a source file together.
 *
 * Functions that belong together are a set.  A set with two known files proves
 * that the object is of another kind.  Then no function has a file.
 *
 * Context: one thread of the helper; slow.
 */


#ifndef _PROF_UNITS_H_INCLUDED_
#define _PROF_UNITS_H_INCLUDED_


#include "base/prof_buf.h"
#include "names/prof_wire.h"
#include "profile/prof_profile.h"

#include <gelf.h>


/* larger objects have no units; bytes of code take 0.1 us each to decode */

#define PROF_UNITS_FUNCTIONS  65536
#define PROF_UNITS_CODE       (8 * 1024 * 1024)


typedef struct {
    uint64_t                start;
    uint32_t                len;
    unsigned                visible:1;  /* has an exported symbol */
    unsigned                several:1;  /* a symbol is within it */
    unsigned                ordered:1;  /* the linker has put it beside other
                                           functions of its file */
} prof_units_function_t;


/* an exported function or variable */

typedef struct {
    uint64_t                start;
    uint64_t                size;
    const char             *name;
    unsigned                function:1;
    unsigned                listed:1;   /* it has a label */
} prof_units_symbol_t;


typedef struct {
    const char             *text;
    const char             *symbols;    /* of the file: "one two"; NULL: the
                                           label is not that of a file */
    unsigned                used:1;
} prof_units_label_t;


/* functions of one file, by the root of their set */

typedef struct {
    uint32_t                last;       /* the last ordered function */
    uint32_t                label;
    uint32_t                files;      /* the number of labels of files */
    uint32_t                others;     /* and of other labels */
    uint32_t                visible;    /* the number of symbols of functions */
    uint32_t                listed;     /* and of those with a label */
} prof_units_set_t;


typedef struct {
    Elf                    *elf;

    /* functions and symbols are sorted by address */

    prof_units_function_t  *functions;
    prof_units_symbol_t    *symbols;
    prof_units_label_t     *labels;
    uint32_t                nfunctions;
    uint32_t                nsymbols;
    uint32_t                nlabels;

    /* sets of functions, symbols and labels, in this order */

    uint32_t               *parents;
    prof_units_set_t       *sets;
} prof_units_t;


PROF_HIDDEN_BEGIN

/*
 * Reads the rest of a question, and appends the answer, which is empty if
 * nothing is known.  PROF_ERROR: the question is invalid, or there is no
 * memory.  elf may be NULL.
 */
int prof_units_answer(prof_buf_t *b, prof_wire_t *w, Elf *elf);

/* joins two items, by their index in "parents": both are of the same file */
void prof_units_join(prof_units_t *u, uint32_t one, uint32_t two);

/* returns the index of the function that has the address, or PROF_NONE */
uint32_t prof_units_function(const prof_units_t *u, uint64_t address);

/*
 * prof_units_object.c
 *
 * PROF_ERROR: the functions or the symbols of the object are unknown.
 */
int prof_units_read(prof_units_t *u);

/* joins functions with the variables that refer to them */
void prof_units_data(prof_units_t *u);

/*
 * prof_units_code.c: joins functions by their code.  PROF_ERROR: the decoder
 * is not installed, or does not know the architecture.
 */
int prof_units_code(prof_units_t *u);

PROF_HIDDEN_END


#endif /* _PROF_UNITS_H_INCLUDED_ */
