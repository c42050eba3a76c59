
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * ELF files of 64 bits and of this machine's byte order.
 *
 * Files are hostile: they may be truncated, change while they are read, or
 * contain anything.  They are read with pread() and never mapped.  Each offset
 * is checked against the size of the file.  Memory is limited to the caller's
 * buffers and a bounded table of sections.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_ELF_H_INCLUDED_
#define _PROF_ELF_H_INCLUDED_


#include "base/prof_base.h"

#include <elf.h>
#include <sys/types.h>


/* longer names are not read */

#define PROF_ELF_NAME  65536


typedef struct {
    int             fd;         /* -1: the file is in memory */
    const uint8_t  *image;
    uint64_t        size;
    dev_t           dev;
    ino_t           ino;
    uint64_t        mtime;      /* ns */
    uint32_t        nsections;
    Elf64_Ehdr      header;
    Elf64_Shdr     *sections;   /* owned */
} prof_elf_t;


PROF_HIDDEN_BEGIN

/* return PROF_OK, or PROF_ERROR: not an ELF file, or memory is short */
int prof_elf_open(prof_elf_t *elf, const char *path);
int prof_elf_image(prof_elf_t *elf, const void *image);
void prof_elf_close(prof_elf_t *elf);

/*
 * Reads len bytes at the offset within a section.  Returns PROF_OK, or
 * PROF_ERROR if the section is shorter or compressed.
 */
int prof_elf_read(const prof_elf_t *elf, const Elf64_Shdr *section,
    uint64_t offset, void *buf, size_t len);

/*
 * Reads a null-terminated string of the section with this number into the
 * buffer of PROF_ELF_NAME bytes.  Returns its length, or 0 if the section does
 * not contain the string.
 */
size_t prof_elf_string(const prof_elf_t *elf, uint32_t section,
    uint64_t offset, char *buf);

/* returns whether the file has the build-id, which is in lower-case hex */
int prof_elf_build_id(const prof_elf_t *elf, const char *build_id);

PROF_HIDDEN_END


#endif /* _PROF_ELF_H_INCLUDED_ */
