
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "capture/prof_process.h"
#include "capture/prof_stuck.h"
#include "stacks/prof_marks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>


struct prof_stuck_s {
    prof_thread_t           thread;
    prof_process_capture_t  slot;
};


prof_stuck_t *
prof_stuck_create(const prof_capture_conf_t *conf, const char **err)
{
    prof_stuck_t    *s;
    prof_capture_t  *c;

    *err = "no memory for the capture";

    c = prof_capture_create(conf);
    if (c == NULL) {
        return NULL;
    }

    s = calloc(1, sizeof(prof_stuck_t));
    if (s == NULL) {
        prof_capture_destroy(c);
        return NULL;
    }

    c->labelled = 1;

    prof_process_entries(&s->slot, c);

    s->slot.alone = 1;
    s->slot.paced = (conf->mode == PROF_MODE_WALL);
    s->slot.start = prof_clock(CLOCK_MONOTONIC);

    *err = "no timer";

    /* the id of the main thread is that of the process */

    if (prof_thread_open_alone(&s->thread, (int) getpid(), c->period,
                               s->slot.paced)
        != PROF_OK)
    {
        prof_capture_destroy(c);
        free(s);
        return NULL;
    }

    return s;
}


void
prof_stuck_drain(prof_stuck_t *s)
{
    prof_marks_t    marks;
    prof_sample_t  *sample;

    memset(&marks, 0, sizeof(prof_marks_t));

    /* objects that were loaded since have no names: only one thread may look */

    prof_marks_add(&marks, s->thread.unwind);

    while ((sample = prof_ring_peek(&s->thread.ring)) != NULL) {

        prof_marks_stack(&marks, sample);
        prof_process_sample(&s->slot, &s->thread, sample);

        prof_ring_pop(&s->thread.ring, sample);
    }
}


prof_profile_t *
prof_stuck_finish(prof_stuck_t *s, const char *title)
{
    uint64_t         end;
    prof_thread_t   *t;
    prof_capture_t  *c;
    prof_profile_t  *p;

    t = &s->thread;
    c = s->slot.capture;

    prof_stuck_drain(s);

    end = prof_clock(CLOCK_MONOTONIC);
    t->cpu = prof_thread_cpu(t);
    c->wall = end - s->slot.start;

    prof_process_tail(&s->slot, t, end);

    c->stats.lost_ring += t->stats.lost_ring;
    c->stats.scanned += t->stats.scanned;
    c->stats.own_handler_ns += t->stats.own_handler_ns;

    prof_thread_close_alone(t);

    p = prof_capture_finish(c, title);

    prof_capture_destroy(c);

    /* a late handler may still use the thread */

    if (prof_thread_quiet(t)) {
        free(s);
    }

    return p;
}
