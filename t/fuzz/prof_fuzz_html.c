
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes pages in pieces.  The first two bytes are the lengths of alternate
 * pieces.  The result must not depend on them.
 */


#include "html/prof_html.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int             found, whole;
    size_t          n, len, read;
    uint8_t        *s;
    unsigned        turn;
    ptrdiff_t       at, end;
    prof_html_t     h;
    const uint8_t  *page;

    if (size < 2) {
        return 0;
    }

    page = data + 2;
    len = size - 2;

    prof_html_init(&h);
    whole = prof_html_scan(&h, page, len, &end);

    if (end < 0 || end > (ptrdiff_t) len
        || (whole && strncasecmp((const char *) page + end, "</body",
                                 PROF_HTML_HELD) != 0)
        || (!whole && len - end > PROF_HTML_HELD))
    {
        abort();
    }

    prof_html_init(&h);
    turn = 0;
    read = 0;
    found = 0;
    at = 0;

    while (read < len && !found) {
        n = data[turn++ & 1];
        n = (n == 0 || n > len - read) ? len - read : n;

        /*
         * A copy of the exact size, so the sanitizer detects reads past the
         * end.
         */

        s = malloc(n);
        if (s == NULL) {
            abort();
        }

        memcpy(s, page + read, n);

        found = prof_html_scan(&h, s, n, &at);
        free(s);

        if (at > (ptrdiff_t) n || at < -(ptrdiff_t) PROF_HTML_HELD
            || (!found && (ptrdiff_t) n - at > (ptrdiff_t) PROF_HTML_HELD))
        {
            abort();
        }

        at += (ptrdiff_t) read;
        read += n;
    }

    if (found != whole || at != end) {
        abort();
    }

    return 0;
}
