
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_hex.h"


int
prof_hex_parse(const char *text, size_t len, uint64_t *value)
{
    char    c;
    size_t  i;

    *value = 0;

    for (i = 0; i < len; i++) {
        c = text[i];

        if (c >= '0' && c <= '9') {
            *value = *value << 4 | (uint64_t) (c - '0');

        } else if (c >= 'a' && c <= 'f') {
            *value = *value << 4 | (uint64_t) (c - 'a' + 10);

        } else {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}
