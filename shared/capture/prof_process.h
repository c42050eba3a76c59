
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Sampling all threads of the process, for any number of captures at once.
 *
 * Each thread has one pair of timers and one ring for all captures.  The
 * timers have the highest frequency of all captures.  When the rings are
 * emptied, each capture takes the samples that are due for it.  The weight of
 * a sample is the time since the previous sample of the same capture.  So the
 * weights of a thread sum to its CPU time, also if samples were lost or
 * skipped.
 *
 * There are two timers, because a timer on a CPU clock expires only at ticks
 * of the kernel (for example 250 per second).  Up to that rate the CPU timer
 * is sufficient, and it does not wake a waiting thread.  Above it the CPU
 * timer starts a monotonic timer, which stops when it finds the thread
 * waiting.  Such an expiration is no sample: the code before the wait used the
 * time.
 *
 * A paced thread that is found waiting in a system call is sampled less and
 * less often, until its CPU timer expires: see prof_sampler.h.
 *
 * Wall time is the time of the "main" thread.  This thread reports when it is
 * idle.  Its idle time is known exactly, and the clocks of samples do not
 * contain it.  Only its monotonic timer runs.  While the thread is idle, the
 * timer continues and the signal is blocked, because two changes of the signal
 * mask cost less than two changes of a timer.  An idle time makes the next
 * expiration too early.  An expiration that is much too early is no sample: it
 * sets the timer to the time at which the sample is due.
 *
 * Context: the main thread, not in a signal, except the handlers in
 * prof_process_sig.c.  Another thread may relieve a main thread that runs one
 * event for long; a mutex excludes the main thread then.  A handler may run in
 * another thread until the thread's timers are deleted.  The entries of these
 * timers tell the main thread when no handler runs (prof_signal.h).
 */


#ifndef _PROF_PROCESS_H_INCLUDED_
#define _PROF_PROCESS_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"
#include "base/prof_trace.h"
#include "capture/prof_signal.h"
#include "capture/prof_turn.h"
#include "stacks/prof_ring.h"
#include "stacks/prof_take.h"
#include "unwind/prof_unwind.h"


/* threads that are sampled; for further threads only CPU time is counted */
#define PROF_PROCESS_THREADS  512

/* parts of the address space that may be a thread's stack */
#define PROF_PROCESS_RANGES   4096

/* bytes by which a main thread's stack may grow */
#define PROF_STACK_GROWTH  (64 * 1024 * 1024)

#define PROF_THREAD_NAME      16

/*
 * Labels of an entry: the lowest bits are the thread's name, the next bits are
 * the location, and the highest bits are the number of the trace.
 */
#define PROF_LABEL_BITS       9
#define PROF_LABEL_TRACE      (2 * PROF_LABEL_BITS)

/*
 * A reading of the CPU clock is a system call, and costs as much as a short
 * wait itself.  So the CPU time of a wait is measured at most once in this
 * time, in ns.  Other waits count with the mean of the measured ones.
 */
#define PROF_PROCESS_MEASURE  1000000

/* CPU time of the process that may be an error of clocks, ns */
#define PROF_PROCESS_UNSEEN   1000000


/*
 * Fine timers of a thread, which expire in turn above the rate of ticks.  The
 * kernel sets a timer again when its signal is delivered.  If another timer is
 * due earlier, the kernel need not program the machine's timer.  In a virtual
 * machine this is a large part of the cost of a signal.
 */
#define PROF_FINE_TIMERS  2


/* the CPU clock of a thread (include/linux/posix-timers_types.h) */
#define prof_thread_clock(tid)  ((clockid_t) (~(unsigned) (tid) << 3 | 6))

/* CPU time before the first look for threads has ended */
#define PROF_PROCESS_NOT_FOUND  "[threads not found yet]"


typedef struct {
    uintptr_t             start;
    uintptr_t             end;
} prof_area_t;


/* a thread in /proc */

typedef struct {
    int                   tid;
    uint64_t              blocked;      /* signals, by their bits */
    uint64_t              cpu;          /* its clock when the result is taken */
    char                  name[PROF_THREAD_NAME];
} prof_found_t;


/* a thread in a capture; clocks are those of its last sample */

typedef struct {
    uint64_t              cpu;
    uint64_t              busy;
    uint64_t              due;          /* clock of the next sample, or 0 */
    uint64_t              dropped;      /* as in that sample */
    uint32_t              node;         /* node of that sample, or PROF_NONE */
    uint32_t              labels;
    prof_sample_state_e   state;
} prof_last_t;


typedef struct prof_thread_s  prof_thread_t;

struct prof_thread_s {
    prof_expiry_t        *tick;         /* NULL: not made */
    prof_expiry_t        *fine;
    int                   tid;          /* 0: free */
    int                   seen;         /* found by the last scan */
    int                   renew;        /* after the next scan */
    int                   main;
    int                   timers;       /* timers exist */
    prof_signal_e         signal;
    clockid_t             clock;        /* its CPU clock, for other threads */
    timer_t               tick_timer;
    timer_t               fine_timers[PROF_FINE_TIMERS];
    char                  name[PROF_THREAD_NAME];
    int                   deaf;         /* both signals are blocked */
    void                 *memory;
    size_t                memory_size;
    uint64_t              cpu;          /* at the last drain */
    uint64_t              stale;        /* CPU time without a sample, ns */
    prof_stats_t          passed;       /* counters that the captures have */
    const prof_unwind_t  *before;       /* tables of a late handler, or NULL */
    prof_last_t           last[PROF_PROCESS_CAPTURES];
    uint64_t              first[PROF_PROCESS_CAPTURES];  /* CPU clock when
                                           the capture began to count it */

    /* the members below belong to the handlers */

    int                   running;      /* the fine timers run */
    int                   idling;       /* expirations are only noted */
    int                   expired;      /* a timer expired in an idle thread */
    uint64_t              wait;         /* paced: ns between samples while the
                                           thread waits; 0: it runs */
    uint64_t              cpu_due;      /* CPU clock of a thread that woke */
    int                   paced;        /* set by the main thread */
    int                   coarse;       /* ticks are enough for the period */
    const char           *location;     /* of its samples, or NULL */
    int                   traced;       /* "trace" is valid */
    prof_trace_t          trace;
    uint64_t              period;       /* ns, of the highest frequency */
    uint64_t              due;          /* clock of the next sample */
    uint64_t              idle;         /* ns that the main thread was idle */
    uint64_t              idle_cpu;     /* its CPU time meanwhile */
    const prof_unwind_t  *unwind;
    prof_walk_cache_t    *cache;
    prof_kernel_ring_t   *kernel;       /* or NULL */
    prof_area_t          *ranges;       /* sorted */
    uint32_t              nranges;
    prof_area_t           stack;
    prof_ring_t           ring;
    prof_stats_t          stats;
};


/* a capture of the process; an entry is a stack in threads of one name */

typedef struct {
    prof_capture_t       *capture;      /* NULL: free */
    int                   paced;
    int                   alone;        /* of one thread: its last[0] */
    const prof_wait_t    *waits;        /* that divide the idle time */
    uint32_t              nwaits;
    uint32_t             *chains;       /* hash of entries: index + 1 */
    uint32_t              mask;
    uint64_t              start;        /* clocks */
    uint64_t              start_cpu;
    uint64_t              start_idle;
    uint64_t              start_idle_cpu;
} prof_process_capture_t;


/* threads that one call closes: about 5 us for each */
#define PROF_CLOSE_THREADS  16


typedef struct {
    uint32_t                ncaptures;
    int                     closing;      /* there are threads without one */
    int                     nthreads;     /* entries of prof_threads that were
                                             in use; each is on a page of its
                                             own */
    int                     found;        /* the threads are known */
    int                     rescan;       /* read the directory next time */
    int                     fault;        /* SIGFPE is held */
    uint32_t                paced;        /* number of paced captures */
    prof_process_capture_t  slots[PROF_PROCESS_CAPTURES];
    prof_thread_t          *main;
    char                    name[PROF_THREAD_NAME];  /* name of the program */
    uint64_t                tick;         /* ns of the kernel's tick */
    uint64_t                period;       /* ns; period of all timers */
    uint64_t                idle_since;   /* clocks; 0: not idle */
    uint64_t                idle_since_cpu;  /* 0: not measured */
    uint64_t                idle_measure; /* clock of the next measured wait */
    uint64_t                idle_mean;    /* CPU time of a wait, ns, or 0 */
    sigset_t                idle_mask;    /* for calls that wait with a mask */
} prof_process_t;


PROF_HIDDEN_BEGIN

extern prof_process_t  prof_process;

/* an entry with a tid is in use; a handler may still use another entry */
extern prof_thread_t   prof_threads[PROF_PROCESS_THREADS];


/*
 * prof_process_scan.c: finds new threads, and threads that have ended.  It
 * takes what the last scan has found, and lets the scanner's thread begin the
 * next one.  It does not wait.
 */

void prof_process_scan(void);

/* called before the first scan of the first capture */
void prof_process_scan_begin(void);

/* returns the writable mappings of the process that the last scan has found */
void prof_process_scanned(const prof_area_t **ranges, uint32_t *n);


/* prof_process_thread.c */

/*
 * f: NULL for the calling thread, which is the main thread.  Returns NULL if
 * there are too many threads, or if memory is short.
 */
prof_thread_t *prof_thread_open(const prof_found_t *f);

/* makes new timers with signals that the thread does not block */
void prof_thread_renew(prof_thread_t *t, const prof_found_t *f);

/* sets the parts of the address space that may be the thread's stack */
void prof_thread_ranges(prof_thread_t *t, const prof_area_t *ranges,
    uint32_t n);

/* sets the thread's timers for prof_process.period */
void prof_thread_set(prof_thread_t *t);

/* deletes the timers, and frees the memory */
void prof_thread_close(prof_thread_t *t);

/*
 * Opens a thread that is not in the table, with timers of its own: of this
 * period, and paced or not.  The caller has filled *t with zeros.  Returns
 * PROF_ERROR if memory or timers are short.  Context: any thread.
 */
int prof_thread_open_alone(prof_thread_t *t, int tid, uint64_t period,
    int paced);
void prof_thread_close_alone(prof_thread_t *t);

/* returns whether no handler uses the thread's memory and tables */
int prof_thread_quiet(const prof_thread_t *t);

/* returns the thread's CPU time; 0 if the thread has ended */
uint64_t prof_thread_cpu(const prof_thread_t *t);


/* prof_process_fold.c */

/* places the entries, and the hash of entries, in the memory of the capture */
void prof_process_entries(prof_process_capture_t *slot, prof_capture_t *c);

/*
 * Moves the thread's samples from its ring to all captures.  renew: 0 if this
 * is not the main thread, which alone may look for new objects.  Addresses in
 * such objects have no names then.
 */
void prof_process_fold(prof_thread_t *t, int renew);

/* adds a sample, with marked addresses, to one capture */
void prof_process_sample(prof_process_capture_t *slot, prof_thread_t *t,
    const prof_sample_t *sample);

/* adds the time from the last sample until "end" to its stack */
void prof_process_tail(prof_process_capture_t *slot, prof_thread_t *t,
    uint64_t end);

/* labels with names that the capture has given up become "[other]" */
void prof_process_forget(prof_capture_t *c);

/* adds weight without a stack: the node is one frame with this name */
void prof_process_named(prof_process_capture_t *slot, uint32_t frame,
    const char *name, uint32_t type, uint32_t labels, uint64_t wall,
    uint64_t cpu);

/* adds idle time in which requests waited for this */
void prof_process_waited_for(prof_process_capture_t *slot,
    const prof_thread_t *t, const prof_wait_t *wait, uint64_t wall);

/* returns the "labels" of entries: one or two names of the capture */
uint32_t prof_process_label(prof_process_capture_t *slot,
    const prof_thread_t *t, const char *location);


/*
 * prof_process_sig.c; context: signal handler; prof_thread_pace() and
 * prof_thread_pace_due(): any
 *
 * Sets the fine timers of the thread.  The first expiration is after "first"
 * ns.  The others follow at intervals of one period.  A period of 0 stops all
 * fine timers.
 */
void prof_thread_pace(prof_thread_t *t, uint64_t first, uint64_t period);

/* sets the fine timers of a paced thread so that the first expires at t->due */
void prof_thread_pace_due(prof_thread_t *t);

void prof_thread_ticked(void *data, const ucontext_t *uc);
void prof_thread_expired(void *data, const ucontext_t *uc);

PROF_HIDDEN_END


#endif /* _PROF_PROCESS_H_INCLUDED_ */
