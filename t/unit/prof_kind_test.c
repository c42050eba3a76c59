
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: views
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "views/prof_kind.h"
#include "views/prof_totals.h"


static void test_objects(void);
static void test_calls(void);
static void test_names(void);
static void test_below(void);
static void test_waits(void);
static void test_text(void);
static void check_type(uint32_t type, uint32_t kind);


static const uint32_t  test_measures[] = {
    PROF_MEASURE_WALL, PROF_MEASURE_CPU
};


int
main(void)
{
    test_objects();
    test_calls();
    test_names();
    test_below();
    test_waits();
    test_text();

    return done_testing();
}


static void
test_objects(void)
{
    size_t           i;
    uint32_t         frame, object;
    prof_profile_t  *p;

    static const struct {
        const char  *path;
        uint32_t     kind;
    } paths[] = {
        { "/usr/sbin/nginx", PROF_KIND_PROGRAM },
        { "/opt/lua/sbin/nginx", PROF_KIND_PROGRAM },
        { "/usr/lib/nginx/modules/ngx_http_echo_module.so",
          PROF_KIND_MODULE },
        { "/usr/lib/nginx/modules/ngx_http_lua_module.so",
          PROF_KIND_SCRIPT },
        { "/usr/lib/nginx/modules/ngx_http_js_module.so", PROF_KIND_SCRIPT },
        { "/usr/lib/nginx/modules/ngx_http_perl_module.so",
          PROF_KIND_SCRIPT },
        { "/lib/x86_64-linux-gnu/libluajit-5.1.so.2", PROF_KIND_SCRIPT },
        { "/lib/x86_64-linux-gnu/libc.so.6", PROF_KIND_LIBC },
        { "/lib/x86_64-linux-gnu/libc-2.31.so", PROF_KIND_LIBC },
        { "/lib/x86_64-linux-gnu/libm.so.6", PROF_KIND_LIBC },
        { "/lib64/ld-linux-x86-64.so.2", PROF_KIND_LIBC },
        { "/lib/x86_64-linux-gnu/libcrypt.so.1", PROF_KIND_LIBRARY },
        { "/lib/x86_64-linux-gnu/libcrypto.so.3", PROF_KIND_TLS },
        { "/lib/x86_64-linux-gnu/libssl.so.3", PROF_KIND_TLS },
        { "/lib/x86_64-linux-gnu/libz.so.1.2.13", PROF_KIND_ZLIB },
        { "/lib/x86_64-linux-gnu/libbrotlienc.so.1", PROF_KIND_ZLIB },
        { "/lib/x86_64-linux-gnu/libpcre2-8.so.0", PROF_KIND_LIBRARY },
        { "[vdso]", PROF_KIND_KERNEL },
        { "[unknown]", PROF_KIND_LIBRARY }
    };

    p = fixture_create("objects");

    for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        object = fixture_object(p, paths[i].path, "");
        frame = fixture_frame(p, object, 0x1000, "f");

        is_int(prof_kind(p, &p->frames[frame]), paths[i].kind,
               "%s has its kind",
               paths[i].path);
    }

    prof_profile_destroy(p);
}


static void
test_calls(void)
{
    size_t           i;
    uint32_t         frame, libc, program;
    prof_profile_t  *p;

    static const char  *in[] = { "accept4", "writev", "write", "__write",
                                 "__libc_pread64", "sendfile64",
                                 "epoll_wait", "open64" };
    static const char  *out[] = { "memcpy", "snprintf", "malloc", "writes",
                                  "_", "zzz", "" };

    p = fixture_create("calls");
    libc = fixture_object(p, "/lib/libc.so.6", "");
    program = fixture_object(p, "/usr/sbin/nginx", "");

    for (i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
        frame = fixture_frame(p, libc, 0x1000, in[i]);
        is_int(prof_kind(p, &p->frames[frame]), PROF_KIND_KERNEL,
               "%s() enters the kernel", in[i]);
        is_int(prof_kind_object(p, &p->frames[frame]), PROF_KIND_LIBC,
               "%s() is in the C library", in[i]);
    }

    for (i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
        frame = fixture_frame(p, libc, 0x1000, out[i]);
        is_int(prof_kind(p, &p->frames[frame]), PROF_KIND_LIBC,
               "%s() does not", out[i]);
    }

    frame = fixture_frame(p, program, 0x1000, "write");
    is_int(prof_kind(p, &p->frames[frame]), PROF_KIND_PROGRAM,
           "a write() of another object is not a system call");

    frame = fixture_frame(p, libc, 0x1000, "write");
    p->frames[frame].source = PROF_SOURCE_OFFSET;
    is_int(prof_kind(p, &p->frames[frame]), PROF_KIND_LIBC,
           "an inexact name is not a system call");

    prof_profile_destroy(p);
}


static void
test_names(void)
{
    check_type(PROF_TYPE_WAITING, PROF_KIND_WAITING);
    check_type(PROF_TYPE_NOTE, PROF_KIND_NOTE);
    check_type(PROF_TYPE_STAGE, PROF_KIND_SPAN);
    check_type(PROF_TYPE_SCRIPT, PROF_KIND_SCRIPT);
    check_type(PROF_TYPE_KERNEL, PROF_KIND_KERNEL);
    check_type(PROF_TYPE_CODE, PROF_KIND_UNKNOWN);
    check_type(PROF_TYPE_RETURN, PROF_KIND_UNKNOWN);
}


static void
test_below(void)
{
    uint32_t         node, object, *kind;
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_create("below");
    object = fixture_object(p, "/usr/sbin/nginx", "");

    /* frames: [waiting], upstream, 10.0.0.1, access phase, run */

    (void) fixture_stack(p, PROF_NONE, "[waiting]/upstream/10.0.0.1");
    node = fixture_stack(p, PROF_NONE, "access phase");
    (void) fixture_node(p, node, fixture_frame(p, object, 0x1000, "run"));

    v = prof_view_create(p, NULL, test_measures, 2);
    kind = prof_kind_functions(p, v);

    is_int(v->nfunctions, 5, "what only waits is no other function");

    is_int(kind[v->nodes[0].function], PROF_KIND_WAITING,
           "waiting has its kind");
    is_int(kind[v->nodes[1].function], PROF_KIND_WAITING,
           "the cause below it has the same kind");
    is_int(kind[v->nodes[2].function], PROF_KIND_WAITING,
           "the name below the cause has the same kind");
    is_int(kind[v->nodes[3].function], PROF_KIND_SPAN,
           "a stage of the same depth has another kind");
    is_int(kind[v->nodes[4].function], PROF_KIND_PROGRAM,
           "code has the kind of its object");

    free(kind);
    prof_view_destroy(v);
    prof_profile_destroy(p);
}


/*
 * What is below a wait waits, whatever it is: a stage, a script, and code that
 * runs in another place.
 */

static void
test_waits(void)
{
    uint32_t         frame, i, lua, node, script, *kind;
    prof_view_t     *v;
    prof_total_t    *totals;
    prof_profile_t  *p;

    p = fixture_create("waits");
    lua = fixture_object(p, "/lib/libluajit-5.1.so.2", "");
    script = fixture_name(p, PROF_TYPE_SCRIPT, "handler");
    frame = fixture_frame(p, lua, 0x1000, "lua_pcall");

    node = fixture_stack(p, PROF_NONE, "[waiting]/subrequest a/timer");
    node = fixture_node(p, node, script);
    node = fixture_node(p, node, frame);
    fixture_entry(p, node, PROF_ENTRY_GAP, 990, 0);

    node = fixture_stack(p, PROF_NONE, "event/subrequest a");
    node = fixture_node(p, node, script);
    node = fixture_node(p, node, frame);
    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 10, 10);

    v = prof_view_create(p, NULL, test_measures, 2);
    kind = prof_kind_functions(p, v);

    for (i = 0; i < 5; i++) {
        is_int(kind[v->nodes[i].function], PROF_KIND_WAITING,
               "a frame below the wait waits: %u", i);
    }

    is_int(kind[v->nodes[5].function], PROF_KIND_SPAN, "an event is a stage");
    is_int(kind[v->nodes[6].function], PROF_KIND_SPAN,
           "the running subrequest is a stage");
    is_int(kind[v->nodes[7].function], PROF_KIND_SCRIPT,
           "the running script is a script");
    is_int(kind[v->nodes[8].function], PROF_KIND_SCRIPT,
           "the running code has the kind of its object");

    is_str(v->functions[v->nodes[3].function].name, "handler",
           "the script has its name where it waits");
    is_str(v->functions[v->nodes[7].function].name, "handler",
           "the script has the same name where it runs");

    totals = prof_totals_create(v, kind, PROF_KIND_MAX);

    is_int(totals[PROF_KIND_WAITING].self[0], 990,
           "the wait is time of waiting");
    is_int(totals[PROF_KIND_WAITING].total[0], 990, "and nothing else is");
    is_int(totals[PROF_KIND_SCRIPT].self[0], 10,
           "the script has the time in which it ran");
    is_int(totals[PROF_KIND_SCRIPT].total[0], 10,
           "the script has no time in which it waited");

    free(totals);
    free(kind);
    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static void
test_text(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_create("text");
    (void) fixture_object(p, "/lib/libc.so.6", "");
    (void) fixture_object(p, "/usr/sbin/nginx", "");

    prof_buf_init(&b);
    prof_kind_text(p, PROF_KIND_PROGRAM, &b);
    prof_buf_puts(&b, ", ");
    prof_kind_text(p, PROF_KIND_LIBC, &b);
    prof_buf_append(&b, "", 1);
    is_str(b.data, "nginx, C library", "the program has its name");
    prof_buf_free(&b);

    prof_profile_destroy(p);

    is_str(prof_path_file("/usr/sbin/nginx"), "nginx",
           "the last part of a path is the file");
    is_str(prof_path_file("[vdso]"), "[vdso]",
           "a name without parts is the file");
    is_str(prof_path_file("/usr/"), "/usr/",
           "a path without a last part is the file");
    is_str(prof_path_file(""), "", "an empty path stays empty");
}


static void
check_type(uint32_t type, uint32_t kind)
{
    uint32_t         frame;
    prof_profile_t  *p;

    p = fixture_create("names");
    frame = fixture_name(p, type, "[name]");
    is_int(prof_kind(p, &p->frames[frame]), kind, "a frame of type %" PRIu32,
           type);
    prof_profile_destroy(p);
}
