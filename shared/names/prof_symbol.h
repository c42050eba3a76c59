
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


/* an address whose name is looked up; addresses are link-time addresses */

typedef struct {
    uint64_t      pc;           /* inside of the instruction */
    uint64_t      function;     /* start of the unwind entry, 0: unknown */
    uint64_t      len;          /* of the unwind entry, else of the symbol */
    uint32_t      interrupted;  /* the thread was interrupted at the address */
    prof_call_t   call;
    char         *name;         /* the symbol, owned by the caller; NULL: no
                                   symbol fits exactly */
    uint64_t      value;        /* start of the symbol that gave the name */
    uint32_t      rank;         /* rank of this symbol among the fitting
                                   ones */
} prof_symbol_t;


PROF_HIDDEN_BEGIN

/*
 * Names the addresses for which the object's own file has a symbol that fits
 * exactly, and finds the system calls of the interrupted addresses.  The array
 * must be sorted by pc, and all results must be 0.  Returns PROF_OK, also if
 * the file cannot be used, or PROF_ERROR if memory is short.
 */
int prof_symbol_find(const prof_profile_object_t *o, prof_symbol_t *syms,
    uint32_t n);

/*
 * Returns in *identity the build-id of the object, or without a build-id the
 * file that is still mapped.  Returns PROF_ERROR if the object has neither.
 */
int prof_symbol_identity(const prof_profile_object_t *o, char *identity,
    size_t size);

/*
 * Returns in *path the separate debug file of an object.  Returns PROF_ERROR
 * if the object has no build-id, or if the path is too long.
 */
int prof_symbol_debug_path(const prof_profile_object_t *o,
    const char *debug_root, char *path, size_t size);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOL_H_INCLUDED_ */
