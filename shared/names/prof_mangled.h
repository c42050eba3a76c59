
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names in an encoding of C++ or Rust.  A viewer that decodes names itself
 * must not get an encoded name: speedscope's importer never ends on such names
 * if a content security policy forbids WebAssembly.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_MANGLED_H_INCLUDED_
#define _PROF_MANGLED_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/* returns whether the name is in an encoding of C++ or Rust */
int prof_mangled(const char *name);

/*
 * Replaces an encoded *name, which is malloc()ed, by "[mangled] _Z...".
 * Returns PROF_OK, or PROF_ERROR if memory is short (*name is unchanged).
 */
int prof_mangled_prefix(char **name);

PROF_HIDDEN_END


#endif /* _PROF_MANGLED_H_INCLUDED_ */
