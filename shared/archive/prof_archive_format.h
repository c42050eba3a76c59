
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
 * Numbers of the head are little-endian.  The content is a sequence of
 *
 *     number     LEB128: 7 bits in a byte, the lowest first
 *     signed     a number: 0, -1, 1, -2, ...
 *     text       length + 1 as a number, and the bytes; 0 is NULL
 *
 * in the order in which prof_archive_write() has them.  An index that may be
 * PROF_NONE is written as index + 1, or 0; that of a parent as the distance
 * to it, or 0.
 *
 * A change of the content is a new version.
 *
 * The content is at most PROF_ARCHIVE_RATIO times as long as what it was
 * compressed to, and PROF_ARCHIVE_SLACK more: a reader need not believe that a
 * few bytes become hundreds of megabytes.
 */


#ifndef _PROF_ARCHIVE_FORMAT_H_INCLUDED_
#define _PROF_ARCHIVE_FORMAT_H_INCLUDED_


#include "base/prof_base.h"


#define PROF_ARCHIVE_MAGIC    "profarc\n"
#define PROF_ARCHIVE_VERSION  2

/* offsets in the head */

#define PROF_ARCHIVE_AT_VERSION  8
#define PROF_ARCHIVE_AT_CRC      12
#define PROF_ARCHIVE_AT_SIZE     16
#define PROF_ARCHIVE_HEAD        24

/* profiles of real code have at most 10 */

#define PROF_ARCHIVE_RATIO       32
#define PROF_ARCHIVE_SLACK       (64 * 1024)


#endif /* _PROF_ARCHIVE_FORMAT_H_INCLUDED_ */
