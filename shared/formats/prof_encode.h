
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The tables of output formats.  A new format is a file that defines the
 * prof_encoder_t prof_encode_<x>, and one line in PROF_ENCODERS.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ENCODE_H_INCLUDED_
#define _PROF_ENCODE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


/* the first format is the default */

#define PROF_ENCODERS(x)                                                      \
    x(speedscope)                                                             \
    x(pprof)                                                                  \
    x(folded)                                                                 \
    x(svg)                                                                    \
    x(html)


/* formats of the difference of two profiles: prof_diff_<x> */

#define PROF_DIFF_ENCODERS(x)                                                 \
    x(html)                                                                   \
    x(svg)


typedef struct {
    const char  *name;          /* the value of profile_format */
    const char  *text;          /* for readers: "SVG picture" */
    const char  *content_type;
    const char  *extension;     /* of file names: "speedscope.json" */

    /*
     * Appends the encoded profile to b.  The profile is symbolized and is not
     * changed.  Returns PROF_OK, or PROF_ERROR if memory is short.
     */
    int        (*encode)(const prof_profile_t *p, prof_buf_t *b);

    const char  *csp;           /* Content-Security-Policy, or NULL */
    unsigned     download:1;    /* browsers save the output as a file */
} prof_encoder_t;


typedef struct {
    const char  *name;          /* these members are as in prof_encoder_t */
    const char  *content_type;
    const char  *extension;

    /*
     * Appends the picture.  Both profiles are symbolized.  Returns PROF_OK, or
     * PROF_ERROR if memory is short.
     */
    int        (*encode)(const prof_profile_t *before,
                         const prof_profile_t *after, uint32_t flags,
                         prof_buf_t *b);

    const char  *csp;
} prof_diff_encoder_t;


PROF_HIDDEN_BEGIN

/* all formats of profiles, and all formats of differences; NULL is the last */
extern const prof_encoder_t  *const prof_encoders[];
extern const prof_diff_encoder_t  *const prof_diff_encoders[];

/* returns the format with exactly this name, or NULL */
const prof_encoder_t *prof_encoder_find(const char *name, size_t len);
const prof_diff_encoder_t *prof_diff_find(const char *name, size_t len);

#define PROF_ENCODER_EXTERN(name)                                             \
    extern const prof_encoder_t  prof_encode_##name;
PROF_ENCODERS(PROF_ENCODER_EXTERN)
#undef PROF_ENCODER_EXTERN

#define PROF_DIFF_EXTERN(name)                                                \
    extern const prof_diff_encoder_t  prof_diff_##name;
PROF_DIFF_ENCODERS(PROF_DIFF_EXTERN)
#undef PROF_DIFF_EXTERN

PROF_HIDDEN_END


#endif /* _PROF_ENCODE_H_INCLUDED_ */
