
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: names
 * runs: beside
 *
 * Source files of functions without a symbol: of a program for which the rules
 * hold, all of them and no wrong one; of programs for which the rules do not
 * hold, none.  Also damaged programs.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "names/prof_role.h"
#include "names/prof_symbolize.h"
#include "names/prof_unit.h"
#include "names/prof_wire.h"
#include "prof_fixture.h"
#include "symbolizer/prof_units.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>


#define BUILD_ID  "00112233445566778899aabbccddeeff00112233"
#define ID        "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99"                  \
                  "\xaa\xbb\xcc\xdd\xee\xff\x00\x11\x22\x33"

#define FLAGS     "-O2 -fPIE -pie -Wl,-E -fcf-protection=none"

#define FILES      10
#define FUNCTIONS  (FILES * 5)

/* damaged copies of the program; SEED=N makes others */

#define DAMAGES    400


typedef struct {
    char         name[32];
    uint64_t     address;
} function_t;


static void test_program(void);
static void test_other_programs(void);
static void test_no_helper(void);
static void test_damaged(void);
static void damage(unsigned char *copy, size_t *size);
static void answer(unsigned char *data, size_t size);
static void question(prof_buf_t *b);
static void build(const char *flags, uint32_t files);
static void find(void);
static uint32_t names(const char *label, uint32_t *wrong);
static unsigned char *contents(const char *name, size_t *size);
static const char *file(const char *name);
static int run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));


/*
 * Each file has an exported function, which calls another one of the same
 * file.  That one takes the address of a third one.  A fourth one is in an
 * exported variable.  The fifth one is called by all files: it is exported by
 * only one file.
 */

static const char  source[] =
    "#define N __attribute__((noinline, noclone))\n"
    "extern int shared_%1$u(int x);\n"
    "extern int shared_%2$u(int x);\n"
    "static N int taken_%1$u(int x) { return x * %1$u7; }\n"
    "static N int data_%1$u(int x) { return x - %1$u3; }\n"
    "int (*variable_%1$u)(int x) = data_%1$u;\n"
    "static N int unused_%1$u(int x) { return x ^ %1$u; }\n"
    "int (*volatile keep_%1$u)(int x);\n"
    "static N int called_%1$u(int x)\n"
    "{ keep_%1$u = x ? taken_%1$u : unused_%1$u; return x + %1$u; }\n"
    "int exported_%1$u(int x)\n"
    "{ return called_%1$u(x) + variable_%1$u(x) + shared_%2$u(x) + 1; }\n"
    "int shared_%1$u(int x) { return called_%1$u(x + 1) + 1; }\n";

static char                dir[256];
static function_t          functions[FUNCTIONS];
static uint32_t            nfunctions;
static prof_source_file_t  files[FILES + 1];


int
main(void)
{
    const char  *tmp;

    tmp = getenv("TMPDIR");

    (void) snprintf(dir, sizeof(dir), "%s/prof_unit.XXXXXX",
                    tmp ? tmp : "/tmp");

    if (mkdtemp(dir) == NULL || run("command -v cc nm strip")) {
        return skip_all("no compiler");
    }

    if (access("/usr/include/capstone/capstone.h", R_OK) == -1) {
        (void) run("rm -rf %s", dir);
        return skip_all("no Capstone");
    }

    fixture_helper();

    test_program();
    test_other_programs();
    test_no_helper();
    test_damaged();

    (void) run("rm -rf %s", dir);

    return done_testing();
}


static void
test_program(void)
{
    uint32_t  wrong;

    build("", FILES);

    is_int(nfunctions, FILES * 4, "the functions that are not exported");
    is_int(names("program", &wrong), nfunctions,
           "all functions have a source file");
    is_int(wrong, 0, "each source file is the right one");
}


static void
test_other_programs(void)
{
    uint32_t  wrong;

    build("-flto", FILES);
    is_int(names("-flto", &wrong), 0,
           "a program that is optimized at link time has no files");

    build("-fvisibility=hidden -Wl,--export-dynamic-symbol=exported_*", FILES);
    is_int(names("hidden", &wrong), 0,
           "a program with hidden functions has no files");

    build("", 6);
    is_int(names("few", &wrong), 0,
           "a program with few known files has no files");
}


static void
test_no_helper(void)
{
    uint32_t  wrong;

    build("", FILES);

    prof_profile_helper(NULL);
    is_int(names("no helper", &wrong), 0,
           "a program without the helper has no files");
    fixture_helper();
}


/* in this process, so a sanitizer sees it */

static void
test_damaged(void)
{
    size_t          len, size;
    uint32_t        i;
    const char     *seed;
    unsigned char  *program, *copy;

    seed = getenv("SEED");
    srandom(seed ? (unsigned) atoi(seed) : 1);

    program = contents("stripped", &size);
    copy = malloc(size);

    if (copy == NULL) {
        abort();
    }

    answer(program, size);

    for (i = 0; i < DAMAGES; i++) {
        memcpy(copy, program, size);
        len = size;

        damage(copy, &len);
        answer(copy, len);
    }

    ok(1, "%u damaged programs do not end the helper", DAMAGES);

    free(program);
    free(copy);
}


static void
damage(unsigned char *copy, size_t *size)
{
    size_t    at;
    uint32_t  i, n;

    if (random() % 4 == 0) {
        *size = (size_t) random() % *size;
        return;
    }

    n = 1 + (uint32_t) random() % 20;

    for (i = 0; i < n; i++) {

        /* headers are damaged more often than code */

        at = (size_t) random() % *size;

        if (random() % 2) {
            at = *size - 1 - at % (*size < 2048 ? *size : 2048);
        }

        copy[at] = random() % 2 ? (unsigned char) random()
                                : (random() % 2 ? 0xff : 0);
    }
}


static void
answer(unsigned char *data, size_t size)
{
    Elf         *elf;
    prof_buf_t   q, b;
    prof_wire_t  w;

    prof_buf_init(&q);
    prof_buf_init(&b);

    question(&q);

    w.pos = q.data;
    w.end = q.data + q.len;
    w.failed = 0;

    (void) elf_version(EV_CURRENT);

    elf = elf_memory((char *) data, size);

    if (prof_units_answer(&b, &w, elf) != PROF_OK) {
        ok(0, "the helper answers");
    }

    (void) elf_end(elf);

    prof_buf_free(&q);
    prof_buf_free(&b);
}


static void
question(prof_buf_t *b)
{
    uint32_t  i;

    prof_wire_u32(b, FILES);

    for (i = 0; i < FILES; i++) {
        prof_wire_text(b, files[i].file);
        prof_wire_text(b, files[i].symbols);
    }

    prof_wire_u32(b, 1);
    prof_wire_u64(b, functions[0].address);
    prof_wire_text(b, "other_module");
}


/* the files of the program that were compiled with the flags */

static void
build(const char *flags, uint32_t n)
{
    FILE        *f;
    char         name[32], symbols[64];
    uint32_t     i;

    (void) run("rm -f %s/*", dir);

    for (i = 0; i < n; i++) {
        (void) snprintf(name, sizeof(name), "file_%u.c", i);
        (void) snprintf(symbols, sizeof(symbols), "exported_%u shared_%u", i,
                        i);

        free((char *) files[i].file);
        free((char *) files[i].symbols);

        files[i].file = strdup(name);
        files[i].symbols = strdup(symbols);

        f = fopen(file(name), "w");

        if (f == NULL || fprintf(f, source, i, (i + 1) % n) < 0
            || (i == 0 && fprintf(f, "int main(void) { return 0; }\n") < 0)
            || fclose(f) != 0)
        {
            abort();
        }
    }

    prof_profile_sources(files);

    is_int(run("cd %s && cc " FLAGS " %s -Wl,--build-id=0x" BUILD_ID
               " -o full file_*.c && nm full > symbols"
               " && strip -o stripped full", dir, flags),
           0, "the test has a program: %s", flags);

    find();
}


/* the functions that are not exported */

static void
find(void)
{
    FILE        *f;
    char         line[256], type;
    uint64_t     address;
    function_t  *to;

    nfunctions = 0;

    f = fopen(file("symbols"), "r");

    while (f && fgets(line, sizeof(line), f)) {
        to = &functions[nfunctions];

        if (sscanf(line, "%" SCNx64 " %c %31s", &address, &type, to->name)
            == 3
            && type == 't' && strchr(to->name, '_') != to->name
            && strspn(strrchr(to->name, '_') ? strrchr(to->name, '_') + 1
                                             : "x", "0123456789")
            && nfunctions < FUNCTIONS - 1)
        {
            to->address = address;
            nfunctions++;
        }
    }

    (void) fclose(f);
}


/* returns the number of functions with a source file */

static uint32_t
names(const char *label, uint32_t *wrong)
{
    char             text[96];
    uint32_t         f, i, n;
    prof_role_t      role;
    prof_profile_t  *p;

    /* only objects with a role are asked for */

    memset(&role, 0, sizeof(prof_role_t));

    role.path = file("stripped");
    role.build_id = (const uint8_t *) ID;
    role.build_id_len = sizeof(ID) - 1;
    role.function = 1;
    role.text = "none";

    if (prof_profile_roles(&role, 1) != PROF_OK) {
        abort();
    }

    prof_profile_forget();

    p = fixture_create(label);
    (void) fixture_object(p, file("stripped"), BUILD_ID);

    for (i = 0; i < nfunctions; i++) {
        f = fixture_frame(p, 0, functions[i].address, NULL);
        p->frames[f].function = functions[i].address;
    }

    is_int(prof_symbolize(p, dir), PROF_OK, "%s: the profile has names", label);

    n = 0;
    *wrong = 0;

    for (i = 0; i < nfunctions; i++) {

        if (p->frames[i].source != PROF_SOURCE_UNIT) {
            continue;
        }

        n++;

        (void) snprintf(text, sizeof(text), "file%s.c (stripped+0x%" PRIx64
                        ")", strrchr(functions[i].name, '_'),
                        functions[i].address);

        if (strcmp(p->frames[i].name, text) != 0) {
            diag("%s: %s", functions[i].name, p->frames[i].name);
            (*wrong)++;
        }
    }

    prof_profile_destroy(p);

    return n;
}


static unsigned char *
contents(const char *name, size_t *size)
{
    FILE           *f;
    struct stat     st;
    unsigned char  *data;

    f = fopen(file(name), "r");

    if (f == NULL || fstat(fileno(f), &st) == -1) {
        abort();
    }

    data = malloc(st.st_size);

    if (data == NULL
        || fread(data, 1, st.st_size, f) != (size_t) st.st_size)
    {
        abort();
    }

    (void) fclose(f);

    *size = st.st_size;

    return data;
}


static const char *
file(const char *name)
{
    static char  path[512];

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    return path;
}


static int
run(const char *fmt, ...)
{
    char     command[1024];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(command, sizeof(command), fmt, args);
    va_end(args);

    (void) strncat(command, " > /dev/null 2>&1",
                   sizeof(command) - strlen(command) - 1);

    return system(command);
}
