
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The run queue's clock: how long a thread was ready to run, but had no
 * processor.  With the CPU clock it tells the two reasons apart for which a
 * thread does not run: it has no processor, or it is blocked in a call.
 *
 * Context: one thread of the process, the one that opened the clock; not in a
 * signal.
 */


#ifndef _PROF_QUEUE_H_INCLUDED_
#define _PROF_QUEUE_H_INCLUDED_


#include "base/prof_base.h"


/* the clock cannot be read */
#define PROF_QUEUE_UNKNOWN  UINT64_MAX


PROF_HIDDEN_BEGIN

/*
 * Opens the clock of the calling thread, and closes that of another process or
 * thread.  If it cannot be opened, prof_queue_now() returns
 * PROF_QUEUE_UNKNOWN.
 */
void prof_queue_open(void);

/*
 * Returns the time for which the thread has waited for a processor since it
 * began, in ns.  It is a system call that reads from /proc, without a disk: a
 * microsecond.
 */
uint64_t prof_queue_now(void);

PROF_HIDDEN_END


#endif /* _PROF_QUEUE_H_INCLUDED_ */
