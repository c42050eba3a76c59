
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names for addresses of this process that do not come from samples.
 */


#include "capture/prof_turn.h"


prof_profile_t *
prof_process_addresses(const uintptr_t *pcs, uint32_t n, uint32_t *nodes)
{
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    if (prof_process_refresh() == NULL) {
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

    p = prof_capture_finish(c, "addresses");

    prof_capture_destroy(c);

    if (p) {
        prof_draft_addresses(p, pcs, n, nodes);
    }

    return p;
}
