
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A profile as bytes, to be stored, or to be sent to another process, and read
 * again without loss: all formats of both are the same.  A profile that is not
 * symbolized yet can be archived as well.
 *
 * The bytes are the same on all machines, refer to nothing outside of them,
 * and are compressed.  They begin with a version: archives of another one are
 * not read.  They need not be trusted: a checksum finds damage, and what is
 * made on purpose gives an error or a profile whose indices are all valid, and
 * whose memory and depth are bounded.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ARCHIVE_H_INCLUDED_
#define _PROF_ARCHIVE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


/* bytes of a profile before they are compressed */

#define PROF_ARCHIVE_MAX  (128 * 1024 * 1024)


PROF_HIDDEN_BEGIN

/*
 * Appends the archive of a profile.  The same profile gives the same bytes.
 * Returns PROF_OK, PROF_ERROR when memory is short, or PROF_LIMIT if the
 * profile is larger than PROF_ARCHIVE_MAX; then nothing is appended.
 */
int prof_archive_write(const prof_profile_t *p, prof_buf_t *b);

/*
 * The profile of an archive, which the caller owns; or NULL, with *err set to
 * a static text: "damaged archive of a profile".  err may be NULL.
 */
prof_profile_t *prof_archive_read(const void *data, size_t len,
    const char **err);

PROF_HIDDEN_END


#endif /* _PROF_ARCHIVE_H_INCLUDED_ */
