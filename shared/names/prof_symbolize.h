
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * prof_profile_symbolize() with another directory of debug files.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_SYMBOLIZE_H_INCLUDED_
#define _PROF_SYMBOLIZE_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


PROF_HIDDEN_BEGIN

int prof_symbolize(prof_profile_t *p, const char *debug_root);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOLIZE_H_INCLUDED_ */
