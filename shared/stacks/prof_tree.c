
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "stacks/prof_tree.h"
#include "base/prof_hash.h"
#include "profile/prof_profile.h"

#include <string.h>


/* in a new tree, the chains fill one page */
#define PROF_TREE_CHAINS  1024

/* nodes for each chain before the number of chains grows */
#define PROF_TREE_LOAD    4


static uint32_t prof_tree_child(prof_tree_t *t, uint32_t parent,
    uint64_t key);
static void prof_tree_grow(prof_tree_t *t);
static uint32_t prof_tree_chain(const prof_tree_t *t, uint32_t parent,
    uint64_t key);


void
prof_tree_init(prof_tree_t *t, void *mem, size_t size)
{
    uint32_t  n;

    /* a full tree has four to eight nodes for each chain */

    for (n = 64; 8 * n * sizeof(prof_tree_node_t) <= size; n *= 2) {
        /* void */
    }

    t->nodes = mem;
    t->max = (size - n * sizeof(uint32_t)) / sizeof(prof_tree_node_t);
    t->chains = (uint32_t *) (t->nodes + t->max);
    t->max_mask = n - 1;
    t->mask = (n < PROF_TREE_CHAINS ? n : PROF_TREE_CHAINS) - 1;
    t->nnodes = 0;

    memset(t->chains, 0, ((size_t) t->mask + 1) * sizeof(uint32_t));

    t->full = prof_tree_child(t, PROF_NONE, prof_key(PROF_FRAME_TREE_FULL, 0));
}


/* the linker defines these symbols if the section of PROF_GLUE exists */

extern const char  __start_prof_glue[]
    __attribute__((weak, visibility("hidden")));
extern const char  __stop_prof_glue[]
    __attribute__((weak, visibility("hidden")));


uint32_t
prof_tree_stack(prof_tree_t *t, uint32_t node, const uintptr_t *pcs,
    uint32_t n, prof_stats_t *st)
{
    uint32_t  i, child, interrupted;

    interrupted = prof_tree_interrupted(pcs, n);

    for (i = n; i-- > 0; node = child) {

        if (pcs[i] >= (uintptr_t) __start_prof_glue
            && pcs[i] < (uintptr_t) __stop_prof_glue)
        {
            child = node;
            continue;
        }

        child = prof_tree_child(t, node,
                                prof_key(pcs[i], i > interrupted
                                               && !prof_frame_is_name(pcs[i])));

        if (child == PROF_NONE) {
            st->lost_tree++;
            return (node == PROF_NONE) ? t->full : node;
        }
    }

    return node;
}


uint32_t
prof_tree_frame(prof_tree_t *t, uint32_t node, uintptr_t pc, prof_stats_t *st)
{
    uint32_t  child;

    child = prof_tree_child(t, node, prof_key(pc, 0));

    if (child == PROF_NONE) {
        st->lost_tree++;
        return (node == PROF_NONE) ? t->full : node;
    }

    return child;
}


static uint32_t
prof_tree_child(prof_tree_t *t, uint32_t parent, uint64_t key)
{
    uint32_t           i, chain;
    prof_tree_node_t  *node;

    chain = prof_tree_chain(t, parent, key);

    for (i = t->chains[chain]; i != 0; i = node->next) {
        node = &t->nodes[i - 1];

        if (node->key == key && node->parent == parent) {
            return i - 1;
        }
    }

    if (t->nnodes == t->max) {
        return PROF_NONE;
    }

    if (t->nnodes / PROF_TREE_LOAD > t->mask && t->mask < t->max_mask) {
        prof_tree_grow(t);
        chain = prof_tree_chain(t, parent, key);
    }

    i = t->nnodes++;

    node = &t->nodes[i];
    node->key = key;
    node->parent = parent;
    node->next = t->chains[chain];

    t->chains[chain] = i + 1;

    return i;
}


static void
prof_tree_grow(prof_tree_t *t)
{
    uint32_t           i, chain;
    prof_tree_node_t  *node;

    t->mask = t->mask * 2 + 1;

    memset(t->chains, 0, ((size_t) t->mask + 1) * sizeof(uint32_t));

    for (i = 0; i < t->nnodes; i++) {
        node = &t->nodes[i];

        chain = prof_tree_chain(t, node->parent, node->key);

        node->next = t->chains[chain];
        t->chains[chain] = i + 1;
    }
}


static uint32_t
prof_tree_chain(const prof_tree_t *t, uint32_t parent, uint64_t key)
{
    uint64_t  h;

    h = prof_hash(key ^ ((uint64_t) parent << 40) ^ parent);

    return (uint32_t) (h >> 32) & t->mask;
}
