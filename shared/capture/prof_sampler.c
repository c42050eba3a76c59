
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Owns the process's signal handler and, for each sampled thread, a timer.
 * Everything that is installed is counted or remembered, and put back.
 */


#include "capture/prof_sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>


/* glibc before 2.39 has no name for the field (timer_create(2)) */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id  _sigev_un._tid
#endif

/* room for the kernel's frame with all vector registers, and for the walk */
#define PROF_ALTSTACK_SIZE  (64 * 1024)


static int prof_signal_hold(void);
static void prof_signal_release(void);
static int prof_sampler_timer(prof_sampler_t *s);
static int prof_sampler_stack(prof_sampler_t *s, void *mem);


/*
 * The signal: a real-time one that nobody uses.  SIGPROF and SIGALRM have
 * other users (LuaJIT's profiler, gperftools; timers of event loops).
 */

static int               prof_signo;
static int               prof_signal_users;
static struct sigaction  prof_signal_old;


prof_sampler_t *
prof_sampler_create(const char **err)
{
    char            *p;
    size_t           size;
    prof_sampler_t  *s;

    *err = "cannot build the unwind tables";

    if (prof_signal_users == 0 && prof_process_init() != PROF_OK) {
        return NULL;
    }

    *err = "cannot allocate memory";

    s = calloc(1, sizeof(prof_sampler_t));
    if (s == NULL) {
        return NULL;
    }

    /* mapped, so that pages which are never touched cost nothing */

    size = PROF_RING_SIZE + sizeof(prof_walk_cache_t) + PROF_ALTSTACK_SIZE;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        free(s);
        return NULL;
    }

    s->memory = p;
    s->memory_size = size;

    s->unwind = prof_process_unwind();
    s->cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    s->ring.data = p;
    p += PROF_RING_SIZE;
    s->cache = (prof_walk_cache_t *) p;
    p += sizeof(prof_walk_cache_t);

    *err = "sigaltstack() failed";

    if (prof_sampler_stack(s, p) != PROF_OK) {
        goto failed;
    }

    *err = "no free real-time signal";

    if (prof_signal_hold() != PROF_OK) {
        goto failed_stack;
    }

    *err = "timer_create() failed";

    if (prof_sampler_timer(s) != PROF_OK) {
        prof_signal_release();
        goto failed_stack;
    }

    *err = NULL;

    return s;

failed_stack:

    if (s->own_stack) {
        (void) sigaltstack(&s->old_stack, NULL);
    }

failed:

    (void) munmap(s->memory, s->memory_size);
    free(s);

    return NULL;
}


void
prof_sampler_destroy(prof_sampler_t *s)
{
    s->armed = 0;

    (void) timer_delete(s->timer);

    prof_signal_release();

    if (s->own_stack) {
        (void) sigaltstack(&s->old_stack, NULL);
    }

    (void) munmap(s->memory, s->memory_size);
    free(s);
}


static int
prof_sampler_timer(prof_sampler_t *s)
{
    struct sigevent  sev;

    memset(&sev, 0, sizeof(struct sigevent));

    sev.sigev_notify = SIGEV_THREAD_ID;
    sev.sigev_signo = prof_signo;
    sev.sigev_value.sival_ptr = s;
    sev.sigev_notify_thread_id = syscall(SYS_gettid);

    return timer_create(CLOCK_MONOTONIC, &sev, &s->timer) ? PROF_ERROR
                                                          : PROF_OK;
}


/* a stack that the thread already has is kept if it is large enough */

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


static int
prof_signal_hold(void)
{
    int               signo;
    struct sigaction  sa;

    if (prof_signal_users) {
        prof_signal_users++;
        return PROF_OK;
    }

    for (signo = SIGRTMIN; signo <= SIGRTMAX; signo++) {

        if (sigaction(signo, NULL, &prof_signal_old) == 0
            && !(prof_signal_old.sa_flags & SA_SIGINFO)
            && prof_signal_old.sa_handler == SIG_DFL)
        {
            break;
        }
    }

    if (signo > SIGRTMAX) {
        errno = EBUSY;
        return PROF_ERROR;
    }

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_sigaction = prof_handler;
    sa.sa_flags = SA_SIGINFO|SA_RESTART|SA_ONSTACK;
    sigfillset(&sa.sa_mask);

    if (sigaction(signo, &sa, NULL) == -1) {
        return PROF_ERROR;
    }

    prof_signo = signo;
    prof_signal_users = 1;

    return PROF_OK;
}


/*
 * The default action of a real-time signal ends the process, so one that is
 * still pending is consumed before the handler goes.
 */

static void
prof_signal_release(void)
{
    sigset_t         set, old;
    struct timespec  zero;

    if (--prof_signal_users) {
        return;
    }

    sigemptyset(&set);
    sigaddset(&set, prof_signo);

    (void) pthread_sigmask(SIG_BLOCK, &set, &old);

    zero.tv_sec = 0;
    zero.tv_nsec = 0;

    while (sigtimedwait(&set, NULL, &zero) == prof_signo) { /* void */ }

    (void) sigaction(prof_signo, &prof_signal_old, NULL);
    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
}
