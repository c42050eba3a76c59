
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
 * The run that has not ended yet is not in the ring.  It is in the array
 * "open", outermost first, so it can be found after the process was killed.
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
#define PROF_TURNS_VERSION   1

/* runs that are nested deeper are in the ring, but not in "open" */
#define PROF_TURNS_DEPTH     8

#define PROF_TURNS_TEXT      104


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


typedef struct {
    uint32_t    number;      /* 0: not used yet */
    uint16_t    status;      /* 0: not logged yet */
    uint16_t    location;
    uint64_t    start;
    uint64_t    bytes;       /* sent to the client */
    uint8_t     id[16];      /* of its profile, or zeros */
    uint8_t     client[16];  /* IPv6, or a mapped IPv4 address; zeros: none */
    uint8_t     upstream[16];
    uint16_t    client_port;
    uint16_t    upstream_port;
    uint16_t    len;         /* of the text */
    uint16_t    cut;         /* bytes of the text that did not fit */
    char        text[PROF_TURNS_TEXT];   /* method and URI */
    uint64_t    end;         /* 0: not logged yet */
} prof_turns_request_t;


typedef struct {
    uint64_t    start;
    uint64_t    handler;
    uint32_t    request;
    uint32_t    flags;
} prof_turns_open_t;


typedef struct {
    char                magic[8];
    uint32_t            version;
    uint32_t            run_size;
    uint32_t            request_size;
    uint32_t            nruns;       /* a power of two, as nrequests */
    uint32_t            nrequests;
    uint32_t            ended;       /* flag: the writer ended by itself */
    uint64_t            owner;       /* the writing process, as the caller
                                        identifies processes; 0: none */
    uint64_t            began;       /* when this process began */
    uint64_t            wall;        /* ns since the Epoch at prof_now() == 0 */
    uint64_t            written;     /* runs in the life of the log */
    uint32_t            requests;    /* number of the last request */
    uint32_t            depth;       /* of open runs */
    prof_turns_open_t   open[PROF_TURNS_DEPTH];
} prof_turns_log_t;


/* a copy of a log; runs are ordered by their start */

typedef struct {
    prof_turns_log_t       log;
    prof_turns_run_t      *runs;
    size_t                 nruns;
    prof_turns_request_t  *requests;     /* ordered by number */
    size_t                 nrequests;
    uint64_t               from;         /* all runs that ended later are
                                            there */
} prof_turns_copy_t;


/* who ran while a run could have begun */

#define PROF_TURNS_LOOP         ((size_t) -1)   /* the event loop itself */
#define PROF_TURNS_OVERWRITTEN  ((size_t) -2)   /* before copy->from */

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
 * the process before it, whose open runs are forgotten.
 */
void prof_turns_begin(prof_turns_log_t *log, uint64_t owner);
void prof_turns_end(prof_turns_log_t *log);

/*
 * Copies what ended after "from", and the requests of it.  Returns PROF_ERROR
 * if memory is short or if the log has another layout.  prof_turns_free()
 * frees the copy.
 */
int prof_turns_read(const prof_turns_log_t *log, uint64_t from,
    prof_turns_copy_t *copy);
void prof_turns_free(prof_turns_copy_t *copy);

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


/* a run begins; the open run is complete before it counts */

static inline void
prof_turns_enter(prof_turns_log_t *log, uint64_t start, uint64_t handler)
{
    prof_turns_open_t  *open;

    open = &log->open[log->depth % PROF_TURNS_DEPTH];

    open->start = start;
    open->handler = handler;
    open->request = 0;
    open->flags = 0;

    __atomic_store_n(&log->depth, log->depth + 1, __ATOMIC_RELEASE);
}


/* the innermost open run */

static inline prof_turns_open_t *
prof_turns_inner(prof_turns_log_t *log)
{
    return &log->open[(log->depth - 1) % PROF_TURNS_DEPTH];
}


/*
 * Returns the record that is written next.  The caller sets all members, and
 * then calls prof_turns_written().
 */

static inline prof_turns_run_t *
prof_turns_next(prof_turns_log_t *log)
{
    return prof_turns_runs(log) + (log->written & (log->nruns - 1));
}


static inline void
prof_turns_written(prof_turns_log_t *log)
{
    __atomic_store_n(&log->written, log->written + 1, __ATOMIC_RELEASE);
}


static inline void
prof_turns_leave(prof_turns_log_t *log)
{
    __atomic_store_n(&log->depth, log->depth - 1, __ATOMIC_RELEASE);
}


/*
 * Returns the row of a new request, whose number is set.  The caller sets the
 * other members, of which a reader may see old values until then.
 */

static inline prof_turns_request_t *
prof_turns_add_request(prof_turns_log_t *log)
{
    uint32_t               number;
    prof_turns_request_t  *request;

    number = log->requests + 1;
    number += (number == 0);

    request = prof_turns_requests(log) + (number & (log->nrequests - 1));

    __atomic_store_n(&request->number, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);

    log->requests = number;

    return request;
}


/* publishes the row */

static inline void
prof_turns_added(prof_turns_log_t *log, prof_turns_request_t *request)
{
    __atomic_store_n(&request->number, log->requests, __ATOMIC_RELEASE);
}


/* returns the row of the request, or NULL if it was overwritten */

static inline prof_turns_request_t *
prof_turns_row(prof_turns_log_t *log, uint32_t number)
{
    prof_turns_request_t  *request;

    request = prof_turns_requests(log) + (number & (log->nrequests - 1));

    return (number && request->number == number) ? request : NULL;
}


#endif /* _PROF_TURNS_H_INCLUDED_ */
