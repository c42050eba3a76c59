
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "capture/prof_traces.h"
#include "capture/prof_capture.h"

#include <stdlib.h>


prof_traces_t *
prof_traces_create(uint32_t max)
{
    prof_traces_t  *ts;

    ts = malloc(sizeof(prof_traces_t) + max * sizeof(prof_trace_t));
    if (ts == NULL) {
        return NULL;
    }

    prof_map_init(&ts->map);

    ts->n = 0;
    ts->max = max;

    return ts;
}


void
prof_traces_destroy(prof_traces_t *ts)
{
    prof_map_free(&ts->map);
    free(ts);
}


uint32_t
prof_traces_number(prof_traces_t *ts, const prof_trace_t *t, prof_stats_t *st)
{
    uint32_t  i;

    if (t->span == 0) {
        return 0;
    }

    /* ids of spans are random, so equal ids are the same span */

    i = prof_map_find(&ts->map, t->span, (uint32_t) t->low);

    if (i == UINT32_MAX && ts->n < ts->max) {
        prof_heap_mute();
        i = prof_map_add(&ts->map, t->span, (uint32_t) t->low, ts->n);
        prof_heap_unmute();

        if (i != UINT32_MAX) {
            ts->traces[ts->n++] = *t;
        }
    }

    if (i == UINT32_MAX) {
        st->lost_traces++;
        return 0;
    }

    return i + 1;
}


uint32_t
prof_traces_labels(const prof_traces_t *ts, uint32_t number,
    prof_profile_t *p, uint32_t set)
{
    char  trace[PROF_TRACE_ID_LEN + 1], span[PROF_SPAN_ID_LEN + 1];

    prof_trace_text(&ts->traces[number - 1], trace, span);

    set = prof_profile_labels(p, set, "trace_id", trace, NULL);

    return set == PROF_NONE
           ? PROF_NONE : prof_profile_labels(p, set, "span_id", span, NULL);
}
