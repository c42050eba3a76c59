
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counters of a worker: profiles that it has kept, profiles that it has
 * dropped, by cause, and requests whose times did not add up.
 *
 * Context: the event loop of a worker.
 */


#ifndef _NGX_HTTP_PROFILE_LOSS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_LOSS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


typedef enum {
    NGX_HTTP_PROFILE_LOSS_NONE = 0,
    NGX_HTTP_PROFILE_LOSS_RATE,      /* more than rate= of profile_keep */
    NGX_HTTP_PROFILE_LOSS_QUEUE,     /* the queue of jobs is full */
    NGX_HTTP_PROFILE_LOSS_MEMORY,    /* no memory, or no thread for jobs */
    NGX_HTTP_PROFILE_LOSS_SLOTS,     /* more than profile_max_captures */
    NGX_HTTP_PROFILE_LOSSES
} ngx_http_profile_loss_e;


typedef struct {
    ngx_uint_t                       kept;   /* kept by profile_keep */
    ngx_uint_t                       lost[NGX_HTTP_PROFILE_LOSSES];
    ngx_uint_t                       unequal;  /* requests whose turns and
                                                  waits are not $request_time */
} ngx_http_profile_losses_t;


PROF_HIDDEN_BEGIN

/* since the start of the worker */
extern ngx_http_profile_losses_t  ngx_http_profile_losses;

/*
 * The same counters in shared memory, for metrics, which also have the counts
 * of earlier processes; or NULL.
 */
extern ngx_http_profile_losses_t  *ngx_http_profile_all_losses;

/* counts a profile that profile_keep has kept */
void ngx_http_profile_kept(void);

/* counts a request whose times did not add up */
void ngx_http_profile_unequal(void);

/* the name of each cause; the first name, of no loss, is empty */
extern ngx_str_t  ngx_http_profile_loss_names[NGX_HTTP_PROFILE_LOSSES];

/* counts a loss, and logs at most one per second */
void ngx_http_profile_lose(ngx_http_profile_loss_e cause, ngx_log_t *log);

/* the cause for a result of ngx_http_profile_job_room() */

#define ngx_http_profile_loss_of(rc)                                          \
    ((rc) == NGX_BUSY ? NGX_HTTP_PROFILE_LOSS_QUEUE                           \
                      : NGX_HTTP_PROFILE_LOSS_MEMORY)

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOSS_H_INCLUDED_ */
