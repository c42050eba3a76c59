
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The helper process that names functions: its program and its errors.
 */


#ifndef _NGX_HTTP_PROFILE_SYMBOLIZER_H_INCLUDED_
#define _NGX_HTTP_PROFILE_SYMBOLIZER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "core/ngx_http_profile_conf.h"


PROF_HIDDEN_BEGIN

/*
 * Finds the program, and makes the memory of names that all workers share;
 * called in the master, before the workers start.
 */
void ngx_http_profile_symbolizer_init(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf);

/*
 * Called when a worker starts: the first worker names what all profiles need,
 * in its idle thread.
 */
void ngx_http_profile_symbolizer_start(ngx_cycle_t *cycle);

/* logs the last error of the helper, at most once a minute */
void ngx_http_profile_symbolizer_log(ngx_log_t *log);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_SYMBOLIZER_H_INCLUDED_ */
