
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Function names from the symbol tables of an object's own file.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_SYMBOL_H_INCLUDED_
#define _PROF_SYMBOL_H_INCLUDED_


#include "base/prof_base.h"
#include "names/prof_names.h"
#include "profile/prof_profile.h"


#define PROF_SYMBOL_DEBUG_ROOT  "/usr/lib/debug"


/* an address without a name yet; link-time addresses */

typedef struct {
    uint64_t      pc;           /* inside of the instruction */
    uint64_t      function;     /* start of the unwind entry, 0: unknown */
    uint64_t      len;          /* of the unwind entry; without one that of
                                   the symbol */
    uint32_t      interrupted;  /* the address is that of the interrupted
                                   instruction */
    prof_call_t   call;
    char         *name;         /* the symbol, owned by the caller; NULL: no
                                   symbol fits exactly */
    uint64_t      value;        /* start of the symbol that gave the name */
    uint32_t      rank;         /* rank of this symbol among the fitting
                                   ones */
} prof_symbol_t;


PROF_HIDDEN_BEGIN

/*
 * Names those of the n addresses for which the object's own file has a symbol
 * that fits exactly, and finds the system calls of the interrupted ones.  The
 * array must be sorted by pc, and all results must be 0.  Returns PROF_OK, also
 * if the file cannot be used, or PROF_ERROR if there is no memory.
 */
int prof_symbol_find(const prof_profile_object_t *o, prof_symbol_t *syms,
    uint32_t n);

/*
 * Returns the identity of the object: its build-id, or without one the file
 * that is still mapped.  PROF_ERROR: there is no such file.
 */
int prof_symbol_identity(const prof_profile_object_t *o, char *identity,
    size_t size);

/*
 * Returns the path of the separate debug file of an object.  PROF_ERROR: the
 * object has no build-id, or the path is too long.
 */
int prof_symbol_debug_path(const prof_profile_object_t *o,
    const char *debug_root, char *path, size_t size);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOL_H_INCLUDED_ */
