
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "formats/prof_encode.h"


#define R  "\xef\xbf\xbd"


static void test_table(void);
static void test_typical(void);
static void test_modes(void);
static void test_names(void);
static void test_sums(void);
static void test_deep(void);
static void test_nothing(void);
static void encode(prof_profile_t *p, prof_buf_t *b);


int
main(void)
{
    test_table();
    test_typical();
    test_modes();
    test_names();
    test_sums();
    test_deep();
    test_nothing();

    return done_testing();
}


static void
test_table(void)
{
    size_t                 i;
    const prof_encoder_t  *e;

    ok(prof_encoder_find("folded", 6) == &prof_encode_folded,
       "a format is found by its name");
    ok(prof_encoder_find("folded", 5) == NULL,
       "a part of a name is no format");
    ok(prof_encoder_find("foldedx", 7) == NULL,
       "more than a name is no format");
    ok(prof_encoder_find("Folded", 6) == NULL,
       "a name in another case is no format");
    ok(prof_encoder_find("", 0) == NULL, "an empty name is no format");

    for (i = 0; prof_encoders[i]; i++) {
        e = prof_encoders[i];

        ok(prof_encoder_find(e->name, strlen(e->name)) == e,
           "%s: the format is found",
           e->name);
        ok(e->content_type[0] && e->extension[0] != '.' && e->encode,
           "%s: the format is complete", e->name);
    }

    is_str(prof_encoders[0]->name, "speedscope", "the default is speedscope");
}


static void
test_typical(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_typical();
    encode(p, &b);
    ok(is_golden(&b, "typical.folded"), "a typical profile is as recorded");
    prof_buf_free(&b);
    prof_profile_destroy(p);

    p = fixture_create("empty");
    encode(p, &b);
    is_int(b.len, 0, "an empty profile has no lines");
    prof_buf_free(&b);
    prof_profile_destroy(p);

    p = fixture_create("one");
    fixture_entry(p, fixture_stack(p, PROF_NONE, "alone"), PROF_ENTRY_TURN,
                  5, 5);
    encode(p, &b);
    is_str(b.data, "alone 5\n", "one entry is one line");
    prof_buf_free(&b);
    prof_profile_destroy(p);
}


static void
test_modes(void)
{
    uint32_t         node;
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_create("modes");

    node = fixture_stack(p, PROF_NONE, "run");
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 10, 4);
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 0, 0);

    node = fixture_stack(p, PROF_NONE, "[waiting]");
    fixture_entry(p, node, PROF_ENTRY_GAP, 90, 0);

    encode(p, &b);
    is_str(b.data, "[waiting] 90\nrun 10\n",
           "a profile of wall time has waiting");
    prof_buf_free(&b);

    p->mode = PROF_MODE_CPU;
    encode(p, &b);
    is_str(b.data, "run 4\n",
           "a profile of CPU time has no lines of no weight");
    prof_buf_free(&b);

    prof_profile_destroy(p);
}


static void
test_names(void)
{
    uint32_t         f, n;
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_create("names");

    f = fixture_name(p, PROF_TYPE_STAGE, "a;b\n1 2\t\x7f\"<>&");
    n = fixture_node(p, PROF_NONE, f);
    f = fixture_name(p, PROF_TYPE_STAGE, "");
    n = fixture_node(p, n, f);
    f = fixture_name(p, PROF_TYPE_STAGE, "bad\xff utf\xe2\x82");
    n = fixture_node(p, n, f);
    fixture_entry(p, n, PROF_ENTRY_SAMPLE, 1, 1);

    encode(p, &b);
    is_str(b.data, "a:b?1 2??\"<>&;?;bad" R " utf" R R " 1\n",
           "separators and damaged characters are replaced");
    prof_buf_free(&b);
    prof_profile_destroy(p);

    /* names that differ only in replaced characters */

    p = fixture_create("equal");

    n = fixture_node(p, PROF_NONE, fixture_name(p, PROF_TYPE_STAGE, "x;y"));
    fixture_entry(p, n, PROF_ENTRY_SAMPLE, 1, 1);
    n = fixture_node(p, PROF_NONE, fixture_name(p, PROF_TYPE_STAGE, "x:y"));
    fixture_entry(p, n, PROF_ENTRY_SAMPLE, 2, 1);

    encode(p, &b);
    is_str(b.data, "x:y 3\n", "each distinct stack has one line");
    prof_buf_free(&b);
    prof_profile_destroy(p);
}


static void
test_sums(void)
{
    char            *last, *line;
    char             path[32];
    uint32_t         i, lines, node, unsorted;
    uint64_t         sum;
    prof_buf_t       b, previous;
    prof_profile_t  *p;

    p = fixture_create("sums");

    for (i = 0; i < 100000; i++) {
        (void) snprintf(path, sizeof(path), "%02u/%02u/%02u", i % 3,
                        i * 7919 % 17, i * 104729 % 29);
        node = fixture_stack(p, PROF_NONE, path);
        fixture_entry(p, node, PROF_ENTRY_SAMPLE, (uint64_t) i << 24, 0);
    }

    encode(p, &b);

    last = NULL;
    sum = 0;
    lines = 0;
    unsorted = 0;

    for (line = strtok(b.data, "\n"); line; line = strtok(NULL, "\n")) {
        sum += strtoull(strrchr(line, ' '), NULL, 10);
        lines++;

        unsorted += last && strcmp(last, line) >= 0;
        last = line;
    }

    is_int(sum, p->wall, "sum of 100,000 entries, above 2^53");
    is_int(lines, 3 * 17 * 29, "each stack has its line");
    is_int(unsorted, 0, "lines are sorted");
    prof_buf_free(&b);

    encode(p, &b);
    encode(p, &previous);

    ok(b.len == previous.len && memcmp(b.data, previous.data, b.len) == 0,
       "the same profile gives the same bytes");

    prof_buf_free(&b);
    prof_buf_free(&previous);
    prof_profile_destroy(p);
}


static void
test_deep(void)
{
    uint32_t         f, i, node;
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_create("deep");
    f = fixture_name(p, PROF_TYPE_STAGE, "f");
    node = PROF_NONE;

    for (i = 0; i < 4096; i++) {
        node = fixture_node(p, node, f);
    }

    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1, 1);

    encode(p, &b);
    is_int(b.len, 4096 * 2 + 2, "a line has all 4,096 frames");
    is_mem(b.data + 4096 * 2 - 4, "f;f 1\n", 6,
           "a line ends with its weight");
    prof_buf_free(&b);
    prof_profile_destroy(p);
}


/* the output also is a string */

static void
test_nothing(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_create("nothing");
    p->mode = PROF_MODE_OBJECT;

    encode(p, &b);
    is_mem(b.data, "[nothing was allocated] 0\n", b.len,
           "a line tells that nothing was allocated");
    ok(b.len > 0, "a profile without allocations is not empty");
    prof_buf_free(&b);

    p->first = PROF_MEASURE_INUSE_SPACE;

    encode(p, &b);
    is_mem(b.data, "[nothing is in use] 0\n", b.len,
           "a line tells that nothing is in use");
    ok(b.len > 0, "a profile without blocks in use is not empty");
    prof_buf_free(&b);

    (void) prof_profile_fact(p, "allocations_not_counted", "no memory", 9);

    encode(p, &b);
    is_mem(b.data, "[allocations were not counted] 0\n", b.len,
           "a profile tells that allocations were not counted");
    ok(b.len > 0, "a profile of blocks that were not counted is not empty");
    prof_buf_free(&b);

    prof_profile_destroy(p);
}


static void
encode(prof_profile_t *p, prof_buf_t *b)
{
    prof_buf_init(b);

    if (prof_encode_folded.encode(p, b) != PROF_OK) {
        diag("encode failed");
        exit(1);
    }

    prof_buf_append(b, "", 1);
    b->len--;
}
