
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The turn log: what the thread of an event loop has run, run by run, in
 * memory that other processes share and that outlives the process.
 *
 * A log has two rings: runs, and the requests that the runs are for.  The
 * thread of the event loop is the only writer and takes no lock.  Any process
 * may read at any time.  A reader copies the rings and leaves out what the
 * writer may have overwritten meanwhile.
 *
 * The record of a run is made when the run begins, at the place behind the
 * last one, so it is there after the process was killed.  While a run is nested
 * in another one, the record of the outer run is in the array "outer".
 *
 * All times are nanoseconds of prof_now().  Addresses of functions are those
 * of the writing process.
 *
 * Context: the functions that write belong to the thread of the event loop,
 * and none of them allocates or calls the kernel.  Any thread of any process
 * may read.
 */


#ifndef _PROF_TURNS_H_INCLUDED_
#define _PROF_TURNS_H_INCLUDED_


#include "base/prof_base.h"


/* the layout of all structs below; a reader refuses any other version */
#define PROF_TURNS_VERSION   2

/* runs that are nested deeper than this are not logged */
#define PROF_TURNS_DEPTH     8

#define PROF_TURNS_TEXT      108


/* what a record is about */

typedef enum {
    PROF_TURNS_RUN = 0,
    PROF_TURNS_SLEEP,        /* the thread waited for events */
    PROF_TURNS_BEGIN,        /* the process began to write this log */
    PROF_TURNS_END           /* the process ended by itself */
} prof_turns_kind_e;


#define PROF_TURNS_FIRST       0x01  /* the first turn of its request */
#define PROF_TURNS_LAST        0x02  /* the request was logged or freed */
#define PROF_TURNS_SUBREQUEST  0x04  /* began in a subrequest */
#define PROF_TURNS_NESTED      0x08  /* within another run */
#define PROF_TURNS_ACCEPT      0x10  /* accepted connections */
#define PROF_TURNS_TLS         0x20  /* of a TLS handshake */
#define PROF_TURNS_TIMER       0x40  /* began by a timer */
#define PROF_TURNS_PROFILER    0x80  /* work of the profiler itself */
#define PROF_TURNS_DIED        0x100 /* the process died in it */
#define PROF_TURNS_OPEN        0x200 /* had not ended when the log was read */


/* 40 bytes, so that 4 megabytes are 2 seconds of 50,000 runs a second */

typedef struct {
    uint64_t    start;
    uint64_t    end;
    uint64_t    handler;     /* the function that the loop called; 0: none */
    uint32_t    request;     /* number of the request; 0: none */
    uint32_t    stall;       /* ns until the start in which the run could have
                                begun; UINT32_MAX: that long or longer */
    uint16_t    location;    /* a number that the writer defines; 0: none */
    uint8_t     cause;       /* of the wait before the run, as the writer
                                defines causes; 0: none */
    uint8_t     kind;        /* prof_turns_kind_e */
    uint32_t    flags;
} prof_turns_run_t;


/* as in a sockaddr_in or sockaddr_in6; an address of IPv4 has 4 bytes */

typedef struct {
    uint16_t    family;      /* 0: none */
    uint16_t    port;        /* in network byte order */
    uint8_t     address[16];
} prof_turns_address_t;


typedef struct {
    uint32_t                number;      /* 0: not used yet */
    uint16_t                status;      /* 0: not logged yet */
    uint16_t                location;
    uint64_t                start;

    /* the members below are set when the request is logged */

    uint64_t                bytes;       /* sent to the client */
    uint8_t                 id[16];      /* of its profile, or zeros */
    prof_turns_address_t    client;
    prof_turns_address_t    upstream;

    /* these are set when the request begins, as those above are */

    uint16_t                len;         /* of the text */
    uint16_t                cut;         /* bytes that did not fit */
    char                    text[PROF_TURNS_TEXT];   /* method and URI */
} prof_turns_request_t;


typedef struct {
    char                    magic[8];
    uint32_t                version;
    uint32_t                run_size;
    uint32_t                request_size;
    uint32_t                nruns;
    uint32_t                nrequests;   /* a power of two */
    uint32_t                ended;       /* flag: the writer ended by itself */
    uint64_t                owner;       /* the writing process, as the caller
                                            identifies processes; 0: none */
    uint64_t                tag;         /* of the caller: to find the names of
                                            locations */
    uint64_t                began;       /* when this process began */
    uint64_t                wall;        /* ns since the Epoch at the time 0 */
    uint64_t                written;     /* runs that ended, in the life of the
                                            log */
    uint64_t                stored;      /* of the caller: when a snapshot was
                                            last stored for a dead process */
    uint32_t                requests;    /* number of the last request */
    uint32_t                depth;       /* of runs that have not ended */
    prof_turns_run_t        outer[PROF_TURNS_DEPTH];
} prof_turns_log_t;


/* the writing process */

typedef struct {
    prof_turns_log_t       *log;         /* NULL: off */
    prof_turns_run_t       *run;         /* the record of the innermost run, or
                                            the next one */
    prof_turns_run_t       *last;        /* of the ring */
    prof_turns_request_t   *rows;
    uint32_t                mask;        /* of numbers, to find rows */
    prof_turns_request_t   *row;         /* of the innermost run's request, or
                                            NULL */
    uint32_t                depth;       /* as in the log */
} prof_turns_writer_t;


/* a copy of a log; runs are ordered by their start */

typedef struct {
    prof_turns_log_t       log;
    prof_turns_run_t      *runs;
    size_t                 nruns;
    prof_turns_request_t  *requests;     /* ordered by number */
    size_t                 nrequests;
    uint64_t               from;         /* all runs that ended later are
                                            there */
    prof_turns_run_t       open[PROF_TURNS_DEPTH];   /* not ended yet, the
                                                        outermost first */
    size_t                 nopen;
} prof_turns_copy_t;


/* who ran while a run could have begun */

#define PROF_TURNS_LOOP         ((size_t) -1)   /* the event loop itself */
#define PROF_TURNS_OVERWRITTEN  ((size_t) -2)   /* before copy->from */

typedef struct prof_turns_cut_s  prof_turns_cut_t;

/* victim and culprit are indices of copy->runs, or one of the above */
typedef void (*prof_turns_blame_pt)(void *data, size_t victim, size_t culprit,
    uint64_t ns);


PROF_HIDDEN_BEGIN

/* returns the bytes of a log whose runs take at most this many bytes */
size_t prof_turns_size(size_t runs);

/*
 * Makes a log of zeroed memory of prof_turns_size(runs).  Nothing else may use
 * the memory.
 */
void prof_turns_init(prof_turns_log_t *log, size_t runs);

/*
 * A process begins and ends to write.  prof_turns_begin() keeps the records of
 * the process before it.  If that process died, its open runs end now.
 */
void prof_turns_begin(prof_turns_writer_t *w, prof_turns_log_t *log,
    uint64_t owner);
void prof_turns_end(prof_turns_writer_t *w);

/*
 * Copies what ended after "from", and the requests of it.  Returns PROF_ERROR
 * if memory is short or if the log has another layout.  prof_turns_free()
 * frees the copy.
 */
int prof_turns_read(const prof_turns_log_t *log, uint64_t from,
    prof_turns_copy_t *copy);
void prof_turns_free(prof_turns_copy_t *copy);

/*
 * Adds the open runs to the runs: until "now", if they began before that.
 * Returns PROF_OK or PROF_ERROR (memory).
 */
int prof_turns_add_open(prof_turns_copy_t *copy, uint64_t now);

/* returns the time from which on the log has all runs; 0: it is new */
uint64_t prof_turns_reach(const prof_turns_log_t *log);

/* leaves out the requests that no run of the copy is for */
void prof_turns_forget(prof_turns_copy_t *copy);

/* returns the request with this number, or NULL */
const prof_turns_request_t *prof_turns_find(const prof_turns_copy_t *copy,
    uint32_t number);

/*
 * Calls fn for each part of the time in which each run of the copy could have
 * begun, and for runs of other requests within a run.  The parts of one victim
 * add up to its time exactly.  Returns PROF_ERROR if memory is short.
 */
int prof_turns_blame(const prof_turns_copy_t *copy, prof_turns_blame_pt fn,
    void *data);

/*
 * Prepares a copy for prof_turns_span(), which calls fn for each part of a time
 * in which "victim" waited.  The parts add up to the time exactly.  Returns
 * NULL if memory is short.  The copy must not change meanwhile.
 */
prof_turns_cut_t *prof_turns_cut(const prof_turns_copy_t *copy);
void prof_turns_cut_free(prof_turns_cut_t *cut);
void prof_turns_span(const prof_turns_cut_t *cut, size_t victim, uint64_t at,
    uint64_t to, prof_turns_blame_pt fn, void *data);

PROF_HIDDEN_END


static inline prof_turns_run_t *
prof_turns_runs(const prof_turns_log_t *log)
{
    return (prof_turns_run_t *) (log + 1);
}


static inline prof_turns_request_t *
prof_turns_requests(const prof_turns_log_t *log)
{
    return (prof_turns_request_t *) (prof_turns_runs(log) + log->nruns);
}


static inline void
prof_turns_set(prof_turns_run_t *run, uint64_t start, uint64_t handler,
    uint8_t kind, uint32_t flags)
{
    run->start = start;
    run->end = 0;
    run->handler = handler;
    run->request = 0;
    run->stall = 0;
    run->location = 0;
    run->cause = 0;
    run->kind = kind;
    run->flags = flags;
}


/* the record of w->run is complete */

static inline void
prof_turns_written(prof_turns_writer_t *w)
{
    prof_turns_log_t  *log;

    log = w->log;

    w->run = (w->run == w->last) ? prof_turns_runs(log) : w->run + 1;

    __atomic_store_n(&log->written, log->written + 1, __ATOMIC_RELEASE);
}


/* a run begins; the log is on */

static inline void
prof_turns_enter(prof_turns_writer_t *w, uint64_t start, uint64_t handler)
{
    if (w->depth == 0) {
        prof_turns_set(w->run, start, handler, PROF_TURNS_RUN, 0);

    } else if (w->depth < PROF_TURNS_DEPTH) {
        w->log->outer[w->depth - 1] = *w->run;
        prof_turns_set(w->run, start, handler, PROF_TURNS_RUN,
                       PROF_TURNS_NESTED);
    }

    w->row = NULL;
    w->depth++;

    __atomic_store_n(&w->log->depth, w->depth, __ATOMIC_RELEASE);
}


/* returns the row of the request, or NULL if it was overwritten */

static inline prof_turns_request_t *
prof_turns_row(prof_turns_log_t *log, uint32_t number)
{
    prof_turns_request_t  *row;

    row = prof_turns_requests(log) + (number & (log->nrequests - 1));

    return (number && row->number == number) ? row : NULL;
}


/* returns whether the innermost run has a record */

static inline int
prof_turns_open(const prof_turns_writer_t *w)
{
    return w->depth - 1 < PROF_TURNS_DEPTH;
}


/* the innermost run is for this request */

static inline void
prof_turns_own(prof_turns_writer_t *w, uint32_t number)
{
    if (prof_turns_open(w)) {
        w->run->request = number;
        w->row = prof_turns_row(w->log, number);
    }
}


/* the innermost run could have begun this time before it did, in ns */

static inline void
prof_turns_stalled(prof_turns_writer_t *w, uint64_t ns)
{
    if (prof_turns_open(w)) {
        w->run->stall = ns < UINT32_MAX ? (uint32_t) ns : UINT32_MAX;
    }
}


/* the innermost run ends; there is one.  flags are added to its record */

static inline void
prof_turns_leave(prof_turns_writer_t *w, uint64_t end, uint32_t flags)
{
    prof_turns_log_t  *log;

    log = w->log;

    if (prof_turns_open(w)) {
        w->run->end = end;
        w->run->location = w->row ? w->row->location : 0;
        w->run->flags |= flags;

        prof_turns_written(w);
    }

    w->depth--;

    if (w->depth) {

        /* the outer run goes on */

        if (w->depth < PROF_TURNS_DEPTH) {
            *w->run = log->outer[w->depth - 1];
        }

        w->row = prof_turns_open(w) ? prof_turns_row(log, w->run->request)
                                    : NULL;
    }

    __atomic_store_n(&log->depth, w->depth, __ATOMIC_RELEASE);
}


/* the thread has waited for events, outside of runs; the log is on */

static inline void
prof_turns_slept(prof_turns_writer_t *w, uint64_t start, uint64_t end)
{
    prof_turns_set(w->run, start, 0, PROF_TURNS_SLEEP, 0);
    w->run->end = end;

    prof_turns_written(w);
}


/*
 * Returns the row of a new request.  The caller sets its members other than
 * the number, and calls prof_turns_added(), which returns the number.
 */

static inline prof_turns_request_t *
prof_turns_add(prof_turns_writer_t *w)
{
    uint32_t               number;
    prof_turns_request_t  *row;

    number = w->log->requests + 1;
    number += (number == 0);

    w->log->requests = number;

    row = w->rows + (number & w->mask);

    __atomic_store_n(&row->number, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);

    return row;
}


static inline uint32_t
prof_turns_added(prof_turns_writer_t *w, prof_turns_request_t *row)
{
    uint32_t  number;

    number = w->log->requests;

    __atomic_store_n(&row->number, number, __ATOMIC_RELEASE);

    return number;
}


#endif /* _PROF_TURNS_H_INCLUDED_ */
