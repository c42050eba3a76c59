
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads pages that were compressed with the content codings "gzip" and
 * "deflate" of HTTP (RFC 9110, 8.4.1).  Senders of "deflate" use both forms
 * that the name can mean: with zlib's header, as the RFC says, and without.
 *
 * The data is read in pieces of any size.  Nothing is kept but zlib's state of
 * about 40 kB.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_INFLATE_H_INCLUDED_
#define _PROF_INFLATE_H_INCLUDED_


#include "base/prof_base.h"


typedef struct prof_inflate_s  prof_inflate_t;


PROF_HIDDEN_BEGIN

/* returns NULL if memory is short */
prof_inflate_t *prof_inflate_create(void);
void prof_inflate_destroy(prof_inflate_t *zip);

/*
 * Reads from *in, which has *nin bytes, and writes to *out, which has space for
 * *nout bytes; moves both.  Returns when the input is read or the output is
 * full.  Returns PROF_OK, or PROF_ERROR if the data is not valid or memory is
 * short.  Bytes after the end of the data are skipped.
 */
int prof_inflate(prof_inflate_t *zip, const unsigned char **in,
    size_t *nin, unsigned char **out, size_t *nout);

/* returns whether the data is complete */
int prof_inflate_ended(const prof_inflate_t *zip);

PROF_HIDDEN_END


#endif /* _PROF_INFLATE_H_INCLUDED_ */
