
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The process's unwind tables: the current snapshot.  A thread that samples
 * with an older snapshot holds it.
 *
 * While addresses without names exist, snapshots keep the data of objects that
 * are unloaded.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_scripts.h"
#include "stacks/prof_tables.h"

#include <pthread.h>


static prof_unwind_t  *prof_unwind;
static uint32_t        prof_users;

static void          (*prof_observer)(int begins);

/* another thread may take the snapshot that this one replaces */

static pthread_mutex_t  prof_unwind_mutex = PTHREAD_MUTEX_INITIALIZER;


static const prof_unwind_t *prof_process_update(int trials);


int
prof_process_init(void)
{
    return prof_process_update(1) ? PROF_OK : PROF_ERROR;
}


const prof_unwind_t *
prof_process_refresh(void)
{
    return prof_process_update(0);
}


static const prof_unwind_t *
prof_process_update(int trials)
{
    prof_unwind_t  *u;

    if (prof_unwind && !prof_unwind_stale(prof_unwind)) {
        return prof_unwind;
    }

    if (prof_observer) {
        prof_observer(1);
    }

    u = prof_unwind_update(prof_unwind,
                           __atomic_load_n(&prof_users, __ATOMIC_ACQUIRE) != 0);

    /* if there is no memory for new tables, the old tables remain */

    if (u) {
        prof_engines_attach(u, trials);

        (void) pthread_mutex_lock(&prof_unwind_mutex);

        prof_unwind_release(prof_unwind);
        prof_unwind = u;

        (void) pthread_mutex_unlock(&prof_unwind_mutex);
    }

    if (prof_observer) {
        prof_observer(0);
    }

    return prof_unwind;
}


void
prof_process_done(void)
{
    prof_unwind_release(prof_unwind);
    prof_unwind = NULL;
}


void
prof_process_hold(void)
{
    if (__atomic_fetch_add(&prof_users, 1, __ATOMIC_ACQUIRE) == 0) {
        prof_scripts_reuse();
    }
}


void
prof_process_release(void)
{
    (void) __atomic_fetch_sub(&prof_users, 1, __ATOMIC_RELEASE);
}


const prof_unwind_t *
prof_process_unwind(void)
{
    return prof_unwind;
}


const prof_unwind_t *
prof_process_unwind_take(void)
{
    const prof_unwind_t  *u;

    (void) pthread_mutex_lock(&prof_unwind_mutex);

    u = prof_unwind;

    if (u) {
        prof_unwind_hold(u);
    }

    (void) pthread_mutex_unlock(&prof_unwind_mutex);

    return u;
}


void
prof_process_observe(void (*observer)(int begins))
{
    prof_observer = observer;
}
