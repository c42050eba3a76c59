
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * usage: prof-unwind-dump [OBJECT]
 *
 * Prints the unwind table of a shared library, which it loads, or of this
 * program by default.  A line contains the link-time address where a row
 * begins, the CFA, and the places of the caller's saved registers (x86-64:
 * rbp, rbx; aarch64: x29, x30), similar to readelf:
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


static const prof_block_t *dump_object(const prof_unwind_t *u, void *handle);
static void dump_print(const prof_block_t *block);
static void dump_row(uint64_t row, int aux);
static void dump_rule(uint64_t row, int aux);

#if (__x86_64__)
static void dump_saved(int saved);

#elif (__aarch64__)
static void dump_saved(uint64_t row, int saved);

#endif


int
main(int argc, char **argv)
{
    void                *handle;
    prof_unwind_t       *u;
    const prof_block_t  *block;

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

    block = argv[1] ? dump_object(u, handle)
                    : prof_table_range(u, (uintptr_t) main)->shared->block;

    if (block == NULL) {
        fprintf(stderr, "prof-unwind-dump: no code in %s\n", argv[1]);
        return 1;
    }

    dump_print(block);

    prof_unwind_release(u);

    return 0;
}


static const prof_block_t *
dump_object(const prof_unwind_t *u, void *handle)
{
    uint32_t             i;
    struct link_map     *map;
    const prof_block_t  *block;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == -1) {
        return NULL;
    }

    for (i = 0; i < u->info.objects; i++) {
        block = u->ranges[i].shared->block;

        if (block->object.base == map->l_addr
            && strcmp(block->object.path, map->l_name) == 0)
        {
            return block;
        }
    }

    return NULL;
}


static void
dump_print(const prof_block_t *block)
{
    uint32_t   i;
    uintptr_t  start;

    start = block->object.start - block->object.base;

    printf("%s: %u rows, code %lx..%lx\n", block->object.path, block->nrows,
           (unsigned long) start,
           (unsigned long) (block->object.end - block->object.base));

    for (i = 0; i < block->nrows; i++) {
        printf("%016lx ",
               (unsigned long) (start + prof_row_pc(block->rows[i])));

        dump_row(block->rows[i], block->aux[i]);
    }
}


static void
dump_row(uint64_t row, int aux)
{
    switch (prof_row_how(row)) {

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
    uint32_t  how;

    static const char  *reg[] = {
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
        "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"
    };

    how = prof_row_how(row);

    switch (how) {

    case PROF_ROW_RSP:
    case PROF_ROW_RBP:
        snprintf(text, DUMP_TEXT, "%s+%u",
                 (how == PROF_ROW_RSP) ? "rsp" : "rbp",
                 prof_row_off(row) * 8);
        break;

    case PROF_ROW_PLT:
        snprintf(text, DUMP_TEXT, "*plt(%u)", prof_row_off(row));
        break;

    case PROF_ROW_DEREF_RSP:
    case PROF_ROW_DEREF_RBP:
        snprintf(text, DUMP_TEXT, "*(%s%+d)+%u",
                 (how == PROF_ROW_DEREF_RSP) ? "rsp" : "rbp",
                 prof_row_disp(row) * 8, prof_row_add(row) * 8);
        break;

    case PROF_ROW_INDEX_R9:
        snprintf(text, DUMP_TEXT, "*(rsp+8+8*r9)+%u", prof_row_off(row) * 8);
        break;

    default:
        snprintf(text, DUMP_TEXT, "%s%+d", reg[how - PROF_ROW_REG],
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
    char  text[DUMP_TEXT];

    snprintf(text, DUMP_TEXT, "%s+%d", prof_row_from_fp(row) ? "x29" : "sp",
             (int) prof_row_off(row) * 16);

    printf("%-20s", text);
    dump_saved(row, prof_row_fp(row));
    dump_saved(row, (int) prof_row_lr(row));
    printf("\n");
}


static void
dump_saved(uint64_t row, int saved)
{
    if (saved == 0) {
        printf(" u");

    } else if (saved == PROF_ROW_LOST) {
        printf(" lost");

    } else if (prof_row_from_top(row)) {
        printf(" c%d", -saved * 8);

    } else {
        printf(" c%+d", (saved - 1) * 8 - (int) prof_row_off(row) * 16);
    }
}


#endif
