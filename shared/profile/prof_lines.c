
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The only user of libdw.  It knows how DWARF is written; what of it is wanted
 * here is a walk down from a compilation unit to the innermost function that
 * covers an address, by way of those that were inlined.
 *
 * Addresses are sorted, so that the next one is mostly in the same unit, and
 * often in the same function.
 */


#include "profile/prof_demangle.h"
#include "profile/prof_lines.h"
#include "profile/prof_symbol_table.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


/* blocks within blocks */

#define PROF_LINES_DEPTH  64


typedef struct {
    prof_profile_t  *profile;
    Dwarf           *dwarf;
    Dwarf_Die        unit;          /* the last one that was found */
    unsigned         have_unit:1;

    /* of an address: its function, and those inlined there, by depth */

    Dwarf_Die        functions[1 + PROF_MAX_INLINES];
    uint32_t         nfunctions;
} prof_lines_t;


static int prof_lines_unit(prof_lines_t *l, uint64_t pc);
static int prof_lines_functions(prof_lines_t *l, Dwarf_Die *parent,
    uint64_t pc, uint32_t depth);
static int prof_lines_frame(prof_lines_t *l, prof_frame_t *f, uint64_t pc);
static int prof_lines_inline(prof_lines_t *l, prof_frame_t *f, uint32_t i,
    uint32_t line);
static const char *prof_lines_source(prof_lines_t *l, Dwarf_Die *die);
static int prof_lines_name(Dwarf_Die *die, char **name);
static int prof_lines_text(const char *s, char **copy);
static uint32_t prof_lines_call(Dwarf_Die *die);
static uint32_t prof_lines_start(Dwarf_Die *die);


int
prof_lines(prof_profile_t *p, const uint32_t *frames, uint32_t n,
    const char *debug_root, uint64_t deadline)
{
    int            fd, rc;
    uint32_t       i;
    uint64_t       pc;
    struct Elf    *elf;
    prof_frame_t  *f;
    prof_lines_t   l;

    memset(&l, 0, sizeof(prof_lines_t));

    elf = prof_symbol_debug(&p->objects[p->frames[frames[0]].object],
                            debug_root, &fd);
    if (elf == NULL) {
        return PROF_OK;
    }

    rc = PROF_OK;

    l.profile = p;
    l.dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

    for (i = 0; i < n && l.dwarf && rc == PROF_OK; i++) {

        if (prof_lines_now() >= deadline) {
            break;
        }

        f = &p->frames[frames[i]];

        /* a return address may be the first one of the next function */

        pc = f->call && f->pc ? f->pc - 1 : f->pc;

        if (prof_lines_unit(&l, pc)) {
            l.nfunctions = 0;
            (void) prof_lines_functions(&l, &l.unit, pc, 0);

            rc = prof_lines_frame(&l, f, pc);
        }
    }

    if (l.dwarf) {
        dwarf_end(l.dwarf);
    }

    prof_symbol_close(elf, fd);

    return rc;
}


/* by the index of addresses, which not all compilers write */

static int
prof_lines_unit(prof_lines_t *l, uint64_t pc)
{
    Dwarf_CU   *cu;
    Dwarf_Die   unit;

    if (l->have_unit && dwarf_haspc(&l->unit, pc) == 1) {
        return 1;
    }

    l->have_unit = 1;

    if (dwarf_addrdie(l->dwarf, pc, &l->unit) != NULL) {
        return 1;
    }

    cu = NULL;

    while (dwarf_get_units(l->dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {

        if (dwarf_haspc(&unit, pc) == 1) {
            l->unit = unit;
            return 1;
        }
    }

    l->have_unit = 0;

    return 0;
}


/* whether a function was found below the parent */

static int
prof_lines_functions(prof_lines_t *l, Dwarf_Die *parent, uint64_t pc,
    uint32_t depth)
{
    int        inlined, tag;
    Dwarf_Die  die;

    if (depth == PROF_LINES_DEPTH || dwarf_child(parent, &die) != 0) {
        return 0;
    }

    do {
        tag = dwarf_tag(&die);

        switch (tag) {

        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:

            if (dwarf_haspc(&die, pc) != 1) {
                break;
            }

            inlined = tag == DW_TAG_inlined_subroutine;

            if (inlined ? l->nfunctions > 0
                          && l->nfunctions <= PROF_MAX_INLINES
                        : l->nfunctions == 0)
            {
                l->functions[l->nfunctions++] = die;
            }

            (void) prof_lines_functions(l, &die, pc, depth + 1);

            return 1;

        case DW_TAG_lexical_block:

            if (dwarf_haspc(&die, pc) == 1) {
                (void) prof_lines_functions(l, &die, pc, depth + 1);
                return 1;
            }

            break;

        /* functions of C++ and Rust may be in them */

        case DW_TAG_namespace:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:

            if (l->nfunctions == 0
                && prof_lines_functions(l, &die, pc, depth + 1))
            {
                return 1;
            }

            break;
        }

    } while (dwarf_siblingof(&die, &die) == 0);

    return 0;
}


static int
prof_lines_frame(prof_lines_t *l, prof_frame_t *f, uint64_t pc)
{
    int          line;
    char        *name;
    uint32_t     i;
    Dwarf_Die   *function;
    Dwarf_Line  *at;
    const char  *file;

    line = 0;
    file = NULL;
    at = dwarf_getsrc_die(&l->unit, pc);

    if (at) {
        (void) dwarf_lineno(at, &line);
        file = dwarf_linesrc(at, NULL, NULL);
    }

    if (l->nfunctions == 0) {
        f->line = line;
        return prof_lines_text(file, &f->file);
    }

    function = &l->functions[0];

    if (!f->exact) {
        name = NULL;

        if (prof_lines_name(function, &name) != PROF_OK) {
            return PROF_ERROR;
        }

        if (name) {
            free(f->name);
            f->name = name;
            f->exact = 1;
        }
    }

    f->start_line = prof_lines_start(function);
    f->line = l->nfunctions > 1 ? prof_lines_call(&l->functions[1])
                                : (uint32_t) line;

    if (prof_lines_text(file, &f->file) != PROF_OK
        || prof_lines_text(prof_lines_source(l, function), &f->file)
           != PROF_OK)
    {
        return PROF_ERROR;
    }

    f->inlines = l->profile->ninlines;
    f->ninlines = 0;

    for (i = 1; i < l->nfunctions; i++) {

        if (prof_lines_inline(l, f, i,
                              i + 1 < l->nfunctions
                              ? prof_lines_call(&l->functions[i + 1])
                              : (uint32_t) line)
            != PROF_OK)
        {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


static int
prof_lines_inline(prof_lines_t *l, prof_frame_t *f, uint32_t i,
    uint32_t line)
{
    Dwarf_Die       *die;
    prof_inline_t   *in;
    prof_profile_t  *p;

    p = l->profile;
    die = &l->functions[i];

    in = realloc(p->inlines, ((size_t) p->ninlines + 1)
                             * sizeof(prof_inline_t));
    if (in == NULL) {
        return PROF_ERROR;
    }

    p->inlines = in;
    in += p->ninlines;

    memset(in, 0, sizeof(prof_inline_t));

    if (prof_lines_name(die, &in->name) != PROF_OK) {
        return PROF_ERROR;
    }

    if (in->name == NULL) {
        in->name = strdup("[inlined]");
        if (in->name == NULL) {
            return PROF_ERROR;
        }
    }

    in->line = line;
    in->start_line = prof_lines_start(die);

    p->ninlines++;
    f->ninlines++;

    return prof_lines_text(prof_lines_source(l, die), &in->file);
}


/* dwarf_decl_file() does not know that files may be numbered from 0 on */

static const char *
prof_lines_source(prof_lines_t *l, Dwarf_Die *die)
{
    size_t           n;
    Dwarf_Word       i;
    Dwarf_Files     *files;
    Dwarf_Attribute  attr;

    if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_file, &attr), &i)
        != 0
        || dwarf_getsrcfiles(&l->unit, &files, &n) != 0 || i >= n)
    {
        return NULL;
    }

    return dwarf_filesrc(files, i, NULL, NULL);
}


/* remains NULL if it has none */

static int
prof_lines_name(Dwarf_Die *die, char **name)
{
    const char       *s;
    Dwarf_Attribute   attr;

    s = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name,
                                              &attr));
    if (s == NULL) {
        s = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
    }

    if (s == NULL || s[0] == '\0') {
        return PROF_OK;
    }

    *name = strdup(s);

    return *name ? prof_demangle(name) : PROF_ERROR;
}


static int
prof_lines_text(const char *s, char **copy)
{
    char  *text;

    if (s == NULL) {
        return PROF_OK;
    }

    text = strdup(s);
    if (text == NULL) {
        return PROF_ERROR;
    }

    free(*copy);
    *copy = text;

    return PROF_OK;
}


/* the line from which it was called */

static uint32_t
prof_lines_call(Dwarf_Die *die)
{
    Dwarf_Word       line;
    Dwarf_Attribute  attr;

    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &line) != 0
        || line > INT_MAX)
    {
        return 0;
    }

    return (uint32_t) line;
}


static uint32_t
prof_lines_start(Dwarf_Die *die)
{
    int  line;

    return dwarf_decl_line(die, &line) == 0 && line > 0 ? (uint32_t) line : 0;
}


uint64_t
prof_lines_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
