
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names for the stubs through which an object calls functions of other
 * objects.  No symbol names a stub.  Its code jumps to the address in an entry
 * of the global offset table, and the relocation of this entry has the name.
 * The order of stubs is not used.
 *
 * Only the forms of x86-64 linkers are known; other stubs have no name.
 */


#include "names/prof_symbol_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define PROF_SYMBOL_ENDBR      "\xf3\x0f\x1e\xfa"   /* endbr64 */
#define PROF_SYMBOL_BND        0xf2                 /* prefix of a branch */
#define PROF_SYMBOL_JMP        "\xff\x25"           /* jmp *rel32(%rip) */
#define PROF_SYMBOL_JMP_SIZE   6
#define PROF_SYMBOL_STUB_MAX   16

/* the limit for relocations of a section; the rest is not read */

#define PROF_SYMBOL_RELOCS     (1024 * 1024)
#define PROF_SYMBOL_CHUNK      256


static int prof_symbol_plt_section(const prof_elf_t *elf,
    const Elf64_Shdr *sh, char *name);
static int prof_symbol_plt_imports(const prof_elf_t *elf, const Elf64_Shdr *sh,
    prof_symbol_t *syms, uint32_t n);
static uint64_t prof_symbol_plt_import(const uint8_t *code, size_t size,
    uint64_t addr);
static int prof_symbol_plt_relocs(const prof_elf_t *elf, const Elf64_Shdr *sh,
    prof_symbol_t *syms, uint32_t n, char *name);
static int prof_symbol_plt_reloc(const prof_elf_t *elf, const Elf64_Shdr *sh,
    const Elf64_Rela *rela, prof_symbol_t *syms, uint32_t n, char *name);
static int prof_symbol_plt_name(const prof_elf_t *elf, uint32_t symtab,
    uint64_t index, prof_symbol_t *s, char *name);


int
prof_symbol_plt(const prof_elf_t *elf, prof_symbol_t *syms, uint32_t n)
{
    int                rc, imports;
    char              *name;
    uint32_t           i;
    const Elf64_Shdr  *sh;

    if (elf->header.e_machine != EM_X86_64) {
        return PROF_OK;
    }

    name = malloc(PROF_ELF_NAME);
    if (name == NULL) {
        return PROF_ERROR;
    }

    imports = 0;

    for (i = 0; i < elf->nsections; i++) {
        sh = &elf->sections[i];

        if (prof_symbol_plt_section(elf, sh, name)) {
            imports |= prof_symbol_plt_imports(elf, sh, syms, n);
        }
    }

    rc = PROF_OK;

    for (i = 0; i < elf->nsections && imports && rc == PROF_OK; i++) {
        sh = &elf->sections[i];

        if (sh->sh_type == SHT_RELA && sh->sh_entsize == sizeof(Elf64_Rela)) {
            rc = prof_symbol_plt_relocs(elf, sh, syms, n, name);
        }
    }

    free(name);

    return rc;
}


static int
prof_symbol_plt_section(const prof_elf_t *elf, const Elf64_Shdr *sh,
    char *name)
{
    return sh->sh_type == SHT_PROGBITS && (sh->sh_flags & SHF_EXECINSTR)
           && (sh->sh_entsize == 8 || sh->sh_entsize == PROF_SYMBOL_STUB_MAX)
           && prof_elf_string(elf, elf->header.e_shstrndx, sh->sh_name, name)
           && (strcmp(name, ".plt") == 0 || strncmp(name, ".plt.", 5) == 0);
}


/*
 * Stores the address of the GOT entry in "value" of the addresses in the
 * section.
 */

static int
prof_symbol_plt_imports(const prof_elf_t *elf, const Elf64_Shdr *sh,
    prof_symbol_t *syms, uint32_t n)
{
    int             found;
    uint8_t         code[PROF_SYMBOL_STUB_MAX];
    uint32_t        i;
    uint64_t        offset;
    prof_symbol_t  *s;

    found = 0;

    for (i = 0; i < n; i++) {
        s = &syms[i];

        if (s->name || s->pc < sh->sh_addr
            || s->pc - sh->sh_addr >= sh->sh_size)
        {
            continue;
        }

        offset = s->pc - sh->sh_addr;
        offset -= offset % sh->sh_entsize;

        if (prof_elf_read(elf, sh, offset, code, sh->sh_entsize) != PROF_OK) {
            continue;
        }

        s->value = prof_symbol_plt_import(code, sh->sh_entsize,
                                          sh->sh_addr + offset);

        found |= s->value != 0;
    }

    return found;
}


static uint64_t
prof_symbol_plt_import(const uint8_t *code, size_t size, uint64_t addr)
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
prof_symbol_plt_relocs(const prof_elf_t *elf, const Elf64_Shdr *sh,
    prof_symbol_t *syms, uint32_t n, char *name)
{
    size_t      chunk, i, k, nrelocs;
    Elf64_Rela  chunks[PROF_SYMBOL_CHUNK];

    nrelocs = sh->sh_size / sizeof(Elf64_Rela);

    if (nrelocs > PROF_SYMBOL_RELOCS) {
        nrelocs = PROF_SYMBOL_RELOCS;
    }

    for (i = 0; i < nrelocs; i += chunk) {

        chunk = nrelocs - i;

        if (chunk > PROF_SYMBOL_CHUNK) {
            chunk = PROF_SYMBOL_CHUNK;
        }

        if (prof_elf_read(elf, sh, i * sizeof(Elf64_Rela), chunks,
                          chunk * sizeof(Elf64_Rela))
            != PROF_OK)
        {
            break;
        }

        for (k = 0; k < chunk; k++) {
            if (prof_symbol_plt_reloc(elf, sh, &chunks[k], syms, n, name)
                != PROF_OK)
            {
                return PROF_ERROR;
            }
        }
    }

    return PROF_OK;
}


static int
prof_symbol_plt_reloc(const prof_elf_t *elf, const Elf64_Shdr *sh,
    const Elf64_Rela *rela, prof_symbol_t *syms, uint32_t n, char *name)
{
    uint32_t  i, type;

    type = ELF64_R_TYPE(rela->r_info);

    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) {
        return PROF_OK;
    }

    for (i = 0; i < n; i++) {

        if (syms[i].name || syms[i].value == 0
            || syms[i].value != rela->r_offset)
        {
            continue;
        }

        if (prof_symbol_plt_name(elf, sh->sh_link,
                                 ELF64_R_SYM(rela->r_info), &syms[i], name)
            != PROF_OK)
        {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


static int
prof_symbol_plt_name(const prof_elf_t *elf, uint32_t symtab, uint64_t index,
    prof_symbol_t *s, char *name)
{
    char              *copy;
    Elf64_Sym          sym;
    const Elf64_Shdr  *sh;

    if (symtab >= elf->nsections || index == 0) {
        return PROF_OK;
    }

    sh = &elf->sections[symtab];

    if ((sh->sh_type != SHT_SYMTAB && sh->sh_type != SHT_DYNSYM)
        || prof_elf_read(elf, sh, index * sizeof(Elf64_Sym), &sym,
                         sizeof(Elf64_Sym))
           != PROF_OK
        || prof_elf_string(elf, sh->sh_link, sym.st_name, name) == 0)
    {
        return PROF_OK;
    }

    if (asprintf(&copy, "%s@plt", name) == -1) {
        return PROF_ERROR;
    }

    s->name = copy;

    return PROF_OK;
}
