
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: capture
 * runs: beside
 *
 * Waits that overlap: the gaps of a timeline become the critical waits, with
 * the others beside them, and their sum stays.
 */


#include "capture/prof_beside.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>


#define MS     1000000ULL
#define START  (1000 * MS)

/* frames of causes: "a" is the first name of a capture */
#define CAUSE(x)  ((uintptr_t) PROF_FRAME_FIXED + (x) - 'a')

#define MEMORY  (256 * 1024)


typedef struct {
    prof_tree_t      tree;
    prof_entries_t   timeline;
    prof_beside_t    beside;
    prof_stats_t     stats;
    void            *memory[2];
    uint64_t         now;
} test_t;


static void test_begin(test_t *t);
static void test_wait(test_t *t, char cause, int since, int ready, int end);
static void test_stack(test_t *t, uint32_t node, char *text);
static int test_ms(test_t *t, const char *stack);
static void test_divide(test_t *t);
static void test_end(test_t *t);
static void test_parallel(void);
static void test_sequence(void);
static void test_chain(int last, const char *name);
static void test_busy(void);
static void test_many(void);
static void test_too_many(void);


static void
test_begin(test_t *t)
{
    memset(t, 0, sizeof(test_t));

    t->memory[0] = calloc(1, MEMORY);
    t->memory[1] = calloc(1, MEMORY);
    t->now = START;

    prof_tree_init(&t->tree, t->memory[0], MEMORY);
    prof_entries_init(&t->timeline, t->memory[1], MEMORY, 1);
}


/*
 * A wait with this cause since "since", whose event occurs at "ready"; the turn
 * after it begins at "end" and takes a millisecond.  Times are ms from the
 * start; since -1: unknown.
 */

static void
test_wait(test_t *t, char cause, int since, int ready, int end)
{
    uint32_t      node, busy;
    uint64_t      until;
    prof_await_t  wait;

    node = prof_tree_frame(&t->tree, PROF_NONE, PROF_FRAME_WAITING, &t->stats);
    busy = prof_tree_frame(&t->tree, node, CAUSE('z'), &t->stats);
    node = prof_tree_frame(&t->tree, node, CAUSE(cause), &t->stats);

    wait.since = since == -1 ? 0 : START + since * MS;
    wait.ready = START + ready * MS;
    wait.end = START + end * MS;

    prof_beside_add(&t->beside, &wait, t->now, node);

    until = wait.ready > t->now ? wait.ready : t->now;

    if (until > t->now) {
        (void) prof_entries_add(&t->timeline, node, PROF_ENTRY_GAP,
                                until - t->now, 0, &t->stats);
    }

    if (wait.end > until) {
        (void) prof_entries_add(&t->timeline, busy, PROF_ENTRY_GAP,
                                wait.end - until, 0, &t->stats);
    }

    (void) prof_entries_add(&t->timeline, busy, PROF_ENTRY_TURN, MS, MS,
                            &t->stats);

    t->now = wait.end + MS;
}


/* the stack of a gap as letters: "a|b" is "a" with "b" beside it */

static void
test_stack(test_t *t, uint32_t node, char *text)
{
    char       reversed[256];
    size_t     i, n;
    uintptr_t  frame;

    for (n = 0; node != PROF_NONE && n < sizeof(reversed) - 1;
         node = t->tree.nodes[node].parent)
    {
        frame = prof_key_pc(t->tree.nodes[node].key);

        if (frame != PROF_FRAME_WAITING) {
            reversed[n++] = frame == PROF_FRAME_BESIDE
                            ? '|' : (char) (frame - PROF_FRAME_FIXED + 'a');
        }
    }

    for (i = 0; i < n; i++) {
        text[i] = reversed[n - 1 - i];
    }

    text[n] = '\0';
}


/* the ms of gaps with this stack; NULL: of all gaps */

static int
test_ms(test_t *t, const char *stack)
{
    char      text[256];
    uint32_t  i;
    uint64_t  sum;

    sum = 0;

    for (i = 0; i < t->timeline.n; i++) {

        test_stack(t, t->timeline.entries[i].node, text);

        if (t->timeline.entries[i].type == PROF_ENTRY_GAP
            && (stack == NULL || strcmp(text, stack) == 0))
        {
            sum += t->timeline.entries[i].wall;
        }
    }

    return (int) (sum / MS);
}


static void
test_divide(test_t *t)
{
    prof_beside_divide(&t->beside, &t->tree, &t->timeline, t->now, &t->stats);
}


static void
test_end(test_t *t)
{
    free(t->memory[0]);
    free(t->memory[1]);
}


/* three waits begin at once, and the last one to end is critical */

static void
test_parallel(void)
{
    test_t  t;

    test_begin(&t);
    test_wait(&t, 'a', 0, 100, 100);
    test_wait(&t, 'b', 0, 200, 200);
    test_wait(&t, 'c', 0, 300, 300);
    test_divide(&t);

    is_int(test_ms(&t, "c|b|a"), 100, "three waits");
    is_int(test_ms(&t, "c|b"), 99, "two waits, without the turn");
    is_int(test_ms(&t, "c"), 99, "the last wait alone");
    is_int(test_ms(&t, NULL), 298, "the sum stays");
    is_int(t.stats.waits_left_out, 0, "all waits are shown");

    test_end(&t);
}


/* waits one after the other stay what they are */

static void
test_sequence(void)
{
    test_t  t;

    test_begin(&t);
    test_wait(&t, 'a', 0, 100, 100);
    test_wait(&t, 'b', 100, 200, 200);
    test_wait(&t, 'c', -1, 300, 300);
    test_divide(&t);

    is_int(test_ms(&t, "a"), 100, "the first wait");
    is_int(test_ms(&t, "b"), 99, "the second wait");
    is_int(test_ms(&t, "c"), 99, "the third wait, whose begin is not known");

    test_end(&t);
}


/*
 * A chain of waits that ends last is critical, although the wait beside it is
 * longer than each of them; and the other way round.
 */

static void
test_chain(int last, const char *name)
{
    test_t  t;

    test_begin(&t);
    test_wait(&t, 'a', 0, 100, 100);
    test_wait(&t, 'b', 100, 200, 200);

    if (last < 300) {
        test_wait(&t, 'x', 0, last, last);
    }

    test_wait(&t, 'c', 200, 300, 300);

    if (last > 300) {
        test_wait(&t, 'x', 0, last, last);
    }

    test_divide(&t);

    if (last < 300) {
        is_int(test_ms(&t, "a|x") + test_ms(&t, "b|x"), 199, "%s: beside",
               name);
        is_int(test_ms(&t, "c|x"), last - 201, "%s: until its end", name);
        is_int(test_ms(&t, "c"), 299 - last, "%s: then alone", name);
        is_int(test_ms(&t, NULL), 297, "%s: the sum", name);

    } else {
        is_int(test_ms(&t, "x|a"), 100, "%s: the first beside", name);
        is_int(test_ms(&t, "x|b"), 99, "%s: the second beside", name);
        is_int(test_ms(&t, "x|c"), 99, "%s: the third beside", name);
        is_int(test_ms(&t, "x"), last - 301, "%s: then alone", name);
    }

    test_end(&t);
}


/*
 * The worker is busy after the event of "a" and after that of "b".  While "b"
 * waits, the first of both times is a part of its wait.
 */

static void
test_busy(void)
{
    test_t  t;

    test_begin(&t);
    test_wait(&t, 'a', 0, 100, 150);
    test_wait(&t, 'b', 0, 300, 350);
    test_divide(&t);

    is_int(test_ms(&t, "b|a"), 100, "both wait");
    is_int(test_ms(&t, "b"), 50 + 149, "then one of them");
    is_int(test_ms(&t, "z"), 50, "the worker is busy after the last event");

    test_end(&t);

    /* both events occur while the worker is busy */

    test_begin(&t);
    test_wait(&t, 'a', 0, 100, 300);
    test_wait(&t, 'b', 0, 200, 301);
    test_divide(&t);

    is_int(test_ms(&t, "b|a"), 100, "both wait, and the worker is busy");
    is_int(test_ms(&t, "b"), 100, "the wait ends within a time of the worker");
    is_int(test_ms(&t, "z"), 100, "the rest of this time is the worker's");

    test_end(&t);
}


/* the longest waits are shown, and the others counted */

static void
test_many(void)
{
    int     i;
    test_t  t;

    test_begin(&t);

    for (i = 1; i <= 12; i++) {
        test_wait(&t, (char) ('a' + i - 1), 0, 100 * i, 100 * i);
    }

    test_divide(&t);

    is_int(test_ms(&t, "l|k|j|i|h|g|f|e|d"), 100 + 99 + 99 + 99,
           "the longest eight");
    is_int(t.stats.waits_left_out, 3, "three are not shown");
    is_int(test_ms(&t, NULL), 1200 - 11, "the sum of many");

    test_end(&t);
}


/* the first waits are forgotten if there are too many */

static void
test_too_many(void)
{
    int     i, sum;
    test_t  t;

    test_begin(&t);

    for (i = 0; i < 3000; i++) {
        test_wait(&t, 'a', 10 * i, 10 * (i + 1) - 1, 10 * (i + 1) - 1);
    }

    sum = test_ms(&t, NULL);

    test_wait(&t, 'b', 10 * 2990, 30020, 30020);
    test_divide(&t);

    is_int(test_ms(&t, NULL), sum + 20, "the sum of very many");
    ok(test_ms(&t, "b|a") > 80, "the last ones are beside");

    test_end(&t);
}


int
main(void)
{
    test_parallel();
    test_sequence();
    test_chain(250, "a chain");
    test_chain(400, "beside a chain");
    test_busy();
    test_many();
    test_too_many();

    return done_testing();
}
