
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 *
 * t/speedscope/check.mjs reads such files with the viewer itself.  This test
 * only needs jansson.
 */


#include "tap.h"

#include "prof_fixture.h"
#include "formats/prof_encode.h"

#include <jansson.h>


static void test_typical(void);
static void test_header(void);
static void test_info(void);
static void test_empty(void);
static void test_names(void);
static void test_prefixes(void);
static void test_source(void);
static void test_weights(void);
static void test_many(void);
static void test_deep(void);
static json_t *encode(prof_profile_t *p);
static json_t *profile(json_t *json, size_t i);
static const char *string(json_t *json, const char *name);
static json_int_t integer(json_t *json, const char *name);
static int contains(const char *text, const char *part);
static json_int_t check_stacks(json_t *json, size_t i, const char *name);


int
main(void)
{
    test_typical();
    test_header();
    test_info();
    test_empty();
    test_names();
    test_prefixes();
    test_source();
    test_weights();
    test_many();
    test_deep();

    return done_testing();
}


static void
test_typical(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_typical();

    prof_buf_init(&b);
    is_int(prof_encode_speedscope.encode(p, &b), PROF_OK,
           "the profile is encoded");
    ok(is_golden(&b, "typical.speedscope.json"),
       "a typical profile is as recorded");
    prof_buf_free(&b);

    prof_profile_destroy(p);
}


static void
test_header(void)
{
    json_t          *json;
    prof_profile_t  *p;

    p = fixture_typical();
    p->mode = PROF_MODE_CPU;

    json = encode(p);

    is_str(string(json, "$schema"),
           "https://www.speedscope.app/file-format-schema.json",
           "the file has its schema");
    is_str(string(json, "exporter"), "ngx_http_profile_module@" PROF_VERSION,
           "the file has its exporter");
    is_str(string(json, "name"), "GET /index.html",
           "the file has the title as its name");
    is_int(integer(json, "activeProfileIndex"), 1, "the mode is shown first");

    is_int(json_array_size(json_object_get(json, "profiles")), 3,
           "the file has three profiles");
    ok(contains(string(profile(json, 0), "name"), "wall: "),
       "wall: the profile has its name");
    ok(contains(string(profile(json, 1), "name"), "cpu: "),
       "cpu: the profile has its name");
    ok(contains(string(profile(json, 2), "name"), "by module, cpu: "),
       "by module: the profile has its name");
    is_int(check_stacks(json, 2, "by module"), p->cpu,
           "by module: the weights have their sum");
    is_str(string(profile(json, 0), "type"), "sampled",
           "a profile has its type");
    is_str(string(profile(json, 0), "unit"), "nanoseconds",
           "a profile has its unit");

    is_int(check_stacks(json, 0, "wall"), p->wall,
           "wall: the weights have their sum");
    is_int(check_stacks(json, 1, "cpu"), p->cpu,
           "cpu: the weights have their sum");

    is_int(json_array_size(json_object_get(profile(json, 0), "samples")), 4,
           "equal stacks in a row are one");
    is_int(json_array_size(json_object_get(profile(json, 1), "samples")), 3,
           "gaps have no CPU time");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_info(void)
{
    json_t          *info, *json;
    prof_profile_t  *p;

    p = fixture_typical();
    p->stats.samples = UINT64_MAX;
    prof_profile_fact(p, "raw \xff", "\xfe\"</script>\x01", 13);

    json = encode(p);
    info = json_object_get(json, "profile_info");

    is_str(string(info, "request"), "GET /index.html HTTP/1.1",
           "the file has a fact");
    is_str(string(info, "raw \xef\xbf\xbd"), "\xef\xbf\xbd\"</script>\x01",
           "the file has a fact of any bytes");
    is_int(integer(info, "lost_overrun"), 1, "the file has a counter");
    is_int(integer(info, "sampled_cpu"), 2490000,
           "the file has the sampled sum");
    is_int(integer(info, "cpu"), 2529000, "the file has the CPU clock");
    is_int(integer(info, "samples"), INT64_MAX,
           "a counter has at most 2^63 - 1");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_empty(void)
{
    json_t          *json;
    prof_profile_t  *p;

    p = fixture_create("");
    json = encode(p);

    is_int(check_stacks(json, 0, "empty"), 0, "empty: the sum is 0");
    is_int(json_array_size(json_object_get(profile(json, 1), "weights")), 0,
           "empty: the profile of CPU time has no weights");
    ok(contains(string(profile(json, 0), "name"), "0 samples"),
       "empty: the name tells that there are no samples");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_names(void)
{
    json_t           *frames, *json;
    size_t            i;
    uint32_t          n;
    prof_profile_t   *p;

    static const struct {
        const char   *in;
        const char   *out;
    } names[] = {
        { "quote\"back\\slash", "quote\"back\\slash" },
        { "<b>&amp;", "<b>&amp;" },
        { "a;b", "a;b" },
        { "line\nfeed\ttab\x01\x1f\x7f", "line\nfeed\ttab\x01\x1f\x7f" },
        { "bad\xff\xc3", "bad\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xe2\x82\xac \xf0\x9f\x94\xa5", "\xe2\x82\xac \xf0\x9f\x94\xa5" },
        { "", "" }
    };

    p = fixture_create("title \xff\n\"");
    n = PROF_NONE;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        n = fixture_node(p, n, fixture_name(p, PROF_TYPE_STAGE, names[i].in));
    }

    fixture_entry(p, n, PROF_ENTRY_SAMPLE, 1, 1);

    json = encode(p);
    frames = json_object_get(json_object_get(json, "shared"), "frames");

    is_str(string(json, "name"), "title \xef\xbf\xbd\n\"",
           "a title of any bytes is valid UTF-8");

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        is_str(string(json_array_get(frames, i), "name"), names[i].out,
               "name %zu is valid UTF-8", i);
    }

    (void) check_stacks(json, 0, "names");

    json_decref(json);
    prof_profile_destroy(p);
}


/* the viewer must not demangle any name */

static void
test_prefixes(void)
{
    size_t             i, raw;
    json_t            *frames, *json;
    const char        *name;
    prof_profile_t    *p;
    static const char *names[] = { "_Z3foov", "__Z3foov", "_RNvC5hello4main",
                                   "_Release", "_r", "Z", "[mangled] _Zx" };

    p = fixture_create("prefixes");

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void) fixture_name(p, PROF_TYPE_STAGE, names[i]);
    }

    json = encode(p);
    frames = json_object_get(json_object_get(json, "shared"), "frames");
    raw = 0;

    for (i = 0; i < json_array_size(frames); i++) {
        name = string(json_array_get(frames, i), "name");

        raw += strncmp(name, "_Z", 2) == 0 || strncmp(name, "__Z", 3) == 0
               || strncmp(name, "_R", 2) == 0;
    }

    is_int(i, 7, "prefixes: each name has its frame");
    is_int(raw, 0, "prefixes - none is raw");
    is_str(string(json_array_get(frames, 3), "name"), " _Release",
           "prefixes: a name that looks mangled is readable");
    is_str(string(json_array_get(frames, 4), "name"), "_r",
           "prefixes - others are as they are");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_source(void)
{
    json_t          *frames, *json;
    uint32_t         f, object;
    prof_profile_t  *p;

    p = fixture_create("source");
    object = fixture_object(p, "/usr/lib/libx.so", "");

    (void) fixture_frame(p, object, 0x1000, "one");
    (void) fixture_frame(p, object, 0x1008, "one");

    f = fixture_frame(p, object, 0x2000, "two");
    p->frames[f].file = fixture_copy("two.c");
    p->frames[f].start_line = 12;
    p->frames[f].line = 14;

    (void) fixture_name(p, PROF_TYPE_WAITING, "[waiting]");

    json = encode(p);
    frames = json_object_get(json_object_get(json, "shared"), "frames");

    is_int(json_array_size(frames), 4, "addresses of a function are a frame");
    is_str(string(json_array_get(frames, 3), "name"), "libx.so",
           "behind the functions are the modules");

    is_str(string(json_array_get(frames, 0), "file"), "/usr/lib/libx.so",
           "a frame without source has its object");
    is_str(string(json_array_get(frames, 1), "file"), "two.c",
           "a frame has its source file");
    is_int(integer(json_array_get(frames, 1), "line"), 12,
           "a frame has its line");
    ok(json_object_get(json_array_get(frames, 2), "file") == NULL,
       "neither for what is no code");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_weights(void)
{
    json_t          *json;
    uint64_t         most;
    prof_profile_t  *p;

    /* the largest number that the viewer's arithmetic represents exactly */

    most = ((uint64_t) 1 << 53) - 1;

    p = fixture_create("weights");
    fixture_entry(p, fixture_stack(p, PROF_NONE, "a"), PROF_ENTRY_GAP, 1, 0);
    fixture_entry(p, fixture_stack(p, PROF_NONE, "b"), PROF_ENTRY_GAP,
                  most - 1, 0);

    json = encode(p);
    is_int(check_stacks(json, 0, "weights"), most,
           "weights: 2^53 - 1 is exact");
    json_decref(json);

    fixture_entry(p, fixture_stack(p, PROF_NONE, "a"), PROF_ENTRY_GAP,
                  (uint64_t) 1 << 62, 0);

    json = encode(p);
    is_int(check_stacks(json, 0, "more"), most + ((uint64_t) 1 << 62),
           "weights: larger sums are exact");
    json_decref(json);

    prof_profile_destroy(p);
}


static void
test_many(void)
{
    char             path[64];
    size_t           n;
    json_t          *json;
    uint32_t         i, node[500];
    prof_profile_t  *p;

    p = fixture_create("many");

    for (i = 0; i < 500; i++) {
        (void) snprintf(path, sizeof(path), "main/%u/%u/%u", i % 5, i % 50, i);
        node[i] = fixture_stack(p, PROF_NONE, path);
    }

    for (i = 0; i < 250000; i++) {
        fixture_entry(p, node[i * 7919 % 500],
                      i % 1000 ? PROF_ENTRY_SAMPLE : PROF_ENTRY_GAP,
                      i % 1000 ? 1000 + i % 7 : 50000000,
                      i % 1000 ? i % 2 : 0);
    }

    json = encode(p);

    n = json_array_size(json_object_get(profile(json, 0), "samples"));
    ok(n <= 100000 && n > 50000, "many: %zu stacks of 250,000 are shown", n);
    ok(contains(string(profile(json, 0), "name"), "250000 stacks shown as "),
       "many: the name tells the number of stacks");

    is_int(check_stacks(json, 0, "many, wall"), p->wall,
           "many: the profile has all wall time");
    is_int(check_stacks(json, 1, "many, cpu"), p->cpu,
           "many: the profile has all CPU time");

    json_decref(json);
    prof_profile_destroy(p);
}


static void
test_deep(void)
{
    json_t          *json;
    uint32_t         f, i, node;
    prof_profile_t  *p;

    p = fixture_create("deep");
    f = fixture_name(p, PROF_TYPE_STAGE, "f");
    node = PROF_NONE;

    for (i = 0; i < 4096; i++) {
        node = fixture_node(p, node, f);
    }

    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1, 1);

    json = encode(p);

    is_int(json_array_size(json_array_get(json_object_get(profile(json, 0),
                                                          "samples"), 0)),
           4096, "a stack has all 4,096 frames");

    json_decref(json);
    prof_profile_destroy(p);
}


static json_t *
encode(prof_profile_t *p)
{
    int           rc;
    json_t       *json;
    prof_buf_t    b;
    json_error_t  err;

    prof_buf_init(&b);

    rc = prof_encode_speedscope.encode(p, &b);
    json = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, &err);

    if (!ok(rc == PROF_OK && json, "JSON")) {
        diag("line %d: %s", err.line, err.text);
        exit(1);
    }

    prof_buf_free(&b);

    return json;
}


static json_t *
profile(json_t *json, size_t i)
{
    return json_array_get(json_object_get(json, "profiles"), i);
}


static const char *
string(json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}


static json_int_t
integer(json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}


static int
contains(const char *text, const char *part)
{
    return text && strstr(text, part) != NULL;
}


/* checks what viewers rely on; returns the sum of the weights */

static json_int_t
check_stacks(json_t *json, size_t i, const char *name)
{
    size_t       k, n, nframes, wrong;
    json_t      *samples, *stack, *weights;
    json_int_t   frame, sum;

    samples = json_object_get(profile(json, i), "samples");
    weights = json_object_get(profile(json, i), "weights");
    nframes = json_array_size(json_object_get(json_object_get(json, "shared"),
                                              "frames"));
    sum = 0;
    wrong = 0;

    for (n = 0; n < json_array_size(samples); n++) {
        stack = json_array_get(samples, n);
        wrong += json_array_size(stack) == 0;

        for (k = 0; k < json_array_size(stack); k++) {
            frame = json_integer_value(json_array_get(stack, k));
            wrong += frame < 0 || frame >= (json_int_t) nframes;
        }

        wrong += n && json_equal(stack, json_array_get(samples, n - 1));
        wrong += json_integer_value(json_array_get(weights, n)) <= 0;
        sum += json_integer_value(json_array_get(weights, n));
    }

    is_int(json_array_size(weights), n,
           "%s: each stack has its weight", name);
    is_int(wrong, 0, "%s - frames exist, stacks change, weights count", name);
    is_int(integer(profile(json, i), "endValue"), sum,
           "%s: the weights sum to the length", name);

    return sum;
}
