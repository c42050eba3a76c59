
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Checks whether a process that shared memory names still exists.  Another
 * process may have its process id now.  So the id and a time together identify
 * a process.
 *
 * One master and its children share the memory.  They see the same process
 * ids, and have the same session id.  A process that has got the process id of
 * an earlier one, and has this session id, knows that the earlier one ended.
 */


#ifndef _NGX_HTTP_PROFILE_ALIVE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ALIVE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


PROF_HIDDEN_BEGIN

/* returns the identity of the calling process: id and a time; never 0 */
uint64_t ngx_http_profile_alive_self(void);

/*
 * Returns 1 if the process with this identity exists, or a process of the same
 * session has got its id; the process that has got it returns 0.  Returns 0
 * for the identity 0.
 */
ngx_uint_t ngx_http_profile_alive(uint64_t process);

PROF_HIDDEN_END


/* returns the process id in an identity */

#define ngx_http_profile_alive_pid(process)  ((uint32_t) (process))


#endif /* _NGX_HTTP_PROFILE_ALIVE_H_INCLUDED_ */
