
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Readable names of C++ and Rust functions.
 *
 * Context: one thread; not in a signal.
 */


#ifndef _PROF_DEMANGLE_H_INCLUDED_
#define _PROF_DEMANGLE_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/*
 * Replaces a mangled *name, which is malloc()ed, by its readable form, or by
 * "[mangled] _Z..." if the encoding is unknown.  Returns PROF_OK, or
 * PROF_ERROR if memory is short (*name is unchanged).
 */
int prof_demangle(char **name);

PROF_HIDDEN_END


#endif /* _PROF_DEMANGLE_H_INCLUDED_ */
