
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "scripts/prof_engine.h"

#include <string.h>


static const prof_engine_t *const  prof_engines[PROF_ENGINES] = {
    &prof_luajit_engine,
    &prof_perl_engine
};


static const char  *prof_engine_states[PROF_ENGINES];


void
prof_engines_attach(prof_unwind_t *u)
{
    int                  rc;
    uint32_t             i;
    const char          *state;
    prof_engine_code_t   code;

    for (i = 0; i < PROF_ENGINES; i++) {
        rc = prof_engines[i]->attach(u, &code, &state);

        prof_engine_states[i] = (rc == PROF_LIMIT) ? NULL : state;

        if (rc == PROF_OK) {
            prof_unwind_engine(u, &code);
        }
    }
}


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


const char *
prof_engines_state(uint32_t i, const char **name)
{
    if (i >= PROF_ENGINES) {
        *name = NULL;
        return NULL;
    }

    *name = prof_engines[i]->name;

    return prof_engine_states[i];
}
