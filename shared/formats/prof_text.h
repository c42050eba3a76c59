
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Texts of any bytes made fit for output.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_TEXT_H_INCLUDED_
#define _PROF_TEXT_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/*
 * Length in bytes of the UTF-8 character at s, which has len bytes left, or 0
 * if there is none: overlong forms, surrogates and what is above U+10FFFF are
 * none.
 */
size_t prof_text_char(const char *s, size_t len);

/*
 * A malloc()ed copy in valid UTF-8: each byte that is not part of a character
 * becomes U+FFFD.  NULL when memory is short.
 */
char *prof_text_utf8(const char *s, size_t *len);

PROF_HIDDEN_END


#endif /* _PROF_TEXT_H_INCLUDED_ */
