
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Whether a process that shared memory names is still there.  A process id
 * alone does not tell: another process may have it by now.  So a process is
 * known by its id and by when it was started.
 *
 * The memory is shared by one master and its children, which see the same
 * process ids.
 */


#ifndef _NGX_HTTP_PROFILE_ALIVE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ALIVE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


PROF_HIDDEN_BEGIN

/* the calling process, never 0 */
uint64_t ngx_http_profile_alive_self(void);

/* without /proc every process of that id counts; 0 is nobody */
ngx_uint_t ngx_http_profile_alive(uint64_t process);

PROF_HIDDEN_END


/* the id in it */

#define ngx_http_profile_alive_pid(process)  ((uint32_t) (process))


#endif /* _NGX_HTTP_PROFILE_ALIVE_H_INCLUDED_ */
