
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the files of the pprof encoder share.
 *
 * A concatenation of messages is their union.  So the profile is written as
 * a sequence of messages with one item each, straight into the compressor,
 * and only the strings are held in memory.
 *
 * Identifiers: a location is a frame, a mapping is an object, plus one; the
 * functions are numbered.
 */


#ifndef _PROF_ENCODE_PPROF_H_INCLUDED_
#define _PROF_ENCODE_PPROF_H_INCLUDED_


#include "formats/prof_gzip.h"
#include "formats/prof_strings.h"
#include "profile/prof_profile.h"
#include "proto/prof_proto.h"


#define PROF_PPROF_LABELS  16   /* of the profile */
#define PROF_PPROF_VALUES  (1 + PROF_MEASURE_MAX)   /* of a sample, at most */


typedef struct {
    uint32_t               name;        /* strings */
    uint32_t               file;
    uint32_t               function;    /* identifier */
} prof_pprof_frame_t;


typedef struct {
    ProtobufCBuffer        sink;        /* the first member: what protobuf-c
                                           gives back is this */
    prof_gzip_t           *gz;
    const prof_profile_t  *profile;
    prof_strings_t         strings;
    prof_pprof_frame_t    *frames;
    prof_pprof_frame_t    *inlines;
    uint32_t              *order;       /* frames, or entries, sorted */
    uint64_t              *stack;
    size_t                 depth;       /* room in it */
    prof_buf_t             line;        /* a comment being made */
    Prof__Label            labels[PROF_PPROF_LABELS];
    uint32_t               nlabels;
} prof_pprof_t;


PROF_HIDDEN_BEGIN

/* objects, functions and addresses */
void prof_encode_pprof_frames(prof_pprof_t *e);

/* the entries of the mode's series */
void prof_encode_pprof_samples(prof_pprof_t *e);

void prof_encode_pprof_write(prof_pprof_t *e, Prof__Profile *part);

/* the largest number for what is too large */
int64_t prof_encode_pprof_int(uint64_t n);

PROF_HIDDEN_END


#endif /* _PROF_ENCODE_PPROF_H_INCLUDED_ */
