
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What became of the latest profiles, for readers who ask for a profile that
 * the store does not have: it is not stored yet, it was never made, or it was
 * stored once.
 *
 * All workers share one ring of ids, also those of earlier configurations, so a
 * reload loses nothing.  A newer id replaces the oldest.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_FATE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_FATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


typedef enum {
    NGX_HTTP_PROFILE_FATE_UNKNOWN = 0,
    NGX_HTTP_PROFILE_FATE_WAITS,        /* its request runs, or its job */
    NGX_HTTP_PROFILE_FATE_STORED,
    NGX_HTTP_PROFILE_FATE_NEVER
} ngx_http_profile_fate_e;


PROF_HIDDEN_BEGIN

/* makes the ring, in the master; without memory each fate is unknown */
void ngx_http_profile_fate_init(void);
void ngx_http_profile_fate_close(void);

/* adds the id, which waits; the caller sets its fate later */
void ngx_http_profile_fate_add(u_char *id);

/* context: also a thread */
void ngx_http_profile_fate_set(u_char *id, ngx_http_profile_fate_e fate);

ngx_http_profile_fate_e ngx_http_profile_fate(ngx_str_t *id);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_FATE_H_INCLUDED_ */
