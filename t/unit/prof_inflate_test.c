
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: html
 * runs: beside
 *
 * Compressed pages, in pieces of all sizes.
 */


#include "tap.h"

#include "html/prof_inflate.h"

#include <zlib.h>


#define TEST_TEXT  3000
#define TEST_MAX   8192


typedef struct {
    const char     *name;
    int             window;
    uint32_t        members;
} test_format_t;


static size_t test_pack(const test_format_t *f, unsigned char *out);
static int test_read(const unsigned char *data, size_t len, size_t in,
    size_t out, unsigned char *text, size_t *ntext, int *ended);
static void test_format(const test_format_t *f);
static void test_damage(const test_format_t *f);


static const test_format_t  test_formats[] = {
    { "gzip", 15 + 16, 1 },
    { "gzip, three members", 15 + 16, 3 },
    { "zlib", 15, 1 },
    { "raw", -15, 1 }
};

static unsigned char  test_text[TEST_TEXT];


int
main(void)
{
    size_t  i;

    for (i = 0; i < TEST_TEXT; i++) {
        test_text[i] = "a page, "[i % 8] + (i * i / 64) % 3;
    }

    for (i = 0; i < sizeof(test_formats) / sizeof(test_formats[0]); i++) {
        test_format(&test_formats[i]);
        test_damage(&test_formats[i]);
    }

    return done_testing();
}


static void
test_format(const test_format_t *f)
{
    int            rc, ended;
    size_t         len, ntext, in, out, bad, early;
    unsigned char  data[TEST_MAX], text[TEST_TEXT + 1];

    len = test_pack(f, data);
    bad = 0;

    for (in = 1; in < 40; in++) {
        for (out = 1; out < 40; out++) {
            rc = test_read(data, len, in, out, text, &ntext, &ended);
            bad += rc != PROF_OK || !ended || ntext != TEST_TEXT
                   || memcmp(text, test_text, TEST_TEXT) != 0;
        }
    }

    is_int(bad, 0, "%s: the text in pieces of all sizes", f->name);

    rc = test_read(data, len, len, TEST_TEXT + 1, text, &ntext, &ended);
    ok(rc == PROF_OK && ended && ntext == TEST_TEXT,
       "%s: the text in one piece", f->name);

    memcpy(data + len, "and more", 8);

    rc = test_read(data, len + 8, 7, 100, text, &ntext, &ended);
    ok(rc == PROF_OK && ended && ntext == TEST_TEXT,
       "%s: bytes after the end are skipped", f->name);

    for (early = 0, bad = 0; early + 1 < len; early++) {
        rc = test_read(data, early, 100, 100, text, &ntext, &ended);

        /* the end of a member may be the end of the data */

        bad += rc != PROF_OK || (ended && f->members == 1)
               || memcmp(text, test_text, ntext) != 0;
    }

    is_int(bad, 0, "%s: data that ends early is not complete", f->name);
}


/* no input makes it write too much, or loop */

static void
test_damage(const test_format_t *f)
{
    int            ended;
    size_t         len, ntext, i;
    uint32_t       valid;
    unsigned char  data[TEST_MAX], text[TEST_TEXT + 1];

    len = test_pack(f, data);
    valid = 0;

    for (i = 0; i < len; i++) {
        data[i] ^= 0x55;
        valid += test_read(data, len, 50, 50, text, &ntext, &ended)
                 == PROF_OK;
        data[i] ^= 0x55;
    }

    ok(valid < len, "%s: damaged data is an error", f->name);
}


static size_t
test_pack(const test_format_t *f, unsigned char *out)
{
    size_t     part;
    uint32_t   i;
    z_stream   z;

    part = TEST_TEXT / f->members;

    memset(&z, 0, sizeof(z_stream));

    z.next_out = out;
    z.avail_out = TEST_MAX - 8;

    for (i = 0; i < f->members; i++) {
        z.zalloc = Z_NULL;

        if (deflateInit2(&z, 6, Z_DEFLATED, f->window, 8, Z_DEFAULT_STRATEGY)
            != Z_OK)
        {
            abort();
        }

        z.next_in = test_text + i * part;
        z.avail_in = part;

        if (deflate(&z, Z_FINISH) != Z_STREAM_END) {
            abort();
        }

        (void) deflateEnd(&z);
    }

    return z.next_out - out;
}


/* the input and the space are copies, so a sanitizer sees bytes beyond them */

static int
test_read(const unsigned char *data, size_t len, size_t in, size_t out,
    unsigned char *text, size_t *ntext, int *ended)
{
    int                   rc;
    size_t                n, nin, nout;
    unsigned char        *piece, *space, *p;
    prof_inflate_t       *zip;
    const unsigned char  *q;

    zip = prof_inflate_create();
    rc = PROF_OK;
    *ntext = 0;

    while (len && rc == PROF_OK) {
        n = len < in ? len : in;
        piece = malloc(n);
        memcpy(piece, data, n);

        q = piece;
        nin = n;

        do {
            space = malloc(out);
            p = space;
            nout = out;

            rc = prof_inflate(zip, &q, &nin, &p, &nout);

            if (*ntext + (p - space) > TEST_TEXT) {
                rc = PROF_ERROR;

            } else {
                memcpy(text + *ntext, space, p - space);
                *ntext += p - space;
            }

            free(space);

        } while (rc == PROF_OK && nout == 0);

        if (rc == PROF_OK && nin) {
            rc = PROF_ERROR;
        }

        free(piece);

        data += n;
        len -= n;
    }

    *ended = prof_inflate_ended(zip);

    prof_inflate_destroy(zip);

    return rc;
}
