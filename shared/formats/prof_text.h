
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Writes texts of any bytes as UTF-8, JSON, XML and HTML.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_TEXT_H_INCLUDED_
#define _PROF_TEXT_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"


PROF_HIDDEN_BEGIN

/*
 * Returns the length in bytes of the UTF-8 character at s, or 0 if the len
 * bytes at s do not begin with a character.  Overlong forms, surrogates and
 * numbers above U+10FFFF are not characters.
 */
size_t prof_text_char(const char *s, size_t len);

/*
 * Returns a malloc()ed copy in valid UTF-8, in which each byte that is not
 * part of a character is replaced by U+FFFD.  Returns NULL if memory is short.
 */
char *prof_text_utf8(const char *s, size_t *len);

/* appends a text of any bytes as a string of JSON, with its quotes */
void prof_text_json(prof_buf_t *b, const char *s, size_t len);

/*
 * Appends a text for the content of an element or for a quoted attribute, in
 * XML and HTML.  Invalid UTF-8, characters that XML forbids, line ends and
 * controls of the writing direction become U+FFFD.  A text of more than max
 * bytes is cut between characters and ends with an ellipsis.
 */
void prof_markup_text(prof_buf_t *b, const char *s, size_t len, size_t max);

/* appends a part of a whole in percent, "12.3456", with so many decimals */
void prof_markup_percent(prof_buf_t *b, uint64_t part, uint64_t whole,
    uint32_t decimals);

PROF_HIDDEN_END


#endif /* _PROF_TEXT_H_INCLUDED_ */
