
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "views/prof_source.h"

#include <string.h>


const prof_source_t  prof_sources[PROF_SOURCE_MAX] = {
    [PROF_SOURCE_NONE] = { "none", "no code" },
    [PROF_SOURCE_OFFSET] = { "offset", "no name" },
    [PROF_SOURCE_INFERRED] = { "inferred", "inferred name" },
    [PROF_SOURCE_UNIT] = { "unit", "inferred source file" },
    [PROF_SOURCE_ROLE] = { "role", "inferred role" },
    [PROF_SOURCE_SCRIPT] = { "script", "interpreter" },
    [PROF_SOURCE_SYMBOLS] = { "symbols", "symbol table" },
    [PROF_SOURCE_DEBUG] = { "debug", "debugging information" },
    [PROF_SOURCE_KERNEL] = { "kernel", "system call" }
};


uint32_t
prof_source_function(const prof_profile_t *p, const prof_view_function_t *func)
{
    return func->inlined ? (uint32_t) PROF_SOURCE_DEBUG
                         : p->frames[func->frame].source;
}


void
prof_source_addresses(const prof_profile_t *p, prof_buf_t *b)
{
    uint32_t  i, n, count[PROF_SOURCE_MAX];

    memset(count, 0, sizeof(count));

    for (i = 0; i < p->nframes; i++) {
        count[p->frames[i].source]++;
    }

    n = 0;

    for (i = PROF_SOURCE_MAX; i > PROF_SOURCE_NONE + 1; i--) {

        if (count[i - 1]) {
            prof_buf_puts(b, n++ ? ", " : "");
            prof_buf_number(b, count[i - 1]);
            prof_buf_puts(b, " ");
            prof_buf_puts(b, prof_sources[i - 1].name);
        }
    }
}
