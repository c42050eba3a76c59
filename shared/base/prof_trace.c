
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_trace.h"
#include "base/prof_hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>


/* version-trace-span-flags; versions after 00 may append more */

#define PROF_TRACE_LEN    55
#define PROF_TRACE_HIGH   3
#define PROF_TRACE_LOW    19
#define PROF_TRACE_SPAN   36
#define PROF_TRACE_FLAGS  53


int
prof_trace_parse(prof_trace_t *t, const char *text, size_t len)
{
    uint64_t      version, flags;
    prof_trace_t  got;

    memset(t, 0, sizeof(prof_trace_t));

    if (len < PROF_TRACE_LEN
        || text[2] != '-'
        || text[PROF_TRACE_SPAN - 1] != '-'
        || text[PROF_TRACE_FLAGS - 1] != '-'
        || prof_hex_parse(text, 2, &version) != PROF_OK
        || prof_hex_parse(text + PROF_TRACE_HIGH, 16, &got.high) != PROF_OK
        || prof_hex_parse(text + PROF_TRACE_LOW, 16, &got.low) != PROF_OK
        || prof_hex_parse(text + PROF_TRACE_SPAN, 16, &got.span) != PROF_OK
        || prof_hex_parse(text + PROF_TRACE_FLAGS, 2, &flags) != PROF_OK)
    {
        return PROF_ERROR;
    }

    if (version == 0xff || (got.high | got.low) == 0 || got.span == 0) {
        return PROF_ERROR;
    }

    if (len > PROF_TRACE_LEN
        && (version == 0 || text[PROF_TRACE_LEN] != '-'))
    {
        return PROF_ERROR;
    }

    *t = got;

    return PROF_OK;
}


uint8_t
prof_trace_flags(const char *text)
{
    uint64_t  flags;

    (void) prof_hex_parse(text + PROF_TRACE_FLAGS, 2, &flags);

    return (uint8_t) flags;
}


void
prof_trace_text(const prof_trace_t *t, char trace[PROF_TRACE_ID_LEN + 1],
    char span[PROF_SPAN_ID_LEN + 1])
{
    (void) snprintf(trace, PROF_TRACE_ID_LEN + 1,
                    "%016" PRIx64 "%016" PRIx64, t->high, t->low);
    (void) snprintf(span, PROF_SPAN_ID_LEN + 1, "%016" PRIx64, t->span);
}
