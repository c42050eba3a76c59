
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The measures of a profile's stacks.
 *
 * A series is a list of entries, which are stacks with values.  All entries of
 * a series have the same measures.  A mode is what a client can ask for: it
 * shows one series.  Formats, merging and archives learn about modes only from
 * the three tables below.
 *
 * Units: times are nanoseconds, sizes are bytes.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_MEASURE_H_INCLUDED_
#define _PROF_MEASURE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"


#define PROF_NONE  UINT32_MAX   /* no index */


/*
 * Columns: the name in outputs and archives; whether entries are in order of
 * time (unless the profile is aggregated); whether an entry has the number of
 * its samples in "count".
 */

#define PROF_SERIES(x)                                                        \
    x(TIME, "time", 1, 1)                                                     \
    x(MEMORY, "memory", 0, 0)


/*
 * Columns: the series; the index of the value in its entries; the mode that
 * shows the measure; the name in outputs, archives and class names; a short
 * text, a title, and a text for the whole, all for people; the text of an
 * output without any value, or NULL; the unit.
 */

#define PROF_MEASURES(x)                                                      \
    x(WALL, TIME, 0, WALL, "wall", "Wall time", "Running and waiting",        \
      "all wall time", NULL, NS)                                              \
    x(CPU, TIME, 1, CPU, "cpu", "CPU time", "Running only",                   \
      "all cpu time", NULL, NS)                                               \
    x(ALLOC_SPACE, MEMORY, 0, OBJECT, "alloc_space", "Allocated",             \
      "Bytes that were allocated", "all bytes allocated",                     \
      "nothing was allocated", BYTES)                                         \
    x(ALLOC_OBJECTS, MEMORY, 1, OBJECT, "alloc_objects", "Allocations",       \
      "How often memory was allocated", "all allocations",                    \
      "nothing was allocated", COUNT)                                         \
    x(INUSE_SPACE, MEMORY, 2, OBJECT, "inuse_space", "In use",                \
      "Bytes that were not freed until the end", "all bytes in use",          \
      "nothing is in use", BYTES)                                             \
    x(INUSE_OBJECTS, MEMORY, 3, OBJECT, "inuse_objects", "Objects in use",    \
      "Allocations that were not freed until the end", "all objects in use",  \
      "nothing is in use", COUNT)


/*
 * Columns: the name in requests; the series; the measure that is shown first;
 * name and unit of the distance between two samples; the measures in the order
 * that readers of pprof expect.  Readers that ignore the default type show the
 * last measure.
 */

#define PROF_MODES(x)                                                         \
    x(WALL, "wall", TIME, WALL, "wall", NS,                                   \
      { PROF_MEASURE_CPU, PROF_MEASURE_WALL, PROF_NONE })                     \
    x(CPU, "cpu", TIME, CPU, "cpu", NS,                                       \
      { PROF_MEASURE_CPU, PROF_NONE })                                        \
    x(OBJECT, "object", MEMORY, ALLOC_SPACE, "space", BYTES,                  \
      { PROF_MEASURE_ALLOC_OBJECTS, PROF_MEASURE_ALLOC_SPACE,                 \
        PROF_MEASURE_INUSE_OBJECTS, PROF_MEASURE_INUSE_SPACE, PROF_NONE })


typedef enum {
    PROF_UNIT_NS = 0,
    PROF_UNIT_BYTES,
    PROF_UNIT_COUNT
} prof_unit_e;


typedef enum {
#define PROF_SERIES_ENUM(id, name, ordered, counted)  PROF_SERIES_##id,
    PROF_SERIES(PROF_SERIES_ENUM)
#undef PROF_SERIES_ENUM
    PROF_SERIES_MAX
} prof_series_e;


typedef enum {
#define PROF_MEASURE_ENUM(id, series, value, mode, name, text, title, whole,  \
                          none, unit)                                         \
    PROF_MEASURE_##id,
    PROF_MEASURES(PROF_MEASURE_ENUM)
#undef PROF_MEASURE_ENUM
    PROF_MEASURE_MAX
} prof_measure_e;


/* the index of the value in an entry */

enum {
#define PROF_VALUE_ENUM(id, series, value, mode, name, text, title, whole,    \
                        none, unit)                                           \
    PROF_VALUE_##id = value,
    PROF_MEASURES(PROF_VALUE_ENUM)
#undef PROF_VALUE_ENUM
};


typedef enum {
#define PROF_MODE_ENUM(id, name, series, first, period, unit, ...)            \
    PROF_MODE_##id,
    PROF_MODES(PROF_MODE_ENUM)
#undef PROF_MODE_ENUM
    PROF_MODE_MAX
} prof_mode_e;


typedef struct {
    const char  *name;
    unsigned     ordered:1;
    unsigned     counted:1;
} prof_series_desc_t;


typedef struct {
    uint32_t     series;        /* prof_series_e */
    uint32_t     value;
    uint32_t     mode;          /* prof_mode_e */
    const char  *name;
    const char  *text;
    const char  *title;
    const char  *whole;
    const char  *none;
    uint32_t     unit;          /* prof_unit_e */
} prof_measure_t;


typedef struct {
    const char  *name;
    uint32_t     series;        /* prof_series_e */
    uint32_t     first;         /* prof_measure_e */
    const char  *period;
    uint32_t     unit;          /* prof_unit_e */
    uint32_t     measures[PROF_MEASURE_MAX + 1];    /* ends with PROF_NONE */
} prof_mode_t;


PROF_HIDDEN_BEGIN

extern const prof_series_desc_t  prof_series_desc[];    /* PROF_SERIES_MAX */
extern const prof_measure_t      prof_measures[];       /* PROF_MEASURE_MAX */
extern const prof_mode_t         prof_modes[];          /* PROF_MODE_MAX */

/* returns the name of a mode; for an unknown number, that of the first mode */
const char *prof_mode_name(uint32_t mode);

/* returns the number of values in an entry of the series */
uint32_t prof_series_values(uint32_t series);

/* appends a value with its unit, prof_unit_e: "123.4 ms", "1.5 MB", "17" */
void prof_measure_value(prof_buf_t *b, uint32_t unit, uint64_t n);

/* returns the name of a unit: "ns", "bytes", "count" */
const char *prof_measure_unit(uint32_t unit);

PROF_HIDDEN_END


#endif /* _PROF_MEASURE_H_INCLUDED_ */
