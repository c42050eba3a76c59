
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Small pieces are collected before they are compressed, and the output is
 * appended in chunks.  So neither the input nor the output is held twice.
 */


#include "formats/prof_gzip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>


#define PROF_GZIP_CHUNK   16384

/*
 * Profiles are repetitive, so the levels hardly differ in size, while the
 * usual level 6 takes three times as long as level 1.
 */

#define PROF_GZIP_LEVEL   1

/* zlib.h: windowBits greater than 15, "add 16 to write a gzip header" */

#define PROF_GZIP_WINDOW  (15 + 16)


struct prof_gzip_s {
    z_stream        stream;
    prof_buf_t     *out;
    size_t          len;
    unsigned        failed:1;
    unsigned char   in[PROF_GZIP_CHUNK];
};


static void prof_gzip_write(prof_gzip_t *gz, const unsigned char *data,
    size_t len, int flush);


prof_gzip_t *
prof_gzip_create(prof_buf_t *out)
{
    prof_gzip_t  *gz;

    gz = calloc(1, sizeof(prof_gzip_t));
    if (gz == NULL) {
        return NULL;
    }

    gz->out = out;

    if (deflateInit2(&gz->stream, PROF_GZIP_LEVEL, Z_DEFLATED,
                     PROF_GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY)
        != Z_OK)
    {
        free(gz);
        return NULL;
    }

    return gz;
}


void
prof_gzip_append(prof_gzip_t *gz, const void *data, size_t len)
{
    if (len > sizeof(gz->in) - gz->len) {
        prof_gzip_write(gz, gz->in, gz->len, Z_NO_FLUSH);
        gz->len = 0;
    }

    if (len > sizeof(gz->in)) {
        prof_gzip_write(gz, data, len, Z_NO_FLUSH);
        return;
    }

    if (len) {
        memcpy(gz->in + gz->len, data, len);
        gz->len += len;
    }
}


int
prof_gzip_finish(prof_gzip_t *gz)
{
    int  failed;

    prof_gzip_write(gz, gz->in, gz->len, Z_FINISH);

    (void) deflateEnd(&gz->stream);

    failed = gz->failed || prof_buf_failed(gz->out);

    free(gz);

    return failed ? PROF_ERROR : PROF_OK;
}


int
prof_gzip(const void *data, size_t len, prof_buf_t *out)
{
    prof_gzip_t  *gz;

    gz = prof_gzip_create(out);
    if (gz == NULL) {
        return PROF_ERROR;
    }

    prof_gzip_append(gz, data, len);

    return prof_gzip_finish(gz);
}


/* RFC 1952, 2.3.1: ID1 and ID2 */

int
prof_gzip_is(const void *data, size_t len)
{
    return len > 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}


static void
prof_gzip_write(prof_gzip_t *gz, const unsigned char *data, size_t len,
    int flush)
{
    int            last;
    z_stream      *z;
    unsigned char  chunk[PROF_GZIP_CHUNK];

    z = &gz->stream;
    z->next_in = (unsigned char *) data;

    do {
        /* zlib counts in 32 bits */

        z->avail_in = len < UINT_MAX ? (unsigned) len : UINT_MAX;
        len -= z->avail_in;
        last = len == 0;

        do {
            z->next_out = chunk;
            z->avail_out = sizeof(chunk);

            if (deflate(z, last ? flush : Z_NO_FLUSH) == Z_STREAM_ERROR) {
                gz->failed = 1;
                return;
            }

            prof_buf_append(gz->out, chunk, sizeof(chunk) - z->avail_out);

        } while (z->avail_out == 0);

    } while (!last);
}
