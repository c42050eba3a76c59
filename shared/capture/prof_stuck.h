
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A capture of the main thread by another thread of the process.  It needs
 * nothing from the main thread, which may run one event for long, or for ever.
 * The timers, the ring and the tables of the capture are its own.  Other
 * threads are not captured.
 *
 * Context: one thread that is not the main thread and blocks all signals.
 */


#ifndef _PROF_STUCK_H_INCLUDED_
#define _PROF_STUCK_H_INCLUDED_


#include "base/prof_base.h"
#include "capture/prof_capture.h"


typedef struct prof_stuck_s  prof_stuck_t;


PROF_HIDDEN_BEGIN

/* returns NULL and sets *err if memory, timers or unwind tables are missing */
prof_stuck_t *prof_stuck_create(const prof_capture_conf_t *conf,
    const char **err);

/* empties the ring; called at least every second */
void prof_stuck_drain(prof_stuck_t *s);

/*
 * Ends the capture.  Returns its profile as a draft, which the caller owns, or
 * NULL if memory is short.
 */
prof_profile_t *prof_stuck_finish(prof_stuck_t *s, const char *title);

PROF_HIDDEN_END


#endif /* _PROF_STUCK_H_INCLUDED_ */
