
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the stacks of a profile are measured by.  A new measure is one line in
 * the table, and one in prof_measure_entry() or prof_measure_alloc().
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_MEASURE_H_INCLUDED_
#define _PROF_MEASURE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


/*
 * name: in outputs and in class names; text, title, and what the whole of it
 * is, for people; unit
 */

#define PROF_MEASURES(x)                                                      \
    x(WALL, "wall", "Wall time",                                              \
      "Running and waiting", "all wall time", NS)                             \
    x(CPU, "cpu", "CPU time",                                                 \
      "Running only", "all cpu time", NS)                                     \
    x(ALLOC_SPACE, "alloc_space", "Allocated",                                \
      "Bytes that were allocated", "all bytes allocated", BYTES)              \
    x(ALLOC_OBJECTS, "alloc_objects", "Allocations",                          \
      "How often memory was allocated", "all allocations", COUNT)             \
    x(INUSE_SPACE, "inuse_space", "In use",                                   \
      "Bytes that were not freed until the end", "all bytes in use", BYTES)   \
    x(INUSE_OBJECTS, "inuse_objects", "Objects in use",                       \
      "Allocations that were not freed until the end", "all objects in use",  \
      COUNT)


typedef enum {
    PROF_UNIT_NS = 0,
    PROF_UNIT_BYTES,
    PROF_UNIT_COUNT
} prof_unit_e;


typedef enum {
#define PROF_MEASURE_ENUM(id, name, text, title, whole, unit)                 \
    PROF_MEASURE_##id,
    PROF_MEASURES(PROF_MEASURE_ENUM)
#undef PROF_MEASURE_ENUM
    PROF_MEASURE_MAX
} prof_measure_e;


typedef struct {
    const char  *name;
    const char  *text;
    const char  *title;
    const char  *whole;
    uint32_t     unit;          /* prof_unit_e */
} prof_measure_t;


#define prof_measure_is_memory(m)  ((m) >= PROF_MEASURE_ALLOC_SPACE)


PROF_HIDDEN_BEGIN

/* PROF_MEASURE_MAX of them */
extern const prof_measure_t  prof_measures[];

/*
 * The measures that a profile has, in the order of the table: those of time,
 * of memory, or both; list has room for PROF_MEASURE_MAX.  Returns their
 * number, which is not 0.
 */
uint32_t prof_measure_list(const prof_profile_t *p, uint32_t *list);

/* the one to be shown first, by the mode */
uint32_t prof_measure_first(const prof_profile_t *p);

/* "wall", "cpu", "object": the mode that shows it */
const char *prof_measure_mode(uint32_t measure);

/* of an entry, or an allocation; 0 if the measure is one of the other */
uint64_t prof_measure_entry(const prof_entry_t *e, uint32_t measure);
uint64_t prof_measure_alloc(const prof_alloc_t *a, uint32_t measure);

/* of the profile: the time by the clock, the sum of all allocations */
uint64_t prof_measure_total(const prof_profile_t *p, uint32_t measure);

/* "123.4 ms", "1.5 MB", "17" */
void prof_measure_value(prof_buf_t *b, uint32_t unit, uint64_t n);

/* "ns", "bytes", "count" */
const char *prof_measure_unit(uint32_t unit);

PROF_HIDDEN_END


#endif /* _PROF_MEASURE_H_INCLUDED_ */
