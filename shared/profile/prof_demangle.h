
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Readable names of C++ and Rust functions.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_DEMANGLE_H_INCLUDED_
#define _PROF_DEMANGLE_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/* tells whether the name is in an encoding of C++ or Rust */
int prof_demangle_is_mangled(const char *name);

/*
 * Replaces *name, which is malloc()ed, by its readable form, if it is mangled.
 * What cannot be read becomes "[mangled] _Z...": a viewer that demangles
 * names itself must not meet a raw one (speedscope's importer never ends on
 * them when WebAssembly is forbidden by a content security policy).
 * Returns PROF_OK, or PROF_ERROR when memory is short (*name is unchanged).
 */
int prof_demangle(char **name);

PROF_HIDDEN_END


#endif /* _PROF_DEMANGLE_H_INCLUDED_ */
