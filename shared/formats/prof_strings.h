
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A table of distinct strings with indices; index 0 is the empty string.
 * Strings are valid UTF-8, with "?" in place of control characters, since
 * readers may print a name on a terminal.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_STRINGS_H_INCLUDED_
#define _PROF_STRINGS_H_INCLUDED_


#include "base/prof_base.h"


typedef struct {
    char      **data;       /* owned, with its strings */
    uint32_t    n;
    uint32_t    size;       /* elements of data; a power of two */
    uint32_t   *buckets;    /* hash table of 2 * size: index + 1, or 0 */
    unsigned    failed:1;   /* memory was short */
} prof_strings_t;


PROF_HIDDEN_BEGIN

void prof_strings_init(prof_strings_t *t);
void prof_strings_free(prof_strings_t *t);

/* returns the index of a string of any bytes, or 0 if memory is short */
uint32_t prof_strings_add(prof_strings_t *t, const char *s);

PROF_HIDDEN_END


#endif /* _PROF_STRINGS_H_INCLUDED_ */
