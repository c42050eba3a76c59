
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "html/prof_inflate.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>


#define PROF_INFLATE_HEAD    2      /* bytes that tell the format */

/* zlib.h: windowBits */

#define PROF_INFLATE_ZLIB    15
#define PROF_INFLATE_GZIP    (15 + 16)
#define PROF_INFLATE_RAW     (-15)


struct prof_inflate_s {
    z_stream       stream;
    unsigned char  head[PROF_INFLATE_HEAD];
    size_t         nhead;
    size_t         used;        /* bytes of the head that zlib has got */
    unsigned       gzip:1;
    unsigned       open:1;      /* the format is known */
    unsigned       between:1;   /* a member of a gzip file has ended */
    unsigned       ended:1;     /* the rest is skipped */
};


static int prof_inflate_open(prof_inflate_t *zip);


prof_inflate_t *
prof_inflate_create(void)
{
    return calloc(1, sizeof(prof_inflate_t));
}


void
prof_inflate_destroy(prof_inflate_t *zip)
{
    if (zip && zip->open) {
        (void) inflateEnd(&zip->stream);
    }

    free(zip);
}


int
prof_inflate(prof_inflate_t *zip, const unsigned char **in, size_t *nin,
    unsigned char **out, size_t *nout)
{
    int        rc;
    unsigned   len, space;
    z_stream  *z;

    while (zip->nhead < PROF_INFLATE_HEAD) {

        if (*nin == 0) {
            return PROF_OK;
        }

        zip->head[zip->nhead++] = *(*in)++;
        (*nin)--;
    }

    if (!zip->open && prof_inflate_open(zip) != PROF_OK) {
        return PROF_ERROR;
    }

    z = &zip->stream;

    for ( ;; ) {

        /* other bytes after the last member belong to no member */

        if (zip->between && *nin) {
            zip->between = 0;
            zip->ended = (**in != 0x1f);
        }

        if (zip->ended) {
            *in += *nin;
            *nin = 0;
            return PROF_OK;
        }

        if (zip->between) {
            return PROF_OK;
        }

        if (zip->used < PROF_INFLATE_HEAD) {
            len = PROF_INFLATE_HEAD - zip->used;
            z->next_in = zip->head + zip->used;

        } else {
            /* zlib counts in 32 bits */

            len = *nin < UINT_MAX ? (unsigned) *nin : UINT_MAX;
            z->next_in = (unsigned char *) *in;
        }

        space = *nout < UINT_MAX ? (unsigned) *nout : UINT_MAX;

        z->avail_in = len;
        z->next_out = *out;
        z->avail_out = space;

        rc = inflate(z, Z_NO_FLUSH);

        *out = z->next_out;
        *nout -= space - z->avail_out;

        len -= z->avail_in;

        if (zip->used < PROF_INFLATE_HEAD) {
            zip->used += len;

        } else {
            *in += len;
            *nin -= len;
        }

        switch (rc) {

        case Z_OK:
            break;

        case Z_BUF_ERROR:
            return PROF_OK;

        case Z_STREAM_END:
            zip->between = zip->gzip;
            zip->ended = !zip->gzip;

            if (inflateReset(z) != Z_OK) {
                return PROF_ERROR;
            }

            break;

        default:
            return PROF_ERROR;
        }
    }
}


/* RFC 1952, 2.3.1; RFC 1950, 2.2: CM is 8, and the check is a multiple of 31 */

static int
prof_inflate_open(prof_inflate_t *zip)
{
    int             window;
    unsigned char  *p;

    p = zip->head;

    zip->gzip = (p[0] == 0x1f && p[1] == 0x8b);

    window = zip->gzip ? PROF_INFLATE_GZIP
             : (p[0] & 0x0f) == 8 && (p[0] * 256 + p[1]) % 31 == 0
             ? PROF_INFLATE_ZLIB : PROF_INFLATE_RAW;

    if (inflateInit2(&zip->stream, window) != Z_OK) {
        return PROF_ERROR;
    }

    zip->open = 1;

    return PROF_OK;
}


int
prof_inflate_ended(const prof_inflate_t *zip)
{
    return zip->ended || zip->between;
}
