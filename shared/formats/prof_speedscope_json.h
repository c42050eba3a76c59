
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The parts of a speedscope file that have texts in them.
 *
 * All of them append to a buffer, which fails when memory is short.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SPEEDSCOPE_JSON_H_INCLUDED_
#define _PROF_SPEEDSCOPE_JSON_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


PROF_HIDDEN_BEGIN

/* the first members; active: the profile that is shown first */
void prof_speedscope_head(prof_buf_t *b, const prof_profile_t *p,
    uint32_t active);

/* the member "profile_info" */
void prof_speedscope_info(prof_buf_t *b, const prof_profile_t *p);

/* the member "shared": functions of the view, and objects after them */
void prof_speedscope_frames(prof_buf_t *b, const prof_profile_t *p,
    const prof_view_t *v);

/* any bytes as a string */
void prof_speedscope_string(prof_buf_t *b, const char *s, size_t len);

PROF_HIDDEN_END


#endif /* _PROF_SPEEDSCOPE_JSON_H_INCLUDED_ */
