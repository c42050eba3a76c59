
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Makes the sampler of a thread, and restores the thread afterwards.
 */


#include "base/prof_spare.h"
#include "capture/prof_sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>


/* enough for the kernel's frame with all vector registers, and for the walk */
#define PROF_ALTSTACK_SIZE  (64 * 1024)


static int prof_sampler_stack(prof_sampler_t *s, void *mem);
static int prof_sampler_timers(prof_sampler_t *s, const char **err);
static void prof_sampler_free(prof_sampler_t *s);


prof_sampler_t *
prof_sampler_create(const char **err)
{
    char            *p;
    size_t           size;
    prof_sampler_t  *s;

    *err = "cannot build the unwind tables";

    if (prof_process_refresh() == NULL) {
        return NULL;
    }

    *err = "cannot allocate memory";

    s = calloc(1, sizeof(prof_sampler_t));
    if (s == NULL) {
        return NULL;
    }

    size = PROF_RING_SIZE + sizeof(prof_walk_cache_t) + PROF_ALTSTACK_SIZE;

    p = prof_spare_map(size);

    if (p == NULL) {
        free(s);
        return NULL;
    }

    s->memory = p;
    s->memory_size = size;

    s->walker.unwind = prof_process_unwind();
    prof_unwind_hold(s->walker.unwind);

    prof_stack_find(&s->stack);

    s->cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    s->ring.data = p;
    p += PROF_RING_SIZE;
    s->walker.cache = (prof_walk_cache_t *) p;
    s->walker.cache->snapshot = 0;
    p += sizeof(prof_walk_cache_t);

    *err = "sigaltstack() failed";

    if (prof_sampler_stack(s, p) != PROF_OK) {
        goto failed;
    }

    *err = "no free real-time signal";

    if (prof_signal_hold(PROF_SIGNAL_OWN) != PROF_OK) {
        goto failed;
    }

    s->walker.kernel = prof_kernel_open((int) syscall(SYS_gettid),
                                        prof_signal_number(PROF_SIGNAL_OWN),
                                        PROF_KERNEL_SHORT);

    if (prof_sampler_timers(s, err) != PROF_OK) {
        prof_signal_release(PROF_SIGNAL_OWN);
        goto failed;
    }

    *err = NULL;

    return s;

failed:

    prof_sampler_free(s);

    return NULL;
}


static int
prof_sampler_timers(prof_sampler_t *s, const char **err)
{
    int  tid;

    *err = "no entry for a timer's signal";

    tid = (int) syscall(SYS_gettid);

    s->expiry = prof_expiry_publish(tid, prof_sampler_expired, s);

    if (s->expiry == NULL) {
        return PROF_ERROR;
    }

    s->woken = prof_expiry_publish(tid, prof_sampler_woken, s);

    if (s->woken == NULL) {
        goto failed;
    }

    *err = "timer_create() failed";

    if (prof_signal_timer(PROF_SIGNAL_OWN, CLOCK_MONOTONIC, s->expiry,
                          &s->timer)
        != PROF_OK)
    {
        goto failed_woken;
    }

    if (prof_signal_timer(PROF_SIGNAL_OWN, s->cpu_clock, s->woken,
                          &s->cpu_timer)
        == PROF_OK)
    {
        return PROF_OK;
    }

    (void) timer_delete(s->timer);

failed_woken:

    prof_expiry_retire(s->woken);

failed:

    prof_expiry_retire(s->expiry);

    return PROF_ERROR;
}


void
prof_sampler_destroy(prof_sampler_t *s)
{
    s->armed = 0;

    (void) timer_delete(s->timer);
    (void) timer_delete(s->cpu_timer);

    prof_expiry_retire(s->expiry);
    prof_expiry_retire(s->woken);
    prof_signal_release(PROF_SIGNAL_OWN);

    prof_sampler_free(s);
}


/*
 * Frees the sampler.  If the alternate stack cannot be restored, the memory is
 * not freed, because the kernel would still use the stack.
 */

static void
prof_sampler_free(prof_sampler_t *s)
{
    prof_unwind_release(s->walker.unwind);
    prof_kernel_close(s->walker.kernel);

    if (!s->own_stack || sigaltstack(&s->old_stack, NULL) == 0) {
        prof_spare_leave(s->memory, s->memory_size, s->ring.head);
    }

    free(s);
}


/* sets an alternate stack, unless the thread has one that is large enough */

static int
prof_sampler_stack(prof_sampler_t *s, void *mem)
{
    stack_t  ss;

    if (sigaltstack(NULL, &s->old_stack) == -1) {
        return PROF_ERROR;
    }

    if (!(s->old_stack.ss_flags & SS_DISABLE)
        && s->old_stack.ss_size >= PROF_ALTSTACK_SIZE / 2)
    {
        return PROF_OK;
    }

    memset(&ss, 0, sizeof(stack_t));
    ss.ss_sp = mem;
    ss.ss_size = PROF_ALTSTACK_SIZE;

    if (sigaltstack(&ss, NULL) == -1) {
        return PROF_ERROR;
    }

    s->own_stack = 1;

    return PROF_OK;
}
