
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The life of the module in the master and in the workers.
 *
 * No failure here ends nginx: the log names the missing resource, and the
 * profiler works without it. docs/architecture.md has the list.
 */


#ifndef _NGX_HTTP_PROFILE_PROCESS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_PROCESS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "core/ngx_http_profile_conf.h"


PROF_HIDDEN_BEGIN

/* finds triggers in queries, for all configurations that the process had */

extern ngx_http_profile_query_t  ngx_http_profile_query;

/* all requests are tracked, in all servers */

extern ngx_uint_t  ngx_http_profile_everywhere;


ngx_int_t ngx_http_profile_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_profile_init_process(ngx_cycle_t *cycle);
void ngx_http_profile_exit_process(ngx_cycle_t *cycle);
void ngx_http_profile_exit_master(ngx_cycle_t *cycle);

/* ngx_http_profile_module.c: completes the phase engine of a configuration */

void ngx_http_profile_init_checker(ngx_cycle_t *cycle);

/* begins the work of a process that serves requests */
void ngx_http_profile_begin_process(ngx_cycle_t *cycle);

/* ngx_http_profile_variables.c */

extern ngx_http_variable_t  ngx_http_profile_vars[];

ngx_int_t ngx_http_profile_add_variables(ngx_conf_t *cf);

/* returns whether the configuration uses a variable with a request's times */
ngx_uint_t ngx_http_profile_asks_times(ngx_cycle_t *cycle);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_PROCESS_H_INCLUDED_ */
