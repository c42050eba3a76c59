
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * At most one line of a kind in a second; the next one says how many were left
 * out.
 *
 * Context: any thread.
 */


#ifndef _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


/* of one kind of lines, zero at first */

typedef struct {
    ngx_atomic_t  last;      /* the second it was logged in */
    ngx_atomic_t  omitted;   /* since then */
} ngx_http_profile_log_limit_t;


PROF_HIDDEN_BEGIN

/* NGX_OK: it may be logged now, *omitted were not; or NGX_DECLINED */
ngx_int_t ngx_http_profile_log_limit(ngx_http_profile_log_limit_t *line,
    ngx_uint_t *omitted);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_ */
