
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: views
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "views/prof_summary.h"


static void test_lines(void);
static void test_memory(void);
static void test_doubts(void);
static void test_empty(void);
static char *notes(const prof_profile_t *p);
static void add(void *data, const prof_buf_t *line, int warning);
static void check_doubt(const prof_profile_t *p, const char *text,
    const char *name);


int
main(void)
{
    test_lines();
    test_memory();
    test_doubts();
    test_empty();

    return done_testing();
}


static void
test_memory(void)
{
    char            *text;
    prof_profile_t  *p;

    p = prof_profile_create("memory");
    p->mode = PROF_MODE_OBJECT;
    p->stats.no_unwind = 3;

    text = notes(p);
    ok(strstr(text, "Allocated: ") != NULL && strstr(text, "followed") == NULL
       && strstr(text, "counted") == NULL,
       "memory: a complete profile has no warning");
    free(text);

    p->stats.lost_live = 7;
    p->stats.lost_hooks = 8;

    text = notes(p);
    ok(strstr(text, "More allocations at a time than can be followed: 7 are "
                    "not among those in use\n") != NULL,
       "memory: a note tells that there were too many");
    ok(strstr(text, "Allocations or frees that could not be counted: 8\n")
       != NULL, "memory: a note tells that calls were not counted");
    free(text);

    prof_profile_destroy(p);
}


static void
test_lines(void)
{
    char            *text;
    prof_profile_t  *p;

    p = fixture_typical();
    p->stats.truncated = 0;
    p->stats.lost_overrun = 0;

    text = notes(p);
    is_str(text,
           "252.9 ms from start to end: 2.9 ms running in 2 turns, "
           "250.0 ms waiting\n"
           "Of all time: 0.9% CPU, 0.1% no processor, 99.0% waiting\n"
           "3 samples, 1020 Hz (asked: 1000 Hz), lost: 0, truncated: 0\n"
           "CPU clock: 2.5 ms, sum of the stacks: 2.5 ms, the profiler's own "
           "time: 6.7 \302\265s\n",
           "a complete profile has no warning");
    free(text);

    p->stats.turns = 1;
    p->stats.samples = 1;
    p->cpu = 7000000;

    text = notes(p);
    ok(strstr(text, "in 1 turn, ") != NULL, "one turn is singular");
    ok(strstr(text, "\n1 sample, ") != NULL, "one sample is singular");
    ok(strstr(text, "CPU clock: 7.0 ms, sum of the stacks: 2.5 ms") != NULL,
       "a sum that is not the clock's");
    free(text);

    prof_profile_destroy(p);
}


static void
test_doubts(void)
{
    uint32_t         i, node;
    prof_profile_t  *p;

    p = fixture_create("doubts");
    node = fixture_stack(p, PROF_NONE, "f");

    for (i = 0; i < 100; i++) {
        fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1000000, 1000000);
    }

    check_doubt(p, "", "a profile without a loss has no warning");

    p->stats.lost_ring = 4;
    p->stats.lost_overrun = 6;
    check_doubt(p, "", "few are lost");

    p->stats.lost_overrun = 7;
    check_doubt(p, "! More than one in ten samples was lost\n", "lost");

    /* 5 ms at 1000 Hz, in which another process ran */

    p->running += 5000000;
    check_doubt(p, "", "timers that expire while the thread is stopped lose "
                       "no sample");
    p->running -= 5000000;

    p->running += 50000000;
    p->stats.lost_overrun = 45;
    check_doubt(p, "! The machine was busy: 45 of 149 samples were not taken "
                "because the process did not get the CPU\n",
                "many timers expire while the thread is stopped");

    p->stats.lost_overrun = 10;
    check_doubt(p, "", "one of ten samples is not many");

    p->stats.lost_overrun = 70;
    check_doubt(p, "! The machine was busy: 50 of 174 samples were not taken "
                "because the process did not get the CPU\n"
                "! More than one in ten samples was lost\n",
                "samples are lost for both reasons");
    p->running -= 50000000;

    p->stats.lost_overrun = 5;
    p->stats.samples = 20;
    check_doubt(p, "", "nine lost samples are few, of any number");
    p->stats.samples = 100;
    p->stats.lost_overrun = 0;

    p->stats.truncated = 3;
    check_doubt(p, "! Stacks deeper than the limit: 3\n", "truncated");
    p->stats.truncated = 0;

    p->stats.no_unwind = 4;
    check_doubt(p, "! Stacks end at code without unwind information: 4\n",
                "no unwind information");
    p->stats.no_unwind = 0;

    p->stats.bad_stack = 5;
    check_doubt(p, "! Stacks end at an unreadable address: 5\n", "bad stack");
    p->stats.bad_stack = 0;

    p->stats.lost_tree = 6;
    check_doubt(p, "! Stacks cut because the call tree was full: 6\n",
                "call tree");
    p->stats.lost_tree = 0;

    p->frequency = 2002;
    fixture_entry(p, node, PROF_ENTRY_TURN, 1, 1);
    check_doubt(p, "! Sampled at less than half of the frequency that was "
                   "asked for\n", "frequency");

    p->cpu /= 2;
    check_doubt(p, "", "the frequency is that of the time on the processor");

    prof_profile_destroy(p);
}


static void
test_empty(void)
{
    prof_profile_t  *p;

    p = fixture_create("empty");
    p->cpu = 38000;
    check_doubt(p, "! 0 samples, the capture used 38.0 \302\265s of CPU time\n",
                "empty");

    prof_profile_fact(p, "request", "GET / HTTP/1.1", 14);
    p->stats.turns = 1;
    check_doubt(p, "! 0 samples, the request used 38.0 \302\265s of CPU time: "
                   "turns are shown as a whole\n", "turns");

    prof_profile_destroy(p);
}


static char *
notes(const prof_profile_t *p)
{
    char        *text;
    prof_buf_t   b;

    prof_buf_init(&b);

    prof_notes(p, add, &b);

    text = strndup(b.data, b.len);
    if (text == NULL) {
        abort();
    }

    prof_buf_free(&b);

    return text;
}


static void
add(void *data, const prof_buf_t *line, int warning)
{
    prof_buf_t  *b;

    b = data;

    prof_buf_puts(b, warning ? "! " : "");
    prof_buf_append(b, line->data, line->len);
    prof_buf_puts(b, "\n");
}


static void
check_doubt(const prof_profile_t *p, const char *text, const char *name)
{
    char        *all;
    const char  *found;

    all = notes(p);
    found = strstr(all, "! ");

    is_str(found ? found : "", text, "doubt: %s has its note", name);

    free(all);
}
