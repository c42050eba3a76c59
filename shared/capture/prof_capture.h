
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
#include "base/prof_clock.h"
#include "base/prof_stats.h"
#include "base/prof_trace.h"
#include "heap/prof_heap.h"
#include "profile/prof_profile.h"
#include "scripts/prof_lua.h"
#include "scripts/prof_scripts.h"
#include "stacks/prof_tables.h"

#include <signal.h>


#define PROF_FREQUENCY_MIN      1
#define PROF_FREQUENCY_MAX      10000
#define PROF_FREQUENCY_DEFAULT  1000

#define PROF_MEMORY_MIN         (128 * 1024)

/* half of this memory is for addresses */
#define PROF_ADDRESSES          1024
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


/*
 * Memory that a watch and its caller share, so that a turn needs no calls.
 * The caller writes top; the handler writes taken, and sets fresh.
 */

typedef struct {
    volatile uintptr_t  top;    /* stack address: frames below are sampled; 0:
                                   nothing is sampled */
    volatile uint32_t   fresh;  /* 1: samples were taken since the last
                                   prof_watch_pass() */
    volatile uint32_t   taken;  /* bytes of all samples, a number that wraps */
} prof_watch_spot_t;


/* the time in which the event was awaited that began a turn */

typedef struct {
    uint64_t     since;         /* begin of the turn that began to wait; 0: it
                                   is the last turn */
    uint64_t     ready;         /* the event occurred */
    uint64_t     end;           /* begin of the turn after the event */
} prof_await_t;


/* what requests of a location wait for; texts are null-terminated */

typedef struct {
    const char  *location;      /* NULL: requests of no location */
    const char  *cause;
    uint64_t     weight;
} prof_wait_t;


PROF_HIDDEN_BEGIN

/*
 * Makes a draft of a profile whose frames are addresses of this process, so
 * that prof_profile_symbolize() names them. nodes[i] is the node of pcs[i], or
 * PROF_NONE if pcs[i] cannot be code.  Returns NULL if memory is short, or
 * without unwind tables.
 */
prof_profile_t *prof_process_addresses(const uintptr_t *pcs, uint32_t n,
    uint32_t *nodes);

/*
 * Adds addresses to such a draft, which has room for PROF_ADDRESSES of them in
 * addition.  Context: any thread.
 */
void prof_draft_addresses(prof_profile_t *p, const uintptr_t *pcs, uint32_t n,
    uint32_t *nodes);

/*
 * Prepares the calling thread for sampling: a timer for it, a sample ring, an
 * alternate signal stack, and the process's signal handler.  Renews the unwind
 * tables if objects were loaded since.  Returns NULL on failure, with *err set
 * to a static text and errno set.  Context: the thread that will be sampled;
 * not in a signal.
 */
prof_sampler_t *prof_sampler_create(const char **err);

/*
 * Deletes the timer, consumes a pending signal, and restores the handler and
 * the alternate stack.  Context: the same thread; no turn is running.
 */
void prof_sampler_destroy(prof_sampler_t *s);

/*
 * Returns the number of ignored signals: they are forged, or come late from
 * deleted timers.
 */
uint64_t prof_signal_refused(void);

/*
 * Makes a capture; its wall time begins with its first turn.  Its memory is
 * reserved here and never grows.  Returns NULL if memory is short.
 */
prof_capture_t *prof_capture_create(const prof_capture_conf_t *conf);
void prof_capture_destroy(prof_capture_t *c);

/*
 * prof_capture_destroy() in two steps.  prof_capture_end() ends the counting of
 * allocations, in the sampler's thread.  Afterwards any thread may free the
 * capture.
 */
void prof_capture_end(prof_capture_t *c);
void prof_capture_free(prof_capture_t *c);

/* returns the bytes of the capture's memory that are in use */
size_t prof_capture_size(const prof_capture_t *c);

/* changes the frequency at once, also within a turn of the capture */
void prof_capture_set_frequency(prof_sampler_t *s, prof_capture_t *c,
    uint32_t frequency);

/*
 * Counts a time of turns in which the thread did not run, by its reason, for
 * turns that have run already.
 */
void prof_capture_idle(prof_capture_t *c, uint64_t no_processor,
    uint64_t blocked);

/*
 * Returns a frame name for prof_turn_run(), prof_span_begin() and
 * prof_capture_gap().  The text is copied; the same text has the same name.
 * Returns PROF_FRAME_OTHER if there are too many names.
 */
uintptr_t prof_capture_name(prof_capture_t *c, const char *text, size_t len);

/* returns a frame for a place in a script; the place is copied */
uintptr_t prof_capture_script(prof_capture_t *c, const prof_script_t *place);

/* works as prof_lua_stack(), and returns frames */
uint32_t prof_capture_coroutine(prof_capture_t *c, const prof_lua_state_t *co,
    uintptr_t *frames, uint32_t max);

/*
 * Names the cause of the wait since the last turn or the last call of this
 * function, until the given time, which is not later than now; 0 is now.
 * frames are code addresses or names, innermost first.  Their parent in the
 * call tree is "[waiting]".  A wait without a cause is "[waiting]" alone.
 */
void prof_capture_gap(prof_capture_t *c, const uintptr_t *frames, uint32_t n,
    uint64_t until);

/*
 * Names the cause of the wait, as prof_capture_gap() does, with the time in
 * which its event was awaited.  If waits overlap, the profile shows the gaps as
 * the critical waits, with the others beside them (prof_beside.h).
 */
void prof_capture_wait(prof_capture_t *c, const uintptr_t *frames, uint32_t n,
    const prof_await_t *wait, uint64_t until);

/*
 * Adds the time until now as a wait with this frame, and counts it as not
 * tracked: whose code ran in this time is not known.
 */
void prof_capture_untracked(prof_capture_t *c, uintptr_t frame, uint64_t now);

/*
 * Sets the beginning of the capture's time, which may be before now and before
 * its first turn.  This is the first call for a capture.  Without it the time
 * begins with the first turn.
 */
void prof_capture_begin(prof_capture_t *c, uint64_t start);

/*
 * Leaves out a time before the first turn in which the profiler itself has
 * worked.  The capture's time begins later by this time.  Called before
 * anything is added to the capture.
 */
void prof_capture_leave_out(prof_capture_t *c, uint64_t ns);

/*
 * Adds a turn that has run already: counts the time from
 * prof_capture_counted() to "end" as running, with this CPU time, for the
 * frame.
 */
void prof_capture_ran(prof_capture_t *c, uintptr_t frame, uint64_t end,
    uint64_t cpu);

/* returns the end of the last turn or of the last named gap */
uint64_t prof_capture_counted(const prof_capture_t *c);

/*
 * Runs fn(data) as a turn of the capture c: the thread is sampled, and the time
 * until fn returns counts for the capture.  "what" is the address of a function
 * or a name.  A function is the frame of a turn without samples.  A name is a
 * span around the turn.
 *
 * Turns nest.  A turn of another capture interrupts this turn.  A turn of the
 * same capture is a part of it.  c is NULL for a turn that is not captured; it
 * interrupts a captured turn.  fn may call prof_turn_end(c): the rest of the
 * turn counts for no capture, and c may be destroyed before fn returns.
 *
 * Context: the sampler's thread; not in a signal.
 */
void prof_turn_run(prof_sampler_t *s, prof_capture_t *c, uintptr_t what,
    prof_turn_pt fn, void *data);

/*
 * The running turn, which is not captured, is a turn of c from
 * prof_capture_counted() on.  The thread has used "cpu" ns since then.  Returns
 * PROF_ERROR if there is no such turn.  Context: the sampler's thread; not in a
 * signal.
 */
int prof_turn_take(prof_sampler_t *s, prof_capture_t *c, uintptr_t what,
    uint64_t cpu);

/*
 * A span: a section of a turn that has a name and an exact time, also without
 * samples.  Spans nest.  The sampled frames are inside of them.  Both calls
 * have no effect if the running turn is not a turn of c; c is only compared and
 * may have been destroyed.  If prof_span_begin() returns 1, prof_span_end()
 * must be called, in the reverse order.  Context: the sampler's thread; not in
 * a signal.
 */
int prof_span_begin(prof_sampler_t *s, prof_capture_t *c, uintptr_t frame);

/* as prof_span_begin() for a name; the text is valid until the span ends */
int prof_span_begin_named(prof_sampler_t *s, prof_capture_t *c,
    const char *text, size_t len);

void prof_span_end(prof_sampler_t *s, prof_capture_t *c);

/* ends the turns of the capture that are running */
void prof_turn_end(prof_sampler_t *s, prof_capture_t *c);

/* returns the capture whose turn is running, or NULL */
prof_capture_t *prof_turn_current(const prof_sampler_t *s);

/*
 * Ends the capture and returns its profile as a draft, see
 * prof_profile_complete().  The time of this function does not depend on the
 * size of the capture.  The caller owns the profile, and still has to destroy
 * the capture.  The profile takes over the memory of the capture.  The profile
 * has no allocations before prof_capture_settle().  Returns NULL if memory is
 * short, or without unwind tables.
 * Context: the sampler's thread, outside of a turn of c.
 */
prof_profile_t *prof_capture_finish(prof_capture_t *c, const char *title);

/*
 * Captures of the whole process: all its threads, including threads that begin
 * later.  The calling thread is the main thread.
 *
 * prof_process_start() begins the new capture c.  The mode "cpu" captures the
 * CPU time of all threads.  The mode "wall" captures all time of the main
 * thread and the CPU time of the other threads.
 *
 * paced  1: until the end of the capture, the main thread calls
 *        prof_process_idle() and prof_process_busy() around its waits.  It is
 *        sampled at any frequency while it is busy, and not while it is idle.
 *        0: "wall" shows CPU time, and only threads that are busy for longer
 *        than a tick of the kernel are sampled more often than at ticks.
 *
 * Captures may overlap and have different frequencies.  Each ends with
 * prof_process_finish() or prof_process_cancel().  Returns PROF_OK, PROF_LIMIT
 * if PROF_PROCESS_CAPTURES captures are running, or PROF_ERROR with *err set
 * to a static text.
 *
 * The caller calls prof_process_drain() a few times in a second.  It takes the
 * samples and finds new threads.  After the last capture it deletes the timers
 * of some threads: the caller goes on until prof_process_pending() returns 0.
 * If the caller does not, the timers remain, and the next capture deletes them.
 *
 * prof_process_finish() returns the profile as prof_capture_finish() does.
 * Its entries have the label "thread".  It has no timeline, but an entry for
 * each stack.  The caller still has to destroy the capture.
 *
 * Threads that block all signals except those of faults are sampled.  Threads
 * that block these as well appear as "[not sampled]".  In a thread without an
 * alternate stack, the handler runs on the thread's stack and needs 16 KB.
 *
 * Context: the main thread, outside of a signal.
 */

#define PROF_PROCESS_CAPTURES  10

int prof_process_start(prof_capture_t *c, int paced, const char **err);
void prof_process_drain(void);

/*
 * Divides the idle time of the main thread, in the mode "wall", in proportion
 * to the weights: what requests waited for while the thread was idle.  Called
 * directly before prof_process_finish(), until which the array lives.
 */
void prof_process_waits(prof_capture_t *c, const prof_wait_t *waits,
    uint32_t n);

/*
 * Returns in how many ms prof_process_drain() is to be called because threads
 * are being looked for, or still have timers after the last capture.  0:
 * neither.
 */
uint32_t prof_process_pending(void);

/* returns whether the main thread has timers while there are captures */
int prof_process_timed(void);

prof_profile_t *prof_process_finish(prof_capture_t *c, const char *title);
void prof_process_cancel(prof_capture_t *c);

/*
 * Works for a main thread that runs one event for long: takes the samples of
 * all threads.  If next is not NULL, the capture c ends, and next, which counts
 * the same time as c, begins.  The caller then calls prof_capture_finish().
 * New threads and new objects are not found meanwhile.  Returns PROF_ERROR if c
 * does not run, or if the main thread uses the captures at this moment.
 * Context: another thread, which has blocked all signals.
 */
int prof_process_relieve(prof_capture_t *c, prof_capture_t *next);

/*
 * prof_process_idle() and prof_process_busy() are called before and after a
 * wait of the main thread.  Both calls are cheap without paced captures.  The
 * signals of timers do not interrupt the wait.
 *
 * mask  NULL: the thread blocks the signal until prof_process_busy(), by two
 *       system calls.  Otherwise *mask is set to the signal mask for a call
 *       that waits with a mask, such as epoll_pwait(), or to NULL if the wait
 *       needs no mask.  If the thread changes its own mask, *mask follows at
 *       the next prof_process_drain().
 */
int prof_process_paced(void);
void prof_process_idle(const sigset_t **mask);
void prof_process_busy(void);

/*
 * Sets the label "location" of the main thread's next samples.  NULL: no label.
 * The text must remain until the process ends.
 */
void prof_process_location(const char *location);

/*
 * prof_process_traces() adds the labels "trace_id" and "span_id" to samples of
 * the capture, for at most "max" traces.  Returns PROF_ERROR if memory is
 * short; the capture continues without these labels. prof_process_trace() sets
 * the trace of the main thread's next samples (NULL: no trace).
 */

#define PROF_TRACES_MAX  16000

int prof_process_traces(prof_capture_t *c, uint32_t max);
void prof_process_trace(const prof_trace_t *trace);

/*
 * Counts the allocations of the capture's turns from now on; conf->process is
 * 0.  Until the capture is destroyed, memory also counts as freed if another
 * thread frees it.  Returns PROF_OK, or PROF_ERROR with *err set to a static
 * text and errno set; the capture continues without counting.  Context: the
 * sampler's thread, also in a turn; not in a signal.  Other threads may
 * allocate during the call.
 */
int prof_capture_heap(prof_capture_t *c, prof_sampler_t *s,
    const prof_heap_conf_t *conf, const char **err);

/*
 * Ends the counting, and gives the heap of the capture, if there is one, to the
 * profile of prof_capture_finish(), which is still a draft.  Memory that is
 * freed before this call is not in use in the profile.  Context: the sampler's
 * thread.
 */
void prof_capture_settle(prof_capture_t *c, prof_profile_t *p);

/* returns the capture's heap; NULL: it has none, or the profile has the heap */
prof_heap_t *prof_capture_get_heap(prof_capture_t *c);

/*
 * Ends the heap, also if it fails.  Returns a draft of a profile of the memory
 * that was allocated since the heap was made, and that is in use.  Returns NULL
 * if memory is short.
 */
prof_profile_t *prof_heap_finish(prof_heap_t *h, const char *title);

/*
 * A watch samples the calling thread all the time, at a low frequency of its
 * CPU time.  Samples get an owner after they are taken.  The caller sets the
 * spot to zeros first, and keeps it until prof_watch_destroy().
 *
 * prof_watch_pass() gives an owner, a number that the caller chooses, to all
 * samples since its last call.  It removes a sample when PROF_WATCH_KEPT bytes
 * or more have been taken after the sample.
 *
 * prof_watch_give() gives the samples of an owner since a time to another one.
 *
 * prof_watch_turn() adds a turn to the capture, with its owner's samples, as
 * prof_capture_ran() does.  The owner PROF_WATCH_ALL has the samples of all
 * owners. "what" is the outermost frame of the stacks.  The caller has called
 * prof_capture_begin(), and the capture has no other turns.
 *
 * prof_watch_stack() adds only the oldest new sample, which remains new.
 * Returns PROF_LIMIT if there is no new sample. prof_watch_gap() works as
 * prof_capture_gap(), and adds the stacks of the gap below the frames.
 *
 * Context: the thread that is watched, not in a signal.
 */

#define PROF_WATCH_KEPT  (256 * 1024)
#define PROF_WATCH_ALL   UINTPTR_MAX

prof_watch_t *prof_watch_create(uint32_t frequency, prof_watch_spot_t *spot,
    const char **err);
void prof_watch_destroy(prof_watch_t *w);
void prof_watch_pass(prof_watch_t *w, uintptr_t owner);
void prof_watch_give(prof_watch_t *w, uint64_t since, uintptr_t owner,
    uintptr_t next);
void prof_watch_turn(prof_watch_t *w, prof_capture_t *c, uintptr_t owner,
    uintptr_t what, uint64_t end, uint64_t cpu);
int prof_watch_stack(prof_watch_t *w, prof_capture_t *c, uint64_t wall);
void prof_watch_gap(prof_watch_t *w, prof_capture_t *c,
    const uintptr_t *frames, uint32_t n, uint64_t until);

/*
 * Returns the thread's CPU time (by a system call).  Context: any, also a
 * signal handler.
 */
uint64_t prof_cpu_now(void);

/* returns the counters, wall, running and CPU time so far; each may be NULL */
void prof_capture_totals(const prof_capture_t *c, prof_stats_t *st,
    uint64_t *wall, uint64_t *running, uint64_t *cpu);

PROF_HIDDEN_END


/* returns wall time; context: any, also a signal handler */

static inline uint64_t
prof_now(void)
{
    return prof_clock(CLOCK_MONOTONIC);
}


#endif /* _PROF_CAPTURE_H_INCLUDED_ */
