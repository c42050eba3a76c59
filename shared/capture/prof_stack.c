
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "capture/prof_stack.h"

#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>


/* the kernel maps nothing so near below the program's stack */
#define PROF_STACK_MAX  (128 * 1024 * 1024)


static void prof_stack_main(prof_stack_t *stack);


void
prof_stack_find(prof_stack_t *stack)
{
    int              err;
    void            *low;
    size_t           size;
    pthread_attr_t   attr;

    stack->low = 0;
    stack->high = 1;

    if (syscall(SYS_gettid) == getpid()) {
        prof_stack_main(stack);
        return;
    }

    err = errno;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {

        if (pthread_attr_getstack(&attr, &low, &size) == 0) {
            stack->low = (uintptr_t) low;
            stack->high = (uintptr_t) low + size;
        }

        (void) pthread_attr_destroy(&attr);
    }

    errno = err;
}


/* it grows; the kernel has put some random bytes above all frames */

static void
prof_stack_main(prof_stack_t *stack)
{
    size_t         size;
    struct rlimit  limit;

    size = PROF_STACK_MAX;

    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < size) {
        size = limit.rlim_cur;
    }

    stack->high = getauxval(AT_RANDOM) & ~(uintptr_t) 15;
    stack->low = stack->high - size;
}
