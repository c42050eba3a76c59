
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A view of a profile for encoders: the call tree of functions.
 *
 * The profile's own tree is one of addresses.  Here all addresses of a
 * function at the same place of the tree are one node, which knows the weight
 * of itself and of all below it, for each mode.
 *
 * A view refers to its profile, which must outlive it.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_VIEW_H_INCLUDED_
#define _PROF_VIEW_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"


#define PROF_VIEW_MODES  2      /* weights are indexed by prof_mode_e */


typedef struct {
    const char  *name;
    uint32_t     frame;         /* the first of the profile's frames in it */
} prof_view_function_t;


/* of the times, that of the mode */

#define prof_view_mode(p)                                                     \
    ((p)->mode == PROF_MODE_CPU ? PROF_MODE_CPU : PROF_MODE_WALL)


/* parents precede their children */

typedef struct {
    uint32_t     parent;        /* index, or PROF_NONE for a root */
    uint32_t     function;      /* index */
    uint32_t     depth;         /* 0 for a root */
    uint32_t     child;         /* first child, or PROF_NONE; the children
                                   are in the order of their names */
    uint32_t     next;          /* next child of the parent, or PROF_NONE */
    uint32_t     samples;       /* sampled stacks that end here */
    uint64_t     self[PROF_VIEW_MODES];
    uint64_t     total[PROF_VIEW_MODES];
} prof_view_node_t;


typedef struct {
    prof_view_function_t  *functions;
    uint32_t               nfunctions;
    prof_view_node_t      *nodes;
    uint32_t               nnodes;
    uint32_t               root;        /* first root, or PROF_NONE; the
                                           others follow by "next" */
    uint32_t               depth;       /* of the deepest node, plus one */
    uint32_t              *map;         /* profile's node -> node */
    uint64_t               total[PROF_VIEW_MODES];
    char                 **names;       /* owned texts, or NULL */
} prof_view_t;


/*
 * A text for a frame, malloc()ed; NULL when memory is short.
 */

typedef char *(*prof_view_name_pt)(const prof_frame_t *f);


PROF_HIDDEN_BEGIN

/*
 * Builds the view of a symbolized profile.
 *
 * Without a name function, functions are told apart by object, unwind entry,
 * name and source line.  With one, all frames of which it makes the same text
 * are one function, of that name.
 *
 * Returns NULL when memory is short.
 */
prof_view_t *prof_view_create(const prof_profile_t *p,
    prof_view_name_pt name);
void prof_view_destroy(prof_view_t *v);

PROF_HIDDEN_END


#endif /* _PROF_VIEW_H_INCLUDED_ */
