
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_spare.h"
#include "capture/prof_turn.h"
#include "heap/prof_heap_state.h"

#include <stdlib.h>
#include <string.h>


#define PROF_TOUCH  (8 * 1024)


static void prof_capture_touch(void *mem, size_t size);
static size_t prof_capture_used(const prof_capture_t *c);


prof_capture_t *
prof_capture_create(const prof_capture_conf_t *conf)
{
    char            *p;
    size_t           half;
    prof_capture_t  *c;

    c = calloc(1, sizeof(prof_capture_t));
    if (c == NULL) {
        return NULL;
    }

    half = conf->memory / 2 / 4096 * 4096;

    p = prof_spare_map(2 * half);

    if (p == NULL) {
        free(c);
        return NULL;
    }

    c->memory = p;
    c->memory_size = 2 * half;

    prof_process_hold();

    c->start_realtime = prof_clock(CLOCK_REALTIME);

    prof_tree_init(&c->tree, p, half);
    prof_entries_init(&c->timeline, p + half, half, c->start_realtime);

    /* touches the first pages now, so that the capture has no page faults */

    prof_capture_touch(c->tree.nodes, half);
    prof_capture_touch(c->timeline.entries, half);

    c->mode = conf->mode;
    c->frequency = conf->frequency;
    c->period = 1000000000 / conf->frequency;

    /*
     * A random first offset: turns shorter than the period are sampled in
     * proportion to their length.
     */

    c->rest = 1 + prof_entries_random(&c->timeline) % c->period;

    return c;
}


static void
prof_capture_touch(void *mem, size_t size)
{
    size_t  i;

    for (i = 0; i < size && i < PROF_TOUCH; i += 4096) {
        *((volatile char *) mem + i) = 0;
    }
}


void
prof_capture_destroy(prof_capture_t *c)
{
    prof_capture_end(c);
    prof_capture_free(c);
}


void
prof_capture_end(prof_capture_t *c)
{
    if (c->heap) {
        prof_heap_end(c->heap);
    }
}


void
prof_capture_free(prof_capture_t *c)
{
    prof_process_release();

    if (c->heap) {
        prof_heap_free(c->heap);
    }

    if (c->traces) {
        prof_traces_destroy(c->traces);
    }

    prof_words_free(&c->words);

    /* NULL: the profile of the capture owns the memory */

    if (c->memory) {
        prof_spare_unmap(c->memory, c->memory_size, prof_capture_used(c));
    }

    free(c->beside.waits);
    free(c);
}


size_t
prof_capture_size(const prof_capture_t *c)
{
    return prof_capture_used(c) + (c->heap ? prof_heap_size(c->heap) : 0);
}


static size_t
prof_capture_used(const prof_capture_t *c)
{
    return c->tree.nnodes * sizeof(prof_tree_node_t)
           + c->timeline.n * sizeof(prof_interval_t);
}


int
prof_capture_heap(prof_capture_t *c, prof_sampler_t *s,
    const prof_heap_conf_t *conf, const char **err)
{
    c->heap = prof_heap_create(conf, err);

    if (c->heap == NULL) {
        return PROF_ERROR;
    }

    if (s->turn && s->turn->capture == c) {
        prof_turn_name(s->turn);
        prof_heap_turn(c->heap, &s->turn->outer);
    }

    return PROF_OK;
}


prof_heap_t *
prof_capture_get_heap(prof_capture_t *c)
{
    return c->heap;
}


void
prof_capture_begin(prof_capture_t *c, uint64_t start)
{
    c->counted = start;
    c->start_realtime = prof_clock(CLOCK_REALTIME) + start
                        - prof_clock(CLOCK_MONOTONIC);
}


void
prof_capture_leave_out(prof_capture_t *c, uint64_t ns)
{
    c->counted += ns;
    c->start_realtime += ns;
    c->stats.own_start_ns += ns;
}


void
prof_capture_ran(prof_capture_t *c, uintptr_t frame, uint64_t end,
    uint64_t cpu)
{
    uint32_t  node;
    uint64_t  wall;

    wall = (end > c->counted) ? end - c->counted : 0;
    cpu = (cpu < wall) ? cpu : wall;

    node = prof_tree_frame(&c->tree, PROF_NONE, frame, &c->stats);

    prof_capture_add(c, node, PROF_ENTRY_TURN, wall, cpu);

    c->wall += wall;
    c->running += wall;
    c->cpu += cpu;
    c->counted += wall;
}


void
prof_capture_idle(prof_capture_t *c, uint64_t no_processor, uint64_t blocked)
{
    c->stats.no_processor_ns += no_processor;
    c->stats.blocked_ns += blocked;
}


uintptr_t
prof_capture_script(prof_capture_t *c, const prof_script_t *place)
{
    return prof_script_key(place, &c->stats);
}


uint32_t
prof_capture_coroutine(prof_capture_t *c, const prof_lua_state_t *co,
    uintptr_t *frames, uint32_t max)
{
    return prof_lua_stack(co, frames, max, &c->stats);
}


void
prof_capture_gap(prof_capture_t *c, const uintptr_t *frames, uint32_t n,
    uint64_t until)
{
    prof_capture_wait(c, frames, n, NULL, until);
}


void
prof_capture_wait(prof_capture_t *c, const uintptr_t *frames, uint32_t n,
    const prof_await_t *wait, uint64_t until)
{
    uint32_t  node;
    uint64_t  length;

    if (until == 0) {
        until = prof_clock(CLOCK_MONOTONIC);
    }

    length = until > c->counted ? until - c->counted : 0;

    /* a wait that ended in an earlier gap has no gap of its own */

    if (length == 0 && (wait == NULL || wait->since == 0)) {
        return;
    }

    node = prof_tree_frame(&c->tree, PROF_NONE, PROF_FRAME_WAITING, &c->stats);

    while (n) {
        node = prof_tree_frame(&c->tree, node, frames[--n], &c->stats);
        prof_words_weigh(&c->words, frames[n], length);
    }

    if (wait) {
        prof_beside_add(&c->beside, wait, c->counted, node);
    }

    if (length == 0) {
        return;
    }

    prof_capture_add(c, node, PROF_ENTRY_GAP, length, 0);

    c->wall += length;
    c->counted = until;
}


void
prof_capture_untracked(prof_capture_t *c, uintptr_t frame, uint64_t now)
{
    if (now > c->counted) {
        c->stats.untracked_ns += now - c->counted;
        prof_capture_gap(c, &frame, 1, now);
    }
}


void
prof_capture_resume(prof_capture_t *c)
{
    uint64_t                now;
    const prof_interval_t  *last;

    last = c->timeline.n ? &c->timeline.entries[c->timeline.n - 1] : NULL;

    if (last == NULL || last->type != PROF_ENTRY_GAP) {
        prof_capture_gap(c, NULL, 0, 0);
        return;
    }

    now = prof_clock(CLOCK_MONOTONIC);

    prof_entries_extend(&c->timeline, now - c->counted, 0);

    c->wall += now - c->counted;
    c->counted = now;
}


uint64_t
prof_capture_counted(const prof_capture_t *c)
{
    return c->counted;
}


uint64_t
prof_cpu_now(void)
{
    return prof_clock(CLOCK_THREAD_CPUTIME_ID);
}


void
prof_capture_add(prof_capture_t *c, uint32_t node, uint32_t type,
    uint64_t wall, uint64_t cpu)
{
    if (prof_entries_add(&c->timeline, node, type, wall, cpu, &c->stats)
        == PROF_LIMIT
        && c->period < PROF_PERIOD_MAX / 2)
    {
        c->period *= 2;
        c->stats.slowdowns++;
    }
}


void
prof_capture_totals(const prof_capture_t *c, prof_stats_t *st,
    uint64_t *wall, uint64_t *running, uint64_t *cpu)
{
    if (st) {
        *st = c->stats;
    }

    if (wall) {
        *wall = c->wall;
    }

    if (running) {
        *running = c->running;
    }

    if (cpu) {
        *cpu = c->cpu;
    }
}
