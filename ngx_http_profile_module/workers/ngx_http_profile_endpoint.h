
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures of an endpoint: all requests, or a number of requests, of a URI
 * prefix, a server, a location.  Each request is captured as a request with a
 * trigger, but its response is sent unchanged.  When a request ends, its
 * profile is merged into the profile of the capture.
 *
 * Requests that would make the capture cost more than a tenth of the time are
 * only counted.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_ENDPOINT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ENDPOINT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"
#include "workers/ngx_http_profile_inbox.h"


#define NGX_HTTP_PROFILE_REQUESTS_MAX  100000

/* ms, the default time of a capture */
#define NGX_HTTP_PROFILE_REQUESTS_MSEC  60000

/* maximum number of requests per worker whose times are listed */
#define NGX_HTTP_PROFILE_TIMES_MAX     10000


typedef struct ngx_http_profile_endpoint_s  ngx_http_profile_endpoint_t;


PROF_HIDDEN_BEGIN

/*
 * Starts a capture.  The first "traces" requests have their trace as a label.
 * Returns NULL with errno NGX_EBUSY if too many captures run, and NULL with
 * another errno if memory is short.
 */
ngx_http_profile_endpoint_t *ngx_http_profile_endpoint_create(
    ngx_http_profile_filter_t *filter, prof_capture_conf_t *conf,
    ngx_uint_t traces);

/* returns whether the capture has all its requests */
ngx_uint_t ngx_http_profile_endpoint_full(ngx_http_profile_endpoint_t *ep);

/*
 * Ends the capture.  Returns the profile, which the caller owns, or NULL if
 * memory is short.  The profile has the facts "requests", "skipped" and
 * "times"; times are in microseconds.
 */
prof_profile_t *ngx_http_profile_endpoint_finish(
    ngx_http_profile_endpoint_t *ep);
void ngx_http_profile_endpoint_cancel(ngx_http_profile_endpoint_t *ep);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ENDPOINT_H_INCLUDED_ */
