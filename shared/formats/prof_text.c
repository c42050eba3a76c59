
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_text.h"

#include <stdlib.h>
#include <string.h>


#define PROF_TEXT_REPLACEMENT  "\xef\xbf\xbd"


size_t
prof_text_char(const char *s, size_t len)
{
    size_t                i, n;
    uint32_t              c, min;
    const unsigned char  *p;

    p = (const unsigned char *) s;

    if (len == 0) {
        return 0;
    }

    c = p[0];

    if (c < 0x80) {
        return 1;
    }

    if (c >= 0xc0 && c < 0xe0) {
        n = 2;
        c &= 0x1f;
        min = 0x80;

    } else if (c >= 0xe0 && c < 0xf0) {
        n = 3;
        c &= 0x0f;
        min = 0x800;

    } else if (c >= 0xf0 && c < 0xf8) {
        n = 4;
        c &= 0x07;
        min = 0x10000;

    } else {
        return 0;
    }

    if (n > len) {
        return 0;
    }

    for (i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }

        c = (c << 6) | (p[i] & 0x3f);
    }

    if (c < min || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        return 0;
    }

    return n;
}


char *
prof_text_utf8(const char *s, size_t *len)
{
    char    *dst, *text;
    size_t   i, left, n;

    left = *len;

    text = malloc(left * (sizeof(PROF_TEXT_REPLACEMENT) - 1) + 1);
    if (text == NULL) {
        return NULL;
    }

    dst = text;

    while (left) {
        n = prof_text_char(s, left);

        if (n == 0) {
            dst = stpcpy(dst, PROF_TEXT_REPLACEMENT);
            n = 1;

        } else {
            for (i = 0; i < n; i++) {
                *dst++ = s[i];
            }
        }

        s += n;
        left -= n;
    }

    *dst = '\0';
    *len = dst - text;

    return text;
}


void
prof_text_json(prof_buf_t *b, const char *s, size_t len)
{
    size_t       n;
    const char  *escape, *last, *plain;

    static const char  specials[] = "\"\\\b\f\n\r\t";
    static const char  letters[] = "\"\\bfnrt";

    /* the data of an empty buffer are NULL */
    last = len ? s + len : s;
    plain = s;

    prof_buf_puts(b, "\"");

    while (s < last) {
        n = prof_text_char(s, last - s);
        escape = *s ? strchr(specials, *s) : NULL;

        if (n && escape == NULL && (unsigned char) *s >= 0x20) {
            s += n;
            continue;
        }

        prof_buf_append(b, plain, s - plain);

        if (n == 0) {
            prof_buf_puts(b, PROF_TEXT_REPLACEMENT);

        } else if (escape) {
            prof_buf_printf(b, "\\%c", letters[escape - specials]);

        } else {
            prof_buf_printf(b, "\\u%04X", *s);
        }

        plain = ++s;
    }

    /* an empty buffer may have no memory */

    if (plain < last) {
        prof_buf_append(b, plain, s - plain);
    }

    prof_buf_puts(b, "\"");
}
