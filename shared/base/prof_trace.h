
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Traces, as W3C's Trace Context tells of them: a request on its way through
 * many programs, and the part of it (the span) that has called this one.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_TRACE_H_INCLUDED_
#define _PROF_TRACE_H_INCLUDED_


#include "base/prof_base.h"


#define PROF_TRACE_ID_LEN  32
#define PROF_SPAN_ID_LEN   16


/* a span that is zero is no trace */

typedef struct {
    uint64_t  high;
    uint64_t  low;
    uint64_t  span;
} prof_trace_t;


PROF_HIDDEN_BEGIN

/*
 * The value of a header "traceparent": PROF_OK, or PROF_ERROR if it is not
 * valid, and the trace is zero then.
 */
int prof_trace_parse(prof_trace_t *t, const char *text, size_t len);

/* as they are in the header; null-terminated */
void prof_trace_text(const prof_trace_t *t,
    char trace[PROF_TRACE_ID_LEN + 1], char span[PROF_SPAN_ID_LEN + 1]);

PROF_HIDDEN_END


#endif /* _PROF_TRACE_H_INCLUDED_ */
