
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Logs at most one message of a type in a second.  The next message contains
 * the number of omitted messages.  All messages from the level "warn" on that a
 * request can cause are logged in this way: requests must not fill the disk.
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


/*
 * Works as ngx_log_error().  A call of this macro is a type of message: after
 * omitted messages, ", N more not logged" is added.
 */

#define ngx_http_profile_log(level, log, err, ...)                            \
    do {                                                                      \
        static ngx_http_profile_log_limit_t  ngx_http_profile_line;           \
                                                                              \
        ngx_http_profile_log_line(&ngx_http_profile_line, level, log, err,    \
                                  __VA_ARGS__);                               \
    } while (0)


PROF_HIDDEN_BEGIN

void ngx_http_profile_log_line(ngx_http_profile_log_limit_t *line,
    ngx_uint_t level, ngx_log_t *log, ngx_err_t err, const char *fmt, ...);

/*
 * Returns NGX_OK if the message is to be logged, with the number of omitted
 * messages in *omitted, or NGX_DECLINED.
 */
ngx_int_t ngx_http_profile_log_limit(ngx_http_profile_log_limit_t *line,
    ngx_uint_t *omitted);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOG_LIMIT_H_INCLUDED_ */
