
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The mutex of a shared memory zone.  If a worker is killed that holds it, the
 * master unlocks it, but only in zones of its current configuration.  A worker
 * of an earlier configuration may use a zone that a reload has removed or
 * resized, so here a process that waits unlocks the mutex of a dead one.
 */


#ifndef _NGX_HTTP_PROFILE_LOCK_H_INCLUDED_
#define _NGX_HTTP_PROFILE_LOCK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


PROF_HIDDEN_BEGIN

/* called in the event loop and in threads; ngx_shmtx_unlock() unlocks */
void ngx_http_profile_lock(ngx_shmtx_t *mutex);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_LOCK_H_INCLUDED_ */
