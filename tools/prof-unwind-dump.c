
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * usage: prof-unwind-dump [OBJECT]
 *
 * Prints the unwind table of a shared library, which is loaded for it, or by
 * default of this program.  A line is the link-time address that a row begins
 * at, the CFA, and where the caller's registers were saved (x86-64: rbp, rbx;
 * aarch64: x29, x30), much as readelf has it:
 *
 *     u           not saved
 *     c-16        at CFA - 16
 *     b-8         at rbp - 8
 *     lost        elsewhere
 *
 * check-unwind-tables compares this with readelf's view of the same entries.
 */


#include "unwind/prof_arch.h"
#include "unwind/prof_table.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define DUMP_TEXT  32


static uint32_t dump_object(const prof_unwind_t *u, void *handle);
static void dump_print(const prof_unwind_t *u, uint32_t object);
static void dump_row(uint64_t row, int aux);
static void dump_rule(uint64_t row, int aux);

#if (__x86_64__)
static void dump_saved(int saved);

#elif (__aarch64__)
static void dump_saved(int saved, int cfa);

#endif


int
main(int argc, char **argv)
{
    void           *handle;
    uint32_t        object;
    prof_unwind_t  *u;

    if (argc > 2 || (argc == 2 && *argv[1] == '-')) {
        fprintf(stderr, "usage: prof-unwind-dump [OBJECT]\n");
        return 2;
    }

    handle = dlopen(argv[1], RTLD_LAZY);

    if (handle == NULL) {
        fprintf(stderr, "prof-unwind-dump: %s\n", dlerror());
        return 1;
    }

    u = prof_unwind_create();

    if (u == NULL) {
        perror("prof-unwind-dump");
        return 1;
    }

    object = argv[1] ? dump_object(u, handle)
                     : prof_table_object(u, (uintptr_t) main);

    if (object == PROF_TABLE_NONE) {
        fprintf(stderr, "prof-unwind-dump: no code in %s\n", argv[1]);
        return 1;
    }

    dump_print(u, object);

    prof_unwind_destroy(u);

    return 0;
}


static uint32_t
dump_object(const prof_unwind_t *u, void *handle)
{
    uint32_t          i, n;
    struct link_map  *map;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == -1) {
        return PROF_TABLE_NONE;
    }

    (void) prof_unwind_objects(u, &n);

    for (i = 0; i < n; i++) {
        if (u->objects[i].base == map->l_addr
            && strcmp(u->objects[i].path, map->l_name) == 0)
        {
            return i;
        }
    }

    return PROF_TABLE_NONE;
}


static void
dump_print(const prof_unwind_t *u, uint32_t object)
{
    uint32_t             i, last;
    uintptr_t            start;
    const prof_range_t  *range;

    range = &u->ranges[object];
    start = range->start - u->objects[object].base;
    last = range->index[(range->end - range->start + PROF_TABLE_PAGE - 1)
                        >> PROF_TABLE_PAGE_BITS];

    printf("%s: %u rows, code %lx..%lx\n", u->objects[object].path,
           last + 1 - range->index[0], (unsigned long) start,
           (unsigned long) (range->end - u->objects[object].base));

    for (i = range->index[0]; i <= last; i++) {
        printf("%016lx ",
               (unsigned long) (start + prof_row_pc(u->rows[i])));

        dump_row(u->rows[i], u->aux[i]);
    }
}


static void
dump_row(uint64_t row, int aux)
{
    switch (prof_row_kind(row)) {

    case PROF_ROW_NONE:
        printf("none\n");
        return;

    case PROF_ROW_UNSUPPORTED:
        printf("unsupported\n");
        return;

    case PROF_ROW_END:
        printf("end\n");
        return;

    case PROF_ROW_SIGFRAME:
        printf("signal\n");
        return;
    }

    dump_rule(row, aux);
}


#if (__x86_64__)


static void
dump_rule(uint64_t row, int aux)
{
    char      text[DUMP_TEXT];
    uint32_t  kind;

    static const char  *reg[] = {
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
        "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"
    };

    kind = prof_row_kind(row);

    switch (kind) {

    case PROF_ROW_RSP:
    case PROF_ROW_RBP:
        snprintf(text, DUMP_TEXT, "%s+%u",
                 (kind == PROF_ROW_RSP) ? "rsp" : "rbp",
                 prof_row_off(row) * 8);
        break;

    case PROF_ROW_PLT:
        snprintf(text, DUMP_TEXT, "*plt(%u)", prof_row_off(row));
        break;

    case PROF_ROW_DEREF_RSP:
    case PROF_ROW_DEREF_RBP:
        snprintf(text, DUMP_TEXT, "*(%s%+d)+%u",
                 (kind == PROF_ROW_DEREF_RSP) ? "rsp" : "rbp",
                 prof_row_disp(row) * 8, prof_row_add(row) * 8);
        break;

    case PROF_ROW_INDEX_R9:
        snprintf(text, DUMP_TEXT, "*(rsp+8+8*r9)+%u", prof_row_off(row) * 8);
        break;

    default:
        snprintf(text, DUMP_TEXT, "%s%+d", reg[kind - PROF_ROW_REG],
                 prof_row_signed_off(row) * 8);
    }

    printf("%-20s", text);
    dump_saved(prof_row_fp(row));
    dump_saved(aux);
    printf("\n");
}


static void
dump_saved(int saved)
{
    if (saved == 0) {
        printf(" u");

    } else if (saved == PROF_ROW_LOST) {
        printf(" lost");

    } else if (saved < 0) {
        printf(" c%d", saved * 8);

    } else {
        printf(" b%d", (1 - saved) * 8);
    }
}


#elif (__aarch64__)


static void
dump_rule(uint64_t row, int aux)
{
    int  cfa;

    cfa = (int) prof_row_off(row) * 16;

    printf("%s+%-16d", (prof_row_kind(row) >= PROF_ROW_FP) ? "x29" : "sp",
           cfa);

    dump_saved(prof_row_fp(row), cfa);
    dump_saved((int) prof_row_lr(row), cfa);
    printf("\n");
}


static void
dump_saved(int saved, int cfa)
{
    if (saved == 0) {
        printf(" u");

    } else if (saved == PROF_ROW_LOST) {
        printf(" lost");

    } else {
        printf(" c%+d", (saved - 1) * 8 - cfa);
    }
}


#endif
