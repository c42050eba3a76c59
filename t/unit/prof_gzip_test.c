
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 */


#include "tap.h"

#include "formats/prof_gzip.h"

#include <zlib.h>


static void test_sizes(void);
static void test_pieces(void);
static int same(const prof_buf_t *gz, const char *data, size_t len);
static char *noise(size_t len);


int
main(void)
{
    test_sizes();
    test_pieces();

    return done_testing();
}


/* lengths near the sizes of both chunks, of data that cannot be compressed */

static void
test_sizes(void)
{
    char        *data;
    size_t       i;
    prof_buf_t   b;

    static const size_t  sizes[] = { 0, 1, 2, 16383, 16384, 16385, 32768,
                                     1000000 };

    data = noise(1000000);

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        prof_buf_init(&b);

        is_int(prof_gzip(data, sizes[i], &b), PROF_OK,
               "%zu bytes are compressed", sizes[i]);
        ok(same(&b, data, sizes[i]),
           "%zu bytes: decompression restores the data", sizes[i]);
        ok(prof_gzip_is(b.data, b.len),
           "%zu bytes: the result is recognized as compressed", sizes[i]);

        prof_buf_free(&b);
    }

    memset(data, 'a', 1000000);
    prof_buf_init(&b);
    prof_gzip(data, 1000000, &b);
    ok(same(&b, data, 1000000) && b.len < 10000,
       "a million equal bytes take little space");
    prof_buf_free(&b);

    ok(!prof_gzip_is(data, 1000000), "text is not compressed");
    ok(!prof_gzip_is("\x1f\x8b", 2),
       "a prefix that is too short is not compressed");
    ok(!prof_gzip_is(NULL, 0), "no data is not compressed");

    free(data);
}


static void
test_pieces(void)
{
    char         *data;
    size_t        at, len, n;
    prof_buf_t    b;
    prof_gzip_t  *gz;

    len = 300000;
    data = noise(len);

    prof_buf_init(&b);

    gz = prof_gzip_create(&b);
    if (gz == NULL) {
        abort();
    }

    for (at = 0, n = 0; at < len; at += n) {
        n = (n * 7 + 1) % 40000;
        n = n < len - at ? n : len - at;

        prof_gzip_append(gz, data + at, n);
        prof_gzip_append(gz, data, 0);
    }

    is_int(prof_gzip_finish(gz), PROF_OK, "pieces are compressed");
    ok(same(&b, data, len), "pieces: decompression restores the data");

    prof_buf_free(&b);

    /* a buffer that has failed */

    gz = prof_gzip_create(&b);
    if (gz == NULL) {
        abort();
    }

    b.failed = 1;
    prof_gzip_append(gz, data, len);
    is_int(prof_gzip_finish(gz), PROF_ERROR, "a failed buffer is an error");

    b.failed = 0;
    prof_buf_free(&b);
    free(data);
}


static int
same(const prof_buf_t *gz, const char *data, size_t len)
{
    int        rc;
    char      *out;
    z_stream   z;

    out = malloc(len + 1);
    memset(&z, 0, sizeof(z_stream));

    if (out == NULL || inflateInit2(&z, 15 + 16) != Z_OK) {
        abort();
    }

    z.next_in = (unsigned char *) gz->data;
    z.avail_in = gz->len;
    z.next_out = (unsigned char *) out;
    z.avail_out = len + 1;

    rc = inflate(&z, Z_FINISH);
    rc = rc == Z_STREAM_END && z.avail_in == 0 && z.total_out == len
         && memcmp(out, data, len) == 0;

    inflateEnd(&z);
    free(out);

    return rc;
}


static char *
noise(size_t len)
{
    char      *data;
    size_t     i;
    uint64_t   n;

    data = malloc(len);
    if (data == NULL) {
        abort();
    }

    n = 1;

    for (i = 0; i < len; i++) {
        n = n * 6364136223846793005 + 1442695040888963407;
        data[i] = (char) (n >> 56);
    }

    return data;
}
