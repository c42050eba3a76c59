
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "scripts/prof_engine.h"


static const prof_engine_t *const  prof_engines[PROF_ENGINES] = {
    &prof_luajit_engine,
    &prof_njs_engine,
    &prof_perl_engine
};


static const char  *prof_engine_states[PROF_ENGINES];


void
prof_engines_attach(prof_unwind_t *u, int trials)
{
    int                  rc;
    uint32_t             i;
    const char          *state;
    prof_engine_code_t   code;

    for (i = 0; i < PROF_ENGINES; i++) {
        rc = prof_engines[i]->attach(u, trials, &code, &state);

        prof_engine_states[i] = (rc == PROF_LIMIT) ? NULL : state;

        if (rc == PROF_OK) {
            prof_unwind_engine(u, &code);
        }
    }
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
