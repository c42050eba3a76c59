
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * There are few addresses and many symbols.  So the tables are read once from
 * start to end, and each symbol is looked up among the addresses.  A symbol
 * fits an address if
 *
 *     it starts where the unwind entry of the address starts, and the address
 *     is not past the symbol's size, if it has one; or
 *     its size covers the address, and the address has no unwind entry, or
 *     one that begins below the symbol (hand-written code: one entry, many
 *     functions).
 *
 * Only such a symbol names an address.  Of several fitting symbols, the rank
 * selects the best one.  The rank depends only on the symbols, so a name is
 * the same in each run.
 */


#include "names/prof_symbol_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* the limit for symbols of a table; the rest is not read */

#define PROF_SYMBOL_MAX       (4 * 1024 * 1024)

/* the number of symbols that are read at a time */

#define PROF_SYMBOL_CHUNK     512


/* the rank of a symbol: lower is better, higher bits count first */

#define PROF_SYMBOL_IFUNC     0x40000000
#define PROF_SYMBOL_NOTYPE    0x20000000
#define PROF_SYMBOL_LOCAL     0x10000000
#define PROF_SYMBOL_BAR       0x04000000    /* leading underscores: 0 .. 3 */
#define PROF_SYMBOL_BARS      3
#define PROF_SYMBOL_WEAK      0x02000000
#define PROF_SYMBOL_LENGTH    0x0000ffff


static int prof_symbol_table(const prof_elf_t *elf, const Elf64_Shdr *table,
    prof_symbol_t *syms, uint32_t n, char *name);
static int prof_symbol_fits(const prof_symbol_t *s, const Elf64_Sym *sym);
static int prof_symbol_in_code(const prof_elf_t *elf, const Elf64_Sym *sym);
static uint32_t prof_symbol_rank(const Elf64_Sym *sym, const char *name,
    size_t len);
static int prof_symbol_better(const prof_symbol_t *s, const Elf64_Sym *sym,
    uint32_t rank, const char *name, size_t len);
static int prof_symbol_take(prof_symbol_t *s, const Elf64_Sym *sym,
    uint32_t rank, const char *name, size_t len);
static uint32_t prof_symbol_lower(const prof_symbol_t *syms, uint32_t n,
    uint64_t pc);


int
prof_symbol_tables(const prof_elf_t *elf, prof_symbol_t *syms, uint32_t n)
{
    int                rc;
    char              *name;
    uint32_t           i;
    const Elf64_Shdr  *sh;

    name = malloc(PROF_ELF_NAME);
    if (name == NULL) {
        return PROF_ERROR;
    }

    rc = PROF_OK;

    for (i = 0; i < elf->nsections && rc == PROF_OK; i++) {
        sh = &elf->sections[i];

        if ((sh->sh_type == SHT_SYMTAB || sh->sh_type == SHT_DYNSYM)
            && sh->sh_entsize == sizeof(Elf64_Sym))
        {
            rc = prof_symbol_table(elf, sh, syms, n, name);
        }
    }

    free(name);

    return rc;
}


static int
prof_symbol_table(const prof_elf_t *elf, const Elf64_Shdr *table,
    prof_symbol_t *syms, uint32_t n, char *name)
{
    size_t      chunk, i, k, len, nsyms;
    uint32_t    first;
    Elf64_Sym   chunks[PROF_SYMBOL_CHUNK], *sym;

    nsyms = table->sh_size / sizeof(Elf64_Sym);

    if (nsyms > PROF_SYMBOL_MAX) {
        nsyms = PROF_SYMBOL_MAX;
    }

    for (i = 0; i < nsyms; i += chunk) {

        chunk = nsyms - i;

        if (chunk > PROF_SYMBOL_CHUNK) {
            chunk = PROF_SYMBOL_CHUNK;
        }

        if (prof_elf_read(elf, table, i * sizeof(Elf64_Sym), chunks,
                          chunk * sizeof(Elf64_Sym))
            != PROF_OK)
        {
            break;
        }

        for (k = 0; k < chunk; k++) {
            sym = &chunks[k];
            first = prof_symbol_first(syms, n, sym);

            if (first == n || !prof_symbol_in_code(elf, sym)) {
                continue;
            }

            len = prof_elf_string(elf, table->sh_link, sym->st_name, name);

            if (prof_symbol_offer(syms + first, n - first, sym, name, len)
                != PROF_OK)
            {
                return PROF_ERROR;
            }
        }
    }

    return PROF_OK;
}


uint32_t
prof_symbol_first(const prof_symbol_t *syms, uint32_t n, const Elf64_Sym *sym)
{
    int       type;
    uint32_t  i;

    type = ELF64_ST_TYPE(sym->st_info);

    if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS
        || (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
        || sym->st_value == 0 || sym->st_value > syms[n - 1].pc
        || sym->st_name == 0)
    {
        return n;
    }

    i = prof_symbol_lower(syms, n, sym->st_value);

    return i < n && prof_symbol_fits(&syms[i], sym) ? i : n;
}


int
prof_symbol_offer(prof_symbol_t *syms, uint32_t n, const Elf64_Sym *sym,
    const char *name, size_t len)
{
    uint32_t        i, rank;
    const char     *version;
    prof_symbol_t  *s;

    /* linkers add versions to names in .symtab: "memcpy@@GLIBC_2.14" */

    version = memchr(name, '@', len);
    if (version) {
        len = version - name;
    }

    if (len == 0) {
        return PROF_OK;
    }

    rank = prof_symbol_rank(sym, name, len);

    for (i = 0; i < n; i++) {
        s = &syms[i];

        if (!prof_symbol_fits(s, sym)) {
            break;
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
prof_symbol_fits(const prof_symbol_t *s, const Elf64_Sym *sym)
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
prof_symbol_in_code(const prof_elf_t *elf, const Elf64_Sym *sym)
{
    return sym->st_shndx < elf->nsections
           ? prof_symbol_is_code(&elf->sections[sym->st_shndx], sym)
           : ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE;
}


int
prof_symbol_is_code(const Elf64_Shdr *section, const Elf64_Sym *sym)
{
    /*
     * A label without a type may be a label of the linker ("_etext") with the
     * address of the next section's first function.
     */

    return ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE
           || ((section->sh_flags & SHF_EXECINSTR)
               && sym->st_value >= section->sh_addr
               && sym->st_value - section->sh_addr < section->sh_size);
}


static uint32_t
prof_symbol_rank(const Elf64_Sym *sym, const char *name, size_t len)
{
    size_t    bars;
    uint32_t  rank;

    rank = 0;

    switch (ELF64_ST_TYPE(sym->st_info)) {

    /* the code at this address only chooses the function of this name */

    case STT_GNU_IFUNC:
        rank |= PROF_SYMBOL_IFUNC;
        break;

    case STT_NOTYPE:
        rank |= PROF_SYMBOL_NOTYPE;
        break;
    }

    /*
     * The C library has a global "__read" and a weak "read", the well-known
     * name.  So underscores count before weakness.
     */

    switch (ELF64_ST_BIND(sym->st_info)) {

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
prof_symbol_better(const prof_symbol_t *s, const Elf64_Sym *sym,
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
prof_symbol_take(prof_symbol_t *s, const Elf64_Sym *sym, uint32_t rank,
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

    if (s->function == 0) {
        s->len = sym->st_size;
    }

    return PROF_OK;
}


/* returns the first address that is not below pc */

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
