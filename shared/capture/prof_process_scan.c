
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the threads of the process in the directory of tasks in /proc.
 */


#include "capture/prof_process.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>


/* at least one in this number of scans reads the directory */
#define PROF_PROCESS_SCANS  10


static int prof_process_changed(void);
static void prof_process_read(void);
static prof_thread_t *prof_thread_find(int tid);


void
prof_process_scan(void)
{
    int             i;
    uint64_t        cpu;
    prof_thread_t  *t;

    if (prof_process_changed()) {
        prof_process_read();
    }

    for (i = 0; i < PROF_PROCESS_THREADS; i++) {
        t = &prof_threads[i];

        if (t->tid == 0) {
            continue;
        }

        cpu = prof_thread_cpu(t);
        t->stale += cpu > t->cpu ? cpu - t->cpu : 0;
        t->cpu = cpu > t->cpu ? cpu : t->cpu;

        /* the thread may have blocked the signal since */

        if (t->stale > 4 * (prof_process.period + prof_process.tick)) {
            t->stale = 0;
            prof_thread_renew(t);
        }
    }
}


/*
 * The directory has one link for each thread, and two more.  Some scans read
 * it even if the number of links is unchanged, since a new thread may have
 * replaced another one.
 */

static int
prof_process_changed(void)
{
    int          i;
    nlink_t      n;
    struct stat  st;

    if (prof_process.scans++ % PROF_PROCESS_SCANS == 0
        || stat("/proc/self/task", &st) == -1)
    {
        return 1;
    }

    n = 2;

    for (i = 0; i < PROF_PROCESS_THREADS; i++) {
        n += (prof_threads[i].tid != 0);
    }

    return st.st_nlink != n;
}


static void
prof_process_read(void)
{
    int             i, tid;
    DIR            *dir;
    prof_thread_t  *t;
    struct dirent  *de;

    dir = opendir("/proc/self/task");
    if (dir == NULL) {
        return;
    }

    for (de = readdir(dir); de; de = readdir(dir)) {
        tid = atoi(de->d_name);

        if (tid <= 0) {
            continue;
        }

        t = prof_thread_find(tid);

        /* the CPU time has decreased, so another thread has the number now */

        if (t && prof_thread_cpu(t) < t->cpu) {
            prof_thread_close(t);
            t = NULL;
        }

        if (t == NULL) {
            t = prof_thread_open(tid);
        }

        if (t) {
            t->seen = 1;
        }
    }

    (void) closedir(dir);

    for (i = 0; i < PROF_PROCESS_THREADS; i++) {
        t = &prof_threads[i];

        if (t->tid == 0) {
            continue;
        }

        if (!t->seen) {
            prof_thread_close(t);
            continue;
        }

        t->seen = 0;
    }
}


static prof_thread_t *
prof_thread_find(int tid)
{
    int  i;

    for (i = 0; i < PROF_PROCESS_THREADS; i++) {
        if (prof_threads[i].tid == tid) {
            return &prof_threads[i];
        }
    }

    return NULL;
}
