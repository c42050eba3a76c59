
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Moves samples from the rings of the threads to the captures.  There is no
 * timeline, because the threads have run at the same time.  An entry is the
 * sum of all samples with the same stack in threads of the same name.  So the
 * memory grows with the number of different stacks, not with time.
 */


#include "capture/prof_process.h"
#include "base/prof_hash.h"
#include "base/prof_spare.h"
#include "profile/prof_merge.h"
#include "stacks/prof_marks.h"

#include <string.h>


static void prof_process_renew(prof_thread_t *t, int unused);
static prof_last_t *prof_process_last(prof_process_capture_t *slot,
    prof_thread_t *t);
static void prof_process_waited(prof_process_capture_t *slot, prof_last_t *last,
    const prof_sample_t *sample);
static int prof_process_due(prof_capture_t *c, prof_last_t *last,
    const prof_sample_t *sample, uint64_t period, int wall);
static uint64_t prof_process_used(const prof_last_t *last, uint64_t cpu);
static uint32_t prof_process_node(prof_capture_t *c,
    const prof_sample_t *sample);
static uint32_t prof_process_known(const prof_words_t *w, uint32_t labels);
static void prof_process_pass(prof_thread_t *t);
static void prof_process_add(prof_process_capture_t *slot,
    const prof_interval_t *e);


/*
 * Divides the memory that other captures use for their timeline: half as many
 * chains as entries, or fewer.
 */

void
prof_process_entries(prof_process_capture_t *slot, prof_capture_t *c)
{
    size_t    size;
    uint32_t  n;

    size = (size_t) c->timeline.max * sizeof(prof_interval_t);

    for (n = 64; 4 * n * sizeof(prof_interval_t) <= size; n *= 2) {
        /* void */
    }

    c->timeline.max = (size - n * sizeof(uint32_t))
                      / (sizeof(prof_interval_t) + sizeof(uint32_t));

    slot->capture = c;
    slot->mask = n - 1;
    slot->chains = (uint32_t *) (c->timeline.entries + c->timeline.max);

    prof_spare_zero(slot->chains, n * sizeof(uint32_t));
}


void
prof_process_fold(prof_thread_t *t, int renew)
{
    int             unused;
    uint32_t        i;
    prof_marks_t    marks;
    prof_sample_t  *sample;

    /*
     * The check precedes the reading of the ring: a handler that has left has
     * written its sample.
     */

    unused = prof_thread_quiet(t);

    memset(&marks, 0, sizeof(prof_marks_t));

    prof_marks_add(&marks, t->before);
    prof_marks_add(&marks, t->unwind);
    prof_marks_add(&marks, renew ? prof_process_refresh() : NULL);

    while ((sample = prof_ring_peek(&t->ring)) != NULL) {

        prof_marks_stack(&marks, sample);

        for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {

            if (prof_process.slots[i].capture) {
                prof_process_sample(&prof_process.slots[i], t, sample);
            }
        }

        t->stale = 0;

        prof_ring_pop(&t->ring, sample);
    }

    if (renew) {
        prof_process_renew(t, unused);
    }

    prof_process_pass(t);
}


/*
 * Renews the tables of handlers in other threads.  A handler that begins after
 * the exchange uses the new tables.  A handler that began before it may use
 * the old tables until it is known to have left.
 */

static void
prof_process_renew(prof_thread_t *t, int unused)
{
    const prof_unwind_t  *current;

    current = prof_process_unwind();

    if (t->before && unused) {
        prof_unwind_release(t->before);
        t->before = NULL;
    }

    if (t->before == NULL && t->unwind != current) {
        t->before = t->unwind;

        prof_unwind_hold(current);
        __atomic_store_n(&t->unwind, current, __ATOMIC_SEQ_CST);
    }
}


/* a capture of one thread alone is not in the table of captures */

static prof_last_t *
prof_process_last(prof_process_capture_t *slot, prof_thread_t *t)
{
    return &t->last[slot->alone ? 0 : slot - prof_process.slots];
}


void
prof_process_sample(prof_process_capture_t *slot, prof_thread_t *t,
    const prof_sample_t *sample)
{
    int              wall;
    prof_last_t     *last;
    prof_capture_t  *c;
    prof_interval_t  e;

    c = slot->capture;
    last = prof_process_last(slot, t);
    wall = (t->main && slot->paced && c->mode == PROF_MODE_WALL);

    /* a thread that waits in the kernel uses no CPU time there */

    if (sample->state == PROF_SAMPLE_WAITED && !wall) {
        return;
    }

    /* samples that are older than this capture are not taken */

    if ((wall ? sample->wall < last->busy : sample->cpu < last->cpu)
        || !prof_process_due(c, last, sample, t->period, wall))
    {
        return;
    }

    if (wall && sample->state == PROF_SAMPLE_WOKE
        && last->state == PROF_SAMPLE_WAITED)
    {
        prof_process_waited(slot, last, sample);
    }

    last->node = prof_process_node(c, sample);

    e.node = last->node;
    e.type = PROF_ENTRY_SAMPLE;
    e.labels = prof_process_label(slot, t, sample->location);
    e.count = 1;

    if (c->traces) {
        e.labels |= prof_traces_number(c->traces, &sample->trace, &c->stats)
                    << PROF_LABEL_TRACE;
    }

    e.cpu = prof_process_used(last, sample->cpu);
    e.wall = wall ? sample->wall - last->busy : e.cpu;

    prof_process_add(slot, &e);

    last->cpu += e.cpu;
    last->busy = sample->wall;
    last->labels = e.labels;
    last->state = sample->state;

    c->stats.samples++;
}


/*
 * Returns the CPU time since the last sample.  The CPU time of the main
 * thread's waits is partly an estimate, so its clock may step back a little.
 */

static uint64_t
prof_process_used(const prof_last_t *last, uint64_t cpu)
{
    return cpu > last->cpu ? cpu - last->cpu : 0;
}


/* adds the time in which the thread did not run to the stack that waited */

static void
prof_process_waited(prof_process_capture_t *slot, prof_last_t *last,
    const prof_sample_t *sample)
{
    uint64_t         wall, cpu;
    prof_interval_t  e;

    wall = sample->wall - last->busy;
    cpu = prof_process_used(last, sample->cpu);

    if (wall <= cpu) {
        return;
    }

    e.node = last->node;
    e.type = PROF_ENTRY_SAMPLE;
    e.labels = last->labels;
    e.count = 0;
    e.wall = wall - cpu;
    e.cpu = 0;

    prof_process_add(slot, &e);

    last->busy += e.wall;
}


/*
 * Returns whether the capture takes the sample.  Samples that were due since
 * the last one are lost, unless the ring was full: these are counted as
 * lost_ring.
 */

static int
prof_process_due(prof_capture_t *c, prof_last_t *last,
    const prof_sample_t *sample, uint64_t period, int wall)
{
    uint64_t  clock, lost, n;

    clock = wall ? sample->wall : sample->cpu;

    if (last->due == 0) {
        lost = (clock - (wall ? last->busy : last->cpu)) / c->period;
        last->due = clock + c->period;

    } else if (wall && last->state == PROF_SAMPLE_WAITED) {

        /* samples of a thread that waits are postponed, and not lost */

        lost = 0;
        n = (clock - last->busy) / c->period;
        c->stats.postponed += n ? n - 1 : 0;
        last->due = clock + c->period;

    } else if (prof_expiry_due(clock, last->due, period)) {
        lost = prof_expiry_next(&last->due, clock, c->period);

    } else {
        return 0;
    }

    if (sample->dropped == last->dropped) {
        c->stats.lost_overrun += lost;
    }

    last->dropped = sample->dropped;

    return 1;
}


static uint32_t
prof_process_node(prof_capture_t *c, const prof_sample_t *sample)
{
    c->stats.truncated += (sample->end == PROF_FRAME_TRUNCATED);
    c->stats.elided += sample->elided;
    c->stats.no_unwind += (sample->end == PROF_FRAME_NO_UNWIND);
    c->stats.bad_stack += (sample->end == PROF_FRAME_BAD_STACK);

    return prof_fold(&c->tree, PROF_NONE, sample, PROF_FRAME_BAD_STACK,
                     &c->stats);
}


/* adds the handler's counters to all captures */

static void
prof_process_pass(prof_thread_t *t)
{
    uint32_t         i;
    prof_stats_t     st;
    prof_capture_t  *c;

    st = t->stats;

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        c = prof_process.slots[i].capture;

        if (c) {
            c->stats.lost_ring += st.lost_ring - t->passed.lost_ring;
            c->stats.scanned += st.scanned - t->passed.scanned;
            c->stats.own_handler_ns += st.own_handler_ns
                                       - t->passed.own_handler_ns;
        }
    }

    t->passed = st;
}


void
prof_process_tail(prof_process_capture_t *slot, prof_thread_t *t, uint64_t end)
{
    uint64_t         cpu, busy;
    prof_last_t     *last;
    prof_capture_t  *c;
    prof_interval_t  e;

    c = slot->capture;
    last = prof_process_last(slot, t);

    cpu = prof_process_used(last, t->cpu - t->idle_cpu);
    busy = cpu;

    if (t->main && slot->paced && c->mode == PROF_MODE_WALL) {
        busy = end - t->idle - last->busy;
    }

    if (last->node == PROF_NONE) {

        if (cpu || busy) {
            prof_process_named(slot, PROF_TYPE_NOTE, PROF_NOT_SAMPLED,
                               PROF_ENTRY_TURN,
                               prof_process_label(slot, t, NULL), busy, cpu);
        }

        return;
    }

    e.node = last->node;
    e.type = PROF_ENTRY_SAMPLE;
    e.labels = last->labels;
    e.count = 0;
    e.wall = busy;
    e.cpu = cpu;

    prof_process_add(slot, &e);
}


void
prof_process_named(prof_process_capture_t *slot, uint32_t frame,
    const char *name, uint32_t type, uint32_t labels, uint64_t wall,
    uint64_t cpu)
{
    prof_capture_t  *c;
    prof_interval_t  e;

    c = slot->capture;

    e.node = prof_tree_frame(&c->tree, PROF_NONE,
                             prof_capture_typed(c, frame, name, strlen(name)),
                             &c->stats);
    e.type = type;
    e.labels = labels;
    e.count = 0;
    e.wall = wall;
    e.cpu = cpu;

    prof_process_add(slot, &e);
}


void
prof_process_waited_for(prof_process_capture_t *slot, const prof_thread_t *t,
    const prof_wait_t *wait, uint64_t wall)
{
    prof_capture_t  *c;
    prof_interval_t  e;

    c = slot->capture;

    e.node = prof_tree_frame(&c->tree, PROF_NONE,
                             prof_capture_typed(c, PROF_TYPE_WAITING, "[idle]",
                                                sizeof("[idle]") - 1),
                             &c->stats);

    if (wait->location) {
        e.node = prof_tree_frame(&c->tree, e.node,
                                 prof_capture_typed(c, PROF_TYPE_WAITING,
                                                    wait->location,
                                                    strlen(wait->location)),
                                 &c->stats);
    }

    e.node = prof_tree_frame(&c->tree, e.node,
                             prof_capture_typed(c, PROF_TYPE_WAITING,
                                                wait->cause,
                                                strlen(wait->cause)),
                             &c->stats);
    e.type = PROF_ENTRY_GAP;
    e.labels = prof_process_label(slot, t, wait->location);
    e.count = 0;
    e.wall = wall;
    e.cpu = 0;

    prof_process_add(slot, &e);
}


uint32_t
prof_process_label(prof_process_capture_t *slot, const prof_thread_t *t,
    const char *location)
{
    uint32_t  label;

    label = prof_capture_name(slot->capture, t->name, strlen(t->name));

    if (location) {
        label |= prof_capture_name(slot->capture, location, strlen(location))
                 << PROF_LABEL_BITS;
    }

    return label;
}


/*
 * An entry with a changed label remains in its chain.  If it is not found there
 * later, another entry has the same labels, which does no harm.
 */

void
prof_process_forget(prof_capture_t *c)
{
    int       k, t;
    uint32_t  i;

    for (i = 0; i < c->timeline.n; i++) {
        c->timeline.entries[i].labels =
                 prof_process_known(&c->words, c->timeline.entries[i].labels);
    }

    for (k = 0; k < PROF_PROCESS_CAPTURES; k++) {

        if (prof_process.slots[k].capture != c) {
            continue;
        }

        for (t = 0; t < prof_process.nthreads; t++) {
            prof_threads[t].last[k].labels =
                    prof_process_known(&c->words,
                                       prof_threads[t].last[k].labels);
        }
    }
}


static uint32_t
prof_process_known(const prof_words_t *w, uint32_t labels)
{
    uint32_t  shift, mask, word;

    mask = (1 << PROF_LABEL_BITS) - 1;

    for (shift = 0; shift < PROF_LABEL_TRACE; shift += PROF_LABEL_BITS) {

        word = (labels >> shift & mask) - PROF_FRAME_FIXED;

        if (labels != PROF_NONE && word < w->n && w->words[word].text == NULL) {
            labels = (labels & ~(mask << shift)) | PROF_FRAME_OTHER << shift;
        }
    }

    return labels;
}


/* if the memory is full, adds the sample to the newest entry */

static void
prof_process_add(prof_process_capture_t *slot, const prof_interval_t *e)
{
    uint32_t          i, hash, *next;
    prof_capture_t   *c;
    prof_interval_t  *to;

    c = slot->capture;

    c->running += e->type == PROF_ENTRY_GAP ? 0 : e->wall;
    c->cpu += e->cpu;

    if (e->labels != PROF_NONE) {
        i = (1 << PROF_LABEL_BITS) - 1;

        prof_words_weigh(&c->words, e->labels & i, e->wall);
        prof_words_weigh(&c->words, e->labels >> PROF_LABEL_BITS & i, e->wall);
    }

    hash = prof_hash_add((uint64_t) e->node << 32 | e->labels, e->type)
           & slot->mask;

    next = slot->chains + slot->mask + 1;

    for (i = slot->chains[hash]; i != 0; i = next[i - 1]) {
        to = &c->timeline.entries[i - 1];

        if (to->node == e->node && to->labels == e->labels
            && to->type == e->type)
        {
            break;
        }
    }

    if (i == 0 && c->timeline.n < c->timeline.max) {
        i = ++c->timeline.n;

        next[i - 1] = slot->chains[hash];
        slot->chains[hash] = i;

        c->timeline.entries[i - 1] = *e;
        return;
    }

    if (i == 0) {
        i = c->timeline.n;
        c->stats.thinned++;
    }

    to = &c->timeline.entries[i - 1];

    to->count += e->count;
    to->wall += e->wall;
    to->cpu += e->cpu;
}
