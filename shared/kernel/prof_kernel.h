
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The stacks of the kernel below sampled code.
 *
 * A sample is taken by a signal of a timer.  When the timer expires, the kernel
 * generates the signal in its timer interrupt, and passes its own tracepoint
 * signal:signal_generate.  A perf event on this tracepoint writes the kernel's
 * stack of this moment to a ring, which the signal handler reads.  So the stack
 * in the kernel and the stack in the process are of the same moment.  The
 * record also has the registers of the process, by which the handler checks
 * this.
 *
 * Only a privileged process may open such events.  Workers have given up their
 * privileges, so they ask a process of their own, the "opener".  It opens the
 * event for a thread of the process that asks, and for nothing else, and passes
 * its descriptor.  The process maps the ring and closes the descriptor.  The
 * event ends with the mapping.
 */


#ifndef _PROF_KERNEL_H_INCLUDED_
#define _PROF_KERNEL_H_INCLUDED_


#include "base/prof_base.h"


/*
 * The maximum number of frames of one stack in the kernel, and of one record,
 * which also has the frames of the timer's interrupt.
 */

#define PROF_KERNEL_DEPTH    64
#define PROF_KERNEL_RECORD   96

/* functions by which the interrupt of a timer may enter the kernel */

#define PROF_KERNEL_ENTRIES  16

/* us for which the ring of the calling thread is waited for */

#define PROF_KERNEL_SHORT    100

/* threads of a process that have rings */

#define PROF_KERNEL_RINGS    16


typedef struct {
    uint64_t              start;
    uint64_t              end;
} prof_kernel_range_t;


/*
 * Written before "page" is set, then read by the thread's handler.  While
 * "page" is NULL, the answer of the opener has not arrived.
 */

typedef struct {
    int                   sock;         /* to receive the answer, or -1 */
    void                 *page;         /* struct perf_event_mmap_page */
    char                 *data;
    uint64_t              mask;         /* size of the data - 1 */
    uint32_t              nentries;
    prof_kernel_range_t   entries[PROF_KERNEL_ENTRIES];
} prof_kernel_ring_t;


/* a function of the kernel; names are sorted by start */

typedef struct {
    uint64_t              start;
    uint64_t              end;
    const char           *name;
} prof_kernel_symbol_t;


typedef struct {
    prof_kernel_symbol_t  *symbols;
    uint32_t               n;
    char                  *text;        /* memory of the names */
} prof_kernel_symbols_t;


PROF_HIDDEN_BEGIN

/*
 * Starts the opener.  It is a copy of this process without descriptors, and
 * ends when no process has the socket any more.  The opener first calls
 * titled(), unless titled is NULL.  Returns the socket, which forked processes
 * inherit, or -1 with *err set to a static text.  Context: a process with one
 * thread that may open events.
 */
int prof_kernel_opener(void (*titled)(void), const char **err);

/* sets the socket that this process uses from now on, or -1 */
void prof_kernel_use(int sock);

/*
 * Asks the opener for the ring of a thread of this process that is sampled by
 * "signo".  Returns NULL if this process has no opener, the event could not be
 * opened, or PROF_KERNEL_RINGS are open.  The function waits for the answer for
 * at most "wait" us, and not at all if the opener was late before.  The ring of
 * a late answer is empty until prof_kernel_ready() has received the answer.
 * Context: the main thread; not in a signal.
 */
prof_kernel_ring_t *prof_kernel_open(int tid, int signo, int wait);

/* receives a late answer, without waiting; NULL is ignored */
void prof_kernel_ready(prof_kernel_ring_t *ring);

/* closes a ring that no handler reads any more; NULL is ignored */
void prof_kernel_close(prof_kernel_ring_t *ring);

/* returns why the last ring was not opened, a static text; NULL: no error */
const char *prof_kernel_error(void);

/*
 * Takes the newest stack out of the ring.  pc and sp are those of the context
 * that the signal interrupted.  pcs is an array of PROF_KERNEL_DEPTH addresses
 * and receives them from the innermost on: an interrupted instruction, then
 * return addresses.  Returns their number: 0 if the process was interrupted in
 * its own code, or if the stack is not known.
 * Context: signal handler of the ring's thread (prof_kernel_sig.c).
 */
uint32_t prof_kernel_take(prof_kernel_ring_t *ring, uintptr_t pc,
    uintptr_t sp, uintptr_t *pcs);

/*
 * Asks the opener for the kernel's functions.  Returns PROF_OK, and the caller
 * frees the functions by prof_kernel_symbols_free(); or PROF_ERROR if the
 * functions are unknown.  Context: any thread, one at a time; not in a signal.
 */
int prof_kernel_symbols(prof_kernel_symbols_t *syms);
void prof_kernel_symbols_free(prof_kernel_symbols_t *syms);

/* reads a file in the format of /proc/kallsyms */
int prof_kernel_symbols_read(prof_kernel_symbols_t *syms, int fd);

/* returns the function that contains an address, or NULL */
const prof_kernel_symbol_t *prof_kernel_symbol(
    const prof_kernel_symbols_t *syms, uint64_t addr);

PROF_HIDDEN_END


#endif /* _PROF_KERNEL_H_INCLUDED_ */
