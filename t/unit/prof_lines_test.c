
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: symbolizer names
 * runs: beside
 *
 * Files, lines and inlined functions of objects that the test compiles.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "prof_directory.h"
#include "prof_fixture.h"
#include "names/prof_symbolize.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>


#define BUILD_ID  "0123456789abcdef0123456789abcdef01234567"
#define OTHER_ID  "76543210fedcba9876543210fedcba9876543210"
#define FLAGS     "-shared -fPIC -O2 -g"


static void test_inlines(const char *path, const char *build_id,
    const char *label);
static void test_none(const char *path, const char *build_id,
    const char *label);
static void test_names(void);
static void test_renamed(void);
static void rename_frames(prof_profile_t *p, const char *root, uint32_t n,
    const char *label);
static void set_name(prof_profile_t *p, uint32_t frame, uint32_t source,
    const char *name);
static void test_fetched(void);
static pid_t serve(int s);
static void test_damaged(void);
static int prepare(void);
static uint64_t address(const char *symbol);
static prof_profile_t *profile(const char *path, const char *build_id);


/*
 * lib_inner() and lib_middle() are inlined in lib_outer().  lib_at() returns
 * the address behind its call, which is in lib_inner().
 */

static const char  source[] =
    "void *lib_at(void);\n"                                     /* 1 */
    "__attribute__((noinline)) void *lib_at(void)\n"
    "{\n"
    "    return __builtin_return_address(0);\n"
    "}\n"                                                       /* 5 */
    "static inline __attribute__((always_inline)) void *\n"
    "lib_inner(volatile int *n)\n"
    "{\n"
    "    void *p = lib_at();\n"
    "    *n += 1;\n"                                            /* 10 */
    "    return p;\n"
    "}\n"
    "static inline __attribute__((always_inline)) void *\n"
    "lib_middle(volatile int *n)\n"
    "{\n"                                                       /* 15 */
    "    *n += 2;\n"
    "    return lib_inner(n);\n"
    "}\n"
    "void *lib_outer(volatile int *n);\n"
    "void *lib_outer(volatile int *n)\n"                        /* 20 */
    "{\n"
    "    *n += 3;\n"
    "    return lib_middle(n);\n"
    "}\n"
    "void *lib_plain(volatile int *n);\n"                       /* 25 */
    "void *lib_plain(volatile int *n)\n"
    "{\n"
    "    void *p = lib_at();\n"
    "    *n += 4;\n"
    "    return p;\n"                                           /* 30 */
    "}\n";


static uintptr_t  base;
static uint64_t   inlined, outer, plain, plain_start;


int
main(void)
{
    if (prepare()) {
        return skip_all("no compiler, or no objcopy");
    }

    fixture_helper();

    test_inlines(file("full.so"), BUILD_ID, "with debugging information");
    test_inlines(file("stripped.so"), BUILD_ID, "separate debug file");
    test_inlines(file("compressed.so"), BUILD_ID, "compressed");
    test_none(file("other.so"), OTHER_ID, "none");
    test_none(file("stripped.so"), OTHER_ID, "another build");
    test_names();
    test_renamed();
    test_fetched();
    test_damaged();

    (void) run("rm -rf %s", dir);

    return done_testing();
}


static void
test_inlines(const char *path, const char *build_id, const char *label)
{
    prof_frame_t    *f;
    prof_inline_t   *in;
    prof_profile_t  *p;

    p = profile(path, build_id);

    is_int(prof_symbolize(p, dir), PROF_OK,
           "%s: the profile gets its names", label);

    f = &p->frames[0];
    in = &p->inlines[f->inlines];

    is_str(f->name, "lib_outer", "%s: the function has its name", label);
    ok(f->file && strstr(f->file, "lib.c"),
       "%s: the function has its file", label);
    is_int(f->start_line, 20,
           "%s: the function has its first line", label);
    is_int(f->line, 23, "%s: the function has the line of its call", label);

    if (is_int(f->ninlines, 2, "%s: two functions are inlined", label)) {
        is_str(in[0].name, "lib_middle",
               "%s: the inlined function has its name", label);
        is_int(in[0].line, 17,
               "%s: the inlined function has its line", label);
        is_int(in[0].start_line, 14,
               "%s: the inlined function has its first line", label);
        is_str(in[1].name, "lib_inner",
               "%s: the innermost function is the last", label);
        is_int(in[1].line, 9,
               "%s: the innermost function has the line of the address",
               label);
        ok(in[1].file && strstr(in[1].file, "lib.c"),
           "%s: the innermost function has its file", label);
    }

    f = &p->frames[1];

    is_str(f->name, "lib_plain", "%s: another function has its name", label);
    is_int(f->ninlines, 0,
           "%s: the other function has no inlined functions", label);
    is_int(f->line, 28, "%s: the other function has its line", label);
    is_int(f->start_line, 26,
           "%s: the other function has its first line", label);

    is_str(p->frames[2].name, "[waiting]",
           "%s: a frame without code is unchanged", label);

    prof_profile_destroy(p);
}


static void
test_none(const char *path, const char *build_id, const char *label)
{
    prof_profile_t  *p;

    p = profile(path, build_id);

    is_int(prof_symbolize(p, dir), PROF_OK,
           "%s: the profile gets its names", label);
    ok(p->frames[0].file == NULL && p->frames[0].line == 0
       && p->frames[0].ninlines == 0 && p->ninlines == 0,
       "%s - nothing is told", label);
    ok(p->frames[0].name != NULL, "%s: the function has a name", label);

    prof_profile_destroy(p);
}


/* a function without a symbol */

static void
test_names(void)
{
    prof_profile_t  *p;

    p = profile(file("full.so"), BUILD_ID);

    /* no symbol matches if the unwind entry begins behind it */

    p->frames[0].function = outer + 1;

    is_int(prof_symbolize(p, "/nonexistent"), PROF_OK,
           "the profile gets its names");
    is_str(p->frames[0].name, "lib_outer",
           "a function has the name of debugging information");
    is_int(p->frames[0].source, PROF_SOURCE_DEBUG, "the name has its source");

    prof_profile_destroy(p);
}


/* a stored profile gets better names, and loses none */

static void
test_renamed(void)
{
    prof_frame_t    *f;
    prof_profile_t  *p;

    p = profile(file("stripped.so"), BUILD_ID);
    f = &p->frames[0];

    set_name(p, 0, PROF_SOURCE_OFFSET, "stripped.so+0x1130");
    set_name(p, 1, PROF_SOURCE_ROLE, "body filter (stripped.so+0x1180)");

    rename_frames(p, dir, 2, "a debug file was installed");

    is_str(f->name, "lib_outer", "an offset becomes a function");
    is_int(f->source, PROF_SOURCE_DEBUG, "the source is recorded");
    is_int(f->line, 23, "the function has its line");

    if (is_int(f->ninlines, 2, "the function has its inlined functions")) {
        is_str(p->inlines[f->inlines].name, "lib_middle",
               "the first inlined function has its name");
        is_str(p->inlines[f->inlines + 1].name, "lib_inner",
               "the second inlined function has its name");
    }

    is_str(p->frames[1].name, "lib_plain", "a role becomes a function");
    is_str(p->frames[2].name, "[waiting]", "a frame without code is unchanged");

    rename_frames(p, dir, 0, "nothing is better than debugging information");
    is_int(p->ninlines, 2, "no inlined function was added again");

    prof_profile_destroy(p);

    p = profile(file("gone.so"), OTHER_ID);

    set_name(p, 0, PROF_SOURCE_SYMBOLS, "lib_former");
    set_name(p, 1, PROF_SOURCE_UNIT, "lib.c (gone.so+0x1180)");

    rename_frames(p, dir, 0, "the object is gone");
    is_str(p->frames[0].name, "lib_former", "the function keeps its name");
    is_str(p->frames[1].name, "lib.c (gone.so+0x1180)",
           "the function keeps its unit");
    is_int(p->frames[1].source, PROF_SOURCE_UNIT, "the unit keeps its source");

    prof_profile_destroy(p);

    /* the profile may be of a process that had another file there */

    p = profile(file("full.so"), "");

    set_name(p, 0, PROF_SOURCE_OFFSET, "full.so+0x1130");
    rename_frames(p, dir, 0, "an object without a build-id");
    is_str(p->frames[0].name, "full.so+0x1130", "the offset remains");

    prof_profile_destroy(p);
}


static void
rename_frames(prof_profile_t *p, const char *root, uint32_t n,
    const char *label)
{
    uint32_t  renamed;

    is_int(prof_profile_rename(p, root, 1, &renamed), PROF_OK,
           "%s: the profile gets new names", label);
    is_int(renamed, n, "%s - %u frames are renamed", label, n);
}


static void
set_name(prof_profile_t *p, uint32_t frame, uint32_t source, const char *name)
{
    free(p->frames[frame].name);

    p->frames[frame].name = fixture_copy(name);
    p->frames[frame].source = source;
}


/* a server has the debug file, and the helper asks it if configured */

static void
test_fetched(void)
{
    int                 s;
    char                text[64];
    pid_t               pid;
    socklen_t           len;
    prof_profile_t     *p;
    struct sockaddr_in  sin;

    if (dlopen("libdebuginfod.so.1", RTLD_LAZY) == NULL) {
        diag("no client of debuginfod");
        return;
    }

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(sin);

    s = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(s, (struct sockaddr *) &sin, len) == -1 || listen(s, 8) == -1
        || getsockname(s, (struct sockaddr *) &sin, &len) == -1)
    {
        diag("no server");
        return;
    }

    pid = serve(s);
    close(s);

    (void) snprintf(text, sizeof(text), "http://127.0.0.1:%d/",
                    ntohs(sin.sin_port));
    (void) setenv("DEBUGINFOD_CACHE_PATH", file("cache"), 1);
    (void) setenv("no_proxy", "*", 1);

    p = profile(file("stripped.so"), BUILD_ID);
    is_int(prof_symbolize(p, "/nonexistent"), PROF_OK,
           "servers - a profile has names without servers");
    is_int(p->frames[0].line, 0, "servers - nobody is asked");
    prof_profile_destroy(p);

    (void) setenv("DEBUGINFOD_URLS", text, 1);

    p = profile(file("stripped.so"), BUILD_ID);
    is_int(prof_symbolize(p, "/nonexistent"), PROF_OK,
           "servers: the profile gets its names");
    is_str(p->frames[0].name, "lib_outer",
           "servers: the function has its name");
    is_int(p->frames[0].line, 23, "servers: the function has its line");
    is_int(p->frames[0].ninlines, 2,
           "servers: the function has its inlined functions");
    prof_profile_destroy(p);

    p = profile(file("stripped.so"), OTHER_ID);
    is_int(prof_symbolize(p, "/nonexistent"), PROF_OK,
           "servers - it has not all files");
    is_int(p->frames[0].line, 0, "servers - then nothing is told");
    prof_profile_destroy(p);

    (void) unsetenv("DEBUGINFOD_URLS");

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
}


/* a server for one file */

static pid_t
serve(int s)
{
    int       c;
    char     *data, request[1024];
    FILE     *f;
    pid_t     pid;
    size_t    len;
    ssize_t   n;

    pid = fork();

    if (pid != 0) {
        return pid;
    }

    data = malloc(1 << 20);
    (void) snprintf(request, sizeof(request), ".build-id/%.2s/%s.debug",
                    BUILD_ID, &BUILD_ID[2]);
    f = fopen(file(request), "r");
    len = f ? fread(data, 1, 1 << 20, f) : 0;

    for ( ;; ) {
        c = accept(s, NULL, NULL);
        n = read(c, request, sizeof(request) - 1);
        request[n > 0 ? n : 0] = '\0';

        if (strncmp(request, "GET /buildid/" BUILD_ID "/debuginfo ",
                    sizeof("GET /buildid/" BUILD_ID "/debuginfo ") - 1)
            == 0)
        {
            (void) dprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                           "Content-Length: %zu\r\n\r\n", len);
            n = write(c, data, len);

        } else {
            (void) dprintf(c, "HTTP/1.1 404 Not Found\r\n"
                           "Connection: close\r\nContent-Length: 0\r\n"
                           "\r\n");
        }

        close(c);
    }
}


/* the contents of a file may be wrong */

static void
test_damaged(void)
{
    char            *data;
    FILE            *f;
    size_t           i, len, runs;
    prof_profile_t  *p;

    data = malloc(1 << 20);
    f = fopen(file("full.so"), "r");
    len = fread(data, 1, 1 << 20, f);
    fclose(f);

    runs = 0;

    for (i = 0; i < 400; i++) {

        /* changes bytes of the second half: debugging information, tables */

        data[len / 4 + (i * 7919) % (len / 2)] ^= 1 << i % 8;

        if (i % 10) {
            continue;
        }

        f = fopen(file("damaged.so"), "w");
        (void) fwrite(data, 1, len, f);
        fclose(f);

        p = profile(file("damaged.so"), BUILD_ID);
        runs += prof_symbolize(p, "/nonexistent") == PROF_OK
                && p->frames[0].name != NULL;
        prof_profile_destroy(p);
    }

    is_int(runs, 40, "damaged files end no run");

    free(data);
}


static int
prepare(void)
{
    int            n;
    char           name[32];
    void          *lib, *at;
    Dl_info        info;
    void        *(*call)(int *n);

    (void) snprintf(name, sizeof(name), "%.2s", BUILD_ID);

    if (directory_create("prof_lines", source)
        || run("cd %s && %s " FLAGS " -Wl,--build-id=0x" BUILD_ID
               " -o full.so lib.c", dir, compiler())
        || run("cd %s && strip -o stripped.so full.so", dir)
        || run("cd %s && strip -o other.so full.so"
               " && objcopy --remove-section=.note.gnu.build-id other.so",
               dir)
        || run("cd %s && objcopy --compress-debug-sections=zlib full.so"
               " compressed.so", dir)
        || run("cd %s && mkdir -p .build-id/%s && objcopy --only-keep-debug"
               " full.so .build-id/%s/%s.debug", dir, name, name,
               &BUILD_ID[2]))
    {
        return 1;
    }

    lib = dlopen(file("full.so"), RTLD_NOW|RTLD_LOCAL);
    at = lib ? dlsym(lib, "lib_outer") : NULL;

    if (at == NULL || !dladdr(at, &info)) {
        diag("%s", dlerror());
        return 1;
    }

    base = (uintptr_t) info.dli_fbase;

    n = 0;
    memcpy(&call, &at, sizeof(at));
    inlined = (uintptr_t) call(&n) - base;
    outer = (uintptr_t) at - base;

    at = dlsym(lib, "lib_plain");
    memcpy(&call, &at, sizeof(at));
    plain = (uintptr_t) call(&n) - base;
    plain_start = address("lib_plain");

    return dlsym(lib, "lib_at") == NULL;
}


static uint64_t
address(const char *symbol)
{
    void  *lib;

    lib = dlopen(file("full.so"), RTLD_NOW|RTLD_LOCAL);

    return (uintptr_t) dlsym(lib, symbol) - base;
}


static prof_profile_t *
profile(const char *path, const char *build_id)
{
    uint32_t         f;
    prof_profile_t  *p;

    prof_profile_forget();

    p = fixture_create("lines");
    (void) fixture_object(p, path, build_id);

    f = fixture_frame(p, 0, inlined, NULL);
    p->frames[f].function = outer;
    p->frames[f].type = PROF_TYPE_RETURN;

    f = fixture_frame(p, 0, plain, NULL);
    p->frames[f].function = plain_start;
    p->frames[f].type = PROF_TYPE_RETURN;

    (void) fixture_name(p, PROF_TYPE_WAITING, "[waiting]");

    return p;
}
