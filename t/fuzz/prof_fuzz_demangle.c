
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes names of symbols, which may contain anything.
 */


#include "formats/prof_text.h"
#include "names/prof_mangled.h"
#include "symbolizer/prof_demangle.h"

#include <stdlib.h>
#include <string.h>


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char    *name, *text;
    size_t   i, len, n;

    name = strndup((const char *) data, size);

    if (name == NULL || prof_demangle(&name) != PROF_OK) {
        abort();
    }

    /* no result may look like a mangled name to viewers */

    if (prof_mangled(name)) {
        abort();
    }

    len = strlen(name);

    text = prof_text_utf8(name, &len);
    if (text == NULL || strlen(text) != len) {
        abort();
    }

    for (i = 0; i < len; i += n) {
        n = prof_text_char(text + i, len - i);

        if (n == 0) {
            abort();
        }
    }

    free(name);
    free(text);

    return 0;
}
