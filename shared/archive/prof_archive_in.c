
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "archive/prof_archive.h"
#include "archive/prof_archive_in.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>


/*
 * The memory that a profile may use: per byte of the content, and in total.
 * Labels with texts of one byte need 16 bytes of memory per byte, all other
 * items need less.
 */

#define PROF_ARCHIVE_IN_BYTES  16
#define PROF_ARCHIVE_IN_MOST   (512 * 1024 * 1024)

/* the overhead of malloc() for a text */

#define PROF_ARCHIVE_IN_EXTRA  24


static int prof_archive_in_take(prof_archive_in_t *in, size_t size);
static uint64_t prof_archive_in_fixed(const unsigned char *p, size_t len);


int
prof_archive_in_open(prof_archive_in_t *in, const unsigned char *data,
    size_t len)
{
    int       rc;
    uLongf    n;
    uint64_t  want;

    memset(in, 0, sizeof(prof_archive_in_t));

    if (len < PROF_ARCHIVE_HEAD
        || memcmp(data, PROF_ARCHIVE_MAGIC, sizeof(PROF_ARCHIVE_MAGIC) - 1)
           != 0)
    {
        in->err = "not an archive of a profile";
        return PROF_ERROR;
    }

    if (prof_archive_in_fixed(data + PROF_ARCHIVE_AT_VERSION, 4)
        != PROF_ARCHIVE_VERSION)
    {
        in->err = PROF_ARCHIVE_OTHER;
        return PROF_ERROR;
    }

    want = prof_archive_in_fixed(data + PROF_ARCHIVE_AT_SIZE, 8);

    if (len > UINT_MAX || want > PROF_ARCHIVE_MAX
        || want > len * PROF_ARCHIVE_RATIO + PROF_ARCHIVE_SLACK
        || crc32(0, data + PROF_ARCHIVE_AT_SIZE, len - PROF_ARCHIVE_AT_SIZE)
           != prof_archive_in_fixed(data + PROF_ARCHIVE_AT_CRC, 4))
    {
        in->err = PROF_ARCHIVE_DAMAGED;
        return PROF_ERROR;
    }

    in->content = malloc(want + 1);
    if (in->content == NULL) {
        in->err = PROF_ARCHIVE_MEMORY;
        return PROF_ERROR;
    }

    n = want;
    rc = uncompress(in->content, &n, data + PROF_ARCHIVE_HEAD,
                    len - PROF_ARCHIVE_HEAD);

    if (rc != Z_OK || n != want) {
        in->err = rc == Z_MEM_ERROR ? PROF_ARCHIVE_MEMORY
                                    : PROF_ARCHIVE_DAMAGED;
        return PROF_ERROR;
    }

    in->pos = in->content;
    in->last = in->content + want;

    in->left = PROF_ARCHIVE_IN_BYTES * want + PROF_ARCHIVE_SLACK;

    if (in->left > PROF_ARCHIVE_IN_MOST) {
        in->left = PROF_ARCHIVE_IN_MOST;
    }

    return PROF_OK;
}


void
prof_archive_in_close(prof_archive_in_t *in)
{
    free(in->content);
    in->content = NULL;
}


static uint64_t
prof_archive_in_fixed(const unsigned char *p, size_t len)
{
    uint64_t  n;

    n = 0;

    while (len) {
        n = (n << 8) | p[--len];
    }

    return n;
}


uint64_t
prof_archive_in_number(prof_archive_in_t *in)
{
    unsigned  c, shift;
    uint64_t  n;

    n = 0;

    for (shift = 0; in->err == NULL && in->pos < in->last; shift += 7) {
        c = *in->pos++;

        if (shift == 63 && c > 1) {
            break;
        }

        n |= (uint64_t) (c & 0x7f) << shift;

        if (c < 0x80) {
            return n;
        }
    }

    prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);

    return 0;
}


uint64_t
prof_archive_in_signed(prof_archive_in_t *in)
{
    uint64_t  n;

    n = prof_archive_in_number(in);

    return n & 1 ? ~(n >> 1) : n >> 1;
}


uint32_t
prof_archive_in_below(prof_archive_in_t *in, uint64_t limit)
{
    uint64_t  n;

    n = prof_archive_in_number(in);

    if (n < limit) {
        return (uint32_t) n;
    }

    prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);

    return 0;
}


uint32_t
prof_archive_in_index(prof_archive_in_t *in, uint32_t n)
{
    uint32_t  i;

    i = prof_archive_in_below(in, (uint64_t) n + 1);

    return i ? i - 1 : PROF_NONE;
}


uint32_t
prof_archive_in_back(prof_archive_in_t *in, uint32_t i)
{
    uint32_t  distance;

    distance = prof_archive_in_below(in, (uint64_t) i + 1);

    return distance ? i - distance : PROF_NONE;
}


char *
prof_archive_in_text(prof_archive_in_t *in)
{
    char      *s;
    uint64_t   len;

    len = prof_archive_in_number(in);

    if (len == 0) {
        return NULL;
    }

    len--;

    if (len > (uint64_t) (in->last - in->pos) || memchr(in->pos, '\0', len)) {
        prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
        return NULL;
    }

    if (prof_archive_in_take(in, len + PROF_ARCHIVE_IN_EXTRA) != PROF_OK) {
        return NULL;
    }

    s = strndup((const char *) in->pos, len);
    if (s == NULL) {
        prof_archive_in_fail(in, PROF_ARCHIVE_MEMORY);
    }

    in->pos += len;

    return s;
}


char *
prof_archive_in_some(prof_archive_in_t *in)
{
    char  *s;

    s = prof_archive_in_text(in);

    if (s == NULL) {
        prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
    }

    return s;
}


void *
prof_archive_in_array(prof_archive_in_t *in, uint32_t *n, size_t least,
    size_t size)
{
    void      *array;
    uint64_t   count;

    count = prof_archive_in_number(in);

    if (in->err || count > (uint64_t) (in->last - in->pos) / least) {
        prof_archive_in_fail(in, PROF_ARCHIVE_DAMAGED);
        return NULL;
    }

    if (prof_archive_in_take(in, (count + 1) * size) != PROF_OK) {
        return NULL;
    }

    array = calloc(count + 1, size);

    if (array == NULL) {
        prof_archive_in_fail(in, PROF_ARCHIVE_MEMORY);
        return NULL;
    }

    *n = (uint32_t) count;

    return array;
}


void
prof_archive_in_fail(prof_archive_in_t *in, const char *err)
{
    if (in->err == NULL) {
        in->err = err;
    }
}


/* memory is counted before it is allocated */

static int
prof_archive_in_take(prof_archive_in_t *in, size_t size)
{
    if (size > in->left) {
        prof_archive_in_fail(in, PROF_ARCHIVE_LARGE);
        return PROF_ERROR;
    }

    in->left -= size;

    return PROF_OK;
}
