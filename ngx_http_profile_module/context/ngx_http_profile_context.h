
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * profile_context: publishes the request that a worker runs, so that profilers
 * in other processes can attribute their samples to requests.
 *
 * The record of a request is part of its track.  Records are valid memory as
 * long as the worker is armed, also after the request was freed.  The work that
 * remains in the turn is still done for this request.
 *
 * Context: the event loop of a worker, unless stated otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_CONTEXT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CONTEXT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"


PROF_HIDDEN_BEGIN

/* adds the handler of the REWRITE phase; context: nginx reads its files */
ngx_int_t ngx_http_profile_context_init(ngx_conf_t *cf);

/*
 * Publishes requests from now on, or no longer.  Called when a worker starts,
 * and when a process without a master gets a configuration.
 */
void ngx_http_profile_context_open(ngx_cycle_t *cycle, ngx_uint_t on);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_CONTEXT_H_INCLUDED_ */
