
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_spare.h"

#include <pthread.h>
#include <sys/mman.h>


typedef struct {
    void    *p;         /* NULL: the place is free */
    size_t   size;
} prof_spare_t;


static prof_spare_t     prof_spares[PROF_SPARE_MAX];
static pthread_mutex_t  prof_spare_lock = PTHREAD_MUTEX_INITIALIZER;


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
prof_spare_unmap(void *p, size_t size, size_t used)
{
    int  i;

    if (used <= PROF_SPARE_USED
        && pthread_mutex_trylock(&prof_spare_lock) == 0)
    {
        for (i = 0; i < PROF_SPARE_MAX && p; i++) {

            if (prof_spares[i].p == NULL) {
                prof_spares[i].p = p;
                prof_spares[i].size = size;
                p = NULL;
            }
        }

        (void) pthread_mutex_unlock(&prof_spare_lock);
    }

    if (p) {
        (void) munmap(p, size);
    }
}
