
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "names/prof_mangled.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


int
prof_mangled(const char *name)
{
    const char  *p;

    if (strncmp(name, "_Z", 2) == 0 || strncmp(name, "__Z", 3) == 0) {
        return 1;
    }

    if (strncmp(name, "_R", 2) != 0) {
        return 0;
    }

    for (p = name + 2; isdigit((unsigned char) *p); p++) { /* void */ }

    return *p >= 'A' && *p <= 'Z';
}


int
prof_mangled_prefix(char **name)
{
    char  *prefixed;

    if (!prof_mangled(*name)) {
        return PROF_OK;
    }

    if (asprintf(&prefixed, "[mangled] %s", *name) == -1) {
        return PROF_ERROR;
    }

    free(*name);
    *name = prefixed;

    return PROF_OK;
}
