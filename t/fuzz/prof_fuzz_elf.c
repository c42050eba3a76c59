
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes ELF files: the symbol tables and the procedure linkage table of a
 * file.  The first byte decides whether the rest is a file, or replaces bytes
 * of this program's file, so that the inputs reach the tables.
 */


#include "names/prof_elf.h"
#include "names/prof_symbol.h"
#include "names/prof_symbol_table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


#define FUZZ_ADDRESSES  64


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_damage(const uint8_t *data, size_t size);
static void fuzz_names(prof_elf_t *elf);
static void fuzz_assert(int ok);


static int      fuzz_fd;
static uint8_t  fuzz_self[256 * 1024];
static ssize_t  fuzz_len;
static char     fuzz_path[64];
static char     fuzz_name[PROF_ELF_NAME];


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int         fd;
    prof_elf_t  elf;

    if (fuzz_len == 0) {
        fuzz_fd = memfd_create("fuzz", 0);
        fuzz_assert(fuzz_fd != -1);
        snprintf(fuzz_path, sizeof(fuzz_path), "/proc/self/fd/%d", fuzz_fd);

        /* a small file with all that is read: the C library's loader */

        fd = open("/lib64/ld-linux-x86-64.so.2", O_RDONLY);

        if (fd == -1) {
            fd = open("/proc/self/exe", O_RDONLY);
        }

        fuzz_len = read(fd, fuzz_self, sizeof(fuzz_self));
        fuzz_assert(fuzz_len > 0);
        (void) close(fd);
    }

    if (size == 0 || ftruncate(fuzz_fd, 0) == -1) {
        return 0;
    }

    if (data[0] % 4) {
        fuzz_damage(data + 1, size - 1);

    } else if (pwrite(fuzz_fd, data + 1, size - 1, 0) == -1) {
        return 0;
    }

    if (prof_elf_open(&elf, fuzz_path) == PROF_OK) {
        fuzz_names(&elf);
        prof_elf_close(&elf);
    }

    return 0;
}


/* pairs of a position (3 bytes) and a value; sections are at the file's end */

static void
fuzz_damage(const uint8_t *data, size_t size)
{
    size_t          pos;
    static uint8_t  copy[sizeof(fuzz_self)];

    memcpy(copy, fuzz_self, (size_t) fuzz_len);

    for ( /* void */ ; size >= 4; data += 4, size -= 4) {

        pos = data[0] | (size_t) data[1] << 8 | (size_t) data[2] << 16;

        /* half of the damages are in the headers */

        pos = (pos & 1) ? pos / 2 % 64
            : (pos & 2) ? (size_t) fuzz_len - 1 - pos / 4 % 2048
            : pos % (size_t) fuzz_len;

        copy[pos] = data[3];
    }

    fuzz_assert(pwrite(fuzz_fd, copy, (size_t) fuzz_len, 0) == fuzz_len);
}


static void
fuzz_names(prof_elf_t *elf)
{
    uint32_t       i;
    prof_symbol_t  syms[FUZZ_ADDRESSES];

    memset(syms, 0, sizeof(syms));

    for (i = 0; i < FUZZ_ADDRESSES; i++) {
        syms[i].pc = 0x1000 + i * 0x800;
        syms[i].function = (i & 1) ? syms[i].pc : 0;
    }

    fuzz_assert(prof_symbol_tables(elf, syms, FUZZ_ADDRESSES) == PROF_OK);
    fuzz_assert(prof_symbol_plt(elf, syms, FUZZ_ADDRESSES) == PROF_OK);

    (void) prof_elf_build_id(elf, "0123456789abcdef0123456789abcdef01234567");

    for (i = 0; i < elf->nsections; i++) {
        (void) prof_elf_string(elf, i, elf->sections[i].sh_name, fuzz_name);
    }

    for (i = 0; i < FUZZ_ADDRESSES; i++) {
        fuzz_assert(syms[i].name == NULL
                    || strlen(syms[i].name) < PROF_ELF_NAME);
        free(syms[i].name);
    }
}


static void
fuzz_assert(int ok)
{
    if (!ok) {
        abort();
    }
}
