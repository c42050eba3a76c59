
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What an ELF file tells about addresses: the parts of prof_symbol_find().
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_SYMBOL_TABLE_H_INCLUDED_
#define _PROF_SYMBOL_TABLE_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_symbol.h"


/* libelf's, whose headers are not for ours */

struct Elf;


PROF_HIDDEN_BEGIN

/*
 * From .symtab and .dynsym; *full is set if there is a .symtab.
 * PROF_OK, or PROF_ERROR when memory is short.
 */
int prof_symbol_tables(struct Elf *elf, prof_symbol_t *syms, uint32_t n,
    int *full);

/*
 * From the procedure linkage table: "malloc@plt".  Only for addresses without
 * a name.  PROF_OK, or PROF_ERROR when memory is short.
 */
int prof_symbol_plt(struct Elf *elf, prof_symbol_t *syms, uint32_t n);

PROF_HIDDEN_END


#endif /* _PROF_SYMBOL_TABLE_H_INCLUDED_ */
