
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names of functions of interpreters.  A sample contains a function and a line
 * as one number, its key: a function may be freed before its samples are
 * folded, so its name is copied when the sample is taken.
 *
 * The process has one table of names, in fixed memory of which unused pages are
 * never touched.  Its entries remain while keys are held, see
 * prof_process_hold().  When a first holder begins, a table that is half full
 * is emptied.  The keys of an emptied table are unknown afterwards.
 */


#ifndef _PROF_SCRIPTS_H_INCLUDED_
#define _PROF_SCRIPTS_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"


/* longer texts lose the end of a function's name, and the start of a path */

#define PROF_SCRIPT_TEXT_MAX  200


/* a place in a script; texts are any bytes without a terminating null */

typedef struct {
    const char  *function;      /* "handler" */
    const char  *file;          /* a path, or the interpreter's name of the
                                   source: "content_by_lua(nginx.conf:9)" */
    uint32_t     function_len;  /* 0: the function has no name */
    uint32_t     file_len;      /* 0: the function is not in a script */
    uint32_t     line;          /* the line that runs or waits; 0: unknown */
    uint32_t     start_line;    /* line of the function; 0: unknown */
} prof_script_t;


PROF_HIDDEN_BEGIN

/*
 * Returns the key of a place, which is a frame of a sample or of a call tree.
 * A mark does not change a key.  The same place has the same key until the
 * table is emptied.  If the table is full, or another call adds to it, the key
 * is PROF_FRAME_SCRIPT, an unknown function, and st->lost_scripts is counted.
 * Context: any, also a signal handler that interrupts this function; several
 * threads.
 */
uintptr_t prof_script_key(const prof_script_t *s, prof_stats_t *st);

/*
 * Returns the place of a key, or PROF_ERROR if the key is unknown.  The texts
 * belong to the table.  Context: any, while keys are held.
 */
int prof_script_find(uintptr_t key, prof_script_t *s);

/*
 * empties a table that is half full; no keys are held.  Context: the thread
 * that makes captures
 */
void prof_scripts_reuse(void);

PROF_HIDDEN_END


#endif /* _PROF_SCRIPTS_H_INCLUDED_ */
