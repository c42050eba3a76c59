
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A sampled thread: its name and its blocked signals (from /proc), its timers,
 * and the memory of its handlers.
 */


#include "capture/prof_process.h"
#include "base/prof_hash.h"
#include "base/prof_spare.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>


/* the CPU clock of a thread (include/linux/posix-timers_types.h) */
#define prof_thread_clock(tid)  ((clockid_t) (~(unsigned) (tid) << 3 | 6))

/* bytes by which a main thread's stack may grow */
#define PROF_STACK_GROWTH  (64 * 1024 * 1024)


static int prof_thread_memory(prof_thread_t *t);
static void prof_thread_status(prof_thread_t *t);
static void prof_thread_ranges(prof_thread_t *t);
static void prof_thread_timers(prof_thread_t *t);
static int prof_thread_create_timers(prof_thread_t *t);
static int prof_thread_publish(prof_thread_t *t);
static void prof_thread_retire(prof_thread_t *t);
static void prof_thread_delete(prof_thread_t *t);


prof_process_t  prof_process;
prof_thread_t   prof_threads[PROF_PROCESS_THREADS];


prof_thread_t *
prof_thread_open(int tid)
{
    int             i;
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

    if (t->memory) {

        /* the memory was kept, since a handler might have used it */

        prof_unwind_release(t->unwind);
        prof_unwind_release(t->before);
        prof_kernel_close(t->kernel);

    } else if (prof_thread_memory(t) != PROF_OK) {
        return NULL;
    }

    prof_unwind_hold(prof_process_unwind());

    t->tid = tid;
    t->main = (tid == (int) syscall(SYS_gettid));
    t->clock = prof_thread_clock(tid);
    t->unwind = prof_process_unwind();
    t->before = NULL;
    t->kernel = prof_kernel_open(tid, prof_signal_number(PROF_SIGNAL_OWN));
    t->cpu = 0;
    t->stale = 0;
    t->due = 0;
    t->idling = 0;
    t->expired = 0;
    t->idle = 0;
    t->idle_cpu = 0;
    t->location = NULL;
    t->traced = 0;
    t->stack.start = 0;
    t->stack.end = 0;
    t->ring.head = 0;
    t->ring.tail = 0;

    memset(t->cache, 0, sizeof(prof_walk_cache_t));
    memset(&t->stats, 0, sizeof(prof_stats_t));
    memset(&t->passed, 0, sizeof(prof_stats_t));

    /* running captures count a new thread from its beginning, at CPU time 0 */

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        memset(&t->last[i], 0, sizeof(prof_last_t));
        t->last[i].node = PROF_NONE;
    }

    if (t->main) {
        prof_process.main = t;
    }

    prof_thread_ranges(t);
    prof_thread_timers(t);

    return t;
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


/* lists the writable mappings of the process, any of which may be a stack */

static void
prof_thread_ranges(prof_thread_t *t)
{
    char           line[512], perm[8];
    FILE          *f;
    unsigned long  start, end;

    t->nranges = 0;

    f = fopen("/proc/self/maps", "re");
    if (f == NULL) {
        return;
    }

    while (t->nranges < PROF_PROCESS_RANGES && fgets(line, sizeof(line), f)) {

        if (sscanf(line, "%lx-%lx %7s", &start, &end, perm) != 3
            || perm[0] != 'r' || perm[1] != 'w')
        {
            continue;
        }

        if (strstr(line, "[stack]")) {
            start -= PROF_STACK_GROWTH;
        }

        t->ranges[t->nranges].start = start;
        t->ranges[t->nranges].end = end;
        t->nranges++;
    }

    (void) fclose(f);
}


/*
 * Reads the thread's name, and chooses a signal that the thread does not
 * block.  A thread with the name of the main thread was not given a name; its
 * name is "thread" then.
 */

static void
prof_thread_status(prof_thread_t *t)
{
    char                path[64], line[256], name[PROF_THREAD_NAME];
    FILE               *f;
    unsigned long long  blocked;

    name[0] = '\0';
    blocked = 0;

    (void) snprintf(path, sizeof(path), "/proc/self/task/%d/status", t->tid);

    f = fopen(path, "re");

    while (f && fgets(line, sizeof(line), f)) {
        (void) sscanf(line, "Name: %15[^\n]", name);
        (void) sscanf(line, "SigBlk: %llx", &blocked);
    }

    if (f) {
        (void) fclose(f);
    }

    t->signal = PROF_SIGNAL_OWN;
    t->deaf = 0;

    if (blocked >> (prof_signal_number(PROF_SIGNAL_OWN) - 1) & 1) {
        t->signal = PROF_SIGNAL_FAULT;
        t->deaf = (blocked >> (SIGFPE - 1) & 1);
    }

    if (t->main) {
        memcpy(prof_process.name, name, PROF_THREAD_NAME);
        (void) strcpy(t->name, "main");

    } else if (strcmp(name, prof_process.name) == 0 || name[0] == '\0') {
        (void) strcpy(t->name, "thread");

    } else {
        memcpy(t->name, name, PROF_THREAD_NAME);
    }
}


static void
prof_thread_timers(prof_thread_t *t)
{
    prof_thread_status(t);

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
prof_thread_renew(prof_thread_t *t)
{
    prof_thread_delete(t);
    prof_thread_timers(t);
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
        prof_process_fold(t);
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
    uint64_t  period, clock, first;

    if (!t->timers) {
        return;
    }

    prof_thread_pace(t, 0, 0);

    t->wait = 0;
    period = prof_process.period;

    t->paced = t->main && prof_process.paced;
    t->period = period;
    t->coarse = (period >= prof_process.tick);

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

    (void) prof_timer_set(t->tick_timer, first,
                             t->coarse ? period : prof_process.tick);
}
