
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The helper process reads debugging information: files, lines, inlined
 * functions, and names that are missing in an object's own symbol tables.
 * Such files may be hostile, so this process does not read them itself.  If
 * the helper fails, only names are missing.
 *
 * A helper is started on demand, waits some seconds for the next question, and
 * exits when its socket closes.  It limits its own processor time, so that it
 * is not judged by the time of a busy machine.
 *
 * Names that a client waits for and the other names have a helper each: the
 * helper for clients has the priority of this process, and the other
 * one has the lowest priority.  So a client never waits for work of the lowest
 * priority.
 *
 * Context: any thread, one at a time for each helper (prof_symbolize.c has the
 * locks); not in a signal; slow.
 */


#ifndef _PROF_HELPER_H_INCLUDED_
#define _PROF_HELPER_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "names/prof_names.h"
#include "profile/prof_profile.h"


/* who waits for names */

typedef enum {
    PROF_HELPER_CLIENT = 0,
    PROF_HELPER_NOBODY,
    PROF_HELPERS
} prof_helper_e;


/*
 * ns that pass before names are given up: of one object, and of a profile.
 * The helper ends much earlier if it has the processor (prof_symbolizer.h).
 */

#define PROF_HELPER_OBJECT_TIME   3000000000
#define PROF_HELPER_TIME          5000000000
#define PROF_HELPER_PATIENCE      20000000000   /* no client waits */

/* additional time, if debuginfod servers may be asked */

#define PROF_HELPER_FETCH_TIME    5000000000

/* ns; a helper that failed is not started again during this time */

#define PROF_HELPER_PAUSE         60000000000


/* the answer for the i-th address; the caller owns all memory of name */

typedef int (*prof_helper_pt)(void *data, uint32_t i, const prof_name_t *name);


typedef struct {
    const prof_profile_object_t  *object;
    const char                   *debug_root;
    const prof_name_t            *names;    /* pc, function; name by own
                                               tables */
    uint32_t                      n;
    uint64_t                      deadline;
    uint64_t                     *more;     /* prof_names_more_e, if the answer
                                               is complete */

    prof_helper_pt                answer;   /* PROF_OK or PROF_ERROR */
    void                         *data;
} prof_helper_question_t;


PROF_HIDDEN_BEGIN

/*
 * Returns for whom the calling thread names profiles.  This is a client,
 * unless the thread called prof_profile_background().
 */
prof_helper_e prof_helper_who(void);

/* returns the time in ns for which a profile may wait for names */
uint64_t prof_helper_time(void);

/*
 * Asks the helper.  Returns PROF_OK, also if no helper is configured;
 * PROF_LIMIT if the helper failed, possibly after some answers; PROF_ERROR if
 * memory is short.
 */
int prof_helper_ask(const prof_helper_question_t *q);

/* appends the beginning of a question; question: PROF_WIRE_NAMES, ... */
void prof_helper_begin(prof_buf_t *b, uint32_t question,
    const prof_profile_object_t *o, const char *debug_root);

/*
 * Asks a question that has one message as its answer.  Returns PROF_OK, with an
 * empty answer if no helper is configured, or PROF_LIMIT if the helper failed.
 */
int prof_helper_exchange(const prof_buf_t *question, prof_buf_t *answer,
    uint64_t deadline);

/* returns whether a helper is configured */
int prof_helper_exists(void);

/* ends the helpers that run */
void prof_helper_done(void);

PROF_HIDDEN_END


#endif /* _PROF_HELPER_H_INCLUDED_ */
