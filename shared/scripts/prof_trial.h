
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A trial: code that runs an interpreter to learn its layout.  All machines of
 * an interpreter may share state.  So a trial runs in a child process, which is
 * a copy of this one and ends with the trial.  This process only gets the
 * result.
 *
 * The server does not notice the child: its end sends no signal, and waitpid()
 * finds it only if a caller asks for such children.  The child has no
 * descriptor of the server, and a fault in it leaves no message and no core.
 *
 * Only the thread that makes the trial exists in the child.  If another thread
 * held a lock of the allocator, the trial does not end, and is killed.
 */


#ifndef _PROF_TRIAL_H_INCLUDED_
#define _PROF_TRIAL_H_INCLUDED_


#include "base/prof_base.h"


/* maximum size of a result, in bytes */
#define PROF_TRIAL_RESULT  256

/* the longest time of a trial, in ms */
#define PROF_TRIAL_TIME    2000


PROF_HIDDEN_BEGIN

/*
 * Calls trial(data) in a child process.  If it returns NULL, copies *result of
 * the child to *result of this process, and returns NULL.  Otherwise returns
 * why there is no result, a static text.  Context: not in a signal.
 */
const char *prof_trial(const char *(*trial)(void *data), void *data,
    void *result, size_t size);

PROF_HIDDEN_END


#endif /* _PROF_TRIAL_H_INCLUDED_ */
