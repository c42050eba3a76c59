
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Turns: arming and disarming the sampler around a call, and folding the
 * samples into the capture's tree and timeline.
 *
 * Weights.  A turn without spans is one segment; each border of a span begins
 * another segment.  Each sample of a segment weighs the time since the
 * previous sample, and the first one the time since the start of the segment.
 * The last sample also gets the rest of the segment.  A segment without a
 * sample is an entry of its own.  So the sum of the entries is exactly the
 * length of the turn and of each span, on both clocks, whatever was lost or
 * slowed down.
 *
 * Many segments are shorter than the period.  So segments without a sample wait
 * for the next sample in the same spans, also in a later turn, and get its
 * stack.  A function has the share of its spans' time that it has of their
 * samples.
 *
 * Borders cost time.  When they cost too much, most borders are merged: nothing
 * is read or added there, and a name is looked up only if a sample finds its
 * span.  The time since the last sample, whose spans are then not known,
 * belongs to the next sample.
 *
 * A sample that found the thread waiting in a system call may be the last one
 * for a while (prof_sampler.h).  The time after it in which the thread used no
 * CPU time belongs to the wait, and the rest belongs to the code that ran
 * after it.
 *
 * Reading the CPU clock is a system call.  A segment that ends soon after the
 * clock was read counts as having run all the time.  If the thread waited in
 * it, the next segments get less time.
 *
 * The time to the next sample is carried over from turn to turn.
 */


#include "capture/prof_turn.h"
#include "capture/prof_queue.h"
#include "heap/prof_heap_state.h"
#include "stacks/prof_marks.h"


/* ns; a clock that was read so recently is not read again */
#define PROF_CPU_READ_NS  20000

/* ns; clocks may differ by less than this although the thread ran */
#define PROF_IDLE_NS      20000

/*
 * Borders may cost one part in PROF_BORDERS_SHARE of the CPU time, after
 * PROF_BORDERS_FREE_NS for the borders of small requests.  A border that took
 * longer than PROF_BORDER_MAX_NS was preempted.
 */

#define PROF_BORDERS_SHARE    100
#define PROF_BORDERS_FREE_NS  200000
#define PROF_BORDER_MAX_NS    2000

/* ns; the parts of a border that are not measured: its callers, the clocks */
#define PROF_BORDER_REST_NS   100

#define prof_barrier()  __asm__ volatile ("" ::: "memory")


static inline int prof_turn_spans(prof_sampler_t *s, prof_capture_t *c);
static void prof_turn_push(prof_turn_t *turn, uintptr_t frame);
static void prof_turn_start(prof_sampler_t *s, prof_turn_t *turn);
static void prof_turn_renew(prof_sampler_t *s);
static void prof_turn_arm(prof_sampler_t *s, prof_turn_t *turn, uint64_t now,
    uint64_t cpu);
static void prof_turn_stop(prof_sampler_t *s, prof_turn_t *turn);
static void prof_turn_idle(prof_turn_t *turn);
static inline int prof_turn_passes(prof_sampler_t *s, prof_turn_t *turn);
static int prof_turn_border(prof_sampler_t *s, prof_turn_t *turn);
static int prof_turn_merges(prof_capture_t *c);
static void prof_turn_segment(prof_sampler_t *s, prof_turn_t *turn,
    int merge);
static uint64_t prof_turn_cpu(prof_sampler_t *s, prof_turn_t *turn,
    uint64_t wall);
static void prof_turn_fold(prof_sampler_t *s, prof_turn_t *turn,
    uint64_t wall, uint64_t cpu, int merge);
static uint64_t prof_turn_group(prof_turn_t *turn, uint32_t root);
static void prof_turn_unsampled(prof_turn_t *turn, uint32_t root,
    uint64_t wall, uint64_t cpu);
static uint64_t prof_turn_waited(prof_capture_t *c, uint64_t wall,
    uint64_t cpu);


PROF_GLUE void
prof_turn_run(prof_sampler_t *s, prof_capture_t *c, uintptr_t what,
    prof_turn_pt fn, void *data)
{
    prof_turn_t   turn;
    prof_turn_t  *prev;

    prev = s->turn;

    if (prev && prev->capture == c) {
        fn(data);
        return;
    }

    if (prev && prev->capture) {
        prof_turn_stop(s, prev);
    }

    /*
     * Reading the frame address makes this function keep a frame pointer, so
     * the CFA of fn is below it and the CFA of this function is above it.
     */

    turn.prev = prev;
    turn.capture = c;
    turn.what = what;
    turn.outer.top = (uintptr_t) __builtin_frame_address(0);
    turn.outer.nspans = 0;
    turn.named = 0;

    s->turn = &turn;

    if (c) {
        if (prof_frame_is_name(what)) {
            prof_turn_push(&turn, what);
        }

        prof_turn_start(s, &turn);
    }

    fn(data);

    if (turn.capture) {
        prof_turn_stop(s, &turn);

        if (turn.outer.nspans) {
            prof_words_open(&turn.capture->words, turn.outer.spans[0], 0);
        }
    }

    s->turn = prev;

    if (prev && prev->capture) {
        prof_turn_start(s, prev);
    }
}


int
prof_turn_take(prof_sampler_t *s, prof_capture_t *c, uintptr_t what,
    uint64_t cpu)
{
    uint64_t      used;
    prof_turn_t  *turn;

    turn = s->turn;

    if (turn == NULL || turn->capture) {
        return PROF_ERROR;
    }

    turn->capture = c;
    turn->what = what;
    turn->outer.nspans = 0;
    turn->named = 0;

    if (prof_frame_is_name(what)) {
        prof_turn_push(turn, what);
    }

    c->stats.turns++;

    prof_turn_renew(s);

    /* the clock was not read when the turn began */

    turn->queue = PROF_QUEUE_UNKNOWN;

    used = prof_clock(s->cpu_clock);
    prof_turn_arm(s, turn, prof_clock(CLOCK_MONOTONIC),
                  used - (cpu < used ? cpu : used));

    return PROF_OK;
}


void
prof_turn_end(prof_sampler_t *s, prof_capture_t *c)
{
    prof_turn_t  *turn;

    for (turn = s->turn; turn; turn = turn->prev) {

        if (turn->capture != c) {
            continue;
        }

        if (turn == s->turn) {
            prof_turn_stop(s, turn);
        }

        turn->capture = NULL;
    }
}


prof_capture_t *
prof_turn_current(const prof_sampler_t *s)
{
    return s->turn ? s->turn->capture : NULL;
}


void
prof_capture_set_frequency(prof_sampler_t *s, prof_capture_t *c,
    uint32_t frequency)
{
    unsigned  running;

    running = (prof_turn_current(s) == c);

    if (running) {
        (void) prof_timer_set(s->timer, 0, 0);
        s->wait = 0;
    }

    c->frequency = frequency;
    c->period = 1000000000 / frequency;
    c->rest = 1 + prof_entries_random(&c->timeline) % c->period;

    if (running) {
        s->period = c->period;
        s->due = prof_clock(CLOCK_MONOTONIC) + c->rest;
        (void) prof_timer_set(s->timer, c->rest, s->period);
    }
}


int
prof_span_begin(prof_sampler_t *s, prof_capture_t *c, uintptr_t frame)
{
    if (!prof_turn_spans(s, c)) {
        return 0;
    }

    (void) prof_turn_border(s, s->turn);

    prof_turn_name(s->turn);
    prof_turn_push(s->turn, frame);

    return 1;
}


int
prof_span_begin_named(prof_sampler_t *s, prof_capture_t *c, const char *text,
    size_t len)
{
    uint32_t      n;
    prof_turn_t  *turn;

    if (!prof_turn_spans(s, c)) {
        return 0;
    }

    turn = s->turn;

    /* what counts allocations reads the spans at any time */

    if ((prof_turn_passes(s, turn) || prof_turn_border(s, turn))
        && c->heap == NULL)
    {
        n = turn->outer.nspans++;

        turn->texts[n].data = text;
        turn->texts[n].len = len;

        return 1;
    }

    prof_turn_name(turn);
    prof_turn_push(turn, prof_capture_name(c, text, len));

    return 1;
}


/* returns whether a span of the capture can begin */

static inline int
prof_turn_spans(prof_sampler_t *s, prof_capture_t *c)
{
    return s->turn && s->turn->capture == c
           && s->turn->outer.nspans < PROF_SPANS_MAX;
}


/* all spans of the turn have frames */

static void
prof_turn_push(prof_turn_t *turn, uintptr_t frame)
{
    turn->outer.spans[turn->outer.nspans++] = frame;
    turn->named = turn->outer.nspans;

    prof_words_open(&turn->capture->words, frame, 1);
}


void
prof_turn_name(prof_turn_t *turn)
{
    uint32_t         i;
    prof_capture_t  *c;

    c = turn->capture;

    for (i = turn->named; i < turn->outer.nspans; i++) {
        turn->outer.spans[i] = prof_capture_name(c, turn->texts[i].data,
                                                 turn->texts[i].len);
        prof_words_open(&c->words, turn->outer.spans[i], 1);
    }

    turn->named = i;
}


void
prof_span_end(prof_sampler_t *s, prof_capture_t *c)
{
    uint32_t      n;
    prof_turn_t  *turn;

    turn = s->turn;

    if (turn == NULL || turn->capture != c || turn->outer.nspans == 0) {
        return;
    }

    if (!prof_turn_passes(s, turn)) {
        (void) prof_turn_border(s, turn);
    }

    n = --turn->outer.nspans;

    if (n < turn->named) {
        turn->named = n;
        prof_words_open(&c->words, turn->outer.spans[n], 0);
    }
}


static void
prof_turn_start(prof_sampler_t *s, prof_turn_t *turn)
{
    prof_capture_t  *c;

    c = turn->capture;

    prof_turn_renew(s);

    turn->queue = prof_queue_now();

    if (c->stats.turns++) {
        prof_capture_resume(c);

    } else if (c->counted == 0) {
        c->counted = prof_clock(CLOCK_MONOTONIC);
    }

    prof_turn_arm(s, turn, c->counted, prof_clock(s->cpu_clock));
}


/* renews what samples use; the ring is empty, so no sample is marked */

static void
prof_turn_renew(prof_sampler_t *s)
{
    prof_marks_t  marks;

    prof_kernel_ready(s->walker.kernel);

    prof_marks_begin(&marks, &s->walker.unwind);
    prof_marks_end(&marks);
}


/* begins a segment at the end of what is counted, with this CPU clock */

static void
prof_turn_arm(prof_sampler_t *s, prof_turn_t *turn, uint64_t now,
    uint64_t cpu)
{
    prof_capture_t  *c;

    c = turn->capture;

    s->walker.stats = &c->stats;
    s->top = turn->outer.top;
    s->period = c->period;
    s->running = c->running;
    s->taken = c->taken;
    s->fill = PROF_RING_SIZE / 2;
    s->wait = 0;

    turn->idle = (int64_t) (c->running - c->cpu);
    turn->samples = 0;
    turn->merged = 0;
    turn->wall = c->counted;
    turn->cpu = cpu;
    turn->read = turn->wall;

    s->start = turn->wall;
    s->due = now + c->rest;

    prof_barrier();
    s->armed = 1;

    (void) prof_timer_set(s->timer, c->rest, s->period);

    if (c->heap) {
        prof_heap_turn(c->heap, &turn->outer);
    }
}


static void
prof_turn_stop(prof_sampler_t *s, prof_turn_t *turn)
{
    prof_capture_t  *c;

    c = turn->capture;

    if (c->heap) {
        prof_heap_turn(NULL, NULL);
    }

    c->rest = prof_timer_set(s->timer, 0, 0);

    s->armed = 0;
    prof_barrier();

    if (s->wait) {
        (void) prof_timer_set(s->cpu_timer, 0, 0);
    }

    c->period = s->period;
    c->taken = s->taken;

    if (c->rest == 0 || c->rest > c->period) {
        c->rest = c->period;
    }

    prof_turn_segment(s, turn, 0);

    if (turn->samples == 0) {
        c->stats.turns_unsampled++;
    }

    prof_turn_idle(turn);
}


/*
 * Splits the time of the turn in which the thread did not run.  Most turns have
 * no such time, and the clock of the run queue is not read again.
 */

static void
prof_turn_idle(prof_turn_t *turn)
{
    int64_t          idle;
    uint64_t         queue;
    prof_capture_t  *c;

    c = turn->capture;
    idle = (int64_t) (c->running - c->cpu) - turn->idle;

    if (idle < PROF_IDLE_NS) {
        return;
    }

    queue = prof_queue_now();

    if (queue == PROF_QUEUE_UNKNOWN || turn->queue == PROF_QUEUE_UNKNOWN) {
        return;
    }

    queue -= turn->queue;

    if (queue > (uint64_t) idle) {
        queue = (uint64_t) idle;
    }

    c->stats.no_processor_ns += queue;
    c->stats.blocked_ns += (uint64_t) idle - queue;
}


/* merges the border, as those before it, if there is no sample */

static inline int
prof_turn_passes(prof_sampler_t *s, prof_turn_t *turn)
{
    if (!turn->merged || s->wait
        || s->ring.tail != __atomic_load_n(&s->ring.head, __ATOMIC_ACQUIRE))
    {
        return 0;
    }

    turn->capture->stats.merged_stages++;

    return 1;
}


/*
 * Handles a border of a span, and returns whether it was merged.  A sample at
 * this moment is discarded, because its stack would contain the profiler.
 */

static int
prof_turn_border(prof_sampler_t *s, prof_turn_t *turn)
{
    int              sampled, merge;
    uint64_t         own;
    prof_capture_t  *c;

    c = turn->capture;
    sampled = (prof_ring_peek(&s->ring) != NULL);

    merge = (s->wait == 0 && prof_turn_merges(c));

    if (!sampled && s->wait == 0 && (merge || turn->merged)) {
        turn->merged = 1;
        c->stats.merged_stages++;
        return 1;
    }

    s->armed = 0;
    prof_barrier();

    c->period = s->period;
    own = c->stats.own_fold_ns;

    prof_turn_segment(s, turn, merge);

    if (!sampled) {
        own = c->stats.own_fold_ns - own;
        c->borders += PROF_BORDER_REST_NS
                      + (own < PROF_BORDER_MAX_NS ? own : PROF_BORDER_MAX_NS);
    }

    s->period = c->period;

    if (s->wait) {
        prof_sampler_resume(s, turn->wall);
    }

    prof_barrier();
    s->armed = 1;

    return 0;
}


/* returns whether the borders have cost more than their share */

static int
prof_turn_merges(prof_capture_t *c)
{
    if (c->borders < PROF_BORDERS_FREE_NS) {
        return 0;
    }

    if (c->borders * PROF_BORDERS_SHARE > c->cpu - c->bordered) {
        return 1;
    }

    c->borders = 0;
    c->bordered = c->cpu;

    return 0;
}


/*
 * Ends the segment, and begins the next one: at its last sample if borders go
 * on to be merged, so that long stages do not get more than their share.
 */

static void
prof_turn_segment(prof_sampler_t *s, prof_turn_t *turn, int merge)
{
    uint32_t         i;
    uint64_t         now, wall, cpu;
    prof_capture_t  *c;

    c = turn->capture;
    wall = turn->wall;
    cpu = turn->cpu;

    now = prof_clock(CLOCK_MONOTONIC);

    prof_turn_name(turn);

    prof_turn_fold(s, turn, now, prof_turn_cpu(s, turn, now), merge);

    c->counted = turn->wall;
    c->wall += turn->wall - wall;
    c->running += turn->wall - wall;
    c->cpu += turn->cpu - cpu;

    for (i = 0; i < turn->outer.nspans; i++) {
        prof_words_weigh(&c->words, turn->outer.spans[i], turn->wall - wall);
    }

    turn->merged = merge;

    c->stats.own_fold_ns += prof_clock(CLOCK_MONOTONIC) - now;
}


static uint64_t
prof_turn_cpu(prof_sampler_t *s, prof_turn_t *turn, uint64_t wall)
{
    uint64_t  cpu;

    if (wall - turn->read < PROF_CPU_READ_NS
        && prof_ring_peek(&s->ring) == NULL)
    {
        return turn->cpu + (wall - turn->wall);
    }

    turn->read = wall;
    cpu = prof_clock(s->cpu_clock);

    return (cpu > turn->cpu) ? cpu : turn->cpu;
}


static void
prof_turn_fold(prof_sampler_t *s, prof_turn_t *turn, uint64_t wall,
    uint64_t cpu, int merge)
{
    int              waited;
    uint32_t         node, root;
    uint64_t         group;
    prof_marks_t     marks;
    prof_sample_t   *sample;
    prof_capture_t  *c;

    c = turn->capture;
    root = prof_fold_outer(&c->tree, &turn->outer, &c->stats);
    group = prof_turn_group(turn, root);

    sample = prof_ring_peek(&s->ring);

    if (sample == NULL) {
        prof_turn_unsampled(turn, root, wall - turn->wall, cpu - turn->cpu);

        if (wall - turn->wall < s->period) {
            prof_entries_wait(&c->timeline, group);
        }

        turn->wall = wall;
        turn->cpu = cpu;
        return;
    }

    prof_marks_begin(&marks, &s->walker.unwind);

    waited = 0;

    for ( /* void */ ; sample; sample = prof_ring_peek(&s->ring)) {

        prof_marks_stack(&marks, sample);

        if (sample->cpu < turn->cpu) {
            sample->cpu = turn->cpu;
        }

        node = prof_fold(&c->tree, root, sample, PROF_FRAME_TURN, &c->stats);

        if (waited && sample->state == PROF_SAMPLE_WOKE) {
            turn->wall += prof_turn_waited(c, sample->wall - turn->wall,
                                           sample->cpu - turn->cpu);
        }

        prof_capture_add(c, node, PROF_ENTRY_SAMPLE, sample->wall - turn->wall,
                         sample->cpu - turn->cpu);

        waited = (sample->state == PROF_SAMPLE_WAITED);

        if (!waited) {
            prof_entries_claim(&c->timeline, group, node);
        }

        turn->wall = sample->wall;
        turn->cpu = sample->cpu;
        turn->samples++;

        prof_ring_pop(&s->ring, sample);
    }

    prof_marks_end(&marks);

    if (merge) {
        return;
    }

    if (waited && cpu - turn->cpu >= s->period) {
        turn->wall += prof_turn_waited(c, wall - turn->wall, cpu - turn->cpu);
        prof_turn_unsampled(turn, root, wall - turn->wall, cpu - turn->cpu);

    } else {
        prof_entries_extend(&c->timeline, wall - turn->wall, cpu - turn->cpu);
    }

    turn->wall = wall;
    turn->cpu = cpu;
}


/*
 * Samples of a group have the same spans.  If borders were merged, only their
 * outermost span is the same.
 */

static uint64_t
prof_turn_group(prof_turn_t *turn, uint32_t root)
{
    if (turn->outer.nspans == 0) {
        return (uint64_t) 1 << 63 | turn->what << 1 | turn->merged;
    }

    if (turn->merged) {
        root = prof_tree_frame(&turn->capture->tree, PROF_NONE,
                               turn->outer.spans[0], &turn->capture->stats);
    }

    return ((uint64_t) root + 1) << 1 | turn->merged;
}


/* adds time without a sample to the spans, or to the frame of the turn */

static void
prof_turn_unsampled(prof_turn_t *turn, uint32_t root, uint64_t wall,
    uint64_t cpu)
{
    uint32_t         node;
    prof_capture_t  *c;

    c = turn->capture;
    node = root;

    if (turn->outer.nspans == 0) {
        node = prof_tree_frame(&c->tree, root, turn->what, &c->stats);
    }

    prof_capture_add(c, node, PROF_ENTRY_TURN, wall, cpu);
}


/* returns the time that the thread waited after a sample found it waiting */

static uint64_t
prof_turn_waited(prof_capture_t *c, uint64_t wall, uint64_t cpu)
{
    if (wall <= cpu) {
        return 0;
    }

    prof_entries_extend(&c->timeline, wall - cpu, 0);

    return wall - cpu;
}
