
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A redirect: the calls of one function of another object that one loaded
 * object makes go to a function of the caller.  Only the object's import is
 * changed, as the loader would change it.
 *
 * Context: the only thread that calls the function through this import; not in
 * a signal.
 */


#ifndef _PROF_REDIRECT_H_INCLUDED_
#define _PROF_REDIRECT_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    uintptr_t   *at;        /* the import; NULL: not found */
    uintptr_t    own;       /* its word without the redirect */
    uintptr_t    set;       /* its word with the redirect, or 0 */
    uintptr_t    real;
    uintptr_t    start;     /* the object */
    uintptr_t    end;
    uintptr_t    inside;    /* an address in the object */
    uint32_t     relro;     /* on a page that is read-only */
    uint32_t     n;         /* imports of this name in the object */
    const char  *names[2];
} prof_redirect_t;


PROF_HIDDEN_BEGIN

/*
 * Finds the import of the function with this name in the object that contains
 * the address "inside".  The function itself is "real".  Returns PROF_ERROR if
 * there is not exactly one such import, or if it leads to another function.
 * The object must remain loaded as long as the redirect is used.
 */
int prof_redirect_find(prof_redirect_t *rd, const char *name,
    const void *inside, const void *real);

/*
 * Lets the import lead to fn, or, with NULL, to the function itself again.
 * Returns PROF_ERROR if the import cannot be written, or was changed by other
 * code.
 */
int prof_redirect_set(prof_redirect_t *rd, const void *fn);

PROF_HIDDEN_END


#endif /* _PROF_REDIRECT_H_INCLUDED_ */
