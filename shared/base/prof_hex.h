
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Hexadecimal numbers of lowercase digits, without sign, prefix and spaces.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_HEX_H_INCLUDED_
#define _PROF_HEX_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/*
 * Parses a number of at most 16 digits, without a null byte at its end.
 * Returns PROF_OK, or PROF_ERROR if another character is in the text.  Capital
 * letters are not valid.
 */
int prof_hex_parse(const char *text, size_t len, uint64_t *value);

PROF_HIDDEN_END


#endif /* _PROF_HEX_H_INCLUDED_ */
