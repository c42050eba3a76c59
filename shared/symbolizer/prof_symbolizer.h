
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The helper process for names.  Only this program uses elfutils, and only it
 * reads debug files.
 *
 * The helper trusts neither files nor questions.  Limits that it cannot raise
 * (prof_symbolizer_sandbox.c) and an alarm bound its resources.
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


/*
 * Seconds for one question: of processor time, so that a busy machine does not
 * count; and until this process ends, because its worker may have lost it.
 */

#define PROF_SYMBOLIZER_CPU    1
#define PROF_SYMBOLIZER_TIME   60

/* seconds for a file from a debuginfod server */

#define PROF_SYMBOLIZER_FETCH  5

/* the helper ends after this number of seconds without a question */

#define PROF_SYMBOLIZER_IDLE   10


/* a question */

typedef struct {
    uint64_t        dev;
    uint64_t        ino;
    const char     *build_id;       /* NULL: dev and ino identify the file */
    const char     *path;
    const char     *debug_root;
    uint32_t        n;
    prof_symbol_t  *syms;           /* this struct owns the names */
    const char    **own;            /* names, or NULL */
    uint32_t        more;           /* 1: there are other symbols than the
                                       object's own, or lines */
} prof_symbolizer_question_t;


/* an object, and the files that describe it */

typedef struct {
    Dwfl           *dwfl;
    Dwfl_Module    *module;
    char           *path;           /* libdwfl searches debug files here */
} prof_symbolizer_object_t;


PROF_HIDDEN_BEGIN

/*
 * Returns whether debuginfod servers are asked for debug files: only if the
 * environment names servers.
 */
int prof_symbolizer_fetches(void);

/* limits all later work; returns PROF_ERROR if the limits cannot be set */
int prof_symbolizer_sandbox(int fetches);

/* returns PROF_ERROR if no file has this build-id */
int prof_symbolizer_open(prof_symbolizer_object_t *o,
    const prof_symbolizer_question_t *q);
void prof_symbolizer_close(prof_symbolizer_object_t *o);

/* looks up the names of symbols for all addresses of a question, and "more" */
int prof_symbolizer_symbols(prof_symbolizer_object_t *o,
    prof_symbolizer_question_t *q);

/*
 * Appends the answer for one address, without its index.  The name is that of
 * a symbol, or NULL.
 */
void prof_symbolizer_lines(prof_buf_t *b, prof_symbolizer_object_t *o,
    uint64_t pc, const char *name);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOLIZER_H_INCLUDED_ */
