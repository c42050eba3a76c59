
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Changes the content of archives and keeps the checksum right, for tests of
 * code that reads archives.
 */


#ifndef _PROF_REPACK_H_INCLUDED_
#define _PROF_REPACK_H_INCLUDED_


#include "archive/prof_archive_in.h"
#include "base/prof_buf.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>


#define REPACK_UNUSED  __attribute__((unused))


REPACK_UNUSED static unsigned char *repack_content(const prof_buf_t *archive,
    size_t *size);
REPACK_UNUSED static void repack(const unsigned char *content, size_t size,
    prof_buf_t *b);
static void repack_number(unsigned char *p, uint64_t n, size_t len);


/* the result is malloc()ed */

static unsigned char *
repack_content(const prof_buf_t *archive, size_t *size)
{
    uLongf          len;
    unsigned char  *content;

    len = 1 << 20;
    content = malloc(len);

    if (content == NULL
        || uncompress(content, &len,
                      (unsigned char *) archive->data + PROF_ARCHIVE_HEAD,
                      archive->len - PROF_ARCHIVE_HEAD)
           != Z_OK)
    {
        abort();
    }

    *size = len;

    return content;
}


static void
repack(const unsigned char *content, size_t size, prof_buf_t *b)
{
    uLong           crc;
    uLongf          len;
    unsigned char  *data;

    len = compressBound(size);

    data = malloc(PROF_ARCHIVE_HEAD + len);

    if (data == NULL
        || compress2(data + PROF_ARCHIVE_HEAD, &len, content, size, 0)
           != Z_OK)
    {
        abort();
    }

    len += PROF_ARCHIVE_HEAD;

    memcpy(data, PROF_ARCHIVE_MAGIC, PROF_ARCHIVE_AT_VERSION);
    repack_number(data + PROF_ARCHIVE_AT_VERSION, PROF_ARCHIVE_VERSION, 4);
    repack_number(data + PROF_ARCHIVE_AT_SIZE, size, 8);

    crc = crc32(0, data + PROF_ARCHIVE_AT_SIZE, len - PROF_ARCHIVE_AT_SIZE);
    repack_number(data + PROF_ARCHIVE_AT_CRC, crc, 4);

    prof_buf_append(b, data, len);

    free(data);
}


static void
repack_number(unsigned char *p, uint64_t n, size_t len)
{
    for ( /* void */ ; len; len--) {
        *p++ = (unsigned char) n;
        n >>= 8;
    }
}


#endif /* _PROF_REPACK_H_INCLUDED_ */
