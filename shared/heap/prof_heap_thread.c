
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What hooks know of threads, by their thread pointers: see prof_heap.h.
 */


#include "heap/prof_heap_state.h"

#include <string.h>


/* entries where a thread's may be: from the first one on, around the end */
#define PROF_HEAP_WINDOW  32


prof_heap_thread_t  prof_heap_threads[PROF_HEAP_THREADS];


/*
 * Looks for the thread's entry, and else takes a free one.  Only the thread
 * itself does either; another one may take the same free entry meanwhile.
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


/* threads that have ended left theirs; what is in use now is taken again */

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
