
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: unwind
 * runs: beside
 *
 * Unwind entries to rows: rules that a row can and cannot express, objects
 * without a sorted table of entries, and damaged data.
 */


#include "prof_unwind_fixture.h"

#include "tap.h"

#include "unwind/prof_arch.h"
#include "unwind/prof_cfi.h"
#include "unwind/prof_object.h"
#include "unwind/prof_table.h"

#include <sys/mman.h>
#include <unistd.h>


#define TEST_DAMAGES  3000


/* the rows that the instructions of an FDE emitted */

typedef struct {
    uint32_t    n;
    uintptr_t   start;      /* the range of the FDE's code */
    uintptr_t   end;
    uintptr_t   pc;         /* the last row */
    unsigned    wrong;
    uint64_t    row[16];
    int8_t      aux[16];
} emitted_t;


/* counters of reading damaged copies */

typedef struct {
    uint32_t    entries;
    uint32_t    outside;    /* entries with code out of bounds */
    uint32_t    endless;    /* the number of copies */
} damages_t;


static void test_leb128(void);
static void test_pointers(void);
#if (__x86_64__)
static void test_fixture_rows(void);
static void test_instructions(void);
static void test_calls(void);
static void run(const uint8_t *insn, size_t len, emitted_t *e);
#endif
static int test_without_table(void *data, const prof_object_info_t *object);
static int test_damaged(void *data, const prof_object_info_t *object);
static void damage(const prof_eh_t *eh, const uint8_t *copy, size_t len,
    damages_t *d);
static void emit(void *data, uintptr_t pc, const prof_cfi_state_t *state);
static uint32_t random_next(void);


static prof_unwind_t       *unwind;
static prof_object_list_t   list;
static uint32_t             seed = 1;


int
main(void)
{
    int  objects;

    unwind = prof_unwind_create();

    if (!ok(unwind != NULL, "snapshot")) {
        return done_testing();
    }

    test_leb128();
    test_pointers();

#if (__x86_64__)
    test_fixture_rows();
    test_instructions();
    test_calls();
#endif

    (void) prof_object_list(&list, test_without_table, NULL);

    objects = 0;
    (void) prof_object_list(&list, test_damaged, &objects);
    is_int(objects, 1, "one object is damaged");

    prof_unwind_release(unwind);

    return done_testing();
}


static void
test_leb128(void)
{
    size_t       i;
    prof_read_t  r;

    static const struct {
        const char  *bytes;
        size_t       len;
        uint64_t     u;
        int64_t      s;
    } v[] = {
        { "\x00", 1, 0, 0 },
        { "\x02", 1, 2, 2 },
        { "\x3f", 1, 63, 63 },
        { "\x40", 1, 64, -64 },
        { "\x7f", 1, 127, -1 },
        { "\x80\x01", 2, 128, 128 },
        { "\x80\x7f", 2, 16256, -128 },
        { "\xe5\x8e\x26", 3, 624485, 624485 },
        { "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10,
          (uint64_t) 1 << 63, INT64_MIN },
        { "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12, 1, 1 }
    };

    for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        prof_read_init(&r, (const uint8_t *) v[i].bytes,
                       (const uint8_t *) v[i].bytes + v[i].len);
        is_int(prof_read_uleb(&r), v[i].u,
               "unsigned number %d is read", (int) i);
        ok(!r.failed && r.p == r.end,
           "unsigned number %d has its length", (int) i);

        prof_read_init(&r, (const uint8_t *) v[i].bytes,
                       (const uint8_t *) v[i].bytes + v[i].len);
        is_int(prof_read_sleb(&r), v[i].s,
               "signed number %d is read", (int) i);
        ok(!r.failed && r.p == r.end,
           "signed number %d has its length", (int) i);

        prof_read_init(&r, (const uint8_t *) v[i].bytes,
                       (const uint8_t *) v[i].bytes + v[i].len - 1);
        (void) prof_read_uleb(&r);
        ok(r.failed, "shortened number %d is refused", (int) i);
    }
}


static void
test_pointers(void)
{
    uint8_t      data[16];
    prof_read_t  r;

    memset(data, 0xff, sizeof(data));
    data[0] = 0xfe;

#define read_as(encoding, len)                                                \
    (prof_read_init(&r, data, data + (len)), prof_read_pointer(&r, encoding, 5))

    is_int(read_as(PROF_PE_UDATA2, 2), 0xfffe, "udata2 is read");
    is_int(read_as(PROF_PE_SDATA2, 2), -2, "sdata2 is read");
    is_int(read_as(PROF_PE_UDATA4, 4), 0xfffffffe, "udata4 is read");
    is_int(read_as(PROF_PE_SDATA4, 4), -2, "sdata4 is read");
    is_int(read_as(PROF_PE_ABSPTR, 8), -2, "absptr is read");
    is_int(read_as(PROF_PE_SDATA8, 8), -2, "sdata8 is read");
    is_int(read_as(PROF_PE_PCREL|PROF_PE_SDATA4, 4), (uintptr_t) data - 2,
           "a number may be relative to itself");
    is_int(read_as(PROF_PE_DATAREL|PROF_PE_SDATA4, 4), 3,
           "a number may be relative to data");
    ok(!r.failed, "all of these can be read");

    (void) read_as(PROF_PE_SDATA4, 3);
    ok(r.failed, "a number that is cut off is refused");
    (void) read_as(PROF_PE_INDIRECT|PROF_PE_SDATA4, 4);
    ok(r.failed, "an indirect number is refused");
    (void) read_as(0x20|PROF_PE_SDATA4, 4);
    ok(r.failed, "a number relative to text is refused");
    (void) read_as(0x07, 8);
    ok(r.failed, "an unknown form is refused");

#undef read_as
}


#if (__x86_64__)

/* the rows of entries that the assembler made, without their pc */

static void
test_fixture_rows(void)
{
    size_t               i;
    uint64_t             row;
    uintptr_t            at;
    const prof_range_t  *range;

    static const struct {
        const char  *name;
        char        *at;
        uint64_t     row;
        int          aux;
    } v[] = {
        { "CFA too far", fixture_odd_big,
          prof_row(PROF_ROW_UNSUPPORTED, 0, 0), 0 },
        { "CFA just near enough", fixture_odd_max,
          prof_row(PROF_ROW_RSP, 0xffff, 0), 0 },
        { "CFA unaligned", fixture_odd_unaligned,
          prof_row(PROF_ROW_UNSUPPORTED, 0, 0), 0 },
        { "return address elsewhere", fixture_odd_ra,
          prof_row(PROF_ROW_UNSUPPORTED, 0, 0), 0 },
        { "return address in a register", fixture_odd_ra_register,
          prof_row(PROF_ROW_UNSUPPORTED, 0, 0), 0 },
        { "other expression", fixture_odd_expression,
          prof_row(PROF_ROW_UNSUPPORTED, 0, 0), 0 },
        { "rsp", fixture_odd_good, prof_row(PROF_ROW_RSP, 4, 0), 0 },
        { "rbp", fixture_odd_rbp, prof_row(PROF_ROW_RBP, 2, -2), -3 },
        { "state restored", fixture_odd_restored,
          prof_row(PROF_ROW_RSP, 4, 0), 0 },
        { "gap", fixture_odd_gap, prof_row(PROF_ROW_NONE, 0, 0), 0 },
        { "after the gap", (char *) fixture_last,
          prof_row(PROF_ROW_RSP, 1, 0), 0 },
        { "no entry", (char *) fixture_nocfi,
          prof_row(PROF_ROW_NONE, 0, 0), 0 },
        { "outermost frame", fixture_end_ret,
          prof_row(PROF_ROW_END, 0, 0), 0 },
        { "realigned stack", fixture_realign_ret,
          prof_row(PROF_ROW_DEREF_RBP, prof_row_deref(-1, 0), 1), 3 },
        { "CFA behind a pointer", fixture_deref_ret,
          prof_row(PROF_ROW_DEREF_RSP, prof_row_deref(5, 1), -2), 0 },
        { "CFA in rbx", fixture_rbx_ret, prof_row(PROF_ROW_REG + 3, 2, 0),
          -2 },
        { "CFA in rax", fixture_rax_ret, prof_row(PROF_ROW_REG + 0, 1, 0),
          0 },
        { "CFA indexed by r9", fixture_r9_trap,
          prof_row(PROF_ROW_INDEX_R9, 1, 0), 0 },
        { "lazy binding stub", (char *) fixture_plt,
          prof_row(PROF_ROW_PLT, 11, 0), 0 },
        { "register saved too far away", fixture_far_ret,
          prof_row(PROF_ROW_RSP, 512, PROF_ROW_LOST), 0 }
    };

    for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        at = (uintptr_t) v[i].at;
        row = prof_table_row(unwind, at);
        range = prof_table_range(unwind, at);

        is_int(prof_row_rule(row), v[i].row,
               "row: %s has its rule", v[i].name);
        is_int(range->shared->block->aux[prof_table_find(range, at)],
               v[i].aux, "row: %s has its aux", v[i].name);
    }

    is_int(prof_table_row(unwind, 0x1000), 0,
           "row: an unknown address has no row");
}


/* instructions that no assembler makes; the code is at 0x1000..0x2000 */

static void
test_instructions(void)
{
    size_t     i;
    emitted_t  e;

    static const uint64_t  rsp1 = prof_row(PROF_ROW_RSP, 1, 0);
    static const uint64_t  rsp2 = prof_row(PROF_ROW_RSP, 2, 0);
    static const uint64_t  bad = prof_row(PROF_ROW_UNSUPPORTED, 0, 0);

    static const struct {
        const char  *name;
        const char  *insn;
        size_t       len;
        uint32_t     n;
        uint64_t     row[3];
        int          aux;           /* of the last row */
    } v[] = {
        { "none", "", 0, 1, { rsp1 }, 0 },
        { "advance of 1", "\x41\x0e\x10", 3, 2, { rsp1, rsp2 }, 0 },
        { "advance of 0", "\x40\x0e\x10", 3, 1, { rsp2 }, 0 },
        { "advance, 1 byte", "\x02\xff\x0e\x10", 4, 2, { rsp1, rsp2 }, 0 },
        { "advance, 2 bytes", "\x03\xff\x0f\x0e\x10", 5, 2, { rsp1, rsp2 },
          0 },
        { "advance, 4 bytes", "\x04\xff\x0f\0\0\x0e\x10", 7, 2,
          { rsp1, rsp2 }, 0 },
        { "advance to the end", "\x03\x00\x10\x0e\x10", 5, 1, { rsp1 }, 0 },
        { "advance beyond", "\x03\x01\x10\x0e\x10", 5, 1, { bad }, 0 },
        { "location", "\x01\x01\x10\0\0\0\0\0\0\x0e\x10", 11, 2,
          { rsp1, rsp2 }, 0 },
        { "location backwards", "\x01\xff\x0f\0\0\0\0\0\0\x0e\x10", 11, 1,
          { bad }, 0 },
        { "unknown after a row", "\x41\x3f\x41\x0e\x10", 5, 2, { rsp1, bad },
          0 },
        { "cut", "\x41\x0e", 2, 2, { rsp1, bad }, 0 },
        { "cut in a number", "\x41\x0e\x80", 3, 2, { rsp1, bad }, 0 },
        { "cut in an expression", "\x41\x0f\x09\x77\x08", 5, 2,
          { rsp1, bad }, 0 },
        { "restore without remember", "\x0b", 1, 1, { bad }, 0 },
        { "remember too often", "\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a", 9, 1,
          { bad }, 0 },
        { "remember and restore", "\x0a\x0e\x10\x41\x0b", 5, 2,
          { rsp2, rsp1 }, 0 },
        { "factored offset", "\x13\x7e", 2, 1, { rsp2 }, 0 },
        { "factored CFA", "\x12\x07\x7e", 3, 1, { rsp2 }, 0 },
        { "offset of an expression", "\x0f\x03\x77\x08\x06\x0e\x10", 7, 1,
          { bad }, 0 },
        { "rbp extended", "\x05\x06\x02", 3, 1,
          { prof_row(PROF_ROW_RSP, 1, -2) }, 0 },
        { "rbp signed", "\x11\x06\x02", 3, 1,
          { prof_row(PROF_ROW_RSP, 1, -2) }, 0 },
        { "rbp negative", "\x2f\x06\x7e", 3, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp at -1016", "\x05\x06\x7f", 3, 1,
          { prof_row(PROF_ROW_RSP, 1, -127) }, 0 },
        { "rbp at -1024", "\x05\x06\x80\x01", 4, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp in a register", "\x09\x06\x00", 3, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp undefined", "\x07\x06", 2, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp is a value", "\x14\x06\x02", 3, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp is an expression's value", "\x16\x06\x02\x76\x00", 5, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp at rbp - 16", "\x10\x06\x02\x76\x70", 5, 1,
          { prof_row(PROF_ROW_RSP, 1, 3) }, 0 },
        { "rbp at rbp + 8", "\x10\x06\x02\x76\x08", 5, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp at rsp - 16", "\x10\x06\x02\x77\x70", 5, 1,
          { prof_row(PROF_ROW_RSP, 1, PROF_ROW_LOST) }, 0 },
        { "rbp the same again", "\x86\x02\x08\x06", 4, 1, { rsp1 }, 0 },
        { "rbp restored", "\x86\x02\xc6", 3, 1, { rsp1 }, 0 },
        { "rbp restored, extended", "\x86\x02\x06\x06", 4, 1, { rsp1 }, 0 },
        { "rbx", "\x83\x03", 2, 1, { rsp1 }, -3 },
        { "r12 does not matter", "\x8c\x03", 2, 1, { rsp1 }, 0 },
        { "r200 does not matter", "\x05\xc8\x01\x03", 4, 1, { rsp1 }, 0 },
        { "rsp is not the CFA", "\x87\x02", 2, 1, { bad }, 0 },
        { "CFA in r12", "\x0d\x0c", 2, 1,
          { prof_row(PROF_ROW_REG + 12, 1, 0) }, 0 },
        { "CFA below a register", "\x12\x00\x01", 3, 1,
          { prof_row(PROF_ROW_REG + 0, -1, 0) }, 0 },
        { "CFA in no register", "\x0d\x11", 2, 1, { bad }, 0 },
        { "CFA below rsp", "\x12\x07\x01", 3, 1, { bad }, 0 },
        { "CFA at *(rsp + 8) + 128", "\x0f\x06\x77\x08\x06\x23\x80\x01", 8, 1,
          { bad }, 0 },
        { "size of arguments", "\x2e\x20\x0e\x10", 4, 1, { rsp2 }, 0 }
    };

    for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        run((const uint8_t *) v[i].insn, v[i].len, &e);

        is_int(e.n, v[i].n, "instructions: %s makes its rows", v[i].name);
        is_mem(e.row, v[i].row, e.n * sizeof(uint64_t),
               "instructions: %s has its rules",
               v[i].name);
        is_int(e.aux[e.n - 1], v[i].aux, "instructions: %s has its aux",
               v[i].name);
        is_int(e.wrong, 0, "instructions: %s makes rows in order", v[i].name);
    }
}


/* which instructions are calls, and their targets */

static void
test_calls(void)
{
    size_t     i;
    uint8_t    code[16];
    uintptr_t  pc, target;

    static const struct {
        const char  *name;
        const char  *insn;
        size_t       len;
        int          call;
        int          target;        /* relative to the next instruction */
    } v[] = {
        { "call rel32", "\xe8\x78\x56\x00\x00", 5, 1, 0x5678 },
        { "call rel32 backwards", "\xe8\xf0\xff\xff\xff", 5, 1, -16 },
        { "call *%rax", "\xff\xd0", 2, 1, 0 },
        { "call *%r11", "\x41\xff\xd3", 3, 1, 0 },
        { "call *(%rax)", "\xff\x10", 2, 1, 0 },
        { "call *(%r12)", "\x41\xff\x14\x24", 4, 1, 0 },
        { "call *(%rax,%rcx,8)", "\xff\x14\xc8", 3, 1, 0 },
        { "call *0x10(%rax)", "\xff\x50\x10", 3, 1, 0 },
        { "call *0x10(%rax,%rcx,8)", "\xff\x54\xc8\x10", 4, 1, 0 },
        { "call *0x110(%rax)", "\xff\x90\x10\x01\x00\x00", 6, 1, 0 },
        { "call *0x110(%rax,%rcx,8)", "\xff\x94\xc8\x10\x01\x00\x00", 7, 1,
          0 },
        { "call *0x110(,%rcx,8)", "\xff\x14\xcd\x10\x01\x00\x00", 7, 1, 0 },
        { "call *0x110(%rip)", "\xff\x15\x10\x01\x00\x00", 6, 1, 0 },
        { "jmp rel32", "\xe9\x78\x56\x00\x00", 5, 0, 0 },
        { "jmp *%rax", "\xff\xe0", 2, 0, 0 },
        { "push (%rax)", "\xff\x30", 2, 0, 0 },
        { "inc (%rax)", "\xff\x00", 2, 0, 0 },
        { "call *(%rax), nop", "\xff\x10\x90", 3, 0, 0 },
        { "call *%rax, nop", "\xff\xd0\x90", 3, 0, 0 },
        { "ret", "\xc3", 1, 0, 0 }
    };

    for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        memset(code, 0x90, sizeof(code));
        memcpy(code + 8, v[i].insn, v[i].len);

        pc = (uintptr_t) code + 8 + v[i].len;

        is_int(prof_arch_called(pc, &target), v[i].call,
               "%s: a call is recognized",
               v[i].name);
        is_int(target, v[i].target ? pc + v[i].target : 0,
               "%s: a call has its target",
               v[i].name);
    }

    if (!fixture_valgrind()) {

        /* a sanitizer reports the system call that checks this */

        is_int(prof_arch_called(0x1000, &target), 0,
               "unreadable code is no call");
    }
}


static void
run(const uint8_t *insn, size_t len, emitted_t *e)
{
    uint8_t        *copy;
    prof_fde_t      fde;
    prof_cfi_cie_t  cie;

    /* rsp + 8, return address at CFA - 8 */

    static const uint8_t  initial[] = { 0x0c, 7, 8, 0x90, 1 };

    memset(&cie, 0, sizeof(cie));
    cie.cie.start = initial;
    cie.cie.insn = initial;
    cie.cie.insn_end = initial + sizeof(initial);
    cie.cie.code_align = 1;
    cie.cie.data_align = -8;
    cie.cie.ra = PROF_ARCH_DWARF_RA;

    /* a buffer of the exact length, for tools that detect reads beyond it */

    copy = malloc(len ? len : 1);

    if (copy == NULL) {
        exit(1);
    }

    memcpy(copy, insn, len);

    fde.start = 0x1000;
    fde.end = 0x2000;
    fde.insn = copy;
    fde.insn_end = copy + len;

    memset(e, 0, sizeof(emitted_t));
    e->start = fde.start;
    e->end = fde.end;

    prof_cfi_run(&cie, &fde, emit, e);

    free(copy);
}

#endif


/* reading all of .eh_frame gives the same as the sorted table */

static int
test_without_table(void *data, const prof_object_info_t *object)
{
    size_t          j, n, len, listed, wrong, none;
    prof_eh_t       eh;
    prof_eh_fde_t  *fdes;

    eh = object->eh;

    if (eh.table == NULL) {
        return PROF_OK;
    }

    n = eh.n;
    eh.table = NULL;
    eh.n = 0;

    fdes = malloc(prof_eh_max(eh.frame_end - eh.frame)
                  * sizeof(prof_eh_fde_t));

    if (fdes == NULL) {
        exit(1);
    }

    listed = prof_eh_list(&eh, fdes);
    wrong = 0;
    none = 0;

    for (j = 0; j < listed && j < n; j++) {
        wrong += fdes[j].p != prof_eh_table(&object->eh, j);
        none += fdes[j].start >= object->pub.start
                && prof_unwind_function(unwind, fdes[j].start, &len)
                   != fdes[j].start;
    }

    is_int(listed, n, "%s: all entries are listed", object->pub.path);
    is_int(wrong, 0,
           "%s: both lists have the same entries", object->pub.path);
    is_int(none, 0, "%s: each entry has its function", object->pub.path);

    free(fdes);

    return PROF_OK;
}


/* copies of real entries with a few changed bytes: no read beyond the copy */

static int
test_damaged(void *data, const prof_object_info_t *object)
{
    int *objects = data;

    size_t            j, len, at, page, size;
    uint8_t          *map, *copy, byte[4];
    uint32_t          k;
    damages_t         d;
    prof_eh_t         eh;
    const prof_eh_t  *from;

    if ((uintptr_t) main < object->pub.start
        || (uintptr_t) main >= object->pub.end)
    {
        return PROF_OK;
    }

    (*objects)++;

    from = &object->eh;

    if (!ok(from->hdr < from->frame, ".eh_frame_hdr comes first")) {
        return PROF_OK;
    }

    /* reading beyond the copy is a fault */

    len = from->frame_end - from->hdr;
    page = sysconf(_SC_PAGESIZE);
    size = (len + page - 1) / page * page;

    map = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED || mprotect(map + size, page, PROT_NONE)) {
        exit(1);
    }

    copy = map + size - len;
    memcpy(copy, from->hdr, len);
    memset(&d, 0, sizeof(d));

    for (j = 0; j < TEST_DAMAGES; j++) {
        at = random_next() % len;

        if (j % 2) {
            at = (from->frame - from->hdr) + at % 4096;
        }

        at = (at > len - 4) ? len - 4 : at;

        memcpy(byte, copy + at, 4);

        for (k = 0; k < 4; k++) {

            if (random_next() % 2) {
                copy[at + k] = (uint8_t) random_next();
            }
        }

        if (prof_eh_init(&eh, copy, copy + len) == PROF_OK
            && eh.frame >= copy && eh.frame < copy + len)
        {
            eh.frame_end = copy + len;
            damage(&eh, copy, len, &d);
        }

        memcpy(copy + at, byte, 4);
    }

    munmap(map, size + page);

    ok(d.entries > TEST_DAMAGES,
       "%u entries of %d damaged copies are read", d.entries,
       TEST_DAMAGES);
    is_int(d.outside, 0,
           "each damaged entry stays within its code and the copy");
    is_int(d.endless, 0, "each copy ends");

    return PROF_OK;
}


static void
damage(const prof_eh_t *eh, const uint8_t *copy, size_t len, damages_t *d)
{
    int             rc;
    uint32_t        n;
    emitted_t       e;
    prof_fde_t      fde;
    const uint8_t  *p;
    prof_cfi_cie_t  cie;

    memset(&cie, 0, sizeof(cie));
    p = eh->frame;
    n = 0;

    do {
        rc = prof_eh_entry(eh, &p, &cie.cie, &fde);

        if (rc == PROF_OK) {
            memset(&e, 0, sizeof(e));
            e.start = fde.start;
            e.end = fde.end;

            prof_cfi_run(&cie, &fde, emit, &e);

            d->entries++;
            d->outside += (e.wrong || fde.insn < copy
                           || fde.insn_end > copy + len);
        }

    } while (rc != PROF_ERROR && n++ < 1000000);

    d->endless += (n >= 1000000);
}


static void
emit(void *data, uintptr_t pc, const prof_cfi_state_t *state)
{
    emitted_t *e = data;

    if (pc < e->start || pc >= e->end || (e->n && pc <= e->pc)) {
        e->wrong++;
    }

    e->pc = pc;

    if (e->n < sizeof(e->row) / sizeof(e->row[0])) {

        /* as the builder does it */

        e->row[e->n] = state->unsupported
                       ? prof_row(PROF_ROW_UNSUPPORTED, 0, 0)
                       : prof_arch_row(state, &e->aux[e->n]);
    }

    e->n++;
}


static uint32_t
random_next(void)
{
    seed = seed * 1664525 + 1013904223;

    return seed >> 8;
}
