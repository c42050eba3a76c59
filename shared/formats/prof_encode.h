
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The table of output formats.  A format is one file, which defines one
 * prof_encoder_t, and one line in prof_encode.c.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ENCODE_H_INCLUDED_
#define _PROF_ENCODE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


typedef struct {
    const char  *name;          /* the value of profile_format */
    const char  *content_type;
    const char  *extension;     /* for download names, without a dot:
                                   "speedscope.json" */

    /*
     * Appends the encoded profile to b.  The profile is symbolized and is not
     * changed.  Returns PROF_OK, or PROF_ERROR when memory is short.
     */
    int        (*encode)(const prof_profile_t *p, prof_buf_t *b);

    const char  *csp;           /* the Content-Security-Policy to send with
                                   it, or NULL */
    unsigned     download:1;    /* to be saved, not shown by a browser */
} prof_encoder_t;


PROF_HIDDEN_BEGIN

/* all formats, the default one first; ends with NULL */
extern const prof_encoder_t  *const prof_encoders[];

/* the format of that name (exact, case matters), or NULL */
const prof_encoder_t *prof_encoder_find(const char *name, size_t len);

extern const prof_encoder_t  prof_encode_speedscope;
extern const prof_encoder_t  prof_encode_pprof;
extern const prof_encoder_t  prof_encode_folded;
extern const prof_encoder_t  prof_encode_svg;
extern const prof_encoder_t  prof_encode_html;

PROF_HIDDEN_END


#endif /* _PROF_ENCODE_H_INCLUDED_ */
