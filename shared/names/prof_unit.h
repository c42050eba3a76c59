
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Units: the source files of functions that have neither a symbol nor a role.
 * The program has a list of the source files of its exported symbols, and the
 * units of some functions (prof_role.h).  The helper process infers the units
 * of other functions.
 *
 * Context: any thread, one at a time (prof_symbolize.c has the lock); not in a
 * signal; slow.
 */


#ifndef _PROF_UNIT_H_INCLUDED_
#define _PROF_UNIT_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


typedef struct {
    const char          *file;      /* "ngx_array.c" */
    const char          *symbols;   /* "ngx_array_create ngx_array_push" */
} prof_source_file_t;


typedef struct prof_names_object_s  prof_names_object_t;

/* the units of one object */

typedef struct prof_unit_table_s  prof_unit_table_t;


PROF_HIDDEN_BEGIN

/*
 * The source files of the program; the list ends with a NULL file, is not
 * copied, and is set before profiles get names.
 */
void prof_profile_sources(const prof_source_file_t *files);

/*
 * Finds all units of an object that has roles: in the cache, or with the
 * helper.  Returns PROF_OK; PROF_LIMIT if the helper failed; or PROF_ERROR if
 * memory is short.  With PROF_OK the caller owns *table, which is NULL if there
 * is no helper.  The deadline is a time of CLOCK_MONOTONIC, in ns; after it the
 * helper is not asked.
 */
int prof_unit_find(prof_unit_table_t **table, prof_names_object_t *names,
    const prof_profile_object_t *o, const char *debug_root, uint64_t deadline);

/*
 * Names the frame "ngx_array.c (nginx+0x28a00)" if the unit of its function is
 * known.  Returns PROF_OK, also without a name, or PROF_ERROR if memory is
 * short.
 */
int prof_unit_name(const prof_unit_table_t *table, const prof_profile_t *p,
    prof_frame_t *f);

void prof_unit_free(prof_unit_table_t *table);

PROF_HIDDEN_END


#endif /* _PROF_UNIT_H_INCLUDED_ */
