
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A sampled thread: its name and its blocked signals, its timers, and the
 * memory of its handlers.
 */


#include "capture/prof_process.h"
#include "base/prof_hash.h"
#include "base/prof_spare.h"
#include "stacks/prof_stack.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>


static int prof_thread_memory(prof_thread_t *t);
static void prof_thread_begin(prof_thread_t *t, const prof_found_t *f);
static void prof_thread_status(prof_thread_t *t, const prof_found_t *f);
static void prof_thread_timers(prof_thread_t *t, const prof_found_t *f);
static int prof_thread_create_timers(prof_thread_t *t);
static int prof_thread_publish(prof_thread_t *t);
static void prof_thread_maps(prof_thread_t *t);
static void prof_thread_start(prof_thread_t *t, uint64_t period, int paced,
    uint64_t tick);
static void prof_thread_retire(prof_thread_t *t);
static void prof_thread_delete(prof_thread_t *t);


prof_process_t  prof_process;
prof_thread_t   prof_threads[PROF_PROCESS_THREADS];


prof_thread_t *
prof_thread_open(const prof_found_t *f)
{
    int             i, tid;
    prof_thread_t  *t;

    t = prof_threads;

    for (i = 0; i < PROF_PROCESS_THREADS; i++) {
        t = &prof_threads[i];

        if (t->tid == 0 && prof_thread_quiet(t)) {
            break;
        }
    }

    if (i == PROF_PROCESS_THREADS) {
        return NULL;
    }

    if (prof_process.nthreads <= i) {
        prof_process.nthreads = i + 1;
    }

    if (t->memory) {

        /* the memory was kept, since a handler might have used it */

        prof_unwind_release(t->unwind);
        prof_unwind_release(t->before);
        prof_kernel_close(t->kernel);

    } else if (prof_thread_memory(t) != PROF_OK) {
        return NULL;
    }

    prof_unwind_hold(prof_process_unwind());

    tid = f ? f->tid : (int) syscall(SYS_gettid);

    t->tid = tid;
    t->main = (f == NULL);
    t->clock = prof_thread_clock(tid);
    t->unwind = prof_process_unwind();
    t->before = NULL;
    t->kernel = prof_kernel_open(tid, prof_signal_number(PROF_SIGNAL_OWN),
                                 f ? 0 : PROF_KERNEL_SHORT);
    t->cpu = f ? f->cpu : prof_thread_cpu(t);
    t->stale = 0;
    t->renew = 0;
    t->due = 0;
    t->idling = 0;
    t->expired = 0;
    t->idle = 0;
    t->idle_cpu = 0;
    t->location = NULL;
    t->traced = 0;
    t->ring.head = 0;
    t->ring.tail = 0;

    memset(t->cache, 0, sizeof(prof_walk_cache_t));
    memset(&t->stats, 0, sizeof(prof_stats_t));
    memset(&t->passed, 0, sizeof(prof_stats_t));

    if (t->main) {
        prof_process.main = t;
    }

    prof_thread_begin(t, f);
    prof_thread_timers(t, f);

    return t;
}


/*
 * Sets the CPU time from which running captures count the thread, and its
 * stack.  A thread of the first scan existed before the captures, and its time
 * until this scan is not counted.  A thread of a later scan is new, and is
 * counted from its beginning, unless a capture is younger.
 */

static void
prof_thread_begin(prof_thread_t *t, const prof_found_t *f)
{
    int                 i;
    uint32_t            n;
    uint64_t            now, age;
    prof_area_t         own;
    prof_stack_t        stack;
    const prof_area_t  *ranges;

    now = prof_clock(CLOCK_MONOTONIC);

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        memset(&t->last[i], 0, sizeof(prof_last_t));

        age = prof_process.found ? now - prof_process.slots[i].start : 0;

        t->last[i].cpu = t->cpu > age ? t->cpu - age : 0;
        t->last[i].node = PROF_NONE;
        t->first[i] = t->last[i].cpu;
    }

    if (f) {
        t->stack.start = 0;
        t->stack.end = 0;

        prof_process_scanned(&ranges, &n);
        prof_thread_ranges(t, ranges, n);

        return;
    }

    prof_stack_find(&stack);

    own.start = stack.low;
    own.end = stack.high;

    t->stack = own;

    prof_thread_ranges(t, &own, 1);
}


static int
prof_thread_memory(prof_thread_t *t)
{
    char    *p;
    size_t   size;

    /* mapped, so that pages which are never touched take no memory */

    size = PROF_RING_SIZE + sizeof(prof_walk_cache_t)
           + PROF_PROCESS_RANGES * sizeof(prof_area_t);

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        return PROF_ERROR;
    }

    t->memory = p;
    t->memory_size = size;

    t->ring.data = p;
    p += PROF_RING_SIZE;
    t->cache = (prof_walk_cache_t *) p;
    p += sizeof(prof_walk_cache_t);
    t->ranges = (prof_area_t *) p;

    return PROF_OK;
}


void
prof_thread_ranges(prof_thread_t *t, const prof_area_t *ranges, uint32_t n)
{
    /* the handler of the main thread may interrupt this */

    t->nranges = 0;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    memcpy(t->ranges, ranges, n * sizeof(prof_area_t));

    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    t->nranges = n;
}


/*
 * Sets the thread's name, and chooses a signal that the thread does not block.
 * A thread with the name of the main thread was not given a name; its name is
 * "thread" then.
 */

static void
prof_thread_status(prof_thread_t *t, const prof_found_t *f)
{
    int       own, fault;
    sigset_t  set;

    if (t->main) {
        (void) sigemptyset(&set);
        (void) pthread_sigmask(SIG_BLOCK, NULL, &set);

        own = sigismember(&set, prof_signal_number(PROF_SIGNAL_OWN)) == 1;
        fault = sigismember(&set, SIGFPE) == 1;

        memset(prof_process.name, 0, PROF_THREAD_NAME);
        (void) prctl(PR_GET_NAME, prof_process.name, 0, 0, 0);
        (void) strcpy(t->name, "main");

    } else {
        own = f->blocked >> (prof_signal_number(PROF_SIGNAL_OWN) - 1) & 1;
        fault = f->blocked >> (SIGFPE - 1) & 1;

        if (strcmp(f->name, prof_process.name) == 0 || f->name[0] == '\0') {
            (void) strcpy(t->name, "thread");

        } else {
            memcpy(t->name, f->name, PROF_THREAD_NAME);
        }
    }

    t->signal = own ? PROF_SIGNAL_FAULT : PROF_SIGNAL_OWN;
    t->deaf = own && fault;
}


static void
prof_thread_timers(prof_thread_t *t, const prof_found_t *f)
{
    prof_thread_status(t, f);

    if (t->deaf) {
        return;
    }

    t->running = 0;
    t->paced = 0;

    /* a late signal would end the process, so SIGFPE stays handled */

    if (t->signal == PROF_SIGNAL_FAULT && !prof_process.fault) {

        if (prof_signal_hold(PROF_SIGNAL_FAULT) != PROF_OK) {
            return;
        }

        prof_process.fault = 1;
    }

    if (prof_thread_publish(t) != PROF_OK) {
        return;
    }

    if (prof_thread_create_timers(t) != PROF_OK) {
        prof_thread_retire(t);
        return;
    }

    t->timers = 1;

    prof_thread_set(t);
}


static int
prof_thread_publish(prof_thread_t *t)
{
    t->tick = prof_expiry_publish(t->tid, prof_thread_ticked, t);

    if (t->tick == NULL) {
        return PROF_ERROR;
    }

    t->fine = prof_expiry_publish(t->tid, prof_thread_expired, t);

    if (t->fine == NULL) {
        prof_expiry_retire(t->tick);
        return PROF_ERROR;
    }

    return PROF_OK;
}


static void
prof_thread_retire(prof_thread_t *t)
{
    prof_expiry_retire(t->tick);
    prof_expiry_retire(t->fine);
}


int
prof_thread_quiet(const prof_thread_t *t)
{
    return (t->tick == NULL || prof_expiry_quiet(t->tick))
           && (t->fine == NULL || prof_expiry_quiet(t->fine));
}


static int
prof_thread_create_timers(prof_thread_t *t)
{
    int  i;

    if (prof_signal_timer(t->signal, t->clock, t->tick, &t->tick_timer)
        != PROF_OK)
    {
        return PROF_ERROR;
    }

    for (i = 0; i < PROF_FINE_TIMERS; i++) {

        if (prof_signal_timer(t->signal, CLOCK_MONOTONIC, t->fine,
                              &t->fine_timers[i])
            == PROF_OK)
        {
            continue;
        }

        while (i > 0) {
            (void) timer_delete(t->fine_timers[--i]);
        }

        (void) timer_delete(t->tick_timer);

        return PROF_ERROR;
    }

    return PROF_OK;
}


void
prof_thread_renew(prof_thread_t *t, const prof_found_t *f)
{
    prof_thread_delete(t);
    prof_thread_timers(t, f);
}


static void
prof_thread_delete(prof_thread_t *t)
{
    int  i;

    if (!t->timers) {
        return;
    }

    (void) timer_delete(t->tick_timer);

    for (i = 0; i < PROF_FINE_TIMERS; i++) {
        (void) timer_delete(t->fine_timers[i]);
    }

    t->timers = 0;

    prof_thread_retire(t);
}


/*
 * Memory that a handler may still use is not unmapped.  It remains in the
 * entry of the table for the next thread.
 */

void
prof_thread_close(prof_thread_t *t)
{
    int  i;

    prof_thread_delete(t);

    if (prof_process.ncaptures) {
        prof_process_fold(t, 1);
    }

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {

        if (prof_process.slots[i].capture) {
            prof_process_tail(&prof_process.slots[i], t,
                              prof_clock(CLOCK_MONOTONIC));
        }
    }

    t->tid = 0;

    if (t->main) {
        prof_process.main = NULL;
    }

    if (prof_thread_quiet(t)) {
        prof_unwind_release(t->unwind);
        prof_unwind_release(t->before);
        prof_kernel_close(t->kernel);
        prof_spare_leave(t->memory, t->memory_size, SIZE_MAX);
        t->memory = NULL;
    }
}


uint64_t
prof_thread_cpu(const prof_thread_t *t)
{
    struct timespec  ts;

    if (clock_gettime(t->clock, &ts) == -1) {
        return t->cpu;
    }

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


void
prof_thread_set(prof_thread_t *t)
{
    if (t->timers) {
        prof_thread_start(t, prof_process.period,
                          t->main && prof_process.paced, prof_process.tick);
    }
}


static void
prof_thread_start(prof_thread_t *t, uint64_t period, int paced, uint64_t tick)
{
    uint64_t  clock, first;

    prof_thread_pace(t, 0, 0);

    t->wait = 0;

    t->paced = paced;
    t->period = period;
    t->coarse = (period >= tick);

    clock = t->paced ? prof_clock(CLOCK_MONOTONIC) - t->idle
                     : prof_thread_cpu(t) - t->idle_cpu;

    /* the first time is random, so that short work is sampled in proportion */

    first = 1 + prof_hash(prof_clock(CLOCK_MONOTONIC)) % period;

    t->due = clock + first;

    t->running = 0;

    if (t->paced) {
        (void) prof_timer_set(t->tick_timer, 0, 0);
        prof_thread_pace(t, first, period);
        return;
    }

    (void) prof_timer_set(t->tick_timer, first, t->coarse ? period : tick);
}


int
prof_thread_open_alone(prof_thread_t *t, int tid, uint64_t period, int paced)
{
    struct timespec  ts;

    if (prof_thread_memory(t) != PROF_OK) {
        return PROF_ERROR;
    }

    t->unwind = prof_process_unwind_take();

    if (t->unwind == NULL || prof_signal_hold(PROF_SIGNAL_OWN) != PROF_OK) {
        goto failed;
    }

    t->tid = tid;
    t->main = 1;
    t->clock = prof_thread_clock(tid);
    t->signal = PROF_SIGNAL_OWN;
    (void) strcpy(t->name, "main");

    t->last[0].node = PROF_NONE;
    t->last[0].cpu = prof_thread_cpu(t);
    t->last[0].busy = prof_clock(CLOCK_MONOTONIC);

    prof_thread_maps(t);

    if (prof_thread_publish(t) != PROF_OK) {
        prof_signal_release(PROF_SIGNAL_OWN);
        goto failed;
    }

    if (prof_thread_create_timers(t) != PROF_OK) {
        prof_thread_retire(t);
        prof_signal_release(PROF_SIGNAL_OWN);
        goto failed;
    }

    t->timers = 1;

    (void) clock_getres(CLOCK_MONOTONIC_COARSE, &ts);

    prof_thread_start(t, period, paced, ts.tv_nsec);

    return PROF_OK;

failed:

    prof_unwind_release(t->unwind);
    prof_spare_leave(t->memory, t->memory_size, SIZE_MAX);

    return PROF_ERROR;
}


/* lists the writable mappings of the process, any of which may be a stack */

static void
prof_thread_maps(prof_thread_t *t)
{
    char           line[512], perm[8];
    FILE          *f;
    unsigned long  start, end;

    f = fopen("/proc/self/maps", "re");
    if (f == NULL) {
        return;
    }

    while (t->nranges < PROF_PROCESS_RANGES && fgets(line, sizeof(line), f)) {

        if (sscanf(line, "%lx-%lx %7s", &start, &end, perm) == 3
            && perm[0] == 'r' && perm[1] == 'w')
        {
            if (strstr(line, "[stack]")) {
                start -= PROF_STACK_GROWTH;
            }

            t->ranges[t->nranges].start = start;
            t->ranges[t->nranges].end = end;
            t->nranges++;
        }
    }

    (void) fclose(f);
}


/* if a handler still uses the memory, the memory is not freed */

void
prof_thread_close_alone(prof_thread_t *t)
{
    prof_thread_delete(t);
    prof_signal_release(PROF_SIGNAL_OWN);

    if (prof_thread_quiet(t)) {
        prof_unwind_release(t->unwind);
        prof_spare_leave(t->memory, t->memory_size, SIZE_MAX);
    }
}
