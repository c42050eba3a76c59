
/*
 * Copyright (C) The ngx_http_profile_module authors

 */


#include "profile/prof_profile.h"
#include "stacks/prof_take.h"


uint32_t
prof_fold(prof_tree_t *t, uint32_t node, const prof_sample_t *sample,
    uintptr_t empty, prof_stats_t *st)
{
    uint64_t  lost;

    if (sample->end) {
        node = prof_tree_frame(t, node, sample->end, st);
    }

    lost = st->lost_tree;

    node = prof_tree_stack(t, node, sample->pcs + sample->nkernel,
                           sample->nframes - sample->nkernel, st);

    if (node == PROF_NONE) {
        node = prof_tree_frame(t, node, empty, st);
    }

    if (sample->nkernel && st->lost_tree == lost) {
        node = prof_tree_stack(t, node, sample->pcs, sample->nkernel, st);
    }

    return node;
}


uint32_t
prof_fold_outer(prof_tree_t *t, const prof_outer_t *outer, prof_stats_t *st)
{
    uint32_t  i, node;

    node = PROF_NONE;

    for (i = 0; i < outer->nspans; i++) {
        node = prof_tree_frame(t, node, outer->spans[i], st);
    }

    return node;
}
