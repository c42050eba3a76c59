
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The current work of a thread, for profilers in other processes, as
 * OpenTelemetry's OTEP 4719 (process context) and OTEP 4947 (thread context)
 * specify it.
 *
 * A reader finds the process context in a mapping with the name "OTEL_CTX".
 * It finds the thread-local pointer otel_thread_ctx_v1 in the table of dynamic
 * symbols, and the record of a thread through this pointer.  A reader stops
 * the thread while it reads, so the thread changes records without locks: it
 * detaches a record before it changes the record.
 *
 * Context: one thread of the process, which opens, attaches and closes; not in
 * a signal.
 */


#ifndef _PROF_CONTEXT_H_INCLUDED_
#define _PROF_CONTEXT_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_trace.h"


/* maximum length of a route: a record has the size of two cache lines */

#define PROF_CONTEXT_ROUTE  98


/* the layout of OTEP 4947; numbers have the byte order of the machine */

typedef struct {
    uint8_t   trace[16];     /* zeros: no trace */
    uint8_t   span[8];
    uint8_t   valid;         /* 1: the record is complete */
    uint8_t   flags;         /* of the trace */
    uint16_t  size;          /* of the attributes */

    /* one attribute: index of its key, length, value */

    uint8_t   attributes[2 + PROF_CONTEXT_ROUTE];
} prof_context_record_t;


PROF_HIDDEN_BEGIN

/* the pointer of the thread that has opened the context, or NULL */
extern prof_context_record_t  **prof_context_attached;

/*
 * Publishes the context of the process, and prepares this thread to attach
 * records.  Returns PROF_ERROR if the mapping cannot be made; errno is set.
 */
int prof_context_open(void);

/* detaches the record, and takes back the context of the process */
void prof_context_close(void);

/*
 * Writes a record that is not attached. trace may be NULL.  A route that is too
 * long is cut off at the end of a character.
 */
void prof_context_write(prof_context_record_t *record,
    const prof_trace_t *trace, uint8_t flags, const char *route, size_t len);

PROF_HIDDEN_END


/* publishes the record as the thread's present work; NULL: no work */

static inline void
prof_context_attach(prof_context_record_t *record)
{
    __atomic_store_n(prof_context_attached, record, __ATOMIC_RELEASE);
}


#endif /* _PROF_CONTEXT_H_INCLUDED_ */
