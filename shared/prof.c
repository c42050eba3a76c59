
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The process's unwind tables: one snapshot, replaced when objects were
 * loaded since it was made and nobody samples or holds it.
 */


#include "prof.h"


static prof_unwind_t  *prof_unwind;
static uint32_t        prof_holds;


int
prof_process_init(void)
{
    prof_unwind_t  *u;

    if (prof_unwind && (prof_holds || !prof_unwind_stale(prof_unwind))) {
        return PROF_OK;
    }

    u = prof_unwind_create();
    if (u == NULL) {
        return PROF_ERROR;
    }

    prof_process_done();

    prof_unwind = u;

    return PROF_OK;
}


void
prof_process_done(void)
{
    if (prof_unwind) {
        prof_unwind_destroy(prof_unwind);
        prof_unwind = NULL;
    }
}


void
prof_process_hold(void)
{
    prof_holds++;
}


void
prof_process_release(void)
{
    prof_holds--;
}


const prof_unwind_t *
prof_process_unwind(void)
{
    return prof_unwind;
}
