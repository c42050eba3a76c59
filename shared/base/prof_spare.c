
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_spare.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


typedef struct {
    void    *p;         /* NULL: the place is free */
    size_t   size;
} prof_spare_t;


/* the start of a mapping that was left */

typedef struct prof_spare_left_s  prof_spare_left_t;

struct prof_spare_left_s {
    prof_spare_left_t  *next;
    size_t              size;
};


static int prof_spare_keep(void *p, size_t size, size_t used);


static prof_spare_t        prof_spares[PROF_SPARE_MAX];
static prof_spare_left_t  *prof_spare_left;
static pthread_mutex_t     prof_spare_lock = PTHREAD_MUTEX_INITIALIZER;


/*
 * No thread waits for the lock, because a thread of the lowest priority that
 * does not run may hold the lock.
 */

void *
prof_spare_map(size_t size)
{
    int    i;
    void  *p;

    p = NULL;

    if (pthread_mutex_trylock(&prof_spare_lock) == 0) {

        for (i = 0; i < PROF_SPARE_MAX && p == NULL; i++) {

            if (prof_spares[i].p && prof_spares[i].size == size) {
                p = prof_spares[i].p;
                prof_spares[i].p = NULL;
            }
        }

        (void) pthread_mutex_unlock(&prof_spare_lock);
    }

    if (p) {
        return p;
    }

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    return (p == MAP_FAILED) ? NULL : p;
}


void
prof_spare_zero(void *p, size_t size)
{
    char       *first, *last, *end;
    uintptr_t   page;

    page = (uintptr_t) sysconf(_SC_PAGESIZE);

    end = (char *) p + size;
    first = (char *) (((uintptr_t) p + page - 1) & ~(page - 1));
    last = (char *) ((uintptr_t) end & ~(page - 1));

    if (first >= last || madvise(first, last - first, MADV_DONTNEED) == -1) {
        memset(p, 0, size);
        return;
    }

    memset(p, 0, first - (char *) p);
    memset(last, 0, end - last);
}


void
prof_spare_unmap(void *p, size_t size, size_t used)
{
    if (!prof_spare_keep(p, size, used)) {
        (void) munmap(p, size);
    }
}


static int
prof_spare_keep(void *p, size_t size, size_t used)
{
    int  i, kept;

    kept = 0;

    if (used <= PROF_SPARE_USED
        && pthread_mutex_trylock(&prof_spare_lock) == 0)
    {
        for (i = 0; i < PROF_SPARE_MAX && !kept; i++) {

            if (prof_spares[i].p == NULL) {
                prof_spares[i].p = p;
                prof_spares[i].size = size;
                kept = 1;
            }
        }

        (void) pthread_mutex_unlock(&prof_spare_lock);
    }

    return kept;
}


void
prof_spare_leave(void *p, size_t size, size_t used)
{
    prof_spare_left_t  *left;

    if (prof_spare_keep(p, size, used)) {
        return;
    }

    left = p;

    left->size = size;
    left->next = __atomic_load_n(&prof_spare_left, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(&prof_spare_left, &left->next, left, 0,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    {
        /* void */
    }
}


int
prof_spare_has_left(void)
{
    return __atomic_load_n(&prof_spare_left, __ATOMIC_RELAXED) != NULL;
}


void
prof_spare_trim(void)
{
    prof_spare_left_t  *left, *next;

    left = __atomic_exchange_n(&prof_spare_left, NULL, __ATOMIC_ACQUIRE);

    while (left) {
        next = left->next;

        (void) munmap(left, left->size);

        left = next;
    }
}
