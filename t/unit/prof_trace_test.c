
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: base
 * runs: beside
 *
 * Traces: valid and invalid headers, and the labels of a capture's samples.
 */


#include "tap.h"

#include "base/prof_trace.h"
#include "capture/prof_traces.h"

#include <stdlib.h>
#include <string.h>


#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN   "00f067aa0ba902b7"
#define VALID  "00-" TRACE "-" SPAN "-01"


static void test_valid(void);
static void test_wrong(void);
static void test_cut(void);
static void test_numbers(void);
static void test_labels(void);


int
main(void)
{
    test_valid();
    test_wrong();
    test_cut();
    test_numbers();
    test_labels();

    return done_testing();
}


static void
test_valid(void)
{
    char          trace[PROF_TRACE_ID_LEN + 1], span[PROF_SPAN_ID_LEN + 1];
    uint32_t      i;
    prof_trace_t  t;

    static const char *const  valid[] = {
        VALID,
        "00-" TRACE "-" SPAN "-00",
        "00-" TRACE "-" SPAN "-ff",
        "01-" TRACE "-" SPAN "-01",
        "fe-" TRACE "-" SPAN "-01-what comes later"
    };

    for (i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
        is_int(prof_trace_parse(&t, valid[i], strlen(valid[i])), PROF_OK,
               "a valid header is read: %s", valid[i]);

        prof_trace_text(&t, trace, span);

        is_str(trace, TRACE, "the header has its trace");
        is_str(span, SPAN, "the header has its span");
    }

    is_int(prof_trace_parse(&t, "00-00000000000000000000000000000001-"
                                "0000000000000001-01", 55),
           PROF_OK, "a trace with leading zeros is valid");

    prof_trace_text(&t, trace, span);

    is_str(trace, "00000000000000000000000000000001",
           "the zeros of the trace are read");
    is_str(span, "0000000000000001", "the zeros of the span are read");
}


static void
test_wrong(void)
{
    uint32_t      i;
    prof_trace_t  t;

    static const char *const  wrong[] = {
        "",
        "-",
        "00",
        TRACE,
        "ff-" TRACE "-" SPAN "-01",
        "0-" TRACE "-" SPAN "-01",
        "000-" TRACE "-" SPAN "-01",
        "0x-" TRACE "-" SPAN "-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        "00-" TRACE "-" SPAN "-0g",
        "00-" TRACE "-" SPAN "-01-more",
        "00-" TRACE "-" SPAN "-01 ",
        " 00-" TRACE "-" SPAN "-01",
        "01-" TRACE "-" SPAN "-01more",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e47365-" SPAN "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473\xff-" SPAN "-01",
        "00-" TRACE "-" SPAN "-01, " VALID
    };

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memset(&t, 0xff, sizeof(prof_trace_t));

        is_int(prof_trace_parse(&t, wrong[i], strlen(wrong[i])), PROF_ERROR,
               "a wrong header is refused: \"%s\"", wrong[i]);
        ok(t.high == 0 && t.low == 0 && t.span == 0,
           "a wrong header leaves no trace");
    }
}


/* only one length is right, and bytes beyond the length are not read */

static void
test_cut(void)
{
    char          *copy;
    size_t         len;
    uint32_t       bad;
    prof_trace_t   t;

    bad = 0;

    for (len = 0; len < sizeof(VALID) - 1; len++) {
        copy = malloc(len + 1);
        memcpy(copy, VALID, len);

        bad += prof_trace_parse(&t, copy, len) != PROF_ERROR;

        free(copy);
    }

    is_int(bad, 0, "shortened headers are invalid");
}


static void
test_numbers(void)
{
    uint32_t        i, wrong;
    prof_stats_t    st;
    prof_trace_t    t;
    prof_traces_t  *ts;

    memset(&st, 0, sizeof(prof_stats_t));
    memset(&t, 0, sizeof(prof_trace_t));

    ts = prof_traces_create(1000);

    is_int(prof_traces_number(ts, &t, &st), 0,
           "a sample without a trace has no number");

    wrong = 0;

    for (i = 0; i < 3000; i++) {
        t.low = 7;
        t.span = 1 + i % 1000;
        wrong += prof_traces_number(ts, &t, &st) != 1 + i % 1000;
    }

    is_int(wrong, 0, "each trace has its number");
    is_int(st.lost_traces, 0, "no trace is lost");

    t.span = 5000;
    is_int(prof_traces_number(ts, &t, &st), 0,
           "a trace too many has no number");
    is_int(prof_traces_number(ts, &t, &st), 0,
           "the same trace has no number again");
    is_int(st.lost_traces, 2, "both losses are counted");

    t.span = 1;
    is_int(prof_traces_number(ts, &t, &st), 1,
           "known traces keep their numbers");

    t.low = 8;
    is_int(prof_traces_number(ts, &t, &st), 0,
           "another trace with the same span has no number");

    prof_traces_destroy(ts);
}


static void
test_labels(void)
{
    uint32_t             i, set, again, wrong;
    prof_stats_t         st;
    prof_trace_t         t;
    prof_traces_t       *ts;
    prof_profile_t      *p;
    const prof_label_t  *label;

    memset(&st, 0, sizeof(prof_stats_t));

    ts = prof_traces_create(4000);
    p = prof_profile_create("traces");

    for (i = 0; i < 4000; i++) {
        t.high = 0x4bf92f3577b34da6;
        t.low = 0xa3ce929d0e0e4736;
        t.span = 1 + i;
        (void) prof_traces_number(ts, &t, &st);
    }

    set = prof_profile_labels(p, PROF_NONE, "thread", "main", NULL);
    wrong = 0;

    for (i = 1; i <= 4000; i++) {
        again = prof_traces_labels(ts, i, p, set);
        wrong += again != prof_traces_labels(ts, i, p, set);
    }

    is_int(wrong, 0, "a trace has one set of labels");
    is_int(p->nlabels, 2 + 4000, "sets share their common labels");

    again = prof_traces_labels(ts, 255, p, set);

    label = prof_profile_label_find(p, again, "trace_id");
    is_str(label->value, TRACE, "the set has the trace");

    label = prof_profile_label_find(p, again, "span_id");
    is_str(label->value, "00000000000000ff", "the set has the span");

    label = prof_profile_label_find(p, again, "thread");
    is_str(label->value, "main", "the set keeps its other labels");

    prof_profile_destroy(p);
    prof_traces_destroy(ts);
}
