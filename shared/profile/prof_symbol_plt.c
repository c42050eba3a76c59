
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names for the stubs through which an object calls functions of others.  No
 * symbol names a stub, but its code tells: it jumps to the address in a slot
 * of the global offset table, and a relocation of this slot has the name.
 * Nothing is assumed about the order of stubs.
 *
 * Only the forms that linkers make for x86-64 are known; other stubs stay
 * without a name.
 */


#include "profile/prof_symbol_table.h"

#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define PROF_SYMBOL_ENDBR      "\xf3\x0f\x1e\xfa"   /* endbr64 */
#define PROF_SYMBOL_BND        0xf2                 /* prefix of a branch */
#define PROF_SYMBOL_JMP        "\xff\x25"           /* jmp *rel32(%rip) */
#define PROF_SYMBOL_JMP_SIZE   6


static int prof_symbol_plt_section(Elf *elf, const GElf_Shdr *shdr);
static int prof_symbol_plt_slots(const GElf_Shdr *shdr, Elf_Data *data,
    prof_symbol_t *syms, uint32_t n);
static uint64_t prof_symbol_plt_slot(const uint8_t *code, size_t size,
    uint64_t addr);
static int prof_symbol_plt_relocs(Elf *elf, Elf_Scn *scn,
    const GElf_Shdr *shdr, prof_symbol_t *syms, uint32_t n);
static int prof_symbol_plt_name(Elf *elf, Elf_Scn *symtab, size_t index,
    prof_symbol_t *s);


int
prof_symbol_plt(Elf *elf, prof_symbol_t *syms, uint32_t n)
{
    int         slots;
    Elf_Scn    *scn;
    Elf_Data   *data;
    GElf_Ehdr   ehdr;
    GElf_Shdr   shdr;

    if (gelf_getehdr(elf, &ehdr) == NULL || ehdr.e_machine != EM_X86_64) {
        return PROF_OK;
    }

    slots = 0;
    scn = NULL;

    while ((scn = elf_nextscn(elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL
            || !prof_symbol_plt_section(elf, &shdr))
        {
            continue;
        }

        data = elf_getdata(scn, NULL);

        if (data && data->d_buf) {
            slots += prof_symbol_plt_slots(&shdr, data, syms, n);
        }
    }

    if (slots == 0) {
        return PROF_OK;
    }

    while ((scn = elf_nextscn(elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL || shdr.sh_type != SHT_RELA) {
            continue;
        }

        if (prof_symbol_plt_relocs(elf, scn, &shdr, syms, n) != PROF_OK) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


static int
prof_symbol_plt_section(Elf *elf, const GElf_Shdr *shdr)
{
    char    *name;
    size_t   strndx;

    if (shdr->sh_type != SHT_PROGBITS || !(shdr->sh_flags & SHF_EXECINSTR)
        || (shdr->sh_entsize != 8 && shdr->sh_entsize != 16)
        || elf_getshdrstrndx(elf, &strndx) != 0)
    {
        return 0;
    }

    name = elf_strptr(elf, strndx, shdr->sh_name);

    return name
           && (strcmp(name, ".plt") == 0 || strncmp(name, ".plt.", 5) == 0);
}


/* leaves the slot's address in "value" of the addresses within the section */

static int
prof_symbol_plt_slots(const GElf_Shdr *shdr, Elf_Data *data,
    prof_symbol_t *syms, uint32_t n)
{
    int             found;
    size_t          offset;
    uint32_t        i;
    prof_symbol_t  *s;

    found = 0;

    for (i = 0; i < n; i++) {
        s = &syms[i];

        if (s->name || s->pc < shdr->sh_addr
            || s->pc - shdr->sh_addr >= data->d_size)
        {
            continue;
        }

        offset = s->pc - shdr->sh_addr;
        offset -= offset % shdr->sh_entsize;

        if (data->d_size - offset < shdr->sh_entsize) {
            continue;
        }

        s->value = prof_symbol_plt_slot((uint8_t *) data->d_buf + offset,
                                        shdr->sh_entsize,
                                        shdr->sh_addr + offset);

        found |= s->value != 0;
    }

    return found;
}


static uint64_t
prof_symbol_plt_slot(const uint8_t *code, size_t size, uint64_t addr)
{
    size_t   pos;
    int32_t  rel;

    pos = 0;

    if (size == 16) {
        if (memcmp(code, PROF_SYMBOL_ENDBR, 4) == 0) {
            pos += 4;
        }

        if (code[pos] == PROF_SYMBOL_BND) {
            pos++;
        }
    }

    if (memcmp(code + pos, PROF_SYMBOL_JMP, 2) != 0) {
        return 0;
    }

    memcpy(&rel, code + pos + 2, sizeof(rel));

    return addr + pos + PROF_SYMBOL_JMP_SIZE + (int64_t) rel;
}


static int
prof_symbol_plt_relocs(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr,
    prof_symbol_t *syms, uint32_t n)
{
    size_t      i, nrelocs;
    Elf_Scn    *symtab;
    uint32_t    k, type;
    Elf_Data   *data;
    GElf_Rela   rela;

    data = elf_getdata(scn, NULL);
    symtab = elf_getscn(elf, shdr->sh_link);

    if (data == NULL || data->d_type != ELF_T_RELA || data->d_buf == NULL
        || shdr->sh_entsize == 0 || symtab == NULL)
    {
        return PROF_OK;
    }

    nrelocs = data->d_size / shdr->sh_entsize;

    for (i = 0; i < nrelocs && i < INT_MAX; i++) {

        if (gelf_getrela(data, (int) i, &rela) == NULL) {
            break;
        }

        type = GELF_R_TYPE(rela.r_info);

        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) {
            continue;
        }

        for (k = 0; k < n; k++) {

            if (syms[k].name || syms[k].value == 0
                || syms[k].value != rela.r_offset)
            {
                continue;
            }

            if (prof_symbol_plt_name(elf, symtab, GELF_R_SYM(rela.r_info),
                                     &syms[k])
                != PROF_OK)
            {
                return PROF_ERROR;
            }
        }
    }

    return PROF_OK;
}


static int
prof_symbol_plt_name(Elf *elf, Elf_Scn *symtab, size_t index,
    prof_symbol_t *s)
{
    char        *copy;
    GElf_Sym     sym;
    Elf_Data    *data;
    GElf_Shdr    shdr;
    const char  *name;

    data = elf_getdata(symtab, NULL);

    if (gelf_getshdr(symtab, &shdr) == NULL || data == NULL
        || data->d_type != ELF_T_SYM || index == 0 || index > INT_MAX
        || gelf_getsym(data, (int) index, &sym) == NULL)
    {
        return PROF_OK;
    }

    name = elf_strptr(elf, shdr.sh_link, sym.st_name);

    if (name == NULL || name[0] == '\0') {
        return PROF_OK;
    }

    if (asprintf(&copy, "%s@plt", name) == -1) {
        return PROF_ERROR;
    }

    s->name = copy;

    return PROF_OK;
}
