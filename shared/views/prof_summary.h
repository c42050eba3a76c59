
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The information about a profile besides its stacks, the same in all formats:
 * the facts of the capture, its times, and its quality (samples taken and
 * lost, requested and effective frequency, CPU clock and sum of the samples,
 * the profiler's own time).
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SUMMARY_H_INCLUDED_
#define _PROF_SUMMARY_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


typedef enum {
    PROF_SUMMARY_TEXT = 0,      /* "value" is set, not "number" */
    PROF_SUMMARY_COUNT,
    PROF_SUMMARY_HZ,
    PROF_SUMMARY_NS,
    PROF_SUMMARY_BYTES
} prof_summary_e;


typedef struct {
    const char  *name;          /* in files: "lost_ring" */
    const char  *text;          /* for readers; the name of a fact */
    uint32_t     unit;          /* prof_summary_e */
    const char  *value;         /* any bytes */
    uint64_t     number;
} prof_summary_t;


/* a result other than PROF_OK ends the summary, which returns this result */

typedef int (*prof_summary_pt)(void *data, const prof_summary_t *item);


/* warning: 1 if the line tells about data that the picture does not show */

typedef void (*prof_notes_pt)(void *data, const prof_buf_t *line,
    int warning);


/*
 * The parts of the whole time of a capture, in ns.  Their sum is p->wall.
 * unknown is the time in turns in which threads did not run, and the reason was
 * not measured: captures of threads, and systems without the run queue's clock.
 */

typedef struct {
    uint64_t   cpu;
    uint64_t   no_processor;
    uint64_t   blocked;
    uint64_t   unknown;
    uint64_t   waiting;
} prof_summary_parts_t;


PROF_HIDDEN_BEGIN

/* returns which memory a profile of allocations does not count, or NULL */
const char *prof_summary_not_counted(const prof_profile_t *p);

void prof_summary_parts(const prof_profile_t *p, prof_summary_parts_t *parts);

/* calls fn with each item; strings are valid during the call */
int prof_summary(const prof_profile_t *p, prof_summary_pt fn, void *data);

/*
 * Appends one line for a measure, as the name of its picture: "wall: GET /a,
 * 123.4 ms, 118 samples at 956 Hz (asked: 1000), 0 lost", "alloc_space: GET
 * /a, 1.5 MB, all allocations"
 */
void prof_summary_line(const prof_profile_t *p, uint32_t measure,
    prof_buf_t *b);

/* append "123.4 ms" and "1.5 MB" */
void prof_summary_duration(prof_buf_t *b, uint64_t ns);
void prof_summary_size(prof_buf_t *b, uint64_t bytes);

/* appends "all allocations" or "one sample each 512.0 KB" */
void prof_summary_interval(const prof_profile_t *p, prof_buf_t *b);

/* returns the number of samples for each second of turns, in Hz */
uint64_t prof_summary_frequency(const prof_profile_t *p);

/*
 * Calls fn with each line of a picture's notes about its profile: how long the
 * capture took, how much was sampled, and how much was lost.  A line is not
 * escaped.  Warnings come last.
 */
void prof_notes(const prof_profile_t *p, prof_notes_pt fn, void *data);

/* appends why a picture is empty: "0 samples, the request used 38.0 us" */
void prof_notes_empty(const prof_profile_t *p, prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_SUMMARY_H_INCLUDED_ */
