
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Descriptors of a new process.
 */


#ifndef _PROF_FDS_H_INCLUDED_
#define _PROF_FDS_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/* closes all descriptors from "first" on; makes system calls only */
void prof_fds_close(int first);

PROF_HIDDEN_END


#endif /* _PROF_FDS_H_INCLUDED_ */
