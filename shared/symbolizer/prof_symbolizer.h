
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The helper process for names.  It is the only user of elfutils, and the only
 * one that reads debug files.
 *
 * It trusts neither files nor the questions.  What it may cost is bounded by
 * limits that it cannot take back (prof_symbolizer_sandbox.c), and by an alarm.
 *
 * Context: one thread.
 */


#ifndef _PROF_SYMBOLIZER_H_INCLUDED_
#define _PROF_SYMBOLIZER_H_INCLUDED_


#include "base/prof_buf.h"
#include "names/prof_names.h"
#include "names/prof_symbol.h"
#include "names/prof_wire.h"

#include <elfutils/libdwfl.h>


/* for one question, more if servers may be asked; seconds */

#define PROF_SYMBOLIZER_TIME   3
#define PROF_SYMBOLIZER_FETCH  5

/* without a question the helper ends; seconds */

#define PROF_SYMBOLIZER_IDLE   10


/* what is asked */

typedef struct {
    uint64_t        dev;
    uint64_t        ino;
    const char     *build_id;       /* NULL: the file is known by dev, ino */
    const char     *path;
    const char     *debug_root;
    uint32_t        n;
    prof_symbol_t  *syms;           /* names are owned */
    const char    **own;            /* names, or NULL */
} prof_symbolizer_question_t;


/* an object, and the files that describe it */

typedef struct {
    Dwfl           *dwfl;
    Dwfl_Module    *module;
    char           *path;           /* of debug files, for libdwfl */
} prof_symbolizer_object_t;


PROF_HIDDEN_BEGIN

/*
 * Whether servers are asked for debug files (debuginfod): the environment names
 * them.
 */
int prof_symbolizer_fetches(void);

/* limits for all that follows; PROF_ERROR: they cannot be set */
int prof_symbolizer_sandbox(int fetches);

/* PROF_ERROR: there is no file of this build */
int prof_symbolizer_open(prof_symbolizer_object_t *o,
    const prof_symbolizer_question_t *q);
void prof_symbolizer_close(prof_symbolizer_object_t *o);

/* names of symbols for all addresses of a question */
int prof_symbolizer_symbols(prof_symbolizer_object_t *o,
    prof_symbolizer_question_t *q);

/*
 * Appends the answer for one address, without its index; name is that of a
 * symbol, or NULL.
 */
void prof_symbolizer_lines(prof_buf_t *b, prof_symbolizer_object_t *o,
    uint64_t pc, const char *name);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOLIZER_H_INCLUDED_ */
