
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The helper process, which knows debugging information: files, lines,
 * inlined functions, and names that an object's own symbol tables lack.  It
 * reads what may be hostile, so that this process need not: whatever happens
 * to the helper, only names are missing.
 *
 * There is at most one helper.  It is started when it is needed, stays for
 * some seconds to answer the next question, and ends with its socket.
 *
 * Context: any thread, one at a time (prof_symbolize.c has the lock); not in a
 * signal; slow.
 */


#ifndef _PROF_HELPER_H_INCLUDED_
#define _PROF_HELPER_H_INCLUDED_


#include "base/prof_base.h"
#include "names/prof_names.h"
#include "profile/prof_profile.h"


/* for one object, and for all of a profile, ns */

#define PROF_HELPER_OBJECT_TIME   1000000000
#define PROF_HELPER_TIME          2000000000

/* more for both, when debuginfod servers may be asked */

#define PROF_HELPER_FETCH_TIME    5000000000

/* a helper that does not work is not started again for that long, ns */

#define PROF_HELPER_PAUSE         60000000000


/* the answer for the i-th address; all memory of name is the caller's */

typedef int (*prof_helper_pt)(void *data, uint32_t i, const prof_name_t *name);


typedef struct {
    const prof_profile_object_t  *object;
    const char                   *debug_root;
    const prof_name_t            *names;    /* pc, function; name: what the
                                               object's own tables say */
    uint32_t                      n;
    uint64_t                      deadline;

    prof_helper_pt                answer;   /* PROF_OK or PROF_ERROR */
    void                         *data;
} prof_helper_question_t;


PROF_HIDDEN_BEGIN

/* ns after now until which a profile may wait for names */
uint64_t prof_helper_time(void);

/*
 * PROF_OK, also when no helper is configured; PROF_LIMIT: the helper failed,
 * maybe after some answers; or PROF_ERROR: memory is short.
 */
int prof_helper_ask(const prof_helper_question_t *q);

/* ends the helper, if there is one */
void prof_helper_done(void);

PROF_HIDDEN_END


#endif /* _PROF_HELPER_H_INCLUDED_ */
