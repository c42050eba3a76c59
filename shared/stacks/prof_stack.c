
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "stacks/prof_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>


/* bytes below the program's stack where the kernel maps nothing else */
#define PROF_STACK_MAX   (128 * 1024 * 1024)

/* size of the reads from /proc/self/maps */
#define PROF_STACK_READ  4096


typedef struct {
    uintptr_t   start;
    uintptr_t   end;
    uintptr_t  *number;      /* the number in work; NULL: skip the line */
} prof_stack_line_t;


static void prof_stack_main(prof_stack_t *stack);
static void prof_stack_thread(prof_stack_t *stack, uintptr_t at);
static int prof_stack_read(prof_stack_line_t *line, char ch);


/*
 * The C library puts the thread's descriptor at the top of the thread's stack.
 * pthread_getattr_np() cannot be used: it allocates while it holds a lock, so a
 * hook of the allocator would call it again and wait for its own lock.
 */

void
prof_stack_find(prof_stack_t *stack)
{
    int  err;

    stack->low = 0;
    stack->high = 1;

    if (syscall(SYS_gettid) == getpid()) {
        prof_stack_main(stack);
        return;
    }

    err = errno;

    prof_stack_thread(stack, (uintptr_t) pthread_self());

    errno = err;
}


static void
prof_stack_thread(prof_stack_t *stack, uintptr_t at)
{
    int                fd;
    char               buf[PROF_STACK_READ];
    ssize_t            i, n;
    prof_stack_line_t  line;

    fd = open("/proc/self/maps", O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return;
    }

    line.start = 0;
    line.end = 0;
    line.number = &line.start;

    while (stack->low == 0 && (n = read(fd, buf, sizeof(buf))) > 0) {

        for (i = 0; i < n; i++) {

            if (prof_stack_read(&line, buf[i]) && at >= line.start
                && at < line.end)
            {
                stack->low = line.start;
                stack->high = at;
                break;
            }
        }
    }

    (void) close(fd);
}


/* returns 1 when the line's range is complete: "start-end permissions ..." */

static int
prof_stack_read(prof_stack_line_t *line, char ch)
{
    if (ch == '\n') {
        line->start = 0;
        line->end = 0;
        line->number = &line->start;
        return 0;
    }

    if (line->number == NULL) {
        return 0;
    }

    if (ch == '-') {
        line->number = &line->end;
        return 0;
    }

    if (ch == ' ') {
        line->number = NULL;
        return 1;
    }

    *line->number = *line->number * 16
                    + (ch <= '9' ? ch - '0' : ch - 'a' + 10);

    return 0;
}


/*
 * Finds the bounds of the main thread's stack.  The kernel puts some random
 * bytes above all frames.  The stack grows, so its limit is the lower bound.
 */

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
