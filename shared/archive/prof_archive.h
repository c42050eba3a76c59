
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * An archive is a profile as bytes, for a file or for another process.  It is
 * read without loss: all formats of both profiles are the same.  The profile
 * need not be symbolized.
 *
 * Archives are compressed, and the same on all machines.  They begin with a
 * version; archives of other versions are refused.  Archives are not trusted:
 * a checksum finds damage, and a forged archive gives an error or a profile
 * with valid indices and bounded memory and depth.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ARCHIVE_H_INCLUDED_
#define _PROF_ARCHIVE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


/* the largest profile, in bytes before compression */

#define PROF_ARCHIVE_MAX  (128 * 1024 * 1024)


PROF_HIDDEN_BEGIN

/*
 * Appends the archive of a profile.  The same profile gives the same bytes.
 * Returns PROF_OK, PROF_ERROR if memory is short, or PROF_LIMIT if the profile
 * is larger than PROF_ARCHIVE_MAX; then nothing is appended.
 */
int prof_archive_write(const prof_profile_t *p, prof_buf_t *b);

/*
 * Returns the profile of an archive, which the caller owns; or NULL, with *err
 * set to a static text: "damaged archive of a profile".  err may be NULL.
 */
prof_profile_t *prof_archive_read(const void *data, size_t len,
    const char **err);

PROF_HIDDEN_END


#endif /* _PROF_ARCHIVE_H_INCLUDED_ */
