
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes values of Accept and Accept-Encoding.  The first byte chooses the
 * default.
 */


#include "formats/prof_accept.h"

#include <stdlib.h>
#include <string.h>


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char                  *s;
    size_t                 i, len, n;
    const prof_encoder_t  *def, *e;

    if (size == 0) {
        return 0;
    }

    for (n = 0; prof_encoders[n]; n++) { /* void */ }

    def = prof_encoders[data[0] % n];
    len = size - 1;

    /* a copy of the exact size, so the sanitizer detects reads past the end */

    s = malloc(len + (len == 0));
    if (s == NULL) {
        abort();
    }

    memcpy(s, data + 1, len);

    e = prof_accept_encoder(s, len, def);

    for (i = 0; prof_encoders[i] != e; i++) {
        if (prof_encoders[i] == NULL) {
            abort();
        }
    }

    /* a header without names selects the default, and no encoding */

    if (memchr(s, '/', len) == NULL && memchr(s, '*', len) == NULL
        && e != def)
    {
        abort();
    }

    if (prof_accept_gzip(s, len) && memchr(s, '*', len) == NULL
        && memchr(s, 'z', len) == NULL && memchr(s, 'Z', len) == NULL)
    {
        abort();
    }

    free(s);

    return 0;
}
