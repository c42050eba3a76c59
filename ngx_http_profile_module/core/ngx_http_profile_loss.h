
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Profiles that a worker has kept, and those that it did not make because
 * something is limited: by cause.
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
    NGX_HTTP_PROFILE_LOSS_RATE,      /* of profile_keep */
    NGX_HTTP_PROFILE_LOSS_QUEUE,     /* full of jobs */
    NGX_HTTP_PROFILE_LOSS_MEMORY,    /* none, or no thread */
    NGX_HTTP_PROFILE_LOSS_SLOTS,     /* of profile_max_captures */
    NGX_HTTP_PROFILE_LOSSES
} ngx_http_profile_loss_e;


typedef struct {
    ngx_uint_t                       kept;   /* by profile_keep */
    ngx_uint_t                       lost[NGX_HTTP_PROFILE_LOSSES];
} ngx_http_profile_losses_t;


PROF_HIDDEN_BEGIN

/* since the worker's start */
extern ngx_http_profile_losses_t  ngx_http_profile_losses;

/* a word for each cause, empty for none */
extern ngx_str_t  ngx_http_profile_loss_names[NGX_HTTP_PROFILE_LOSSES];

/* counts one, and logs one in a second */
void ngx_http_profile_lose(ngx_http_profile_loss_e cause, ngx_log_t *log);

/* the cause, of what ngx_http_profile_job_room() returned */

#define ngx_http_profile_loss_of(rc)                                          \
    ((rc) == NGX_BUSY ? NGX_HTTP_PROFILE_LOSS_QUEUE                           \
                      : NGX_HTTP_PROFILE_LOSS_MEMORY)

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOSS_H_INCLUDED_ */
