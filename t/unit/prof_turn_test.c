
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: capture
 *
 * Captures and turns with the real timer: sums, nesting, restored state, and
 * that the signal handler does not allocate.
 */


#include "tap.h"

#include "capture/prof_turn.h"
#include "prof.h"
#include "prof_finish.h"
#include "prof_series.h"
#include "views/prof_kind.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>


#define MS  1000000

#define TEST_FORGED  1000
#define TEST_SPANS   1000
#define TEST_NAMES   8000
#define TEST_STORM   200000
#define TEST_TURNS   5000


typedef struct {
    prof_sampler_t  *sampler;
    prof_capture_t  *other;
    prof_capture_t  *self;
    int              ms;
} test_job_t;


#if (!TAP_SANITIZED)
static void test_check_stack(void);
#endif
typedef int (*test_clock_pt)(clockid_t id, struct timespec *ts);

static uint64_t test_now(clockid_t id);
static void test_spin(int ms);
static void test_wait(int ms);
static void test_job(void *data);
static void test_nested(void *data);
static void test_self(void *data);
static void test_end(void *data);
static void test_short(void *data);
static prof_capture_t *test_capture(uint32_t frequency);
static uint64_t test_sum(const prof_profile_t *p, int type, int cpu);
static uint64_t test_below(const prof_profile_t *p, uintptr_t fn);

static void test_sums(prof_sampler_t *s);
static void test_turns(prof_sampler_t *s);
static void test_faster(void *data);
static void test_frequency(prof_sampler_t *s);
static void test_short_turns(prof_sampler_t *s);
static void test_two_captures(prof_sampler_t *s);
static void test_nobodys(prof_sampler_t *s);
static void test_take(void *data);
static void test_taken(prof_sampler_t *s);
static void test_end_in_turn(prof_sampler_t *s);
static void test_kinds_of_names(prof_profile_t *p);
static void test_names(prof_sampler_t *s);
static uint64_t test_waited(const prof_profile_t *p, const char *name);
static void test_names_job(void *data);
static void test_many_names(prof_sampler_t *s);
static void test_interrupted_job(void *data);
static void test_interrupted(prof_sampler_t *s);
static void test_spans_job(void *data);
static uint64_t test_in_spans(const prof_profile_t *p, const char *outer,
    const char *inner);
static void test_spans(prof_sampler_t *s);
static void test_spans_brief(void *data);
static void test_brief_spans(prof_sampler_t *s);
static void test_around(uint64_t n);
static void test_inside(uint64_t n);
static double test_truth(int times, uint64_t n);
static void test_storm_job(void *data);
static void test_storm(prof_sampler_t *s);
static void test_proxy_job(void *data);
static void test_many_turns(prof_sampler_t *s);
static void test_long_capture(prof_sampler_t *s);
static void test_forge(void *data);
static void test_foreign_signal(prof_sampler_t *s);
static int test_handlers(void);
static void test_restored(void);
static void test_allocator(void);
static void test_allocating_handler(int signo);


static test_clock_pt      test_clock;
static volatile int       test_cpu_reads;
static volatile int       test_reads;
static volatile int       test_allocations;
static volatile uint64_t  test_sink;


#if (!TAP_SANITIZED)

/*
 * Only the handler runs on the alternate stack, so an allocation on this stack
 * is one of the handler.
 */

void *__libc_malloc(size_t size);
void __libc_free(void *p);


static void
test_check_stack(void)
{
    stack_t  ss;

    if (sigaltstack(NULL, &ss) == 0 && (ss.ss_flags & SS_ONSTACK)) {
        test_allocations++;
    }
}


void *
malloc(size_t size)
{
    test_check_stack();
    return __libc_malloc(size);
}


void
free(void *p)
{
    test_check_stack();
    __libc_free(p);
}

#endif


/* counts what the profiler reads */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    test_reads++;
    test_cpu_reads += (id == CLOCK_THREAD_CPUTIME_ID);

    return test_clock(id, ts);
}


static uint64_t
test_now(clockid_t id)
{
    struct timespec  ts;

    clock_gettime(id, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


__attribute__((noinline)) static void
test_spin(int ms)
{
    uint64_t  end;

    end = test_now(CLOCK_THREAD_CPUTIME_ID) + (uint64_t) ms * MS;

    while (test_now(CLOCK_THREAD_CPUTIME_ID) < end) {
        test_sink++;
    }
}


static void
test_wait(int ms)
{
    uint64_t         end;
    struct timespec  ts;

    end = test_now(CLOCK_MONOTONIC) + (uint64_t) ms * MS;

    while (test_now(CLOCK_MONOTONIC) < end) {
        ts.tv_sec = 0;
        ts.tv_nsec = MS;
        nanosleep(&ts, NULL);
    }
}


__attribute__((noinline)) static void
test_job(void *data)
{
    test_job_t  *job = data;

    test_spin(job->ms);
    test_sink++;
}


static void
test_nested(void *data)
{
    test_job_t  *job = data;

    test_spin(job->ms);
    prof_turn_run(job->sampler, job->other, (uintptr_t) test_job, test_job,
                  data);
    test_spin(job->ms);
}


static void
test_self(void *data)
{
    test_job_t  *job = data;

    prof_turn_run(job->sampler, job->self, (uintptr_t) test_job, test_job,
                  data);
    test_sink++;
}


static void
test_end(void *data)
{
    test_job_t  *job = data;

    test_spin(job->ms);
    prof_turn_end(job->sampler, job->self);
    prof_capture_destroy(job->self);
    test_spin(job->ms);
}


static void
test_short(void *data)
{
    int  i;

    for (i = 0; i < 20000; i++) {
        test_sink++;
    }
}


static prof_capture_t *
test_capture(uint32_t frequency)
{
    prof_capture_conf_t  conf;

    conf.frequency = frequency;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_DEFAULT;

    return prof_capture_create(&conf);
}


/* counts the entries of a type, or all with type -1 */

static uint64_t
test_sum(const prof_profile_t *p, int type, int cpu)
{
    uint32_t  i;
    uint64_t  sum;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        if (type == -1 || (int) time_of(p, i)->type == type) {
            sum += cpu ? cpu_of(p, i) : wall_of(p, i);
        }
    }

    return sum;
}


/* CPU time of entries with the function in their stack */

static uint64_t
test_below(const prof_profile_t *p, uintptr_t fn)
{
    uint32_t             i, node;
    uint64_t             sum;
    const prof_frame_t  *f;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {

        for (node = time_of(p, i)->node;
             node != PROF_NONE;
             node = p->nodes[node].parent)
        {
            f = &p->frames[p->nodes[node].frame];

            if (f->object != PROF_NONE
                && f->function + p->objects[f->object].base == fn)
            {
                sum += cpu_of(p, i);
                break;
            }
        }
    }

    return sum;
}


static void
test_sums(prof_sampler_t *s)
{
    uint64_t         cpu, diff;
    test_job_t       job;
    prof_stats_t     st;
    prof_profile_t  *p;
    prof_capture_t  *c;

    job.ms = 200;
    c = test_capture(1000);

    cpu = test_now(CLOCK_THREAD_CPUTIME_ID);
    prof_turn_run(s, c, (uintptr_t) test_job, test_job, &job);
    cpu = test_now(CLOCK_THREAD_CPUTIME_ID) - cpu;

    p = finish_capture(c, "sums");
    prof_capture_totals(c, &st, NULL, NULL, NULL);

    ok(p->stats.samples + p->stats.lost_overrun >= 150,
       "200 ms at 1000 Hz give %d samples, %d overruns",
       (int) p->stats.samples,
       (int) p->stats.lost_overrun);
    is_int(p->stats.turns, 1, "one turn is counted");
    is_int(st.samples, p->stats.samples, "counters are those of the capture");
    is_int(test_sum(p, -1, 0), p->running, "wall weights sum to the turn");
    is_int(test_sum(p, -1, 1), p->cpu, "CPU weights sum to the CPU clock");
    is_int(p->wall, p->running, "nothing was waited for");

    diff = cpu > p->cpu ? cpu - p->cpu : p->cpu - cpu;
    ok(diff < cpu / 100, "the weights agree with the clock of the test");

    ok(test_below(p, (uintptr_t) test_spin) > p->cpu * 95 / 100,
       "the function that ran is in the stacks");
    is_int(p->stats.truncated + p->stats.no_unwind + p->stats.bad_stack, 0,
           "all stacks are complete");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_faster(void *data)
{
    test_job_t *job = data;

    test_spin(job->ms);
    prof_capture_set_frequency(job->sampler, job->self, 1000);
    test_spin(job->ms);
}


static void
test_frequency(prof_sampler_t *s)
{
    int              n;
    test_job_t       job;
    prof_profile_t  *p;
    prof_capture_t  *c;

    c = test_capture(1);

    job.sampler = s;
    job.self = c;
    job.ms = 100;

    prof_turn_run(s, c, (uintptr_t) test_job, test_faster, &job);
    prof_capture_set_frequency(s, c, 2);
    job.ms = 50;
    prof_turn_run(s, c, (uintptr_t) test_job, test_job, &job);

    p = finish_capture(c, "frequency");
    n = (int) p->stats.samples;

    ok(n + (int) p->stats.lost_overrun >= 70,
       "another frequency within a turn gives %d samples", n);
    is_int(p->frequency, 2, "the frequency changes between turns");
    is_int(test_sum(p, -1, 0), p->wall, "wall weights sum to the whole");
    is_int(test_sum(p, -1, 1), p->cpu, "CPU weights sum to the CPU clock");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_turns(prof_sampler_t *s)
{
    int              i;
    test_job_t       job;
    prof_profile_t  *p;
    prof_capture_t  *c;

    job.ms = 5;
    c = test_capture(1000);

    for (i = 0; i < 10; i++) {
        prof_turn_run(s, c, (uintptr_t) test_job, test_job, &job);
        test_wait(5);
    }

    prof_capture_gap(c, NULL, 0, 0);
    p = finish_capture(c, "turns");

    is_int(p->stats.turns, 10, "ten turns are counted");
    is_int(test_sum(p, -1, 0), p->wall, "turns and gaps are the whole");
    is_int(test_sum(p, PROF_ENTRY_GAP, 0), p->wall - p->running,
           "gaps are what is not running");
    is_int(test_sum(p, PROF_ENTRY_GAP, 1), 0, "gaps have no CPU time");
    ok(p->wall - p->running >= 50 * MS, "gaps have their length");
    ok(p->cpu >= 49 * MS && p->cpu < 60 * MS, "and so are the turns: %d us",
       (int) (p->cpu / 1000));

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


/*
 * Turns far shorter than the period are sampled in proportion.  A busy machine
 * interrupts this thread.  The interruptions count as time of the turns, but
 * there are no samples for those between the start of a turn and the start of
 * its timer.  So the CPU time is the lower bound, and the time is the upper
 * one.  The timer does not run for the whole of a short turn, hence the half.
 */

static void
test_short_turns(prof_sampler_t *s)
{
    int              i;
    uint64_t         least, most;
    prof_profile_t  *p;
    prof_capture_t  *c;

    c = test_capture(1000);

    for (i = 0; i < 5000; i++) {
        prof_turn_run(s, c, (uintptr_t) test_short, test_short, NULL);
    }

    p = finish_capture(c, "short");
    least = p->cpu / MS / 2;
    most = p->running / MS + 1;

    is_int(p->stats.turns, 5000, "5000 short turns are counted");
    ok(least > 5, "the turns use %d ms of CPU time", (int) (p->cpu / MS));
    ok(p->stats.samples + p->stats.lost_overrun >= least
       && p->stats.samples <= most,
       "%d samples are at least %d, at most %d", (int) p->stats.samples,
       (int) least, (int) most);
    is_int(p->stats.turns_unsampled + p->stats.samples >= 5000, 1,
           "the others count as turns");
    is_int(test_sum(p, -1, 0), p->wall, "wall weights sum to the whole");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_two_captures(prof_sampler_t *s)
{
    test_job_t       job;
    prof_profile_t  *pa, *pb;
    prof_capture_t  *a, *b;

    a = test_capture(1000);
    b = test_capture(1000);

    job.sampler = s;
    job.other = b;
    job.self = a;
    job.ms = 30;

    prof_turn_run(s, a, (uintptr_t) test_nested, test_nested, &job);
    ok(prof_turn_current(s) == NULL, "no turn is left over");

    prof_turn_run(s, a, (uintptr_t) test_self, test_self, &job);

    pa = finish_capture(a, "a");
    pb = finish_capture(b, "b");

    ok(pa->cpu >= 88 * MS && pa->cpu < 100 * MS,
       "the outer capture has its own time only: %d us",
       (int) (pa->cpu / 1000));
    ok(pb->cpu >= 29 * MS && pb->cpu < 40 * MS,
       "the inner one has the rest: %d us", (int) (pb->cpu / 1000));
    is_int(pa->stats.turns, 3, "an interrupted turn is two");
    is_int(pb->stats.turns, 1, "a turn in the same capture's is none");
    is_int(test_sum(pa, -1, 0), pa->wall,
           "the weights of the outer capture sum to its time");
    is_int(test_sum(pb, -1, 0), pb->wall,
           "the weights of the inner capture sum to its time");
    is_int(test_below(pb, (uintptr_t) test_nested), 0,
           "the walk ends where the turn began");

    prof_profile_destroy(pa);
    prof_profile_destroy(pb);
    prof_capture_destroy(a);
    prof_capture_destroy(b);
}


static void
test_nobodys(prof_sampler_t *s)
{
    test_job_t       job;
    prof_profile_t  *p;
    prof_capture_t  *c;

    c = test_capture(1000);

    job.sampler = s;
    job.other = NULL;
    job.self = c;
    job.ms = 30;

    prof_turn_run(s, c, (uintptr_t) test_nested, test_nested, &job);

    p = finish_capture(c, "nobody's");

    ok(p->cpu >= 58 * MS && p->cpu < 70 * MS,
       "what a turn of nobody took is not the capture's: %d us",
       (int) (p->cpu / 1000));
    is_int(test_below(p, (uintptr_t) test_job), 0,
           "samples of the other turn are not the capture's");
    is_int(test_sum(p, -1, 0), p->wall, "sums of what was interrupted");

    prof_profile_destroy(p);
    prof_capture_destroy(c);

    prof_turn_run(s, NULL, (uintptr_t) test_job, test_job, &job);

    ok(prof_turn_current(s) == NULL,
       "a turn without a capture has no current capture");
}


/* the second half of a turn without a capture belongs to a capture */

static void
test_take(void *data)
{
    test_job_t  *job = data;

    test_spin(job->ms);

    prof_capture_begin(job->other, test_now(CLOCK_MONOTONIC));

    is_int(prof_turn_take(job->sampler, job->other, (uintptr_t) test_job, 0),
           PROF_OK, "a turn without a capture is taken");
    is_int(prof_turn_take(job->sampler, job->self, (uintptr_t) test_job, 0),
           PROF_ERROR, "a turn is taken once");

    test_job(data);
}


static void
test_taken(prof_sampler_t *s)
{
    test_job_t       job;
    prof_capture_t  *c;
    prof_profile_t  *p;

    c = test_capture(1000);

    job.ms = 50;
    job.sampler = s;
    job.other = c;
    job.self = NULL;

    is_int(prof_turn_take(s, c, (uintptr_t) test_job, 0), PROF_ERROR,
           "without a turn nothing is taken");

    prof_turn_run(s, NULL, (uintptr_t) test_take, test_take, &job);

    p = finish_capture(c, "taken");

    is_int(p->stats.turns, 1, "a turn that was taken counts");
    ok(p->cpu >= 50 * MS && p->cpu < 90 * MS,
       "it has its own half: %d ms", (int) (p->cpu / MS));
    ok(test_below(p, (uintptr_t) test_job) >= p->cpu / 2,
       "its samples have functions");
    is_int(test_sum(p, -1, 0), p->running, "wall weights sum to the turn");
    ok(prof_turn_current(s) == NULL, "the turn has ended");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_end_in_turn(prof_sampler_t *s)
{
    test_job_t  job;

    job.sampler = s;
    job.self = test_capture(10000);
    job.ms = 10;

    prof_turn_run(s, job.self, (uintptr_t) test_end, test_end, &job);

    ok(prof_turn_current(s) == NULL,
       "a capture may end and go in the middle of its turn");
}


static void
test_kinds_of_names(prof_profile_t *p)
{
    const prof_node_t   *node;
    const prof_frame_t  *turn, *gap;

    /* the outermost frame, since a sample may have hit the turn itself */

    node = &p->nodes[time_of(p, 0)->node];

    while (node->parent != PROF_NONE) {
        node = &p->nodes[node->parent];
    }

    turn = &p->frames[node->frame];
    is_str(turn->name, "[other]", "a turn whose name has no room");
    is_int(prof_kind(p, turn), PROF_KIND_SPAN,
           "a turn whose name does not fit has its kind");

    node = &p->nodes[time_of(p, 1)->node];
    gap = &p->frames[p->nodes[node->parent].frame];
    is_str(p->frames[node->frame].name, "[other]",
           "a cause whose name has no room");
    is_int(prof_kind(p, gap), PROF_KIND_WAITING,
           "a cause whose name does not fit has its kind");

    node = &p->nodes[time_of(p, ntimes(p) - 1)->node];
    is_str(p->frames[node->frame].name, "waiting: one", "a gap has its name");
}


static void
test_names(prof_sampler_t *s)
{
    uintptr_t        a, b;
    prof_profile_t  *p;
    prof_capture_t  *c;

    c = test_capture(100);

    a = prof_capture_name(c, "waiting: one", 12);
    b = prof_capture_name(c, "waiting: one and more", 12);
    is_int(a, b, "the same name is the same frame");
    ok(a != prof_capture_name(c, "waiting: one and more", 21),
       "a longer one is not");

    b = PROF_FRAME_OTHER;

    prof_turn_run(s, c, b, test_short, NULL);
    test_wait(2);
    prof_capture_gap(c, &b, 1, 0);
    prof_turn_run(s, c, (uintptr_t) test_short, test_short, NULL);
    test_wait(2);
    prof_capture_gap(c, &a, 1, 0);

    p = finish_capture(c, "names");
    test_kinds_of_names(p);

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


/* the wall time of entries with this innermost frame */

static uint64_t
test_waited(const prof_profile_t *p, const char *name)
{
    uint32_t     i;
    uint64_t     sum;
    const char  *text;

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        text = p->frames[p->nodes[time_of(p, i)->node].frame].name;

        if (text && strcmp(text, name) == 0) {
            sum += wall_of(p, i);
        }
    }

    return sum;
}


/*
 * One span after the other, each with a name of its own, of which a few are
 * long.  Another span is open all the time.
 */

static void
test_names_job(void *data)
{
    test_job_t  *job = data;

    int        i;
    char       text[32];
    uintptr_t  name;

    name = prof_capture_name(job->self, "open span", 9);
    (void) prof_span_begin(job->sampler, job->self, name);

    for (i = 0; i < TEST_NAMES; i++) {
        snprintf(text, sizeof(text), "name %d", i);
        name = prof_capture_name(job->self, text, strlen(text));

        (void) prof_span_begin(job->sampler, job->self, name);

        if (i == 0 || i == TEST_NAMES / 2 || i == TEST_NAMES - 100) {
            test_spin(3);
        }

        prof_span_end(job->sampler, job->self);
    }

    test_spin(3);

    prof_span_end(job->sampler, job->self);
}


/* of many names, those with the most time are shown, and the rest is counted */

static void
test_many_names(prof_sampler_t *s)
{
    int              i;
    uint32_t         k;
    char             text[32];
    uint64_t         left;
    uintptr_t        name;
    test_job_t       job;
    prof_profile_t  *p;
    prof_capture_t  *c;

    static const int  heavy[] = { 0, TEST_NAMES / 2, TEST_NAMES - 100 };

    c = test_capture(1000);

    job.sampler = s;
    job.self = c;

    prof_turn_run(s, c, (uintptr_t) test_names_job, test_names_job, &job);

    for (i = 0; i < TEST_NAMES; i++) {
        snprintf(text, sizeof(text), "wait %d", i);
        name = prof_capture_name(c, text, strlen(text));

        if (i == TEST_NAMES / 2) {
            test_wait(5);
        }

        prof_capture_gap(c, &name, 1, 0);
    }

    p = finish_capture(c, "many names");

    for (k = 0; k < 3; k++) {
        snprintf(text, sizeof(text), "name %d", heavy[k]);
        ok(test_in_spans(p, "open span", text) > 2 * MS,
           "span %d of %d, which is long, has its name", heavy[k], TEST_NAMES);
    }

    snprintf(text, sizeof(text), "wait %d", TEST_NAMES / 2);
    ok(test_waited(p, text) > 4 * MS, "a long wait has its name");

    left = p->cpu - test_in_spans(p, "open span", NULL);
    ok(left < p->cpu / 4, "an open span keeps its name");

    ok(p->stats.merged_names > TEST_NAMES
       && p->stats.merged_names < 2 * TEST_NAMES,
       "%d names are said to be left out", (int) p->stats.merged_names);
    is_int(test_sum(p, -1, 0), p->wall, "the weights sum to the whole");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


/* the calls in docs/time.md: one is restarted, the others are not */

static void
test_interrupted_job(void *data)
{
    int               *result = data;

    int                fd;
    uint64_t           n;
    struct timespec    ts;
    struct itimerspec  it;

    memset(&it, 0, sizeof(struct itimerspec));
    it.it_value.tv_nsec = 200 * MS;

    ts.tv_sec = 10;
    ts.tv_nsec = 0;

    fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    (void) timerfd_settime(fd, 0, &it, NULL);

    result[0] = (read(fd, &n, sizeof(n)) == sizeof(n));
    result[1] = (poll(NULL, 0, 10000) == -1 && errno == EINTR);
    result[2] = (nanosleep(&ts, NULL) == -1 && errno == EINTR);

    (void) close(fd);
}


static void
test_interrupted(prof_sampler_t *s)
{
    int              result[3];
    prof_stats_t     st;
    prof_capture_t  *c;

    c = test_capture(100);

    prof_turn_run(s, c, (uintptr_t) test_interrupted_job,
                  test_interrupted_job, result);
    prof_capture_totals(c, &st, NULL, NULL, NULL);

    ok(st.samples > 3, "calls that wait are sampled");
    ok(result[0], "a read is restarted");
    ok(result[1], "a poll is interrupted");
    ok(result[2], "a sleep is interrupted");

    prof_capture_destroy(c);
}


static void
test_spans_job(void *data)
{
    test_job_t  *job = data;

    int  began;

    test_spin(job->ms);

    began = prof_span_begin(job->sampler, job->self, PROF_FRAME_FIXED);
    test_spin(job->ms);

    prof_span_begin(job->sampler, job->self, PROF_FRAME_FIXED + 1);
    test_short(NULL);
    prof_span_end(job->sampler, job->self);

    prof_span_end(job->sampler, job->self);

    job->ms = began;

    if (prof_span_begin(job->sampler, job->other, PROF_FRAME_FIXED)) {
        job->ms = -1;
    }
}


/* CPU time of entries whose outermost frames have these names */

static uint64_t
test_in_spans(const prof_profile_t *p, const char *outer, const char *inner)
{
    uint32_t     i, node, n;
    uint64_t     sum;
    const char  *names[64];

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {

        n = 0;

        for (node = time_of(p, i)->node;
             node != PROF_NONE && n < 64;
             node = p->nodes[node].parent)
        {
            names[n++] = p->frames[p->nodes[node].frame].name;
        }

        if (names[n - 1] && strcmp(names[n - 1], outer) == 0
            && (inner == NULL
                || (n > 1 && names[n - 2]
                    && strcmp(names[n - 2], inner) == 0)))
        {
            sum += cpu_of(p, i);
        }
    }

    return sum;
}


static void
test_spans(prof_sampler_t *s)
{
    uint64_t         outer, inner;
    uintptr_t        name;
    test_job_t       job;
    prof_profile_t  *p;
    prof_capture_t  *c;

    c = test_capture(1000);

    prof_capture_name(c, "outer", 5);
    prof_capture_name(c, "inner", 5);
    name = prof_capture_name(c, "cause", 5);

    job.sampler = s;
    job.self = c;
    job.other = NULL;
    job.ms = 20;

    is_int(prof_span_begin(s, c, name), 0, "no span begins outside of a turn");

    prof_turn_run(s, c, (uintptr_t) test_spans_job, test_spans_job, &job);
    is_int(job.ms, 1, "spans begin in their capture's turn only");

    test_wait(5);
    prof_capture_gap(c, &name, 1, prof_now() - 2 * MS);
    prof_turn_run(s, c, (uintptr_t) test_short, test_short, NULL);

    p = finish_capture(c, "spans");
    outer = test_in_spans(p, "outer", NULL);
    inner = test_in_spans(p, "outer", "inner");

    ok(outer > 19 * MS && outer < p->cpu - 19 * MS,
       "a span has its time: %d of %d us", (int) (outer / 1000),
       (int) (p->cpu / 1000));
    ok(inner > 0 && inner < 5 * MS,
       "a span without a sample has its time: %d us",
       (int) (inner / 1000));
    is_int(test_sum(p, -1, 0), p->wall, "nothing is lost at the borders");
    is_int(test_sum(p, -1, 1), p->cpu, "no CPU time is lost at the borders");
    is_int(p->stats.turns, 2, "spans are no turns");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_spans_brief(void *data)
{
    int          i, reads;
    test_job_t  *job = data;

    reads = test_cpu_reads;

    for (i = 0; i < TEST_SPANS; i++) {
        (void) prof_span_begin(job->sampler, job->self, PROF_FRAME_FIXED);
        prof_span_end(job->sampler, job->self);
    }

    job->ms = test_cpu_reads - reads;

    test_wait(2);
    test_spin(2);
}


/* the CPU clock is a system call, so it is not read at each border */

static void
test_brief_spans(prof_sampler_t *s)
{
    test_job_t       job;
    prof_capture_t  *c;
    prof_profile_t  *p;

    c = test_capture(1);

    (void) prof_capture_name(c, "span", 4);

    job.sampler = s;
    job.self = c;

    prof_turn_run(s, c, (uintptr_t) test_job, test_spans_brief, &job);

    ok(job.ms < TEST_SPANS / 2,
       "%d reads of the CPU clock suffice for %d borders",
       job.ms, 2 * TEST_SPANS);

    p = finish_capture(c, "brief");

    is_int(test_sum(p, -1, 0), p->wall, "the weights sum to the turn");
    is_int(test_sum(p, -1, 1), p->cpu, "the CPU weights sum to the turn");
    ok(p->cpu < p->wall - 1 * MS, "waiting in the turn is not CPU time");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


/*
 * Both only multiply: the processor's time for a variable in memory depends on
 * what it has seen before.
 */

__attribute__((noinline)) static void
test_around(uint64_t n)
{
    uint64_t  x;

    for (x = n; n--; x = x * x + 1) {
        __asm__ volatile ("" : "+r" (x));
    }
}


__attribute__((noinline)) static void
test_inside(uint64_t n)
{
    uint64_t  x;

    for (x = n; n--; x = x * x + 1) {
        __asm__ volatile ("" : "+r" (x));
    }
}


/*
 * The part of test_inside(3 * n) beside test_around(n), by the clock.  Both run
 * by turns, since a busy machine is not equally fast all the time.
 */

static double
test_truth(int times, uint64_t n)
{
    int       i;
    uint64_t  start, middle, around, inside;

    around = 0;
    inside = 0;

    while (times > 0) {
        start = test_now(CLOCK_THREAD_CPUTIME_ID);

        for (i = 0; i < 50; i++) {
            test_around(n);
        }

        middle = test_now(CLOCK_THREAD_CPUTIME_ID);

        for (i = 0; i < 50; i++) {
            test_inside(3 * n);
        }

        around += middle - start;
        inside += test_now(CLOCK_THREAD_CPUTIME_ID) - middle;
        times -= 50;
    }

    return (double) inside / (around + inside);
}


static void
test_storm_job(void *data)
{
    test_job_t  *job = data;

    int  i, reads;

    reads = test_reads;

    for (i = 0; i < TEST_STORM; i++) {
        test_around(500);

        (void) prof_span_begin_named(job->sampler, job->self, "span", 4);
        test_inside(1500);
        prof_span_end(job->sampler, job->self);
    }

    job->ms = test_reads - reads;
}


/*
 * Very many spans: their functions have samples at the full rate and the right
 * shares, and the borders do not cost more than their part.  The cost is
 * counted as readings of clocks, since times depend on the machine's load.
 */

static void
test_storm(prof_sampler_t *s)
{
    double           part, truth;
    uint64_t         around, inside, span, names;
    test_job_t       job;
    prof_capture_t  *c;
    prof_profile_t  *p;

    c = test_capture(1000);

    job.sampler = s;
    job.self = c;

    prof_turn_run(s, c, (uintptr_t) test_storm_job, test_storm_job, &job);

    names = c->words.uses;
    p = finish_capture(c, "storm");

    around = test_below(p, (uintptr_t) test_around);
    inside = test_below(p, (uintptr_t) test_inside);
    span = test_in_spans(p, "span", NULL);
    part = (double) inside / (around + inside);

    ok(around + inside > p->cpu * 8 / 10,
       "functions have %d of %d us between %d spans",
       (int) ((around + inside) / 1000), (int) (p->cpu / 1000), TEST_STORM);
    truth = test_truth(TEST_STORM, 500);

    ok(part > truth - 0.12 && part < truth + 0.12,
       "a function that runs for %.2f of the time has %.2f", truth, part);
    part = (double) span / p->cpu;
    ok(part > truth - 0.12 && part < truth + 0.12, "its span has %.2f", part);
    ok(p->stats.samples + p->stats.lost_overrun > p->cpu / MS / 2,
       "%d samples", (int) p->stats.samples);
    is_int(p->frequency_end, 1000, "the frequency is that of the beginning");
    ok(p->stats.merged_stages > TEST_STORM, "%d borders were not timed",
       (int) p->stats.merged_stages);
    ok(job.ms < TEST_STORM, "%d readings of clocks at %d borders", job.ms,
       2 * TEST_STORM);
    ok(names < TEST_STORM / 4, "%d look-ups of names for %d spans",
       (int) names, TEST_STORM);
    is_int(test_sum(p, -1, 0), p->wall, "the weights sum to the turn");
    is_int(test_sum(p, -1, 1), p->cpu, "the CPU weights sum to the turn");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_proxy_job(void *data)
{
    test_job_t  *job = data;

    test_around(20000);

    (void) prof_span_begin(job->sampler, job->self, PROF_FRAME_FIXED + 1);
    test_inside(60000);
    prof_span_end(job->sampler, job->self);
}


/* turns without a sample, as those of a large response, are their functions' */

static void
test_many_turns(prof_sampler_t *s)
{
    int              i;
    double           part, truth;
    uint64_t         around, inside;
    uintptr_t        event;
    test_job_t       job;
    prof_capture_t  *c;
    prof_profile_t  *p;

    c = test_capture(1000);

    event = prof_capture_name(c, "event", 5);
    (void) prof_capture_name(c, "filter", 6);

    job.sampler = s;
    job.self = c;

    for (i = 0; i < TEST_TURNS; i++) {
        prof_turn_run(s, c, event, test_proxy_job, &job);
        prof_capture_gap(c, NULL, 0, 0);
    }

    p = finish_capture(c, "many turns");

    around = test_below(p, (uintptr_t) test_around);
    inside = test_below(p, (uintptr_t) test_inside);
    part = (double) inside / (around + inside);

    ok(around + inside > p->cpu * 8 / 10,
       "functions have %d of %d us in %d turns with %d samples",
       (int) ((around + inside) / 1000), (int) (p->cpu / 1000), TEST_TURNS,
       (int) p->stats.samples);
    truth = test_truth(TEST_TURNS, 20000);

    ok(part > truth - 0.12 && part < truth + 0.12,
       "a function that runs for %.2f of the time has %.2f", truth, part);
    is_int(p->frequency_end, 1000, "the frequency is that of the beginning");
    is_int(test_sum(p, -1, 0), p->wall, "turns and gaps are the whole");
    is_int(test_sum(p, -1, 1), p->cpu, "the CPU weights sum to the turns");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


/* least memory and highest frequency: sums are right, the governor acts */

static void
test_long_capture(prof_sampler_t *s)
{
    int                  i;
    test_job_t           job;
    prof_profile_t      *p;
    prof_capture_t      *c;
    prof_capture_conf_t  conf;

    conf.frequency = PROF_FREQUENCY_MAX;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_MIN;

    job.ms = 1;
    c = prof_capture_create(&conf);

    for (i = 0; i < 400; i++) {
        prof_turn_run(s, c, (uintptr_t) test_job, test_job, &job);
        prof_turn_run(s, c, (uintptr_t) test_short, test_short, NULL);
    }

    p = finish_capture(c, "long");

    ok(p->stats.samples > 100, "10000 Hz give %d samples",
       (int) p->stats.samples);
    is_int(test_sum(p, -1, 0), p->wall, "wall weights sum to the whole");
    is_int(test_sum(p, -1, 1), p->cpu, "CPU weights sum to the CPU clock");
    ok(p->frequency_end <= p->frequency, "asked %d Hz, at the end %d Hz",
       (int) p->frequency, (int) p->frequency_end);

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


static void
test_forge(void *data)
{
    int           i, *signo = data;
    union sigval  value;

    value.sival_ptr = (void *) 16;

    for (i = 0; i < TEST_FORGED; i++) {
        kill(getpid(), *signo);
        sigqueue(getpid(), *signo, value);
    }
}


/* any process with permission may send the signal; it must have no effect */

static void
test_foreign_signal(prof_sampler_t *s)
{
    int               signo;
    prof_capture_t   *c;
    prof_profile_t   *p;
    struct sigaction  sa;

    for (signo = SIGRTMIN; signo <= SIGRTMAX; signo++) {
        if (sigaction(signo, NULL, &sa) == 0 && (sa.sa_flags & SA_SIGINFO)) {
            break;
        }
    }

    ok(signo <= SIGRTMAX, "the sampler holds signal %d", signo);

    c = test_capture(1);

    prof_turn_run(s, c, (uintptr_t) test_forge, test_forge, &signo);

    p = finish_capture(c, "forged");

    /* a turn shorter than a period may get one sample by chance */

    ok(p->cpu < 1000 * MS, "a turn of %" PRIu64 " us", p->cpu / 1000);
    ok(p->stats.samples <= 1, "%" PRIu64 " samples of %d signals that are not"
       " its timer's", p->stats.samples, 2 * TEST_FORGED);
    is_int(test_sum(p, -1, 1), p->cpu, "CPU weights sum to the CPU clock");

    prof_profile_destroy(p);
    prof_capture_destroy(c);
}


/* sanitizers have timers of their own */

static int
test_handlers(void)
{
    int               signo, n;
    struct sigaction  sa;

    n = 0;

    for (signo = 1; signo <= SIGRTMAX; signo++) {
        if (sigaction(signo, NULL, &sa) == 0
            && (sa.sa_flags & SA_SIGINFO
                || (sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN)))
        {
            n++;
        }
    }

    return n;
}


static void
test_restored(void)
{
    int              i, held;
    FILE            *f;
    stack_t          before, after;
    const char      *err;
    prof_sampler_t  *s;
    prof_capture_t  *c;

    held = test_handlers();
    sigaltstack(NULL, &before);

    for (i = 0; i < 50; i++) {
        s = prof_sampler_create(&err);
        c = test_capture(10000);
        prof_turn_run(s, c, (uintptr_t) test_short, test_short, NULL);
        prof_sampler_destroy(s);
        prof_capture_destroy(c);
    }

    is_int(test_handlers(), held, "no signal handler is left");

    sigaltstack(NULL, &after);
    is_int(after.ss_flags, before.ss_flags, "no alternate stack is left");

    f = fopen("/proc/self/timers", "r");

    if (f) {
        is_int(fgetc(f), EOF, "no timer is left");
        fclose(f);
    }
}


/* shows that the test detects an allocation in a handler */

static void
test_allocating_handler(int signo)
{
    void *volatile  p;

    /* compilers may remove a pair of calls without effect */

    p = malloc(100);
    free(p);
}


static void
test_allocator(void)
{
    struct sigaction  sa, old;

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = test_allocating_handler;
    sa.sa_flags = SA_ONSTACK;

    is_int(test_allocations, 0, "the signal handler allocates nothing");

    sigaction(SIGUSR1, &sa, &old);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);

    is_int(test_allocations, 2, "the test counts allocations of a handler");
}


int
main(void)
{
    const char      *err;
    prof_sampler_t  *s;

    test_clock = (test_clock_pt) (uintptr_t) dlsym(RTLD_NEXT, "clock_gettime");

    is_int(prof_process_init(), PROF_OK, "the test has unwind tables");

    s = prof_sampler_create(&err);
    ok(s != NULL, "the test has a sampler: %s", err ? err : "ok");

    test_sums(s);
    test_frequency(s);
    test_turns(s);
    test_short_turns(s);
    test_two_captures(s);
    test_nobodys(s);
    test_taken(s);
    test_end_in_turn(s);
    test_names(s);
    test_many_names(s);
    test_interrupted(s);
    test_spans(s);
    test_brief_spans(s);
    test_storm(s);
    test_many_turns(s);
    test_long_capture(s);
    test_foreign_signal(s);

    if (!TAP_SANITIZED) {
        test_allocator();
    }

    prof_sampler_destroy(s);

    test_restored();
    prof_process_done();

    return done_testing();
}
