
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The files of an object: its own file, or only its debug file if its own file
 * was replaced.  libdwfl finds the debug file by build-id or by
 * .gnu_debuglink, the symbols of .gnu_debugdata, and files of debuginfod
 * servers.  It uses a debug file only if the build-ids are equal.
 */


#include "names/prof_symbol_table.h"
#include "symbolizer/prof_symbolizer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


static int prof_symbolizer_file(prof_symbolizer_object_t *o,
    const prof_symbolizer_question_t *q, const char *file);
static int prof_symbolizer_same(prof_symbolizer_object_t *o,
    const prof_symbolizer_question_t *q, const struct stat *st);
static int prof_symbolizer_debuginfo(Dwfl_Module *module, void **data,
    const char *name, Dwarf_Addr base, const char *file, const char *link,
    GElf_Word crc, char **debug);


static char  *prof_symbolizer_path;

static const Dwfl_Callbacks  prof_symbolizer_callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = prof_symbolizer_debuginfo,
    .debuginfo_path = &prof_symbolizer_path
};


int
prof_symbolizer_open(prof_symbolizer_object_t *o,
    const prof_symbolizer_question_t *q)
{
    char  debug[PATH_MAX];

    /*
     * search beside the file, below it, and in the directory of all debug
     * files
     */

    if (asprintf(&o->path, ":.debug:%s", q->debug_root) == -1) {
        o->path = NULL;
        return PROF_ERROR;
    }

    prof_symbolizer_path = o->path;

    if (prof_symbolizer_file(o, q, q->path) == PROF_OK) {
        return PROF_OK;
    }

    if (q->build_id
        && snprintf(debug, sizeof(debug), "%s/.build-id/%.2s/%s.debug",
                    q->debug_root, q->build_id,
                    q->build_id + strnlen(q->build_id, 2))
           < (int) sizeof(debug)
        && prof_symbolizer_file(o, q, debug) == PROF_OK)
    {
        return PROF_OK;
    }

    prof_symbolizer_close(o);

    return PROF_ERROR;
}


static int
prof_symbolizer_file(prof_symbolizer_object_t *o,
    const prof_symbolizer_question_t *q, const char *file)
{
    int          fd;
    struct stat  st;

    fd = open(file, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOCTTY);
    if (fd == -1) {
        return PROF_ERROR;
    }

    if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        close(fd);
        return PROF_ERROR;
    }

    o->dwfl = dwfl_begin(&prof_symbolizer_callbacks);

    if (o->dwfl == NULL) {
        close(fd);
        return PROF_ERROR;
    }

    /* keep its own addresses; the library then owns the descriptor */

    dwfl_report_begin(o->dwfl);
    o->module = dwfl_report_elf(o->dwfl, file, file, fd, 0, true);

    if (o->module == NULL) {
        close(fd);

    } else if (dwfl_report_end(o->dwfl, NULL, NULL) == 0
               && prof_symbolizer_same(o, q, &st))
    {
        return PROF_OK;
    }

    dwfl_end(o->dwfl);
    o->dwfl = NULL;

    return PROF_ERROR;
}


static int
prof_symbolizer_same(prof_symbolizer_object_t *o,
    const prof_symbolizer_question_t *q, const struct stat *st)
{
    int                   i, len;
    char                  hex[3];
    GElf_Addr             addr;
    const unsigned char  *id;

    if (q->build_id == NULL) {
        return (uint64_t) st->st_dev == q->dev
               && (uint64_t) st->st_ino == q->ino;
    }

    len = dwfl_module_build_id(o->module, &id, &addr);

    if (len <= 0 || strlen(q->build_id) != 2 * (size_t) len) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        (void) snprintf(hex, sizeof(hex), "%02x", id[i]);

        if (memcmp(hex, q->build_id + 2 * i, 2) != 0) {
            return 0;
        }
    }

    return 1;
}


/* this process does not ask a slow server again */

static int
prof_symbolizer_debuginfo(Dwfl_Module *module, void **data, const char *name,
    Dwarf_Addr base, const char *file, const char *link, GElf_Word crc,
    char **debug)
{
    int     fd;
    time_t  began;

    began = time(NULL);

    fd = dwfl_standard_find_debuginfo(module, data, name, base, file, link,
                                      crc, debug);

    if (time(NULL) - began >= PROF_SYMBOLIZER_FETCH) {
        (void) unsetenv("DEBUGINFOD_URLS");
    }

    return fd;
}


int
prof_symbolizer_symbols(prof_symbolizer_object_t *o,
    prof_symbolizer_question_t *q)
{
    int          i, n;
    Elf         *elf, *own;
    uint32_t     first;
    GElf_Sym     sym;
    GElf_Addr    addr, bias;
    GElf_Shdr    shdr;
    GElf_Word    section;
    const char  *name;

    n = dwfl_module_getsymtab(o->module);
    own = dwfl_module_getelf(o->module, &bias);

    q->more = dwfl_module_getdwarf(o->module, &bias) != NULL;

    for (i = 1; i < n; i++) {

        name = dwfl_module_getsym_info(o->module, i, &sym, &addr, &section,
                                       &elf, &bias);

        if (name == NULL) {
            continue;
        }

        if (elf != own) {
            q->more = 1;
        }

        /* addresses are relative to the object, in each of its files */

        sym.st_value = addr;
        first = prof_symbol_first(q->syms, q->n, &sym);

        if (first == q->n) {
            continue;
        }

        if (GELF_ST_TYPE(sym.st_info) == STT_NOTYPE) {

            if (gelf_getshdr(elf_getscn(elf, section), &shdr) == NULL) {
                continue;
            }

            shdr.sh_addr += bias;

            if (!prof_symbol_is_code(&shdr, &sym)) {
                continue;
            }
        }

        if (prof_symbol_offer(q->syms + first, q->n - first, &sym, name,
                              strlen(name))
            != PROF_OK)
        {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}
