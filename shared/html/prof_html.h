
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the end of the body of an HTML page, in pieces of any size, without
 * keeping the pieces: the first "</body" that is an end tag.  A "</body" in a
 * comment, in a script, in a style or in the value of an attribute does not
 * count: inserted text would change the page there.
 *
 * The file contains the necessary part of the HTML tokenizer (WHATWG, 13.2.5).
 * Bytes are ASCII or a superset, as in all encodings of pages but UTF-16.
 *
 * Context: any; it does not allocate, and does not use buffers.
 */


#ifndef _PROF_HTML_H_INCLUDED_
#define _PROF_HTML_H_INCLUDED_


#include "base/prof_base.h"


/* the longest possible beginning: without the bytes after the name */

#define PROF_HTML_HELD  (sizeof("</body") - 1)

/* longer names than "plaintext" are not names of elements with text only */

#define PROF_HTML_NAME  10


typedef struct {
    uint8_t  state;
    uint8_t  closing;           /* the tag is an end tag */
    uint8_t  escape;            /* in a script: within "<!--", within an
                                   inner <script> */
    uint8_t  dashes;            /* the dashes before the next byte, up to 2 */
    uint8_t  attribute;         /* the name of the attribute was read */
    uint8_t  nname;
    uint8_t  nraw;
    char     name[PROF_HTML_NAME];
    char     raw[PROF_HTML_NAME];       /* the name of the end tag that ends
                                           the text, if not empty */
} prof_html_t;


PROF_HIDDEN_BEGIN

void prof_html_init(prof_html_t *h);

/*
 * Reads a piece.  Returns 1 when the end tag is found, with *at as the offset
 * of its "<"; do not call it again then.  Otherwise returns 0, with *at as the
 * offset of a possible beginning, or len.
 *
 * An offset below 0 is in earlier pieces.  At most PROF_HTML_HELD bytes are
 * undecided.  The caller has to hold back this number of bytes.
 */
int prof_html_scan(prof_html_t *h, const unsigned char *s, size_t len,
    ptrdiff_t *at);

PROF_HIDDEN_END


#endif /* _PROF_HTML_H_INCLUDED_ */
