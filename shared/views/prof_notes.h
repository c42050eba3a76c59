
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What a picture says about its profile in a few lines of text: how long it
 * took, how much of it was seen, and what was not.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_NOTES_H_INCLUDED_
#define _PROF_NOTES_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


/* warning: the line keeps the picture from being taken for more than it is */

typedef void (*prof_notes_pt)(void *data, const prof_buf_t *line,
    int warning);


PROF_HIDDEN_BEGIN

/* calls fn with each line, which is not escaped; warnings come last */
void prof_notes(const prof_profile_t *p, prof_notes_pt fn, void *data);

/* "0 samples, the request used 38.0 us of CPU time": why nothing is there */
void prof_notes_empty(const prof_profile_t *p, prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_NOTES_H_INCLUDED_ */
