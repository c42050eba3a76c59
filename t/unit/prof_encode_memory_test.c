
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 *
 * Allocations, labels and inlined functions in all formats.
 */


#include "tap.h"

#include "prof_fixture.h"
#include "prof_document.h"
#include "prof_pprof_reader.h"
#include "formats/prof_encode.h"
#include "profile/prof_merge.h"

#include <jansson.h>
#include <unistd.h>


static void test_pprof(void);
static void test_pprof_labels(void);
static void test_pprof_inlines(void);
static void test_pprof_go(void);
static void test_folded(void);
static void test_speedscope(void);
static void test_speedscope_labels(void);
static void test_html(void);
static void test_html_labels(void);
static void test_svg(void);
static prof_profile_t *test_memory(void);
static void test_alloc(prof_profile_t *p, uint32_t node, uint64_t objects,
    uint64_t space, uint64_t inuse_objects, uint64_t inuse_space);
static prof_profile_t *test_workers(void);
static const char *test_label(const Prof__Profile *pb, size_t sample,
    const char *key);
static json_t *test_json(const prof_profile_t *p);


int
main(void)
{
    test_pprof();
    test_pprof_labels();
    test_pprof_inlines();
    test_pprof_go();
    test_folded();
    test_speedscope();
    test_speedscope_labels();
    test_html();
    test_html_labels();
    test_svg();

    return done_testing();
}


static void
test_pprof(void)
{
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = test_memory();
    pb = pprof_decode(p);

    is_int(pb->n_sample_type, 4, "pprof: the profile has four types");
    is_str(pprof_type(pb, pb->sample_type[0]), "alloc_objects/count",
           "pprof: the first type is allocated objects");
    is_str(pprof_type(pb, pb->sample_type[1]), "alloc_space/bytes",
           "pprof: the second type is allocated bytes");
    is_str(pprof_type(pb, pb->sample_type[2]), "inuse_objects/count",
           "pprof: the third type is objects in use");
    is_str(pprof_type(pb, pb->sample_type[3]), "inuse_space/bytes",
           "pprof: the last type is bytes in use");
    is_str(pprof_str(pb, pb->default_sample_type), "alloc_space",
           "pprof: allocated bytes are shown first");
    is_str(pprof_type(pb, pb->period_type), "space/bytes",
           "pprof: the period is in bytes");
    is_int(pb->period, 1,
           "pprof: a period of 1 shows that all blocks are counted");
    ok(pprof_is_valid(pb), "pprof: the profile is valid");

    is_int(pb->n_sample, 2, "pprof: each stack has one sample");
    is_str(pprof_stack(pb, 0), "malloc/parse/main",
           "pprof: the sample has its stack");
    is_int(pprof_sum(pb, 0), 13, "pprof: allocated objects are summed");
    is_int(pprof_sum(pb, 1), 5000000, "pprof: allocated bytes are summed");
    is_int(pprof_sum(pb, 2), 2, "pprof: objects in use are summed");
    is_int(pprof_sum(pb, 3), 1048576, "pprof: bytes in use are summed");
    is_int(pb->sample[0]->n_label, 0, "pprof: samples have no labels");

    prof__profile__free_unpacked(pb, NULL);

    p->first = PROF_MEASURE_INUSE_SPACE;
    p->alloc_interval = 524288;
    pb = pprof_decode(p);

    is_str(pprof_str(pb, pb->default_sample_type), "inuse_space",
           "pprof: a heap shows bytes in use first");
    is_int(pb->period, 524288, "pprof: the period is the interval of sampling");
    ok(pprof_has_comment(pb, "one sample each 512.0 KB"),
       "pprof: a comment has the interval");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


static void
test_pprof_labels(void)
{
    size_t           i, workers;
    uint32_t         set;
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = test_workers();
    prof_profile_label(p, "worker", "all", 3);
    prof_profile_label(p, "server", "example.com", 11);

    pb = pprof_decode(p);
    is_int(pb->n_sample, 8, "labels: each value has its own samples");

    workers = 0;

    for (i = 0; i < pb->n_sample; i++) {
        workers += strcmp(test_label(pb, i, "worker"), "100") == 0
                   || strcmp(test_label(pb, i, "worker"), "200") == 0;
    }

    is_int(workers, 8,
           "labels: the label of a sample replaces that of the profile");
    is_str(test_label(pb, 0, "server"), "example.com",
           "labels: samples have the label of the profile");
    is_int(pprof_sum(pb, 2), p->wall,
           "labels: the samples have the time of all");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);

    p = test_memory();
    set = prof_profile_labels(p, PROF_NONE, "size", "4096", "bytes");
    alloc_of(p, 0)->labels = set;
    pb = pprof_decode(p);

    for (i = 0; i < pb->n_sample && pb->sample[i]->n_label == 0; i++) {
        /* void */
    }

    is_int(pb->sample[i]->label[0]->num, 4096,
           "labels: a label may be a number");
    is_str(pprof_str(pb, pb->sample[i]->label[0]->num_unit), "bytes",
           "labels: the number has its unit");
    is_int(pb->sample[i]->label[0]->str, 0, "labels: the number has no text");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


static void
test_pprof_inlines(void)
{
    prof_profile_t        *p;
    Prof__Profile         *pb;
    const Prof__Location  *l;

    p = fixture_full();
    pb = pprof_decode(p);

    l = pprof_location(pb, 1);

    is_int(l->n_line, 3, "inlines: a location has three lines");
    is_str(pprof_str(pb, pb->function[l->line[0]->function_id - 1]->name),
           "inner", "inlines: the innermost function is the first");
    is_str(pprof_str(pb, pb->function[l->line[1]->function_id - 1]->name),
           "outer", "inlines: its caller is the second");
    is_int(l->line[1]->line, 21,
           "inlines: the caller has the line of its call");
    is_str(pprof_str(pb, pb->function[l->line[2]->function_id - 1]->name),
           "main", "inlines: the function is the last");
    is_int(l->line[2]->line, 11,
           "inlines: the function has the line of its call");
    is_int(pb->function[l->line[2]->function_id - 1]->start_line, 10,
           "inlines: the function has the line where it begins");
    is_int(pb->mapping[0]->has_inline_frames, 1,
           "inlines: the mapping tells that functions are inlined");
    ok(pprof_is_valid(pb), "inlines: the profile is valid");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


/* the reader of pprof itself */

static void
test_pprof_go(void)
{
    int              fd;
    char             command[512], path[64];
    prof_buf_t       b;
    prof_profile_t  *p;

    if (system("go version > /dev/null 2>&1") != 0) {
        diag("no go");
        return;
    }

    (void) snprintf(path, sizeof(path), "/tmp/prof_encode_memory_XXXXXX");

    p = test_memory();
    prof_buf_init(&b);
    fd = mkstemp(path);

    if (fd == -1 || prof_encode_pprof.encode(p, &b) != PROF_OK
        || write(fd, b.data, b.len) != (ssize_t) b.len)
    {
        abort();
    }

    (void) snprintf(command, sizeof(command),
                    "HOME=/tmp go tool pprof -top -sample_index=inuse_space "
                    "%s 2> /dev/null | grep -q '1MB  *100%% .*malloc'", path);
    is_int(system(command), 0, "go: what is in use");

    (void) snprintf(command, sizeof(command),
                    "HOME=/tmp go tool pprof -top %s 2> /dev/null"
                    " | grep -q 'Type: alloc_space'", path);
    is_int(system(command), 0, "go: what was allocated is the default");

    (void) unlink(path);
    close(fd);
    prof_buf_free(&b);
    prof_profile_destroy(p);
}


static void
test_folded(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = test_memory();

    prof_buf_init(&b);
    prof_encode_folded.encode(p, &b);
    prof_buf_append(&b, "", 1);
    is_str(b.data, "main;parse;malloc 4000000\nmain;send;malloc 1000000\n",
           "folded: lines have bytes");
    prof_buf_free(&b);

    p->first = PROF_MEASURE_INUSE_SPACE;

    prof_encode_folded.encode(p, &b);
    prof_buf_append(&b, "", 1);
    is_str(b.data, "main;send;malloc 1048576\n",
           "folded: lines have bytes in use");
    prof_buf_free(&b);

    prof_profile_destroy(p);
}


static void
test_speedscope(void)
{
    json_t          *json, *profiles;
    prof_profile_t  *p;

    p = test_memory();
    json = test_json(p);
    profiles = json_object_get(json, "profiles");

    is_int(json_array_size(profiles), 5,
           "speedscope: each measure has a profile");
    is_str(json_string_value(json_object_get(json_array_get(profiles, 0),
                                             "unit")),
           "bytes", "speedscope: one profile is in bytes");
    is_str(json_string_value(json_object_get(json_array_get(profiles, 1),
                                             "unit")),
           "none", "speedscope: one profile is in objects");
    is_str(json_string_value(json_object_get(json_array_get(profiles, 0),
                                             "name")),
           "alloc_space: GET /memory, 4.8 MB, all allocations",
           "speedscope: the profile has its name");
    is_int(json_integer_value(json_object_get(json_array_get(profiles, 3),
                                              "endValue")),
           2, "speedscope: one profile is of objects in use");
    is_int(json_integer_value(json_object_get(json, "activeProfileIndex")), 0,
           "speedscope: allocated is shown first");
    is_int(json_integer_value(json_object_get(json_object_get(json,
                                                              "profile_info"),
                                              "peak_space")),
           2000000, "speedscope: the file has the peak");

    json_decref(json);

    p->first = PROF_MEASURE_INUSE_SPACE;
    json = test_json(p);
    is_int(json_integer_value(json_object_get(json, "activeProfileIndex")), 2,
           "speedscope: in use is shown first");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_speedscope_labels(void)
{
    json_t          *json, *profiles;
    uint64_t         sum;
    prof_profile_t  *p;

    p = test_workers();
    json = test_json(p);
    profiles = json_object_get(json, "profiles");

    is_int(json_array_size(profiles), 5,
           "speedscope: each worker has a profile");
    is_str(json_string_value(json_object_get(json_array_get(profiles, 3),
                                             "name")),
           "worker 100: wall, 252.9 ms",
           "speedscope: the profile has the name of the worker");

    sum = json_integer_value(json_object_get(json_array_get(profiles, 3),
                                             "endValue"))
          + json_integer_value(json_object_get(json_array_get(profiles, 4),
                                               "endValue"));
    is_int(sum, p->wall, "speedscope: the profiles have the time of all");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_html(void)
{
    char            *text;
    prof_profile_t  *p;

    p = test_memory();
    text = document_create(&prof_encode_html, p);

    document_policy(text, &prof_encode_html);

    is_int(document_count(text, "<svg class=\"prof-plot\""), 4,
           "html: the page has four flamegraphs");
    ok(strstr(text, "id=\"prof-alloc_space\" value=\"alloc_space\" "
                    "data-mode=\"object\" checked><span>Allocated "
                    "<small>4.8 MB</small>") != NULL,
       "html: the page has a switch for allocated bytes");
    ok(strstr(text, "Allocated: 4.8 MB in 13 objects, in use at the end: "
                    "1.0 MB in 2 objects, at most at one time: 1.9 MB in 4 "
                    "objects") != NULL, "html: the page has a note");
    ok(strstr(text, "<td class=\"by inuse_space num\" "
                    "data-value=\"1048576\">1.0 MB <small>100%</small>")
       != NULL, "html: a table has bytes in use");
    is_int(document_count(text, "id=\"labels\""), 0,
           "html: the page has no labels");
    is_int(document_count(text, "waiting</li>"), 0,
           "html: the page does not mention waiting");

    free(text);

    /* time beside the allocations */

    fixture_entry(p, 0, PROF_ENTRY_SAMPLE, 1000, 1000);
    text = document_create(&prof_encode_html, p);
    is_int(document_count(text, "<svg class=\"prof-plot\""), 6,
           "html: the page has flamegraphs of time and memory");
    free(text);

    /* no allocations */

    nallocs(p) = 0;
    text = document_create(&prof_encode_html, p);
    ok(strstr(text, "Bytes that were allocated: none") != NULL,
       "html: a line tells that no bytes were allocated");
    free(text);

    prof_profile_destroy(p);
}


static void
test_html_labels(void)
{
    char            *text;
    prof_profile_t  *p;

    p = test_workers();
    text = document_create(&prof_encode_html, p);

    is_int(document_count(text, "id=\"labels\""), 1,
           "html: the page has labels");
    ok(strstr(text, "<th scope=\"row\">worker 100</th>"
                    "<td class=\"by wall num\" data-value=\"252940000\">")
       != NULL, "html: a table has the time of a worker");

    free(text);
    prof_profile_destroy(p);
}


static void
test_svg(void)
{
    char            *text;
    prof_profile_t  *p;

    p = test_memory();
    text = document_create(&prof_encode_svg, p);

    document_policy(text, &prof_encode_svg);
    document_xml(text, "svg");

    ok(strstr(text, "data-mode=\"alloc_space\" data-unit=\"bytes\" "
                    "data-total=\"5000000\"") != NULL,
       "svg: the picture is in bytes");
    ok(strstr(text, "<title>parse\n3.8 MB, 80%") != NULL,
       "svg: a box has its bytes");
    ok(strstr(text, ">all bytes allocated<") != NULL,
       "svg: the root has the name of the whole");

    free(text);
    prof_profile_destroy(p);
}


static prof_profile_t *
test_memory(void)
{
    uint32_t         exe;
    prof_profile_t  *p;

    p = fixture_create("GET /memory");
    p->mode = PROF_MODE_OBJECT;
    p->peak_space = 2000000;
    p->peak_objects = 4;

    exe = fixture_object(p, "/usr/sbin/server", "0d7fd93d");

    test_alloc(p, fixture_stack(p, exe, "main/parse/malloc"), 8, 3000000, 0,
               0);
    test_alloc(p, fixture_stack(p, exe, "main/parse/malloc"), 2, 1000000, 0,
               0);
    test_alloc(p, fixture_stack(p, exe, "main/send/malloc"), 3, 1000000, 2,
               1048576);

    return p;
}


static void
test_alloc(prof_profile_t *p, uint32_t node, uint64_t objects,
    uint64_t space, uint64_t inuse_objects, uint64_t inuse_space)
{
    prof_entry_t  *e;

    e = fixture_add(p, PROF_SERIES_MEMORY, node);
    e->values[PROF_VALUE_ALLOC_OBJECTS] = objects;
    e->values[PROF_VALUE_ALLOC_SPACE] = space;
    e->values[PROF_VALUE_INUSE_OBJECTS] = inuse_objects;
    e->values[PROF_VALUE_INUSE_SPACE] = inuse_space;
}


static prof_profile_t *
test_workers(void)
{
    prof_profile_t      *in[2], *p;
    prof_merge_label_t   label[2];

    in[0] = fixture_typical();
    in[1] = fixture_typical();

    label[0].name = "worker";
    label[0].value = "100";
    label[0].unit = NULL;
    label[1] = label[0];
    label[1].value = "200";

    p = prof_profile_merge((const prof_profile_t *const *) in, label, 2,
                           "workers", 0);

    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);

    return p;
}


/* returns the text of a label, "?" without a label or with several */

static const char *
test_label(const Prof__Profile *pb, size_t sample, const char *key)
{
    size_t               i;
    const char          *text;
    const Prof__Sample  *s;

    s = pb->sample[sample];
    text = "?";

    for (i = 0; i < s->n_label; i++) {
        if (strcmp(pprof_str(pb, s->label[i]->key), key) == 0) {
            text = text[0] == '?' ? pprof_str(pb, s->label[i]->str) : "??";
        }
    }

    return text;
}


static json_t *
test_json(const prof_profile_t *p)
{
    json_t      *json;
    prof_buf_t   b;

    prof_buf_init(&b);

    if (prof_encode_speedscope.encode(p, &b) != PROF_OK) {
        abort();
    }

    json = json_loadb(b.data, b.len, 0, NULL);
    if (json == NULL) {
        abort();
    }

    prof_buf_free(&b);

    return json;
}
