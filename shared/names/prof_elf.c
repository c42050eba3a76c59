
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "names/prof_elf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


/* most names are shorter, so one read() is enough */

#define PROF_ELF_SHORT  256

/* the maximum size of all notes of a file that are read */

#define PROF_ELF_NOTES  4096


#if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define PROF_ELF_DATA   ELFDATA2LSB
#else
#define PROF_ELF_DATA   ELFDATA2MSB
#endif


static int prof_elf_header(prof_elf_t *elf);
static int prof_elf_bytes(const prof_elf_t *elf, uint64_t offset, void *buf,
    size_t len);
static int prof_elf_note(const uint8_t *notes, size_t len,
    const char *build_id);


int
prof_elf_open(prof_elf_t *elf, const char *path)
{
    struct stat  st;

    memset(elf, 0, sizeof(prof_elf_t));

    /* O_NONBLOCK: the path may have become a fifo */

    elf->fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOCTTY);
    if (elf->fd == -1) {
        return PROF_ERROR;
    }

    if (fstat(elf->fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        prof_elf_close(elf);
        return PROF_ERROR;
    }

    elf->size = st.st_size;
    elf->dev = st.st_dev;
    elf->ino = st.st_ino;
    elf->mtime = (uint64_t) st.st_mtim.tv_sec * 1000000000
                 + st.st_mtim.tv_nsec;

    return prof_elf_header(elf);
}


/*
 * Opens an image that the kernel has mapped, which is trusted.  Its size is
 * not given: the image ends with its table of sections.
 */

int
prof_elf_image(prof_elf_t *elf, const void *image)
{
    Elf64_Ehdr  eh;

    memset(elf, 0, sizeof(prof_elf_t));
    memcpy(&eh, image, sizeof(Elf64_Ehdr));

    elf->fd = -1;
    elf->image = image;
    elf->size = eh.e_shoff + (uint64_t) eh.e_shnum * eh.e_shentsize;

    return prof_elf_header(elf);
}


static int
prof_elf_header(prof_elf_t *elf)
{
    size_t       size;
    Elf64_Ehdr  *eh;

    eh = &elf->header;

    if (prof_elf_bytes(elf, 0, eh, sizeof(Elf64_Ehdr)) != PROF_OK
        || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0
        || eh->e_ident[EI_CLASS] != ELFCLASS64
        || eh->e_ident[EI_DATA] != PROF_ELF_DATA
        || eh->e_shentsize != sizeof(Elf64_Shdr) || eh->e_shnum == 0)
    {
        goto failed;
    }

    size = eh->e_shnum * sizeof(Elf64_Shdr);

    elf->sections = malloc(size);

    if (elf->sections == NULL
        || prof_elf_bytes(elf, eh->e_shoff, elf->sections, size) != PROF_OK)
    {
        goto failed;
    }

    elf->nsections = eh->e_shnum;

    return PROF_OK;

failed:

    prof_elf_close(elf);

    return PROF_ERROR;
}


void
prof_elf_close(prof_elf_t *elf)
{
    free(elf->sections);
    elf->sections = NULL;

    if (elf->fd != -1) {
        close(elf->fd);
        elf->fd = -1;
    }
}


int
prof_elf_read(const prof_elf_t *elf, const Elf64_Shdr *section,
    uint64_t offset, void *buf, size_t len)
{
    if (section->sh_type == SHT_NOBITS
        || (section->sh_flags & SHF_COMPRESSED)
        || offset > section->sh_size || len > section->sh_size - offset
        || section->sh_offset > UINT64_MAX - offset)
    {
        return PROF_ERROR;
    }

    return prof_elf_bytes(elf, section->sh_offset + offset, buf, len);
}


static int
prof_elf_bytes(const prof_elf_t *elf, uint64_t offset, void *buf, size_t len)
{
    char     *p;
    ssize_t   n;

    if (offset > elf->size || len > elf->size - offset) {
        return PROF_ERROR;
    }

    if (elf->fd == -1) {
        memcpy(buf, elf->image + offset, len);
        return PROF_OK;
    }

    for (p = buf; len; p += n, offset += n, len -= n) {

        n = pread(elf->fd, p, len, offset);

        if (n <= 0) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


size_t
prof_elf_string(const prof_elf_t *elf, uint32_t section, uint64_t offset,
    char *buf)
{
    size_t             len, max;
    const Elf64_Shdr  *sh;

    if (section >= elf->nsections) {
        return 0;
    }

    sh = &elf->sections[section];

    if (sh->sh_type != SHT_STRTAB || offset >= sh->sh_size) {
        return 0;
    }

    for (max = PROF_ELF_SHORT; /* void */ ; max = PROF_ELF_NAME) {

        len = max < sh->sh_size - offset ? max : sh->sh_size - offset;

        if (prof_elf_read(elf, sh, offset, buf, len) != PROF_OK) {
            return 0;
        }

        if (memchr(buf, '\0', len)) {
            return strlen(buf);
        }

        if (len < max || max == PROF_ELF_NAME) {
            return 0;
        }
    }
}


int
prof_elf_build_id(const prof_elf_t *elf, const char *build_id)
{
    size_t             len;
    uint8_t            notes[PROF_ELF_NOTES];
    uint32_t           i;
    const Elf64_Shdr  *sh;

    for (i = 0; i < elf->nsections; i++) {
        sh = &elf->sections[i];

        if (sh->sh_type != SHT_NOTE) {
            continue;
        }

        len = sh->sh_size < PROF_ELF_NOTES ? sh->sh_size : PROF_ELF_NOTES;

        if (prof_elf_read(elf, sh, 0, notes, len) == PROF_OK
            && prof_elf_note(notes, len, build_id))
        {
            return 1;
        }
    }

    return 0;
}


static int
prof_elf_note(const uint8_t *notes, size_t len, const char *build_id)
{
    char        hex[3];
    size_t      i, id, pos;
    Elf64_Nhdr  note;

    for (pos = 0; len - pos >= sizeof(Elf64_Nhdr); /* void */ ) {

        memcpy(&note, notes + pos, sizeof(Elf64_Nhdr));
        pos += sizeof(Elf64_Nhdr);

        if (note.n_namesz > PROF_ELF_NOTES || note.n_descsz > PROF_ELF_NOTES) {
            return 0;
        }

        id = pos + ((note.n_namesz + 3) & ~3u);

        if (id + note.n_descsz > len) {
            return 0;
        }

        if (note.n_type == NT_GNU_BUILD_ID
            && note.n_namesz == sizeof(ELF_NOTE_GNU)
            && memcmp(notes + pos, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0
            && strlen(build_id) == 2 * (size_t) note.n_descsz)
        {
            for (i = 0; i < note.n_descsz; i++) {
                (void) snprintf(hex, sizeof(hex), "%02x", notes[id + i]);

                if (memcmp(hex, build_id + 2 * i, 2) != 0) {
                    break;
                }
            }

            if (i == note.n_descsz) {
                return 1;
            }
        }

        pos = id + ((note.n_descsz + 3) & ~3u);

        if (pos > len) {
            return 0;
        }
    }

    return 0;
}
