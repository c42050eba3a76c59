
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Culprits in a profile: which runs kept the worker busy while a request could
 * run.
 *
 * Context: any thread.
 */


#ifndef _PROF_TURNS_CULPRITS_H_INCLUDED_
#define _PROF_TURNS_CULPRITS_H_INCLUDED_


#include "profile/prof_profile.h"
#include "turns/prof_turns.h"


/* frames below "[waiting]" that begin with this text are divided */
#define PROF_TURNS_BUSY  "worker busy with"

/* bytes of the name of a culprit, with its end */
#define PROF_TURNS_NAME  512

/* writes the name of run number "run" of the copy */
typedef void (*prof_turns_name_pt)(void *data, size_t run,
    char name[PROF_TURNS_NAME]);


PROF_HIDDEN_BEGIN

/*
 * Divides the time in which the worker was busy among the runs of the copy.
 * The parts add up to the time exactly.  The profile is that of one request,
 * and complete.  Returns PROF_OK, or PROF_ERROR if memory is short; then its
 * timeline is the same as before.
 */
int prof_turns_culprits(prof_profile_t *p, const prof_turns_copy_t *copy,
    prof_turns_name_pt name, void *data);

PROF_HIDDEN_END


#endif /* _PROF_TURNS_CULPRITS_H_INCLUDED_ */
