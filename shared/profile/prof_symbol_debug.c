
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The file with the debugging information of an object.
 */


#include "profile/prof_fetch.h"
#include "profile/prof_symbol_table.h"

#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>


static Elf *prof_symbol_debug_file(const prof_profile_object_t *o,
    const char *path, int *fd);
static int prof_symbol_has_debug(Elf *elf);


Elf *
prof_symbol_debug(const prof_profile_object_t *o, const char *debug_root,
    int *fd)
{
    Elf   *elf;
    char  *fetched, path[PATH_MAX];

    elf = prof_symbol_debug_file(o, o->path, fd);

    if (elf == NULL
        && prof_symbol_debug_path(o, debug_root, path, sizeof(path))
           == PROF_OK)
    {
        elf = prof_symbol_debug_file(o, path, fd);
    }

    if (elf == NULL) {
        fetched = prof_fetch(o->build_id);

        if (fetched) {
            elf = prof_symbol_debug_file(o, fetched, fd);
            free(fetched);
        }
    }

    return elf;
}


static Elf *
prof_symbol_debug_file(const prof_profile_object_t *o, const char *path,
    int *fd)
{
    Elf          *elf;
    struct stat   st;

    elf = prof_symbol_open(o, path, fd);

    if (elf && (fstat(*fd, &st) == -1 || st.st_size > PROF_SYMBOL_DEBUG_MAX
                || !prof_symbol_has_debug(elf)))
    {
        prof_symbol_close(elf, *fd);
        elf = NULL;
    }

    return elf;
}


static int
prof_symbol_has_debug(Elf *elf)
{
    size_t       names;
    Elf_Scn     *scn;
    GElf_Shdr    shdr;
    const char  *name;

    if (elf_getshdrstrndx(elf, &names) != 0) {
        return 0;
    }

    scn = NULL;

    while ((scn = elf_nextscn(elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL || shdr.sh_type == SHT_NOBITS) {
            continue;
        }

        name = elf_strptr(elf, names, shdr.sh_name);

        if (name && strcmp(name, ".debug_info") == 0) {
            return 1;
        }
    }

    return 0;
}
