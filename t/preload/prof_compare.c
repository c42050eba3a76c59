
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into a server, this library compares the unwinder with glibc's
 * backtrace() on samples of each child process at random times.  When the
 * child exits, it writes the result to the file that PROF_COMPARE names:
 *
 *     samples N scanned N equal N complete N frames N
 *
 * The first stacks that differ follow.  "scanned" stacks went through code
 * without unwind information, or through an object that was loaded after the
 * tables were built.  They are not compared, because backtrace() ends there or
 * has other information.
 */


#include "prof.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id  _sigev_un._tid
#endif


#define COMPARE_PERIOD_NS  60000
#define COMPARE_SHOWN      5


typedef struct {
    uintptr_t  ours[PROF_MAX_DEPTH];
    void      *theirs[PROF_MAX_DEPTH];
    uint32_t   nours;
    int        ntheirs;
    int        skip;
} compare_stack_t;


static void compare_start(void) __attribute__((constructor));
static void compare_child(void);
static void compare_end(void);
static void compare_arm(void);
static void compare_handler(int signo, siginfo_t *si, void *ctx);
static uintptr_t compare_stack_end(void);


static char               compare_file[256];
static pid_t              compare_pid;
static timer_t            compare_timer;
static uintptr_t          compare_top;
static uint64_t           compare_random;
static prof_stats_t       compare_stats;
static prof_walk_cache_t  compare_cache;

static uint64_t           compare_samples;
static uint64_t           compare_scanned;
static uint64_t           compare_equal;
static uint64_t           compare_complete;
static uint64_t           compare_frames;
static uint32_t           compare_nshown;
static compare_stack_t    compare_shown[COMPARE_SHOWN];
static compare_stack_t    compare_now;


static void
compare_start(void)
{
    const char  *file;

    file = getenv("PROF_COMPARE");

    if (file && strlen(file) < sizeof(compare_file)) {
        strcpy(compare_file, file);
        pthread_atfork(NULL, NULL, compare_child);
        atexit(compare_end);
    }
}


static void
compare_child(void)
{
    void             *pc[4];
    struct sigevent   sev;
    struct sigaction  sa;

    /* the first call loads libgcc */

    (void) backtrace(pc, 4);

    if (prof_process_init() != PROF_OK) {
        return;
    }

    compare_pid = getpid();
    compare_random = compare_pid;
    compare_top = compare_stack_end();

    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = compare_handler;
    sa.sa_flags = SA_SIGINFO|SA_RESTART;
    sigaction(SIGRTMAX - 3, &sa, NULL);

    memset(&sev, 0, sizeof(sev));
    sev.sigev_notify = SIGEV_THREAD_ID;
    sev.sigev_signo = SIGRTMAX - 3;
    sev.sigev_notify_thread_id = syscall(SYS_gettid);

    if (timer_create(CLOCK_MONOTONIC, &sev, &compare_timer) == 0) {
        compare_arm();
    }
}


static void
compare_arm(void)
{
    struct itimerspec  it;

    compare_random = compare_random * 6364136223846793005 + 1442695040888963407;

    memset(&it, 0, sizeof(it));
    it.it_value.tv_nsec = 1000
                          + (compare_random >> 33) % (2 * COMPARE_PERIOD_NS);

    timer_settime(compare_timer, 0, &it, NULL);
}


static void
compare_handler(int signo, siginfo_t *si, void *ctx)
{
    int               i, err;
    uint32_t          end;
    uint64_t          scanned;
    ucontext_t       *uc;
    compare_stack_t  *c;

    err = errno;
    uc = ctx;
    c = &compare_now;

    scanned = compare_stats.scanned;

    c->nours = prof_walk(prof_process_unwind(), &compare_cache, uc,
                         compare_top, c->ours, PROF_MAX_DEPTH,
                         &compare_stats, &end);

    compare_samples++;
    compare_frames += c->nours;

    if (end == 0) {
        compare_complete++;
    }

    /* backtrace() reads any address in such a stack, and may crash */

    if (compare_stats.scanned != scanned) {
        compare_scanned++;
        goto done;
    }

    c->ntheirs = backtrace(c->theirs, PROF_MAX_DEPTH);

    /* glibc's stack begins with the handler and the kernel's trampoline */

    for (i = 0; i < c->ntheirs; i++) {
        if ((uintptr_t) c->theirs[i] == c->ours[0]) {
            break;
        }
    }

    c->skip = i;

    if (c->ntheirs - i == (int) c->nours
        && memcmp(c->ours, c->theirs + i, c->nours * sizeof(uintptr_t)) == 0)
    {
        compare_equal++;

    } else if (compare_nshown < COMPARE_SHOWN) {
        compare_shown[compare_nshown++] = *c;
    }

done:

    compare_arm();

    errno = err;
}


static void
compare_end(void)
{
    int       n;
    FILE     *f;
    uint32_t  i;

    if (getpid() != compare_pid) {
        return;
    }

    signal(SIGRTMAX - 3, SIG_IGN);
    timer_delete(compare_timer);

    f = fopen(compare_file, "a");
    if (f == NULL) {
        return;
    }

    fprintf(f, "samples %lu scanned %lu equal %lu complete %lu frames %lu\n",
            (unsigned long) compare_samples, (unsigned long) compare_scanned,
            (unsigned long) compare_equal, (unsigned long) compare_complete,
            (unsigned long) compare_frames);

    for (i = 0; i < compare_nshown; i++) {

        fprintf(f, "ours:");
        for (n = 0; n < (int) compare_shown[i].nours; n++) {
            fprintf(f, " %lx", (unsigned long) compare_shown[i].ours[n]);
        }

        fprintf(f, "\ntheirs:");
        for (n = compare_shown[i].skip; n < compare_shown[i].ntheirs; n++) {
            fprintf(f, " %lx", (unsigned long) compare_shown[i].theirs[n]);
        }

        fprintf(f, "\n");
    }

    fclose(f);
}


static uintptr_t
compare_stack_end(void)
{
    FILE           *f;
    char            line[512];
    unsigned long   end, from, to;

    end = 0;
    f = fopen("/proc/self/maps", "r");

    while (f && fgets(line, sizeof(line), f)) {
        if (strstr(line, "[stack]")
            && sscanf(line, "%lx-%lx", &from, &to) == 2)
        {
            end = to;
        }
    }

    if (f) {
        fclose(f);
    }

    return end;
}
