
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Debug files from servers (debuginfod), if the environment names some:
 * DEBUGINFOD_URLS.
 *
 * Context: any thread; not in a signal; slow (network).
 */


#ifndef _PROF_FETCH_H_INCLUDED_
#define _PROF_FETCH_H_INCLUDED_


#include "base/prof_base.h"


/* for one file, ns; after that, no server is asked for some time */

#define PROF_FETCH_TIME   5000000000
#define PROF_FETCH_PAUSE  60000000000


PROF_HIDDEN_BEGIN

/*
 * The path of the debug file of a build-id (hex) in the cache of the client
 * library, malloc()ed; NULL if nobody has it, nobody is asked, or the library
 * is not installed.
 */
char *prof_fetch(const char *build_id);

PROF_HIDDEN_END


#endif /* _PROF_FETCH_H_INCLUDED_ */
