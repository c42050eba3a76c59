
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * ELF files, and what their tables tell about addresses.
 *
 * Context: any thread; not in a signal; slow (files).
 */


#ifndef _PROF_SYMBOL_TABLE_H_INCLUDED_
#define _PROF_SYMBOL_TABLE_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_symbol.h"


/* libelf's, whose headers are not for ours */

struct Elf;


/* larger files of debugging information are not read */

#define PROF_SYMBOL_DEBUG_MAX  (512 * 1024 * 1024)


PROF_HIDDEN_BEGIN

/*
 * A file, if it is the one that the object was loaded from, or its debug file:
 * NULL if it is not, or cannot be read.
 */
struct Elf *prof_symbol_open(const prof_profile_object_t *o,
    const char *path, int *fd);
void prof_symbol_close(struct Elf *elf, int fd);

/*
 * The same for the file that has the debugging information of the object, its
 * own or its debug file below debug_root; NULL if there is none.
 */
struct Elf *prof_symbol_debug(const prof_profile_object_t *o,
    const char *debug_root, int *fd);

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
