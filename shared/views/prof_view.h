
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A view of a profile for formats: the call tree of functions.
 *
 * The nodes of a profile are addresses.  In a view all addresses of a function
 * with the same callers are one node, with the weight of the node itself and
 * the total with all nodes below.  A frame with inlined functions becomes
 * several nodes.
 *
 * A view refers to its profile, which must outlive it.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_VIEW_H_INCLUDED_
#define _PROF_VIEW_H_INCLUDED_


#include "base/prof_base.h"
#include "profile/prof_profile.h"
#include "profile/prof_measure.h"


/* pictures never show boxes that are narrower than this part of the whole */

#define PROF_VIEW_SHARE  20000


/*
 * The places of a script are functions of their own, because a script waits or
 * runs at a line: "app.lua:40 handler".  A function below a frame that waits
 * differs from the same function where it runs, so that every sum over
 * functions tells waiting from running.
 */

typedef struct {
    const char  *name;
    const char  *file;          /* source; NULL: unknown */
    uint32_t     line;          /* of the place or function; 0: unknown */
    uint32_t     frame;         /* the first frame of the profile in it */
    uint32_t     inlined;       /* of the inlined function in the frame */
    uint32_t     waits;         /* a frame that waits, or below one: 1 */
} prof_view_function_t;


/* parents precede their children */

typedef struct {
    uint32_t     parent;        /* index, or PROF_NONE for a root */
    uint32_t     function;      /* index */
    uint32_t     depth;         /* 0 for a root */
    uint32_t     child;         /* the first; before prof_view_order() the one
                                   that was added first; or PROF_NONE */
    uint32_t     next;          /* next child of the parent, or PROF_NONE */
} prof_view_node_t;


/*
 * Weights are in columns.  For node i and column k, self[i * ncolumns + k] is
 * the weight of stacks that end at the node. total[] has the weight of stacks
 * that end there or below.
 */

typedef struct {
    prof_view_function_t  *functions;
    uint32_t               nfunctions;
    prof_view_node_t      *nodes;
    uint32_t               nnodes;
    uint32_t               root;        /* first root, or PROF_NONE */
    uint32_t               depth;       /* maximum depth, plus one */
    uint32_t              *map;         /* profile's node -> node */
    uint32_t               ncolumns;
    uint32_t               measure[PROF_MEASURE_MAX];   /* by column */
    uint64_t              *self;
    uint64_t              *total;
    uint64_t               whole[PROF_MEASURE_MAX];     /* sum of a column */
    char                 **names;       /* owned texts; NULL: not owned */
} prof_view_t;


#define prof_view_self(v, i, k)   ((v)->self[(size_t) (i) * (v)->ncolumns + k])
#define prof_view_total(v, i, k)  ((v)->total[(size_t) (i) * (v)->ncolumns + k])


/*
 * A name function returns a malloc()ed text for the name of a function, or
 * NULL if memory is short.
 */

typedef char *(*prof_view_name_pt)(const char *name);


PROF_HIDDEN_BEGIN

/*
 * Builds the view of a symbolized profile.
 *
 * Without a name function, functions differ by object, unwind entry, name,
 * source, and by whether they are inlined.  With a name function, all
 * functions with the same text are one function of that name.
 *
 * The view has a column for each of the n measures.
 *
 * Returns NULL if memory is short.
 */
prof_view_t *prof_view_create(const prof_profile_t *p,
    prof_view_name_pt name, const uint32_t *measures, uint32_t n);
void prof_view_destroy(prof_view_t *v);

/* returns the column of a measure, or 0 */
uint32_t prof_view_column(const prof_view_t *v, uint32_t measure);

/*
 * Links the children of nodes in the order of their names.  If share is not 0,
 * only nodes with at least 1 / share of the whole in any column get their
 * children.  Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_view_order(prof_view_t *v, uint32_t share);

/*
 * These functions set other weights in a view that was created without
 * measures. prof_view_columns() makes n zeroed columns, and prof_view_sum()
 * computes the totals after the caller has filled self[].
 */
int prof_view_columns(prof_view_t *v, uint32_t n);
void prof_view_sum(prof_view_t *v);

PROF_HIDDEN_END


#endif /* _PROF_VIEW_H_INCLUDED_ */
