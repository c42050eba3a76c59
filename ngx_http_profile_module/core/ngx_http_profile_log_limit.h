
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Logs at most one message of a type in a second.  The next message contains
 * the number of omitted messages.
 *
 * Context: any thread.
 */


#ifndef _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


/* one for each type of message; the caller sets it to zero */

typedef struct {
    ngx_atomic_t  last;      /* the second of the last message */
    ngx_atomic_t  omitted;   /* omitted messages since then */
} ngx_http_profile_log_limit_t;


PROF_HIDDEN_BEGIN

/*
 * Returns NGX_OK if the message is to be logged, with the number of omitted
 * messages in *omitted, or NGX_DECLINED.
 */
ngx_int_t ngx_http_profile_log_limit(ngx_http_profile_log_limit_t *line,
    ngx_uint_t *omitted);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_ */
