
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_text.h"

#include <string.h>


#define PROF_MARKUP_REPLACEMENT  "\xef\xbf\xbd"
#define PROF_MARKUP_ELLIPSIS     "\xe2\x80\xa6"


static const char *prof_markup_char(const char *s, size_t n);
static int prof_markup_hidden(uint32_t c);


void
prof_markup_text(prof_buf_t *b, const char *s, size_t len, size_t max)
{
    size_t       n;
    const char  *last, *plain, *text;

    /* an empty buffer may have no memory */

    if (len == 0) {
        return;
    }

    last = s + len;
    plain = s;

    while (s < last) {
        n = prof_text_char(s, last - s);

        if (len > max && n > max) {
            break;
        }

        text = n ? prof_markup_char(s, n) : PROF_MARKUP_REPLACEMENT;

        n = n ? n : 1;
        max -= n < max ? n : max;

        if (text) {
            prof_buf_append(b, plain, s - plain);
            prof_buf_puts(b, text);
            plain = s + n;
        }

        s += n;

        if (max == 0) {
            break;
        }
    }

    prof_buf_append(b, plain, s - plain);

    if (s < last) {
        prof_buf_puts(b, PROF_MARKUP_ELLIPSIS);
    }
}


/* returns the escape of the character, or NULL without an escape */

static const char *
prof_markup_char(const char *s, size_t n)
{
    uint32_t              c;
    const unsigned char  *p;

    p = (const unsigned char *) s;

    switch (p[0]) {

    case '&':
        return "&amp;";

    case '<':
        return "&lt;";

    case '>':
        return "&gt;";

    case '"':
        return "&quot;";

    case '\'':
        return "&#39;";
    }

    c = p[0];

    if (n == 2) {
        c = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);

    } else if (n == 3) {
        c = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    }

    return n < 4 && prof_markup_hidden(c) ? PROF_MARKUP_REPLACEMENT : NULL;
}


/*
 * Returns whether the character is a control character, changes the direction
 * of writing, or is not a character.
 */

static int
prof_markup_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0)
           || c == 0x61c || c == 0x200e || c == 0x200f
           || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)
           || c == 0xfffe || c == 0xffff;
}


void
prof_markup_percent(prof_buf_t *b, uint64_t part, uint64_t whole,
    uint32_t decimals)
{
    char      digits[8];
    uint32_t  i;
    uint64_t  n, scale;

    scale = 1;

    for (i = 0; i < decimals; i++) {
        scale *= 10;
    }

    n = 0;

    if (whole) {
        n = (uint64_t) (((unsigned __int128) part * 100 * scale + whole / 2)
                        / whole);
    }

    prof_buf_number(b, n / scale);
    n %= scale;

    while (decimals && n % 10 == 0) {
        decimals--;
        n /= 10;
    }

    for (i = decimals; i > 0; i--) {
        digits[i - 1] = (char) ('0' + n % 10);
        n /= 10;
    }

    if (decimals) {
        prof_buf_puts(b, ".");
        prof_buf_append(b, digits, decimals);
    }
}
