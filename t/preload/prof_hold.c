
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library delays or prevents threads.  PROF_HOLD
 * names a file.  While the file exists, a new thread waits before it runs.
 * While the file with the suffix ".fail" exists, pthread_create() fails with
 * EAGAIN.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


typedef struct {
    void  *(*start)(void *arg);
    void   *arg;
} hold_thread_t;


static void hold_start(void) __attribute__((constructor));
static void *hold_thread(void *data);


static char  hold_file[256];
static char  hold_fail[256];


static void
hold_start(void)
{
    const char  *name;

    name = getenv("PROF_HOLD");

    if (name) {
        (void) snprintf(hold_file, sizeof(hold_file), "%s", name);
        (void) snprintf(hold_fail, sizeof(hold_fail), "%s.fail", name);
    }
}


int
pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*start)(void *arg), void *arg)
{
    hold_thread_t  *t;

    static int  (*create)(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start)(void *arg), void *arg);

    if (create == NULL) {
        *(void **) &create = dlsym(RTLD_NEXT, "pthread_create");
    }

    if (access(hold_fail, F_OK) == 0) {
        return EAGAIN;
    }

    t = malloc(sizeof(hold_thread_t));
    if (t == NULL) {
        return ENOMEM;
    }

    t->start = start;
    t->arg = arg;

    return create(thread, attr, hold_thread, t);
}


static void *
hold_thread(void *data)
{
    hold_thread_t    t;
    struct timespec  ts;

    t = *(hold_thread_t *) data;
    free(data);

    ts.tv_sec = 0;
    ts.tv_nsec = 5000000;

    while (access(hold_file, F_OK) == 0) {
        (void) nanosleep(&ts, NULL);
    }

    return t.start(t.arg);
}
