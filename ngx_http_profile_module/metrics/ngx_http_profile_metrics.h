
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Metrics: counters and histograms of all requests, by server and location, in
 * the formats of Prometheus and OpenMetrics.
 *
 * The names of servers and locations are in a directory.  The master keeps it
 * for as long as the module is configured, so a location has the same place in
 * it after a reload.  The place is the index of the location's cell in each
 * page of counters.
 *
 * A page is a piece of shared memory with one writer, which needs no lock.  The
 * worker that serves a request for metrics adds up all pages.  The master makes
 * the pages, and a process takes one of them when it starts.  A process takes
 * the page of a process that has ended, and counts on from there.  So counters
 * survive the ends of workers.  After a reload the old workers still count in
 * their pages while new workers have other pages.
 *
 * Context: the event loop of a worker, unless stated otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_METRICS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_METRICS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"


PROF_HIDDEN_BEGIN

/*
 * Makes the directory and the pages that the configuration needs.  Context: the
 * master, before it starts workers; or a process without a master.  If memory
 * is short, this is logged, and requests are not counted.
 */
void ngx_http_profile_metrics_init(ngx_cycle_t *cycle);

/* frees both; worker processes have their own mappings of the pages */
void ngx_http_profile_metrics_close(void);

/* the process takes a page, and counts requests from now on */
void ngx_http_profile_metrics_open(ngx_cycle_t *cycle);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_METRICS_H_INCLUDED_ */
