
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directive "profile_redact": hides values of arguments where profiles,
 * pages and logs show a request's URI.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_REDACT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_REDACT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"


PROF_HIDDEN_BEGIN

/* the default: hides arguments whose names contain words of secrets */
extern ngx_array_t  ngx_http_profile_redact_words;

char *ngx_http_profile_redact_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Hides the values of arguments with secret names, and with those that the
 * request's location lists.  The text is a URI or a request line.  If a value
 * is hidden, *text then refers to a copy, which the function returns and the
 * caller frees by ngx_free().  Otherwise returns NULL.  If memory is short,
 * returns NULL, and *text ends before the arguments.  The pool of the request
 * may already be destroyed.
 */
u_char *ngx_http_profile_redact(ngx_http_request_t *r, ngx_str_t *text);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_REDACT_H_INCLUDED_ */
