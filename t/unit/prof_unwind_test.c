
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: unwind
 * runs: beside
 *
 * Snapshots: their objects, functions, and the detection of changes.
 */


#include "prof_unwind_fixture.h"

#include "tap.h"

#include <limits.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


static void test_info(void);
static void test_objects(void);
static void test_code(void);
static int code_of_object(struct dl_phdr_info *info, size_t size, void *data);
static void test_functions(void);
static int functions_of_object(struct dl_phdr_info *info, size_t size,
    void *data);
static uint32_t symbols(const ElfW(Addr) *gnu_hash);
static void test_function_edges(void);
static void test_stale(void);
static void test_shared(void);
static void test_memory(void);
static size_t mappings(void);


static prof_unwind_t  *unwind;
static uint32_t        checked;
static uint32_t        wrong;


int
main(void)
{
    unwind = prof_unwind_create();

    if (!ok(unwind != NULL, "snapshot")) {
        return done_testing();
    }

    test_info();
    test_objects();
    test_code();
    test_functions();
    test_function_edges();
    test_stale();
    test_shared();
    test_memory();

    prof_unwind_release(unwind);
    prof_unwind_release(NULL);

    return done_testing();
}


static void
test_info(void)
{
    uint32_t            n;
    prof_unwind_info_t  info;

    prof_unwind_info(unwind, &info);

    for (n = 0; prof_unwind_object_at(unwind, n); n++) { /* void */ }

    is_int(info.objects, n, "the tables have all objects");
    ok(info.rows > 10000, "the tables have %u rows", info.rows);
    ok(info.unsupported < info.rows / 1000, "the tables lack %u rules",
       info.unsupported);
    ok(info.bytes > info.rows * 9 && info.bytes < info.rows * 14,
       "a row takes %.1f bytes", (double) info.bytes / info.rows);
    ok(info.build_ns > 0,
       "the tables are built in %.2f ms", (double) info.build_ns / 1000000);

    diag("%u objects, %u rows, %u of them unsupported, %zu bytes, %.2f ms",
         info.objects, info.rows, info.unsupported, info.bytes,
         (double) info.build_ns / 1000000);
}


static void
test_objects(void)
{
    char                  exe[PATH_MAX];
    ssize_t               len;
    uint32_t              i, vdso;
    const prof_object_t  *object, *last, *self;

    last = prof_unwind_object_at(unwind, 0);

    for (i = 1; (object = prof_unwind_object_at(unwind, i)) != NULL; i++) {
        wrong += object->start < last->end;
        last = object;
    }

    is_int(wrong, 0, "objects are sorted, and do not overlap");

    self = prof_unwind_object(unwind, (uintptr_t) test_objects);

    if (!ok(self != NULL, "the program")) {
        return;
    }

    len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[len > 0 ? len : 0] = '\0';

    is_str(self->path, exe, "the program has its path");

    for (i = 0, vdso = 0; (object = prof_unwind_object_at(unwind, i)); i++) {

        if (strcmp(object->path, "[vdso]") == 0) {
            is_int(object->base, getauxval(AT_SYSINFO_EHDR),
                   "the vdso has its base");
            vdso++;
        }
    }

    is_int(vdso, getauxval(AT_SYSINFO_EHDR) ? 1 : 0,
           "the tables have the vdso");

    ok(prof_unwind_object(unwind, 0) == NULL, "no object is at the address 0");
    ok(prof_unwind_object(unwind, UINTPTR_MAX) == NULL,
       "no object is behind the last one");
    ok(prof_unwind_object(unwind, (uintptr_t) &wrong) == NULL,
       "data is not code");
    ok(prof_unwind_object(unwind, self->start) == self
       && prof_unwind_object(unwind, self->end - 1) == self
       && prof_unwind_object(unwind, self->start - 1) != self
       && prof_unwind_object(unwind, self->end) != self,
       "an object contains exactly its own addresses");
}


/* start, end, offset and build-id against the program headers and the file */

static void
test_code(void)
{
    checked = 0;
    wrong = 0;

    (void) dl_iterate_phdr(code_of_object, NULL);

    is_int(wrong, 0, "%u objects have their code and build-ids", checked);
}


static int
code_of_object(struct dl_phdr_info *info, size_t size, void *data)
{
    FILE                 *f;
    uint8_t               head[4096];
    size_t                len;
    uint16_t              i;
    const uint8_t        *code;
    const ElfW(Phdr)     *ph;
    const prof_object_t  *object;

    ph = info->dlpi_phdr;

    for (i = 0; i < info->dlpi_phnum; i++, ph++) {

        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
            break;
        }
    }

    if (i == info->dlpi_phnum) {
        return 0;
    }

    code = (const uint8_t *) (info->dlpi_addr + ph->p_vaddr);
    object = prof_unwind_object(unwind, (uintptr_t) code);

    checked++;

    if (object == NULL || object->base != info->dlpi_addr
        || object->start != (uintptr_t) code
        || object->end != object->start + ph->p_memsz)
    {
        diag("%s: wrong code", info->dlpi_name);
        wrong++;
        return 0;
    }

    f = fopen(object->path, "r");

    if (f == NULL) {
        return 0;
    }

    len = fread(head, 1, sizeof(head), f);

    if (object->build_id_len == 0
        || memmem(head, len, object->build_id, object->build_id_len) == NULL)
    {
        diag("%s: wrong build-id", object->path);
        wrong++;
    }

    (void) fseek(f, (long) object->offset, SEEK_SET);
    len = fread(head, 1, 16, f);

    if (len != 16 || memcmp(head, code, 16) != 0) {
        diag("%s: wrong offset", object->path);
        wrong++;
    }

    fclose(f);

    return 0;
}


/* each exported function of libc and other libraries begins an unwind entry */

static void
test_functions(void)
{
    checked = 0;
    wrong = 0;

    (void) dl_iterate_phdr(functions_of_object, NULL);

    ok(checked > 1000, "%u exported functions are checked", checked);
    ok(wrong < checked / 100, "%u of them do not begin an unwind entry",
       wrong);
}


static int
functions_of_object(struct dl_phdr_info *info, size_t size, void *data)
{
    size_t              len;
    uint32_t            n;
    uint16_t            i;
    uintptr_t           at, start;
    Dl_info             dl;
    const ElfW(Sym)    *sym, *end;
    const ElfW(Dyn)    *dyn;
    const ElfW(Addr)   *hash;

    sym = NULL;
    hash = NULL;

    for (i = 0; i < info->dlpi_phnum; i++) {

        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }

        dyn = (const ElfW(Dyn) *) (info->dlpi_addr
                                   + info->dlpi_phdr[i].p_vaddr);

        for ( /* void */ ; dyn->d_tag != DT_NULL; dyn++) {

            if (dyn->d_tag == DT_SYMTAB) {
                sym = (const ElfW(Sym) *) dyn->d_un.d_ptr;

            } else if (dyn->d_tag == DT_GNU_HASH) {
                hash = (const ElfW(Addr) *) dyn->d_un.d_ptr;
            }
        }
    }

    /* the vdso's tables are not relocated */

    if (sym == NULL || hash == NULL
        || (uintptr_t) sym < info->dlpi_addr)
    {
        return 0;
    }

    n = symbols(hash);

    for (end = sym + n; sym < end; sym++) {

        if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_value == 0
            || sym->st_size == 0)
        {
            continue;
        }

        at = info->dlpi_addr + sym->st_value;
        checked++;

        start = prof_unwind_function(unwind, at, &len);

        if (start != at || len == 0) {
            wrong++;
            continue;
        }

        /* an address in the middle has the same function as for dladdr() */

        if (dladdr((void *) (at + len / 2), &dl) && dl.dli_saddr
            && (uintptr_t) dl.dli_saddr == at
            && prof_unwind_function(unwind, at + len / 2, &len) != at)
        {
            wrong++;
        }
    }

    return 0;
}


/* the last chain of the hash table gives the number of symbols */

static uint32_t
symbols(const ElfW(Addr) *gnu_hash)
{
    uint32_t         i, max, nbuckets, first, words;
    const uint32_t  *head, *bucket, *chain;

    head = (const uint32_t *) gnu_hash;
    nbuckets = head[0];
    first = head[1];
    words = head[2];

    bucket = head + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    chain = bucket + nbuckets;
    max = 0;

    for (i = 0; i < nbuckets; i++) {
        max = (bucket[i] > max) ? bucket[i] : max;
    }

    if (max < first) {
        return first;
    }

    while (!(chain[max - first] & 1)) {
        max++;
    }

    return max + 1;
}


static void
test_function_edges(void)
{
    size_t     len, inner;
    uintptr_t  start;

    start = (uintptr_t) test_function_edges;

    is_int(prof_unwind_function(unwind, start, &len), start,
           "the first byte belongs to the function");
    ok(len > 16, "the function has %zu bytes", len);
    is_int(prof_unwind_function(unwind, start + len - 1, &inner), start,
           "the last byte belongs to the function");
    is_int(inner, len, "the last byte gives the same length");
    ok(prof_unwind_function(unwind, start - 1, &inner) != start
       && prof_unwind_function(unwind, start + len, &inner) != start,
       "bytes around the function do not belong to it");

    inner = 1;
    is_int(prof_unwind_function(unwind, 0x1000, &inner), 0,
           "an address without an object has no function");
    is_int(inner, 0, "an address without an object has no length");
}


static void
test_stale(void)
{
    void                 *handle, *function;
    size_t                len;
    const char           *name;
    prof_unwind_t        *u;
    const prof_object_t  *object;

    ok(!prof_unwind_stale(unwind), "a snapshot is fresh at first");

    handle = fixture_load(&function, &name);

    if (function == NULL) {
        diag("no library to load");
        return;
    }

    ok(prof_unwind_stale(unwind),
       "stale: the snapshot notices a loaded object");
    ok(prof_unwind_object(unwind, (uintptr_t) function) == NULL,
       "stale: it is not in the snapshot");

    u = prof_unwind_create();

    ok(!prof_unwind_stale(u), "a new snapshot is fresh");

    object = prof_unwind_object(u, (uintptr_t) function);

    ok(object && strstr(object->path, name), "the new snapshot has the object");
    is_int(prof_unwind_function(u, (uintptr_t) function, &len),
           (uintptr_t) function,
           "the snapshot has the functions of the object");

    dlclose(handle);

    ok(prof_unwind_stale(u),
       "stale: the snapshot notices an unloaded object");
    ok(prof_unwind_stale(unwind), "stale: although all is as it was");

    prof_unwind_release(unwind);
    prof_unwind_release(u);

    unwind = prof_unwind_create();

    ok(!prof_unwind_stale(unwind), "the snapshot is fresh again");
}


/* children read the parent's tables, and no process can write to them */

static void
test_shared(void)
{
    int    status;
    pid_t  pid;

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        _exit(prof_unwind_stale(unwind)
              || prof_unwind_object(unwind, (uintptr_t) main) == NULL);
    }

    (void) waitpid(pid, &status, 0);
    is_int(status, 0, "a child uses the snapshot");

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        (void) freopen("/dev/null", "w", stderr);
        ((volatile prof_object_t *)
             prof_unwind_object(unwind, (uintptr_t) main))->start = 0;
        _exit(0);
    }

    (void) waitpid(pid, &status, 0);
    ok(status != 0, "snapshot is read-only");
}


static void
test_memory(void)
{
    int             i;
    size_t          before, after;
    prof_unwind_t  *u;

    before = mappings();

    for (i = 0; i < 20; i++) {
        u = prof_unwind_create();
        prof_unwind_release(u);
    }

    after = mappings();

    ok(after <= before + 65536, "nothing is left behind: %zu, %zu", before,
       after);
}


/* returns the bytes of address space */

static size_t
mappings(void)
{
    FILE    *f;
    size_t   pages;

    pages = 0;
    f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%zu", &pages) != 1) {
        pages = 0;
    }

    if (f) {
        fclose(f);
    }

    return pages * (size_t) sysconf(_SC_PAGESIZE);
}
