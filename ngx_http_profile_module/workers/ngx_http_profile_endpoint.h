
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures of an endpoint: all requests, or a number of requests, of a URI
 * prefix, a server, a location.  Each request is captured as a request with a
 * trigger, but its response is sent unchanged.  When a request ends, a job
 * merges its profile into the profile of the capture.
 *
 * Requests that would make the capture cost more than a tenth of the time are
 * only counted.  The time includes that of the jobs.  Requests whose jobs would
 * wait behind too many others are only counted, too.
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

#include "workers/ngx_http_profile_sum.h"


#define NGX_HTTP_PROFILE_REQUESTS_MAX  100000

/* ms, the default time of a capture of a number of requests */
#define NGX_HTTP_PROFILE_REQUESTS_MSEC  60000

/* maximum number of requests per worker whose times are listed */
#define NGX_HTTP_PROFILE_TIMES_MAX     10000


typedef struct ngx_http_profile_endpoint_s  ngx_http_profile_endpoint_t;


PROF_HIDDEN_BEGIN

/*
 * Starts a capture.  The first "traces" requests have their traces as labels.
 * Returns NULL with errno NGX_EBUSY if too many captures run, and NULL with
 * another errno if memory is short.
 */
ngx_http_profile_endpoint_t *ngx_http_profile_endpoint_create(
    ngx_http_profile_filter_t *filter, prof_capture_conf_t *conf,
    ngx_uint_t traces);

/* returns whether the capture has all its requests */
ngx_uint_t ngx_http_profile_endpoint_full(ngx_http_profile_endpoint_t *ep);

/* ends the capture; the caller owns the sum of its profiles */
ngx_http_profile_sum_t *ngx_http_profile_endpoint_finish(
    ngx_http_profile_endpoint_t *ep);
void ngx_http_profile_endpoint_cancel(ngx_http_profile_endpoint_t *ep);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ENDPOINT_H_INCLUDED_ */
