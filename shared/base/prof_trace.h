
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Traces of W3C's Trace Context.  A trace is a request on its way through many
 * programs.  A span of the trace is the part that has called this program.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_TRACE_H_INCLUDED_
#define _PROF_TRACE_H_INCLUDED_


#include "base/prof_base.h"


#define PROF_TRACE_ID_LEN  32
#define PROF_SPAN_ID_LEN   16


/* a span of 0 means that there is no trace */

typedef struct {
    uint64_t  high;
    uint64_t  low;
    uint64_t  span;
} prof_trace_t;


PROF_HIDDEN_BEGIN

/*
 * Parses the value of a header "traceparent".  Returns PROF_OK, or PROF_ERROR
 * if the value is invalid; the trace is then zero.
 */
int prof_trace_parse(prof_trace_t *t, const char *text, size_t len);

/* returns the flags in a value that prof_trace_parse() accepts */
uint8_t prof_trace_flags(const char *text);

/* writes the ids of trace and span as hex digits, null-terminated */
void prof_trace_text(const prof_trace_t *t,
    char trace[PROF_TRACE_ID_LEN + 1], char span[PROF_SPAN_ID_LEN + 1]);

PROF_HIDDEN_END


#endif /* _PROF_TRACE_H_INCLUDED_ */
