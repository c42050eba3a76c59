
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Compression to gzip, by zlib.
 *
 * The same input gives the same output: the header has no time.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_GZIP_H_INCLUDED_
#define _PROF_GZIP_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"


typedef struct prof_gzip_s  prof_gzip_t;


PROF_HIDDEN_BEGIN

/*
 * Returns a stream that is compressed into out, or NULL if memory is short.
 * Failures are reported by prof_gzip_finish().
 */
prof_gzip_t *prof_gzip_create(prof_buf_t *out);
void prof_gzip_append(prof_gzip_t *gz, const void *data, size_t len);

/*
 * writes the rest and frees the stream; returns PROF_OK, or PROF_ERROR
 * (memory)
 */
int prof_gzip_finish(prof_gzip_t *gz);

/* compresses one text; returns PROF_OK, or PROF_ERROR (memory) */
int prof_gzip(const void *data, size_t len, prof_buf_t *out);

/* returns whether the data is compressed */
int prof_gzip_is(const void *data, size_t len);

PROF_HIDDEN_END


#endif /* _PROF_GZIP_H_INCLUDED_ */
