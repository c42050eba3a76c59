
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names in an object's own file, and the proof that it is the right file.  The
 * helper process reads all data that is more complicated than symbol tables.
 */


#include "names/prof_symbol.h"
#include "names/prof_symbol_table.h"
#include "names/prof_syscall.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>


static int prof_symbol_open(const prof_profile_object_t *o, prof_elf_t *elf);
static int prof_symbol_file(const prof_profile_object_t *o, prof_elf_t *elf,
    const char *path);
static int prof_symbol_vdso(const prof_profile_object_t *o, prof_elf_t *elf);
static int prof_symbol_mapped(const prof_profile_object_t *o,
    const prof_elf_t *elf);


int
prof_symbol_find(const prof_profile_object_t *o, prof_symbol_t *syms,
    uint32_t n)
{
    int         rc;
    prof_elf_t  elf;

    if (n == 0 || prof_symbol_open(o, &elf) != PROF_OK) {
        return PROF_OK;
    }

    rc = prof_symbol_tables(&elf, syms, n);

    if (rc == PROF_OK) {
        rc = prof_symbol_plt(&elf, syms, n);
    }

    if (rc == PROF_OK) {
        rc = prof_syscall_find(&elf, o, syms, n);
    }

    prof_elf_close(&elf);

    return rc;
}


int
prof_symbol_identity(const prof_profile_object_t *o, char *identity,
    size_t size)
{
    prof_elf_t  elf;

    if (o->build_id[0] != '\0') {
        return snprintf(identity, size, "%s", o->build_id) < (int) size
               ? PROF_OK : PROF_ERROR;
    }

    if (prof_symbol_open(o, &elf) != PROF_OK) {
        return PROF_ERROR;
    }

    /* a file that changes gets another identity, and so other names */

    (void) snprintf(identity, size, "file %" PRIx64 " %" PRIx64 " %" PRIx64
                    " %" PRIx64,
                    (uint64_t) elf.dev, (uint64_t) elf.ino, elf.size,
                    elf.mtime);

    prof_elf_close(&elf);

    return PROF_OK;
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


/* returns the file if the object was loaded from it */

static int
prof_symbol_open(const prof_profile_object_t *o, prof_elf_t *elf)
{
    if (strcmp(o->path, "[vdso]") == 0) {
        return prof_symbol_vdso(o, elf);
    }

    if (prof_symbol_file(o, elf, o->path) == PROF_OK) {
        return PROF_OK;
    }

    /*
     * Under this name the running program stays readable after its file was
     * replaced.  For any other object the build-id differs.
     */

    return o->build_id[0] ? prof_symbol_file(o, elf, "/proc/self/exe")
                          : PROF_ERROR;
}


static int
prof_symbol_file(const prof_profile_object_t *o, prof_elf_t *elf,
    const char *path)
{
    if (prof_elf_open(elf, path) != PROF_OK) {
        return PROF_ERROR;
    }

    if (o->build_id[0] ? prof_elf_build_id(elf, o->build_id)
                       : prof_symbol_mapped(o, elf))
    {
        return PROF_OK;
    }

    prof_elf_close(elf);

    return PROF_ERROR;
}


static int
prof_symbol_vdso(const prof_profile_object_t *o, prof_elf_t *elf)
{
    void  *image;

    image = (void *) (uintptr_t) getauxval(AT_SYSINFO_EHDR);

    if (image == NULL || prof_elf_image(elf, image) != PROF_OK) {
        return PROF_ERROR;
    }

    if (!prof_elf_build_id(elf, o->build_id)) {
        prof_elf_close(elf);
        return PROF_ERROR;
    }

    return PROF_OK;
}


/*
 * An object without a build-id can be identified only while it is loaded: the
 * inode of its mapping in this process must be the inode of the file.
 */

static int
prof_symbol_mapped(const prof_profile_object_t *o, const prof_elf_t *elf)
{
    int            found;
    char           line[PATH_MAX + 128];
    FILE          *f;
    uint64_t       end, inode, start;
    unsigned       major_dev, minor_dev;

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
            found = inode != 0 && inode == (uint64_t) elf->ino
                    && major_dev == major(elf->dev)
                    && minor_dev == minor(elf->dev);
            break;
        }
    }

    fclose(f);

    return found;
}
