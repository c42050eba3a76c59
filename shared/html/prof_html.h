
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds where the body of an HTML page ends, in pieces of any size, without
 * keeping them: the first "</body" that is an end tag.  One in a comment, in
 * a script, in a style or in the value of an attribute is none: a text that is
 * put there would change what the page does.
 *
 * It is the part of the tokenizer of HTML (WHATWG, 13.2.5) that this takes.
 * Bytes are ASCII or a superset of it, as all encodings of pages but UTF-16.
 *
 * Context: any; it allocates nothing and knows no buffers.
 */


#ifndef _PROF_HTML_H_INCLUDED_
#define _PROF_HTML_H_INCLUDED_


#include "base/prof_base.h"


/* the longest possible beginning: all of it but what follows the name */

#define PROF_HTML_HELD  (sizeof("</body") - 1)

/* longer names than "plaintext" are those of no element with text only */

#define PROF_HTML_NAME  10


typedef struct {
    uint8_t  state;
    uint8_t  closing;           /* the tag is an end tag */
    uint8_t  escape;            /* of a script: in "<!--", in its <script> */
    uint8_t  dashes;            /* that precede the next byte, up to 2 */
    uint8_t  attribute;         /* its name was read */
    uint8_t  nname;
    uint8_t  nraw;
    char     name[PROF_HTML_NAME];
    char     raw[PROF_HTML_NAME];       /* what ends the text, if not empty */
} prof_html_t;


PROF_HIDDEN_BEGIN

void prof_html_init(prof_html_t *h);

/*
 * Reads a piece.  Returns 1 when the end tag is found, with *at the offset of
 * its "<"; nothing more is to be read then.  Else 0, with *at the offset of
 * what may become one, or len.
 *
 * An offset below 0 is in the pieces before.  No more than PROF_HTML_HELD
 * bytes are in doubt, so this is how many the caller has to hold back.
 */
int prof_html_scan(prof_html_t *h, const unsigned char *s, size_t len,
    ptrdiff_t *at);

PROF_HIDDEN_END


#endif /* _PROF_HTML_H_INCLUDED_ */
