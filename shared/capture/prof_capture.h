
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures: of turns of a thread, of the whole process, and of a watched
 * thread.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC or, for "cpu", of
 * CLOCK_THREAD_CPUTIME_ID.
 */


#ifndef _PROF_CAPTURE_H_INCLUDED_
#define _PROF_CAPTURE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "base/prof_trace.h"
#include "heap/prof_heap.h"
#include "profile/prof_profile.h"
#include "scripts/prof_scripts.h"
#include "stacks/prof_tables.h"


#define PROF_FREQUENCY_MIN      1
#define PROF_FREQUENCY_MAX      10000
#define PROF_FREQUENCY_DEFAULT  1000

#define PROF_MEMORY_MIN         (128 * 1024)
#define PROF_MEMORY_DEFAULT     (4 * 1024 * 1024)
#define PROF_MEMORY_MAX         (1024 * 1024 * 1024)

typedef struct prof_sampler_s  prof_sampler_t;
typedef struct prof_capture_s  prof_capture_t;
typedef struct prof_watch_s    prof_watch_t;

typedef void (*prof_turn_pt)(void *data);


typedef struct {
    uint32_t    frequency;      /* Hz, PROF_FREQUENCY_MIN .. _MAX */
    uint32_t    mode;           /* prof_mode_e */
    size_t      memory;         /* bytes for call tree and timeline */
} prof_capture_conf_t;


/* what a watch and its caller tell each other in each turn */

typedef struct {
    volatile uintptr_t  top;    /* frame whose callees are sampled; 0: none */
    volatile uint32_t   fresh;  /* there are new samples */
    volatile uint32_t   taken;  /* bytes of samples, a number that wraps */
} prof_watch_spot_t;


PROF_HIDDEN_BEGIN

/*
 * A profile whose frames are addresses of this process, so that
 * prof_profile_symbolize() names them: nodes[i] has that of pcs[i], or is
 * PROF_NONE, where no code can be.  Returns NULL when memory is short, or there
 * are no tables.
 */
prof_profile_t *prof_process_addresses(const uintptr_t *pcs, uint32_t n,
    uint32_t *nodes);

/*
 * Prepares the calling thread for sampling: a timer for it, a sample ring, an
 * alternate signal stack, and the process's signal handler.  Renews the unwind
 * tables if objects were loaded since.
 * Returns NULL on failure, with *err set to a static text and errno set.
 * Context: the thread that will be sampled; not in a signal.
 */
prof_sampler_t *prof_sampler_create(const char **err);

/*
 * Deletes the timer, consumes a signal that is still pending, puts handler and
 * alternate stack back.  Context: the same thread; no turn may be running.
 */
void prof_sampler_destroy(prof_sampler_t *s);

/* how many signals did nothing: forged ones, and late ones of deleted timers */
uint64_t prof_signal_refused(void);

/*
 * Makes a capture; its wall time begins with its first turn.  Its memory is
 * reserved here and never grows.  Returns NULL when memory is short.
 */
prof_capture_t *prof_capture_create(const prof_capture_conf_t *conf);
void prof_capture_destroy(prof_capture_t *c);

/* from now on, also within a turn of the capture */
void prof_capture_set_frequency(prof_sampler_t *s, prof_capture_t *c,
    uint32_t frequency);

/*
 * A frame name for prof_turn_run(), prof_span_begin() and prof_capture_gap():
 * a copy, the same for the same text; PROF_FRAME_OTHER if there are too many.
 */
uintptr_t prof_capture_name(prof_capture_t *c, const char *text, size_t len);

/* a frame for a place in a script, of which a copy is made */
uintptr_t prof_capture_script(prof_capture_t *c, const prof_script_t *place);

/*
 * Names the cause of the waiting since the last turn or the last call of this
 * function, until the given time, which is not later than now; 0 is now.
 * frames are code addresses or names, innermost first; they stand below
 * "[waiting]".  What nobody names is "[waiting]" alone.
 */
void prof_capture_gap(prof_capture_t *c, const uintptr_t *frames, uint32_t n,
    uint64_t until);

/*
 * The capture's time begins at "start", which may be before now and before its
 * first turn.  It is the first call for a capture; without it the first turn
 * is the beginning.
 */
void prof_capture_begin(prof_capture_t *c, uint64_t start);

/*
 * Counts the time since prof_capture_mark() until "end" as running: of a turn
 * that was begun before it was known to be one.
 */
void prof_capture_ran(prof_capture_t *c, uintptr_t frame, uint64_t end,
    uint64_t cpu);

/* when the last turn, or the last gap that was named, ended */
uint64_t prof_capture_mark(const prof_capture_t *c);

/*
 * Runs fn(data) as a turn of the capture c: the thread is sampled, and all
 * time until fn returns is the capture's.  "what" is the address of a
 * function, which stands for the turn when no sample falls into it, or a name,
 * which is a span around all of it.
 *
 * Turns nest: a turn of another capture inside this one interrupts it, a turn
 * of the same capture is part of it.  c is NULL for a turn that nobody
 * captures, and that may interrupt one.  fn may call prof_turn_end(c): the rest
 * of the turn is then nobody's, and c may be destroyed before fn returns.
 *
 * Context: the sampler's thread; not in a signal.
 */
void prof_turn_run(prof_sampler_t *s, prof_capture_t *c, uintptr_t what,
    prof_turn_pt fn, void *data);

/*
 * A span: a section of a turn that is timed exactly and named, whether or not
 * a sample falls into it.  Spans nest, and stand outside of the sampled
 * frames.  Both calls do nothing when the running turn is not one of c, which
 * is only compared and may be gone.  prof_span_begin() returns 1 if it began
 * one, and only then prof_span_end() must be called, in the reverse order.
 * Context: the sampler's thread; not in a signal.
 */
int prof_span_begin(prof_sampler_t *s, prof_capture_t *c, uintptr_t frame);
void prof_span_end(prof_sampler_t *s, prof_capture_t *c);

/* ends the capture's part in the turns running now, if any */
void prof_turn_end(prof_sampler_t *s, prof_capture_t *c);

/* the capture whose turn is running, or NULL */
prof_capture_t *prof_turn_current(const prof_sampler_t *s);

/*
 * Ends the capture and gives its profile, which the caller owns, and which
 * has the memory of the capture; the capture remains to be destroyed.  The
 * profile is not symbolized yet.
 * Returns NULL when memory is short.
 * Context: the sampler's thread, outside of a turn of c.
 */
prof_profile_t *prof_capture_finish(prof_capture_t *c, const char *title);

/*
 * Captures of the whole process: all its threads, those that begin later too.
 * The calling thread is the main one.
 *
 * prof_process_start() begins the capture c, a new one.  In the mode "cpu" the
 * CPU time of all threads is captured, in the mode "wall" all time of the main
 * thread, and the CPU time of the others.
 * paced  whether the main thread tells, until the capture is ended, when it
 *        has nothing to do, by prof_process_idle() and prof_process_busy().
 *        It is then sampled at any frequency while it is busy, and not
 *        otherwise.  Without it "wall" shows CPU time, and frequencies above
 *        that of the kernel's ticks are reached by threads that are busy for
 *        longer than a tick.
 * Captures overlap, and may be of different frequencies.  Each is to be ended
 * by prof_process_finish() or prof_process_cancel().
 * Returns PROF_OK, PROF_LIMIT when PROF_PROCESS_CAPTURES of them are running,
 * or PROF_ERROR; *err is a static text then.
 *
 * prof_process_drain() is to be called a few times in a second: it takes the
 * samples, and finds new threads.
 *
 * prof_process_finish() gives the profile as prof_capture_finish() does, in
 * which entries have the label "thread".  There is no timeline, but an entry
 * for each stack.  The capture remains to be destroyed.
 *
 * Threads that block all signals but those of faults are sampled too; those
 * that block even these show as "[not sampled]".  Handlers run on the stacks of
 * the threads, if they have no alternate one, and need 16 KB there.
 *
 * Context: the main thread, outside of a signal.
 */

#define PROF_PROCESS_CAPTURES  8

int prof_process_start(prof_capture_t *c, int paced, const char **err);
void prof_process_drain(void);
prof_profile_t *prof_process_finish(prof_capture_t *c, const char *title);
void prof_process_cancel(prof_capture_t *c);

/* the main thread is going to wait, and has waited; cheap if none is paced */
int prof_process_paced(void);
void prof_process_idle(void);
void prof_process_busy(void);

/*
 * What the main thread runs from now on: the label "location" of its samples.
 * NULL: nothing that has one.  The text must remain for as long as the process.
 */
void prof_process_scope(const char *scope);

/*
 * Samples of the capture get the labels "trace_id" and "span_id" of what the
 * main thread runs from now on (NULL: of no trace), of so many traces at most.
 * PROF_ERROR: no memory, it goes on without.
 */

#define PROF_TRACES_MAX  16000

int prof_process_traces(prof_capture_t *c, uint32_t max);
void prof_process_trace(const prof_trace_t *trace);

/*
 * Counts what the capture's turns allocate from now on; conf->process is 0.
 * Memory that is freed counts as freed whoever frees it, until the capture is
 * destroyed.  Returns PROF_OK, or PROF_ERROR with *err set to a static text and
 * errno set; the capture goes on without.
 * Context: the sampler's thread, also in a turn; not in a signal.  Other
 * threads may allocate meanwhile.
 */
int prof_capture_heap(prof_capture_t *c, prof_sampler_t *s,
    const prof_heap_conf_t *conf, const char **err);

/*
 * What is in use by now, in a profile of the capture that was not changed
 * since prof_capture_finish() gave it: memory may be freed somewhat later.
 */
void prof_capture_settle(prof_capture_t *c, prof_profile_t *p);

/* the capture's heap, or NULL */
prof_heap_t *prof_capture_get_heap(prof_capture_t *c);

/*
 * What was allocated since the heap was made, and what of that is in use.  The
 * heap remains, and counts on.  NULL when memory is short.
 */
prof_profile_t *prof_heap_finish(prof_heap_t *h, const char *title);

/*
 * A watch samples the calling thread all the time, at a low frequency of its
 * CPU time.  Whose the samples are need not be known before.  The spot is all 0
 * first, and remains until prof_watch_destroy().
 *
 * New samples are those since the last prof_watch_pass(), which says whose they
 * are: "owner" is a number of the caller's.  A sample is kept until a call of
 * it finds that PROF_WATCH_KEPT bytes or more have been taken since.
 *
 * prof_watch_turn() adds a turn to the capture, with the owner's samples that
 * were passed, and is as prof_capture_ran(): "what" stands outside of the
 * stacks.  prof_capture_begin() was called, and the capture has no other turns.
 *
 * prof_watch_stack() adds the oldest new sample alone, which stays new;
 * PROF_LIMIT: there is none.
 * prof_watch_gap() is prof_capture_gap() with what was sampled meanwhile below
 * the frames.
 *
 * Context: the thread that is watched, not in a signal.
 */

#define PROF_WATCH_KEPT  (256 * 1024)

prof_watch_t *prof_watch_create(uint32_t frequency, prof_watch_spot_t *spot,
    const char **err);
void prof_watch_destroy(prof_watch_t *w);
void prof_watch_pass(prof_watch_t *w, uintptr_t owner);
void prof_watch_turn(prof_watch_t *w, prof_capture_t *c, uintptr_t owner,
    uintptr_t what, uint64_t end, uint64_t cpu);
int prof_watch_stack(prof_watch_t *w, prof_capture_t *c, uint64_t wall);
void prof_watch_gap(prof_watch_t *w, prof_capture_t *c,
    const uintptr_t *frames, uint32_t n, uint64_t until);

/* wall time; the thread's CPU time, a system call; both also in a signal */
uint64_t prof_now(void);
uint64_t prof_cpu_now(void);

/* counters so far; wall, running and CPU time so far; each may be NULL */
void prof_capture_totals(const prof_capture_t *c, prof_stats_t *st,
    uint64_t *wall, uint64_t *running, uint64_t *cpu);

PROF_HIDDEN_END


#endif /* _PROF_CAPTURE_H_INCLUDED_ */
