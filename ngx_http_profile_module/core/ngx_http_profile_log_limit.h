
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * At most one message of a kind per second.  The next message contains the
 * number of messages that were left out.
 *
 * Context: any thread.
 */


#ifndef _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


/* one for each kind of message, zeroed at first */

typedef struct {
    ngx_atomic_t  last;      /* the second of the last message */
    ngx_atomic_t  omitted;   /* messages left out since then */
} ngx_http_profile_log_limit_t;


PROF_HIDDEN_BEGIN

/* NGX_OK: log it now, *omitted messages were left out; or NGX_DECLINED */
ngx_int_t ngx_http_profile_log_limit(ngx_http_profile_log_limit_t *line,
    ngx_uint_t *omitted);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_ */
