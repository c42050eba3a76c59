
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The files that may name the functions of an object, and the proof that they
 * are the right ones.  prof_symbol*.c are the only users of libelf.
 *
 * Files are hostile: they may be truncated, or be rewritten while they are
 * read.  They are therefore read with read() and never mapped, and libelf
 * checks all offsets against the size of the file.
 */


#include "profile/prof_fetch.h"
#include "profile/prof_symbol.h"
#include "profile/prof_symbol_table.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>


static int prof_symbol_file(const prof_profile_object_t *o, const char *path,
    prof_symbol_t *syms, uint32_t n, int *used,
    int *full);
static int prof_symbol_fetch(const prof_profile_object_t *o,
    prof_symbol_t *syms, uint32_t n);
static int prof_symbol_vdso(const prof_profile_object_t *o,
    prof_symbol_t *syms, uint32_t n);
static int prof_symbol_same_build(const prof_profile_object_t *o, Elf *elf);
static int prof_symbol_note(const char *build_id, Elf_Data *data);
static int prof_symbol_mapped(const prof_profile_object_t *o, int fd);


int
prof_symbol_find(const prof_profile_object_t *o, const char *debug_root,
    prof_symbol_t *syms, uint32_t n)
{
    int   full, used;
    char  path[PATH_MAX];

    if (n == 0 || elf_version(EV_CURRENT) == EV_NONE) {
        return PROF_OK;
    }

    if (strcmp(o->path, "[vdso]") == 0) {
        return prof_symbol_vdso(o, syms, n);
    }

    full = 0;
    used = 0;

    if (prof_symbol_file(o, o->path, syms, n, &used, &full) != PROF_OK) {
        return PROF_ERROR;
    }

    if (o->build_id[0] == '\0') {
        return PROF_OK;
    }

    /*
     * The running program remains readable under this name after its file
     * was replaced; for any other object the build-id differs.
     */

    if (!used
        && prof_symbol_file(o, "/proc/self/exe", syms, n, &used, &full)
           != PROF_OK)
    {
        return PROF_ERROR;
    }

    if (full) {
        return PROF_OK;
    }

    if (prof_symbol_debug_path(o, debug_root, path, sizeof(path))
        != PROF_OK)
    {
        return PROF_OK;
    }

    if (prof_symbol_file(o, path, syms, n, &used, &full) != PROF_OK) {
        return PROF_ERROR;
    }

    return full ? PROF_OK : prof_symbol_fetch(o, syms, n);
}


int
prof_symbol_debug_path(const prof_profile_object_t *o, const char *debug_root,
    char *path, size_t size)
{
    if (o->build_id[0] == '\0'
        || snprintf(path, size, "%s/.build-id/%.2s/%s.debug", debug_root,
                    o->build_id, o->build_id + strnlen(o->build_id, 2))
           >= (int) size)
    {
        return PROF_ERROR;
    }

    return PROF_OK;
}


static int
prof_symbol_fetch(const prof_profile_object_t *o, prof_symbol_t *syms,
    uint32_t n)
{
    int    full, rc, used;
    char  *path;

    path = prof_fetch(o->build_id);
    if (path == NULL) {
        return PROF_OK;
    }

    rc = prof_symbol_file(o, path, syms, n, &used, &full);

    free(path);

    return rc;
}


static int
prof_symbol_file(const prof_profile_object_t *o, const char *path,
    prof_symbol_t *syms, uint32_t n, int *used,
    int *full)
{
    int   fd, rc;
    Elf  *elf;

    elf = prof_symbol_open(o, path, &fd);
    if (elf == NULL) {
        return PROF_OK;
    }

    *used = 1;

    rc = prof_symbol_tables(elf, syms, n, full);

    if (rc == PROF_OK) {
        rc = prof_symbol_plt(elf, syms, n);
    }

    prof_symbol_close(elf, fd);

    return rc;
}


/* the file, if it is the one that the object was loaded from */

Elf *
prof_symbol_open(const prof_profile_object_t *o, const char *path, int *fd)
{
    Elf          *elf;
    struct stat   st;

    /* O_NONBLOCK: the path may have become a fifo */

    *fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOCTTY);
    if (*fd == -1) {
        return NULL;
    }

    elf = NULL;

    if (fstat(*fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        goto failed;
    }

    elf = elf_begin(*fd, ELF_C_READ, NULL);
    if (elf == NULL || elf_kind(elf) != ELF_K_ELF) {
        goto failed;
    }

    if (o->build_id[0] != '\0') {
        if (!prof_symbol_same_build(o, elf)) {
            goto failed;
        }

    } else if (!prof_symbol_mapped(o, *fd)) {
        goto failed;
    }

    return elf;

failed:

    prof_symbol_close(elf, *fd);

    return NULL;
}


void
prof_symbol_close(Elf *elf, int fd)
{
    elf_end(elf);
    close(fd);
}


static int
prof_symbol_vdso(const prof_profile_object_t *o, prof_symbol_t *syms,
    uint32_t n)
{
    int          full, rc;
    Elf         *elf;
    char        *image;
    size_t       size;
    Elf64_Ehdr  *eh;

    /* the kernel's own image: trusted, and as long as its last table */

    image = (char *) (uintptr_t) getauxval(AT_SYSINFO_EHDR);
    if (image == NULL) {
        return PROF_OK;
    }

    eh = (Elf64_Ehdr *) image;

    if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0
        || eh->e_ident[EI_CLASS] != ELFCLASS64)
    {
        return PROF_OK;
    }

    size = eh->e_shoff + (size_t) eh->e_shnum * eh->e_shentsize;

    elf = elf_memory(image, size);
    if (elf == NULL) {
        return PROF_OK;
    }

    rc = PROF_OK;

    if (prof_symbol_same_build(o, elf)) {
        rc = prof_symbol_tables(elf, syms, n, &full);
    }

    elf_end(elf);

    return rc;
}


static int
prof_symbol_same_build(const prof_profile_object_t *o, Elf *elf)
{
    Elf_Scn   *scn;
    Elf_Data  *data;
    GElf_Shdr  shdr;

    scn = NULL;

    while ((scn = elf_nextscn(elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL || shdr.sh_type != SHT_NOTE) {
            continue;
        }

        data = elf_getdata(scn, NULL);

        if (data != NULL && data->d_buf != NULL
            && prof_symbol_note(o->build_id, data))
        {
            return 1;
        }
    }

    return 0;
}


static int
prof_symbol_note(const char *build_id, Elf_Data *data)
{
    char       hex[3];
    size_t     desc, i, name, next, pos;
    uint8_t   *id;
    GElf_Nhdr  nhdr;

    for (pos = 0; /* void */ ; pos = next) {

        next = gelf_getnote(data, pos, &nhdr, &name, &desc);
        if (next == 0) {
            return 0;
        }

        if (nhdr.n_type != NT_GNU_BUILD_ID
            || nhdr.n_namesz != sizeof(ELF_NOTE_GNU)
            || memcmp((char *) data->d_buf + name, ELF_NOTE_GNU,
                      sizeof(ELF_NOTE_GNU))
               != 0
            || strlen(build_id) != 2 * (size_t) nhdr.n_descsz)
        {
            continue;
        }

        id = (uint8_t *) data->d_buf + desc;

        for (i = 0; i < nhdr.n_descsz; i++) {
            (void) snprintf(hex, sizeof(hex), "%02x", id[i]);

            if (memcmp(hex, build_id + 2 * i, 2) != 0) {
                break;
            }
        }

        if (i == nhdr.n_descsz) {
            return 1;
        }
    }
}


/*
 * An object without a build-id can be recognized only while it is loaded: the
 * inode behind its code in this process must be the inode of the file.
 */

static int
prof_symbol_mapped(const prof_profile_object_t *o, int fd)
{
    int            found;
    char           line[PATH_MAX + 128];
    FILE          *f;
    uint64_t       end, inode, start;
    unsigned       major_dev, minor_dev;
    struct stat    st;

    if (fstat(fd, &st) == -1) {
        return 0;
    }

    f = fopen("/proc/self/maps", "re");
    if (f == NULL) {
        return 0;
    }

    found = 0;

    while (fgets(line, sizeof(line), f) != NULL) {

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64,
                   &start, &end, &major_dev, &minor_dev, &inode)
            != 5)
        {
            continue;
        }

        if (o->base + o->start >= start && o->base + o->start < end) {
            found = inode != 0 && inode == (uint64_t) st.st_ino
                    && major_dev == major(st.st_dev)
                    && minor_dev == minor(st.st_dev);
            break;
        }
    }

    fclose(f);

    return found;
}
