
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the threads of the process in /proc.  A thread of its own reads /proc,
 * which takes milliseconds if there are many threads, and may hang.  It writes
 * one result at a time.  The main thread takes the result when it next drains
 * the rings, and opens a few threads at a time, since each needs timers and
 * memory.
 *
 * The result belongs to the scanner while "busy" is set, and to the main thread
 * otherwise.
 */


#include "capture/prof_process.h"
#include "heap/prof_heap_state.h"
#include "stacks/prof_stack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>


/* at least one in this number of scans reads the directory */
#define PROF_SCAN_ALL     10

/* threads that are opened at a time; each takes about 15 us */
#define PROF_SCAN_OPENS   4

/* bytes of the scanner's stack, and of its reads */
#define PROF_SCAN_STACK   (128 * 1024)
#define PROF_SCAN_READ    4096

/* the longest time between two looks for the first result, in ms */
#define PROF_SCAN_WAIT    100


typedef struct {
    sem_t         asked;
    int           started;
    int           busy;      /* atomic */
    int           all;       /* the next scan reads the directory */
    int           fresh;     /* the result is not taken yet */
    uint32_t      next;      /* of the found threads, to be opened */
    uint64_t      since;     /* of the first question of these captures */
    uint32_t      scans;
    uint32_t      n;
    uint32_t      nranges;
    prof_found_t  found[PROF_PROCESS_THREADS];
    prof_area_t   ranges[PROF_PROCESS_RANGES];
} prof_scan_t;


static void prof_scan_ask(void);
static int prof_scan_create(void);
static void *prof_scan_cycle(void *data);
static int prof_scan_changed(void);
static void prof_scan_threads(void);
static ssize_t prof_scan_file(const char *path, char *buf, size_t size);
static void prof_scan_status(prof_found_t *f);
static void prof_scan_ranges(void);
static void prof_scan_take(void);
static void prof_scan_compare(void);
static void prof_scan_unseen(void);
static prof_thread_t *prof_thread_find(int tid);


static prof_scan_t  prof_scan;


void
prof_process_scan(void)
{
    int             i;
    uint64_t        cpu;
    prof_thread_t  *t;

    if (!__atomic_load_n(&prof_scan.busy, __ATOMIC_ACQUIRE)) {

        if (prof_scan.fresh) {
            prof_scan_take();
        }

        if (!prof_scan.fresh) {
            prof_scan_ask();
        }
    }

    for (i = 0; i < prof_process.nthreads; i++) {
        t = &prof_threads[i];

        if (t->tid == 0) {
            continue;
        }

        prof_kernel_ready(t->kernel);

        cpu = prof_thread_cpu(t);
        t->stale += cpu > t->cpu ? cpu - t->cpu : 0;
        t->cpu = cpu > t->cpu ? cpu : t->cpu;

        /* the thread may have blocked the signal since */

        if (t->stale > 4 * (prof_process.period + prof_process.tick)) {
            t->stale = 0;

            if (t->main) {
                prof_thread_renew(t, NULL);

            } else {
                t->renew = 1;
                prof_process.rescan = 1;
            }
        }
    }
}


uint32_t
prof_process_pending(void)
{
    uint64_t  ms;

    if (prof_process.ncaptures == 0) {
        return prof_process.closing;
    }

    if (prof_process.found) {
        return (!__atomic_load_n(&prof_scan.busy, __ATOMIC_ACQUIRE)
                && prof_scan.fresh && prof_scan.next);
    }

    ms = (prof_clock(CLOCK_MONOTONIC) - prof_scan.since) / 1000000;

    return ms < PROF_SCAN_WAIT ? 1 + (uint32_t) ms / 2 : PROF_SCAN_WAIT;
}


/* the result of an earlier capture is not taken: threads may have ended */

void
prof_process_scan_begin(void)
{
    prof_scan.since = prof_clock(CLOCK_MONOTONIC);
    prof_process.rescan = 1;

    if (!__atomic_load_n(&prof_scan.busy, __ATOMIC_ACQUIRE)) {
        prof_scan.fresh = 0;
        prof_scan.next = 0;
    }
}


static void
prof_scan_ask(void)
{
    if (!prof_scan.started && prof_scan_create() != PROF_OK) {
        return;
    }

    prof_scan.all = prof_process.rescan;
    prof_process.rescan = 0;

    __atomic_store_n(&prof_scan.busy, 1, __ATOMIC_RELEASE);

    (void) sem_post(&prof_scan.asked);
}


/* the thread remains, and waits, when no capture runs */

static int
prof_scan_create(void)
{
    int             rc;
    sigset_t        all, old;
    pthread_t       thread;
    pthread_attr_t  attr;

    if (pthread_attr_init(&attr) != 0) {
        return PROF_ERROR;
    }

    (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void) pthread_attr_setstacksize(&attr, PROF_SCAN_STACK);
    (void) sem_init(&prof_scan.asked, 0, 0);

    /* the main thread receives all signals, as its handlers expect */

    (void) sigfillset(&all);
    (void) sigprocmask(SIG_BLOCK, &all, &old);

    rc = pthread_create(&thread, &attr, prof_scan_cycle, NULL);

    (void) sigprocmask(SIG_SETMASK, &old, NULL);
    (void) pthread_attr_destroy(&attr);

    prof_scan.started = (rc == 0);

    return rc == 0 ? PROF_OK : PROF_ERROR;
}


static void *
prof_scan_cycle(void *data)
{
    prof_heap_mute();

    (void) prctl(PR_SET_NAME, "profile", 0, 0, 0);

    for ( ;; ) {

        if (sem_wait(&prof_scan.asked) == -1) {
            continue;
        }

        if (prof_scan_changed()) {
            prof_scan_threads();
            prof_scan_ranges();

            prof_scan.fresh = 1;
            prof_scan.next = 0;
        }

        __atomic_store_n(&prof_scan.busy, 0, __ATOMIC_RELEASE);
    }

    return data;
}


/*
 * The directory has one link for each thread, and two more.  Some scans read
 * it even if the number of links is unchanged, since a new thread may have
 * replaced another one.
 */

static int
prof_scan_changed(void)
{
    struct stat  st;

    return prof_scan.scans++ % PROF_SCAN_ALL == 0 || prof_scan.all
           || stat("/proc/self/task", &st) == -1
           || st.st_nlink != prof_scan.n + 2;
}


static void
prof_scan_threads(void)
{
    int             tid;
    DIR            *dir;
    struct dirent  *de;

    prof_scan.n = 0;

    dir = opendir("/proc/self/task");
    if (dir == NULL) {
        return;
    }

    for (de = readdir(dir);
         de && prof_scan.n < PROF_PROCESS_THREADS;
         de = readdir(dir))
    {
        tid = atoi(de->d_name);

        if (tid > 0) {
            prof_scan.found[prof_scan.n].tid = tid;
            prof_scan_status(&prof_scan.found[prof_scan.n++]);
        }
    }

    (void) closedir(dir);
}


/* reads the beginning of a file, as a string */

static ssize_t
prof_scan_file(const char *path, char *buf, size_t size)
{
    int      fd;
    ssize_t  n;

    fd = open(path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return -1;
    }

    n = read(fd, buf, size - 1);

    (void) close(fd);

    buf[n > 0 ? n : 0] = '\0';

    return n;
}


static void
prof_scan_status(prof_found_t *f)
{
    char                path[64], buf[PROF_SCAN_READ];
    const char         *p;
    unsigned long long  blocked;

    f->name[0] = '\0';
    f->blocked = 0;

    (void) snprintf(path, sizeof(path), "/proc/self/task/%d/status", f->tid);

    if (prof_scan_file(path, buf, sizeof(buf)) <= 0) {
        return;
    }

    (void) sscanf(buf, "Name: %15[^\n]", f->name);

    p = strstr(buf, "\nSigBlk:");

    if (p && sscanf(p, "\nSigBlk: %llx", &blocked) == 1) {
        f->blocked = blocked;
    }
}


/* lists the writable mappings of the process, any of which may be a stack */

static void
prof_scan_ranges(void)
{
    char           line[512], perm[8];
    FILE          *f;
    prof_area_t   *range;
    unsigned long  start, end;

    prof_scan.nranges = 0;

    f = fopen("/proc/self/maps", "re");
    if (f == NULL) {
        return;
    }

    while (prof_scan.nranges < PROF_PROCESS_RANGES
           && fgets(line, sizeof(line), f))
    {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, perm) != 3
            || perm[0] != 'r' || perm[1] != 'w')
        {
            continue;
        }

        if (strstr(line, "[stack]")) {
            start -= PROF_STACK_GROWTH;
        }

        range = &prof_scan.ranges[prof_scan.nranges++];
        range->start = start;
        range->end = end;
    }

    (void) fclose(f);
}


static void
prof_scan_take(void)
{
    uint32_t       opened;
    prof_found_t  *f;

    if (prof_scan.next == 0) {
        prof_scan_compare();
    }

    for (opened = 0;
         prof_scan.next < prof_scan.n && opened < PROF_SCAN_OPENS;
         prof_scan.next++)
    {
        f = &prof_scan.found[prof_scan.next];

        if (prof_thread_find(f->tid) == NULL) {
            (void) prof_thread_open(f);
            opened++;
        }
    }

    if (prof_scan.next < prof_scan.n) {
        return;
    }

    prof_scan.fresh = 0;

    if (!prof_process.found) {
        prof_process.found = 1;
        prof_scan_unseen();
    }
}


/* closes the threads that have ended, and updates the others */

static void
prof_scan_compare(void)
{
    int             k;
    uint32_t        i;
    prof_found_t   *f;
    prof_thread_t  *t;

    for (i = 0; i < prof_scan.n; i++) {
        f = &prof_scan.found[i];
        f->cpu = prof_clock(prof_thread_clock(f->tid));

        t = prof_thread_find(f->tid);

        /* the CPU time has decreased, so another thread has the number now */

        if (t && f->cpu < t->cpu) {
            prof_thread_close(t);
            t = NULL;
        }

        if (t == NULL) {
            continue;
        }

        t->seen = 1;

        if (t->renew) {
            t->renew = 0;
            prof_thread_renew(t, f);
        }
    }

    for (k = 0; k < prof_process.nthreads; k++) {
        t = &prof_threads[k];

        if (t->tid && !t->main && !t->seen) {
            prof_thread_close(t);
        }

        t->seen = 0;
    }

    t = prof_process.main;

    if (t && t->nranges <= 1) {
        prof_thread_ranges(t, prof_scan.ranges, prof_scan.nranges);
    }
}


void
prof_process_scanned(const prof_area_t **ranges, uint32_t *n)
{
    *ranges = prof_scan.ranges;
    *n = prof_scan.nranges;
}


/*
 * Shows the CPU time that threads used between the beginning of a capture and
 * the first result.
 */

static void
prof_scan_unseen(void)
{
    int                      i, k;
    uint64_t                 used, seen;
    prof_process_capture_t  *slot;

    used = prof_clock(CLOCK_PROCESS_CPUTIME_ID);

    for (i = 0; i < PROF_PROCESS_CAPTURES; i++) {
        slot = &prof_process.slots[i];

        if (slot->capture == NULL) {
            continue;
        }

        seen = 0;

        for (k = 0; k < prof_process.nthreads; k++) {

            if (prof_threads[k].tid) {
                seen += prof_thread_cpu(&prof_threads[k])
                        - prof_threads[k].first[i];
            }
        }

        if (used > slot->start_cpu + seen + PROF_PROCESS_UNSEEN) {
            prof_process_named(slot, PROF_TYPE_NOTE, PROF_PROCESS_NOT_FOUND,
                               PROF_ENTRY_TURN, PROF_NONE,
                               used - slot->start_cpu - seen,
                               used - slot->start_cpu - seen);
        }
    }
}


static prof_thread_t *
prof_thread_find(int tid)
{
    int  i;

    for (i = 0; i < prof_process.nthreads; i++) {
        if (prof_threads[i].tid == tid) {
            return &prof_threads[i];
        }
    }

    return NULL;
}
