
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Where the names of frames come from, for people and for machines.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SOURCE_H_INCLUDED_
#define _PROF_SOURCE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


typedef struct {
    const char  *name;          /* in files: "symbols" */
    const char  *text;          /* for readers: "symbol table" */
} prof_source_t;


PROF_HIDDEN_BEGIN

/* PROF_SOURCE_MAX elements */
extern const prof_source_t  prof_sources[];

/*
 * Returns the source of a function's name.  The names of inlined functions
 * come from debugging information.
 */
uint32_t prof_source_function(const prof_profile_t *p,
    const prof_view_function_t *func);

/*
 * Appends the number of addresses by source, the best source first: "3 debug,
 * 20 symbols, 7 offset".  Appends nothing if no frame is code.
 */
void prof_source_addresses(const prof_profile_t *p, prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_SOURCE_H_INCLUDED_ */
