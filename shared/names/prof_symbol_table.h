
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names of addresses by the tables of ELF files.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_SYMBOL_TABLE_H_INCLUDED_
#define _PROF_SYMBOL_TABLE_H_INCLUDED_


#include "base/prof_base.h"
#include "names/prof_elf.h"
#include "names/prof_symbol.h"


PROF_HIDDEN_BEGIN

/*
 * Names addresses by .symtab and .dynsym.  Returns PROF_OK, or PROF_ERROR if
 * memory is short.
 */
int prof_symbol_tables(const prof_elf_t *elf, prof_symbol_t *syms,
    uint32_t n);

/*
 * Names addresses without a name by the procedure linkage table: "malloc@plt".
 * Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_symbol_plt(const prof_elf_t *elf, prof_symbol_t *syms, uint32_t n);

/*
 * The functions for one symbol.  prof_symbol_first() returns the index of the
 * first of the n addresses that the symbol fits, or n.  prof_symbol_is_code()
 * returns whether the symbol is code of its section.  The last function uses
 * the name for this address and the following addresses that the symbol fits.
 */
uint32_t prof_symbol_first(const prof_symbol_t *syms, uint32_t n,
    const Elf64_Sym *sym);
int prof_symbol_is_code(const Elf64_Shdr *section, const Elf64_Sym *sym);
int prof_symbol_offer(prof_symbol_t *syms, uint32_t n, const Elf64_Sym *sym,
    const char *name, size_t len);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOL_TABLE_H_INCLUDED_ */
