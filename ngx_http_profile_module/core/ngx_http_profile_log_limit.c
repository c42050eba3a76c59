
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Limits messages that clients or a full disk could cause many times.
 */


#include "core/ngx_http_profile_log_limit.h"


ngx_int_t
ngx_http_profile_log_limit(ngx_http_profile_log_limit_t *line,
    ngx_uint_t *omitted)
{
    ngx_atomic_uint_t  n, now, last;

    now = ngx_time();
    last = line->last;

    if (last == now || !ngx_atomic_cmp_set(&line->last, last, now)) {
        (void) ngx_atomic_fetch_add(&line->omitted, 1);
        return NGX_DECLINED;
    }

    do {
        n = line->omitted;
    } while (!ngx_atomic_cmp_set(&line->omitted, n, 0));

    *omitted = n;

    return NGX_OK;
}


void
ngx_http_profile_log_line(ngx_http_profile_log_limit_t *line,
    ngx_uint_t level, ngx_log_t *log, ngx_err_t err, const char *fmt, ...)
{
    u_char      *p;
    va_list      args;
    ngx_uint_t   omitted;
    u_char       text[NGX_MAX_ERROR_STR];

    if (ngx_http_profile_log_limit(line, &omitted) != NGX_OK) {
        return;
    }

    va_start(args, fmt);
    p = ngx_vslprintf(text, text + NGX_MAX_ERROR_STR, fmt, args);
    va_end(args);

    if (omitted) {
        p = ngx_slprintf(p, text + NGX_MAX_ERROR_STR, ", %ui more not logged",
                         omitted);
    }

    ngx_log_error(level, log, err, "%*s", (size_t) (p - text), text);
}
