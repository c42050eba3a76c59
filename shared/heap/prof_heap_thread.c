
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The state for hooks: the list of heaps, their locks, and the threads by their
 * thread pointers; see prof_heap_state.h.
 */


#include "heap/prof_heap_state.h"

#include <sched.h>
#include <string.h>


/* entries that are searched for a thread, from its first one, cyclically */
#define PROF_HEAP_WINDOW  32

/* tries before sched_yield(), and calls of sched_yield() */

#define PROF_HEAP_SPIN    64
#define PROF_HEAP_YIELD   100000


prof_heap_state_t   prof_heap_state;
prof_heap_thread_t  prof_heap_threads[PROF_HEAP_THREADS];


/*
 * Finds the thread's entry, or takes a free entry.  Only the thread itself does
 * this.  Another thread may take the same free entry meanwhile.
 */

prof_heap_thread_t *
prof_heap_thread_find(uintptr_t self)
{
    uint32_t             i, first;
    uintptr_t            none;
    prof_heap_thread_t  *t;

    first = prof_heap_thread_first(self);

    for (i = 0; i < PROF_HEAP_WINDOW; i++) {
        t = &prof_heap_threads[(first + i) % PROF_HEAP_THREADS];

        if (__atomic_load_n(&t->thread, __ATOMIC_RELAXED) == self) {
            return t;
        }
    }

    for (i = 0; i < PROF_HEAP_WINDOW; i++) {
        t = &prof_heap_threads[(first + i) % PROF_HEAP_THREADS];
        none = 0;

        if (__atomic_compare_exchange_n(&t->thread, &none, self, 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        {
            return t;
        }
    }

    return NULL;
}


/*
 * Frees the entries of all threads that are not in a hook, also of threads
 * that have ended.  A running thread takes an entry again in its next hook.
 */

void
prof_heap_threads_clear(void)
{
    uint32_t             i;
    prof_heap_thread_t  *t;

    for (i = 0; i < PROF_HEAP_THREADS; i++) {
        t = &prof_heap_threads[i];

        if (t->thread && t->inside == 0) {
            memset(&t->stack, 0, sizeof(prof_stack_t));
            t->interval = 0;
            t->random = 0;
            __atomic_store_n(&t->thread, 0, __ATOMIC_RELEASE);
        }
    }
}


/*
 * The lock is held for at most one stack walk.  A signal handler that
 * allocates while its thread holds a lock does not wait for the lock.
 */

int
prof_heap_lock(prof_heap_t *h)
{
    uint32_t             n;
    prof_heap_thread_t  *t;

    t = prof_heap_thread();

    if (t == NULL || t->locked) {
        __atomic_fetch_add(&h->missed, 1, __ATOMIC_RELAXED);
        return 0;
    }

    t->locked = 1;

    for (n = 0; n < PROF_HEAP_YIELD; n++) {

        if (__atomic_exchange_n(&h->lock, 1, __ATOMIC_ACQUIRE) == 0) {
            return 1;
        }

        if (n >= PROF_HEAP_SPIN) {
            (void) sched_yield();
        }
    }

    t->locked = 0;
    __atomic_fetch_add(&h->missed, 1, __ATOMIC_RELAXED);

    return 0;
}


void
prof_heap_unlock(prof_heap_t *h)
{
    __atomic_store_n(&h->lock, 0, __ATOMIC_RELEASE);
    prof_heap_thread()->locked = 0;
}


void
prof_heap_mute(void)
{
    prof_heap_thread_t  *t;

    t = prof_heap_thread();

    if (t) {
        t->inside++;
    }
}


void
prof_heap_unmute(void)
{
    prof_heap_thread_t  *t;

    t = prof_heap_thread();

    if (t && t->inside) {
        t->inside--;
    }
}
