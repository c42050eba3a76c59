
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the tables of ELF files tell about addresses.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_SYMBOL_TABLE_H_INCLUDED_
#define _PROF_SYMBOL_TABLE_H_INCLUDED_


#include "base/prof_base.h"
#include "names/prof_elf.h"
#include "names/prof_symbol.h"


PROF_HIDDEN_BEGIN

/* from .symtab and .dynsym; PROF_OK, or PROF_ERROR when memory is short */
int prof_symbol_tables(const prof_elf_t *elf, prof_symbol_t *syms,
    uint32_t n);

/*
 * From the procedure linkage table: "malloc@plt".  Only for addresses without
 * a name.  PROF_OK, or PROF_ERROR when memory is short.
 */
int prof_symbol_plt(const prof_elf_t *elf, prof_symbol_t *syms, uint32_t n);

/*
 * One symbol: the first of the n addresses that it fits, n if there is none;
 * whether it is code of its section; and the symbol as a name for the address
 * and those that follow.
 */
uint32_t prof_symbol_first(const prof_symbol_t *syms, uint32_t n,
    const Elf64_Sym *sym);
int prof_symbol_is_code(const Elf64_Shdr *section, const Elf64_Sym *sym);
int prof_symbol_offer(prof_symbol_t *syms, uint32_t n, const Elf64_Sym *sym,
    const char *name, size_t len);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOL_TABLE_H_INCLUDED_ */
