
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "html/prof_html_state.h"

#include <string.h>


static int prof_html_step(prof_html_t *h, unsigned char ch);
static int prof_html_name(prof_html_t *h, unsigned char ch);
static void prof_html_open(prof_html_t *h, unsigned char ch);
static void prof_html_attributes(prof_html_t *h, unsigned char ch);
static void prof_html_end_tag(prof_html_t *h);
static int prof_html_is(const prof_html_t *h, const char *name);
static size_t prof_html_doubt(const prof_html_t *h);


/*
 * Elements whose content is text until their end tag.  "noscript" is such an
 * element if scripts run, and the inserted page needs scripts.
 */

static const char  *prof_html_raw_elements[] = {
    "script", "style", "textarea", "title", "noscript", "iframe", "noembed",
    "noframes", "plaintext", "xmp", NULL
};


void
prof_html_init(prof_html_t *h)
{
    memset(h, 0, sizeof(prof_html_t));
}


int
prof_html_scan(prof_html_t *h, const unsigned char *s, size_t len,
    ptrdiff_t *at)
{
    const unsigned char  *p, *last;

    last = s + len;

    for (p = s; p < last; p++) {

        if (h->state == PROF_HTML_TEXT
            || (h->state == PROF_HTML_RAW && !h->escape))
        {
            p = memchr(p, '<', last - p);

            if (p == NULL) {
                break;
            }
        }

        if (prof_html_step(h, *p)) {
            *at = p - s - (ptrdiff_t) PROF_HTML_HELD;
            return 1;
        }
    }

    *at = (ptrdiff_t) len - (ptrdiff_t) prof_html_doubt(h);

    return 0;
}


/* returns how many of the last bytes may be the beginning of the end tag */

static size_t
prof_html_doubt(const prof_html_t *h)
{
    switch (h->state) {

    case PROF_HTML_OPEN:
        return 1;

    case PROF_HTML_END_OPEN:
        return 2;

    case PROF_HTML_TAG_NAME:
        if (h->closing && h->nname <= 4
            && memcmp(h->name, "body", h->nname) == 0)
        {
            return 2 + h->nname;
        }

        return 0;

    default:
        return 0;
    }
}


static int
prof_html_step(prof_html_t *h, unsigned char ch)
{
    switch (h->state) {

    case PROF_HTML_TEXT:
        if (ch == '<') {
            h->state = PROF_HTML_OPEN;
        }

        return 0;

    case PROF_HTML_OPEN:
    case PROF_HTML_END_OPEN:
        prof_html_open(h, ch);
        return 0;

    case PROF_HTML_TAG_NAME:
        return prof_html_name(h, ch);

    case PROF_HTML_ATTRIBUTES:
    case PROF_HTML_BEFORE_VALUE:
    case PROF_HTML_VALUE:
    case PROF_HTML_DOUBLE_QUOTED:
    case PROF_HTML_SINGLE_QUOTED:
        prof_html_attributes(h, ch);
        return 0;

    case PROF_HTML_RAW:
    case PROF_HTML_RAW_OPEN:
    case PROF_HTML_RAW_END_OPEN:
    case PROF_HTML_RAW_NAME:
    case PROF_HTML_RAW_DECLARATION:
    case PROF_HTML_RAW_DECLARATION_DASH:
        prof_html_raw(h, ch);
        return 0;

    default:
        prof_html_comment(h, ch);
        return 0;
    }
}


static void
prof_html_open(prof_html_t *h, unsigned char ch)
{
    uint8_t  closing;

    closing = (h->state == PROF_HTML_END_OPEN);

    if (prof_html_letter(ch)) {
        prof_html_begin_name(h, ch, PROF_HTML_TAG_NAME, closing);
        return;
    }

    if (closing) {

        /* "</>" is ignored, "</ a>" is a comment */

        h->state = (ch == '>') ? PROF_HTML_TEXT : PROF_HTML_BOGUS_COMMENT;
        return;
    }

    switch (ch) {

    case '/':
        h->state = PROF_HTML_END_OPEN;
        break;

    case '!':
        h->state = PROF_HTML_DECLARATION;
        break;

    case '?':
        h->state = PROF_HTML_BOGUS_COMMENT;
        break;

    case '<':
        break;

    default:
        h->state = PROF_HTML_TEXT;
        break;
    }
}


void
prof_html_begin_name(prof_html_t *h, unsigned char ch, uint8_t state,
    uint8_t closing)
{
    h->state = state;
    h->closing = closing;
    h->nname = 0;

    prof_html_add_name(h, ch);
}


/* a full buffer shows that the name is too long */

void
prof_html_add_name(prof_html_t *h, unsigned char ch)
{
    if (h->nname == PROF_HTML_NAME) {
        return;
    }

    if (ch >= 'A' && ch <= 'Z') {
        ch |= 0x20;
    }

    h->name[h->nname++] = (char) ch;
}


/* returns 1 at the end tag of the body */

static int
prof_html_name(prof_html_t *h, unsigned char ch)
{
    if (!prof_html_ends_name(ch)) {
        prof_html_add_name(h, ch);
        return 0;
    }

    if (h->closing && prof_html_is(h, "body")) {
        return 1;
    }

    prof_html_begin_attributes(h, ch);

    return 0;
}


void
prof_html_begin_attributes(prof_html_t *h, unsigned char ch)
{
    h->state = PROF_HTML_ATTRIBUTES;
    h->attribute = 0;

    prof_html_attributes(h, ch);
}


static void
prof_html_attributes(prof_html_t *h, unsigned char ch)
{
    switch (h->state) {

    case PROF_HTML_DOUBLE_QUOTED:
        if (ch == '"') {
            h->state = PROF_HTML_ATTRIBUTES;
        }

        return;

    case PROF_HTML_SINGLE_QUOTED:
        if (ch == '\'') {
            h->state = PROF_HTML_ATTRIBUTES;
        }

        return;

    case PROF_HTML_BEFORE_VALUE:
        if (ch == '"') {
            h->state = PROF_HTML_DOUBLE_QUOTED;
            return;
        }

        if (ch == '\'') {
            h->state = PROF_HTML_SINGLE_QUOTED;
            return;
        }

        if (ch != '>' && prof_html_ends_name(ch) && ch != '/') {
            return;
        }

        h->state = PROF_HTML_VALUE;
        break;

    case PROF_HTML_VALUE:
        if (ch != '/' && prof_html_ends_name(ch)) {
            h->state = PROF_HTML_ATTRIBUTES;
        }

        break;

    default:

        /* a "=" without a name before it begins a name */

        if (ch == '=' && h->attribute) {
            h->state = PROF_HTML_BEFORE_VALUE;
            h->attribute = 0;

        } else if (ch == '/') {
            h->attribute = 0;

        } else if (!prof_html_ends_name(ch)) {
            h->attribute = 1;
        }

        break;
    }

    if (ch == '>') {
        prof_html_end_tag(h);
    }
}


static void
prof_html_end_tag(prof_html_t *h)
{
    const char  **name;

    h->state = PROF_HTML_TEXT;

    if (h->closing) {
        return;
    }

    for (name = prof_html_raw_elements; *name; name++) {

        if (**name == h->name[0] && prof_html_is(h, *name)) {
            h->state = PROF_HTML_RAW;
            h->escape = 0;
            h->dashes = 0;
            h->nraw = h->nname;
            memcpy(h->raw, h->name, h->nname);
            return;
        }
    }
}


static int
prof_html_is(const prof_html_t *h, const char *name)
{
    return h->nname == strlen(name) && memcmp(h->name, name, h->nname) == 0;
}


int
prof_html_letter(unsigned char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}


int
prof_html_ends_name(unsigned char ch)
{
    return ch == '>' || ch == '/' || ch == ' ' || ch == '\t' || ch == '\n'
           || ch == '\r' || ch == '\f';
}
