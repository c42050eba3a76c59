
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: archive
 * runs: beside
 *
 * Archives: reading returns the written profile, and fails for a damaged
 * archive.
 */


#define _GNU_SOURCE

#include "tap.h"

#include "prof_fixture.h"
#include "prof_document.h"
#include "prof_repack.h"
#include "archive/prof_archive.h"
#include "formats/prof_encode.h"


static void test_round_trip(const char *what, prof_profile_t *p);
static void test_again(void);
static void test_unsymbolized(void);
static void test_stats(void);
static void test_size(void);
static void test_small(void);
static void test_truncated(void);
static void test_flipped(void);
static void test_made_up(void);
static void test_version(void);
static void test_depth(void);
static void test_expanding(void);
static void test_expand(prof_buf_t *b, size_t size);
static void test_similar(void);
static void test_number(prof_buf_t *b, uint64_t n);
static void test_begin(prof_buf_t *b);
static void test_measures(void);
static void test_twice(void);
static const char *test_content(const prof_buf_t *content);
static uint32_t test_valid(const prof_profile_t *p);


int
main(void)
{
    test_round_trip("empty", fixture_create(""));
    test_round_trip("typical", fixture_typical());
    test_round_trip("hostile", document_hostile());
    test_round_trip("full", fixture_full());
    test_again();
    test_unsymbolized();
    test_stats();
    test_size();
    test_small();
    test_truncated();
    test_flipped();
    test_made_up();
    test_version();
    test_depth();
    test_measures();
    test_twice();
    test_expanding();
    test_similar();

    return done_testing();
}


static void
test_round_trip(const char *what, prof_profile_t *p)
{
    size_t           i;
    uint32_t         mode;
    prof_buf_t       got, want, archive;
    prof_profile_t  *copy;

    for (mode = PROF_MODE_WALL; mode <= PROF_MODE_OBJECT; mode++) {

        p->mode = mode;

        prof_buf_init(&archive);
        is_int(prof_archive_write(p, &archive), PROF_OK,
               "%s: the archive is written", what);

        copy = prof_archive_read(archive.data, archive.len, NULL);
        ok(copy != NULL, "%s: the archive is read", what);

        for (i = 0; copy && prof_encoders[i]; i++) {
            prof_buf_init(&got);
            prof_buf_init(&want);

            prof_encoders[i]->encode(p, &want);
            prof_encoders[i]->encode(copy, &got);

            ok(got.len == want.len
               && (got.len == 0 || memcmp(got.data, want.data, got.len) == 0),
               "%s: the same in mode %" PRIu32 " as %s", what, mode,
               prof_encoders[i]->name);

            prof_buf_free(&got);
            prof_buf_free(&want);
        }

        prof_profile_destroy(copy);
        prof_buf_free(&archive);
    }

    prof_profile_destroy(p);
}


/* compares members that no format shows as well */

static void
test_again(void)
{
    prof_buf_t       one, two;
    prof_profile_t  *p, *copy;

    p = fixture_full();

    prof_buf_init(&one);
    prof_buf_init(&two);

    prof_archive_write(p, &one);
    copy = prof_archive_read(one.data, one.len, NULL);
    prof_archive_write(copy, &two);

    ok(one.len == two.len && memcmp(one.data, two.data, one.len) == 0,
       "the archive of an archived profile is the same");

    is_str(copy->scope, "worker", "the copy has the scope");
    is_int(copy->duration, 12345, "the copy has the duration");
    is_int(copy->alloc_interval, 524288,
           "the copy has the interval of allocations");
    is_int(copy->peak_objects, 3, "the copy has the peak of objects");
    is_int(copy->peak_space, 5000, "the copy has the peak of bytes");
    is_int(copy->aggregated, 1, "the copy is aggregated");
    is_int(copy->objects[0].base, 0x7f0000000000, "an object has its base");
    is_int(time_of(copy, 0)->count, 7, "an entry has its samples");
    is_str(prof_profile_label_find(copy, time_of(copy, 0)->labels,
                                   "worker")->value,
           "17", "an entry has its label");
    is_str(prof_profile_label_find(copy, alloc_of(copy, 0)->labels,
                                   "size")->unit,
           "bytes", "a label has its unit");
    is_int(alloc_of(copy, 0)->values[PROF_VALUE_INUSE_SPACE],
           UINT64_MAX, "a large number is kept");
    is_int(copy->frames[0].ninlines, 2, "a frame has its inlined functions");
    is_str(copy->inlines[copy->frames[0].inlines + 1].name, "inner",
           "inlined functions keep their names");
    is_int(copy->inlines[copy->frames[0].inlines].line, 21,
           "inlined functions keep their lines");
    ok(copy->inlines[1].file == NULL, "an unknown file stays unknown");
    is_int(copy->frames[0].line, 11, "a frame has its line");
    is_int(copy->frames[0].start_line, 10,
           "a frame has the line of its function");

    /* the last label, and one more */

    ok(prof_profile_labels(copy, time_of(copy, 0)->labels, "n", "1", NULL)
       != PROF_NONE, "labels can be added");

    prof_buf_free(&one);
    prof_buf_free(&two);
    prof_profile_destroy(copy);
    prof_profile_destroy(p);
}


static void
test_unsymbolized(void)
{
    uint32_t         exe;
    prof_buf_t       b;
    prof_profile_t  *p, *copy;

    p = fixture_create("addresses");
    exe = fixture_object(p, "/nonexistent/server", "");
    fixture_node(p, PROF_NONE, fixture_frame(p, exe, 0x1234, NULL));

    prof_buf_init(&b);
    prof_archive_write(p, &b);
    copy = prof_archive_read(b.data, b.len, NULL);

    ok(copy && copy->frames[0].name == NULL, "a frame may have no name");

    if (copy) {
        prof_profile_symbolize(copy);
        is_str(copy->frames[0].name, "server+0x1234",
               "the frame gets a name later");
    }

    prof_buf_free(&b);
    prof_profile_destroy(copy);
    prof_profile_destroy(p);
}


static void
test_stats(void)
{
    uint64_t                  n;
    uint32_t                  same;
    prof_buf_t                b;
    prof_profile_t           *p, *copy;
    const prof_stats_desc_t  *d;

    p = fixture_create("counters");

    n = 1;

    for (d = prof_stats_desc; d->name; d++) {
        memcpy((char *) &p->stats + d->offset, &n, sizeof(n));
        n = n * 3 + 1;
    }

    prof_buf_init(&b);
    prof_archive_write(p, &b);
    copy = prof_archive_read(b.data, b.len, NULL);

    same = copy && memcmp(&p->stats, &copy->stats, sizeof(prof_stats_t)) == 0;
    ok(same, "all counters are kept");

    prof_buf_free(&b);
    prof_profile_destroy(copy);
    prof_profile_destroy(p);
}


static void
test_size(void)
{
    prof_buf_t       b;
    prof_profile_t  *copy, *p;

    p = document_many();

    prof_buf_init(&b);
    prof_archive_write(p, &b);

    diag("%" PRIu32 " entries and %" PRIu32 " nodes in %zu bytes",
         ntimes(p), p->nnodes, b.len);

    ok(b.len < p->nnodes * 4 + ntimes(p) * 8, "the archive is compact");

    copy = prof_archive_read(b.data, b.len, NULL);

    ok(copy && copy->nnodes == p->nnodes && ntimes(copy) == ntimes(p)
       && memcmp(copy->nodes, p->nodes, p->nnodes * sizeof(prof_node_t)) == 0
       && memcmp(time_of(copy, 0), time_of(p, 0),
                 ntimes(p) * p->series[PROF_SERIES_TIME].size)
          == 0, "all bytes of the archive are read");

    prof_profile_destroy(copy);
    prof_buf_free(&b);
    prof_profile_destroy(p);
}


/* the compression of few bytes costs more than all the other work of a job */

static void
test_small(void)
{
    prof_buf_t       b;
    const char      *title;
    prof_profile_t  *copy, *p;

    title = "GET /small.html";
    p = fixture_create(title);

    prof_buf_init(&b);
    prof_archive_write(p, &b);

    ok(memmem(b.data, b.len, title, strlen(title)) != NULL,
       "an archive of few bytes is not compressed");

    copy = prof_archive_read(b.data, b.len, NULL);
    ok(copy && strcmp(copy->title, title) == 0, "such an archive is read");

    prof_profile_destroy(copy);
    prof_buf_free(&b);
    prof_profile_destroy(p);

    p = document_many();

    prof_buf_init(&b);
    prof_archive_write(p, &b);

    ok(memmem(b.data, b.len, p->title, strlen(p->title)) == NULL,
       "an archive of many bytes is compressed");

    prof_buf_free(&b);
    prof_profile_destroy(p);
}


static void
test_truncated(void)
{
    char            *copy;
    size_t           len, read;
    uint32_t         told;
    prof_buf_t       b;
    const char      *err;
    prof_profile_t  *p;

    p = fixture_full();
    prof_buf_init(&b);
    prof_archive_write(p, &b);
    prof_profile_destroy(p);

    read = 0;
    told = 0;

    for (len = 0; len < b.len; len++) {

        /*
         * A copy without an additional byte, so a sanitizer detects reads
         * beyond it.
         */

        copy = malloc(len + 1);
        memcpy(copy, b.data, len);
        copy = realloc(copy, len ? len : 1);

        err = NULL;
        p = prof_archive_read(copy, len, &err);

        read += p != NULL;
        told += err != NULL;

        prof_profile_destroy(p);
        free(copy);
    }

    is_int(read, 0, "%zu truncated archives are not read", b.len);
    is_int(told, b.len, "each truncated archive has an error text");

    prof_buf_free(&b);
}


static void
test_flipped(void)
{
    size_t           bit, read;
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_full();
    prof_buf_init(&b);
    prof_archive_write(p, &b);
    prof_profile_destroy(p);

    read = 0;

    for (bit = 0; bit < 8 * b.len; bit++) {
        b.data[bit / 8] ^= 1 << bit % 8;

        p = prof_archive_read(b.data, b.len, NULL);
        read += p != NULL;
        prof_profile_destroy(p);

        b.data[bit / 8] ^= 1 << bit % 8;
    }

    is_int(read, 0, "%zu archives with a changed bit are not read", 8 * b.len);

    p = prof_archive_read(b.data, b.len, NULL);
    ok(p != NULL, "the unchanged archive is read");
    prof_profile_destroy(p);

    prof_buf_free(&b);
}


/* damaged content with the right checksum */

static void
test_made_up(void)
{
    size_t           i, read, refused, size;
    uint32_t         c, wrong;
    prof_buf_t       b, out;
    const char      *err;
    unsigned char   *content, was;
    prof_profile_t  *p;

    static const unsigned char  values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };

    p = fixture_full();
    prof_buf_init(&b);
    prof_archive_write(p, &b);
    prof_profile_destroy(p);

    content = repack_content(&b, &size);

    read = 0;
    refused = 0;
    wrong = 0;

    for (i = 0; i < size; i++) {
        for (c = 0; c < sizeof(values); c++) {
            was = content[i];
            content[i] = values[c];

            prof_buf_init(&out);
            repack(content, size, &out);

            p = prof_archive_read(out.data, out.len, &err);

            if (p) {
                read++;
                wrong += !test_valid(p);

            } else {
                refused++;
                wrong += err == NULL;
            }

            prof_profile_destroy(p);
            prof_buf_free(&out);

            content[i] = was;
        }
    }

    ok(read > size && refused > size, "%zu are read, %zu are not", read,
       refused);
    is_int(wrong, 0, "no index is out of bounds");

    prof_buf_init(&out);
    repack(content, size - 1, &out);
    ok(prof_archive_read(out.data, out.len, &err) == NULL,
       "a shortened archive is not read");
    is_str(err, "damaged archive of a profile",
           "the error tells that the archive is damaged");
    prof_buf_free(&out);

    free(content);
    prof_buf_free(&b);
}


static void
test_version(void)
{
    char         data[64];
    const char  *err;

    memset(data, 0, sizeof(data));
    memcpy(data, "profarc\n\x01", 9);

    ok(prof_archive_read(data, sizeof(data), &err) == NULL,
       "version 1, without measures, is not read");
    is_str(err, "archive of a profile, of another version",
           "the error tells that the version differs");

    memcpy(data, "profarc\n\x7f", 9);

    ok(prof_archive_read(data, sizeof(data), &err) == NULL,
       "an archive of another version is not read");
    is_str(err, "archive of a profile, of another version",
           "the error tells that the version differs");

    ok(prof_archive_read("<html>", 6, &err) == NULL, "a page is not read");
    is_str(err, "not an archive of a profile",
           "the error tells that the data is no archive");

    ok(prof_archive_read("", 0, &err) == NULL, "empty data is not read");
}


static void
test_number(prof_buf_t *b, uint64_t n)
{
    char  c;

    for ( /* void */ ; n >= 0x80; n >>= 7) {
        c = (char) (n | 0x80);
        prof_buf_append(b, &c, 1);
    }

    c = (char) n;
    prof_buf_append(b, &c, 1);
}


/* writes a title, no scope, numbers and no counters; facts follow them */

static void
test_begin(prof_buf_t *b)
{
    int  i;

    prof_buf_init(b);
    prof_buf_append(b, "\2x", 2);

    for (i = 0; i < 15; i++) {
        test_number(b, 0);
    }
}


/* returns the error of an archive with this content, or "read" */

static const char *
test_content(const prof_buf_t *content)
{
    prof_buf_t       b;
    const char      *err;
    prof_profile_t  *p;

    prof_buf_init(&b);
    repack((unsigned char *) content->data, content->len, &b);

    p = prof_archive_read(b.data, b.len, &err);

    prof_profile_destroy(p);
    prof_buf_free(&b);

    return p ? "read" : err;
}


static void
test_depth(void)
{
    uint32_t    i, k;
    prof_buf_t  b;

    static const uint32_t  depths[] = { 2 * PROF_MAX_DEPTH,
                                        2 * PROF_MAX_DEPTH + 1, 1000000 };

    for (k = 0; k < 3; k++) {
        test_begin(&b);

        test_number(&b, 0);              /* facts, objects, inlines */
        test_number(&b, 0);
        test_number(&b, 0);
        test_number(&b, 1);              /* a frame */

        for (i = 0; i < 12; i++) {
            test_number(&b, 0);
        }

        test_number(&b, depths[k]);

        for (i = 0; i < depths[k]; i++) {
            test_number(&b, i != 0);
            test_number(&b, 0);
        }

        test_number(&b, 0);              /* labels, series */
        test_number(&b, 0);

        is_str(test_content(&b), k ? "damaged archive of a profile" : "read",
               "a stack of %" PRIu32 " frames", depths[k]);

        prof_buf_free(&b);
    }
}


/*
 * A series by the names of its measures, followed by the data for its entries.
 */

static void
test_measures(void)
{
    size_t       i, k;
    prof_buf_t   b;

    static const char  *names[][6] = {
        { "time", "wall", "cpu", NULL },
        { "time", "cpu", "wall", NULL },
        { "time", "wall", NULL },
        { "time", "wall", "cpu", "waits", NULL },
        { "locks", "waits", NULL }
    };

    for (k = 0; k < 5; k++) {
        test_begin(&b);

        for (i = 0; i < 6; i++) {        /* facts .. labels */
            test_number(&b, 0);
        }

        for (i = 0; names[k][i]; i++) {
            test_number(&b, strlen(names[k][i]) + 1);
            prof_buf_puts(&b, names[k][i]);
        }

        test_number(&b, 0);
        test_number(&b, 0);              /* entries, series */
        test_number(&b, 0);

        is_str(test_content(&b),
               k ? "archive of a profile, of another version" : "read",
               "a series \"%s\" of measures \"%s\", ...", names[k][0],
               names[k][1]);

        prof_buf_free(&b);
    }
}


static void
test_twice(void)
{
    int         i, k;
    prof_buf_t  b;

    test_begin(&b);

    for (i = 0; i < 6; i++) {
        test_number(&b, 0);
    }

    for (k = 0; k < 2; k++) {
        prof_buf_append(&b, "\5time\5wall\4cpu\0\0", 16);
    }

    test_number(&b, 0);

    is_str(test_content(&b), "damaged archive of a profile",
           "a series that occurs twice is damage");

    prof_buf_free(&b);
}


static void
test_expanding(void)
{
    uint32_t         i;
    prof_buf_t       b;
    const char      *err;
    prof_profile_t  *p;

    /* empty texts, which take the most memory */

    test_begin(&b);
    test_number(&b, 1000000);

    for (i = 0; i < 1000000; i++) {
        test_number(&b, 1);
        test_number(&b, 1);
        test_number(&b, 0);
    }

    is_str(test_content(&b), "profile that takes too much memory",
           "a million facts in 3 MB are too much");

    prof_buf_free(&b);

    test_expand(&b, PROF_ARCHIVE_MAX);

    p = prof_archive_read(b.data, b.len, &err);
    ok(p == NULL && b.len < 150000, "128 MB in %zu bytes are refused", b.len);
    is_str(err, "damaged archive of a profile",
           "the error tells that the archive is damaged");

    prof_profile_destroy(p);
    prof_buf_free(&b);
}


/* an archive of this number of zeros, compressed as much as zlib can */

static void
test_expand(prof_buf_t *b, size_t size)
{
    uLong           crc;
    uLongf          len;
    unsigned char  *data, *head;

    len = compressBound(size);
    data = calloc(1, size);
    head = calloc(1, PROF_ARCHIVE_HEAD + len);

    if (data == NULL || head == NULL
        || compress2(head + PROF_ARCHIVE_HEAD, &len, data, size, 9) != Z_OK)
    {
        abort();
    }

    memcpy(head, PROF_ARCHIVE_MAGIC, PROF_ARCHIVE_AT_VERSION);
    repack_number(head + PROF_ARCHIVE_AT_VERSION, PROF_ARCHIVE_VERSION, 4);
    repack_number(head + PROF_ARCHIVE_AT_SIZE, size, 8);

    crc = crc32(0, head + PROF_ARCHIVE_AT_SIZE,
                PROF_ARCHIVE_HEAD - PROF_ARCHIVE_AT_SIZE + len);
    repack_number(head + PROF_ARCHIVE_AT_CRC, crc, 4);

    prof_buf_init(b);
    prof_buf_append(b, head, PROF_ARCHIVE_HEAD + len);

    free(head);
    free(data);
}


/* a profile that compresses better than readers accept */

static void
test_similar(void)
{
    uint32_t         i, n;
    prof_buf_t       b;
    prof_entry_t    *e;
    prof_profile_t  *copy, *p;

    n = 2000000;
    p = fixture_full();

    ntimes(p) = 0;

    for (i = 0; i < n; i++) {
        e = fixture_add(p, PROF_SERIES_TIME, 0);
        e->values[PROF_VALUE_WALL] = 7;
        e->values[PROF_VALUE_CPU] = 7;
    }

    prof_buf_init(&b);
    is_int(prof_archive_write(p, &b), PROF_OK,
           "two million similar entries are written");

    copy = prof_archive_read(b.data, b.len, NULL);

    ok(copy && ntimes(copy) == n
       && memcmp(time_of(copy, 0), time_of(p, 0),
                 n * p->series[PROF_SERIES_TIME].size) == 0,
       "are read: %zu bytes", b.len);

    prof_profile_destroy(copy);
    prof_buf_free(&b);
    prof_profile_destroy(p);
}


static uint32_t
test_valid(const prof_profile_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->nframes; i++) {
        if ((p->frames[i].object != PROF_NONE
             && p->frames[i].object >= p->nobjects)
            || p->frames[i].inlines > p->ninlines
            || p->frames[i].ninlines > p->ninlines - p->frames[i].inlines)
        {
            return 0;
        }
    }

    for (i = 0; i < p->nnodes; i++) {
        if ((p->nodes[i].parent != PROF_NONE && p->nodes[i].parent >= i)
            || p->nodes[i].frame >= p->nframes)
        {
            return 0;
        }
    }

    for (i = 0; i < p->nlabels; i++) {
        if ((p->labels[i].rest != PROF_NONE && p->labels[i].rest >= i)
            || p->labels[i].name == NULL || p->labels[i].value == NULL)
        {
            return 0;
        }
    }

    for (i = 0; i < ntimes(p); i++) {
        if (time_of(p, i)->node >= p->nnodes
            || time_of(p, i)->type > PROF_ENTRY_GAP
            || (time_of(p, i)->labels != PROF_NONE
                && time_of(p, i)->labels >= p->nlabels))
        {
            return 0;
        }
    }

    for (i = 0; i < nallocs(p); i++) {
        if (alloc_of(p, i)->node >= p->nnodes
            || (alloc_of(p, i)->labels != PROF_NONE
                && alloc_of(p, i)->labels >= p->nlabels))
        {
            return 0;
        }
    }

    return p->mode <= PROF_MODE_OBJECT && p->title != NULL;
}
