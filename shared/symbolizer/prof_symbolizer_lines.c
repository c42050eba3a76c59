
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Files, lines and inlined functions.  libdw decodes DWARF.  This file walks
 * down from a compilation unit to the innermost function that covers an
 * address, through the inlined functions.
 *
 * Addresses are sorted, so the next address usually is in the same unit and
 * often in the same function.
 */


#include "names/prof_mangled.h"
#include "symbolizer/prof_demangle.h"
#include "symbolizer/prof_symbolizer.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>


/* the maximum depth of nested blocks */

#define PROF_LINES_DEPTH  64


typedef struct {
    Dwarf          *dwarf;
    Dwarf_Die       unit;           /* the unit that was found last */
    unsigned        have_unit:1;

    /* by depth: the function of an address, and the functions inlined there */

    Dwarf_Die       functions[1 + PROF_MAX_INLINES];
    uint32_t        nfunctions;
} prof_lines_t;


static int prof_lines_unit(prof_lines_t *l, uint64_t pc);
static int prof_lines_functions(prof_lines_t *l, Dwarf_Die *parent,
    uint64_t pc, uint32_t depth);
static void prof_lines_write(prof_buf_t *b, prof_lines_t *l, uint64_t pc,
    const char *name);
static void prof_lines_inline(prof_buf_t *b, prof_lines_t *l, uint32_t i,
    uint32_t line);
static const char *prof_lines_source(prof_lines_t *l, Dwarf_Die *die);
static void prof_lines_name(prof_buf_t *b, Dwarf_Die *die,
    const char *otherwise);
static uint32_t prof_lines_call(Dwarf_Die *die);
static uint32_t prof_lines_start(Dwarf_Die *die);


/* the state of one object: consecutive addresses often share a function */

static prof_lines_t  prof_lines;


void
prof_symbolizer_lines(prof_buf_t *b, prof_symbolizer_object_t *o, uint64_t pc,
    const char *name)
{
    Dwarf         *dwarf;
    Dwarf_Addr     bias;
    prof_lines_t  *l;

    l = &prof_lines;
    bias = 0;
    dwarf = dwfl_module_getdwarf(o->module, &bias);

    if (dwarf != l->dwarf) {
        memset(l, 0, sizeof(prof_lines_t));
        l->dwarf = dwarf;
    }

    l->nfunctions = 0;

    if (dwarf && prof_lines_unit(l, pc - bias)) {
        (void) prof_lines_functions(l, &l->unit, pc - bias, 0);

        prof_lines_write(b, l, pc - bias, name);
        return;
    }

    /* the unit has no lines */

    prof_wire_u32(b, dwarf != NULL);
    prof_wire_u32(b, 0);
    prof_wire_u32(b, 0);
    prof_wire_text(b, name);
    prof_wire_text(b, NULL);
    prof_wire_u32(b, 0);
}


void
prof_symbolizer_close(prof_symbolizer_object_t *o)
{
    memset(&prof_lines, 0, sizeof(prof_lines_t));

    if (o->dwfl) {
        dwfl_end(o->dwfl);
        o->dwfl = NULL;
    }

    free(o->path);
    o->path = NULL;
}


/* uses the index of addresses, which not all compilers write */

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


/* returns whether a function was found below the parent */

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

        /* these DIEs may contain functions of C++ and Rust */

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


static void
prof_lines_write(prof_buf_t *b, prof_lines_t *l, uint64_t pc,
    const char *name)
{
    int          line;
    uint32_t     i;
    Dwarf_Die   *function;
    Dwarf_Line  *at;
    const char  *file, *source;

    line = 0;
    file = NULL;
    at = dwarf_getsrc_die(&l->unit, pc);

    if (at) {
        (void) dwarf_lineno(at, &line);
        file = dwarf_linesrc(at, NULL, NULL);
    }

    prof_wire_u32(b, 1);

    if (l->nfunctions == 0) {
        prof_wire_u32(b, line);
        prof_wire_u32(b, 0);
        prof_wire_text(b, name);
        prof_wire_text(b, file);
        prof_wire_u32(b, 0);
        return;
    }

    function = &l->functions[0];
    source = prof_lines_source(l, function);

    prof_wire_u32(b, l->nfunctions > 1 ? prof_lines_call(&l->functions[1])
                                       : (uint32_t) line);
    prof_wire_u32(b, prof_lines_start(function));

    if (name) {
        prof_wire_text(b, name);

    } else {
        prof_lines_name(b, function, NULL);
    }

    prof_wire_text(b, source ? source : file);
    prof_wire_u32(b, l->nfunctions - 1);

    for (i = 1; i < l->nfunctions; i++) {
        prof_lines_inline(b, l, i, i + 1 < l->nfunctions
                                   ? prof_lines_call(&l->functions[i + 1])
                                   : (uint32_t) line);
    }
}


static void
prof_lines_inline(prof_buf_t *b, prof_lines_t *l, uint32_t i, uint32_t line)
{
    Dwarf_Die  *die;

    die = &l->functions[i];

    prof_wire_u32(b, line);
    prof_wire_u32(b, prof_lines_start(die));
    prof_lines_name(b, die, "[inlined]");
    prof_wire_text(b, prof_lines_source(l, die));
}


/* dwarf_decl_file() does not support file numbers that start at 0 */

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


static void
prof_lines_name(prof_buf_t *b, Dwarf_Die *die, const char *otherwise)
{
    char             *name;
    const char       *s;
    Dwarf_Attribute   attr;

    s = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name,
                                              &attr));
    if (s == NULL) {
        s = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
    }

    name = s && s[0] ? strdup(s) : NULL;

    if (name && prof_demangle(&name) != PROF_OK) {
        b->failed = 1;
    }

    /* the reader would ignore a text that is too long */

    prof_wire_text(b, name && strlen(name) <= PROF_WIRE_TEXT ? name
                                                             : otherwise);
    free(name);
}


/* returns the line of the call */

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
