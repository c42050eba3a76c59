
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The addresses are few and the symbols are many, so the tables are read once
 * from start to end, and each symbol is looked up among the addresses.  A
 * symbol fits an address when
 *
 *     it starts where the unwind entry of the address starts, and the address
 *     is not past the symbol's size, if it has one; or
 *     its size covers the address, and the address has no unwind entry, or
 *     one that begins below the symbol (hand-written code: one entry, many
 *     functions).
 *
 * Nothing else names an address.  Of several symbols that fit, the rank tells
 * the best; it depends on nothing but the symbols, so a name does not change
 * from one run to the next.
 */


#include "profile/prof_symbol_table.h"

#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* the rank of a symbol: lower is better, the highest bit decides first */

#define PROF_SYMBOL_IFUNC     0x40000000
#define PROF_SYMBOL_NOTYPE    0x20000000
#define PROF_SYMBOL_LOCAL     0x10000000
#define PROF_SYMBOL_BAR       0x04000000    /* leading underscores: 0 .. 3 */
#define PROF_SYMBOL_BARS      3
#define PROF_SYMBOL_WEAK      0x02000000
#define PROF_SYMBOL_LENGTH    0x0000ffff


typedef struct {
    prof_symbol_t  *syms;
    uint32_t        n;
    Elf            *elf;
    const char     *names;
    size_t          size;
} prof_symbol_ctx_t;


static int prof_symbol_table(prof_symbol_ctx_t *ctx, Elf_Data *data,
    size_t nsyms);
static int prof_symbol_offer(prof_symbol_ctx_t *ctx, const GElf_Sym *sym);
static int prof_symbol_fits(const prof_symbol_t *s, const GElf_Sym *sym);
static int prof_symbol_is_code(Elf *elf, const GElf_Sym *sym);
static uint32_t prof_symbol_rank(const GElf_Sym *sym, const char *name,
    size_t len);
static int prof_symbol_better(const prof_symbol_t *s, const GElf_Sym *sym,
    uint32_t rank, const char *name, size_t len);
static int prof_symbol_take(prof_symbol_t *s, const GElf_Sym *sym,
    uint32_t rank, const char *name, size_t len);
static uint32_t prof_symbol_lower(const prof_symbol_t *syms, uint32_t n,
    uint64_t pc);


int
prof_symbol_tables(Elf *elf, prof_symbol_t *syms, uint32_t n, int *full)
{
    Elf_Scn            *scn;
    Elf_Data           *data, *names;
    GElf_Shdr           shdr;
    prof_symbol_ctx_t   ctx;

    ctx.syms = syms;
    ctx.n = n;
    ctx.elf = elf;

    scn = NULL;

    while ((scn = elf_nextscn(elf, scn)) != NULL) {

        if (gelf_getshdr(scn, &shdr) == NULL
            || (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM)
            || shdr.sh_entsize == 0)
        {
            continue;
        }

        data = elf_getdata(scn, NULL);
        names = elf_getdata(elf_getscn(elf, shdr.sh_link), NULL);

        if (data == NULL || data->d_type != ELF_T_SYM || data->d_buf == NULL
            || names == NULL || names->d_buf == NULL)
        {
            continue;
        }

        ctx.names = names->d_buf;
        ctx.size = names->d_size;

        if (prof_symbol_table(&ctx, data, data->d_size / shdr.sh_entsize)
            != PROF_OK)
        {
            return PROF_ERROR;
        }

        if (shdr.sh_type == SHT_SYMTAB) {
            *full = 1;
        }
    }

    return PROF_OK;
}


static int
prof_symbol_table(prof_symbol_ctx_t *ctx, Elf_Data *data, size_t nsyms)
{
    int       type;
    size_t    i;
    uint64_t  last;
    GElf_Sym  sym;

    last = ctx->syms[ctx->n - 1].pc;

    if (nsyms > INT_MAX) {
        nsyms = INT_MAX;
    }

    for (i = 1; i < nsyms; i++) {

        if (gelf_getsym(data, (int) i, &sym) == NULL) {
            break;
        }

        type = GELF_ST_TYPE(sym.st_info);

        if (sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS
            || (type != STT_FUNC && type != STT_GNU_IFUNC
                && type != STT_NOTYPE)
            || sym.st_value == 0 || sym.st_value > last
            || sym.st_name == 0 || sym.st_name >= ctx->size)
        {
            continue;
        }

        if (prof_symbol_offer(ctx, &sym) != PROF_OK) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


static int
prof_symbol_offer(prof_symbol_ctx_t *ctx, const GElf_Sym *sym)
{
    size_t          len;
    uint32_t        i, rank;
    const char     *name, *version;
    prof_symbol_t  *s;

    name = NULL;
    len = 0;
    rank = 0;

    for (i = prof_symbol_lower(ctx->syms, ctx->n, sym->st_value);
         i < ctx->n;
         i++)
    {
        s = &ctx->syms[i];

        if (!prof_symbol_fits(s, sym)) {
            break;
        }

        if (name == NULL) {
            name = ctx->names + sym->st_name;
            len = strnlen(name, ctx->size - sym->st_name);

            /* linkers write versions in .symtab: "memcpy@@GLIBC_2.14" */

            version = memchr(name, '@', len);
            if (version) {
                len = version - name;
            }

            if (len == 0 || !prof_symbol_is_code(ctx->elf, sym)) {
                break;
            }

            rank = prof_symbol_rank(sym, name, len);
        }

        if (prof_symbol_better(s, sym, rank, name, len)
            && prof_symbol_take(s, sym, rank, name, len) != PROF_OK)
        {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


static int
prof_symbol_fits(const prof_symbol_t *s, const GElf_Sym *sym)
{
    if (sym->st_size && s->pc - sym->st_value >= sym->st_size) {
        return 0;
    }

    if (s->function == sym->st_value) {
        return 1;
    }

    return sym->st_size && s->function < sym->st_value;
}


static int
prof_symbol_is_code(Elf *elf, const GElf_Sym *sym)
{
    Elf_Scn   *scn;
    GElf_Shdr  shdr;

    if (GELF_ST_TYPE(sym->st_info) != STT_NOTYPE) {
        return 1;
    }

    /*
     * A label without a type may be a linker's mark ("_etext") that happens
     * to have the address of the next section's first function.
     */

    scn = elf_getscn(elf, sym->st_shndx);

    return gelf_getshdr(scn, &shdr) != NULL
           && (shdr.sh_flags & SHF_EXECINSTR)
           && sym->st_value >= shdr.sh_addr
           && sym->st_value - shdr.sh_addr < shdr.sh_size;
}


static uint32_t
prof_symbol_rank(const GElf_Sym *sym, const char *name, size_t len)
{
    size_t    bars;
    uint32_t  rank;

    rank = 0;

    switch (GELF_ST_TYPE(sym->st_info)) {

    /* what runs at this address only chooses the function of this name */

    case STT_GNU_IFUNC:
        rank |= PROF_SYMBOL_IFUNC;
        break;

    case STT_NOTYPE:
        rank |= PROF_SYMBOL_NOTYPE;
        break;
    }

    /*
     * libc has a global "__read" beside a weak "read", and people know the
     * latter: so underscores count before weakness.
     */

    switch (GELF_ST_BIND(sym->st_info)) {

    case STB_LOCAL:
        rank |= PROF_SYMBOL_LOCAL;
        break;

    case STB_WEAK:
        rank |= PROF_SYMBOL_WEAK;
        break;
    }

    for (bars = 0; bars < len && name[bars] == '_'; bars++) {
        if (bars == PROF_SYMBOL_BARS) {
            break;
        }
    }

    rank |= bars * PROF_SYMBOL_BAR;

    return rank | (len < PROF_SYMBOL_LENGTH ? len : PROF_SYMBOL_LENGTH);
}


static int
prof_symbol_better(const prof_symbol_t *s, const GElf_Sym *sym,
    uint32_t rank, const char *name, size_t len)
{
    int  rc;

    if (s->name == NULL) {
        return 1;
    }

    if (s->value != sym->st_value) {

        if (s->value == s->function || sym->st_value == s->function) {
            return sym->st_value == s->function;
        }

        return sym->st_value > s->value;
    }

    if (s->rank != rank) {
        return rank < s->rank;
    }

    rc = strncmp(name, s->name, len);

    return rc < 0;
}


static int
prof_symbol_take(prof_symbol_t *s, const GElf_Sym *sym, uint32_t rank,
    const char *name, size_t len)
{
    char  *copy;

    if (asprintf(&copy, "%.*s%s", (int) len, name,
                 (rank & PROF_SYMBOL_IFUNC) ? " [resolver]" : "")
        == -1)
    {
        return PROF_ERROR;
    }

    free(s->name);

    s->name = copy;
    s->value = sym->st_value;
    s->rank = rank;

    return PROF_OK;
}


/* the first address that is not below pc */

static uint32_t
prof_symbol_lower(const prof_symbol_t *syms, uint32_t n, uint64_t pc)
{
    uint32_t  low, mid;

    low = 0;

    while (low < n) {
        mid = low + (n - low) / 2;

        if (syms[mid].pc < pc) {
            low = mid + 1;

        } else {
            n = mid;
        }
    }

    return low;
}
