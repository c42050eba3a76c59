
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The profile: the immutable result of a capture.  Views and formats read
 * nothing else.  A capture ends with a draft, from which any thread makes the
 * profile.
 *
 * A profile owns its memory and does not refer to its process: addresses are
 * link-time addresses in objects, which have a path and a build-id.  Tests
 * build profiles by hand.
 *
 * Units: all times are nanoseconds, all sizes are bytes.
 *
 * For each series of prof_measure.h a profile has a list of entries: stacks
 * with their values.  Most profiles have entries of one series only.
 *
 * Context: one thread at a time; not in a signal.
 */


#ifndef _PROF_PROFILE_H_INCLUDED_
#define _PROF_PROFILE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_map.h"
#include "base/prof_stats.h"
#include "profile/prof_measure.h"


#define PROF_MAX_INLINES  32    /* of one frame */
#define PROF_MAX_LABELS   16    /* in one set */


typedef struct {
    char      *path;            /* owned */
    char      *build_id;        /* owned; lower-case hex, "" when unknown */
    uint64_t   start;           /* link-time addresses of the code */
    uint64_t   end;
    uint64_t   offset;          /* file offset of start */
    uint64_t   base;            /* load bias in the process */
} prof_profile_object_t;


/* the type of a frame; prof_kind.c gives types their colors */

typedef enum {
    PROF_TYPE_CODE = 0,         /* machine code; the instruction at pc was
                                   interrupted */
    PROF_TYPE_RETURN,           /* machine code; pc is a return address, and
                                   pc - 1 is in the call */
    PROF_TYPE_KERNEL,           /* machine code of the kernel */
    PROF_TYPE_SCRIPT,           /* a function of an interpreter */
    PROF_TYPE_STAGE,            /* a section that is timed exactly; below
                                   "[waiting]": the cause of waiting */
    PROF_TYPE_WAITING,          /* the thread or the request waited */
    PROF_TYPE_NOTE,             /* a note of the profiler: "[truncated]" */
    PROF_TYPE_MAX
} prof_type_e;


/* the source of a name; later ones are preferred */

typedef enum {
    PROF_SOURCE_NONE = 0,       /* no name yet, or the frame is not code */
    PROF_SOURCE_OFFSET,         /* object and offset: "nginx+0x51970" */
    PROF_SOURCE_INFERRED,       /* the function, inferred */
    PROF_SOURCE_UNIT,           /* the source file, inferred */
    PROF_SOURCE_ROLE,           /* the purpose that nginx uses the code for */
    PROF_SOURCE_SCRIPT,         /* the interpreter */
    PROF_SOURCE_SYMBOLS,        /* a symbol table */
    PROF_SOURCE_DEBUG,          /* debugging information */
    PROF_SOURCE_KERNEL,         /* the number of a system call */
    PROF_SOURCE_MAX
} prof_source_e;


typedef struct {
    uint32_t   type;            /* prof_type_e */
    uint32_t   source;          /* prof_source_e */
    uint32_t   object;          /* index, or PROF_NONE */
    uint64_t   pc;              /* link-time address; without an object
                                   the address in the process; 0 if the
                                   frame is no machine code */
    uint64_t   function;        /* start of the unwind entry, 0: unknown */
    uint64_t   function_len;
    char      *name;            /* owned; NULL until named.  After
                                   prof_profile_symbolize() never NULL */
    char      *file;            /* owned; source of the function; NULL:
                                   unknown */
    uint32_t   line;            /* of the address, in that file; 0: unknown */
    uint32_t   start_line;      /* of the function; 0: unknown */
    uint32_t   inlines;         /* the first of its inlines */
    uint32_t   ninlines;
} prof_frame_t;


/*
 * A function that the compiler inlined.  The inlined functions of one address
 * are consecutive, the outermost first.  The first one was called by the
 * function of the frame, at the frame's line.
 */

typedef struct {
    char      *name;            /* owned */
    char      *file;            /* owned; NULL: unknown */
    uint32_t   line;            /* in that file; 0: unknown */
    uint32_t   start_line;
} prof_inline_t;


/* a node of the call tree; parents precede their children */

typedef struct {
    uint32_t   parent;          /* index, or PROF_NONE for a root */
    uint32_t   frame;           /* index */
} prof_node_t;


typedef enum {
    PROF_ENTRY_SAMPLE = 0,      /* inside a turn: a sampled stack */
    PROF_ENTRY_TURN,            /* a turn, or part of one, without a sample;
                                   the node has the function that was called */
    PROF_ENTRY_GAP              /* between two turns: cpu is 0 */
} prof_entry_e;


/*
 * One stack with its values.
 *
 * Entries of the series "time" are a timeline: they are in order of time and
 * have no holes.  In a profile that is "aggregated" they are sums, and have no
 * order.
 *
 * Entries of the series "memory" have the allocations of one stack, and those
 * that were not freed until the end.  Sampled allocations are scaled up, so
 * the values are estimates of all allocations.
 */

typedef struct {
    uint32_t   node;            /* innermost frame of the stack */
    uint32_t   type;            /* prof_entry_e; 0 in other series */
    uint32_t   labels;          /* a set of labels, or PROF_NONE */
    uint32_t   count;           /* samples that were taken for it; 0 in other
                                   series */
    uint64_t   values[];        /* by PROF_VALUE_* */
} prof_entry_t;


typedef struct {
    char      *entries;         /* n times size bytes: prof_series_entry() */
    uint32_t   n;
    uint32_t   nvalues;
    size_t     size;            /* of an entry, in bytes */
    void      *memory;          /* the mapping that the entries are in; NULL:
                                   they are malloc()ed */
    size_t     memory_size;
} prof_series_t;


/*
 * Labels distinguish entries of one stack: "worker", "thread", "location".
 * Labels should have few values, since databases create a series per set.
 *
 * A set of labels is a chain, whose index is that of its last label.  Sets
 * share their common labels.  prof_profile_labels() makes sets.
 */

typedef struct {
    uint32_t   rest;            /* the set without this label: a lower index,
                                   or PROF_NONE */
    char      *name;            /* owned; once in a set */
    char      *value;           /* owned; any bytes, null-terminated */
    char      *unit;            /* owned; "bytes": value is a number in
                                   decimal; NULL: it is a text */
} prof_label_t;


/* a fact about the capture, for outputs: "request", "GET /a HTTP/1.1" */

typedef struct {
    char      *name;            /* owned */
    char      *value;           /* owned; any bytes, null-terminated */
    uint32_t   label;           /* the fact has few values, so outputs may
                                   make it a label */
} prof_fact_t;


typedef struct prof_profile_s  prof_profile_t;
typedef struct prof_draft_s    prof_draft_t;

/*
 * The data of a profile that is a draft: its objects, frames and nodes are not
 * made yet, and neither are some of its entries and labels.  The data does not
 * change, and remains when the process unloads objects.  A larger struct
 * contains this one.  Context of both functions: any thread.
 */

struct prof_draft_s {
    int       (*complete)(prof_profile_t *p, prof_draft_t *d);
    void      (*destroy)(prof_draft_t *d);
    size_t      size;           /* bytes, for prof_profile_size() */
};


struct prof_profile_s {
    prof_draft_t           *draft;          /* owned; NULL: the profile is
                                               complete */
    uint32_t                mode;           /* prof_mode_e */
    uint32_t                first;          /* the measure to show first;
                                               PROF_NONE: that of the mode */
    char                   *title;          /* owned, never NULL:
                                               "GET /index.html" */
    char                   *scope;          /* owned; "request", "endpoint",
                                               "worker" or "all"; NULL:
                                               unknown */
    uint64_t                start_realtime; /* since the Epoch */
    uint64_t                ended;          /* CLOCK_MONOTONIC at the end of
                                               the timeline; 0: unknown, as in
                                               another process */
    uint32_t                frequency;      /* asked, Hz */
    uint32_t                frequency_end;  /* in force at the end, Hz */
    uint64_t                duration;       /* from the start to the end; 0:
                                               the same as wall.  Of several
                                               threads wall is the sum */
    uint64_t                wall;           /* turns + gaps */
    uint64_t                running;        /* turns only, wall clock */
    uint64_t                cpu;            /* turns only, CPU clock */

    /* for the series "memory" */

    uint64_t                alloc_interval; /* bytes between two sampled
                                               allocations on average; 0: all
                                               were counted */
    uint64_t                peak_objects;   /* the most that was in use at one
                                               time; both may be of different
                                               times */
    uint64_t                peak_space;

    prof_stats_t            stats;

    prof_profile_object_t  *objects;        /* the program first, if it is
                                               known */
    uint32_t                nobjects;
    prof_frame_t           *frames;
    uint32_t                nframes;
    prof_inline_t          *inlines;
    uint32_t                ninlines;
    prof_node_t            *nodes;
    uint32_t                nnodes;
    prof_series_t           series[PROF_SERIES_MAX];
    uint32_t                aggregated;     /* entries have no order */
    prof_label_t           *labels;
    uint32_t                nlabels;
    prof_map_t              label_map;      /* hash of a label, and its rest,
                                               to the first such label */
    uint32_t                nmapped;        /* number of labels in the hash */
    prof_fact_t            *facts;
    uint32_t                nfacts;
    char                   *turns;          /* owned; the bytes of a snapshot
                                               of turn logs; NULL: none */
    size_t                  turns_len;
};


/*
 * The name of the fact that tells which memory is not counted.  A profile of
 * allocations that is empty must not look as if nothing had been used.
 */
#define PROF_FACT_NOT_COUNTED  "not_counted"

#define prof_frame_is_code(f)   ((f)->type <= PROF_TYPE_KERNEL)

/* the name is the function's own name, and not inferred */

#define prof_frame_is_exact(f)  ((f)->source >= PROF_SOURCE_SCRIPT)

/* the name tells the purpose or the place of the function */

#define prof_source_is_inferred(source)                                       \
    ((source) >= PROF_SOURCE_INFERRED && (source) <= PROF_SOURCE_ROLE)

/* an address in the function; a return address may be in the next function */

#define prof_frame_pc(f)                                                      \
    ((f)->pc - ((f)->type == PROF_TYPE_RETURN && (f)->pc))

/* entry i of a series */

#define prof_series_entry(s, i)                                               \
    ((prof_entry_t *) ((s)->entries + (size_t) (i) * (s)->size))


PROF_HIDDEN_BEGIN

/* returns an empty profile, or NULL if memory is short; the title is copied */
prof_profile_t *prof_profile_create(const char *title);
void prof_profile_destroy(prof_profile_t *p);

/*
 * Makes what a draft lacks.  Returns PROF_OK, also for a complete profile, or
 * PROF_ERROR if memory is short or if a thread still uses the memory of the
 * draft; then the caller destroys the profile.
 */
int prof_profile_complete(prof_profile_t *p);

/* returns the size of the profile's arrays in bytes: most of its memory */
size_t prof_profile_size(const prof_profile_t *p);

/*
 * Appends an entry whose fields are 0 to a series that is not in a mapping.
 * Returns NULL when memory is short.
 */
prof_entry_t *prof_series_add(prof_series_t *s);

/* frees the entries, which may be in a mapping */
void prof_series_free(prof_series_t *s);

/* adds a fact; copies both texts.  Returns PROF_OK or PROF_ERROR (memory) */
int prof_profile_fact(prof_profile_t *p, const char *name,
    const char *value, size_t len);

/* works as prof_profile_fact() for a fact with few values */
int prof_profile_label(prof_profile_t *p, const char *name,
    const char *value, size_t len);

/* sets the scope; copies the text.  Returns PROF_OK or PROF_ERROR (memory) */
int prof_profile_scope(prof_profile_t *p, const char *scope);

/*
 * Lists the measures that a profile has, in the order of the table: those of
 * its mode's series, and of all series with entries.  list is an array of
 * PROF_MEASURE_MAX items.  Returns the number of measures, which is not 0.
 */
uint32_t prof_measure_list(const prof_profile_t *p, uint32_t *list);

/* returns the measure to be shown first */
uint32_t prof_measure_first(const prof_profile_t *p);

/*
 * Returns the whole of a measure: for times, the time by the clock; for other
 * measures, the sum of all entries.
 */
uint64_t prof_measure_total(const prof_profile_t *p, uint32_t measure);

/*
 * Returns the set that has a label in addition to the labels of "set", which
 * may be PROF_NONE.  The same arguments give the same set.  unit is NULL for a
 * text.  If "set" has a label of that name, or PROF_MAX_LABELS labels, "set"
 * itself is returned.
 * Returns PROF_NONE when memory is short.
 */
uint32_t prof_profile_labels(prof_profile_t *p, uint32_t set,
    const char *name, const char *value, const char *unit);

/* returns the label of that name in a set, or NULL */
const prof_label_t *prof_profile_label_find(const prof_profile_t *p,
    uint32_t set, const char *name);

/* returns the last part of a path, a pointer into the path */
const char *prof_path_file(const char *path);

PROF_HIDDEN_END


#endif /* _PROF_PROFILE_H_INCLUDED_ */
