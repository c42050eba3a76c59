
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * libiberty reads the encoded names of C++, Rust, D and others.  It limits the
 * depth of its recursion.
 */


#include "names/prof_mangled.h"
#include "symbolizer/prof_demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>


int
prof_demangle(char **name)
{
    int    rc;
    char  *at, *out, *text;

    if (!prof_mangled(*name)) {
        return PROF_OK;
    }

    /* "@plt" is not part of the encoding */

    at = strchr(*name, '@');

    if (at) {
        *at = '\0';
    }

    /* without DMGL_VERBOSE, the hashes of Rust's names are left out */

    text = cplus_demangle(*name, DMGL_AUTO|DMGL_PARAMS|DMGL_ANSI);

    if (at) {
        *at = '@';
    }

    if (text == NULL || prof_mangled(text)) {
        free(text);
        return prof_mangled_prefix(name);
    }

    rc = asprintf(&out, "%s%s", text, at ? at : "");

    free(text);

    if (rc == -1) {
        return PROF_ERROR;
    }

    free(*name);
    *name = out;

    return PROF_OK;
}
