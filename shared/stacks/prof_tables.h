
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The unwind tables of the process: the current snapshot.  All code that takes
 * stacks uses them.
 *
 * Ownership: the tables belong to this file.  Code that walks with a snapshot
 * that may be renewed at the same time holds it (prof_unwind_hold()).
 * Context: not in a signal; one thread, which also makes captures.
 */


#ifndef _PROF_TABLES_H_INCLUDED_
#define _PROF_TABLES_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_unwind.h"


PROF_HIDDEN_BEGIN

/*
 * Builds the unwind tables of all loaded objects.  The parent of all processes
 * that will be profiled calls this function, so these processes share the
 * memory of the tables.  A further call renews the tables if an object was
 * loaded or unloaded since.  Returns PROF_OK, or PROF_ERROR if memory is short
 * and there are no older tables.  Learns the layout of interpreters in child
 * processes, which may take some ms.  Context: not in a signal; one thread,
 * which also makes captures.
 */
int prof_process_init(void);
void prof_process_done(void);

/*
 * Works as prof_process_init(), but makes no child processes, and returns the
 * tables.  Returns the old tables if memory is short, or NULL if there are no
 * tables.
 */
const prof_unwind_t *prof_process_refresh(void);

/* returns the current tables, not renewed, or NULL if there are no tables */
const prof_unwind_t *prof_process_unwind(void);

/* returns the current snapshot, which the caller releases; any thread */
const prof_unwind_t *prof_process_unwind_take(void);

/*
 * Between these calls the tables keep the data of unloaded objects, so that
 * their addresses have names, and keys of script frames are valid.  Context of
 * prof_process_release(): any thread.
 */
void prof_process_hold(void);
void prof_process_release(void);

/*
 * Sets a function that is called with 1 before tables are made, and with 0
 * afterwards, because making tables allocates memory.
 */
void prof_process_observe(void (*observer)(int begins));

PROF_HIDDEN_END


#endif /* _PROF_TABLES_H_INCLUDED_ */
