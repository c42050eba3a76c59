
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats proto
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "prof_pprof_reader.h"
#include "formats/prof_encode.h"

#include <unistd.h>


#define R  "\xef\xbf\xbd"


static void test_header(void);
static void test_modes(void);
static void test_empty(void);
static void test_frames(void);
static void test_samples(void);
static void test_labels(void);
static void test_comments(void);
static void test_strings(void);
static void test_valid(void);
static void test_many(void);
static int go_pprof(prof_profile_t *p);


int
main(void)
{
    test_header();
    test_modes();
    test_empty();
    test_frames();
    test_samples();
    test_labels();
    test_comments();
    test_strings();
    test_valid();
    test_many();

    return done_testing();
}


static void
test_header(void)
{
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_typical();
    pb = pprof_decode(p);

    is_int(pb->time_nanos, p->start_realtime, "the profile has its start");
    is_int(pb->duration_nanos, p->wall, "the profile has its duration");
    is_int(pb->period, 1000000, "the profile has its period");
    is_str(pprof_type(pb, pb->period_type), "wall/nanoseconds",
           "the period is that of wall time");
    is_str(pprof_str(pb, pb->default_sample_type), "wall",
           "wall time is shown first");
    is_str(pprof_str(pb, 0), "", "the first string is empty");

    is_int(pb->n_mapping, 2, "each object has a mapping");
    is_str(pprof_str(pb, pb->mapping[0]->filename), "/usr/sbin/server",
           "the program is the first mapping");
    is_str(pprof_str(pb, pb->mapping[0]->build_id), "0d7fd93d",
           "the program has its build-id");
    is_str(pprof_str(pb, pb->mapping[1]->filename), "/usr/lib/libc.so.6",
           "the library is the second mapping");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


static void
test_modes(void)
{
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_typical();

    pb = pprof_decode(p);
    is_int(pb->n_sample_type, 3, "wall: the profile has three types");
    is_str(pprof_type(pb, pb->sample_type[0]), "samples/count",
           "wall: the first type is samples");
    is_str(pprof_type(pb, pb->sample_type[1]), "cpu/nanoseconds",
           "wall: the second type is CPU time");
    is_str(pprof_type(pb, pb->sample_type[2]), "wall/nanoseconds",
           "wall: the last type is wall time");
    is_int(pb->n_sample, 4, "wall: each stack has a sample");
    is_int(pprof_sum(pb, 0), 3, "wall: samples are counted");
    is_int(pprof_sum(pb, 1), p->cpu, "wall: CPU times are summed");
    is_int(pprof_sum(pb, 2), p->wall, "wall: wall times are summed");
    prof__profile__free_unpacked(pb, NULL);

    p->mode = PROF_MODE_CPU;

    pb = pprof_decode(p);
    is_int(pb->n_sample_type, 2, "cpu: the profile has two types");
    is_str(pprof_type(pb, pb->sample_type[0]), "samples/count",
           "cpu: the first type is samples");
    is_str(pprof_type(pb, pb->sample_type[1]), "cpu/nanoseconds",
           "cpu: the last type is CPU time");
    is_str(pprof_str(pb, pb->default_sample_type), "cpu",
           "cpu: CPU time is shown first");
    is_str(pprof_type(pb, pb->period_type), "cpu/nanoseconds",
           "cpu: the period is that of CPU time");
    is_int(pb->n_sample, 3, "cpu: waiting is left out");
    is_int(pprof_sum(pb, 1), p->cpu, "cpu: CPU times are summed");
    prof__profile__free_unpacked(pb, NULL);

    prof_profile_destroy(p);
}


static void
test_empty(void)
{
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_create("nothing");
    p->frequency = 0;

    pb = pprof_decode(p);

    is_int(pb->n_sample_type, 3, "empty: the profile has three types");
    is_int(pb->n_sample, 0, "empty: the profile has no samples");
    is_int(pb->period, 0, "empty: the period is 0");
    is_str(pprof_str(pb, 0), "", "empty: the first string is empty");
    ok(pprof_is_valid(pb), "empty: the profile is valid");

    prof__profile__free_unpacked(pb, NULL);

    if (system("command -v go > /dev/null") == 0) {
        is_int(go_pprof(p), 0, "empty: pprof reads the profile");
    }

    prof_profile_destroy(p);
}


static void
test_frames(void)
{
    uint32_t               exe, f[7], i, node;
    prof_profile_t        *p;
    Prof__Profile         *pb;
    const Prof__Location  *l[7];

    p = fixture_create("frames");
    exe = fixture_object(p, "/usr/sbin/server", "0d7fd93d");
    p->objects[exe].base = 0x55550000;

    f[0] = fixture_frame(p, exe, 0x2000, "run");
    f[1] = fixture_frame(p, exe, 0x2010, "run");
    f[2] = fixture_frame(p, exe, 0x3000, "run");
    f[3] = fixture_frame(p, PROF_NONE, 0x7f0000001000, NULL);
    f[4] = fixture_frame(p, PROF_NONE, 0x7f0000002000, NULL);
    f[5] = fixture_name(p, PROF_TYPE_WAITING, "[waiting]");
    f[6] = fixture_frame(p, exe, 0x4000, "source");

    p->frames[f[0]].function = 0x2000;
    p->frames[f[1]].function = 0x2000;
    p->frames[f[1]].type = PROF_TYPE_RETURN;
    p->frames[f[2]].function = 0x3000;
    p->frames[f[4]].type = PROF_TYPE_RETURN;
    p->frames[f[6]].file = fixture_copy("source.c");
    p->frames[f[6]].line = 42;

    (void) prof_profile_symbolize(p);

    node = PROF_NONE;

    for (i = 0; i < 7; i++) {
        node = fixture_node(p, node, f[i]);
    }

    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1, 1);

    pb = pprof_decode(p);
    ok(pprof_is_valid(pb), "frames: the profile is valid");

    for (i = 0; i < 7; i++) {
        l[i] = pprof_location(pb, f[i] + 1);
    }

    is_int(pb->n_location, 7, "each address has a location");
    is_int(l[0]->address, 0x55552000,
           "a location has the address in the process");
    is_int(l[1]->address, 0x5555200f,
           "the address of a caller is within the call");
    is_int(l[0]->line[0]->function_id, l[1]->line[0]->function_id,
           "addresses of one function have one function");
    ok(l[0]->line[0]->function_id != l[2]->line[0]->function_id,
       "a function of the same name in another object differs");

    is_int(l[3]->address, 0x7f0000001000,
           "code without object has its address");
    is_int(l[4]->address, 0x7f0000001fff,
           "a caller without object has its address");
    is_int(l[3]->mapping_id, 0, "code without object has no mapping");
    is_str(pprof_frame(pb, f[3] + 1), "[anonymous code]",
           "code without object has a name");
    is_int(l[3]->line[0]->function_id, l[4]->line[0]->function_id,
           "code without object is one function");

    is_int(l[5]->address, 0, "a frame that is no code has no address");
    is_int(l[5]->mapping_id, 0, "a frame that is no code has no mapping");
    is_str(pprof_frame(pb, f[5] + 1), "[waiting]",
           "a frame that is no code has its name");

    is_int(l[6]->line[0]->line, 42, "a location has its line");
    is_str(pprof_str(pb,
           pb->function[l[6]->line[0]->function_id - 1]->filename),
           "source.c", "a function has its source file");
    ok(pb->mapping[0]->has_filenames && pb->mapping[0]->has_line_numbers,
       "the mapping has files and lines");

    is_int(pb->mapping[0]->memory_start, 0x55551000,
           "the mapping has its start");
    is_int(pb->mapping[0]->memory_limit, 0x55650000, "the mapping has its end");
    is_int(pb->mapping[0]->file_offset, 0x1000, "the mapping has its offset");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


static void
test_samples(void)
{
    uint32_t         exe, run, parse;
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_create("samples");
    exe = fixture_object(p, "/usr/sbin/server", "");

    run = fixture_stack(p, exe, "main/run");
    parse = fixture_stack(p, exe, "main/run/parse");

    fixture_entry(p, parse, PROF_ENTRY_SAMPLE, 10, 8);
    fixture_entry(p, run, PROF_ENTRY_TURN, 5, 4);
    fixture_entry(p, parse, PROF_ENTRY_SAMPLE, 20, 16);
    fixture_entry(p, run, PROF_ENTRY_GAP, 100, 0);
    fixture_entry(p, run, PROF_ENTRY_SAMPLE, 0, 0);
    fixture_entry(p, parse, PROF_ENTRY_TURN, 0, 0);

    pb = pprof_decode(p);

    is_int(pb->n_sample, 3, "equal stacks are one sample");
    is_str(pprof_stack(pb, 0), "run/main",
           "the innermost function is the first");
    is_int(pb->sample[0]->value[0], 1, "turns are not counted");
    is_int(pb->sample[0]->value[1], 4,
           "CPU times of turn and sample are added");
    is_int(pb->sample[0]->value[2], 5,
           "wall times of turn and sample are added");
    is_str(pprof_str(pb, pb->sample[0]->label[0]->str), "running",
           "turns and samples have the state running");
    is_str(pprof_stack(pb, 1), "run/main",
           "a gap in the same stack is another sample");
    is_int(pb->sample[1]->value[2], 100, "the gap has its time");
    is_str(pprof_str(pb, pb->sample[1]->label[0]->str), "waiting",
           "the gap has the state waiting");
    is_str(pprof_stack(pb, 2), "parse/run/main",
           "another stack is another sample");
    is_int(pb->sample[2]->value[0], 2, "the other stack has its samples");
    is_int(pb->sample[2]->value[2], 30, "the other stack has its time");

    prof__profile__free_unpacked(pb, NULL);

    /* sums above the maximum of the format */

    wall_of(p, 0) = UINT64_MAX - 25;
    pb = pprof_decode(p);
    is_int(pb->sample[2]->value[2], INT64_MAX, "the largest number is kept");
    prof__profile__free_unpacked(pb, NULL);

    prof_profile_destroy(p);
}


static void
test_labels(void)
{
    char                 name[16];
    uint32_t             i;
    prof_profile_t      *p;
    Prof__Profile       *pb;
    const Prof__Sample  *s;

    p = fixture_typical();
    prof_profile_label(p, "server", "example.com", 11);
    prof_profile_label(p, "location", "", 0);

    pb = pprof_decode(p);
    s = pb->sample[0];

    is_int(s->n_label, 2, "facts are no labels, nor are empty ones");
    is_str(pprof_str(pb, s->label[0]->key), "state",
           "the label of the sample precedes those of the profile");
    is_str(pprof_str(pb, s->label[1]->key), "server", "a label has its name");
    is_str(pprof_str(pb, s->label[1]->str), "example.com",
           "a label has its value");
    prof__profile__free_unpacked(pb, NULL);

    for (i = 0; i < 100; i++) {
        (void) snprintf(name, sizeof(name), "label%u", i);
        prof_profile_label(p, name, "x", 1);
    }

    pb = pprof_decode(p);
    is_int(pb->sample[0]->n_label, 17, "the number of labels is bounded");
    prof__profile__free_unpacked(pb, NULL);

    prof_profile_destroy(p);
}


static void
test_comments(void)
{
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_typical();
    prof_profile_fact(p, "none", "", 0);

    pb = pprof_decode(p);

    is_str(pprof_str(pb, pb->comment[0]),
           "wall: GET /index.html, 252.9 ms, 3 samples at 1020 Hz "
           "(asked: 1000), 1 lost, 2 truncated",
           "the first comment describes the profile");
    ok(pprof_has_comment(pb, "request: GET /index.html HTTP/1.1"),
       "a comment has a fact");
    ok(pprof_has_comment(pb, "none: "), "a comment has an empty fact");
    ok(pprof_has_comment(pb, "start: 2023-11-14T22:13:20.123Z"),
       "a comment has the start");
    ok(pprof_has_comment(pb, "lost_overrun=1"), "a comment has the counters");
    ok(pprof_has_comment(pb, "sampled_wall=2900000"),
       "a comment has the times");
    ok(pprof_has_comment(pb, "addresses_named="),
       "a comment has the last number");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


static void
test_strings(void)
{
    uint32_t         node;
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_create("strings");

    node = fixture_node(p, PROF_NONE,
                        fixture_name(p, PROF_TYPE_STAGE, "a\xff\x1b[31m\nb;c"));
    node = fixture_node(p, node, fixture_name(p, PROF_TYPE_STAGE, ""));
    node = fixture_node(p, node,
                        fixture_name(p, PROF_TYPE_STAGE, "\xc3\xa4\x7f"));
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1, 1);
    prof_profile_fact(p, "uri", "/\r\nX: y", 8);

    pb = pprof_decode(p);

    is_str(pprof_stack(pb, 0), "\xc3\xa4?//a" R "?[31m?b;c",
           "names are valid UTF-8");
    ok(pprof_has_comment(pb, "uri: /??X: y"), "facts are valid UTF-8");
    ok(pprof_is_valid(pb), "strings: the profile is valid");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


static void
test_valid(void)
{
    prof_buf_t       b1, b2;
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_typical();
    pb = pprof_decode(p);
    ok(pprof_is_valid(pb), "typical: the profile is valid");
    prof__profile__free_unpacked(pb, NULL);

    prof_buf_init(&b1);
    prof_buf_init(&b2);
    prof_encode_pprof.encode(p, &b1);
    prof_encode_pprof.encode(p, &b2);

    ok(b1.len == b2.len && memcmp(b1.data, b2.data, b1.len) == 0,
       "the same profile gives the same bytes");

    prof_buf_free(&b1);
    prof_buf_free(&b2);
    prof_profile_destroy(p);
}


/* more of everything than the initial sizes of tables */

static void
test_many(void)
{
    char             name[32];
    uint32_t         exe, i, node;
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = fixture_create("many");
    exe = fixture_object(p, "/usr/sbin/server", "0d7fd93d");
    node = PROF_NONE;

    for (i = 0; i < 5000; i++) {
        (void) snprintf(name, sizeof(name), "function_%u", i);
        node = fixture_node(p, node, fixture_frame(p, exe, 0x2000 + i, name));
        fixture_entry(p, node, PROF_ENTRY_SAMPLE, i + 1, i);
    }

    pb = pprof_decode(p);

    ok(pprof_is_valid(pb), "many: the profile is valid");
    is_int(pb->n_sample, 5000, "many: each stack has a sample");
    is_int(pb->sample[4999]->n_location_id, 5000,
           "many: the deepest stack is complete");
    is_int(pprof_sum(pb, 2), p->wall, "many: samples have all of the time");
    is_str(pprof_frame(pb, pb->sample[4999]->location_id[0]), "function_4999",
           "many: the innermost function is the first");
    is_str(pprof_frame(pb, pb->sample[4999]->location_id[4999]), "function_0",
           "many: the outermost function is the last");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


/* returns the exit status of pprof's own reader */

static int
go_pprof(prof_profile_t *p)
{
    int         fd, rc;
    prof_buf_t  b;
    char        path[64], command[256];

    prof_buf_init(&b);

    (void) snprintf(path, sizeof(path), "/tmp/prof_encode_pprof_XXXXXX");

    fd = mkstemp(path);

    if (fd == -1 || prof_encode_pprof.encode(p, &b) != PROF_OK
        || write(fd, b.data, b.len) != (ssize_t) b.len)
    {
        abort();
    }

    (void) snprintf(command, sizeof(command),
                    "HOME=/tmp go tool pprof -raw %s 2> /dev/null"
                    " | grep -q '^samples/count cpu/nanoseconds'", path);

    rc = system(command);

    (void) unlink(path);
    close(fd);
    prof_buf_free(&b);

    return rc;
}
