
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: views
 * runs: beside
 *
 * The source of each name in all formats; inferred names, which look different
 * and join no two functions.
 *
 * With the name of a format as its argument, the program writes the profile in
 * that format instead: t/profile_names_browser.t opens it in a browser.
 */


#include "tap.h"

#include "archive/prof_archive.h"
#include "profile/prof_merge.h"
#include "prof_fixture.h"
#include "prof_document.h"
#include "prof_pprof_reader.h"

#include <unistd.h>


#define FILTER_1  "gzip body filter (nginx+0x96890)"
#define FILTER_2  "gzip body filter (nginx+0x99990)"


static int write_format(const char *name);
static void test_html(void);
static void test_svg(void);
static void test_speedscope(void);
static void test_pprof(void);
static void test_folded(void);
static void test_archive(void);
static void test_merged(void);
static prof_profile_t *profile(void);
static uint32_t code(prof_profile_t *p, uint32_t parent, uint32_t object,
    uint32_t source, const char *name);
static uint32_t other(prof_profile_t *p, uint32_t parent, uint32_t type,
    uint32_t source, const char *name);


int
main(int argc, char **argv)
{
    if (argc > 1) {
        return write_format(argv[1]);
    }

    test_html();
    test_svg();
    test_speedscope();
    test_pprof();
    test_folded();
    test_archive();
    test_merged();

    return done_testing();
}


static int
write_format(const char *name)
{
    prof_buf_t             b;
    prof_profile_t        *p;
    const prof_encoder_t  *encoder;

    encoder = prof_encoder_find(name, strlen(name));
    if (encoder == NULL) {
        return 1;
    }

    p = profile();
    prof_buf_init(&b);

    if (encoder->encode(p, &b) != PROF_OK
        || fwrite(b.data, 1, b.len, stdout) != b.len)
    {
        return 1;
    }

    prof_buf_free(&b);
    prof_profile_destroy(p);

    return 0;
}


static void
test_html(void)
{
    char            *names, *text, *unnamed;
    prof_profile_t  *p;

    p = profile();
    text = document_create(&prof_encode_html, p);

    ok(strstr(text, " f\"><title>app.lua:40 handler\n") != NULL
       || strstr(text, " f x\"><title>app.lua:40 handler\n") != NULL,
       "boxes of scripts have a class");
    ok(strstr(text, " y\"><title>sys_writev\n") != NULL,
       "boxes of the kernel have a class");
    ok(strstr(text, " i\"><title>" FILTER_1 "\n") != NULL,
       "boxes with inferred names have a class");
    ok(strstr(text, "\nnginx (inferred role)</title>") != NULL
       && strstr(text, "\nnginx (inferred source file)</title>") != NULL
       && strstr(text, "\nnginx (symbol table)</title>") != NULL
       && strstr(text, "\nlibz.so.1 (no name)</title>") != NULL
       && strstr(text, "\ninterpreter</title>") != NULL
       && strstr(text, "\nsystem call</title>") != NULL
       && strstr(text, "main.c:10 (debugging information)</title>") != NULL,
       "titles have the source of the name");
    ok(strstr(text, "<i>inferred name</i></li>") != NULL,
       "the legend has inferred names");
    ok(strstr(text, "<th scope=\"row\">names</th><td>1 kernel, 1 debug, "
                    "3 symbols, 1 script, 2 role, 1 unit, 2 offset</td>")
       != NULL, "the facts count the sources");

    names = strstr(text, "id=\"names\"");
    unnamed = strstr(text, "id=\"unnamed\"");

    if (ok(names && unnamed, "the page has two tables about names")) {
        ok(strstr(names, ">inferred role</th>") != NULL,
           "the first one has the sources");
        ok(strstr(unnamed, "<code title=\"/lib/libz.so.1\">libz.so.1</code>"
                           "<br><small>needs <code>/usr/lib/debug/.build-id/"
                           "ab/cdef.debug</code>") != NULL,
           "the second one has the debug file of an object");
        ok(strstr(unnamed, "libold.so</code><br><small>has no build-id")
           != NULL,
           "the second one tells that an object cannot have a debug file");
        ok(strstr(unnamed, ">nginx</code>") == NULL,
           "an object whose functions have names is not in it");
    }

    free(text);
    prof_profile_destroy(p);

    p = fixture_typical();
    text = document_create(&prof_encode_html, p);

    ok(strstr(text, "id=\"unnamed\"") == NULL,
       "a profile that has all names asks for no debug file");
    ok(strstr(text, "inferred name</i>") == NULL,
       "a legend without inferred names does not have them");

    free(text);
    prof_profile_destroy(p);
}


static void
test_svg(void)
{
    char            *text;
    prof_profile_t  *p;

    p = profile();
    text = document_create(&prof_encode_svg, p);

    document_xml(text, "inferred names");

    is_int(document_count(text, "<title>gzip body filter (nginx+0x"), 2,
           "two functions of one role are two boxes");
    ok(strstr(text, ">inferred name</text>") != NULL,
       "the legend has inferred names");

    free(text);
    prof_profile_destroy(p);
}


static void
test_speedscope(void)
{
    char            *text;
    prof_profile_t  *p;

    p = profile();
    text = document_create(&prof_encode_speedscope, p);

    ok(strstr(text, "{\"name\":\"" FILTER_1 "\",\"file\":\"/usr/sbin/nginx\","
                    "\"source\":\"role\"}") != NULL, "a frame has its source");
    ok(strstr(text, "{\"name\":\"[waiting]\"}") != NULL,
       "a frame without code has none");
    ok(strstr(text, "\"names\":\"1 kernel, 1 debug") != NULL,
       "the file counts the sources");

    free(text);
    prof_profile_destroy(p);
}


static void
test_pprof(void)
{
    size_t           i;
    uint32_t         n;
    prof_profile_t  *p;
    Prof__Profile   *pb;

    p = profile();
    pb = pprof_decode(p);
    n = 0;

    for (i = 0; i < pb->n_function; i++) {
        n += strncmp(pb->string_table[pb->function[i]->name],
                     "gzip body filter", 16) == 0;
    }

    ok(pprof_is_valid(pb), "pprof: the profile is valid");
    ok(pprof_has_comment(pb, "names: 1 kernel, 1 debug, 3 symbols, 1 script, "
                             "2 role, 1 unit, 2 offset"),
       "pprof: a comment counts the sources");
    is_int(n, 2, "two functions of one role are two functions");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(p);
}


static void
test_folded(void)
{
    char            *text;
    prof_profile_t  *p;

    p = profile();
    text = document_create(&prof_encode_folded, p);

    is_int(document_count(text, ";" FILTER_1 " "), 1,
           "folded: the first filter has one line");
    is_int(document_count(text, ";" FILTER_2 " "), 1,
           "folded: the second filter has one line");

    free(text);
    prof_profile_destroy(p);
}


static void
test_archive(void)
{
    int              same;
    uint32_t         i;
    prof_buf_t       b;
    prof_profile_t  *p, *copy;

    p = profile();
    prof_buf_init(&b);

    is_int(prof_archive_write(p, &b), PROF_OK, "the profile is archived");

    copy = prof_archive_read(b.data, b.len, NULL);
    same = copy && copy->nframes == p->nframes;

    for (i = 0; same && i < p->nframes; i++) {
        same = copy->frames[i].source == p->frames[i].source;
    }

    ok(same, "the archive has all sources");

    prof_buf_free(&b);
    prof_profile_destroy(copy);
    prof_profile_destroy(p);
}


/* the same code, of which the second profile knows more */

static void
test_merged(void)
{
    uint32_t         i, n;
    prof_profile_t  *p, *better, *merged;

    const prof_profile_t  *both[2];

    p = profile();
    better = profile();

    for (i = 0; i < better->nframes; i++) {
        if (strcmp(better->frames[i].name, FILTER_2) == 0) {
            free(better->frames[i].name);
            better->frames[i].name = fixture_copy("ngx_http_gzip_filter");
            better->frames[i].source = PROF_SOURCE_SYMBOLS;
        }
    }

    both[0] = p;
    both[1] = better;

    merged = prof_profile_merge(both, NULL, 2, "both", 0);

    n = 0;

    for (i = 0; i < merged->nframes; i++) {

        if (strcmp(merged->frames[i].name, FILTER_1) == 0) {
            is_int(merged->frames[i].source, PROF_SOURCE_ROLE,
                   "merge: a role stays a role");
            n++;
        }

        if (strcmp(merged->frames[i].name, "ngx_http_gzip_filter") == 0) {
            is_int(merged->frames[i].source, PROF_SOURCE_SYMBOLS,
                   "merge: the better name has its source");
            n++;
        }
    }

    is_int(n, 2, "merge: both functions are there, once");
    is_int(merged->nframes, p->nframes, "merge: no function was added");

    prof_profile_destroy(merged);
    prof_profile_destroy(better);
    prof_profile_destroy(p);
}


/* frames of all types and sources, each with time of its own */

static prof_profile_t *
profile(void)
{
    uint32_t         libz, nginx, node, old, root, stage;
    prof_profile_t  *p;

    p = fixture_create("GET /sources");

    nginx = fixture_object(p, "/usr/sbin/nginx", "0d7fd93d");
    libz = fixture_object(p, "/lib/libz.so.1", "abcdef");
    old = fixture_object(p, "/lib/libold.so", "");

    root = code(p, PROF_NONE, nginx, PROF_SOURCE_DEBUG, "main");
    p->frames[0].file = fixture_copy("main.c");
    p->frames[0].start_line = 10;
    fixture_entry(p, root, PROF_ENTRY_SAMPLE, 1000000, 1000000);

    stage = other(p, root, PROF_TYPE_STAGE, PROF_SOURCE_NONE, "content phase");
    fixture_entry(p, stage, PROF_ENTRY_SAMPLE, 1000000, 1000000);

    node = code(p, stage, nginx, PROF_SOURCE_SYMBOLS, "ngx_http_handler");
    node = code(p, node, nginx, PROF_SOURCE_ROLE, FILTER_1);
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 3000000, 3000000);

    node = code(p, node, libz, PROF_SOURCE_OFFSET, "libz.so.1+0x2000");
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 2000000, 2000000);

    node = code(p, stage, nginx, PROF_SOURCE_ROLE, FILTER_2);
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 4000000, 4000000);

    node = code(p, node, nginx, PROF_SOURCE_SYMBOLS, "writev_chain");
    node = other(p, node, PROF_TYPE_KERNEL, PROF_SOURCE_KERNEL, "sys_writev");
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 5000000, 5000000);

    node = code(p, root, nginx, PROF_SOURCE_UNIT,
                "ngx_http_request.c (nginx+0x81d10)");
    node = other(p, node, PROF_TYPE_SCRIPT, PROF_SOURCE_SCRIPT,
                 "app.lua:40 handler");
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 2500000, 2500000);

    node = code(p, node, nginx, PROF_SOURCE_SYMBOLS, "lua_call_c");
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1234567, 1234567);

    node = code(p, root, old, PROF_SOURCE_OFFSET, "libold.so+0x5000");
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1000000, 1000000);

    node = other(p, PROF_NONE, PROF_TYPE_WAITING, PROF_SOURCE_NONE,
                 "[waiting]");
    fixture_entry(p, node, PROF_ENTRY_GAP, 5000000, 0);

    return p;
}


static uint32_t
code(prof_profile_t *p, uint32_t parent, uint32_t object, uint32_t source,
    const char *name)
{
    uint32_t  frame;

    frame = fixture_frame(p, object, 0x2000 + 0x100 * p->nframes, name);

    p->frames[frame].source = source;
    p->frames[frame].function = p->frames[frame].pc;

    return fixture_node(p, parent, frame);
}


static uint32_t
other(prof_profile_t *p, uint32_t parent, uint32_t type, uint32_t source,
    const char *name)
{
    uint32_t  frame;

    frame = fixture_name(p, type, name);
    p->frames[frame].source = source;

    return fixture_node(p, parent, frame);
}
