
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: names
 * runs: first
 *
 * Names from a shared object that the test compiles, and from damaged copies
 * of it.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "prof_directory.h"
#include "prof_fixture.h"
#include "names/prof_symbolize.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>


#define BUILD_ID   "0123456789abcdef0123456789abcdef01234567"
#define ALMOST_ID  "0123456789abcdef0123456789abcdef01234566"
#define OTHER_ID   "fedcba9876543210fedcba9876543210fedcba98"

#define FLAGS  "-w -shared -fPIC -O1 -fcf-protection=none"


typedef struct {
    const char  *function;      /* its name in the test */
    const char  *full;          /* its name by .symtab, NULL: an offset */
    const char  *stripped;      /* its name by .dynsym only */
} test_symbol_t;


static void test_full(void);
static void test_stripped(void);
static void test_build_id(void);
static void test_debug_file(void);
static void test_no_build_id(void);
static void test_extents(void);
static void test_calls(void);
static void test_versions(void);
static void test_plt(void);
static void test_vdso(void);
static void test_exe(void);
static void test_truncated(void);
static void test_damaged(void);
static void test_odd_files(void);
static int prepare(void);
static uint64_t address(const char *function);
static void names(const char *path, const char *build_id, int full,
    const char *label);
static char *name_of(const char *path, const char *build_id, uint64_t pc,
    uint64_t function);
static char *read_file(const char *path, size_t *len);
static void write_file(const char *path, const char *data, size_t len);
static void build_id_of(uintptr_t image, char *hex);


/*
 * The table at the end contains the addresses of all functions, also of local
 * ones.
 */

static const char  source[] =
    "int getpid(void);\n"
    "#define N __attribute__((noinline, noclone, used))\n"
    "static N int local(int x) { return x * 3; }\n"
    "N int exported(int x) { return x * 5; }\n"
    "N int shortest(int x) { return x * 7; }\n"
    "extern __typeof(shortest) longer_alias\n"
    "    __attribute__((alias(\"shortest\")));\n"
    "extern __typeof(shortest) _short\n"
    "    __attribute__((alias(\"shortest\")));\n"
    "N int __barred(int x) { return x * 11; }\n"
    "extern __typeof(__barred) bare\n"
    "    __attribute__((weak, alias(\"__barred\")));\n"
    "N int strong_bb(int x) { return x * 13; }\n"
    "extern __typeof(strong_bb) weak_a\n"
    "    __attribute__((weak, alias(\"strong_bb\")));\n"
    "N int same_b(int x) { return x * 17; }\n"
    "extern __typeof(same_b) same_a __attribute__((alias(\"same_b\")));\n"
    "N int mangled(int x) __asm__(\"_ZN3abc7mangled17h0123456789abcdefE\");\n"
    "N int mangled(int x) { return x * 19; }\n"
    "static N int cold(int x) __asm__(\"part.cold\");\n"
    "static N int cold(int x) { return x * 23; }\n"
    "static N int (*resolver(void))(int) { return local; }\n"
    "int chosen(int) __attribute__((ifunc(\"resolver\")));\n"
    "N int caller(void) { return getpid(); }\n"
    "extern char blob[], blob_two[], blob_three[];\n"
    "__asm__(\".text\\n\"\n"
    "    \".globl blob, blob_two\\n\"\n"
    "    \".type blob, @function\\n .type blob_two, @function\\n\"\n"
    "    \"blob: .skip 16, 0x90\\n .size blob, 8\\n\"\n"
    "    \"blob_two: .skip 16, 0x90\\n .size blob_two, 16\\n\"\n"
    "    \"blob_three: .skip 16, 0x90\\n\");\n"
    "N int last(int x) { return chosen(x); }\n"
    "struct { const char *name; void *address; } test_table[] = {\n"
    "    { \"local\", local }, { \"exported\", exported },\n"
    "    { \"shortest\", shortest }, { \"__barred\", __barred },\n"
    "    { \"strong_bb\", strong_bb }, { \"same_b\", same_b },\n"
    "    { \"mangled\", mangled }, { \"cold\", cold },\n"
    "    { \"resolver\", resolver }, { \"caller\", caller },\n"
    "    { \"blob\", blob }, { \"blob_two\", blob_two },\n"
    "    { \"blob_three\", blob_three }, { \"last\", last }, { 0, 0 } };\n";


static const test_symbol_t  symbols[] = {
    { "local", "local", NULL },
    { "exported", "exported", "exported" },
    { "shortest", "shortest", "shortest" },     /* underscores count before
                                                   the length */
    { "__barred", "bare", "bare" },             /* and before weakness */
    { "strong_bb", "strong_bb", "strong_bb" },  /* weakness before the
                                                   length */
    { "same_b", "same_a", "same_a" },           /* at last the alphabet */
    { "mangled", "abc::mangled", "abc::mangled" },
    { "cold", "part.cold", NULL },
    { "resolver", "resolver", "chosen [resolver]" },
    { "last", "last", "last" },
    { NULL, NULL, NULL }
};


static uintptr_t  base;

static struct {
    const char   *name;
    char         *address;
} *table;


int
main(void)
{
    if (prepare() != 0) {
        return 1;
    }

    fixture_helper();

    test_full();
    test_stripped();
    test_build_id();
    test_debug_file();
    test_no_build_id();
    test_extents();
    test_calls();
    test_versions();
    test_plt();
    test_vdso();
    test_exe();
    test_odd_files();
    test_truncated();
    test_damaged();

    (void) run("rm -rf %s", dir);

    return done_testing();
}


static void
test_full(void)
{
    names(file("full.so"), BUILD_ID, 1, "full");
}


static void
test_stripped(void)
{
    names(file("stripped.so"), BUILD_ID, 0, "stripped");
}


static void
test_build_id(void)
{
    char  *name;

    name = name_of(file("full.so"), OTHER_ID, address("local"),
                   address("local"));
    ok(strncmp(name, "full.so+0x", 10) == 0,
       "another build has no names: %s", name);
    free(name);

    name = name_of(file("full.so"), ALMOST_ID, address("local"),
                   address("local"));
    ok(strncmp(name, "full.so+0x", 10) == 0,
       "a similar build-id has no names: %s", name);
    free(name);

    name = name_of(file("full.so"), "01234567", address("local"),
                   address("local"));
    ok(strncmp(name, "full.so+0x", 10) == 0,
       "a part of the build-id has no names: %s", name);
    free(name);

    name = name_of(file("full.so"), "", address("local"), address("local"));
    ok(strncmp(name, "full.so+0x", 10) == 0,
       "no build-id, and not the file that is loaded: %s", name);
    free(name);

    name = name_of(file("nothing.so"), BUILD_ID, address("local"),
                   address("local"));
    ok(strncmp(name, "nothing.so+0x", 13) == 0,
       "a missing file has no names: %s", name);
    free(name);
}


static void
test_debug_file(void)
{
    is_int(run("mkdir -p %s/.build-id/%.2s && objcopy --only-keep-debug"
               " %s/full.so %s/.build-id/%.2s/%s.debug", dir, BUILD_ID, dir,
               dir, BUILD_ID, &BUILD_ID[2]), 0, "the test has a debug file");

    names(file("stripped.so"), BUILD_ID, 1, "debug file");
    names(file("nothing.so"), BUILD_ID, 1, "debug file alone");

    /* a file of another build in its place */

    is_int(run("cp %s/other.so %s/.build-id/%.2s/%s.debug", dir, dir,
               BUILD_ID, &BUILD_ID[2]), 0, "the test has a wrong debug file");

    names(file("stripped.so"), BUILD_ID, 0, "debug file of another build");

    (void) run("rm -r %s/.build-id", dir);
}


/* then only the file that this process has loaded can be trusted */

static void
test_no_build_id(void)
{
    void            *lib;
    char           **entry, copy[64];
    Dl_info          info;
    uint32_t         f;
    prof_profile_t  *p;

    lib = dlopen(file("anonymous.so"), RTLD_NOW|RTLD_LOCAL);
    entry = lib ? dlsym(lib, "test_table") : NULL;

    if (!ok(entry != NULL && dladdr(entry, &info),
            "no build-id: the object is loaded"))
    {
        return;
    }

    p = fixture_create("no build-id");
    (void) fixture_object(p, file("anonymous.so"), "");

    p->objects[0].base = (uintptr_t) info.dli_fbase;
    p->objects[0].start = entry[1] - (char *) info.dli_fbase;

    f = fixture_frame(p, 0, p->objects[0].start, NULL);
    p->frames[f].function = p->frames[f].pc;

    (void) prof_symbolize(p, dir);
    is_str(p->frames[f].name, "local",
           "no build-id: the loaded file has the name");

    /* the same path, another file */

    (void) run("cp %s/anonymous.so %s/copy.so && mv %s/copy.so"
               " %s/anonymous.so", dir, dir, dir, dir);

    (void) snprintf(copy, sizeof(copy), "anonymous.so+0x%" PRIx64,
                    p->frames[f].pc);

    free(p->frames[f].name);
    p->frames[f].name = NULL;
    p->frames[f].source = PROF_SOURCE_OFFSET;

    (void) prof_symbolize(p, dir);
    is_str(p->frames[f].name, copy,
           "no build-id: a replaced file has no name");

    prof_profile_destroy(p);
    dlclose(lib);
}


/* hand-written code: one unwind entry, or none, for several symbols */

static void
test_extents(void)
{
    char      *name, *path, want[64];
    uint64_t   blob;

    path = strdup(file("stripped.so"));
    blob = address("blob");

    name = name_of(path, BUILD_ID, blob + 4, blob);
    is_str(name, "blob", "an address within the size has the name");
    free(name);

    (void) snprintf(want, sizeof(want), "stripped.so+0x%" PRIx64, blob);

    name = name_of(path, BUILD_ID, blob + 12, blob);
    is_str(name, want, "an address past the size has no name");
    free(name);

    name = name_of(path, BUILD_ID, blob + 20, blob);
    is_str(name, "blob_two", "the best symbol of an entry gives the name");
    free(name);

    name = name_of(path, BUILD_ID, blob + 40, blob);
    is_str(name, want, "nearest lower symbol does not count");
    free(name);

    name = name_of(path, BUILD_ID, blob + 20, 0);
    is_str(name, "blob_two",
           "no entry: an address within the size has the name");
    free(name);

    (void) snprintf(want, sizeof(want), "stripped.so+0x%" PRIx64, blob + 40);

    name = name_of(path, BUILD_ID, blob + 40, 0);
    is_str(name, want, "no entry: an address past the size has no name");
    free(name);

    name = name_of(path, BUILD_ID, blob + 20, blob + 18);
    ok(strncmp(name, "stripped.so+", 12) == 0,
       "no symbol reaches over the start of an entry: %s", name);
    free(name);

    free(path);

    /* a label without type or size counts only where the entry starts */

    path = strdup(file("full.so"));
    blob = address("blob_three");

    name = name_of(path, BUILD_ID, blob + 4, blob);
    is_str(name, "blob_three",
           "a label at the start of an entry gives the name");
    free(name);

    name = name_of(path, BUILD_ID, blob + 4, blob - 32);
    ok(strncmp(name, "full.so+", 8) == 0,
       "a label within an entry gives no name: %s", name);
    free(name);

    free(path);
}


/* a call that never returns may be the last instruction of a function */

static void
test_calls(void)
{
    prof_profile_t  *p;

    p = fixture_create("calls");
    (void) fixture_object(p, file("stripped.so"), BUILD_ID);

    (void) fixture_frame(p, 0, address("blob") + 8, NULL);
    p->frames[0].function = address("blob");
    p->frames[0].type = PROF_TYPE_RETURN;

    (void) fixture_frame(p, 0, address("blob") + 8, NULL);
    p->frames[1].function = address("blob");

    (void) prof_symbolize(p, dir);

    is_str(p->frames[0].name, "blob",
           "a return address at the end has the name of the caller");
    ok(!prof_frame_is_exact(&p->frames[1]), "interrupted there: %s",
       p->frames[1].name);

    prof_profile_destroy(p);
}


static void
test_versions(void)
{
    char  *name;

    is_int(run("cd %s && objcopy --redefine-sym local=local@@V_1.2"
               " full.so versions.so", dir), 0,
           "the test has a symbol with a version");

    name = name_of(file("versions.so"), BUILD_ID, address("local"),
                   address("local"));
    is_str(name, "local", "version is no part of the name");
    free(name);
}


/* with -O1 the call contains the address of the stub */

static void
test_plt(void)
{
#if (defined __x86_64__)

    char           *name;
    int32_t         rel;
    uint64_t        stub;
    const uint8_t  *code;

    for (code = (uint8_t *) base + address("caller"); *code != 0xe8; code++) {
        /* void */
    }

    memcpy(&rel, code + 1, sizeof(rel));
    stub = (uintptr_t) code + 5 + rel - base;

    name = name_of(file("stripped.so"), BUILD_ID, stub, 0);
    is_str(name, "getpid@plt", "a stub has the name of its function");
    free(name);

    name = name_of(file("stripped.so"), BUILD_ID, stub + 7, stub - stub % 16);
    is_str(name, "getpid@plt", "an address within a stub has its name");
    free(name);

#endif
}


static void
test_vdso(void)
{
    char      *name, hex[128];
    void      *lib, *sym;
    uint64_t   pc;

    lib = dlopen("linux-vdso.so.1", RTLD_NOW|RTLD_NOLOAD);
    sym = lib ? dlsym(lib, "__vdso_clock_gettime") : NULL;

    if (sym == NULL) {
        diag("no vDSO here: not tested");
        return;
    }

    build_id_of(getauxval(AT_SYSINFO_EHDR), hex);
    pc = (uintptr_t) sym - getauxval(AT_SYSINFO_EHDR);

    name = name_of("[vdso]", hex, pc, pc);
    is_str(name, "clock_gettime", "the vDSO has names");
    free(name);

    name = name_of("[vdso]", OTHER_ID, pc, pc);
    ok(strncmp(name, "[vdso]+0x", 9) == 0,
       "the vDSO of another kernel has no names: %s", name);
    free(name);
}


/* the running program, after an update has removed its file */

static void
test_exe(void)
{
    char      *name, hex[128];
    Dl_info    info;
    uint64_t   pc;

    if (!ok(dladdr((void *) main, &info) != 0, "this program")) {
        return;
    }

    build_id_of((uintptr_t) info.dli_fbase, hex);

    if (hex[0] == '\0') {
        diag("this program has no build-id: not tested");
        return;
    }

    pc = (uintptr_t) test_exe - (uintptr_t) info.dli_fbase;

    name = name_of("/nonexistent/program", hex, pc + 1, pc);
    is_str(name, "test_exe", "the program's file is gone");
    free(name);
}


static void
test_odd_files(void)
{
    char  *name, *path;

    path = strdup(file("odd"));

    (void) run("rm -f %s && mkdir %s", path, path);
    name = name_of(path, BUILD_ID, 0x1000, 0x1000);
    is_str(name, "odd+0x1000", "a directory has no names");
    free(name);

    (void) run("rmdir %s && mkfifo %s", path, path);
    name = name_of(path, BUILD_ID, 0x1000, 0x1000);
    is_str(name, "odd+0x1000", "a fifo has no names");
    free(name);

    (void) run("rm %s && : > %s", path, path);
    name = name_of(path, BUILD_ID, 0x1000, 0x1000);
    is_str(name, "odd+0x1000", "an empty file has no names");
    free(name);

    write_file(path, "!<arch>\nnot an object", 21);
    name = name_of(path, BUILD_ID, 0x1000, 0x1000);
    is_str(name, "odd+0x1000", "an archive has no names");
    free(name);

    free(path);
}


/* a file that is cut anywhere gives a name or an offset, never a wrong name */

static void
test_truncated(void)
{
    char    *data, *name, *path;
    size_t   cut, len, wrong;

    data = read_file(file("full.so"), &len);
    path = strdup(file("cut.so"));
    wrong = 0;

    for (cut = 0; cut < len; cut += cut < 256 ? 1 : 61) {
        write_file(path, data, cut);

        name = name_of(path, BUILD_ID, address("exported"),
                       address("exported"));
        wrong += strncmp(name, "cut.so+", 7) != 0
                 && strcmp(name, "exported") != 0;
        free(name);
    }

    is_int(wrong, 0,
           "a file that is truncated at %zu places has no wrong names",
           cut / 61 + 256);

    free(data);
    free(path);
}


/*
 * Each field of each section header, and the links between sections.  A helper
 * starts for each value, so a field gets every third one.
 */

static void
test_damaged(void)
{
    char           *data, *header, *name, *path;
    size_t          f, i, len, runs, v, wrong;
    uint64_t        saved;
    Elf64_Ehdr      eh;

    static const uint64_t  values[] = {
        0, 1, 2, 7, 23, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff,
        0xffffffffffffffff, 0xfffffffffffff000, 0x100000
    };

    data = read_file(file("full.so"), &len);
    path = strdup(file("damaged.so"));
    memcpy(&eh, data, sizeof(eh));

    runs = 0;
    wrong = 0;

    for (i = 0; i < eh.e_shnum; i++) {
        for (f = 0; f + 8 <= sizeof(Elf64_Shdr); f += 4) {
            for (v = (i + f / 4) % 3;
                 v < sizeof(values) / sizeof(values[0]);
                 v += 3)
            {
                header = data + eh.e_shoff + i * eh.e_shentsize + f;

                memcpy(&saved, header, 8);
                memcpy(header, &values[v], f % 8 ? 4 : 8);

                write_file(path, data, len);
                name = name_of(path, BUILD_ID, address("exported"),
                               address("exported"));
                runs++;
                wrong += name[0] == '\0';

                free(name);
                memcpy(header, &saved, 8);
            }
        }
    }

    ok(runs > 1000 && wrong == 0,
       "%zu damaged section headers give no wrong names", runs);

    /* the symbols and strings themselves */

    runs = 0;

    for (i = sizeof(Elf64_Ehdr); i < len; i += 5) {
        saved = (unsigned char) data[i];
        data[i] = (char) (i % 3 == 0 ? 0xff : i % 3 == 1 ? 0 : 0x7f);

        if (i % 64 == 4) {
            write_file(path, data, len);
            name = name_of(path, BUILD_ID, address("exported"),
                           address("exported"));
            runs++;
            wrong += name[0] == '\0';
            free(name);
        }

        if (i % 640 == 4) {
            data[i] = (char) saved;
        }
    }

    ok(runs > 50 && wrong == 0,
       "%zu damaged contents give no wrong names", runs);

    free(data);
    free(path);
}


static int
prepare(void)
{
    void     *lib;
    Dl_info   info;

    if (directory_create("prof_symbol", source)
        || run("cd %s && %s " FLAGS " -Wl,--build-id=0x" BUILD_ID
               " -o full.so lib.c", dir, compiler())
        || run("cd %s && %s " FLAGS " -Wl,--build-id=0x" OTHER_ID
               " -o other.so lib.c", dir, compiler())
        || run("cd %s && %s " FLAGS " -Wl,--build-id=none"
               " -o anonymous.so lib.c", dir, compiler())
        || run("cd %s && strip -o stripped.so full.so", dir))
    {
        diag("the test's objects cannot be made in %s", dir);
        return 1;
    }

    lib = dlopen(file("full.so"), RTLD_NOW|RTLD_LOCAL);
    table = lib ? dlsym(lib, "test_table") : NULL;

    if (table == NULL || !dladdr(table, &info)) {
        diag("%s", dlerror());
        return 1;
    }

    base = (uintptr_t) info.dli_fbase;

    return 0;
}


/* returns the link-time address of a function of the object */

static uint64_t
address(const char *function)
{
    size_t  i;

    for (i = 0; table[i].name; i++) {
        if (strcmp(table[i].name, function) == 0) {
            return (uintptr_t) table[i].address - base;
        }
    }

    diag("no function %s", function);
    exit(1);
}


static void
names(const char *path, const char *build_id, int full, const char *label)
{
    char                  want[64];
    size_t                i;
    uint32_t              f;
    const char           *expected;
    prof_profile_t       *p;
    const test_symbol_t  *s;

    p = fixture_create(label);
    (void) fixture_object(p, path, build_id);

    for (s = symbols; s->function; s++) {

        /* a return address at the end, an interrupted one at the start */

        f = fixture_frame(p, 0, address(s->function) + 2, NULL);
        p->frames[f].function = address(s->function);
        p->frames[f].type = PROF_TYPE_RETURN;

        f = fixture_frame(p, 0, address(s->function), NULL);
        p->frames[f].function = address(s->function);
    }

    prof_profile_forget();

    is_int(prof_symbolize(p, dir), PROF_OK,
           "%s: the profile gets its names", label);

    for (s = symbols, i = 0; s->function; s++, i += 2) {

        expected = full ? s->full : s->stripped;

        if (expected == NULL) {
            (void) snprintf(want, sizeof(want), "%s+0x%" PRIx64,
                            strrchr(path, '/') + 1, address(s->function));
            expected = want;
        }

        is_str(p->frames[i].name, expected,
               "%s: the address in %s has its name", label, s->function);
        is_str(p->frames[i + 1].name, expected,
               "%s: the start of %s has its name", label,
               s->function);
        is_int(prof_frame_is_exact(&p->frames[i]), expected != want,
               "%s: the name of %s is exact if it is known",
               label, s->function);
    }

    prof_profile_destroy(p);
}


static char *
name_of(const char *path, const char *build_id, uint64_t pc, uint64_t function)
{
    char            *name;
    prof_profile_t  *p;

    p = fixture_create("one");
    (void) fixture_object(p, path, build_id);
    (void) fixture_frame(p, 0, pc, NULL);
    p->frames[0].function = function;

    prof_profile_forget();

    if (prof_symbolize(p, dir) != PROF_OK || p->frames[0].name == NULL) {
        diag("no name for %s", path);
        exit(1);
    }

    name = strdup(p->frames[0].name);

    prof_profile_destroy(p);

    return name;
}


static char *
read_file(const char *path, size_t *len)
{
    char         *data;
    FILE         *f;
    struct stat   st;

    f = fopen(path, "r");

    if (f == NULL || fstat(fileno(f), &st) == -1) {
        diag("cannot open %s", path);
        exit(1);
    }

    *len = st.st_size;
    data = malloc(*len + 1);

    if (data == NULL || fread(data, 1, *len, f) != *len) {
        diag("cannot read %s", path);
        exit(1);
    }

    fclose(f);

    return data;
}


static void
write_file(const char *path, const char *data, size_t len)
{
    FILE  *f;

    /* some file systems flush a file that is truncated and written again */

    (void) unlink(path);

    f = fopen(path, "w");

    if (f == NULL || fwrite(data, 1, len, f) != len || fclose(f) != 0) {
        diag("cannot write %s", path);
        exit(1);
    }
}


/* reads the build-id of a loaded image from its notes */

static void
build_id_of(uintptr_t image, char *hex)
{
    size_t       i, pos;
    Elf64_Ehdr  *eh;
    Elf64_Nhdr  *note;
    Elf64_Phdr  *ph;

    hex[0] = '\0';

    eh = (Elf64_Ehdr *) image;
    ph = (Elf64_Phdr *) (image + eh->e_phoff);

    for ( /* void */ ; ph < (Elf64_Phdr *) (image + eh->e_phoff) + eh->e_phnum;
         ph++)
    {
        if (ph->p_type != PT_NOTE) {
            continue;
        }

        for (pos = 0; pos + sizeof(Elf64_Nhdr) < ph->p_memsz; /* void */ ) {
            note = (Elf64_Nhdr *) (image + ph->p_vaddr + pos);
            pos += sizeof(Elf64_Nhdr) + ((note->n_namesz + 3) & ~3u);

            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4) {

                for (i = 0; i < note->n_descsz; i++) {
                    (void) sprintf(hex + 2 * i, "%02x",
                                   *(uint8_t *) (image + ph->p_vaddr + pos
                                                 + i));
                }
            }

            pos += (note->n_descsz + 3) & ~3u;
        }
    }
}
