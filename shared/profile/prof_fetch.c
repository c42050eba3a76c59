
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The client library brings an HTTP client with it, which nobody should have
 * in a server who did not ask for it: it is loaded when it is needed first.
 */


#include "profile/prof_fetch.h"
#include "profile/prof_lines.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


typedef struct debuginfod_client  prof_fetch_client_t;

typedef int (*prof_fetch_progress_pt)(prof_fetch_client_t *c, long a, long b);


/* the client library's functions */

typedef struct {
    prof_fetch_client_t  *(*begin)(void);
    int                   (*find)(prof_fetch_client_t *c,
                                  const unsigned char *build_id, int len,
                                  char **path);
    void                  (*progress)(prof_fetch_client_t *c,
                                      prof_fetch_progress_pt fn);
    void                  (*end)(prof_fetch_client_t *c);
} prof_fetch_library_t;


static void prof_fetch_init(void);
static void prof_fetch_symbol(void *lib, const char *name, void *function);
static int prof_fetch_progress(prof_fetch_client_t *c, long a, long b);


static pthread_once_t         prof_fetch_once = PTHREAD_ONCE_INIT;
static prof_fetch_library_t   prof_fetch_library;
static uint64_t               prof_fetch_next;      /* no question before */
static __thread uint64_t      prof_fetch_deadline;


char *
prof_fetch(const char *build_id)
{
    int                   fd;
    char                 *path;
    uint64_t              now;
    const char           *urls;
    prof_fetch_client_t  *c;

    urls = getenv("DEBUGINFOD_URLS");

    if (urls == NULL || urls[0] == '\0' || build_id[0] == '\0') {
        return NULL;
    }

    now = prof_lines_now();

    if (now < __atomic_load_n(&prof_fetch_next, __ATOMIC_RELAXED)) {
        return NULL;
    }

    (void) pthread_once(&prof_fetch_once, prof_fetch_init);

    if (prof_fetch_library.begin == NULL) {
        return NULL;
    }

    c = prof_fetch_library.begin();
    if (c == NULL) {
        return NULL;
    }

    path = NULL;
    prof_fetch_deadline = now + PROF_FETCH_TIME;
    prof_fetch_library.progress(c, prof_fetch_progress);

    /* a length of 0: it is in hex */

    fd = prof_fetch_library.find(c, (const unsigned char *) build_id, 0,
                                 &path);

    prof_fetch_library.end(c);

    if (fd >= 0) {
        close(fd);

    } else {
        free(path);
        path = NULL;

        if (prof_lines_now() >= prof_fetch_deadline) {
            __atomic_store_n(&prof_fetch_next,
                             prof_lines_now() + PROF_FETCH_PAUSE,
                             __ATOMIC_RELAXED);
        }
    }

    return path;
}


static void
prof_fetch_init(void)
{
    void                  *lib;
    prof_fetch_library_t  *l;

    lib = dlopen("libdebuginfod.so.1", RTLD_LAZY|RTLD_LOCAL);
    if (lib == NULL) {
        return;
    }

    l = &prof_fetch_library;

    prof_fetch_symbol(lib, "debuginfod_begin", &l->begin);
    prof_fetch_symbol(lib, "debuginfod_find_debuginfo", &l->find);
    prof_fetch_symbol(lib, "debuginfod_set_progressfn", &l->progress);
    prof_fetch_symbol(lib, "debuginfod_end", &l->end);

    if (l->find == NULL || l->progress == NULL || l->end == NULL) {
        l->begin = NULL;
    }
}


/* C has no cast from an object pointer to a function pointer */

static void
prof_fetch_symbol(void *lib, const char *name, void *function)
{
    void  *sym;

    sym = dlsym(lib, name);
    memcpy(function, &sym, sizeof(sym));
}


/* not 0 ends the question; called several times a second */

static int
prof_fetch_progress(prof_fetch_client_t *c, long a, long b)
{
    return prof_lines_now() >= prof_fetch_deadline;
}
