
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: names symbolizer
 * runs: beside
 *
 * Names from the helper process for a stripped object: symbols of
 * .gnu_debugdata, and the debug file that .gnu_debuglink names.  Also helpers
 * that fail: lost names are counted, and the profile comes in time.
 */


#include "base/prof_base.h"

#include "base/prof_clock.h"
#include "tap.h"

#include "names/prof_helper.h"
#include "names/prof_symbolize.h"
#include "names/prof_wire.h"
#include "prof_directory.h"
#include "prof_fixture.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>


#define BUILD_ID  "00112233445566778899aabbccddeeff00112233"
#define OTHER_ID  "ffeeddccbbaa99887766554433221100ffeeddcc"
#define FLAGS     "-w -shared -fPIC -O1 -fcf-protection=none"

#define FUNCTIONS  3


static void test_debugdata(void);
static void test_debuglink(void);
static void test_killed(void);
static void test_hangs(void);
static void test_some(void);
static void test_not_started(void);
static void lost(const char *label, const char *script, uint32_t names,
    uint64_t time);
static void check(const char *path, const char *build_id, uint32_t named,
    uint32_t lost, const char *label);
static uint32_t named(const prof_profile_t *p);
static prof_profile_t *profile(const char *path, const char *build_id);
static int prepare(void);
static int messages(void);
static int message(FILE *f, const prof_buf_t *b);


/* only the last function has a name in the dynamic symbol table */

static const char  source[] =
    "#define N __attribute__((noinline, noclone, used))\n"
    "static N int name_0(int x) { return x * 3; }\n"
    "static N int name_1(int x) { return x * 5; }\n"
    "static N int name_2(int x) { return x * 7; }\n"
    "void *test_table[] = { name_0, name_1, name_2 };\n";


static uint64_t  functions[FUNCTIONS];


/*
 * The helper runs at the lowest priority.  On a busy machine it would be late
 * for most answers, so in this test it has the priority of the test.
 */

int
setpriority(__priority_which_t which, id_t who, int priority)
{
    return 0;
}


int
main(void)
{
    if (prepare()) {
        return skip_all("no compiler, or no objcopy");
    }

    fixture_helper();

    check(file("stripped.so"), BUILD_ID, 0, 0, "stripped");
    test_debuglink();
    test_debugdata();
    test_killed();
    test_hangs();
    test_some();
    test_not_started();

    (void) run("rm -rf %s", dir);

    return done_testing();
}


static void
test_debugdata(void)
{
    if (run("cd %s && objcopy --only-keep-debug full.so mini"
            " && objcopy -S --keep-symbol=name_0 --keep-symbol=name_1"
            " --keep-symbol=name_2 mini mini.small"
            " && xz -f mini.small && objcopy"
            " --add-section .gnu_debugdata=mini.small.xz stripped.so mini.so",
            dir))
    {
        diag("no xz: .gnu_debugdata is not tested");
        return;
    }

    check(file("mini.so"), BUILD_ID, FUNCTIONS, 0, ".gnu_debugdata");
    check(file("mini.so"), OTHER_ID, 0, 0, ".gnu_debugdata of another build");

    is_int(run("cd %s && head -c 100 mini.small.xz > cut.xz && objcopy"
               " --add-section .gnu_debugdata=cut.xz stripped.so cut.so", dir),
           0, "the test has an object with a truncated .gnu_debugdata");

    check(file("cut.so"), BUILD_ID, 0, 0, "truncated .gnu_debugdata");
}


/* the three places that the linker's manual names */

static void
test_debuglink(void)
{
    is_int(run("cd %s && objcopy --only-keep-debug full.so linked.debug"
               " && objcopy --add-gnu-debuglink=linked.debug stripped.so"
               " linked.so", dir), 0,
           "the test has an object with .gnu_debuglink");

    check(file("linked.so"), BUILD_ID, FUNCTIONS, 0,
          ".gnu_debuglink beside the object");

    (void) run("cd %s && mkdir .debug && mv linked.debug .debug", dir);
    check(file("linked.so"), BUILD_ID, FUNCTIONS, 0,
          ".gnu_debuglink below the object");

    (void) run("cd %s && mkdir -p root%s && mv .debug/linked.debug root%s",
               dir, dir, dir);
    check(file("linked.so"), BUILD_ID, FUNCTIONS, 0,
          ".gnu_debuglink in the place of all debug files");

    (void) run("cd %s && objcopy --only-keep-debug other.so"
               " root%s/linked.debug", dir, dir);
    check(file("linked.so"), BUILD_ID, 0, 0,
          ".gnu_debuglink to a file of another build");

    (void) run("cd %s && rm root%s/linked.debug", dir, dir);
    check(file("linked.so"), BUILD_ID, 0, 0, ".gnu_debuglink to no file");
}


static void
test_killed(void)
{
    lost("killed", "cat hello >&0; head -c 4 <&0 > /dev/null; kill -KILL $$",
         FUNCTIONS, PROF_HELPER_OBJECT_TIME);
}


static void
test_hangs(void)
{
    lost("hangs", "cat hello >&0; exec sleep 60", FUNCTIONS,
         PROF_HELPER_OBJECT_TIME + 1000000000);
}


/* answers that came in time count */

static void
test_some(void)
{
    lost("one answer", "cat hello answer >&0; exec sleep 60", FUNCTIONS - 1,
         PROF_HELPER_OBJECT_TIME + 1000000000);
}


/*
 * The last test: afterwards this process does not start a helper for a minute.
 */

static void
test_not_started(void)
{
    lost("not started", "exit 1", FUNCTIONS, PROF_HELPER_OBJECT_TIME);

    fixture_helper();
    check(file("stripped.so"), BUILD_ID, 0, FUNCTIONS,
          "not started - nor is the next one at once");
}


/*
 * Names a profile with a shell script as the helper.  Afterwards the real
 * helper names the next profile.
 */

static void
lost(const char *label, const char *script, uint32_t names, uint64_t time)
{
    FILE            *f;
    uint64_t         begin, took;
    prof_profile_t  *p;

    static char  path[512];

    (void) snprintf(path, sizeof(path), "%s/helper", dir);

    f = fopen(path, "w");

    if (f == NULL || fprintf(f, "#!/bin/sh\ncd %s\n%s\n", dir, script) < 0
        || fclose(f) != 0 || chmod(path, 0755) == -1)
    {
        diag("cannot write %s", path);
        exit(1);
    }

    p = profile(file("stripped.so"), BUILD_ID);
    prof_profile_helper(path);

    begin = prof_clock(CLOCK_MONOTONIC);
    is_int(prof_symbolize(p, dir), PROF_OK, "%s: the profile is there", label);
    took = prof_clock(CLOCK_MONOTONIC) - begin;

    is_int(p->stats.lost_names, names, "%s: lost names are counted", label);
    is_int(named(p), FUNCTIONS - names,
           "%s: the other functions have names", label);
    ok(took < time, "%s: in time, %" PRIu64 " ms", label, took / 1000000);
    ok(prof_profile_helper_error() != NULL, "%s: the log is told", label);

    prof_profile_destroy(p);
    prof_profile_forget();
}


/* counts the frames with a name, and the lost names */

static void
check(const char *path, const char *build_id, uint32_t nnamed, uint32_t nlost,
    const char *label)
{
    char             root[300];
    prof_profile_t  *p;

    (void) snprintf(root, sizeof(root), "%s/root", dir);

    p = profile(path, build_id);

    is_int(prof_symbolize(p, root), PROF_OK,
           "%s: the profile gets its names", label);
    is_int(named(p), nnamed, "%s: the functions have names", label);
    is_int(p->stats.lost_names, nlost, "%s: lost names are counted", label);

    prof_profile_destroy(p);
}


static uint32_t
named(const prof_profile_t *p)
{
    char      name[16];
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < FUNCTIONS; i++) {
        (void) snprintf(name, sizeof(name), "name_%u", i);
        n += prof_frame_is_exact(&p->frames[i])
             && strcmp(p->frames[i].name, name) == 0;
    }

    return n;
}


/* names of functions in the order of their addresses, as they are asked for */

static prof_profile_t *
profile(const char *path, const char *build_id)
{
    uint32_t         f, i;
    prof_profile_t  *p;

    prof_profile_forget();

    p = fixture_create("helper");
    (void) fixture_object(p, path, build_id);

    for (i = 0; i < FUNCTIONS; i++) {
        f = fixture_frame(p, 0, functions[i], NULL);
        p->frames[f].function = functions[i];
    }

    return p;
}


static int
prepare(void)
{
    void      *lib, **table;
    Dl_info    info;
    uint32_t   i;

    if (directory_create("prof_helper", source)
        || run("cd %s && %s " FLAGS " -Wl,--build-id=0x" BUILD_ID
               " -o full.so lib.c", dir, compiler())
        || run("cd %s && %s " FLAGS " -Wl,--build-id=0x" OTHER_ID
               " -o other.so lib.c", dir, compiler())
        || run("cd %s && strip -o stripped.so full.so", dir))
    {
        return 1;
    }

    lib = dlopen(file("full.so"), RTLD_NOW|RTLD_LOCAL);
    table = lib ? dlsym(lib, "test_table") : NULL;

    if (table == NULL || !dladdr(table, &info)) {
        diag("%s", dlerror());
        return 1;
    }

    for (i = 0; i < FUNCTIONS; i++) {
        functions[i] = (uintptr_t) table[i] - (uintptr_t) info.dli_fbase;
    }

    return messages();
}


/* files with the output of a helper */

static int
messages(void)
{
    int          rc;
    FILE        *f;
    prof_buf_t   b;

    prof_buf_init(&b);
    prof_wire_u32(&b, PROF_WIRE_HELLO);

    f = fopen(file("hello"), "w");
    rc = f == NULL || message(f, &b) || fclose(f);

    /* the first address: complete, lines, name, file, inlined functions */

    b.len = 0;
    prof_wire_u32(&b, 0);
    prof_wire_u32(&b, 1);
    prof_wire_u32(&b, 0);
    prof_wire_u32(&b, 0);
    prof_wire_text(&b, "name_0");
    prof_wire_text(&b, NULL);
    prof_wire_u32(&b, 0);

    f = fopen(file("answer"), "w");
    rc |= f == NULL || message(f, &b) || fclose(f);

    prof_buf_free(&b);

    return rc;
}


static int
message(FILE *f, const prof_buf_t *b)
{
    uint32_t  len;

    len = b->len;

    return fwrite(&len, sizeof(len), 1, f) != 1
           || fwrite(b->data, len, 1, f) != 1;
}
