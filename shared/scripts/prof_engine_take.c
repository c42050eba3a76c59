
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stacks that an engine takes of its own known script.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"
#include "unwind/prof_arch.h"
#include "unwind/prof_table.h"

#include <string.h>


uint32_t
prof_engine_take(prof_unwind_t *u, const prof_engine_code_t *code,
    prof_walk_cache_t *cache, uintptr_t top, uintptr_t *pcs)
{
    uint32_t             n, end;
    ucontext_t           uc;
    prof_stats_t         stats;
    prof_engine_code_t   engines[PROF_ENGINES];

    memset(&stats, 0, sizeof(stats));
    memcpy(engines, u->engines, sizeof(engines));

    memset(u->engines, 0, sizeof(engines));
    u->engines[0] = *code;

    /* the cache may have rows of the code without the engine */

    cache->snapshot = 0;

    prof_arch_here(&uc);

    n = prof_walk(u, cache, &uc, top, pcs, PROF_MAX_DEPTH, &stats, &end);

    memcpy(u->engines, engines, sizeof(engines));

    return n;
}
