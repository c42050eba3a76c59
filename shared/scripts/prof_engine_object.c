
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * How an engine finds the object of its interpreter.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"

#include <string.h>


const char  prof_engine_late[] = "off: it was loaded after the configuration";


const prof_object_t *
prof_engine_object(const prof_unwind_t *u, const char *part, uint32_t *next)
{
    const prof_object_t  *object;

    while ((object = prof_unwind_object_at(u, (*next)++)) != NULL) {
        if (strstr(object->path, part)) {
            return object;
        }
    }

    return NULL;
}


uintptr_t
prof_engine_mark(const prof_unwind_t *u, uintptr_t address)
{
    (void) prof_unwind_mark(&u, 1, &address, 0);

    return address;
}
