
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: turns
 * runs: beside
 */


#include "tap.h"

#include "base/prof_clock.h"
#include "turns/prof_turns.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


/* runs of the generated logs, and times that they span */
#define RUNS  40
#define SPAN  200


typedef struct {
    const prof_turns_copy_t  *copy;
    uint64_t                  parts[RUNS][RUNS + 2];
} blamed_t;


static void test_empty(void);
static void test_runs(void);
static void test_wrap(void);
static void test_requests(void);
static void test_layout(void);
static void test_killed(void);
static void test_race(void);
static void test_blame(void);
static void test_random(void);
static void test_nested(void);
static prof_turns_log_t *make(size_t runs, prof_turns_writer_t *w);
static void add(prof_turns_writer_t *w, uint64_t start, uint64_t end,
    uint32_t request, uint32_t stall);
static size_t generate(prof_turns_run_t *runs);
static void nest(prof_turns_run_t *runs, size_t *n, uint64_t start,
    uint64_t end, int depth);
static void expect(const prof_turns_copy_t *copy, blamed_t *b);
static size_t innermost(const prof_turns_copy_t *copy, uint64_t at);
static void blamed(void *data, size_t victim, size_t culprit, uint64_t ns);


int
main(void)
{
    test_empty();
    test_runs();
    test_wrap();
    test_requests();
    test_layout();
    test_nested();
    test_killed();
    test_race();
    test_blame();
    test_random();

    return done_testing();
}


/* a log, and a writer without the mark of its begin */

static prof_turns_log_t *
make(size_t runs, prof_turns_writer_t *w)
{
    prof_turns_log_t  *log;

    log = mmap(NULL, prof_turns_size(runs), PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (log == MAP_FAILED) {
        exit(1);
    }

    prof_turns_init(log, runs);

    memset(w, 0, sizeof(prof_turns_writer_t));

    w->log = log;
    w->run = prof_turns_runs(log);
    w->last = w->run + log->nruns - 1;
    w->rows = prof_turns_requests(log);
    w->mask = log->nrequests - 1;

    return log;
}


static void
add(prof_turns_writer_t *w, uint64_t start, uint64_t end, uint32_t request,
    uint32_t stall)
{
    prof_turns_enter(w, start, 0);
    prof_turns_own(w, request);
    prof_turns_stalled(w, stall);
    prof_turns_leave(w, end, 0);
}


static void
test_empty(void)
{
    prof_turns_log_t     *log;
    prof_turns_copy_t     copy;
    prof_turns_writer_t   w;

    is_int(sizeof(prof_turns_run_t), 40, "a run has 40 bytes");
    ok(prof_turns_size(4 << 20) >= 4 << 20, "a log has the size of its runs");

    log = make(4 << 20, &w);

    is_int(log->nruns, (4 << 20) / 40, "and as many runs as fit");
    is_int(prof_turns_read(log, 0, &copy), PROF_OK, "a new log is read");
    is_int(copy.nruns, 0, "a new log has no runs");
    is_int(copy.from, 0, "nothing is missing in a new log");
    ok(prof_turns_find(&copy, 1) == NULL, "a new log has no requests");

    prof_turns_free(&copy);
}


static void
test_runs(void)
{
    uint64_t              before;
    prof_turns_log_t     *log;
    prof_turns_copy_t     copy;
    prof_turns_writer_t   w;

    log = make(1, &w);
    before = prof_clock(CLOCK_MONOTONIC);

    prof_turns_begin(&w, log, 77);
    add(&w, before + 1000000000, before + 1000000010, 0, 0);

    /* an inner run ends first, and its outer run begins first */

    add(&w, before + 2000000005, before + 2000000010, 2, 0);
    add(&w, before + 2000000000, before + 2000000020, 1, 0);

    is_int(prof_turns_read(log, 0, &copy), PROF_OK, "a log is read");
    is_int(copy.nruns, 4, "all runs are read");
    is_int(copy.log.owner, 77, "the owner is read");
    ok(copy.runs[0].kind == PROF_TURNS_BEGIN && copy.runs[0].start >= before,
       "the first record is the begin of the process");
    is_int(copy.runs[2].request, 1, "an outer run is before its inner run");
    is_int(copy.runs[3].request, 2, "an inner run is after its outer run");

    prof_turns_free(&copy);

    is_int(prof_turns_read(log, before + 2000000010, &copy), PROF_OK,
           "a part of a log is read");
    is_int(copy.nruns, 2, "runs that ended before the part are left out");
    is_int(copy.from, before + 2000000010, "the part begins as it was asked");

    prof_turns_free(&copy);

    prof_turns_end(&w);
    ok(log->ended, "the end of the process is in the log");
}


static void
test_wrap(void)
{
    uint64_t              i, n;
    prof_turns_log_t     *log;
    prof_turns_copy_t     copy;
    prof_turns_writer_t   w;

    log = make(1, &w);
    n = log->nruns;

    for (i = 0; i < 3 * n; i++) {
        add(&w, 10 * i, 10 * i + 5, 0, 0);
    }

    is_int(prof_turns_read(log, 0, &copy), PROF_OK, "a full log is read");
    is_int(copy.nruns, n - 1, "all but the next record are read");
    is_int(copy.runs[0].start, 10 * (2 * n + 1), "the oldest record is right");
    is_int(copy.runs[n - 2].start, 10 * (3 * n - 1), "so is the newest one");
    is_int(copy.from, copy.runs[0].end, "the log tells what is missing");
    is_int(prof_turns_reach(log), copy.from, "without reading all of it, too");

    prof_turns_free(&copy);

    is_int(prof_turns_read(log, 10 * (3 * n - 5), &copy), PROF_OK,
           "a part of a full log is read");
    is_int(copy.nruns, 5, "only the part is read");
    is_int(copy.from, 10 * (3 * n - 5), "nothing of the part is missing");

    prof_turns_free(&copy);
}


static void
test_requests(void)
{
    uint32_t                     i, n;
    prof_turns_log_t            *log;
    prof_turns_copy_t            copy;
    prof_turns_writer_t          w;
    prof_turns_request_t        *row;
    const prof_turns_request_t  *found;

    log = make(1, &w);
    n = log->nrequests;

    for (i = 1; i <= n + 10; i++) {
        row = prof_turns_add(&w);
        row->status = (uint16_t) i;
        row->len = (i == n) ? UINT16_MAX : 1;
        (void) prof_turns_added(&w, row);

        add(&w, i, i + 1, i, 0);
    }

    ok(prof_turns_row(log, 10) == NULL, "the row of an old request is gone");
    ok(prof_turns_row(log, 11) != NULL, "the row of a newer one is there");
    ok(prof_turns_row(log, 0) == NULL, "no request has no row");

    is_int(prof_turns_read(log, 0, &copy), PROF_OK, "requests are read");
    is_int(copy.nrequests, n, "the requests that are there are read");
    ok(prof_turns_find(&copy, 10) == NULL, "a run may be without its request");

    found = prof_turns_find(&copy, n);
    ok(found && found->status == n, "a request is found");
    is_int(found->len, PROF_TURNS_TEXT, "a length is never too large");

    prof_turns_free(&copy);

    /* after four billion requests numbers begin again */

    log->requests = UINT32_MAX - 1;

    row = prof_turns_add(&w);
    (void) prof_turns_added(&w, row);
    is_int(row->number, UINT32_MAX, "the last number is used");

    row = prof_turns_add(&w);
    (void) prof_turns_added(&w, row);
    is_int(row->number, 1, "the number 0 is left out");
}


static void
test_layout(void)
{
    prof_turns_log_t     *log;
    prof_turns_copy_t     copy;
    prof_turns_writer_t   w;

    log = make(1, &w);

    log->version++;
    is_int(prof_turns_read(log, 0, &copy), PROF_ERROR,
           "another version is refused");
    log->version--;

    log->run_size--;
    is_int(prof_turns_read(log, 0, &copy), PROF_ERROR,
           "another size of runs is refused");
    log->run_size++;

    log->request_size--;
    is_int(prof_turns_read(log, 0, &copy), PROF_ERROR,
           "another size of requests is refused");
    log->request_size++;

    log->magic[0] = 'x';
    is_int(prof_turns_read(log, 0, &copy), PROF_ERROR,
           "other memory is refused");
}


/* outer runs go on behind their inner ones, also if there are too many */

static void
test_nested(void)
{
    int                   i, wrong;
    prof_turns_log_t     *log;
    prof_turns_copy_t     copy;
    prof_turns_writer_t   w;

    log = make(1, &w);

    for (i = 0; i < PROF_TURNS_DEPTH + 3; i++) {
        prof_turns_enter(&w, 100 + i, 1000 + i);
        prof_turns_stalled(&w, 10 + i);
    }

    is_int(log->depth, PROF_TURNS_DEPTH + 3, "all nested runs are counted");

    for (i = PROF_TURNS_DEPTH + 2; i >= 0; i--) {
        prof_turns_leave(&w, 300 - i, PROF_TURNS_LAST);
    }

    is_int(log->depth, 0, "no run is left");
    is_int(prof_turns_read(log, 0, &copy), PROF_OK, "nested runs are read");
    is_int(copy.nruns, PROF_TURNS_DEPTH, "as many as there is space for");

    wrong = 0;

    for (i = 0; i < (int) copy.nruns; i++) {
        wrong += copy.runs[i].start != 100u + i
                 || copy.runs[i].end != 300u - i
                 || copy.runs[i].handler != 1000u + i
                 || copy.runs[i].stall != 10u + i
                 || copy.runs[i].flags != (PROF_TURNS_LAST
                                           | (i ? PROF_TURNS_NESTED : 0u));
    }

    is_int(wrong, 0, "each nested run has its own record");

    prof_turns_free(&copy);

    prof_turns_slept(&w, 400, 500);

    is_int(prof_turns_read(log, 350, &copy), PROF_OK, "a sleep is read");
    ok(copy.nruns == 1 && copy.runs[0].kind == PROF_TURNS_SLEEP
       && copy.runs[0].start == 400 && copy.runs[0].end == 500,
       "a sleep has a record");

    prof_turns_free(&copy);
}


/* what ran when a process was killed */

static void
test_killed(void)
{
    int                    status;
    pid_t                  pid;
    prof_turns_log_t      *log;
    prof_turns_copy_t      copy;
    prof_turns_writer_t    w;
    prof_turns_request_t  *row;

    log = make(1, &w);
    pid = fork();

    if (pid == 0) {
        prof_turns_begin(&w, log, 1);

        row = prof_turns_add(&w);
        row->len = (uint16_t) sizeof("GET /killed") - 1;
        memcpy(row->text, "GET /killed", row->len);
        (void) prof_turns_added(&w, row);

        prof_turns_enter(&w, 1000, 0x11);
        prof_turns_enter(&w, 1100, 0x12);
        prof_turns_own(&w, row->number);

        (void) kill(getpid(), SIGKILL);
        _exit(1);
    }

    (void) waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status), "the process was killed");

    is_int(prof_turns_read(log, 0, &copy), PROF_OK, "its log is read");
    ok(!copy.log.ended, "the process did not end by itself");
    is_int(copy.nopen, 2, "two runs had not ended");
    is_int(copy.open[0].handler, 0x11, "the outer one is known");
    is_int(copy.open[1].start, 1100, "the inner one is known");
    is_int(copy.nrequests, 1, "its request is known");
    ok(copy.nrequests && memcmp(copy.requests[0].text, "GET /killed", 11) == 0,
       "the request has its text");

    prof_turns_free(&copy);

    prof_turns_begin(&w, log, 2);

    is_int(prof_turns_read(log, 0, &copy), PROF_OK, "the next process writes");
    is_int(copy.nruns, 4, "the open runs ended");
    is_int(copy.runs[0].handler, 0x11, "the outer one is logged");
    is_int(copy.runs[1].handler, 0x12, "the inner one is logged");
    ok((copy.runs[0].flags & PROF_TURNS_DIED)
       && (copy.runs[1].flags & PROF_TURNS_DIED)
       && !(copy.runs[2].flags & PROF_TURNS_DIED),
       "they have a flag");
    is_int(copy.runs[1].end, log->began, "they end with the next process");

    prof_turns_free(&copy);
}


/* a writer at full speed, whose records can be checked */

static void
test_race(void)
{
    int                   i, wrong, holes, status;
    pid_t                 pid;
    size_t                k;
    uint64_t              n;
    prof_turns_log_t     *log;
    prof_turns_copy_t     copy;
    prof_turns_writer_t   w;

    log = make(1, &w);
    pid = fork();

    if (pid == 0) {
        for (n = 1; /* void */ ; n++) {
            add(&w, n, n, (uint32_t) n, (uint32_t) (n * 7));
        }
    }

    while (__atomic_load_n(&log->written, __ATOMIC_RELAXED) == 0) {
        (void) usleep(1000);
    }

    wrong = 0;
    holes = 0;

    for (i = 0; i < 3000; i++) {

        if (prof_turns_read(log, 0, &copy) != PROF_OK) {
            wrong++;
            break;
        }

        for (k = 0; k < copy.nruns; k++) {
            n = copy.runs[k].start;

            wrong += copy.runs[k].end != n
                     || copy.runs[k].request != (uint32_t) n
                     || copy.runs[k].stall != (uint32_t) (n * 7);
            holes += k && copy.runs[k - 1].start + 1 != n;
        }

        prof_turns_free(&copy);
    }

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, &status, 0);

    is_int(wrong, 0, "no record is torn");
    is_int(holes, 0, "no record is missing between two others");
}


static void
blamed(void *data, size_t victim, size_t culprit, uint64_t ns)
{
    blamed_t *b = data;

    b->parts[victim][culprit == PROF_TURNS_LOOP ? RUNS
                     : culprit == PROF_TURNS_OVERWRITTEN ? RUNS + 1
                     : culprit] += ns;
}


static void
test_blame(void)
{
    blamed_t           b;
    prof_turns_run_t   runs[5];
    prof_turns_copy_t  copy;

    memset(&copy, 0, sizeof(prof_turns_copy_t));
    memset(runs, 0, sizeof(runs));
    memset(&b, 0, sizeof(blamed_t));

    /* 100..180 culprit, 190..240 culprit, 250..260 victim, ready at 120 */

    runs[0].start = 100; runs[0].end = 180; runs[0].request = 1;
    runs[1].start = 185; runs[1].end = 186; runs[1].kind = PROF_TURNS_SLEEP;
    runs[2].start = 190; runs[2].end = 240; runs[2].request = 2;
    runs[3].start = 250; runs[3].end = 260; runs[3].request = 3;
    runs[3].stall = 130;

    copy.runs = runs;
    copy.nruns = 4;
    copy.from = 50;

    is_int(prof_turns_blame(&copy, blamed, &b), PROF_OK, "blame is computed");
    is_int(b.parts[3][0], 60, "a part of the first run is to blame");
    is_int(b.parts[3][2], 50, "the whole second run is to blame");
    is_int(b.parts[3][1], 0, "a sleep is not a culprit");
    is_int(b.parts[3][RUNS], 20, "the loop is to blame for the rest");
    is_int(b.parts[3][RUNS + 1], 0, "nothing was overwritten");

    memset(&b, 0, sizeof(blamed_t));
    copy.from = 130;

    (void) prof_turns_blame(&copy, blamed, &b);
    is_int(b.parts[3][RUNS + 1], 10, "what was overwritten has no culprit");
    is_int(b.parts[3][0], 50, "the part behind it has one");
}


/*
 * Random logs with nested runs.  The truth is counted moment by moment, by
 * another way than that of the tested function.
 */

static void
test_random(void)
{
    int                round, wrong, sums;
    size_t             v, c, n;
    uint64_t           sum;
    blamed_t           is, should;
    prof_turns_run_t   runs[RUNS];
    prof_turns_copy_t  copy;

    srand(1);
    wrong = 0;
    sums = 0;

    for (round = 0; round < 2000; round++) {

        memset(&copy, 0, sizeof(prof_turns_copy_t));
        memset(&is, 0, sizeof(blamed_t));
        memset(&should, 0, sizeof(blamed_t));

        n = generate(runs);

        copy.runs = runs;
        copy.nruns = n;
        copy.from = (uint64_t) (rand() % 60);

        if (prof_turns_blame(&copy, blamed, &is) != PROF_OK) {
            wrong++;
        }

        expect(&copy, &should);

        for (v = 0; v < n; v++) {
            sum = 0;

            for (c = 0; c < RUNS + 2; c++) {
                wrong += is.parts[v][c] != should.parts[v][c];
                sum += is.parts[v][c];
            }

            sums += runs[v].request && sum < runs[v].stall;
        }
    }

    is_int(wrong, 0, "each part of random logs is right");
    is_int(sums, 0, "the parts of random logs add up");
}


/* runs with nested runs, in the order of a copy */

static size_t
generate(prof_turns_run_t *runs)
{
    size_t    i, n;
    uint64_t  at, end;

    n = 0;
    at = (uint64_t) (rand() % 20);

    while (n < RUNS && at < SPAN) {
        end = at + 1 + (uint64_t) (rand() % 30);
        nest(runs, &n, at, end, 0);
        at = end + (uint64_t) (rand() % 8);
    }

    for (i = 0; i < n; i++) {
        if (!(runs[i].flags & PROF_TURNS_NESTED) && rand() % 2) {
            runs[i].stall = (uint32_t) (rand() % 50);
            runs[i].stall = runs[i].stall < runs[i].start
                            ? runs[i].stall : (uint32_t) runs[i].start;
        }
    }

    return n;
}


static void
nest(prof_turns_run_t *runs, size_t *n, uint64_t start, uint64_t end,
    int depth)
{
    uint64_t           from, to;
    prof_turns_run_t  *run;

    if (*n == RUNS) {
        return;
    }

    run = &runs[(*n)++];

    memset(run, 0, sizeof(prof_turns_run_t));

    run->start = start;
    run->end = end;
    run->request = (uint32_t) (rand() % 4);
    run->flags = depth ? PROF_TURNS_NESTED : 0;

    for (from = start + 1; depth < 4 && from + 3 < end && rand() % 3; /**/ ) {
        to = from + 1 + (uint64_t) rand() % (end - from - 2);
        nest(runs, n, from, to, depth + 1);
        from = to + 1;
    }
}


static size_t
innermost(const prof_turns_copy_t *copy, uint64_t at)
{
    size_t  i, found;

    found = RUNS;

    for (i = 0; i < copy->nruns; i++) {
        if (copy->runs[i].start <= at && at < copy->runs[i].end
            && (found == RUNS
                || copy->runs[i].end - copy->runs[i].start
                   < copy->runs[found].end - copy->runs[found].start))
        {
            found = i;
        }
    }

    return found;
}


static void
expect(const prof_turns_copy_t *copy, blamed_t *b)
{
    size_t                   v, in, other;
    uint64_t                 at, v_len, len;
    const prof_turns_run_t  *runs;

    runs = copy->runs;

    for (v = 0; v < copy->nruns; v++) {

        if (runs[v].request == 0) {
            continue;
        }

        for (at = runs[v].start - runs[v].stall; at < runs[v].start; at++) {
            b->parts[v][at < copy->from ? RUNS + 1 : innermost(copy, at)]++;
        }

        /* moments in this run that an inner run for another request has used */

        v_len = runs[v].end - runs[v].start;

        for (at = runs[v].start; at < runs[v].end; at++) {
            in = innermost(copy, at);

            if (in == v || runs[in].request == runs[v].request) {
                continue;
            }

            /* the nearest outer run of the request has waited */

            for (other = 0; other < copy->nruns; other++) {
                len = runs[other].end - runs[other].start;

                if (other != v && runs[other].request == runs[v].request
                    && runs[other].start <= at && at < runs[other].end
                    && len < v_len)
                {
                    break;
                }
            }

            if (other == copy->nruns) {
                b->parts[v][in]++;
            }
        }
    }
}
