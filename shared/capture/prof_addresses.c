
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names for addresses of this process that do not come from samples.
 */


#include "capture/prof_turn.h"

#include <string.h>


prof_profile_t *
prof_process_addresses(const uintptr_t *pcs, uint32_t n, uint32_t *nodes)
{
    uint32_t              i;
    uintptr_t             pc;
    prof_stats_t          stats;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;
    const prof_unwind_t  *u;

    u = prof_process_refresh();
    if (u == NULL) {
        return NULL;
    }

    /* the call tree gets half of the memory */

    conf.frequency = PROF_FREQUENCY_MIN;
    conf.mode = PROF_MODE_CPU;
    conf.memory = PROF_MEMORY_MIN + (size_t) n * 4 * sizeof(prof_tree_node_t);

    c = prof_capture_create(&conf);
    if (c == NULL) {
        return NULL;
    }

    memset(&stats, 0, sizeof(prof_stats_t));

    for (i = 0; i < n; i++) {
        pc = pcs[i];

        if (prof_frame_is_name(pc) || prof_frame_is_script(pc)) {
            nodes[i] = PROF_NONE;
            continue;
        }

        (void) prof_unwind_mark(&u, 1, &pc, 0);
        nodes[i] = prof_tree_frame(&c->tree, PROF_NONE, pc, &stats);
    }

    p = prof_capture_finish(c, "addresses");

    prof_capture_destroy(c);

    return p;
}
