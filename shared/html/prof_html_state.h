
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Private definitions of the scanner's files.
 */


#ifndef _PROF_HTML_STATE_H_INCLUDED_
#define _PROF_HTML_STATE_H_INCLUDED_


#include "html/prof_html.h"


/*
 * Names are those of the tokenizer's states.  Several of its states are one
 * state here, if the difference does not affect where a tag begins and ends.
 */

typedef enum {
    PROF_HTML_TEXT = 0,
    PROF_HTML_OPEN,             /* after "<" */
    PROF_HTML_END_OPEN,         /* after "</" */
    PROF_HTML_TAG_NAME,
    PROF_HTML_ATTRIBUTES,
    PROF_HTML_BEFORE_VALUE,     /* after "=" */
    PROF_HTML_VALUE,
    PROF_HTML_DOUBLE_QUOTED,
    PROF_HTML_SINGLE_QUOTED,
    PROF_HTML_DECLARATION,      /* after "<!" */
    PROF_HTML_DECLARATION_DASH,
    PROF_HTML_COMMENT_START,    /* after "<!--" or "<!---" */
    PROF_HTML_COMMENT,
    PROF_HTML_COMMENT_BANG,     /* after "--!" */
    PROF_HTML_BOGUS_COMMENT,    /* also a doctype: until ">" */
    PROF_HTML_RAW,
    PROF_HTML_RAW_OPEN,
    PROF_HTML_RAW_END_OPEN,
    PROF_HTML_RAW_NAME,
    PROF_HTML_RAW_DECLARATION,
    PROF_HTML_RAW_DECLARATION_DASH
} prof_html_state_e;


PROF_HIDDEN_BEGIN

/* prof_html.c */

void prof_html_begin_name(prof_html_t *h, unsigned char ch, uint8_t state,
    uint8_t closing);
void prof_html_add_name(prof_html_t *h, unsigned char ch);
void prof_html_begin_attributes(prof_html_t *h, unsigned char ch);
int prof_html_letter(unsigned char ch);
int prof_html_ends_name(unsigned char ch);

/* prof_html_text.c */

void prof_html_comment(prof_html_t *h, unsigned char ch);
void prof_html_raw(prof_html_t *h, unsigned char ch);

PROF_HIDDEN_END


#endif /* _PROF_HTML_STATE_H_INCLUDED_ */
