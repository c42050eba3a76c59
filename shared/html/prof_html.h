
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the end of the body of an HTML page: the first "</body" that is an end
 * tag.  The page is read in pieces of any size, which are not kept.  A
 * "</body" in a comment, in a script, in a style or in the value of an
 * attribute does not count: inserted text would change the page there.
 *
 * The file contains the necessary part of the HTML tokenizer (WHATWG, 13.2.5).
 * The encoding is ASCII or contains it, as all encodings of pages except
 * UTF-16.
 *
 * Context: any; it does not allocate, and does not use buffers.
 */


#ifndef _PROF_HTML_H_INCLUDED_
#define _PROF_HTML_H_INCLUDED_


#include "base/prof_base.h"


/* the longest possible beginning: the byte after the name decides */

#define PROF_HTML_HELD  (sizeof("</body") - 1)

/* longer names than "plaintext" are not names of elements with text only */

#define PROF_HTML_NAME  10


typedef struct {
    uint8_t  state;
    uint8_t  closing;           /* 1: the tag is an end tag */
    uint8_t  escape;            /* in a script: within "<!--", within an
                                   inner <script> */
    uint8_t  dashes;            /* the dashes before the next byte, up to 2 */
    uint8_t  attribute;         /* 1: the attribute's name was read */
    uint8_t  nname;
    uint8_t  nraw;
    char     name[PROF_HTML_NAME];
    char     raw[PROF_HTML_NAME];       /* the name of the end tag that ends
                                           the text, if not empty */
} prof_html_t;


PROF_HIDDEN_BEGIN

void prof_html_init(prof_html_t *h);

/*
 * Reads a piece.  Returns 1 if the piece has the end tag, with the offset of
 * its "<" in *at; the caller then makes no further calls.  Otherwise returns
 * 0, with the offset of a possible beginning of the end tag in *at, or len.
 *
 * An offset below 0 is in earlier pieces.  At most PROF_HTML_HELD bytes are
 * undecided.  The caller holds back this number of bytes.
 */
int prof_html_scan(prof_html_t *h, const unsigned char *s, size_t len,
    ptrdiff_t *at);

PROF_HIDDEN_END


#endif /* _PROF_HTML_H_INCLUDED_ */
