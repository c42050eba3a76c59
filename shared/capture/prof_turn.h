
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A capture and its turns.  Except for this struct and the names, the memory
 * of a capture is one block, mapped at the start: one half is for the call
 * tree, the other half for the timeline.
 *
 * Context: the sampler's thread; not in a signal.
 */


#ifndef _PROF_TURN_H_INCLUDED_
#define _PROF_TURN_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "capture/prof_beside.h"
#include "capture/prof_capture.h"
#include "capture/prof_entries.h"
#include "capture/prof_sampler.h"
#include "capture/prof_traces.h"
#include "stacks/prof_take.h"
#include "stacks/prof_tree.h"


#define PROF_WORDS_RECENT  16

/* the name of a stage, a wait, or a part of one */

typedef struct {
    char                 *text;          /* NULL: the place is free */
    size_t                len;
    uint32_t              type;          /* prof_type_e of the frame */
    uint32_t              open;          /* spans that are open now */
    uint64_t              used;          /* number of the last use */
    uint64_t              weight;        /* ns of wall time, or bytes */
} prof_word_t;


typedef struct {
    prof_word_t          *words;         /* the frame of the first one is
                                            PROF_FRAME_FIXED */
    uint16_t             *index;         /* hash of texts; 0 is free, others are
                                            the word + 1 */
    uint32_t              n;
    uint32_t              allocated;
    uint32_t              mask;
    uint32_t              next;          /* no word before it is free */
    uint64_t              uses;
    uint16_t              recent[PROF_WORDS_RECENT];
} prof_words_t;


struct prof_capture_s {
    prof_tree_t           tree;
    prof_entries_t        timeline;
    prof_beside_t         beside;        /* the waits of the timeline */
    prof_stats_t          stats;
    void                 *memory;
    size_t                memory_size;

    uint32_t              mode;
    uint32_t              frequency;     /* as requested */
    uint64_t              period;        /* in force, ns */
    uint64_t              rest;          /* ns until the next sample is due */
    uint64_t              taken;

    uint64_t              start_realtime;
    uint64_t              counted;       /* end of the last turn or gap */
    uint64_t              wall;
    uint64_t              running;
    uint64_t              cpu;
    uint64_t              borders;       /* ns; cost of borders of spans */
    uint64_t              bordered;      /* "cpu" when "borders" was 0 */

    prof_words_t          words;

    prof_traces_t        *traces;        /* NULL: no trace labels */
    uint32_t              labelled;      /* "labels" of entries are those of
                                            prof_process_label() */
    void                (*forget)(prof_capture_t *c);
                                         /* names were given up: labels with
                                            them become "[other]" */

    prof_heap_t          *heap;          /* NULL: allocations are not counted */
};


/*
 * A turn; it is on the stack of prof_turn_run().  Samples are folded in
 * segments.  A segment begins at the start of the turn or at a border of a
 * span, and ends at the next border.
 */

struct prof_turn_s {
    prof_turn_t     *prev;
    prof_capture_t  *capture;       /* NULL: ended */
    uintptr_t        what;
    uint64_t         wall;          /* clocks at the start of the segment */
    uint64_t         cpu;
    uint64_t         read;          /* time of the reading of the CPU clock */
    uint64_t         queue;         /* clock of the run queue at the start */
    int64_t          idle;          /* of the capture at the start: running
                                       time minus CPU time */
    uint64_t         samples;       /* samples folded in the turn */
    uint32_t         merged;        /* the segment contains borders */
    uint32_t         named;         /* the frames of the spans above it are not
                                       known yet: their texts are below */
    prof_outer_t     outer;

    struct {
        const char  *data;
        size_t       len;
    } texts[PROF_SPANS_MAX];
};


PROF_HIDDEN_BEGIN

/* adds the time until now to the gap before the turn that begins */
void prof_capture_resume(prof_capture_t *c);

/* works as prof_capture_name() for frames that are not stages */
uintptr_t prof_capture_typed(prof_capture_t *c, uint32_t type,
    const char *text, size_t len);

/* looks up the frames of spans that began where borders were merged */
void prof_turn_name(prof_turn_t *turn);

/* a span with this frame begins or ends */
void prof_words_open(prof_words_t *w, uintptr_t frame, int open);

/* adds the wall time of a frame, which may be no name */
void prof_words_weigh(prof_words_t *w, uintptr_t frame, uint64_t wall);

void prof_words_free(prof_words_t *w);

/* adds to the timeline; samples less often when the timeline is full */
void prof_capture_add(prof_capture_t *c, uint32_t node, uint32_t type,
    uint64_t wall, uint64_t cpu);

PROF_HIDDEN_END


#endif /* _PROF_TURN_H_INCLUDED_ */
