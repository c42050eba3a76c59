
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The layout of archives.
 *
 *     8 bytes    magic
 *     4 bytes    version
 *     4 bytes    CRC-32 of all that follows
 *     8 bytes    size of the content
 *                content, compressed by zlib
 *
 * Numbers in the head are little-endian.  The content is a sequence of
 *
 *     number     LEB128: 7 bits in a byte, the lowest first
 *     signed     a number: 0, -1, 1, -2, ...
 *     text       length + 1 as a number, and the bytes; 0 is NULL
 *
 * in the order of prof_archive_write().  An index that may be PROF_NONE is
 * written as index + 1, or 0; the index of a parent as the distance, or 0.  The
 * snapshot of turn logs, a length and bytes, is at the end, or nothing is.
 *
 * A change of this layout is a new version.  A new series or measure is not:
 * an archive has the names of its series and measures.
 *
 * The content has at most PROF_ARCHIVE_RATIO times the compressed size, plus
 * PROF_ARCHIVE_SLACK.  So a reader never allocates hundreds of megabytes for a
 * few bytes.
 *
 * Reading: the content is not trusted.  The first error is kept, and all
 * numbers after an error are 0, so callers check for errors once per item.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ARCHIVE_IN_H_INCLUDED_
#define _PROF_ARCHIVE_IN_H_INCLUDED_


#include "base/prof_base.h"


#define PROF_ARCHIVE_MAGIC    "profarc\n"
#define PROF_ARCHIVE_VERSION  2

/* offsets in the head */

#define PROF_ARCHIVE_AT_VERSION  8
#define PROF_ARCHIVE_AT_CRC      12
#define PROF_ARCHIVE_AT_SIZE     16
#define PROF_ARCHIVE_HEAD        24

/* archives of real profiles have a ratio of at most 10 */

#define PROF_ARCHIVE_RATIO       32
#define PROF_ARCHIVE_SLACK       (64 * 1024)

#define PROF_ARCHIVE_OTHER    "archive of a profile, of another version"
#define PROF_ARCHIVE_DAMAGED  "damaged archive of a profile"
#define PROF_ARCHIVE_MEMORY   "no memory for a profile"
#define PROF_ARCHIVE_LARGE    "profile that takes too much memory"


typedef struct {
    unsigned char        *content;      /* owned */
    const unsigned char  *pos;
    const unsigned char  *last;
    size_t                left;         /* bytes of memory left */
    const char           *err;          /* static text; NULL: no error */
} prof_archive_in_t;


PROF_HIDDEN_BEGIN

/*
 * Checks and decompresses an archive.  Returns PROF_OK, or PROF_ERROR with err
 * set.
 */
int prof_archive_in_open(prof_archive_in_t *in, const unsigned char *data,
    size_t len);
void prof_archive_in_close(prof_archive_in_t *in);

uint64_t prof_archive_in_number(prof_archive_in_t *in);
uint64_t prof_archive_in_signed(prof_archive_in_t *in);

/* reads a number; a number that is not below the limit is an error */
uint32_t prof_archive_in_below(prof_archive_in_t *in, uint64_t limit);

/* reads the index of one of n items, or PROF_NONE */
uint32_t prof_archive_in_index(prof_archive_in_t *in, uint32_t n);

/* reads the index of an item before i, or PROF_NONE */
uint32_t prof_archive_in_back(prof_archive_in_t *in, uint32_t i);

/*
 * Reads a text, which is malloc()ed, or NULL. prof_archive_in_some() returns
 * NULL only after an error.
 */
char *prof_archive_in_text(prof_archive_in_t *in);
char *prof_archive_in_some(prof_archive_in_t *in);

/*
 * Reads the number of items, and allocates a zeroed array for them. "least" is
 * the smallest size of an item in the archive.  It is an error if the rest of
 * the content is too short for all items.
 */
void *prof_archive_in_array(prof_archive_in_t *in, uint32_t *n, size_t least,
    size_t size);

void prof_archive_in_fail(prof_archive_in_t *in, const char *err);

PROF_HIDDEN_END


#endif /* _PROF_ARCHIVE_IN_H_INCLUDED_ */
