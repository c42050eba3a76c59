
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The functions of an object, also without a symbol table: unwind information
 * has their places, the dynamic symbol table has the functions that other
 * objects can call, and relocations have the data that refers to functions.
 */


#include "symbolizer/prof_units.h"

#include <stdlib.h>
#include <string.h>


/*
 * .eh_frame_hdr, as all linkers write it (LSB Core, "Exception Frame Header"):
 * version, the encodings of the three fields, the address of .eh_frame, the
 * number of entries; of each entry: the function and its description, both
 * relative to the section.
 */

#define PROF_UNITS_HEADER  12
#define PROF_UNITS_ENTRY   8

static const uint8_t  prof_units_encodings[] = { 1, 0x1b, 0x03, 0x3b };


typedef struct {
    uint64_t        address;
    size_t          size;
    const uint8_t  *data;
} prof_units_section_t;


static int prof_units_find(prof_units_t *u, const char *name,
    prof_units_section_t *s);
static int prof_units_entry(prof_units_function_t *f,
    const prof_units_section_t *header, const prof_units_section_t *frames,
    uint32_t i);
static int prof_units_field(const prof_units_section_t *s, uint64_t address,
    void *p, size_t size);
static int prof_units_read_symbols(prof_units_t *u);
static void prof_units_visible(prof_units_t *u, const prof_units_symbol_t *s);
static void prof_units_pointer(prof_units_t *u, uint64_t address, uint64_t to);
static int prof_units_cmp_symbols(const void *one, const void *two);


int
prof_units_read(prof_units_t *u)
{
    uint32_t                i, n;
    uint64_t                total;
    GElf_Ehdr               ehdr;
    prof_units_section_t    header, frames, text;
    prof_units_function_t  *f;

    if (gelf_getehdr(u->elf, &ehdr) == NULL
        || prof_units_find(u, ".text", &text) != PROF_OK
        || prof_units_find(u, ".eh_frame_hdr", &header) != PROF_OK
        || prof_units_find(u, ".eh_frame", &frames) != PROF_OK
        || header.size < PROF_UNITS_HEADER
        || memcmp(header.data, prof_units_encodings,
                  sizeof(prof_units_encodings))
           != 0)
    {
        return PROF_ERROR;
    }

    memcpy(&n, header.data + 8, sizeof(uint32_t));

    if (n == 0 || n > PROF_UNITS_FUNCTIONS
        || n > (header.size - PROF_UNITS_HEADER) / PROF_UNITS_ENTRY)
    {
        return PROF_ERROR;
    }

    u->functions = calloc(n, sizeof(prof_units_function_t));
    if (u->functions == NULL) {
        return PROF_ERROR;
    }

    total = 0;

    for (i = 0; i < n; i++) {
        f = &u->functions[u->nfunctions];

        if (prof_units_entry(f, &header, &frames, i) != PROF_OK) {
            return PROF_ERROR;
        }

        /* stubs (.plt) are one entry */

        if (f->start - text.address >= text.size) {
            continue;
        }

        if (u->nfunctions && f->start < f[-1].start + f[-1].len) {
            return PROF_ERROR;
        }

        /*
         * Linkers put the parts of functions that are seldom run, and main(),
         * before all other code.  The program's entry is the first one of the
         * other code.
         */

        f->ordered = f->start > ehdr.e_entry;
        total += f->len;

        u->nfunctions++;
    }

    return total <= PROF_UNITS_CODE ? prof_units_read_symbols(u) : PROF_ERROR;
}


static int
prof_units_find(prof_units_t *u, const char *name, prof_units_section_t *s)
{
    size_t       strings;
    Elf_Scn     *scn;
    Elf_Data    *data;
    GElf_Shdr    shdr;
    const char  *text;

    if (elf_getshdrstrndx(u->elf, &strings) == -1) {
        return PROF_ERROR;
    }

    scn = NULL;

    while ((scn = elf_nextscn(u->elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL
            || !(shdr.sh_flags & SHF_ALLOC) || shdr.sh_type == SHT_NOBITS)
        {
            continue;
        }

        text = elf_strptr(u->elf, strings, shdr.sh_name);

        if (text == NULL || strcmp(text, name) != 0) {
            continue;
        }

        data = elf_rawdata(scn, NULL);

        if (data == NULL || data->d_buf == NULL) {
            return PROF_ERROR;
        }

        s->address = shdr.sh_addr;
        s->size = data->d_size;
        s->data = data->d_buf;

        return PROF_OK;
    }

    return PROF_ERROR;
}


static int
prof_units_entry(prof_units_function_t *f, const prof_units_section_t *header,
    const prof_units_section_t *frames, uint32_t i)
{
    int32_t         offsets[2], start;
    uint32_t        lengths[2];
    uint64_t        address;
    const uint8_t  *p;

    p = header->data + PROF_UNITS_HEADER + (size_t) i * PROF_UNITS_ENTRY;
    memcpy(offsets, p, sizeof(offsets));

    f->start = header->address + (int64_t) offsets[0];
    address = header->address + (int64_t) offsets[1];

    /* the description: its length, its CIE, the function, and its length */

    if (prof_units_field(frames, address, lengths, sizeof(uint32_t)) != PROF_OK
        || prof_units_field(frames, address + 8, &start, sizeof(int32_t))
           != PROF_OK
        || prof_units_field(frames, address + 12, &f->len, sizeof(uint32_t))
           != PROF_OK
        || lengths[0] == UINT32_MAX)
    {
        return PROF_ERROR;
    }

    /* another encoding of the function gives another address */

    return address + 8 + (int64_t) start == f->start ? PROF_OK : PROF_ERROR;
}


static int
prof_units_field(const prof_units_section_t *s, uint64_t address, void *p,
    size_t size)
{
    uint64_t  offset;

    offset = address - s->address;

    if (offset > s->size || size > s->size - offset) {
        return PROF_ERROR;
    }

    memcpy(p, s->data + offset, size);

    return PROF_OK;
}


/* exported functions and variables */

static int
prof_units_read_symbols(prof_units_t *u)
{
    size_t                i, n;
    Elf_Scn              *scn;
    Elf_Data             *data;
    GElf_Sym              sym;
    GElf_Shdr             shdr;
    prof_units_symbol_t  *s;

    scn = NULL;

    do {
        scn = elf_nextscn(u->elf, scn);

        if (scn == NULL || gelf_getshdr(scn, &shdr) == NULL) {
            return PROF_ERROR;
        }

    } while (shdr.sh_type != SHT_DYNSYM);

    data = elf_getdata(scn, NULL);

    if (data == NULL || shdr.sh_entsize == 0) {
        return PROF_ERROR;
    }

    n = data->d_size / shdr.sh_entsize;

    if (n > PROF_UNITS_FUNCTIONS) {
        return PROF_ERROR;
    }

    u->symbols = calloc(n + 1, sizeof(prof_units_symbol_t));
    if (u->symbols == NULL) {
        return PROF_ERROR;
    }

    for (i = 1; i < n && gelf_getsym(data, i, &sym) != NULL; i++) {

        if (sym.st_shndx == SHN_UNDEF) {
            continue;
        }

        s = &u->symbols[u->nsymbols];

        s->name = elf_strptr(u->elf, shdr.sh_link, sym.st_name);
        s->start = sym.st_value;
        s->size = sym.st_size;

        if (s->name) {
            u->nsymbols++;
        }
    }

    qsort(u->symbols, u->nsymbols, sizeof(prof_units_symbol_t),
          prof_units_cmp_symbols);

    for (i = 0; i < u->nsymbols; i++) {
        prof_units_visible(u, &u->symbols[i]);
    }

    return PROF_OK;
}


static void
prof_units_visible(prof_units_t *u, const prof_units_symbol_t *s)
{
    uint32_t                i;
    prof_units_function_t  *f;

    i = prof_units_function(u, s->start);

    if (i != PROF_NONE) {
        f = &u->functions[i];

        f->visible = 1;
        f->several |= (s->start != f->start);
    }
}


/* data of a position-independent program: relocations have the addresses */

void
prof_units_data(prof_units_t *u)
{
    size_t      i, n;
    Elf_Scn    *scn;
    Elf_Data   *data;
    GElf_Ehdr   ehdr;
    GElf_Rela   rela;
    GElf_Shdr   shdr;
    uint32_t    relative;

    if (gelf_getehdr(u->elf, &ehdr) == NULL) {
        return;
    }

    relative = ehdr.e_machine == EM_X86_64 ? R_X86_64_RELATIVE
                                           : R_AARCH64_RELATIVE;
    scn = NULL;

    while ((scn = elf_nextscn(u->elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL || shdr.sh_type != SHT_RELA
            || !(shdr.sh_flags & SHF_ALLOC) || shdr.sh_entsize == 0)
        {
            continue;
        }

        data = elf_getdata(scn, NULL);
        n = data ? data->d_size / shdr.sh_entsize : 0;

        for (i = 0; i < n && gelf_getrela(data, i, &rela) != NULL; i++) {

            if (GELF_R_TYPE(rela.r_info) == relative) {
                prof_units_pointer(u, rela.r_offset, rela.r_addend);
            }
        }
    }
}


/* the variable at the address has the address of a function */

static void
prof_units_pointer(prof_units_t *u, uint64_t address, uint64_t to)
{
    uint32_t              f, lo, hi, mid;
    prof_units_symbol_t  *s;

    f = prof_units_function(u, to);

    if (f == PROF_NONE || u->functions[f].start != to
        || u->functions[f].visible)
    {
        return;
    }

    /* the last symbol that does not begin after the address */

    lo = 0;
    hi = u->nsymbols;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;

        if (u->symbols[mid].start <= address) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    if (lo == 0) {
        return;
    }

    s = &u->symbols[lo - 1];

    if (address - s->start < s->size) {
        prof_units_join(u, f, u->nfunctions + lo - 1);
    }
}


static int
prof_units_cmp_symbols(const void *one, const void *two)
{
    const prof_units_symbol_t  *s1, *s2;

    s1 = one;
    s2 = two;

    if (s1->start != s2->start) {
        return s1->start < s2->start ? -1 : 1;
    }

    return s1->size < s2->size ? -1 : s1->size > s2->size;
}
