
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Everything but markup: comments, and the text of scripts and similar
 * elements.
 */


#include "html/prof_html_state.h"

#include <string.h>


static void prof_html_raw_name(prof_html_t *h, unsigned char ch);
static void prof_html_dashes(prof_html_t *h, unsigned char ch);


void
prof_html_comment(prof_html_t *h, unsigned char ch)
{
    switch (h->state) {

    case PROF_HTML_DECLARATION:
        if (ch == '-') {
            h->state = PROF_HTML_DECLARATION_DASH;
            return;
        }

        h->state = PROF_HTML_BOGUS_COMMENT;
        break;

    case PROF_HTML_DECLARATION_DASH:
        if (ch == '-') {
            h->state = PROF_HTML_COMMENT_START;
            h->dashes = 0;
            return;
        }

        h->state = PROF_HTML_BOGUS_COMMENT;
        break;

    case PROF_HTML_COMMENT_START:
        if (ch == '-' && h->dashes == 0) {
            h->dashes = 1;
            return;
        }

        if (ch == '>') {
            break;
        }

        h->state = PROF_HTML_COMMENT;
        prof_html_dashes(h, ch);
        return;

    case PROF_HTML_COMMENT:
        if (h->dashes == 2 && ch == '!') {
            h->state = PROF_HTML_COMMENT_BANG;
            h->dashes = 0;
            return;
        }

        if (h->dashes == 2 && ch == '>') {
            break;
        }

        prof_html_dashes(h, ch);
        return;

    case PROF_HTML_COMMENT_BANG:
        if (ch == '>') {
            break;
        }

        h->state = PROF_HTML_COMMENT;
        prof_html_dashes(h, ch);
        return;

    default:
        break;
    }

    if (ch == '>') {
        h->state = PROF_HTML_TEXT;
    }
}


/*
 * Text until an end tag.  In a script, the text after "<!--" may contain whole
 * scripts, whose end tags do not end it.
 */

void
prof_html_raw(prof_html_t *h, unsigned char ch)
{
    uint8_t  state;

    state = h->state;

    if (state == PROF_HTML_RAW_NAME) {
        prof_html_raw_name(h, ch);
        return;
    }

    h->state = PROF_HTML_RAW;

    if (state == PROF_HTML_RAW_OPEN && ch == '/') {
        h->state = PROF_HTML_RAW_END_OPEN;

    } else if (state == PROF_HTML_RAW_OPEN && ch == '!' && !h->escape) {
        h->state = PROF_HTML_RAW_DECLARATION;

    } else if (state == PROF_HTML_RAW_DECLARATION && ch == '-') {
        h->state = PROF_HTML_RAW_DECLARATION_DASH;

    } else if (state == PROF_HTML_RAW_DECLARATION_DASH && ch == '-') {
        h->escape = (h->nraw == 6 && memcmp(h->raw, "script", 6) == 0);
        h->dashes = 2;
        return;

    } else if ((state == PROF_HTML_RAW_OPEN && h->escape)
               || state == PROF_HTML_RAW_END_OPEN)
    {
        if (prof_html_letter(ch)) {
            prof_html_begin_name(h, ch, PROF_HTML_RAW_NAME,
                                 state == PROF_HTML_RAW_END_OPEN);
        }
    }

    if (h->state == PROF_HTML_RAW) {

        if (ch == '<') {
            h->state = PROF_HTML_RAW_OPEN;

        } else if (ch == '>' && h->dashes == 2) {
            h->escape = 0;
        }
    }

    prof_html_dashes(h, ch);
}


static void
prof_html_raw_name(prof_html_t *h, unsigned char ch)
{
    if (!prof_html_ends_name(ch) && ch != '<' && ch != '-') {
        prof_html_add_name(h, ch);
        return;
    }

    h->state = PROF_HTML_RAW;

    if (h->nname != h->nraw || memcmp(h->name, h->raw, h->nraw) != 0
        || !prof_html_ends_name(ch))
    {
        prof_html_raw(h, ch);
        return;
    }

    if (!h->closing) {
        h->escape = 2;
        return;
    }

    if (h->escape == 2) {
        h->escape = 1;
        return;
    }

    prof_html_begin_attributes(h, ch);
}


static void
prof_html_dashes(prof_html_t *h, unsigned char ch)
{
    if (ch != '-') {
        h->dashes = 0;

    } else if (h->dashes < 2) {
        h->dashes++;
    }
}
