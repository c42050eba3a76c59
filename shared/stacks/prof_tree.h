
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The call tree of a capture: stacks that share their outer frames share
 * nodes.  A node has 16 bytes.  Nodes are found through one array of chains,
 * which grows in place with the tree, so a small tree touches few pages.  The
 * caller provides the memory at the start; it never grows.  When it is full, a
 * new stack ends at its deepest existing node.
 *
 * Context: the capture's thread; not in a signal.
 */


#ifndef _PROF_TREE_H_INCLUDED_
#define _PROF_TREE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"


/*
 * A frame's key: an address, and whether it is a return address.  A return
 * address behind a call that does not return belongs to the next function.
 * The key loses the highest bit of an address.  This is no loss: the two
 * highest bits of an address are the same, and the highest bit of a mark is
 * not used.
 */

#define prof_key(pc, call)  (((uint64_t) (pc) << 1) | ((call) != 0))
#define prof_key_pc(key)    ((uintptr_t) ((int64_t) (key) >> 1))
#define prof_key_call(key)  ((uint32_t) ((key) & 1))


/*
 * Returns the index of the interrupted instruction in a stack.  The functions
 * of a script that the instruction runs stand before the instruction.
 */

static inline uint32_t
prof_tree_interrupted(const uintptr_t *pcs, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n && prof_frame_is_script(pcs[i]); i++) {
        /* void */
    }

    return i;
}


typedef struct {
    uint64_t           key;
    uint32_t           parent;      /* index, PROF_NONE for a root */
    uint32_t           next;        /* in the chain: index + 1, 0 at its end */
} prof_tree_node_t;


typedef struct {
    prof_tree_node_t  *nodes;
    uint32_t          *chains;      /* index + 1 of the first, 0: empty */
    uint32_t           nnodes;
    uint32_t           max;         /* nodes that fit in the memory */
    uint32_t           mask;        /* number of chains - 1 */
    uint32_t           max_mask;    /* mask for "max" nodes */
    uint32_t           full;        /* root for stacks without a node */
} prof_tree_t;


PROF_HIDDEN_BEGIN

/*
 * Lays the tree out in size bytes at mem, which are aligned to 8.
 * Pages that are not needed yet are not touched.
 */
void prof_tree_init(prof_tree_t *t, void *mem, size_t size);

/*
 * Returns the node of a stack below "node" (PROF_NONE: a whole stack).  pcs are
 * innermost first, as prof_walk() returns them: an interrupted instruction,
 * then return addresses, and functions of scripts between them.  Functions that
 * are PROF_GLUE are omitted.
 */
uint32_t prof_tree_stack(prof_tree_t *t, uint32_t node, const uintptr_t *pcs,
    uint32_t n, prof_stats_t *st);

/* returns the node of one frame: the start of a function, or a name */
uint32_t prof_tree_frame(prof_tree_t *t, uint32_t node, uintptr_t pc,
    prof_stats_t *st);

PROF_HIDDEN_END


#endif /* _PROF_TREE_H_INCLUDED_ */
