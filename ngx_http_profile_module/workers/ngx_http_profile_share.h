
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of this room share: the share of a worker in a
 * capture of workers, and the labels of its samples.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_SHARE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_SHARE_H_INCLUDED_


#include "workers/ngx_http_profile_inbox.h"


/* the maximum length of the archive of a share, in bytes */
#define NGX_HTTP_PROFILE_SHARE_MAX    (64 * 1024 * 1024)

/*
 * The maximum number of shares in which a worker samples all threads.  The
 * continuous profile needs two more captures when a slice ends.
 */
#define NGX_HTTP_PROFILE_SHARES       (PROF_PROCESS_CAPTURES - 2)

/* memory of one worker's share, in bytes */
#define NGX_HTTP_PROFILE_SHARE_MEMORY  (16 * 1024 * 1024)


PROF_HIDDEN_BEGIN

/* ngx_http_profile_share.c */

/* starts a share, and takes over the descriptor; reports a failure */
void ngx_http_profile_share_order(ngx_http_profile_message_t *m, int fd);
void ngx_http_profile_share_cancel(ngx_http_profile_message_t *m);

/*
 * ngx_http_profile_waiting.c: divides the idle time of the capture between what
 * the accounted requests wait for now; called directly before its end
 */
void ngx_http_profile_waiting(prof_capture_t *c, uint64_t begin);

/* ngx_http_profile_labels.c: the location and the trace of samples */

ngx_int_t ngx_http_profile_labels_begin(ngx_uint_t traced);
void ngx_http_profile_labels_end(ngx_uint_t traced);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_SHARE_H_INCLUDED_ */
